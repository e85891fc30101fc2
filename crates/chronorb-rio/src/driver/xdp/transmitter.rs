//! The transmitting side of an AF_XDP socket.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::Arc;

use rustix::io::Errno;

use super::memory::Piece;
use super::pool::Share;
use super::socket::ClassSockets;
use super::sync::Ordering;
use crate::path::{PathError, TransmitCounts, TransmitError, Transmitter};

/// The outgoing frames of a class.
#[derive(Debug)]
pub(super) struct XdpTransmitter {
    sockets: Arc<ClassSockets>,
    /// The length of the longest frame in octets.
    longest: usize,
    /// The own word in which a free frame was found last.
    word: usize,
    counts: TransmitCounts,
}

impl XdpTransmitter {
    pub(super) fn new(sockets: Arc<ClassSockets>, longest: usize) -> Self {
        Self {
            sockets,
            longest,
            word: 0,
            counts: TransmitCounts::default(),
        }
    }

    /// Finds room for the longest frame: a word, and a frame in it.
    fn find(&mut self) -> Option<(usize, u32)> {
        // More than one packet's frames, so that the backlog shrinks.
        let few = 2 * self.sockets.pool.layout.run;
        self.sockets.pool.reap(few);
        let found = self.find_free();
        if found.is_some() {
            return found;
        }
        self.sockets.pool.reap(self.sockets.pool.outgoing());
        self.find_free()
    }

    fn find_free(&mut self) -> Option<(usize, u32)> {
        let (pool, Share { words, among, .. }) = (&self.sockets.pool, &self.sockets.share);
        for _ in 0..words.len() {
            let word = words[self.word] as usize;
            if let Some(place) = pool.free.find(word, pool.layout.run as u32, *among) {
                return Some((word, place));
            }
            self.word = (self.word + 1) % words.len();
        }
        None
    }
}

impl Transmitter for XdpTransmitter {
    #[allow(unsafe_code, reason = "frames are shared with the kernel")]
    fn transmit(
        &mut self,
        len: usize,
        write: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), TransmitError> {
        if len > self.longest {
            let max = self.longest;
            return Err(TransmitError::TooLong { len, max });
        }
        let Some((word, place)) = self.find() else {
            self.counts.full += 1;
            return Err(TransmitError::Full);
        };
        let pool = &*self.sockets.pool;
        let address = pool.layout.outgoing(word, place);
        // SAFETY: these frames are free and belong to this class. The kernel gets them only below.
        write(unsafe { pool.frames.write(address, len) });

        let ring = &self.sockets.outgoing;
        let first = ring.producer().load(Ordering::Relaxed);
        // A frame without octets is counted as one, though no interface accepts it.
        let count = len.div_ceil(pool.layout.frame).max(1);
        for at in 0..count {
            let before = at * pool.layout.frame;
            let piece = Piece {
                address: address + before as u64,
                len: (len - before).min(pool.layout.frame) as u32,
                goes_on: at + 1 < count,
            };
            ring.entry(first.wrapping_add(at as u32)).store(piece);
        }
        pool.free.take(word, place, count as u32);
        let next = first.wrapping_add(count as u32);
        ring.producer().store(next, Ordering::Release);
        self.counts.frames += 1;
        self.counts.octets += len as u64;
        Ok(())
    }

    fn has_room(&mut self) -> bool {
        self.find().is_some()
    }

    fn flush(&mut self) -> Result<(), PathError> {
        let ring = &self.sockets.outgoing;
        while self.is_pending() && ring.wants_a_call() {
            let before = ring.consumer().load(Ordering::Acquire);
            // The kernel accepts some frames at a time, and none if the interface has no room or is
            // down.
            let kicked = self.sockets.kick();
            if let Err(errno @ (Errno::NXIO | Errno::NODEV | Errno::BADF)) = kicked {
                return Err(PathError(errno.into()));
            }
            if ring.consumer().load(Ordering::Acquire) == before {
                break;
            }
        }
        Ok(())
    }

    fn is_pending(&self) -> bool {
        let ring = &self.sockets.outgoing;
        ring.consumer().load(Ordering::Acquire) != ring.producer().load(Ordering::Relaxed)
    }

    fn counts(&self) -> TransmitCounts {
        self.counts
    }
}
