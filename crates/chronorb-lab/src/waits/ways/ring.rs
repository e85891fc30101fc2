//! Waiting in io_uring.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use chronorb_probe::{PrepareError, Ring};
use rustix::event::epoll::EventFlags;
use rustix::net::{SendFlags, send};

use super::epoll::{Set, unexpected};
use super::{ANSWER, Connections, FRAME, Receipt, WaitMethod, check_sent, receipt};

/// Serves with a ring. A leader's ring watches an epoll set for the other connections; any other
/// ring watches each of them.
pub(super) fn serve(way: WaitMethod, connections: &Connections<'_>) -> io::Result<()> {
    let is_leader = way == WaitMethod::RingLeader;
    let set = is_leader.then(|| Set::new(connections, EventFlags::ET));
    let set = set.transpose()?;
    let mut lane = RingLane::new(connections.hot.as_fd(), way)?;
    if let Some(set) = &set {
        lane.watch(set.as_fd())?;
    } else {
        lane.watch(connections.listener.as_fd())?;
        for idle in connections.idle {
            lane.watch(idle.as_fd())?;
        }
    }
    lane.serve()
}

/// A thread's ring, with the connection that it serves.
struct RingLane<'s> {
    ring: Ring<'s>,
    hot: BorrowedFd<'s>,
    way: WaitMethod,
}

impl<'s> RingLane<'s> {
    fn new(hot: BorrowedFd<'s>, way: WaitMethod) -> io::Result<Self> {
        let mut ring = Ring::new(ENTRIES, 2, FRAME)?;
        let answer = ring.buffer_mut(ANSWERS).map_err(io::Error::other)?;
        answer[..ANSWER.len()].copy_from_slice(&ANSWER);
        Ok(Self { ring, hot, way })
    }

    /// Serves until the peer closes the connection.
    fn serve(&mut self) -> io::Result<()> {
        self.receive()?;
        let (mut is_sending, mut is_requested) = (false, false);
        loop {
            // A reply completes at once, and must not end the wait for the next request.
            let completions = 1 + u32::from(is_sending);
            self.ring.submit_and_wait(completions, None)?;
            while let Some(completion) = self.ring.take() {
                let octets = completion.result? as usize;
                match completion.token {
                    SENT => {
                        check_sent(octets)?;
                        is_sending = false;
                    }
                    RECEIVED => match receipt(octets)? {
                        Receipt::Request => is_requested = true,
                        Receipt::Nothing => {}
                        Receipt::End => return Ok(()),
                    },
                    _ => return Err(unexpected()),
                }
            }
            if is_requested && !is_sending {
                is_sending = self.reply()?;
                self.receive()?;
                is_requested = false;
            }
        }
    }

    /// Sends the reply, or prepares that: whether the ring will report its end.
    fn reply(&mut self) -> io::Result<bool> {
        if self.way == WaitMethod::RingPlainSend {
            check_sent(send(self.hot, &ANSWER, SendFlags::NOSIGNAL)?)?;
            return Ok(false);
        }
        let prepared = self.ring.send(self.hot, ANSWERS, ANSWER.len(), SENT);
        prepared.map_err(io::Error::other)?;
        Ok(true)
    }

    /// Prepares to receive the next request.
    fn receive(&mut self) -> io::Result<()> {
        let prepared = if self.way == WaitMethod::Ring {
            self.ring.receive(self.hot, REQUESTS, RECEIVED)
        } else {
            self.ring.receive_later(self.hot, REQUESTS, RECEIVED)
        };
        prepared.map_err(io::Error::other)
    }

    /// Adds `other` to what the ring waits for.
    fn watch(&mut self, other: BorrowedFd<'s>) -> io::Result<()> {
        if self.ring.poll_readable(other, OTHER) == Err(PrepareError::Full) {
            self.ring.submit_and_wait(0, None)?;
            let prepared = self.ring.poll_readable(other, OTHER);
            prepared.map_err(io::Error::other)?;
        }
        Ok(())
    }
}

const ENTRIES: u32 = 64;
/// The buffers.
const REQUESTS: usize = 0;
const ANSWERS: usize = 1;
/// The tokens of completions.
const OTHER: u32 = 0;
const RECEIVED: u32 = 1;
const SENT: u32 = 2;
