//! The receiving side of an AF_XDP socket.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::io::Errno;

use super::State;
use super::memory::{Frames, Piece};
use super::socket::{ClassSockets, ReceiveRing};
use super::sync::Ordering;
use crate::class::ClassId;
use crate::driver::socket::take_error;
use crate::path::{Frame, PathError, ReceiveCounts, Receiver};

/// The incoming frames of a class, over all receive queues. Queues with frames take turns, one
/// frame each.
#[derive(Debug)]
pub(super) struct XdpReceiver {
    class: ClassId,
    /// The incoming rings in the order of the queues.
    incoming: Arc<[ReceiveRing]>,
    sockets: Arc<ClassSockets>,
    state: Arc<State>,
    /// The buffer to assemble a frame that arrives in pieces.
    whole: Box<[u8]>,
    /// The queue whose turn is next.
    turn: usize,
    /// Whether the last call found no frame.
    was_empty: bool,
    is_gone: bool,
    counts: ReceiveCounts,
    /// The number of stray packets before the path was opened.
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
            whole: [0].repeat(room).into(),
            turn: 0,
            was_empty: false,
            is_gone: false,
            counts: ReceiveCounts::default(),
            strayed: state.strayed(class),
            state,
            incoming: sockets.incoming.clone(),
            sockets,
        }
    }

    /// After two calls without a frame, checks whether the interface still exists.
    fn check(&mut self) -> Result<(), PathError> {
        if self.was_empty && !self.is_gone {
            // The only error of such a socket is that its interface is gone. It is reported once.
            self.is_gone = take_error(self.sockets.first()).is_err();
        }
        self.was_empty = true;
        if self.is_gone {
            Err(PathError(Errno::NETDOWN.into()))
        } else {
            Ok(())
        }
    }

    /// Returns the next queue in turn that has a frame, and the number of pieces of that frame.
    #[inline]
    fn next(&mut self) -> Option<(usize, u32)> {
        for _ in 0..self.incoming.len() {
            let queue = self.turn;
            self.turn = match queue + 1 {
                next if next < self.incoming.len() => next,
                _ => 0,
            };
            let count = self.incoming[queue].count();
            if count > 0 {
                return Some((queue, count));
            }
            self.sockets.tell_of_empty_frames(queue);
        }
        None
    }
}

impl Receiver for XdpReceiver {
    fn receive(&mut self, take: &mut dyn FnMut(Frame<'_>)) -> Result<bool, PathError> {
        loop {
            let Some((queue, count)) = self.next() else {
                return self.check().map(|()| false);
            };
            self.was_empty = false;
            let pieces = Pieces {
                frames: &self.sockets.pool.frames,
                from: &self.incoming[queue],
                count,
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
        let waiting = |from: &ReceiveRing| from.waiting() as usize;
        self.incoming.iter().map(waiting).sum()
    }

    fn counts(&self) -> ReceiveCounts {
        let strayed = self.state.strayed(self.class).saturating_sub(self.strayed);
        let mut counts = ReceiveCounts {
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

impl ReceiveRing {
    /// Returns the number of waiting pieces.
    #[inline]
    fn waiting(&self) -> u32 {
        let first = self.ring.consumer().load(Ordering::Relaxed);
        let end = self.ring.producer().load(Ordering::Acquire);
        end.wrapping_sub(first)
    }

    /// Returns the number of pieces of the next frame; 0 if there is none.
    #[inline]
    fn count(&self) -> u32 {
        let is_last = |at: &u32| !self.piece(*at).goes_on;
        (0..self.waiting()).find(is_last).map_or(0, |at| at + 1)
    }

    /// Returns the piece at this distance behind the next one.
    #[inline]
    fn piece(&self, at: u32) -> Piece {
        let first = self.ring.consumer().load(Ordering::Relaxed);
        self.ring.entry(first.wrapping_add(at)).load()
    }
}

/// The pieces of the next frame of a queue. They are given back on drop.
struct Pieces<'s> {
    frames: &'s Frames,
    from: &'s ReceiveRing,
    count: u32,
}

impl Pieces<'_> {
    fn iter(&self) -> impl Iterator<Item = Piece> {
        (0..self.count).map(|at| self.from.piece(at))
    }

    /// Returns the contiguous frame; `None` if `whole` is too short for it.
    #[allow(unsafe_code, reason = "frames are shared with the kernel")]
    fn octets<'o>(&'o self, whole: &'o mut [u8]) -> Option<&'o [u8]> {
        // SAFETY: the kernel has put the piece into the ring. It is given back only when `self` is
        // dropped, and the octets borrow `self`.
        let octets = |piece: Piece| unsafe { self.frames.read(piece.address, piece.len as usize) };
        if self.count == 1 {
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
            self.from.queue.refill(piece.address);
        }
        let consumer = self.from.ring.consumer();
        let first = consumer.load(Ordering::Relaxed);
        consumer.store(first.wrapping_add(self.count), Ordering::Release);
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
