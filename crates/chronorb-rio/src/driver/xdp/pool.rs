//! The frames of an interface, and whose they are.

use std::io;
use std::os::fd::OwnedFd;

use chronorb_rt::PiMutex;
use rustix::net::sockopt::{
    set_xdp_rx_ring_size, set_xdp_umem_completion_ring_size, set_xdp_umem_fill_ring_size,
    set_xdp_umem_reg, xdp_mmap_offsets,
};
use rustix::net::xdp::{
    SocketAddrXdpFlags as Flags, XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING,
    XdpUmemReg, XdpUmemRegFlags,
};

use super::memory::{Frames, Ring};
use super::shared::{Completion, Fill, Free};
use super::socket::{bind, socket};
use super::sync::AtomicU64;
use crate::driver::DriverError;

/// How frames are laid out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Layout {
    /// Octets of a frame, a power of two.
    pub(super) frame: usize,
    /// How many side by side have room for the longest packet, a power of two.
    pub(super) run: usize,
    /// Frames for what comes in.
    pub(super) incoming: usize,
    /// Words of 64 frames for what goes out, which lie behind.
    pub(super) words: usize,
}

impl Layout {
    /// For packets of at most `longest` octets, and so many of them each way. `None` if they are longer than
    /// the kernel can take in pieces.
    pub(super) fn new(longest: usize, packets: usize) -> Option<Self> {
        let (frame, run) = match longest {
            0..=SMALL => (SMALL + HEADROOM, 1),
            _ => (PAGE, longest.div_ceil(PAGE - HEADROOM).next_power_of_two()),
        };
        let words = (packets * run).div_ceil(64);
        (run <= MAX_RUN).then_some(Self {
            frame,
            run,
            incoming: 64 * words,
            words,
        })
    }

    /// Octets of all frames.
    pub(super) const fn octets(&self) -> usize {
        (self.incoming + 64 * self.words) * self.frame
    }

    /// Where an outgoing frame begins.
    pub(super) const fn outgoing(&self, word: usize, place: u32) -> u64 {
        ((self.incoming + 64 * word + place as usize) * self.frame) as u64
    }
}

/// The frames, and the socket that they were registered with, which is no class's.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) layout: Layout,
    pub(super) frames: Frames,
    fill: Ring<AtomicU64>,
    completion: Ring<AtomicU64>,
    /// Which outgoing frames are free.
    pub(super) free: Free,
    shares: PiMutex<Shares>,
    anchor: OwnedFd,
    /// Whether the interface itself reads and writes the frames.
    pub(super) is_zero_copy: bool,
}

/// What no class has.
#[derive(Debug)]
struct Shares {
    /// Incoming frames that no class's ring can hold.
    incoming: usize,
    /// Words of outgoing frames.
    words: Vec<u32>,
}

/// What a class has.
#[derive(Debug)]
pub(super) struct Share {
    /// So many incoming frames its ring can hold.
    pub(super) incoming: usize,
    /// Words of outgoing frames.
    pub(super) words: Box<[u32]>,
    /// Which frames of each word may be used: not all where one word is more than the class needs.
    pub(super) among: u64,
}

impl Pool {
    /// Makes the frames, and binds them to the first queue of an interface. Packets may be in the driver's own
    /// hands only where `may_be_native`.
    pub(super) fn new(
        layout: Layout,
        interface: u32,
        may_be_native: bool,
    ) -> Result<Self, DriverError> {
        let failed = |what| move |source: io::Error| DriverError::Failed { what, source };
        let frames = Frames::new(layout.octets()).map_err(failed("memory for frames"))?;
        let anchor = socket()?;
        let registration = XdpUmemReg {
            addr: frames.address(),
            len: frames.len() as u64,
            chunk_size: layout.frame as u32,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        set_xdp_umem_reg(&anchor, registration).map_err(|errno| match errno {
            rustix::io::Errno::NOBUFS => DriverError::Failed {
                what: "frames for AF_XDP",
                source: io::Error::other(
                    "they take more memory than the process may lock: raise LimitMEMLOCK, or grant cap_ipc_lock",
                ),
            },
            errno => failed("frames for AF_XDP")(errno.into()),
        })?;
        // The fill ring must never be full, and the completion ring never either.
        let fill = layout.incoming.next_power_of_two() as u32;
        let completion = (64 * layout.words).next_power_of_two() as u32;
        let rings = || {
            set_xdp_umem_fill_ring_size(&anchor, fill)?;
            set_xdp_umem_completion_ring_size(&anchor, completion)?;
            // A socket without any ring of its own cannot be bound. Nothing is sent to this one.
            set_xdp_rx_ring_size(&anchor, 2)?;
            let places = xdp_mmap_offsets(&anchor)?;
            let fill = Ring::map(&anchor, XDP_UMEM_PGOFF_FILL_RING, places.fr, fill)?;
            let page = XDP_UMEM_PGOFF_COMPLETION_RING;
            let completion = Ring::map(&anchor, page, places.cr, completion)?;
            Ok((fill, completion))
        };
        let (fill, completion) = rings().map_err(failed("rings of AF_XDP"))?;
        let pieces = match layout.run {
            1 => Flags::empty(),
            _ => Flags::XDP_USE_SG,
        };
        let flags = Flags::XDP_USE_NEED_WAKEUP | pieces;
        let zero_copy = flags | Flags::XDP_ZEROCOPY;
        let is_zero_copy = may_be_native && bind(&anchor, interface, zero_copy).is_ok();
        if !is_zero_copy {
            bind(&anchor, interface, flags | Flags::XDP_COPY).map_err(|source| {
                match source.raw_os_error() {
                    Some(libc::EOPNOTSUPP | libc::EINVAL) => DriverError::Unsupported {
                        what: "AF_XDP on this interface, for packets of this length",
                        source,
                    },
                    _ => failed("AF_XDP on the first queue of the interface")(source),
                }
            })?;
        }
        let pool = Self {
            layout,
            frames,
            fill,
            completion,
            free: Free::new(layout.words),
            shares: PiMutex::new(Shares {
                incoming: layout.incoming,
                words: (0..layout.words as u32).rev().collect(),
            }),
            anchor,
            is_zero_copy,
        };
        for frame in 0..layout.incoming {
            pool.fill().put((frame * layout.frame) as u64);
        }
        Ok(pool)
    }

    /// The socket that others share the frames with.
    pub(super) fn anchor(&self) -> &OwnedFd {
        &self.anchor
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

    /// Gives the kernel an empty frame.
    #[inline]
    pub(super) fn refill(&self, address: u64) {
        self.fill().put(address);
    }

    /// Whether the kernel wants to be told of empty frames.
    #[inline]
    pub(super) fn wants_a_call(&self) -> bool {
        self.is_zero_copy && self.fill.wants_a_call()
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
        if let Some(frame) = frame.checked_sub(self.layout.incoming) {
            self.free.give(frame);
        }
    }

    /// As many as [`reap`](Self::reap) can find.
    pub(super) fn outgoing(&self) -> usize {
        64 * self.free.len()
    }

    fn fill(&self) -> Fill<'_> {
        Fill {
            producer: self.fill.producer(),
            slots: self.fill.entries(),
            frame: self.layout.frame as u64,
        }
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
            let layout = Layout::new(longest, 1000).expect("it is not too long");
            assert!(layout.run * (layout.frame - HEADROOM) >= longest);
            assert!(layout.frame.is_power_of_two() && layout.run.is_power_of_two());
            assert!(layout.incoming >= 1000 * layout.run);
            assert_eq!(layout.incoming, 64 * layout.words);
        }
        assert_eq!(Layout::new(70_000, 1000), None);
    }
}
