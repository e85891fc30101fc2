//! The parameters of listening and connecting.

use std::time::Duration;

use chronorb_rt::Scheduling;

/// The properties that connections should have, on both ends.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The properties of their sockets.
    pub options: SocketOptions,
    /// The message format on the connections.
    pub messages: Messages,
    /// The scheduling of the thread that serves the connections, if it is known. Transports that do
    /// work of their own for connections do it with the same urgency.
    pub urgency: Option<Scheduling>,
}

/// The message format, as far as transports must know it: where a message ends.
///
/// A stream has no use for it. A datagram that is not one whole message is left out by it.
#[derive(Clone, Copy, Debug)]
pub struct Messages {
    /// Octets of the message that begins so, header included; `None` where no message does. It is
    /// given the beginning of a message of at least 16 octets, or a whole shorter one.
    pub len: fn(&[u8]) -> Option<usize>,
    /// The longest message that is taken, in octets.
    pub max: usize,
}

impl Messages {
    /// Octets without message boundaries, which are passed on as they arrive.
    pub const ANY: Self = Self {
        len: |octets| Some(octets.len()),
        max: usize::MAX,
    };
}

impl Default for Setup {
    /// Ordinary sockets, for octets of any kind.
    fn default() -> Self {
        Self {
            options: SocketOptions::default(),
            messages: Messages::ANY,
            urgency: None,
        }
    }
}

impl From<SocketOptions> for Setup {
    /// Sockets of these properties, for octets of any kind.
    fn from(options: SocketOptions) -> Self {
        Self {
            options,
            ..Self::default()
        }
    }
}

/// Properties that a transport sets on its listening sockets, and on both ends of a connection. A
/// transport ignores properties that its sockets do not have.
///
/// A property that the kernel refuses is an error of listening or connecting, which names the
/// option; an accepted connection that cannot have it ends at once.
/// [`Connection::options`](crate::Connection::options) returns the properties in force.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct SocketOptions {
    /// Send small messages at once (`TCP_NODELAY`).
    pub no_delay: bool,
    /// Probe idle peers (`SO_KEEPALIVE`).
    pub keep_alive: bool,
    /// The longest time without a sign of life of a peer, in whole milliseconds, at most 24 days:
    /// neither octets that were sent nor probes of an idle connection stay without an
    /// acknowledgement for longer (`TCP_USER_TIMEOUT`, and with `keep_alive` `TCP_KEEPIDLE` and
    /// `TCP_KEEPINTVL`, which have seconds). `None` leaves the kernel's choice, many minutes, and
    /// hours where a connection is idle.
    pub peer_timeout: Option<Duration>,
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
            peer_timeout: None,
            dont_route: false,
            dscp: None,
            priority: None,
            send_buffer: None,
            receive_buffer: None,
        }
    }
}
