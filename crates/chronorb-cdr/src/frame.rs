//! Frames: the buffers that messages are received into and written into.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::fmt;
use std::hint;

use crate::{Arena, CdrError, Decoder, Endian};
use crate::{copied, memory};

/// The memory of one message: 8-aligned, owned, bounded.
///
/// The GIOP header is at offset 0, so that the alignment of CDR is the alignment of memory. All of
/// the capacity is initialized and was touched when it was allocated: using it causes no page
/// fault. A frame is meant to be reused; [`clear`](Self::clear) keeps its memory.
pub struct Frame {
    words: Vec<u64>,
    len: usize,
    capacity: usize,
    limit: usize,
    joints: Vec<u32>,
    /// The number of consecutive messages that did not need the memory.
    unneeded: u32,
}

impl Frame {
    /// Makes an empty frame that holds `capacity` bytes before it must grow. It never holds more
    /// than `limit` bytes, nor more than an `unsigned long` can count, the greatest length in GIOP.
    /// A capacity above the limit is reduced to it. Without memory for the capacity the frame
    /// begins with none.
    pub fn new(capacity: usize, limit: usize) -> Self {
        let limit = limit.min(u32::MAX as usize);
        let mut frame = Self {
            words: Vec::new(),
            len: 0,
            capacity: 0,
            limit,
            joints: Vec::new(),
            unneeded: 0,
        };
        let _ = frame.resize_storage(capacity.min(limit));
        frame
    }

    /// Number of bytes in the message so far.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes in the message.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of bytes that fit before the frame must grow.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Number of bytes beyond which the frame refuses to grow.
    #[inline]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Changes the number of bytes beyond which the frame refuses to grow. Allocated memory stays.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit.min(u32::MAX as usize).max(self.capacity);
    }

    /// Removes all bytes and keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
        self.joints.clear();
    }

    /// Keeps the first `len` bytes; does nothing if there are fewer.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        while self.joints.pop_if(|joint| *joint as usize >= len).is_some() {}
    }

    /// Removes the first `n` bytes, or all if there are fewer, and moves the rest to the start.
    pub fn remove_first(&mut self, n: usize) {
        let (n, len) = (n.min(self.len), self.len);
        self.as_mut_slice().copy_within(n.., 0);
        self.len = len - n;
        self.joints.clear();
    }

    /// Makes a decoder of the message from the octet `position` on; the origin is the start of the
    /// frame. Unlike a decoder of the octets alone, it knows the [joints](Self::join).
    #[inline]
    pub fn decoder<'a>(
        &'a mut self,
        position: usize,
        endian: Endian,
        arena: &'a Arena,
    ) -> Decoder<'a> {
        let bytes = &mut memory::bytes_of_mut(&mut self.words)[..self.len];
        let position = position.min(bytes.len());
        Decoder::new(&mut bytes[position..], position, endian, arena).with_joints(&self.joints)
    }

    /// Returns a copy of the message, with no more memory than it needs.
    ///
    /// # Errors
    /// [`CdrError::OutOfMemory`].
    pub fn fitting_copy(&self) -> Result<Self, CdrError> {
        let mut copy = Self::new(self.len, usize::MAX);
        copy.extend_from_slice(self.as_slice())?;
        copy.joints
            .try_reserve_exact(self.joints.len())
            .map_err(|_| CdrError::OutOfMemory)?;
        copy.joints.extend_from_slice(&self.joints);
        Ok(copy)
    }

    /// Appends the body of a fragment of GIOP 1.1 to the message.
    ///
    /// In GIOP 1.1 values are aligned relative to the header of the fragment that they start in, so
    /// the frame records where the fragment begins. In GIOP 1.2 fragments are cut so that alignment
    /// continues, and [`extend_from_slice`](Self::extend_from_slice) joins them.
    ///
    /// # Errors
    /// [`CdrError::FrameFull`] if the frame would grow over its limit; [`CdrError::OutOfMemory`].
    /// It is then unchanged.
    pub fn join(&mut self, body: &[u8]) -> Result<(), CdrError> {
        // The length of a frame fits into an `unsigned long`.
        let joint = self.len as u32;
        self.joints
            .try_reserve(1)
            .map_err(|_| CdrError::OutOfMemory)?;
        self.extend_from_slice(body)?;
        if self.joints.last() != Some(&joint) {
            self.joints.push(joint);
        }
        Ok(())
    }

    /// The bytes of the message.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        &memory::bytes_of(&self.words)[..self.len]
    }

    /// The bytes of the message, to be decoded in place or patched.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut memory::bytes_of_mut(&mut self.words)[..self.len]
    }

    /// Appends `bytes`.
    ///
    /// # Errors
    /// [`CdrError::FrameFull`] if the frame would grow over its limit; [`CdrError::OutOfMemory`].
    /// It is then unchanged.
    #[inline]
    pub fn extend_from_slice(&mut self, bytes: &[u8]) -> Result<(), CdrError> {
        self.append(bytes.len())?.copy_from_slice(bytes);
        copied::count(bytes.len());
        Ok(())
    }

    /// Returns the memory behind the message, at least `min` bytes of it, to receive into.
    /// [`commit`](Self::commit) makes the received bytes part of the message.
    ///
    /// # Errors
    /// [`CdrError::FrameFull`] if `min` more bytes would be over the limit;
    /// [`CdrError::OutOfMemory`].
    #[inline]
    pub fn spare_mut(&mut self, min: usize) -> Result<&mut [u8], CdrError> {
        let total = self.len.checked_add(min).ok_or(CdrError::FrameFull)?;
        self.reserve(total)?;
        let (len, capacity) = (self.len, self.capacity);
        Ok(&mut memory::bytes_of_mut(&mut self.words)[len..capacity])
    }

    /// Makes the first `n` bytes of [`spare_mut`](Self::spare_mut) part of
    /// the message. At most what fits in the capacity is added.
    #[inline]
    pub fn commit(&mut self, n: usize) {
        self.len = self.len.saturating_add(n).min(self.capacity);
    }

    /// Makes room for a message of `total` bytes.
    ///
    /// # Errors
    /// [`CdrError::FrameFull`] if `total` is over the limit; [`CdrError::OutOfMemory`].
    #[inline]
    pub fn reserve(&mut self, total: usize) -> Result<(), CdrError> {
        if total <= self.capacity {
            return Ok(());
        }
        self.grow(total)
    }

    /// Releases memory down to `capacity` bytes, or to the size of the message if that is more.
    pub fn shrink_to(&mut self, capacity: usize) {
        let capacity = capacity.max(self.len);
        if capacity < self.capacity {
            let _ = self.resize_storage(capacity);
        }
    }

    /// Releases memory above `kept` bytes once [`RELAXED_AFTER`](Self::RELAXED_AFTER) consecutive
    /// messages have not needed a quarter of it. It is called after each message, so that a series
    /// of large messages keeps its memory.
    #[inline]
    pub fn relax(&mut self, kept: usize) {
        if self.capacity > kept {
            self.relax_above(kept);
        }
    }

    /// The number of messages until a frame releases memory; see [`relax`](Self::relax).
    pub const RELAXED_AFTER: u32 = 64;

    #[cold]
    fn relax_above(&mut self, kept: usize) {
        if self.len > self.capacity / 4 {
            self.unneeded = 0;
            return;
        }
        self.unneeded += 1;
        if self.unneeded >= Self::RELAXED_AFTER {
            self.unneeded = 0;
            self.shrink_to(kept);
        }
    }

    /// Appends `n` bytes of unspecified value and returns them.
    #[inline]
    pub(crate) fn append(&mut self, n: usize) -> Result<&mut [u8], CdrError> {
        let start = self.len;
        let end = start.checked_add(n).ok_or(CdrError::FrameFull)?;
        self.reserve(end)?;
        self.len = end;
        Ok(&mut memory::bytes_of_mut(&mut self.words)[start..end])
    }

    #[cold]
    fn grow(&mut self, total: usize) -> Result<(), CdrError> {
        if total > self.limit {
            return Err(CdrError::FrameFull);
        }
        copied::count(self.len);
        let doubled = self.capacity.saturating_mul(2).max(MIN_GROWN_CAPACITY);
        self.resize_storage(total.max(doubled).min(self.limit))
    }

    fn resize_storage(&mut self, capacity: usize) -> Result<(), CdrError> {
        let words = capacity.div_ceil(8);
        if self.len == 0 {
            // There is nothing to copy.
            self.words = Vec::new();
            self.capacity = 0;
        }
        let old_words = self.words.len();
        self.words
            .try_reserve_exact(words.saturating_sub(old_words))
            .map_err(|_| CdrError::OutOfMemory)?;
        self.words.resize(words, 0);
        self.words.shrink_to(words);
        self.capacity = capacity;
        // Zeroed memory may come from the kernel as untouched pages; a write
        // to each makes the page fault happen here and not in a request.
        for word in self.words.iter_mut().skip(old_words).step_by(PAGE / 8) {
            *hint::black_box(word) = 0;
        }
        Ok(())
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frame")
            .field("len", &self.len)
            .field("capacity", &self.capacity)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// The smallest page of the machines that we know.
const PAGE: usize = 4096;

/// The least capacity of a frame after it has grown.
const MIN_GROWN_CAPACITY: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_grows_to_its_limit_and_not_beyond() {
        let mut frame = Frame::new(4, 21);
        frame.extend_from_slice(&[1; 20]).unwrap();
        assert_eq!(frame.extend_from_slice(&[2; 2]), Err(CdrError::FrameFull));
        frame.extend_from_slice(&[2]).unwrap();
        assert_eq!(frame.len(), 21);
        assert_eq!(frame.capacity(), 21);
        assert_eq!(frame.as_slice()[19..], [1, 2]);
    }

    #[test]
    fn a_frame_grows_on_with_a_higher_limit() {
        let mut frame = Frame::new(16, 16);
        assert_eq!(frame.reserve(17), Err(CdrError::FrameFull));
        frame.set_limit(usize::MAX);
        assert_eq!(frame.limit(), u32::MAX as usize);
        frame.reserve(17).unwrap();
        frame.set_limit(1);
        assert_eq!(frame.limit(), frame.capacity());
    }

    #[test]
    fn octets_are_received_into_the_spare_memory() {
        let mut frame = Frame::new(16, 64);
        frame.extend_from_slice(&[1; 12]).unwrap();
        let spare = frame.spare_mut(8).unwrap();
        assert!(spare.len() >= 8);
        spare[..8].fill(2);
        frame.commit(8);
        assert_eq!(frame.as_slice()[11..13], [1, 2]);
        assert!(frame.spare_mut(45).is_err());
        frame.commit(usize::MAX);
        assert_eq!(frame.len(), frame.capacity());
    }

    #[test]
    fn what_is_removed_makes_place_for_the_rest() {
        let mut frame = Frame::new(16, 16);
        frame.extend_from_slice(&[1, 2, 3, 4, 5]).unwrap();
        frame.remove_first(3);
        assert_eq!(frame.as_slice(), [4, 5]);
        frame.remove_first(3);
        assert!(frame.is_empty());
    }

    #[test]
    fn a_frame_keeps_its_memory_until_it_is_told_to_shrink() {
        let mut frame = Frame::new(16, 4096);
        frame.reserve(1000).unwrap();
        frame.extend_from_slice(&[7; 100]).unwrap();
        frame.truncate(40);
        frame.shrink_to(16);
        assert_eq!(frame.capacity(), 40);
        assert_eq!(frame.as_slice(), [7; 40]);
        frame.clear();
        assert!(frame.is_empty());
        assert_eq!(frame.capacity(), 40);
    }

    #[test]
    fn a_frame_keeps_what_great_messages_need_while_they_keep_coming() {
        let mut frame = Frame::new(0, 1 << 20);
        let message = |frame: &mut Frame, len| {
            frame.clear();
            frame.append(len).unwrap();
            frame.relax(1000);
        };
        message(&mut frame, 100_000);
        for _ in 0..3 {
            for _ in 1..Frame::RELAXED_AFTER {
                message(&mut frame, 10);
            }
            message(&mut frame, 50_000);
            assert_eq!(frame.capacity(), 100_000);
        }
        for _ in 0..Frame::RELAXED_AFTER {
            message(&mut frame, 10);
        }
        assert_eq!(frame.capacity(), 1000);
    }

    #[test]
    fn a_frame_is_aligned_for_every_number() {
        let frame = Frame::new(9, 9);
        assert_eq!(frame.capacity(), 9);
        assert!(frame.as_slice().as_ptr().cast::<u64>().is_aligned());
    }
}
