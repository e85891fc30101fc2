//! The chunks that may hold the state of a value, as a decoder reads them.
//!
//! The end of a chunk is a joint of the decoder, like the start of a fragment, so that reading
//! within a chunk costs nothing.

use crate::{CdrError, Decoder};

/// The marker of an indirection to an earlier part of the message; its offset follows.
pub(super) const INDIRECTION: u32 = 0xffff_ffff;
/// The upper limit of chunk sizes. A greater number is the tag of a value.
pub(super) const CHUNK_LIMIT: u32 = 0x7fff_ff00;

impl Decoder<'_> {
    /// Continues in the next chunk to read `n` octets, and returns the padding before them.
    #[cold]
    pub(crate) fn cross_chunk(&mut self, align: usize, n: usize) -> Result<usize, CdrError> {
        if n == 0 {
            // The decoder does not know whether there is a next chunk, and need not know.
            return Ok(0);
        }
        if self.values.is_none() {
            // This decoder looks ahead, and octets of several chunks cannot be kept unchanged.
            return Err(CdrError::OpaqueValue);
        }
        loop {
            self.skip_chunk()?;
            if self.reading().ended_to.is_some() {
                return Err(CdrError::InvalidValue);
            }
            self.skip_base_ends()?;
            let size = self.read_u32()?;
            self.begin_chunk(size)?;
            let padding = self.padding(align);
            if self.position() + padding < self.joint {
                return Ok(padding);
            }
        }
    }

    /// Begins a chunk of that size.
    pub(super) fn begin_chunk(&mut self, size: u32) -> Result<(), CdrError> {
        if !(1..CHUNK_LIMIT).contains(&size) {
            return Err(CdrError::InvalidValue);
        }
        if size as usize > self.remaining() {
            return Err(CdrError::EndOfData);
        }
        self.in_chunks = true;
        self.joint = self.position() + size as usize;
        Ok(())
    }

    /// Skips the end tags that TAO writes behind the states of bases, where more of the value
    /// follows. They name levels that are not open.
    pub(super) fn skip_base_ends(&mut self) -> Result<(), CdrError> {
        let level = self.reading().level;
        while self.peek_u32()? >= 0x8000_0000 && self.peek_u32()?.wrapping_neg() > level {
            self.read_u32()?;
        }
        Ok(())
    }

    /// Marks the end of a chunk: the next octet is read from the next chunk.
    pub(super) fn between_chunks(&mut self) {
        self.in_chunks = true;
        self.joint = self.position();
    }

    /// Skips the rest of the chunk, and reads without chunks from there.
    pub(super) fn skip_chunk(&mut self) -> Result<(), CdrError> {
        // A string or number that extends beyond the end of its chunk was read without checking for
        // that.
        let left = self.joint.checked_sub(self.position());
        let left = left.ok_or(CdrError::InvalidValue)?;
        self.in_chunks = false;
        self.joint = usize::MAX;
        self.read_octets(left)?;
        Ok(())
    }

    /// Whether the next number of four octets is in the present chunk.
    pub(super) fn is_within_chunk(&self) -> bool {
        self.in_chunks && self.position() + self.padding(4) < self.joint
    }

    /// Returns the next number of four octets without advancing.
    pub(crate) fn peek_u32(&self) -> Result<u32, CdrError> {
        let octets = self.rest.get(self.padding(4)..);
        let octets = octets.and_then(|octets| octets.first_chunk());
        let number = u32::from_ne_bytes(*octets.ok_or(CdrError::EndOfData)?);
        Ok(if self.endian().is_native() {
            number
        } else {
            number.swap_bytes()
        })
    }
}
