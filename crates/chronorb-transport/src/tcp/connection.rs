//! A TCP connection.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chronorb_rt::{Activity, Deadline, doing};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, sockopt};

use super::options;
use crate::{Connection, IoError, SendError, SocketOptions, time_out_fits};

/// A connected TCP socket in blocking mode; `try_*` ask for no wait call by call.
#[derive(Debug)]
pub(super) struct TcpConnection {
    socket: OwnedFd,
    /// The socket's time-outs in nanoseconds, 0 before the first is set. They
    /// spare a `poll` for each wait, and are set only when they change.
    receive_time_out: AtomicU64,
    send_time_out: AtomicU64,
}

impl TcpConnection {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            receive_time_out: AtomicU64::new(0),
            send_time_out: AtomicU64::new(0),
        }
    }

    /// Lets a wait end at the deadline.
    fn arm(
        &self,
        deadline: Deadline,
        set: &AtomicU64,
        which: sockopt::Timeout,
    ) -> Result<(), IoError> {
        let remaining = deadline.remaining().ok_or(IoError::TimedOut)?;
        self.limit(remaining, set, which)
    }

    /// Sets the socket's time-out to the time that is left, where the old one is too far off.
    fn limit(
        &self,
        remaining: Duration,
        set: &AtomicU64,
        which: sockopt::Timeout,
    ) -> Result<(), IoError> {
        let remaining = remaining.max(SHORTEST_TIME_OUT);
        let present = Duration::from_nanos(set.load(Ordering::Relaxed));
        if !time_out_fits(present, remaining) {
            // A little more than what is left, so that the next call with the same time-out fits.
            let generous = remaining + remaining / 16;
            sockopt::set_socket_timeout(&self.socket, which, Some(generous))
                .map_err(IoError::from_errno)?;
            let nanoseconds = u64::try_from(generous.as_nanos()).unwrap_or(u64::MAX);
            set.store(nanoseconds, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Sends by `step`, which is told how much was sent before, until `len` octets are sent.
    fn send_until(
        &self,
        len: usize,
        deadline: Deadline,
        step: impl Fn(usize) -> Result<usize, IoError>,
    ) -> Result<(), SendError> {
        let mut sent = 0;
        while sent < len {
            let step = self
                .arm(deadline, &self.send_time_out, sockopt::Timeout::Send)
                .and_then(|()| step(sent));
            match step {
                Ok(n) => sent += n,
                Err(IoError::WouldBlock) => {}
                Err(cause) => return Err(SendError { sent, cause }),
            }
        }
        Ok(())
    }
}

impl Connection for TcpConnection {
    fn try_recv(&self, room: &mut [u8]) -> Result<usize, IoError> {
        receive(&self.socket, room, RecvFlags::DONTWAIT)
    }

    fn try_send(&self, octets: &[u8]) -> Result<usize, IoError> {
        send(
            &self.socket,
            octets,
            SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
        )
    }

    fn try_send_both(&self, first: &[u8], second: &[u8]) -> Result<usize, IoError> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        send_both(&self.socket, first, second, flags)
    }

    fn recv(&self, room: &mut [u8], deadline: Deadline) -> Result<usize, IoError> {
        loop {
            self.arm(deadline, &self.receive_time_out, sockopt::Timeout::Recv)?;
            match receive(&self.socket, room, RecvFlags::empty()) {
                Err(IoError::WouldBlock) => {}
                other => return other,
            }
        }
    }

    fn recv_until_interrupted(
        &self,
        room: &mut [u8],
        limit: Option<Duration>,
    ) -> Result<Option<usize>, IoError> {
        if let Some(limit) = limit {
            self.limit(limit, &self.receive_time_out, sockopt::Timeout::Recv)?;
        }
        let _receiving = doing(Activity::InputOutput);
        match net::recv(&self.socket, &mut *room, RecvFlags::empty()) {
            Ok((0, _)) if !room.is_empty() => Err(IoError::Ended),
            Ok((n, _)) => Ok(Some(n)),
            // A signal that begins the call anew finds that it must not wait.
            Err(Errno::INTR | Errno::AGAIN) => Ok(None),
            Err(error) => Err(IoError::from_errno(error)),
        }
    }

    fn interrupt(&self) {
        // It is refused only where the socket is none.
        let _ = rustix::io::ioctl_fionbio(&self.socket, true);
    }

    fn resume(&self) {
        let _ = rustix::io::ioctl_fionbio(&self.socket, false);
    }

    fn send_all(&self, octets: &[u8], deadline: Deadline) -> Result<(), SendError> {
        self.send_until(octets.len(), deadline, |sent| {
            send(&self.socket, &octets[sent..], SendFlags::NOSIGNAL)
        })
    }

    fn send_both(&self, first: &[u8], second: &[u8], deadline: Deadline) -> Result<(), SendError> {
        self.send_until(first.len() + second.len(), deadline, |sent| {
            let (first, rest) = match first.get(sent..) {
                Some(first) => (first, second),
                None => (&[][..], &second[sent - first.len()..]),
            };
            send_both(&self.socket, first, rest, SendFlags::NOSIGNAL)
        })
    }

    fn is_stale(&self) -> bool {
        let looked = receive(
            &self.socket,
            &mut [0],
            RecvFlags::PEEK | RecvFlags::DONTWAIT,
        );
        looked != Err(IoError::WouldBlock)
    }

    fn shutdown(&self) {
        // A connection that is gone already needs no end.
        let _ = net::shutdown(&self.socket, Shutdown::Both);
    }

    fn options(&self) -> io::Result<SocketOptions> {
        options::get(&self.socket)
    }

    #[allow(clippy::disallowed_methods, reason = "for messages to people")]
    fn peer(&self) -> String {
        net::getpeername(&self.socket)
            .ok()
            .flatten()
            .and_then(|address| SocketAddr::try_from(address).ok())
            .map_or_else(|| "a peer that is gone".to_owned(), |a| a.to_string())
    }
}

impl AsFd for TcpConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn receive(socket: &OwnedFd, room: &mut [u8], flags: RecvFlags) -> Result<usize, IoError> {
    let _receiving = doing(Activity::InputOutput);
    loop {
        match net::recv(socket, &mut *room, flags) {
            Ok((0, _)) if !room.is_empty() => return Err(IoError::Ended),
            Ok((n, _)) => return Ok(n),
            Err(Errno::INTR) => {}
            Err(error) => return Err(IoError::from_errno(error)),
        }
    }
}

fn send(socket: &OwnedFd, octets: &[u8], flags: SendFlags) -> Result<usize, IoError> {
    let _sending = doing(Activity::InputOutput);
    loop {
        match net::send(socket, octets, flags) {
            Ok(n) => return Ok(n),
            Err(Errno::INTR) => {}
            Err(error) => return Err(IoError::from_errno(error)),
        }
    }
}

fn send_both(
    socket: &OwnedFd,
    first: &[u8],
    second: &[u8],
    flags: SendFlags,
) -> Result<usize, IoError> {
    let _sending = doing(Activity::InputOutput);
    let pieces = [IoSlice::new(first), IoSlice::new(second)];
    loop {
        match net::sendmsg(socket, &pieces, &mut SendAncillaryBuffer::default(), flags) {
            Ok(n) => return Ok(n),
            Err(Errno::INTR) => {}
            Err(error) => return Err(IoError::from_errno(error)),
        }
    }
}

/// A socket time-out of 0 would mean for ever (socket(7)).
const SHORTEST_TIME_OUT: Duration = Duration::from_micros(1);
