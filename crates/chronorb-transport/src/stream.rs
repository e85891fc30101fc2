//! Connections by sockets that carry streams: TCP's, and those of the Unix domain.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::fmt;
use std::io::{self, IoSlice};
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use chronorb_probe::{Activity, doing};
use chronorb_rt::Deadline;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags, Shutdown, SocketFlags, sockopt};

use crate::timed::TimedSocket;
use crate::{AcceptError, Connection, IoError, Remote, SendError, SocketOptions};

/// The differences between sockets that carry streams.
pub(crate) trait Family: fmt::Debug + Send + Sync + 'static {
    /// The properties that hold for a socket.
    fn options(socket: &OwnedFd) -> io::Result<SocketOptions>;

    /// The other side, for messages to people.
    fn peer(socket: &OwnedFd) -> String;

    /// The other side.
    fn remote(socket: &OwnedFd) -> Remote;
}

/// A connected socket of a family.
#[derive(Debug)]
pub(crate) struct StreamConnection<F> {
    socket: TimedSocket,
    family: PhantomData<F>,
}

impl<F> StreamConnection<F> {
    pub(crate) fn new(socket: TimedSocket) -> Self {
        Self {
            socket,
            family: PhantomData,
        }
    }
}

impl<F: Family> Connection for StreamConnection<F> {
    fn try_recv(&self, room: &mut [u8]) -> Result<usize, IoError> {
        let n = self.socket.receive(room, RecvFlags::DONTWAIT)?;
        unless_ended(n, room)
    }

    fn try_send(&self, octets: &[u8]) -> Result<usize, IoError> {
        self.socket.send(octets, SendFlags::DONTWAIT)
    }

    fn try_send_both(&self, first: &[u8], second: &[u8]) -> Result<usize, IoError> {
        self.try_send_slices(&[IoSlice::new(first), IoSlice::new(second)], 0)
    }

    fn recv(&self, room: &mut [u8], deadline: Deadline) -> Result<usize, IoError> {
        loop {
            self.socket.end_receiving(deadline)?;
            match self.socket.receive(room, RecvFlags::empty()) {
                Err(IoError::WouldBlock) => {}
                received => return unless_ended(received?, room),
            }
        }
    }

    fn recv_after_send(
        &self,
        room: &mut [u8],
        deadline: Deadline,
        whole: u64,
    ) -> Result<usize, IoError> {
        if self.socket.ends_receiving_after(whole) {
            match self.socket.receive(room, RecvFlags::empty()) {
                Err(IoError::WouldBlock) => {}
                received => return unless_ended(received?, room),
            }
        }
        self.recv(room, deadline)
    }

    fn recv_until_interrupted(
        &self,
        room: &mut [u8],
        limit: Option<Duration>,
    ) -> Result<Option<usize>, IoError> {
        if let Some(limit) = limit {
            self.socket.limit_receiving(limit)?;
        }
        match self.socket.receive_until_interrupted(room)? {
            Some(n) => unless_ended(n, room).map(Some),
            None => Ok(None),
        }
    }

    fn interrupt(&self) {
        self.socket.set_interrupted(true);
    }

    fn resume(&self) {
        self.socket.set_interrupted(false);
    }

    fn send_all(&self, octets: &[u8], deadline: Deadline) -> Result<(), SendError> {
        self.socket
            .send_until(octets.len(), deadline, |sent, flags| {
                self.socket.send(&octets[sent..], flags)
            })
    }

    fn send_both(&self, first: &[u8], second: &[u8], deadline: Deadline) -> Result<(), SendError> {
        let slices = [IoSlice::new(first), IoSlice::new(second)];
        self.socket
            .send_until(first.len() + second.len(), deadline, |sent, flags| {
                self.socket.send_slices(&slices, sent, flags)
            })
    }

    fn try_send_slices(&self, slices: &[IoSlice<'_>], sent: usize) -> Result<usize, IoError> {
        self.socket.send_slices(slices, sent, SendFlags::DONTWAIT)
    }

    fn is_stale(&self) -> bool {
        self.socket.has_news()
    }

    fn shutdown(&self) {
        // A connection that has ended already needs no end.
        let _ = net::shutdown(&self.socket, Shutdown::Both);
    }

    fn abort(&self) {
        // Closing then sends a reset. Without it, the kernel tells a peer with a full window
        // nothing for a minute, if another thread has read the received octets.
        let _ = sockopt::set_socket_linger(&self.socket, Some(Duration::ZERO));
        self.shutdown();
    }

    fn options(&self) -> io::Result<SocketOptions> {
        F::options(self.socket.socket())
    }

    fn peer(&self) -> String {
        F::peer(self.socket.socket())
    }

    fn remote(&self) -> Remote {
        F::remote(self.socket.socket())
    }
}

impl<F> AsFd for StreamConnection<F> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Takes the next connection of a listening socket in; `None` where none is there.
pub(crate) fn accept(listener: impl AsFd) -> Result<Option<OwnedFd>, AcceptError> {
    let _accepting = doing(Activity::InputOutput);
    accept_by(|| net::accept_with(&listener, SocketFlags::CLOEXEC))
}

/// Accepts the next connection by `accept`, and skips those that have failed already: accept(2)
/// returns their errors, and leaves the connections behind them in the queue.
fn accept_by<T>(accept: impl Fn() -> Result<T, Errno>) -> Result<Option<T>, AcceptError> {
    let mut last = Errno::AGAIN;
    for _ in 0..MAX_FAILED {
        last = match accept() {
            Ok(socket) => return Ok(Some(socket)),
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                return Err(AcceptError::Exhausted);
            }
            Err(of_network) if OF_NETWORK.contains(&of_network) => of_network,
            Err(other) => return Err(AcceptError::Failed(other)),
        };
    }
    Err(AcceptError::Failed(last))
}

fn unless_ended(n: usize, room: &[u8]) -> Result<usize, IoError> {
    match n {
        0 if !room.is_empty() => Err(IoError::Ended),
        n => Ok(n),
    }
}

/// The errors of accept(2) that concern the pending connection only, after which it is to be called
/// again, according to Linux; and that it was interrupted.
const OF_NETWORK: [Errno; 11] = [
    Errno::INTR,
    Errno::CONNABORTED,
    Errno::PROTO,
    Errno::NETDOWN,
    Errno::NETUNREACH,
    Errno::HOSTDOWN,
    Errno::HOSTUNREACH,
    Errno::NONET,
    Errno::NOPROTOOPT,
    Errno::OPNOTSUPP,
    // A firewall forbids the connection.
    Errno::PERM,
];
/// Connections that have failed, before others have a right to the thread.
const MAX_FAILED: u32 = 64;
/// The number of connections that may wait to be accepted; the kernel limits it to
/// `net.core.somaxconn`.
pub(crate) const BACKLOG: i32 = 1024;

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Decides whether to continue after an error of accept(2).
    fn after(error: Errno) -> Result<Option<u32>, AcceptError> {
        let calls = Cell::new(0);
        accept_by(|| {
            calls.set(calls.get() + 1);
            match calls.get() {
                1 => Err(error),
                n => Ok(n),
            }
        })
    }

    #[test]
    fn errors_of_the_network_leave_the_next_connection_to_be_taken() {
        for error in OF_NETWORK {
            assert_eq!(after(error), Ok(Some(2)), "{error}");
        }
        assert_eq!(after(Errno::AGAIN), Ok(None));
        assert_eq!(after(Errno::MFILE), Err(AcceptError::Exhausted));
        assert_eq!(after(Errno::INVAL), Err(AcceptError::Failed(Errno::INVAL)));
    }

    #[test]
    fn an_error_that_stays_does_not_keep_the_thread() {
        let forbidden = accept_by(|| Err::<(), _>(Errno::PERM));
        assert_eq!(forbidden, Err(AcceptError::Failed(Errno::PERM)));
    }
}
