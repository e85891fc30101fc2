//! Transports of chronorb: how octets get from one endsystem to another.
//!
//! A transport is three small traits: [`Transport`] opens, [`Acceptor`] accepts connections,
//! [`Connection`] moves octets. Each transport is a folder with the same set of files (`acceptor`,
//! `connection`, `connector`, `mod`). None of them interprets the octets, except for the boundaries
//! of messages ([`Messages`]). [`Reactor`] waits for many of them at once.
//!
//! A connection offers both ways of waiting: `try_*` for a thread that serves
//! many connections through a reactor and must not wait on one, and
//! `recv`/`send_all` with a [`Deadline`] for a thread that has a connection
//! to itself. A thread that has it for a while can be called away from
//! [`recv_until_interrupted`](Connection::recv_until_interrupted).

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod activation;
mod address;
mod endpoint;
mod error;
#[cfg(feature = "faults")]
pub mod faults;
mod inet;
mod ip_options;
#[cfg(feature = "multicast")]
pub mod multicast;
mod names;
mod reactor;
mod remote;
mod setup;
mod shared;
#[cfg(feature = "shm")]
pub mod shm;
mod stream;
mod sys;
pub mod tcp;
mod timed;
#[cfg(feature = "tls")]
pub mod tls;
#[cfg(feature = "trace")]
pub mod trace;
#[cfg(feature = "udp")]
pub mod udp;
#[cfg(feature = "uds")]
pub mod uds;
mod wait_policy;

use std::fmt;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub use address::Address;
pub use chronorb_rt::Deadline;
pub use endpoint::{Endpoint, EndpointError, parse_endpoints};
pub use error::{AcceptError, ConnectError, IoError, ListenError, SendError};
pub use names::{addresses_of as host_addresses, look_up_aside};
pub use reactor::{Event, Interest, Reactor};
pub use remote::{Credentials, Remote, RemoteAddress};
pub use setup::{Messages, Setup, SocketOptions};
pub use sys::interfaces::interface_addresses;
pub use sys::{dont_route, packet_priority, set_packet_priority};
pub use wait_policy::WaitPolicy;

/// The unit in which a connection carries octets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Carriage {
    /// A stream: all octets, in order, cut at any point.
    Stream,
    /// Messages, each complete or not at all. Some may be lost, duplicated or reordered.
    ///
    /// A message has at most `largest` octets ([`IoError::TooLarge`] beyond that). One or more
    /// whole messages are sent at a time; [`try_send_both`](Connection::try_send_both) and
    /// [`send_both`](Connection::send_both) get one message in two pieces. Received octets are
    /// whole messages as [`Messages`] defines them; the transport drops all others. If a message is
    /// longer than the given room, its rest follows.
    Messages {
        /// Octets of the longest message that can be sent.
        largest: usize,
        /// Whether it receives messages of any number of peers, and sends none. A malformed message
        /// does not affect the next one.
        many_peers: bool,
    },
}

/// One kind of transport.
pub trait Transport: fmt::Debug + Send + Sync {
    /// The scheme of its endpoints, for example `iiop`.
    fn scheme(&self) -> &str;

    /// Checks that an endpoint has everything that this transport needs, and nothing else.
    ///
    /// # Errors
    /// [`EndpointError`] with the reason.
    fn check(&self, endpoint: &Endpoint) -> Result<(), EndpointError>;

    /// Opens every address of an endpoint for connections.
    ///
    /// # Errors
    /// [`ListenError`] names the address and the reason. No socket stays open then.
    fn listen(
        &self,
        endpoint: &Endpoint,
        setup: Setup,
    ) -> Result<Vec<Box<dyn Acceptor>>, ListenError>;

    /// Connects to a peer.
    ///
    /// # Errors
    /// [`ConnectError`]; at the latest when `deadline` has passed.
    fn connect(
        &self,
        address: &Address,
        setup: Setup,
        deadline: Deadline,
    ) -> Result<Box<dyn Connection>, ConnectError>;

    /// Reads the files again that it was configured by, for connections from now on. By default
    /// there are none.
    ///
    /// # Errors
    /// An unusable file. Nothing has changed then.
    fn reload(&self) -> io::Result<()> {
        Ok(())
    }
}

/// An open endpoint. Never waits: a [`Reactor`] does.
pub trait Acceptor: AsFd + fmt::Debug + Send + Sync {
    /// Takes the next connection, or `None` where there is none at present.
    ///
    /// # Errors
    /// [`AcceptError::Exhausted`] where no descriptor is left: try again
    /// later; [`AcceptError::Failed`] for anything else.
    fn accept(&self) -> Result<Option<Box<dyn Connection>>, AcceptError>;

    /// Takes the next connection as [`accept`](Self::accept) does, or names a connection with input
    /// by its [token](Connection::set_token). The caller reads that connection at once, because
    /// its descriptor does not report this input, and calls this again before it waits.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    fn next_arrival(&self) -> Result<Option<AcceptorEvent>, AcceptError> {
        Ok(self.accept()?.map(AcceptorEvent::Connection))
    }

    /// Returns the addresses at which peers reach the acceptor, the preferred one first. Object
    /// references publish them. There is at least one.
    fn published(&self) -> &[Address];
}

/// The event that an [`Acceptor`] reports.
#[derive(Debug)]
pub enum AcceptorEvent {
    /// A connection of a new peer.
    Connection(Box<dyn Connection>),
    /// Input of the connection with this token.
    Input(u64),
}

/// Returns the octets of slices after the first `sent`, without empty slices.
pub fn unsent<'s>(slices: &'s [IoSlice<'_>], mut sent: usize) -> impl Iterator<Item = &'s [u8]> {
    slices.iter().filter_map(move |slice| {
        let rest = slice.get(sent..).unwrap_or_default();
        sent = sent.saturating_sub(slice.len());
        (!rest.is_empty()).then_some(rest)
    })
}

/// Whether the peer of a connection of octets has ended its direction, perhaps behind octets that
/// are still to be read, as far as the descriptor tells. Takes nothing out, so another thread may
/// receive meanwhile. A descriptor that is no socket of a stream tells nothing.
#[cold]
pub fn has_hung_up(connection: impl AsFd) -> bool {
    let ends = PollFlags::RDHUP | PollFlags::HUP;
    let mut looked = [PollFd::new(&connection, PollFlags::RDHUP)];
    let found = poll(&mut looked, Some(&Timespec::default()));
    found == Ok(1) && looked[0].revents().intersects(ends)
}

/// A connection to a peer.
///
/// At most one thread at a time receives, and at most one sends; both may do so at the same time,
/// while any number of threads call the other methods. The descriptor is readable when
/// [`try_recv`](Self::try_recv) may find something, and writable when [`try_send`](Self::try_send)
/// may continue, both as edges. A thread that got an edge continues until [`IoError::WouldBlock`],
/// or, with a stream, until a read did not fill its buffer. If the descriptor of a transport is not
/// the one that has room (it is a set, or a doorbell), room is reported as input: a thread that
/// waits for room tries to send after any event.
pub trait Connection: AsFd + fmt::Debug + Send + Sync {
    /// Returns the unit in which it carries octets.
    fn carriage(&self) -> Carriage {
        Carriage::Stream
    }

    /// Returns the reason why the two sides did not agree, if that ended the connection, for an
    /// operator.
    fn problem(&self) -> Option<String> {
        None
    }

    /// Whether it can carry messages already. An accepted connection may first have to complete a
    /// handshake, which it does while it is received from. If that takes too long, the connection
    /// is ended.
    fn is_established(&self) -> bool {
        true
    }

    /// Receives available octets, without waiting. A connection of messages returns 0 if it has
    /// dropped many of them without reaching the end: there may be more.
    ///
    /// # Errors
    /// [`IoError::WouldBlock`] if there are no octets; [`IoError::Ended`] at the end of the stream.
    fn try_recv(&self, room: &mut [u8]) -> Result<usize, IoError>;

    /// Receives as [`try_recv`](Self::try_recv) does, for a polling thread. If the transport
    /// supports it, the peer sends no wake-ups meanwhile.
    ///
    /// After this call the descriptor may report no input until [`try_recv`](Self::try_recv) or a
    /// method that waits was called.
    ///
    /// # Errors
    /// As [`try_recv`](Self::try_recv).
    fn look(&self, room: &mut [u8]) -> Result<usize, IoError> {
        self.try_recv(room)
    }

    /// Sends as much as fits into the transport's buffer, without waiting.
    ///
    /// # Errors
    /// [`IoError::WouldBlock`] where nothing fits.
    fn try_send(&self, octets: &[u8]) -> Result<usize, IoError>;

    /// Sends as much as fits of two pieces, one after the other, without waiting.
    ///
    /// # Errors
    /// As [`try_send`](Self::try_send).
    fn try_send_both(&self, first: &[u8], second: &[u8]) -> Result<usize, IoError>;

    /// Receives at least one octet, and waits for it.
    ///
    /// The wait ends at the deadline, or later by at most an eighth of the time that was left.
    ///
    /// # Errors
    /// [`IoError::TimedOut`] at the deadline; [`IoError::Ended`] at the end of the stream.
    fn recv(&self, room: &mut [u8], deadline: Deadline) -> Result<usize, IoError>;

    /// Receives as [`recv`](Self::recv) does, directly after a message was sent. The caller made
    /// the deadline, which lay `whole` nanoseconds ahead then, and has waited only for that
    /// message; 0 if it has waited longer. A transport that sent the message without a wait need
    /// not look at the clock again.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    fn recv_after_send(
        &self,
        room: &mut [u8],
        deadline: Deadline,
        whole: u64,
    ) -> Result<usize, IoError> {
        let _ = whole;
        self.recv(room, deadline)
    }

    /// Receives at least one octet, and waits for it; `None` where the wait was
    /// [interrupted](Self::interrupt), or its limit is over, if there is one: that wait may be
    /// longer by an eighth, and later ones without a limit may end by it.
    ///
    /// # Errors
    /// [`IoError::Ended`] at the end of the stream.
    fn recv_until_interrupted(
        &self,
        room: &mut [u8],
        limit: Option<Duration>,
    ) -> Result<Option<usize>, IoError>;

    /// Makes [`recv_until_interrupted`](Self::recv_until_interrupted) return without waiting, until
    /// [`resume`](Self::resume). A thread that is waiting there already has to be sent a signal
    /// after this (a [`Kick`](chronorb_rt::Kick)).
    fn interrupt(&self);

    /// Lets threads wait again.
    fn resume(&self);

    /// Sends all octets, and waits until the transport has taken them.
    ///
    /// # Errors
    /// [`SendError`] with the number of octets that were sent before.
    fn send_all(&self, octets: &[u8], deadline: Deadline) -> Result<(), SendError>;

    /// Sends all octets of two pieces, one after the other, as [`send_all`](Self::send_all) does.
    ///
    /// # Errors
    /// As [`send_all`](Self::send_all).
    fn send_both(&self, first: &[u8], second: &[u8], deadline: Deadline) -> Result<(), SendError>;

    /// Sends as much as fits of slices, one after the other, without waiting; `sent` octets of them
    /// were sent before, and at least one was not. A transport may leave some to another call
    /// though they fit.
    ///
    /// # Errors
    /// As [`try_send`](Self::try_send).
    fn try_send_slices(&self, slices: &[IoSlice<'_>], sent: usize) -> Result<usize, IoError> {
        let mut rest = unsent(slices, sent);
        match (rest.next().unwrap_or_default(), rest.next()) {
            (first, None) => self.try_send(first),
            (first, Some(second)) => self.try_send_both(first, second),
        }
    }

    /// Permits the acceptor to report input of this connection by a token
    /// ([`Acceptor::next_arrival`]). Transports whose acceptors do not process input ignore it.
    fn set_token(&self, token: u64) {
        let _ = token;
    }

    /// Whether an idle connection has ended, or has received octets, which can only be a farewell.
    /// Does not consume any octets.
    fn is_stale(&self) -> bool;

    /// Ends both directions, so that a thread that waits on it returns.
    fn shutdown(&self);

    /// Shuts down as [`shutdown`](Self::shutdown) does, for peers that are cut off. Octets in
    /// transit are lost in both directions, and a peer that waits for room to send is told when the
    /// connection is dropped.
    fn abort(&self) {
        self.shutdown();
    }

    /// Returns the properties of the connection as the kernel has them. All are set. Buffers are
    /// twice the requested size, because the kernel includes its own overhead (socket(7)).
    ///
    /// # Errors
    /// Where the connection is broken.
    fn options(&self) -> io::Result<SocketOptions>;

    /// The other side, for messages to people.
    fn peer(&self) -> String;

    /// The protocol, and the address of the other side. Asks the kernel, and allocates nothing.
    fn remote(&self) -> Remote {
        Remote::UNKNOWN
    }

    /// Returns the certificate (X.509, DER) by which the peer has proved its identity, if it has.
    fn peer_certificate(&self) -> Option<Vec<u8>> {
        None
    }
}
