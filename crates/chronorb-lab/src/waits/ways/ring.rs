//! Waiting in io_uring.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use chronorb_probe::{PrepareError, Ring};
use rustix::event::epoll::EventFlags;
use rustix::net::{SendFlags, send};

use super::epoll::{Set, unexpected};
use super::{ANSWER, FRAME, Got, Site, got, sent};

/// Whether the kernel looks for the next request before it waits for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Look {
    First,
    Never,
}

/// The next `recv` and the `send` of the reply are submitted by the wait.
pub(super) fn receive_and_send(site: &Site<'_>, look: Look) -> io::Result<()> {
    let mut lane = Lane::new(site.hot.as_fd(), look)?;
    lane.watch_each(site)?;
    lane.serve()
}

/// The same, where a set is watched for the others.
pub(super) fn leader(site: &Site<'_>) -> io::Result<()> {
    let set = Set::new(site, EventFlags::ET)?;
    let mut lane = Lane::new(site.hot.as_fd(), Look::Never)?;
    lane.watch(set.as_fd())?;
    lane.serve()
}

pub(super) fn plain_send(site: &Site<'_>) -> io::Result<()> {
    let mut lane = Lane::new(site.hot.as_fd(), Look::Never)?;
    lane.watch_each(site)?;
    lane.receive()?;
    loop {
        lane.ring.submit_and_wait(1, None)?;
        while let Some(completion) = lane.ring.take() {
            match lane.completed(completion.token, completion.result?)? {
                Some(Got::Request) => {
                    sent(send(lane.hot, &ANSWER, SendFlags::NOSIGNAL)?)?;
                    lane.receive()?;
                }
                Some(Got::End) => return Ok(()),
                Some(Got::Nothing) | None => {}
            }
        }
    }
}

/// A thread's ring, with the connection that it serves.
struct Lane<'s> {
    ring: Ring<'s>,
    hot: BorrowedFd<'s>,
    look: Look,
}

impl<'s> Lane<'s> {
    fn new(hot: BorrowedFd<'s>, look: Look) -> io::Result<Self> {
        let mut ring = Ring::new(ENTRIES, 2, FRAME)?;
        let answer = ring.buffer_mut(ANSWERS).map_err(io::Error::other)?;
        answer[..ANSWER.len()].copy_from_slice(&ANSWER);
        Ok(Self { ring, hot, look })
    }

    /// Serves until the peer closes the connection.
    fn serve(&mut self) -> io::Result<()> {
        self.receive()?;
        let (mut sending, mut requested) = (false, false);
        loop {
            // The reply before completes at once, and shall not end the wait.
            self.ring.submit_and_wait(1 + u32::from(sending), None)?;
            while let Some(completion) = self.ring.take() {
                match self.completed(completion.token, completion.result?)? {
                    Some(Got::Request) => requested = true,
                    Some(Got::End) => return Ok(()),
                    Some(Got::Nothing) | None => sending = false,
                }
            }
            if requested && !sending {
                let prepared = self.ring.send(self.hot, ANSWERS, ANSWER.len(), SENT);
                prepared.map_err(io::Error::other)?;
                self.receive()?;
                (sending, requested) = (true, false);
            }
        }
    }

    /// Prepares to receive the next request.
    fn receive(&mut self) -> io::Result<()> {
        let prepared = match self.look {
            Look::First => self.ring.receive(self.hot, REQUESTS, RECEIVED),
            Look::Never => self.ring.receive_later(self.hot, REQUESTS, RECEIVED),
        };
        prepared.map_err(io::Error::other)
    }

    /// Waits for the listener and for each idle connection too.
    fn watch_each(&mut self, site: &Site<'s>) -> io::Result<()> {
        self.watch(site.listener.as_fd())?;
        for idle in site.idle {
            self.watch(idle.as_fd())?;
        }
        Ok(())
    }

    /// Waits for `other` too.
    fn watch(&mut self, other: BorrowedFd<'s>) -> io::Result<()> {
        if self.ring.poll_readable(other, OTHER) == Err(PrepareError::Full) {
            self.ring.submit_and_wait(0, None)?;
            let prepared = self.ring.poll_readable(other, OTHER);
            prepared.map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// What an operation that has succeeded has found; nothing for a reply that was sent.
    fn completed(&self, token: u32, octets: u32) -> io::Result<Option<Got>> {
        match token {
            RECEIVED => got(octets as usize).map(Some),
            SENT => sent(octets as usize).map(|()| None),
            _ => Err(unexpected()),
        }
    }
}

const ENTRIES: u32 = 64;
/// The buffers.
const REQUESTS: usize = 0;
const ANSWERS: usize = 1;
/// The tokens.
const OTHER: u32 = 0;
const RECEIVED: u32 = 1;
const SENT: u32 = 2;
