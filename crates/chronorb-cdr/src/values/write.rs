//! Encoding of value types: sharing, repository ids and chunks.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use super::chunks::{CHUNK_LIMIT, INDIRECTION};
use super::{MAX_VALUE_DEPTH, Value, ValueInfo, ValueType};
use crate::{CdrError, Encoder, stack};

/// The base of the tag of a value, and its bits.
const TAG: u32 = 0x7fff_ff00;
const ONE_ID: u32 = 2;
const LIST_OF_IDS: u32 = 6;
const CHUNKED: u32 = 8;

impl Encoder<'_> {
    /// Writes a value, or null.
    ///
    /// A value that is already in the message is written as an indirection to it. Values are
    /// identified by their address, and kept alive until the message is written.
    ///
    /// # Errors
    /// [`CdrError::CyclicValue`] if it is within itself, [`CdrError::TooDeep`] if it is within more
    /// than [`MAX_VALUE_DEPTH`](crate::MAX_VALUE_DEPTH) others, and those of its state.
    pub fn write_value<V: ValueType + ?Sized>(
        &mut self,
        value: Option<&Arc<V>>,
    ) -> Result<(), CdrError> {
        match value {
            Some(value) => self.write_untyped(V::into_value(value.clone())),
            // Within a chunk, null and indirections are part of its data.
            None => self.write_u32(0),
        }
    }

    fn write_untyped(&mut self, value: Arc<dyn Value>) -> Result<(), CdrError> {
        let address = Arc::as_ptr(&value).cast::<()>().addr();
        let notes = self.writing();
        if let Some(written) = notes.values.get(&address) {
            if notes.open.contains(&address) {
                return Err(CdrError::CyclicValue);
            }
            let position = written.position;
            return self.write_indirection(position);
        }
        let info = value.info();
        let is_chunked = info.custom || !info.truncatable_to.is_empty() || notes.level > 0;
        self.end_chunk()?;
        self.write_header(info, is_chunked, address, &value)?;
        if is_chunked {
            self.enter_level()?;
        }
        value.encode_state(self)?;
        if is_chunked {
            self.leave_level()?;
        }
        self.writing().open.pop();
        Ok(())
    }

    fn write_header(
        &mut self,
        info: &'static ValueInfo,
        is_chunked: bool,
        address: usize,
        value: &Arc<dyn Value>,
    ) -> Result<(), CdrError> {
        let is_list = !info.truncatable_to.is_empty();
        let ids = if is_list { LIST_OF_IDS } else { ONE_ID };
        let chunks = if is_chunked { CHUNKED } else { 0 };
        self.write_u32(TAG | ids | chunks)?;
        let position = self.position() - 4;
        self.stack_limit().check(stack::Room::NONE)?;
        let notes = self.writing();
        if notes.open.len() >= MAX_VALUE_DEPTH as usize {
            return Err(CdrError::TooDeep);
        }
        notes.open.push(address);
        notes.first = notes.first.min(position);
        let written = WrittenValue {
            position,
            _value: value.clone(),
        };
        notes.values.insert(address, written);
        if !is_list {
            return self.write_id(info.repository_id);
        }
        // A list could be shared like its identifiers, but most ORBs cannot read that.
        self.write_len(1 + info.truncatable_to.len())?;
        self.write_id(info.repository_id)?;
        info.truncatable_to
            .iter()
            .try_for_each(|id| self.write_id(id))
    }

    /// Writes a repository identifier, or an indirection to an earlier one.
    fn write_id(&mut self, id: &'static str) -> Result<(), CdrError> {
        let mut ids = self.writing().ids.iter();
        if let Some(&(_, position)) = ids.find(|(written, _)| *written == id) {
            return self.write_indirection(position);
        }
        self.align(4)?;
        let position = self.position();
        self.writing().ids.push((id, position));
        self.write_str(id)
    }

    fn write_indirection(&mut self, position: usize) -> Result<(), CdrError> {
        self.write_u32(INDIRECTION)?;
        let back = self.position() - position;
        let back = i32::try_from(back).map_err(|_| CdrError::LengthOverflow)?;
        self.write_i32(-back)
    }

    fn enter_level(&mut self) -> Result<(), CdrError> {
        // The length of a chunk is known only at its end, so the whole chunk must be in the frame.
        let great = self.set_great(usize::MAX);
        let notes = self.writing();
        if notes.level == 0 {
            notes.great = great;
        }
        notes.level += 1;
        self.begin_chunk()
    }

    fn leave_level(&mut self) -> Result<(), CdrError> {
        self.end_chunk()?;
        let level = self.writing().level;
        self.write_i32(-level)?;
        self.writing().level = level - 1;
        if level > 1 {
            return self.begin_chunk();
        }
        let great = self.writing().great;
        self.set_great(great);
        Ok(())
    }

    /// Ends the state of a base; the members of the derived value follow. In chunks they begin
    /// another chunk, because TAO reads the state of each level of inheritance from its own.
    ///
    /// # Errors
    /// As the end of a value.
    pub fn end_base_state(&mut self) -> Result<(), CdrError> {
        let Some(notes) = &mut self.values else {
            return Ok(());
        };
        if notes.writing().chunk.is_none() {
            return Ok(());
        }
        self.end_chunk()?;
        self.begin_chunk()
    }

    fn begin_chunk(&mut self) -> Result<(), CdrError> {
        let before = self.position();
        self.write_u32(0)?;
        let start = self.position();
        self.writing().chunk = Some(Chunk { before, start });
        Ok(())
    }

    /// Ends the chunk, if there is one. A chunk is never empty.
    fn end_chunk(&mut self) -> Result<(), CdrError> {
        let Some(chunk) = self.writing().chunk.take() else {
            return Ok(());
        };
        let size = self.position() - chunk.start;
        if size == 0 {
            self.cut(chunk.before);
            return Ok(());
        }
        let size = u32::try_from(size).ok().filter(|size| *size < CHUNK_LIMIT);
        self.patch_u32(chunk.start - 4, size.ok_or(CdrError::LengthOverflow)?)
    }

    fn writing(&mut self) -> &mut WriteLog {
        let notes = self.values.get_or_insert_with(|| {
            let notes: Box<dyn WriteNotes> = Box::<WriteLog>::default();
            notes
        });
        notes.writing()
    }
}

/// The state that an encoder keeps of the values in its message. It is behind a trait so that a
/// program without values does not contain its code.
pub(crate) trait WriteNotes {
    fn writing(&mut self) -> &mut WriteLog;

    /// Forgets the values behind the position. Returns the value to pass to [`Encoder::set_great`],
    /// if no value is left.
    fn cut(&mut self, position: usize) -> Option<usize>;
}

pub(crate) struct WriteLog {
    /// The written values, by address.
    values: HashMap<usize, WrittenValue, BuildHasherDefault<AddressHasher>>,
    /// The addresses of the values whose state is being written, the outermost first.
    open: Vec<usize>,
    ids: Vec<(&'static str, usize)>,
    /// The position of the first value.
    first: usize,
    /// The number of values in chunks that enclose the next octet.
    level: i32,
    chunk: Option<Chunk>,
    /// The value to restore when the outermost value in chunks ends.
    great: usize,
}

/// The positions around the size of a chunk.
struct Chunk {
    /// The position of the size, without padding.
    before: usize,
    /// The position of its first octet.
    start: usize,
}

struct WrittenValue {
    position: usize,
    /// Kept so that no other value can have its address.
    _value: Arc<dyn Value>,
}

/// A hasher of addresses, which no peer chooses.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, octets: &[u8]) {
        for octet in octets {
            self.write_usize(usize::from(*octet));
        }
    }

    #[inline]
    fn write_usize(&mut self, address: usize) {
        self.0 = (self.0 ^ address as u64).wrapping_mul(GOLDEN);
    }

    /// The high half of the product depends on all bits of the address, and a table uses the low
    /// bits first.
    #[inline]
    fn finish(&self) -> u64 {
        self.0.rotate_left(32)
    }
}

/// 2^64 divided by the golden ratio: multiples of it are spread evenly.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Default for WriteLog {
    fn default() -> Self {
        Self {
            values: HashMap::default(),
            open: Vec::new(),
            ids: Vec::new(),
            first: usize::MAX,
            level: 0,
            chunk: None,
            great: usize::MAX,
        }
    }
}

impl WriteNotes for WriteLog {
    fn writing(&mut self) -> &mut WriteLog {
        self
    }

    fn cut(&mut self, position: usize) -> Option<usize> {
        if position <= self.first {
            let great = (self.level > 0).then_some(self.great);
            *self = Self::default();
            return great;
        }
        self.values.retain(|_, written| written.position < position);
        self.open
            .retain(|address| self.values.contains_key(address));
        self.ids.retain(|(_, at)| *at < position);
        None
    }
}
