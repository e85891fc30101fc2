//! A transport that records the octets of another one, for Wireshark.
//!
//! [`Traced`] wraps any [`Transport`]. Each of its connections becomes a conversation in a
//! [`TraceFile`], in the format pcapng: streams as TCP, from a handshake to an end, messages as
//! datagrams of UDP; so protocol analysers show what is in it whatever carried it. What was
//! encrypted on the wire stands there as it was before and after. Addresses are those of the
//! sockets, and made up where those have none (`10.255.0.1` for clients, `10.255.0.2` port 2809 for
//! servers); what is told about a connection stands as a comment at its first packet.
//!
//! What is seen is what this process gave to the transport and took from it, when it did. It is
//! neither how the network cut it nor what the peer has got: sequence numbers and acknowledgements
//! are of the trace. Of what [`send_all`](Connection::send_all) was given and could not send whole,
//! the end is a reset whose comment says how much has gone. A connection both of whose ends are
//! traced to the same file stands there once.
//!
//! # Time
//! A thread that sends or receives copies the octets into a buffer of fixed size, behind a lock
//! that inherits priority and is held for a copy of 60,000 octets at most. A thread of the lowest
//! priority writes the buffer out. Where it does not keep up, packets are left out whole and
//! counted ([`TraceCounts`], and in the file); no thread waits for the disk.

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
pub struct Traced {
    inner: Arc<dyn Transport>,
    file: Arc<TraceFile>,
}

impl Traced {
    /// Records the octets of `inner` in `file`, which several transports may share.
    pub fn new(inner: impl Into<Arc<dyn Transport>>, file: Arc<TraceFile>) -> Self {
        let inner = inner.into();
        Self { inner, file }
    }
}

impl Transport for Traced {
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
