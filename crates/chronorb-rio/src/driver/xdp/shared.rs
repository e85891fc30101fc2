//! The state that the kernel makes the classes of an interface share: the fill ring with empty
//! frames, the completion ring with sent frames, and the set of free frames.
//!
//! All operations are lock-free. A preempted thread delays no other.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use super::sync::{AtomicU32, AtomicU64, Ordering};

/// The fill ring: many threads put frames in, the kernel takes them out.
///
/// A slot is claimed and written in one step. The low bits of a frame's address are zero and
/// ignored by the kernel. They hold the lap in which the slot was written, so that a delayed thread
/// cannot mistake it for a free slot. A mistake needs a delay of exactly as many laps as these bits
/// can count (at least 2,048), with the same frame in the slot. There are no more frames than
/// slots, so the ring is never full.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fill<'r> {
    /// The position at which the next frame is put in; it wraps.
    pub(super) producer: &'r AtomicU32,
    /// The slots; their number is a power of two, and all are initially 0.
    pub(super) slots: &'r [AtomicU64],
    /// The length of a frame in octets, a power of two.
    pub(super) frame: u64,
}

impl Fill<'_> {
    /// Gives an empty frame to the kernel.
    #[inline]
    pub(super) fn put(self, address: u64) {
        let address = address & !(self.frame - 1);
        loop {
            let position = self.producer.load(Ordering::Acquire);
            let slot = &self.slots[position as usize & (self.slots.len() - 1)];
            let (before, lap) = (self.lap(position, 0), self.lap(position, 1));
            let there = slot.load(Ordering::Acquire);
            let is_mine = there & (self.frame - 1) == before
                && slot
                    .compare_exchange(there, address | lap, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok();
            if is_mine || there & (self.frame - 1) == lap {
                // The slot holds a frame, of this thread or another. If the exchange fails, another
                // thread has already advanced the position.
                let _ = self.producer.compare_exchange(
                    position,
                    position.wrapping_add(1),
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                );
            }
            if is_mine {
                return;
            }
        }
    }

    /// Returns the low bits of a slot before (`written` = 0) and after (1) it is written in the lap
    /// of this position.
    fn lap(self, position: u32, written: u64) -> u64 {
        let laps = position >> self.slots.len().trailing_zeros();
        (u64::from(laps) + written) & (self.frame - 1)
    }
}

/// The completion ring: the kernel puts sent frames in, many threads take them out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completion<'r> {
    /// The position at which the kernel puts the next frame; it wraps.
    pub(super) producer: &'r AtomicU32,
    /// The position at which the next frame is taken out; it wraps.
    pub(super) consumer: &'r AtomicU32,
    /// The slots; their number is a power of two.
    pub(super) slots: &'r [AtomicU64],
}

impl Completion<'_> {
    /// Takes out the address of a frame.
    #[inline]
    pub(super) fn take(self) -> Option<u64> {
        loop {
            let position = self.consumer.load(Ordering::Acquire);
            if self.producer.load(Ordering::Acquire) == position {
                return None;
            }
            // The kernel overwrites this slot only after the position is taken; then the exchange
            // fails.
            let address =
                self.slots[position as usize & (self.slots.len() - 1)].load(Ordering::Relaxed);
            let taken = self.consumer.compare_exchange(
                position,
                position.wrapping_add(1),
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            if taken.is_ok() {
                return Some(address);
            }
        }
    }
}

/// The set of free outgoing frames, one bit each. Each word of 64 has one owner, and only the owner
/// takes frames from it.
#[derive(Debug)]
pub(super) struct Free {
    words: Box<[AtomicU64]>,
}

impl Free {
    /// Creates this many words of 64 free frames.
    pub(super) fn new(words: usize) -> Self {
        Self {
            words: (0..words).map(|_| AtomicU64::new(u64::MAX)).collect(),
        }
    }

    /// Finds `run` adjacent free frames in an own word, among those in the mask. `run` is a power
    /// of two, and the position a multiple of it.
    #[inline]
    pub(super) fn find(&self, word: usize, run: u32, among: u64) -> Option<u32> {
        // Acquire: the former user of the frames no longer reads them.
        let mut starts = self.words[word].load(Ordering::Acquire) & among;
        let mut width = 1;
        while width < run {
            starts &= starts >> width;
            width *= 2;
        }
        let aligned = u64::MAX / (u64::MAX >> (64 - run));
        let place = (starts & aligned).trailing_zeros();
        (place < 64).then_some(place)
    }

    /// Takes this many free frames of an own word.
    #[inline]
    pub(super) fn take(&self, word: usize, place: u32, count: u32) {
        let taken = u64::MAX >> (64 - count) << place;
        self.words[word].fetch_and(!taken, Ordering::Relaxed);
    }

    /// Frees a frame of any owner.
    #[inline]
    pub(super) fn give(&self, frame: usize) {
        if let Some(word) = self.words.get(frame / 64) {
            word.fetch_or(1 << (frame % 64), Ordering::Release);
        }
    }

    /// Returns the number of words.
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }
}
