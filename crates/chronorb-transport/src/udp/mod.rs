//! UDP, the transport of DIOP. Each message is one datagram, which may be lost, duplicated or
//! delayed.
//!
//! The options of an endpoint are `portspan` and `hostname_in_ior`, as for TCP, and `max`: the
//! octets of the longest message that its connections send, at most and by default the capacity of
//! a datagram ([`LARGEST_IPV4`], [`LARGEST_IPV6`]). Longer ones are refused with
//! [`IoError::TooLarge`](crate::IoError::TooLarge); long ones are sent in several packets, and one
//! lost packet loses the message.
//!
//! There is nothing to accept in UDP. An acceptor makes a socket for each peer whose first datagram
//! is a message, and connects it to that peer, so that each has a buffer of its own in the kernel.
//! The acceptors of a process make sockets for a quarter of the descriptors that the process may
//! have; beyond that [`accept`](Acceptor::accept) returns
//! [`Exhausted`](crate::AcceptError::Exhausted) until a connection is dropped. What is no message
//! is dropped and [counted](dropped).

mod acceptor;
mod arrivals;
mod connection;
mod connector;
mod peers;

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use chronorb_rt::Deadline;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};

use self::acceptor::UdpAcceptor;
use crate::inet::{HOSTNAME_IN_IOR, HostEndpoint, PORT_SPAN, resolve};
use crate::{
    Acceptor, Address, ConnectError, Connection, Endpoint, EndpointError, ListenError, Setup,
    Transport,
};

/// UDP over IPv4 and IPv6.
#[derive(Clone, Copy, Debug, Default)]
pub struct Udp;

/// Octets of the longest message by IPv4: a packet's 65535 without the headers of IP and UDP.
pub const LARGEST_IPV4: usize = 65_507;
/// Octets of the longest message by IPv6: 65535 without the header of UDP.
pub const LARGEST_IPV6: usize = 65_527;

/// Returns the number of datagrams that this process has dropped so far: those that were not
/// messages, or had no sender that could be answered.
pub fn dropped() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

impl Transport for Udp {
    fn scheme(&self) -> &str {
        "diop"
    }

    fn check(&self, endpoint: &Endpoint) -> Result<(), EndpointError> {
        HostEndpoint::of(endpoint)?;
        max(endpoint)?;
        endpoint.check_options(&[HOSTNAME_IN_IOR, MAX, PORT_SPAN])
    }

    fn listen(
        &self,
        endpoint: &Endpoint,
        setup: Setup,
    ) -> Result<Vec<Box<dyn Acceptor>>, ListenError> {
        let acceptors = UdpAcceptor::open(endpoint, setup)?.into_iter();
        Ok(acceptors.map(|acceptor| Box::new(acceptor) as _).collect())
    }

    /// Only sending shows whether the peer exists.
    fn connect(
        &self,
        address: &Address,
        setup: Setup,
        deadline: Deadline,
    ) -> Result<Box<dyn Connection>, ConnectError> {
        let mut last = io::ErrorKind::AddrNotAvailable.into();
        for peer in resolve(address, deadline)? {
            match connector::connect(peer, setup) {
                Ok(connection) => return Ok(Box::new(connection)),
                Err(error) => last = error,
            }
        }
        Err(ConnectError::Refused {
            address: address.to_string(),
            source: last,
        })
    }
}

/// A UDP socket for this kind of address, closed on `exec`.
fn socket(address: &SocketAddr) -> io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC;
    let protocol = Some(net::ipproto::UDP);
    Ok(net::socket_with(
        family,
        SocketType::DGRAM,
        flags,
        protocol,
    )?)
}

/// The longest message that can go to a peer.
fn largest_to(peer: &SocketAddr) -> usize {
    if peer.ip().to_canonical().is_ipv4() {
        LARGEST_IPV4
    } else {
        LARGEST_IPV6
    }
}

/// The longest message that the connections of an endpoint shall send.
fn max(endpoint: &Endpoint) -> Result<usize, EndpointError> {
    let Some(text) = endpoint.option(MAX) else {
        return Ok(LARGEST_IPV6);
    };
    let max = text.parse().ok();
    max.filter(|max| (LEAST_MAX..=LARGEST_IPV6).contains(max))
        .ok_or_else(|| {
            endpoint.error(format!(
                "the max {text:?} is not a number from {LEAST_MAX} to {LARGEST_IPV6}"
            ))
        })
}

fn count_dropped() {
    DROPPED.fetch_add(1, Ordering::Relaxed);
}

static DROPPED: AtomicU64 = AtomicU64::new(0);

/// The option of an endpoint that bounds the length of sent messages.
const MAX: &str = "max";
/// A lower bound of the datagrams that every host accepts (RFC 1122, 3.3.2).
const LEAST_MAX: usize = 512;
/// The number of datagrams without a message after which an attempt to receive ends. More of them
/// cause another event.
const MAX_IN_VAIN: usize = 1024;
/// Octets of any datagram, at most.
const ROOM: usize = 1 << 16;
