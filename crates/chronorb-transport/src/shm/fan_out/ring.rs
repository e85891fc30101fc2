//! The ring of a publisher: slots with sequence numbers, which many cursors read.
//!
//! The publisher writes the slots in turn, and never waits. The sequence number of a slot is odd
//! while its message is written, and even, of that message, afterwards. A cursor copies a message
//! out between two reads of the number. If they differ, or the number belongs to a later message,
//! the publisher has lapped the cursor, which goes on half a ring behind the publisher and knows
//! how many messages it lost.
//!
//! A cursor writes nothing, so the cost of a message does not depend on the number of cursors. A
//! thread that sleeps leaves a note in one word first. The publisher publishes the message before
//! it reads the note, and the thread writes the note before it reads the number of messages, each
//! with a full fence between. So at least one of them observes the other (Dekker).
//!
//! The publisher removes the note before it changes the bell, and the thread reads the bell before
//! it writes the note. So the note of a thread that sleeps at the present value of the bell is
//! there until the bell changes. The publisher then wakes one thread that sleeps at another value,
//! and each thread that was woken wakes two more.
//!
//! A cursor checks what it reads. Arbitrary values lead to wrong octets, a count of losses, or
//! [`BadPublisher`]. Memory that is mapped for reading alone is only read by relaxed loads, with
//! fences behind them.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use super::memory::Octets;
use super::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// The words of the publisher.
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct FanOutWords {
    /// The number of messages that were published.
    pub(super) tail: AtomicU64,
    /// The number of wake-ups, at which threads sleep.
    pub(super) bell: AtomicU32,
    /// Whether the publisher has ended.
    pub(super) ended: AtomicU32,
}

/// The state of a slot.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Slot {
    /// Twice the number of its message, counted from 1; one less while it is written.
    pub(super) sequence: AtomicU64,
    /// The octets of its message.
    pub(super) len: AtomicU32,
    pub(super) unused: AtomicU32,
}

/// A ring as publisher and cursors see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct FanOutRing<'m> {
    pub(super) words: &'m FanOutWords,
    /// A power of two, at least 2.
    pub(super) slots: &'m [Slot],
    /// As many for each slot, a power of two.
    pub(super) octets: Octets<'m>,
}

/// The place of the publisher.
#[derive(Debug, Default)]
pub(super) struct Writer {
    next: u64,
    /// The value of the bell.
    rings: u32,
}

/// The place of a reader.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    next: u64,
}

/// A message, or the loss of some.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Next {
    /// A message of so many octets.
    Message(usize),
    /// So many messages were lost.
    Lost(u64),
}

/// The publisher broke the protocol.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct BadPublisher;

impl<'m> FanOutRing<'m> {
    /// The octets of a slot.
    #[inline]
    pub(super) fn slot_len(self) -> usize {
        self.octets.len() / self.slots.len()
    }

    /// The slot of a message, and the position of its octets.
    #[inline]
    fn slot(self, number: u64) -> (&'m Slot, u32) {
        let index = number as usize & (self.slots.len() - 1);
        // The octets of all slots are fewer than 2^32.
        (&self.slots[index], (index * self.slot_len()) as u32)
    }

    /// Whether the publisher has ended.
    #[inline]
    pub(super) fn has_ended(self) -> bool {
        self.words.ended.load(Ordering::Relaxed) != 0
    }
}

impl Writer {
    /// Publishes a message, whose parts together are no longer than a slot. Returns whether threads
    /// that sleep must be woken.
    #[inline]
    pub(super) fn publish(
        &mut self,
        ring: FanOutRing<'_>,
        waiting: &AtomicU32,
        parts: &[&[u8]],
    ) -> bool {
        let (slot, mut position) = ring.slot(self.next);
        let written = self.next.wrapping_mul(2).wrapping_add(2);
        slot.sequence.store(written - 1, Ordering::Relaxed);
        // A cursor that sees any of the octets below sees the odd number.
        fence(Ordering::Release);
        let mut len = 0;
        for part in parts {
            ring.octets.write(position, part);
            position += part.len() as u32;
            len += part.len() as u32;
        }
        slot.len.store(len, Ordering::Relaxed);
        slot.sequence.store(written, Ordering::Release);
        self.next += 1;
        ring.words.tail.store(self.next, Ordering::Release);
        self.ring_bell(ring, waiting)
    }

    /// Ends the ring. Returns whether threads that sleep must be woken.
    pub(super) fn end(&mut self, ring: FanOutRing<'_>, waiting: &AtomicU32) -> bool {
        ring.words.ended.store(1, Ordering::Release);
        self.ring_bell(ring, waiting)
    }

    /// Removes the note of threads that sleep, and changes the bell if there was one.
    #[inline]
    fn ring_bell(&mut self, ring: FanOutRing<'_>, waiting: &AtomicU32) -> bool {
        fence(Ordering::SeqCst);
        // A swap at each message would take the line from a reader that writes a note.
        let sleeps = waiting.load(Ordering::Relaxed) != 0 && waiting.swap(0, Ordering::AcqRel) != 0;
        if sleeps {
            self.rings = self.rings.wrapping_add(1);
            ring.words.bell.store(self.rings, Ordering::Release);
        }
        sleeps
    }
}

impl Cursor {
    /// A cursor before the next message.
    pub(super) fn at_end(ring: FanOutRing<'_>) -> Self {
        let next = ring.words.tail.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        Self { next }
    }

    /// Copies the next message to the beginning of `room`, which has the length of a slot.
    #[inline]
    pub(super) fn take(
        &mut self,
        ring: FanOutRing<'_>,
        room: &mut [u8],
    ) -> Result<Option<Next>, BadPublisher> {
        let tail = ring.words.tail.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let behind = tail.checked_sub(self.next).ok_or(BadPublisher)?;
        if behind == 0 {
            return Ok(None);
        }
        if behind > ring.slots.len() as u64 {
            return Ok(Some(self.skip(ring, tail)));
        }
        let (slot, position) = ring.slot(self.next);
        let expected = self.next.wrapping_mul(2).wrapping_add(2);
        let before = slot.sequence.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        if before < expected {
            return Err(BadPublisher);
        }
        let len = slot.len.load(Ordering::Relaxed) as usize;
        let n = len.min(ring.slot_len()).min(room.len());
        if before == expected {
            ring.octets.read(position, &mut room[..n]);
            fence(Ordering::Acquire);
        }
        if slot.sequence.load(Ordering::Relaxed) != expected {
            return Ok(Some(self.skip(ring, tail)));
        }
        if n < len {
            return Err(BadPublisher);
        }
        self.next += 1;
        Ok(Some(Next::Message(n)))
    }

    /// Goes on half a ring behind the publisher. Returns the number of messages between.
    #[cold]
    fn skip(&mut self, ring: FanOutRing<'_>, tail: u64) -> Next {
        let half = ring.slots.len() as u64 / 2;
        // The message of the present place is overwritten, so it is lost in any case.
        let next = tail.saturating_sub(half).max(self.next.saturating_add(1));
        let lost = next - self.next;
        self.next = next;
        Next::Lost(lost)
    }

    /// Leaves a note for the publisher. Returns the value of the bell at which to sleep; `None` if
    /// there is no reason to wait.
    pub(super) fn arm(&self, ring: FanOutRing<'_>, waiting: &AtomicU32) -> Option<u32> {
        let seen = ring.words.bell.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        waiting.store(1, Ordering::Release);
        fence(Ordering::SeqCst);
        let tail = ring.words.tail.load(Ordering::Relaxed);
        (tail == self.next && !ring.has_ended()).then_some(seen)
    }
}
