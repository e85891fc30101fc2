//! Kernel sockets of a class with a limited number of connections.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use chronorb_rt::Deadline;
use chronorb_transport::{
    AcceptError, Acceptor, Address, Connection, IoError, Remote, SendError, SocketOptions,
};

use super::quota::{ConnectionPermit, ConnectionQuota};

/// A listening kernel socket of a class. Connections over the limit are closed at once.
#[derive(Debug)]
pub(super) struct KernelAcceptor {
    inner: Box<dyn Acceptor>,
    quota: ConnectionQuota,
}

impl KernelAcceptor {
    pub(super) fn new(inner: Box<dyn Acceptor>, quota: ConnectionQuota) -> Self {
        Self { inner, quota }
    }
}

impl Acceptor for KernelAcceptor {
    #[allow(clippy::disallowed_methods, reason = "once for each connection")]
    fn accept(&self) -> Result<Option<Box<dyn Connection>>, AcceptError> {
        while let Some(connection) = self.inner.accept()? {
            if let Some(permit) = self.quota.take() {
                return Ok(Some(Box::new(KernelConnection::new(connection, permit))));
            }
        }
        Ok(None)
    }

    fn published(&self) -> &[Address] {
        self.inner.published()
    }
}

impl AsFd for KernelAcceptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

/// A connected kernel socket of a class.
#[derive(Debug)]
pub(super) struct KernelConnection {
    inner: Box<dyn Connection>,
    _place: ConnectionPermit,
}

impl KernelConnection {
    pub(super) fn new(inner: Box<dyn Connection>, permit: ConnectionPermit) -> Self {
        Self {
            inner,
            _place: permit,
        }
    }
}

impl Connection for KernelConnection {
    fn try_recv(&self, room: &mut [u8]) -> Result<usize, IoError> {
        self.inner.try_recv(room)
    }

    fn try_send(&self, octets: &[u8]) -> Result<usize, IoError> {
        self.inner.try_send(octets)
    }

    fn try_send_both(&self, first: &[u8], second: &[u8]) -> Result<usize, IoError> {
        self.inner.try_send_both(first, second)
    }

    fn recv(&self, room: &mut [u8], deadline: Deadline) -> Result<usize, IoError> {
        self.inner.recv(room, deadline)
    }

    fn recv_until_interrupted(
        &self,
        room: &mut [u8],
        limit: Option<Duration>,
    ) -> Result<Option<usize>, IoError> {
        self.inner.recv_until_interrupted(room, limit)
    }

    fn interrupt(&self) {
        self.inner.interrupt();
    }

    fn resume(&self) {
        self.inner.resume();
    }

    fn send_all(&self, octets: &[u8], deadline: Deadline) -> Result<(), SendError> {
        self.inner.send_all(octets, deadline)
    }

    fn send_both(&self, first: &[u8], second: &[u8], deadline: Deadline) -> Result<(), SendError> {
        self.inner.send_both(first, second, deadline)
    }

    fn is_stale(&self) -> bool {
        self.inner.is_stale()
    }

    fn shutdown(&self) {
        self.inner.shutdown();
    }

    fn options(&self) -> io::Result<SocketOptions> {
        self.inner.options()
    }

    fn peer(&self) -> String {
        self.inner.peer()
    }

    fn remote(&self) -> Remote {
        Remote {
            scheme: "riop",
            ..self.inner.remote()
        }
    }
}

impl AsFd for KernelConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}
