#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::io::Errno;

use super::State;
use super::memory::{Descriptor, Piece, Ring};
use super::socket::ClassSockets;
use super::sync::Ordering;
use crate::class::ClassId;
use crate::driver::socket::take_error;
use crate::path::{Frame, PathError, Received, Receiver};

/// What comes in for a class, by all receive queues: of those with frames each has its turn, a frame at a time.
#[derive(Debug)]
pub(super) struct XdpReceiver {
    class: ClassId,
    sockets: Arc<ClassSockets>,
    state: Arc<State>,
    /// Room for a frame that comes in pieces.
    whole: Box<[u8]>,
    /// The queue whose turn it is.
    turn: usize,
    /// Whether there was no frame the last time.
    was_empty: bool,
    is_gone: bool,
    counts: Received,
    /// How many packets had gone astray before.
    strayed: u64,
}

impl XdpReceiver {
    pub(super) fn new(class: ClassId, sockets: Arc<ClassSockets>, state: Arc<State>) -> Self {
        let layout = &sockets.pool.layout;
        let room = match layout.run {
            1 => 0,
            run => run * layout.frame,
        };
        Self {
            class,
            whole: std::iter::repeat_n(0, room).collect(),
            turn: 0,
            was_empty: false,
            is_gone: false,
            counts: Received::default(),
            strayed: state.strayed(class),
            state,
            sockets,
        }
    }

    /// Where there was nothing twice, asks whether anything can come at all.
    fn check(&mut self) -> Result<(), PathError> {
        if self.was_empty && !self.is_gone {
            // The only error that comes up is that of an interface that is no more, and it comes up once.
            self.is_gone = take_error(self.sockets.first()).is_err();
        }
        self.was_empty = true;
        match self.is_gone {
            true => Err(PathError(Errno::NETDOWN.into())),
            false => Ok(()),
        }
    }

    /// The pieces of the next frame, of the first queue from that on whose turn it is.
    #[inline]
    fn next(&mut self) -> Option<Place> {
        for _ in 0..self.sockets.incoming.len() {
            let queue = self.turn;
            self.turn = match queue + 1 {
                next if next < self.sockets.incoming.len() => next,
                _ => 0,
            };
            let (first, count) = next_frame(&self.sockets.incoming[queue]);
            if count > 0 {
                return Some(Place {
                    queue,
                    first,
                    count,
                });
            }
            self.sockets.tell_of_empty_frames(queue);
        }
        None
    }
}

/// The pieces of the next frame of a ring are so many from this position on; none if it is not there.
#[inline]
fn next_frame(ring: &Ring<Descriptor>) -> (u32, u32) {
    let first = ring.consumer().load(Ordering::Relaxed);
    let there = ring.producer().load(Ordering::Acquire).wrapping_sub(first);
    for at in 0..there {
        if !ring.entry(first.wrapping_add(at)).load().goes_on {
            return (first, at + 1);
        }
    }
    (first, 0)
}

/// The pieces of a frame: the receive queue by which they came, and their places in its ring.
#[derive(Clone, Copy, Debug)]
struct Place {
    queue: usize,
    first: u32,
    count: u32,
}

impl Receiver for XdpReceiver {
    fn receive(&mut self, take: &mut dyn FnMut(Frame<'_>)) -> Result<bool, PathError> {
        loop {
            let Some(place) = self.next() else {
                return self.check().map(|()| false);
            };
            self.was_empty = false;
            let pieces = Pieces {
                sockets: &self.sockets,
                place,
            };
            let Some(octets) = pieces.octets(&mut self.whole) else {
                self.counts.failed += 1;
                continue;
            };
            self.counts.frames += 1;
            self.counts.octets += octets.len() as u64;
            take(Frame {
                octets,
                is_checked: false,
            });
            return Ok(true);
        }
    }

    fn waiting(&self) -> usize {
        let waiting = |ring: &Ring<Descriptor>| {
            let first = ring.consumer().load(Ordering::Relaxed);
            ring.producer().load(Ordering::Acquire).wrapping_sub(first) as usize
        };
        self.sockets.incoming.iter().map(waiting).sum()
    }

    fn counts(&self) -> Received {
        let strayed = self.state.strayed(self.class).saturating_sub(self.strayed);
        let mut counts = Received {
            failed: self.counts.failed + strayed,
            ..self.counts
        };
        for kernel in self.sockets.statistics() {
            counts.dropped += kernel.rx_ring_full.unwrap_or_default();
            counts.failed += kernel.rx_dropped;
        }
        counts
    }
}

/// The pieces of a frame, which go back when they are dropped.
struct Pieces<'s> {
    sockets: &'s ClassSockets,
    place: Place,
}

impl Pieces<'_> {
    fn ring(&self) -> &Ring<Descriptor> {
        &self.sockets.incoming[self.place.queue]
    }

    fn iter(&self) -> impl Iterator<Item = Piece> {
        let ring = self.ring();
        (0..self.place.count).map(|at| ring.entry(self.place.first.wrapping_add(at)).load())
    }

    /// The frame in one piece; `None` if `whole` has no room for it.
    #[allow(unsafe_code, reason = "frames are shared with the kernel")]
    fn octets<'o>(&'o self, whole: &'o mut [u8]) -> Option<&'o [u8]> {
        // SAFETY: the kernel has put it into the ring, and it goes back only when `self` is dropped, which is borrowed as long as
        // the octets are.
        let octets = |piece: Piece| unsafe {
            self.sockets
                .pool
                .frames
                .read(piece.address, piece.len as usize)
        };
        if self.place.count == 1 {
            return self.iter().next().map(octets);
        }
        let mut len = 0;
        for piece in self.iter().map(octets) {
            let room = whole.get_mut(len..len + piece.len())?;
            room.copy_from_slice(piece);
            len += piece.len();
        }
        Some(&whole[..len])
    }
}

impl Drop for Pieces<'_> {
    fn drop(&mut self) {
        for piece in self.iter() {
            self.sockets.pool.refill(self.place.queue, piece.address);
        }
        let next = self.place.first.wrapping_add(self.place.count);
        self.ring().consumer().store(next, Ordering::Release);
    }
}

impl AsFd for XdpReceiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sockets.as_fd()
    }
}

impl Drop for XdpReceiver {
    fn drop(&mut self) {
        self.state.close(self.class);
    }
}
