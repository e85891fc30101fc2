//! A connection over a serial line.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chronorb::transport::{Connection, Deadline, IoError, SendError, SocketOptions};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use crate::line::Line;

/// The one connection of a line.
#[derive(Debug)]
pub(crate) struct LineConnection {
    /// The line, by a separate descriptor: the ORB may wait on the acceptor's at the same time.
    file: OwnedFd,
    /// Readable while waits are interrupted, or after the end of the connection.
    called: OwnedFd,
    ended: AtomicBool,
    _taken: LineGuard,
}

/// The line of a connection, which is released on drop.
#[derive(Debug)]
struct LineGuard(Arc<Line>);

impl LineConnection {
    /// Returns `None` if there is a connection already.
    pub(crate) fn new(line: Arc<Line>) -> io::Result<Option<Self>> {
        if !line.take() {
            return Ok(None);
        }
        let taken = LineGuard(line);
        Ok(Some(Self {
            file: taken.0.as_fd().try_clone_to_owned()?,
            called: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            ended: AtomicBool::new(false),
            _taken: taken,
        }))
    }

    /// Waits until the line is ready. Returns whether it is; false means interrupted or timed out.
    fn wait(
        &self,
        what: PollFlags,
        limit: Option<Duration>,
        may_be_called: bool,
    ) -> Result<bool, IoError> {
        let limit = limit.map(|limit| Timespec {
            tv_sec: limit.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: limit.subsec_nanos().into(),
        });
        let mut waited = [
            PollFd::new(&self.file, what),
            PollFd::new(&self.called, PollFlags::IN),
        ];
        // A thread that waits for room, or for a reply, is not interrupted.
        let watched = if may_be_called { 2 } else { 1 };
        match poll(&mut waited[..watched], limit.as_ref()) {
            Ok(_) => Ok(!waited[0].revents().is_empty()),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }

    fn wait_until(&self, what: PollFlags, deadline: Deadline) -> Result<(), IoError> {
        let left = deadline.remaining().ok_or(IoError::TimedOut)?;
        self.check()?;
        // A shutdown is noticed at the next check.
        self.wait(what, Some(left.min(LOOK_AGAIN)), false).map(drop)
    }

    fn send_until(
        &self,
        len: usize,
        deadline: Deadline,
        step: impl Fn(usize) -> Result<usize, IoError>,
    ) -> Result<(), SendError> {
        let mut sent = 0;
        while sent < len {
            match step(sent) {
                Ok(n) => sent += n,
                Err(IoError::WouldBlock) => self
                    .wait_until(PollFlags::OUT, deadline)
                    .map_err(|cause| SendError { sent, cause })?,
                Err(cause) => return Err(SendError { sent, cause }),
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), IoError> {
        if self.ended.load(Ordering::Acquire) {
            Err(IoError::Closed)
        } else {
            Ok(())
        }
    }
}

impl Connection for LineConnection {
    fn try_recv(&self, room: &mut [u8]) -> Result<usize, IoError> {
        if self.check().is_err() {
            return Err(IoError::Ended);
        }
        match rustix::io::read(&self.file, room) {
            // The other end is not open, or no longer.
            Ok(0) | Err(Errno::IO) => Err(IoError::Ended),
            Ok(n) => Ok(n),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }

    fn try_send(&self, octets: &[u8]) -> Result<usize, IoError> {
        self.check()?;
        rustix::io::write(&self.file, octets).map_err(|error| io::Error::from(error).into())
    }

    fn try_send_both(&self, first: &[u8], second: &[u8]) -> Result<usize, IoError> {
        self.check()?;
        let pieces = [IoSlice::new(first), IoSlice::new(second)];
        rustix::io::writev(&self.file, &pieces).map_err(|error| io::Error::from(error).into())
    }

    fn recv(&self, room: &mut [u8], deadline: Deadline) -> Result<usize, IoError> {
        loop {
            match self.try_recv(room) {
                Err(IoError::WouldBlock) => self.wait_until(PollFlags::IN, deadline)?,
                received => return received,
            }
        }
    }

    fn recv_until_interrupted(
        &self,
        room: &mut [u8],
        limit: Option<Duration>,
    ) -> Result<Option<usize>, IoError> {
        if !self.wait(PollFlags::IN, limit, true)? {
            return self.check().map(|()| None);
        }
        match self.try_recv(room) {
            Err(IoError::WouldBlock) => Ok(None),
            received => received.map(Some),
        }
    }

    fn interrupt(&self) {
        // The counter is far from its bound.
        let _ = rustix::io::write(&self.called, &1_u64.to_ne_bytes());
    }

    fn resume(&self) {
        if self.check().is_ok() {
            // It may not have been set.
            let _ = rustix::io::read(&self.called, &mut [0; 8]);
        }
    }

    fn send_all(&self, octets: &[u8], deadline: Deadline) -> Result<(), SendError> {
        self.send_until(octets.len(), deadline, |sent| {
            self.try_send(&octets[sent..])
        })
    }

    fn send_both(&self, first: &[u8], second: &[u8], deadline: Deadline) -> Result<(), SendError> {
        self.send_until(first.len() + second.len(), deadline, |sent| {
            match first.get(sent..) {
                Some(first) => self.try_send_both(first, second),
                None => self.try_send(&second[sent - first.len()..]),
            }
        })
    }

    fn is_stale(&self) -> bool {
        let mut waited = [PollFd::new(&self.file, PollFlags::IN)];
        let looked = poll(&mut waited, Some(&Timespec::default()));
        self.check().is_err() || looked != Ok(0)
    }

    fn shutdown(&self) {
        self.ended.store(true, Ordering::Release);
        self.interrupt();
    }

    fn options(&self) -> io::Result<SocketOptions> {
        // A line has no socket options.
        Ok(SocketOptions::default())
    }

    fn peer(&self) -> String {
        "the other end of the line".to_owned()
    }
}

impl AsFd for LineConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for LineGuard {
    fn drop(&mut self) {
        self.0.give_back();
    }
}

/// The maximum delay until a thread that is not interrupted notices the end of the connection.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
