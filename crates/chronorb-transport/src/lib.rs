//! Transports of chronorb: how octets get from one endsystem to another.
//!
//! A transport is three small traits: [`Transport`] opens, [`Acceptor`] takes
//! connections in, [`Connection`] moves octets. Each transport is a folder
//! with the same set of files (`acceptor`, `connection`, `connector`, `mod`), and none
//! knows what the octets mean. [`Reactor`] waits for many of them at once.
//!
//! A connection offers both ways of waiting: `try_*` for a thread that serves
//! many connections through a reactor and must not wait on one, and
//! `recv`/`send_all` with a [`Deadline`] for a thread that has a connection
//! to itself. A thread that has it for a while can be called away from
//! [`recv_until_interrupted`](Connection::recv_until_interrupted).

mod endpoint;
mod error;
mod reactor;
pub mod tcp;
mod waiting;

use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use chronorb_rt::Deadline;

pub use endpoint::{Endpoint, EndpointError, parse_endpoints};
pub use error::{AcceptError, ConnectError, IoError, ListenError, SendError};
pub use reactor::{Event, Interest, Reactor};
pub use waiting::Waiting;

/// Where a peer can be reached: a host name or address, and a port.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Address {
    /// A host name, or an IPv4 or IPv6 address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Properties that a transport sets on its sockets, on those that listen, and on both ends of a
/// connection.
///
/// What the kernel refuses is an error where a socket listens or connects, and names the option; a
/// connection that was taken in and cannot have them ends at once. [`Connection::options`] tells
/// what holds.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct SocketOptions {
    /// Send small messages at once (`TCP_NODELAY`).
    pub no_delay: bool,
    /// Probe idle peers (`SO_KEEPALIVE`).
    pub keep_alive: bool,
    /// Reach only hosts of the networks that this machine is attached to (`SO_DONTROUTE`).
    pub dont_route: bool,
    /// The differentiated services code point of packets, 0 to 63 (`IP_TOS`, `IPV6_TCLASS`); `None`
    /// leaves the kernel's choice.
    pub dscp: Option<u8>,
    /// The priority of packets in this machine's queues, 0 to 6, and above with `CAP_NET_ADMIN`
    /// (`SO_PRIORITY`); `None` leaves the kernel's choice, which follows `dscp`.
    pub priority: Option<u32>,
    /// Send buffer in octets, cut to `net.core.wmem_max`; `None` leaves the kernel's choice.
    pub send_buffer: Option<u32>,
    /// Receive buffer in octets, cut to `net.core.rmem_max`; `None` leaves the kernel's choice.
    pub receive_buffer: Option<u32>,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self {
            no_delay: true,
            keep_alive: true,
            dont_route: false,
            dscp: None,
            priority: None,
            send_buffer: None,
            receive_buffer: None,
        }
    }
}

/// One kind of transport.
pub trait Transport: fmt::Debug + Send + Sync {
    /// The scheme of its endpoints, for example `iiop`.
    fn scheme(&self) -> &'static str;

    /// Opens every address of an endpoint for connections.
    ///
    /// # Errors
    /// [`ListenError`] says which address, and why not. Nothing stays open then.
    fn listen(
        &self,
        endpoint: &Endpoint,
        options: SocketOptions,
    ) -> Result<Vec<Box<dyn Acceptor>>, ListenError>;

    /// Connects to a peer.
    ///
    /// # Errors
    /// [`ConnectError`]; at the latest when `deadline` has passed.
    fn connect(
        &self,
        address: &Address,
        options: SocketOptions,
        deadline: Deadline,
    ) -> Result<Box<dyn Connection>, ConnectError>;
}

/// An open endpoint. Never waits: a [`Reactor`] does.
pub trait Acceptor: AsFd + fmt::Debug + Send + Sync {
    /// Takes the next connection, or `None` where there is none at present.
    ///
    /// # Errors
    /// [`AcceptError::Exhausted`] where no descriptor is left: try again
    /// later; [`AcceptError::Failed`] for anything else.
    fn accept(&self) -> Result<Option<Box<dyn Connection>>, AcceptError>;

    /// Where peers reach it: what object references publish.
    fn published(&self) -> &Address;
}

/// A connected stream of octets.
pub trait Connection: AsFd + fmt::Debug + Send + Sync {
    /// Receives what is there, without waiting.
    ///
    /// # Errors
    /// [`IoError::WouldBlock`] where nothing is there; [`IoError::Ended`] at the end of the stream.
    fn try_recv(&self, room: &mut [u8]) -> Result<usize, IoError>;

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

    /// Receives at least one octet, and waits for it; `None` where the wait was
    /// [interrupted](Self::interrupt), or its limit is over, if there is one: that wait may be longer
    /// by an eighth, and later ones without a limit may end by it.
    ///
    /// # Errors
    /// [`IoError::Ended`] at the end of the stream.
    fn recv_until_interrupted(
        &self,
        room: &mut [u8],
        limit: Option<Duration>,
    ) -> Result<Option<usize>, IoError>;

    /// Lets no thread wait any more in [`recv_until_interrupted`](Self::recv_until_interrupted),
    /// until [`resume`](Self::resume). A thread that waits there already has to be sent a signal
    /// after this (a [`Kick`](chronorb_rt::Kick)).
    fn interrupt(&self);

    /// Lets threads wait again.
    fn resume(&self);

    /// Sends all octets, and waits until the transport has taken them.
    ///
    /// # Errors
    /// [`SendError`] says how many octets went before.
    fn send_all(&self, octets: &[u8], deadline: Deadline) -> Result<(), SendError>;

    /// Sends all octets of two pieces, one after the other, as [`send_all`](Self::send_all) does.
    ///
    /// # Errors
    /// As [`send_all`](Self::send_all).
    fn send_both(&self, first: &[u8], second: &[u8], deadline: Deadline) -> Result<(), SendError>;

    /// Whether a connection on which nothing is due has ended, or has something to say all the
    /// same, which can only be a goodbye. Takes nothing out of it.
    fn is_stale(&self) -> bool;

    /// Ends both directions, so that a thread that waits on it returns.
    fn shutdown(&self);

    /// The properties of the connection as the kernel has them. All are known, and buffers are
    /// twice what was asked for: the kernel counts its own book-keeping in (socket(7)).
    ///
    /// # Errors
    /// Where the connection is broken.
    fn options(&self) -> io::Result<SocketOptions>;

    /// The other side, for messages to people.
    fn peer(&self) -> String;
}

/// How far a wait may be longer than asked for before the socket's time-out is set anew.
///
/// Setting it costs a system call; a call with the same time-out as the one before must not pay it.
fn time_out_fits(set: Duration, wanted: Duration) -> bool {
    set >= wanted && set - wanted <= wanted / 8
}
