//! The frames of an interface, and whose they are.

use std::sync::Arc;

use chronorb_rt::PiMutex;

use super::memory::{Frames, Ring};
use super::queue::{Queue, Queues};
use super::shared::{Completion, Free};
use super::sync::AtomicU64;
use crate::driver::DriverError;

/// How frames are laid out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Layout {
    /// Octets of a frame, a power of two.
    pub(super) frame: usize,
    /// How many side by side have room for the longest packet, a power of two.
    pub(super) run: usize,
    /// The interface's receive queues.
    pub(super) queues: u32,
    /// Frames for what comes in by each of them.
    pub(super) incoming: usize,
    /// Words of 64 frames for what goes out, which lie behind.
    pub(super) words: usize,
}

impl Layout {
    /// For packets of at most `longest` octets, and so many of them that come in by each of the
    /// queues, and that go out. `None` if they are longer than the kernel can take in pieces.
    pub(super) fn new(longest: usize, packets: usize, queues: u32) -> Option<Self> {
        let (frame, run) = match longest {
            0..=SMALL => (SMALL + HEADROOM, 1),
            _ => (PAGE, longest.div_ceil(PAGE - HEADROOM).next_power_of_two()),
        };
        let words = (packets * run).div_ceil(64);
        (run <= MAX_RUN).then_some(Self {
            frame,
            run,
            queues,
            incoming: 64 * words,
            words,
        })
    }

    /// Octets of all frames.
    pub(super) const fn octets(&self) -> usize {
        (self.first_outgoing() + 64 * self.words) * self.frame
    }

    /// Where an outgoing frame begins.
    pub(super) const fn outgoing(&self, word: usize, place: u32) -> u64 {
        ((self.first_outgoing() + 64 * word + place as usize) * self.frame) as u64
    }

    /// The number of the first frame for what goes out.
    const fn first_outgoing(&self) -> usize {
        self.queues as usize * self.incoming
    }
}

/// The frames, and the queues that they are bound to.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) layout: Layout,
    pub(super) frames: Frames,
    queues: Box<[Arc<Queue>]>,
    completion: Ring<AtomicU64>,
    /// Which outgoing frames are free.
    pub(super) free: Free,
    shares: PiMutex<Shares>,
    /// Whether the interface itself reads and writes the frames.
    pub(super) is_zero_copy: bool,
}

/// What no class has.
#[derive(Debug)]
struct Shares {
    /// Incoming frames, of each queue, that no class's ring can hold.
    incoming: usize,
    /// Words of outgoing frames.
    words: Vec<u32>,
}

/// What a class has.
#[derive(Debug)]
pub(super) struct Share {
    /// So many incoming frames each of its rings can hold.
    pub(super) incoming: usize,
    /// Words of outgoing frames.
    pub(super) words: Box<[u32]>,
    /// Which frames of each word may be used: not all where one word is more than the class needs.
    pub(super) among: u64,
}

impl Pool {
    /// Makes the frames, and binds them to the queues of an interface. Packets may be in the
    /// driver's own hands only where `may_be_native`.
    pub(super) fn new(
        layout: Layout,
        interface: u32,
        may_be_native: bool,
    ) -> Result<Self, DriverError> {
        let frames = Frames::new(layout.octets()).map_err(|source| DriverError::Failed {
            what: "memory for frames",
            source,
        })?;
        let Queues {
            all: queues,
            completion,
            is_zero_copy,
        } = Queues::bind(&frames, &layout, interface, may_be_native)?;
        let pool = Self {
            layout,
            frames,
            queues,
            completion,
            free: Free::new(layout.words),
            shares: PiMutex::new(Shares {
                incoming: layout.incoming,
                words: (0..layout.words as u32).rev().collect(),
            }),
            is_zero_copy,
        };
        for (number, queue) in pool.queues.iter().enumerate() {
            for frame in number * layout.incoming..(number + 1) * layout.incoming {
                queue.refill((frame * layout.frame) as u64);
            }
        }
        Ok(pool)
    }

    /// The interface's receive queues, by their numbers.
    pub(super) fn queues(&self) -> &[Arc<Queue>] {
        &self.queues
    }

    /// Takes a share for so many packets each way.
    pub(super) fn take(&self, packets: usize) -> Result<Share, DriverError> {
        let incoming = packets * self.layout.run;
        let words = incoming.div_ceil(64);
        let mut shares = self.shares.lock();
        if incoming > shares.incoming || words > shares.words.len() {
            let left = shares.incoming.min(64 * shares.words.len()) / self.layout.run;
            return Err(DriverError::NoRoom {
                asked: packets,
                left,
            });
        }
        shares.incoming -= incoming;
        let first = shares.words.len() - words;
        let words = shares.words.drain(first..).collect();
        let among = u64::MAX >> (64 - incoming.min(64));
        Ok(Share {
            incoming,
            words,
            among,
        })
    }

    /// Gives a share back. Frames of it that are still being sent are free later.
    pub(super) fn give(&self, share: &Share) {
        let mut shares = self.shares.lock();
        shares.incoming += share.incoming;
        shares.words.extend(&share.words);
    }

    /// Finds out which frames have been sent, of any class; at most so many.
    #[inline]
    pub(super) fn reap(&self, most: usize) {
        for _ in 0..most {
            let Some(address) = self.completion().take() else {
                return;
            };
            self.sent(address);
        }
    }

    /// The frame of this address has been sent, or will not be.
    pub(super) fn sent(&self, address: u64) {
        let frame = address as usize / self.layout.frame;
        if let Some(frame) = frame.checked_sub(self.layout.first_outgoing()) {
            self.free.give(frame);
        }
    }

    /// As many as [`reap`](Self::reap) can find.
    pub(super) fn outgoing(&self) -> usize {
        64 * self.free.len()
    }

    fn completion(&self) -> Completion<'_> {
        Completion {
            producer: self.completion.producer(),
            consumer: self.completion.consumer(),
            slots: self.completion.entries(),
        }
    }
}

const PAGE: usize = 4096;
/// What the kernel leaves free at the start of an incoming frame (`XDP_PACKET_HEADROOM`).
const HEADROOM: usize = 256;
/// Packets up to this have room in half a page.
const SMALL: usize = PAGE / 2 - HEADROOM;
/// The kernel has at most 18 pieces for a packet, of a page each.
const MAX_RUN: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_have_room_in_their_frames() {
        for longest in [64, 1518, SMALL, SMALL + 1, 3822, 4096, 9018, 32_000] {
            let layout = Layout::new(longest, 1000, 1).expect("it is not too long");
            assert!(layout.run * (layout.frame - HEADROOM) >= longest);
            assert!(layout.frame.is_power_of_two() && layout.run.is_power_of_two());
            assert!(layout.incoming >= 1000 * layout.run);
            assert_eq!(layout.incoming, 64 * layout.words);
        }
        assert_eq!(Layout::new(70_000, 1000, 1), None);
    }

    #[test]
    fn each_queue_has_frames_for_all_and_the_way_out_has_them_once() {
        let layout = |queues| Layout::new(1518, 4096, queues).expect("it is not too long");
        let mib = |queues| layout(queues).octets() >> 20;
        assert_eq!([1, 2, 8].map(mib), [16, 24, 72]);
        let several = layout(8);
        assert_eq!(several.outgoing(0, 0), 64 << 20);
        let last = several.outgoing(several.words - 1, 63) as usize;
        assert_eq!(last + several.frame, several.octets());
    }
}
