//! What the classes of an interface share, since the kernel wants it so: the ring by which it is
//! given empty frames, the ring by which it gives back frames that were sent, and which of these
//! are free.
//!
//! Nobody waits here, and who is called away in the midst of it hinders nobody.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use super::sync::{AtomicU32, AtomicU64, Ordering};

/// The fill ring: many threads put frames in, the kernel takes them out.
///
/// A slot is claimed and written in one step. The address of a frame leaves the low bits free,
/// which the kernel does not look at; they say in which lap the slot was written, so that who is
/// late cannot take it for free: unless it is late by exactly as many laps as these bits can count,
/// 2,048 at least, and finds the same frame there again. There are no more frames than slots, hence
/// it is never full.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fill<'r> {
    /// Where the next frame is put, counted on and on.
    pub(super) producer: &'r AtomicU32,
    /// A power of two of them, all 0 at first.
    pub(super) slots: &'r [AtomicU64],
    /// Octets of a frame, a power of two.
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
                // Whose frame it is, it is there. If this fails, another has done it.
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

    /// What the low bits of a slot say before it is written in the lap of this position (0), and
    /// after (1).
    fn lap(self, position: u32, written: u64) -> u64 {
        let laps = position >> self.slots.len().trailing_zeros();
        (u64::from(laps) + written) & (self.frame - 1)
    }
}

/// The completion ring: the kernel puts in frames that were sent, many threads take them out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completion<'r> {
    /// Where the kernel puts the next one, counted on and on.
    pub(super) producer: &'r AtomicU32,
    /// Where the next one is taken out, counted on and on.
    pub(super) consumer: &'r AtomicU32,
    /// A power of two of them.
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
            // The kernel writes here again only once the position is taken: then the exchange
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

/// Which frames are free to be sent: a bit each. Each word of 64 has one owner, who alone takes
/// from it.
#[derive(Debug)]
pub(super) struct Free {
    words: Box<[AtomicU64]>,
}

impl Free {
    /// So many words of 64 frames, all of which are free.
    pub(super) fn new(words: usize) -> Self {
        Self {
            words: (0..words).map(|_| AtomicU64::new(u64::MAX)).collect(),
        }
    }

    /// Finds a run of free frames in an own word, among those whose bits are set: `run`, a power of
    /// two, at a multiple of that.
    #[inline]
    pub(super) fn find(&self, word: usize, run: u32, among: u64) -> Option<u32> {
        // What they hold is read by nobody any more.
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

    /// Takes so many free frames of an own word.
    #[inline]
    pub(super) fn take(&self, word: usize, place: u32, count: u32) {
        let taken = u64::MAX >> (64 - count) << place;
        self.words[word].fetch_and(!taken, Ordering::Relaxed);
    }

    /// Makes a frame free again, whosever it is.
    #[inline]
    pub(super) fn give(&self, frame: usize) {
        if let Some(word) = self.words.get(frame / 64) {
            word.fetch_or(1 << (frame % 64), Ordering::Release);
        }
    }

    /// How many words it has.
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }
}
