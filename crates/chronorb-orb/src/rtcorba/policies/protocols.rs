//! Protocols, and the properties of their connections.

use std::sync::Arc;

use chronorb_giop::{ProtocolValue, TAG_DIOP, TAG_INTERNET_IOP, TAG_UIOP, TcpPropertiesValue};
use chronorb_transport::SocketOptions;
use thiserror::Error;

use crate::rtcorba::Priority;

/// A protocol, and the properties of its connections (`RTCORBA::Protocol`).
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Protocol {
    /// IIOP: GIOP over TCP.
    Iiop(TcpProtocolProperties),
    /// UIOP: GIOP over Unix-domain sockets.
    Uiop(UnixDomainProtocolProperties),
    /// DIOP: GIOP in UDP datagrams.
    Diop(UserDatagramProtocolProperties),
    /// Any other protocol, by its [tag](crate::PluggableProtocol::tag), with properties of its own.
    /// A protocol that this ORB does not have is skipped.
    Other(u32),
}

/// Properties of connections of UIOP (as TAO's `RTCORBA::UnixDomainProtocolProperties`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct UnixDomainProtocolProperties {
    /// Octets of the send buffer (`SO_SNDBUF`), at most 2³¹-1; 0 for the system's choice.
    pub send_buffer_size: u32,
    /// Octets of the receive buffer (`SO_RCVBUF`), at most 2³¹-1; 0 for the system's choice.
    pub recv_buffer_size: u32,
}

/// Properties of the sockets of DIOP (as TAO's `RTCORBA::UserDatagramProtocolProperties`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct UserDatagramProtocolProperties {
    /// Octets of the send buffer (`SO_SNDBUF`), at most 2³¹-1; 0 for the system's choice.
    pub send_buffer_size: u32,
    /// Octets of the receive buffer (`SO_RCVBUF`), at most 2³¹-1; 0 for the system's choice.
    pub recv_buffer_size: u32,
    /// The marks of packets.
    pub network_priority: NetworkPriority,
}

/// `RTCORBA::TCPProtocolProperties`, and how packets are marked for the network (as TAO's
/// `enable_network_priority`, which does not travel with references).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TcpProtocolProperties {
    /// Octets of the send buffer (`SO_SNDBUF`), at most 2³¹-1; 0 for the system's choice.
    pub send_buffer_size: u32,
    /// Octets of the receive buffer (`SO_RCVBUF`), at most 2³¹-1; 0 for the system's choice.
    pub recv_buffer_size: u32,
    /// Probe idle peers (`SO_KEEPALIVE`).
    pub keep_alive: bool,
    /// Reach only hosts of the networks that this machine is attached to (`SO_DONTROUTE`).
    pub dont_route: bool,
    /// Send small messages at once (`TCP_NODELAY`). Without it a request may wait for the
    /// acknowledgement of the one before.
    pub no_delay: bool,
    /// The marks of packets.
    pub network_priority: NetworkPriority,
}

impl Default for TcpProtocolProperties {
    /// Returns the properties of connections without a policy: the system's buffers, keep-alive and
    /// no-delay.
    fn default() -> Self {
        Self {
            send_buffer_size: 0,
            recv_buffer_size: 0,
            keep_alive: true,
            dont_route: false,
            no_delay: true,
            network_priority: NetworkPriority::Unmarked,
        }
    }
}

/// The marks of packets for routers (DSCP) and for the queues of this machine (`SO_PRIORITY`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum NetworkPriority {
    /// Not at all: the kernel's choice.
    #[default]
    Unmarked,
    /// By the CORBA priority of the connection. Each seventh of the range is one of the class
    /// selectors CS0 to CS6 (RFC 2474; DSCP 0, 8 … 48), and `SO_PRIORITY` 0 to 6. CS7 is reserved
    /// for network control. A connection without a priority has CS0; the connection of a band has
    /// the band's highest priority.
    FromPriority,
    /// This DSCP, 0 to 63, for all; `SO_PRIORITY` is the class that it is in, at most 6.
    Fixed(u8),
}

/// One or more protocols, each once, in order of preference (`RTCORBA::ProtocolList`).
///
/// A handle: clones share the list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Protocols(Arc<[Protocol]>);

/// A list of protocols cannot be used. The number is an index into it, from 0.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ProtocolsError {
    /// There is no protocol.
    #[error("there is no protocol in the list")]
    Empty,
    /// A protocol is there twice.
    #[error("protocol {0} is in the list already")]
    Duplicate(usize),
    /// A buffer size is greater than 2³¹-1, or a DSCP greater than 63.
    #[error("a property of protocol {0} is out of range")]
    OutOfRange(usize),
}

impl Protocol {
    /// The tag of its profiles in object references (`IOP::ProfileId`).
    pub const fn tag(&self) -> u32 {
        match self {
            Self::Iiop(_) => TAG_INTERNET_IOP,
            Self::Uiop(_) => TAG_UIOP,
            Self::Diop(_) => TAG_DIOP,
            Self::Other(tag) => *tag,
        }
    }

    /// The properties of its sockets, where it has those of TCP or some of them.
    fn properties(&self) -> TcpProtocolProperties {
        let default = TcpProtocolProperties::default();
        match *self {
            Self::Iiop(properties) => properties,
            Self::Uiop(properties) => TcpProtocolProperties {
                send_buffer_size: properties.send_buffer_size,
                recv_buffer_size: properties.recv_buffer_size,
                ..default
            },
            Self::Diop(properties) => TcpProtocolProperties {
                send_buffer_size: properties.send_buffer_size,
                recv_buffer_size: properties.recv_buffer_size,
                network_priority: properties.network_priority,
                ..default
            },
            Self::Other(_) => default,
        }
    }
}

impl Protocols {
    /// A list of protocols.
    ///
    /// # Errors
    /// [`ProtocolsError`] names the first protocol at fault.
    pub fn new(protocols: &[Protocol]) -> Result<Self, ProtocolsError> {
        if protocols.is_empty() {
            return Err(ProtocolsError::Empty);
        }
        for (index, protocol) in protocols.iter().enumerate() {
            if protocols[..index].iter().any(|p| p.tag() == protocol.tag()) {
                return Err(ProtocolsError::Duplicate(index));
            }
            if !protocol.properties().are_in_range() {
                return Err(ProtocolsError::OutOfRange(index));
            }
        }
        Ok(Self(protocols.into()))
    }

    /// IIOP alone, with these properties.
    ///
    /// # Errors
    /// [`ProtocolsError::OutOfRange`]
    pub fn iiop(properties: TcpProtocolProperties) -> Result<Self, ProtocolsError> {
        Self::new(&[Protocol::Iiop(properties)])
    }

    /// The protocols, the preferred one first.
    pub fn as_slice(&self) -> &[Protocol] {
        &self.0
    }

    /// Their tags, in their order.
    pub(crate) fn tags(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(Protocol::tag)
    }

    /// Returns its position in the order of preference; `None` if it may not be used.
    pub(crate) fn rank(&self, tag: u32) -> Option<usize> {
        self.tags().position(|other| other == tag)
    }

    /// Whether an ORB, which `has` some tags, has at least one of them.
    pub(crate) fn are_usable(&self, has: impl Fn(u32) -> bool) -> bool {
        self.tags().any(has)
    }

    /// Returns the socket options of a protocol, for requests of this priority, with these protocol
    /// policies or none.
    pub(crate) fn socket_options(
        these: Option<&Self>,
        tag: u32,
        priority: Option<Priority>,
    ) -> SocketOptions {
        let mut protocols = these.iter().flat_map(|these| these.as_slice());
        let protocol = protocols.find(|protocol| protocol.tag() == tag);
        let properties = protocol.map(Protocol::properties).unwrap_or_default();
        properties.socket_options(priority)
    }

    /// Converts those protocols that an ORB `has` to their wire form.
    pub(crate) fn to_values(&self, has: impl Fn(u32) -> bool) -> Vec<ProtocolValue> {
        let value = |protocol: &Protocol| match protocol {
            Protocol::Iiop(p) => ProtocolValue::Iiop(TcpPropertiesValue {
                send_buffer_size: p.send_buffer_size as i32,
                recv_buffer_size: p.recv_buffer_size as i32,
                keep_alive: p.keep_alive,
                dont_route: p.dont_route,
                no_delay: p.no_delay,
            }),
            other => ProtocolValue::Other(other.tag()),
        };
        let had = self.0.iter().filter(|p| has(p.tag()));
        had.map(value).collect()
    }

    /// Converts the protocols of a reference; `None` if they are invalid.
    pub(crate) fn from_values(values: &[ProtocolValue]) -> Option<Self> {
        let protocol = |value: &ProtocolValue| match value {
            ProtocolValue::Iiop(tcp) => Protocol::Iiop(TcpProtocolProperties {
                send_buffer_size: tcp.send_buffer_size.max(0).cast_unsigned(),
                recv_buffer_size: tcp.recv_buffer_size.max(0).cast_unsigned(),
                keep_alive: tcp.keep_alive,
                dont_route: tcp.dont_route,
                no_delay: tcp.no_delay,
                network_priority: NetworkPriority::Unmarked,
            }),
            ProtocolValue::Other(tag) => Protocol::Other(*tag),
        };
        Self::new(&values.iter().map(protocol).collect::<Vec<_>>()).ok()
    }
}

impl TcpProtocolProperties {
    /// Returns the socket options of a connection, or lane, of this priority.
    pub(crate) fn socket_options(&self, priority: Option<Priority>) -> SocketOptions {
        let size = |octets| (octets > 0).then_some(octets);
        let dscp = match self.network_priority {
            NetworkPriority::Unmarked => None,
            NetworkPriority::FromPriority => Some(class_of(priority) * DSCP_OF_CLASS),
            NetworkPriority::Fixed(dscp) => Some(dscp),
        };
        SocketOptions {
            no_delay: self.no_delay,
            keep_alive: self.keep_alive,
            peer_timeout: None,
            dont_route: self.dont_route,
            dscp,
            priority: dscp.map(|dscp| u32::from((dscp / DSCP_OF_CLASS).min(HIGHEST_CLASS))),
            send_buffer: size(self.send_buffer_size),
            receive_buffer: size(self.recv_buffer_size),
        }
    }

    fn are_in_range(&self) -> bool {
        let greatest = i32::MAX.cast_unsigned();
        let dscp = match self.network_priority {
            NetworkPriority::Fixed(dscp) => dscp,
            NetworkPriority::Unmarked | NetworkPriority::FromPriority => 0,
        };
        self.send_buffer_size <= greatest && self.recv_buffer_size <= greatest && dscp < 64
    }
}

/// The class selector of a priority.
fn class_of(priority: Option<Priority>) -> u8 {
    let value = i32::from(priority.unwrap_or_default().value());
    let classes = i32::from(HIGHEST_CLASS) + 1;
    // Below the number of classes, since the value is below that of priorities.
    (value * classes / PRIORITIES) as u8
}

const PRIORITIES: i32 = i16::MAX as i32 + 1;
/// Also the greatest `SO_PRIORITY` that needs no right (socket(7)).
const HIGHEST_CLASS: u8 = 6;
/// A class selector is the upper three bits of a DSCP.
const DSCP_OF_CLASS: u8 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: TcpProtocolProperties = TcpProtocolProperties {
        send_buffer_size: 0,
        recv_buffer_size: 0,
        keep_alive: false,
        dont_route: false,
        no_delay: false,
        network_priority: NetworkPriority::Unmarked,
    };

    fn marked(network_priority: NetworkPriority) -> TcpProtocolProperties {
        TcpProtocolProperties {
            network_priority,
            ..PLAIN
        }
    }

    #[test]
    fn without_a_policy_connections_are_as_the_transport_makes_them() {
        let options = TcpProtocolProperties::default().socket_options(Some(Priority::MAX));
        assert_eq!(options, SocketOptions::default());
    }

    #[test]
    fn a_seventh_of_the_priorities_each_is_a_class() {
        use NetworkPriority::{Fixed, FromPriority, Unmarked};
        for (network_priority, value, dscp, queue) in [
            (Unmarked, Some(20_000), None, None),
            (FromPriority, None, Some(0), Some(0)),
            (FromPriority, Some(0), Some(0), Some(0)),
            (FromPriority, Some(4_681), Some(0), Some(0)),
            (FromPriority, Some(4_682), Some(8), Some(1)),
            (FromPriority, Some(16_384), Some(24), Some(3)),
            (FromPriority, Some(i16::MAX), Some(48), Some(6)),
            (Fixed(46), Some(0), Some(46), Some(5)),
            (Fixed(63), None, Some(63), Some(6)),
        ] {
            let priority = value.map(|value| Priority::new(value).expect("not negative"));
            let options = marked(network_priority).socket_options(priority);
            assert_eq!(
                (options.dscp, options.priority),
                (dscp, queue),
                "{network_priority:?} at {value:?}"
            );
        }
    }

    #[test]
    fn lists_that_cannot_be_used_are_refused_by_what_is_wrong() {
        let iiop = Protocol::Iiop(PLAIN);
        let large = Protocol::Iiop(TcpProtocolProperties {
            send_buffer_size: 1 << 31,
            ..PLAIN
        });
        let dscp = Protocol::Iiop(marked(NetworkPriority::Fixed(64)));
        for (list, error) in [
            (vec![], ProtocolsError::Empty),
            (
                vec![iiop.clone(), Protocol::Other(1), iiop],
                ProtocolsError::Duplicate(2),
            ),
            (
                vec![Protocol::Other(1), large],
                ProtocolsError::OutOfRange(1),
            ),
            (vec![dscp], ProtocolsError::OutOfRange(0)),
        ] {
            assert_eq!(Protocols::new(&list), Err(error), "{list:?}");
        }
    }

    #[test]
    fn protocols_that_are_not_there_are_passed_over() {
        let protocols = |list: &[Protocol]| Protocols::new(list).expect("they differ");
        let has = |tag| tag == TAG_INTERNET_IOP;
        let only = protocols(&[Protocol::Other(7)]);
        assert!(!only.are_usable(has));
        let second = protocols(&[Protocol::Other(7), Protocol::Iiop(PLAIN)]);
        assert!(second.are_usable(has));
        let back = Protocols::from_values(&second.to_values(has));
        assert_eq!(back, Some(protocols(&[Protocol::Iiop(PLAIN)])));
    }
}
