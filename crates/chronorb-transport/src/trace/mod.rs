//! A transport that records the octets of another one, for Wireshark.
//!
//! [`RecordingTransport`] wraps any [`Transport`]. Each of its connections becomes a conversation
//! in a [`TraceFile`], in the format pcapng: streams as TCP, from a handshake to an end, and
//! messages as datagrams of UDP. So protocol analysers show the content of every transport.
//! Messages that are encrypted on the wire are recorded in the clear. Addresses are those of the
//! sockets, or invented ones for sockets without addresses (`10.255.0.1` for clients, `10.255.0.2`
//! port 2809 for servers). A comment at the first packet describes the connection.
//!
//! The trace shows the octets that this process passed to the transport and took from it, with the
//! time of that. It shows neither the network's packets nor the octets that the peer has received:
//! sequence numbers and acknowledgements belong to the trace. If [`send_all`](Connection::send_all)
//! could not send everything, the conversation ends with a reset whose comment has the number of
//! octets sent. A connection with both ends traced to the same file is recorded once.
//!
//! # Time
//! A thread that sends or receives copies the octets into a buffer of fixed size, behind a lock
//! that inherits priority and is held for a copy of 60,000 octets at most. A thread of the lowest
//! priority writes the buffer to the file. If it is too slow, whole packets are dropped and counted
//! ([`TraceCounts`], and in the file); no thread waits for the disk.

mod connection;
mod conversation;
mod file;
mod packet;
mod pcapng;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use chronorb_rt::Deadline;

use self::connection::TracedConnection;
use self::conversation::Side;
pub use self::file::{TraceCounts, TraceFile, TraceLimits};
use crate::{
    AcceptError, Acceptor, Address, ConnectError, Connection, Endpoint, EndpointError, ListenError,
    Setup, Transport,
};

/// A transport that records the octets of another one.
#[derive(Debug)]
pub struct RecordingTransport {
    inner: Arc<dyn Transport>,
    file: Arc<TraceFile>,
}

impl RecordingTransport {
    /// Records the octets of `inner` in `file`, which several transports may share.
    pub fn new(inner: impl Into<Arc<dyn Transport>>, file: Arc<TraceFile>) -> Self {
        let inner = inner.into();
        Self { inner, file }
    }
}

impl Transport for RecordingTransport {
    fn scheme(&self) -> &str {
        self.inner.scheme()
    }

    fn check(&self, endpoint: &Endpoint) -> Result<(), EndpointError> {
        self.inner.check(endpoint)
    }

    fn reload(&self) -> io::Result<()> {
        self.inner.reload()
    }

    fn listen(
        &self,
        endpoint: &Endpoint,
        setup: Setup,
    ) -> Result<Vec<Box<dyn Acceptor>>, ListenError> {
        let acceptors = self.inner.listen(endpoint, setup)?;
        let wrap = |inner| -> Box<dyn Acceptor> {
            Box::new(TracedAcceptor {
                inner,
                file: self.file.clone(),
                scheme: self.scheme().into(),
                setup,
            })
        };
        Ok(acceptors.into_iter().map(wrap).collect())
    }

    fn connect(
        &self,
        address: &Address,
        setup: Setup,
        deadline: Deadline,
    ) -> Result<Box<dyn Connection>, ConnectError> {
        let inner = self.inner.connect(address, setup, deadline)?;
        let told = format!("{}: connection to {address}", self.scheme());
        Ok(Box::new(TracedConnection::new(
            inner,
            self.file.clone(),
            Side::Client,
            setup.messages,
            &told,
        )))
    }
}

#[derive(Debug)]
struct TracedAcceptor {
    inner: Box<dyn Acceptor>,
    file: Arc<TraceFile>,
    scheme: Box<str>,
    setup: Setup,
}

impl Acceptor for TracedAcceptor {
    fn accept(&self) -> Result<Option<Box<dyn Connection>>, AcceptError> {
        let Some(inner) = self.inner.accept()? else {
            return Ok(None);
        };
        let at = self.published().first();
        let at = at.map(Address::to_string).unwrap_or_default();
        let told = format!("{}: connection of {} at {at}", self.scheme, inner.peer());
        Ok(Some(Box::new(TracedConnection::new(
            inner,
            self.file.clone(),
            Side::Server,
            self.setup.messages,
            &told,
        ))))
    }

    fn published(&self) -> &[Address] {
        self.inner.published()
    }
}

impl AsFd for TracedAcceptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}
