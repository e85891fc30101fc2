#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::io::Errno;

use super::State;
use super::memory::Piece;
use super::socket::ClassSocket;
use super::sync::Ordering;
use crate::class::ClassId;
use crate::driver::socket::take_error;
use crate::path::{Frame, PathError, Received, Receiver};

/// What comes in for a class.
#[derive(Debug)]
pub(super) struct XdpReceiver {
    class: ClassId,
    socket: Arc<ClassSocket>,
    state: Arc<State>,
    /// Room for a frame that comes in pieces.
    whole: Box<[u8]>,
    /// Whether there was no frame the last time.
    was_empty: bool,
    is_gone: bool,
    counts: Received,
}

impl XdpReceiver {
    pub(super) fn new(class: ClassId, socket: Arc<ClassSocket>, state: Arc<State>) -> Self {
        let layout = &socket.pool.layout;
        let room = match layout.run {
            1 => 0,
            run => run * layout.frame,
        };
        Self {
            class,
            state,
            whole: std::iter::repeat_n(0, room).collect(),
            was_empty: false,
            is_gone: false,
            counts: Received::default(),
            socket,
        }
    }

    /// Tells the kernel of empty frames, if it wants that; and where there was nothing twice, asks whether anything can come
    /// at all.
    fn check(&mut self) -> Result<(), PathError> {
        if self.socket.pool.wants_a_call() {
            let _told = self.socket.tell_of_empty_frames();
        }
        if self.was_empty && !self.is_gone {
            // The only error that comes up is that of an interface that is no more, and it comes up once.
            self.is_gone = take_error(&*self.socket).is_err();
        }
        self.was_empty = true;
        match self.is_gone {
            true => Err(PathError(Errno::NETDOWN.into())),
            false => Ok(()),
        }
    }

    /// The pieces of the next frame are so many from this position on; none if it is not there.
    fn next(&self) -> (u32, u32) {
        let ring = &self.socket.incoming;
        let first = ring.consumer().load(Ordering::Relaxed);
        let there = ring.producer().load(Ordering::Acquire).wrapping_sub(first);
        for at in 0..there {
            if !ring.entry(first.wrapping_add(at)).load().goes_on {
                return (first, at + 1);
            }
        }
        (first, 0)
    }
}

impl Receiver for XdpReceiver {
    fn receive(&mut self, take: &mut dyn FnMut(Frame<'_>)) -> Result<bool, PathError> {
        loop {
            let (first, count) = self.next();
            if count == 0 {
                return self.check().map(|()| false);
            }
            self.was_empty = false;
            let pieces = Pieces {
                socket: &self.socket,
                first,
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
        let ring = &self.socket.incoming;
        let first = ring.consumer().load(Ordering::Relaxed);
        ring.producer().load(Ordering::Acquire).wrapping_sub(first) as usize
    }

    fn counts(&self) -> Received {
        let kernel = self.socket.statistics();
        Received {
            dropped: kernel.and_then(|it| it.rx_ring_full).unwrap_or_default(),
            failed: self.counts.failed + kernel.map_or(0, |it| it.rx_dropped),
            ..self.counts
        }
    }
}

/// The pieces of a frame, which go back when they are dropped.
struct Pieces<'s> {
    socket: &'s ClassSocket,
    first: u32,
    count: u32,
}

impl Pieces<'_> {
    fn iter(&self) -> impl Iterator<Item = Piece> {
        (0..self.count).map(|at| {
            let position = self.first.wrapping_add(at);
            self.socket.incoming.entry(position).load()
        })
    }

    /// The frame in one piece; `None` if `whole` has no room for it.
    #[allow(unsafe_code, reason = "frames are shared with the kernel")]
    fn octets<'o>(&'o self, whole: &'o mut [u8]) -> Option<&'o [u8]> {
        // SAFETY: the kernel has put it into the ring, and it goes back only when `self` is dropped, which is borrowed as long as
        // the octets are.
        let octets = |piece: Piece| unsafe {
            self.socket
                .pool
                .frames
                .read(piece.address, piece.len as usize)
        };
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
            self.socket.pool.refill(piece.address);
        }
        let next = self.first.wrapping_add(self.count);
        self.socket
            .incoming
            .consumer()
            .store(next, Ordering::Release);
    }
}

impl AsFd for XdpReceiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for XdpReceiver {
    fn drop(&mut self) {
        self.state.close(self.class);
    }
}
