//! The memory of a connection, as one of its sides uses it.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::os::fd::OwnedFd;

use super::memory::{Memory, RingDirection};
use super::ring::{Consumer, Producer, Ring, Wait, leave};
use super::sync::AtomicU32;
use super::word;

/// One side of a connection that both sides have the memory of.
#[derive(Debug)]
pub(super) struct Channel {
    memory: Memory,
    out: RingDirection,
    back: RingDirection,
    pub(super) producer: Producer,
    pub(super) consumer: Consumer,
}

impl Channel {
    /// Makes the channel of the side that created the memory.
    pub(super) fn of_maker(memory: Memory) -> Self {
        Self::new(memory, RingDirection::There, RingDirection::Back)
    }

    /// Makes the channel of the side that received the memory.
    pub(super) fn of_receiver(memory: Memory) -> Self {
        Self::new(memory, RingDirection::Back, RingDirection::There)
    }

    fn new(memory: Memory, out: RingDirection, back: RingDirection) -> Self {
        Self {
            memory,
            out,
            back,
            producer: Producer::new(),
            consumer: Consumer::new(),
        }
    }

    /// Whether the memory, whose file this is, was sealed for good by the other side; it has all
    /// its pages then.
    pub(super) fn is_sealed(&self, file: &OwnedFd) -> bool {
        self.memory.is_sealed(file)
    }

    /// Returns the ring that this side writes to.
    #[inline]
    pub(super) fn out(&self) -> Ring<'_> {
        self.memory.ring(self.out)
    }

    /// Returns the ring that this side reads from.
    #[inline]
    pub(super) fn back(&self) -> Ring<'_> {
        self.memory.ring(self.back)
    }

    /// Ends this side: threads that sleep at one of the words wake up, on both sides.
    pub(super) fn end(&self) {
        let (out, back) = (self.out().words, self.back().words);
        let sleeps: [(&AtomicU32, Wait); 4] = [
            (&back.tail.0, leave(&back.tail.0)),
            (&out.head.0, leave(&out.head.0)),
            (&out.tail.0, out.end()),
            (&back.head.0, back.abandon()),
        ];
        for (at, wait) in sleeps {
            if wait == Wait::Word {
                word::wake(at);
            }
        }
    }
}
