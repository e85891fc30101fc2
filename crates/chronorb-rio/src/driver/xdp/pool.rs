//! The frames of an interface, and their owners.

use std::sync::Arc;

use chronorb_rt::PiMutex;

use super::memory::{Frames, Ring};
use super::queue::{Queue, Queues};
use super::shared::{Completion, Free};
use super::sync::AtomicU64;
use crate::driver::DriverError;

/// The layout of the frames.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Layout {
    /// The length of a frame in octets, a power of two.
    pub(super) frame: usize,
    /// The number of adjacent frames that hold the longest packet, a power of two.
    pub(super) run: usize,
    /// The number of receive queues.
    pub(super) queues: u32,
    /// The number of incoming frames of each queue.
    pub(super) incoming: usize,
    /// The number of 64-frame words for outgoing packets. They lie behind the incoming frames.
    pub(super) words: usize,
}

impl Layout {
    /// Computes the layout for this many packets of at most `longest` octets, incoming at each
    /// queue and outgoing. Returns `None` if they are longer than the kernel supports.
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

    /// Returns the total length in octets.
    pub(super) const fn octets(&self) -> usize {
        (self.first_outgoing() + 64 * self.words) * self.frame
    }

    /// Returns the address of an outgoing frame.
    pub(super) const fn outgoing(&self, word: usize, place: u32) -> u64 {
        ((self.first_outgoing() + 64 * word + place as usize) * self.frame) as u64
    }

    /// Returns the number of the first outgoing frame.
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
    /// The set of free outgoing frames.
    pub(super) free: Free,
    shares: PiMutex<Shares>,
    /// Whether the interface accesses the frames directly (zero copy).
    pub(super) is_zero_copy: bool,
}

/// The frames that belong to no class.
#[derive(Debug)]
struct Shares {
    /// Incoming frames of each queue that no class's ring can hold.
    incoming: usize,
    /// Words of outgoing frames.
    words: Vec<u32>,
}

/// The frames of a class.
#[derive(Debug)]
pub(super) struct Share {
    /// The number of incoming frames that each of its rings can hold.
    pub(super) incoming: usize,
    /// Words of outgoing frames.
    pub(super) words: Box<[u32]>,
    /// A mask of the frames in each word that may be used. It has fewer than 64 bits if one word is
    /// more than the class needs.
    pub(super) among: u64,
}

impl Pool {
    /// Allocates the frames and binds them to the queues of an interface. Zero copy is tried only
    /// if `may_be_native`.
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

    /// Returns the receive queues in the order of their numbers.
    pub(super) fn queues(&self) -> &[Arc<Queue>] {
        &self.queues
    }

    /// Takes a share for this many packets in each direction.
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

    /// Gives a share back. Frames that are still being sent become free later.
    pub(super) fn give(&self, share: &Share) {
        let mut shares = self.shares.lock();
        shares.incoming += share.incoming;
        shares.words.extend(&share.words);
    }

    /// Collects frames of any class that have been sent, at most `most` of them.
    #[inline]
    pub(super) fn reap(&self, most: usize) {
        for _ in 0..most {
            let Some(address) = self.completion().take() else {
                return;
            };
            self.sent(address);
        }
    }

    /// Frees the frame with this address, which has been sent or will not be.
    pub(super) fn sent(&self, address: u64) {
        let frame = address as usize / self.layout.frame;
        if let Some(frame) = frame.checked_sub(self.layout.first_outgoing()) {
            self.free.give(frame);
        }
    }

    /// Returns the number of outgoing frames, which is the maximum that [`reap`](Self::reap) finds.
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
/// The headroom that the kernel reserves at the start of an incoming frame (`XDP_PACKET_HEADROOM`).
const HEADROOM: usize = 256;
/// The longest packet that fits into half a page.
const SMALL: usize = PAGE / 2 - HEADROOM;
/// The maximum number of frames of a packet. The kernel supports at most 18 pieces of a page each.
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
