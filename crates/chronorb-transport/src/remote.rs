//! The peer of a connection, as the kernel reports it.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::net;
#[cfg(feature = "uds")]
use rustix::net::sockopt;

/// The peer of a connection: its protocol, and its address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Remote {
    /// The scheme of the protocol, for example `iiop`; empty if the transport does not report it.
    pub scheme: &'static str,
    /// The address of the peer.
    pub address: RemoteAddress,
}

/// The address of a peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RemoteAddress {
    /// A host and a port. The address may be one of IPv4 that is mapped into IPv6.
    Host(SocketAddr),
    /// A process of this machine.
    Process(Credentials),
    /// The transport does not report it, there are several peers, or the peer is gone.
    Unknown,
}

/// The credentials of a process, as the kernel noted them: of a client those of its `connect`, of a
/// server those of its `listen`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Credentials {
    /// The process; 0 where it is not visible from here.
    pub pid: i32,
    /// The effective user.
    pub uid: u32,
    /// The effective group.
    pub gid: u32,
}

impl Remote {
    /// An unknown peer.
    pub const UNKNOWN: Self = Self {
        scheme: "",
        address: RemoteAddress::Unknown,
    };

    /// A peer at an address of the Internet protocol.
    #[must_use]
    pub fn at_host(scheme: &'static str, address: Option<SocketAddr>) -> Self {
        Self {
            scheme,
            address: address.map_or(RemoteAddress::Unknown, RemoteAddress::Host),
        }
    }

    /// The peer of a connected socket of the Internet protocol.
    pub(crate) fn of_socket(scheme: &'static str, socket: impl AsFd) -> Self {
        Self::at_host(scheme, host_of(socket.as_fd()))
    }

    /// The peer of a Unix-domain socket.
    #[cfg(feature = "uds")]
    pub(crate) fn of_unix_socket(scheme: &'static str, socket: impl AsFd) -> Self {
        let address = match sockopt::socket_peercred(socket) {
            Ok(peer) => RemoteAddress::Process(Credentials {
                pid: peer.pid.as_raw_pid(),
                uid: peer.uid.as_raw(),
                gid: peer.gid.as_raw(),
            }),
            Err(_) => RemoteAddress::Unknown,
        };
        Self { scheme, address }
    }
}

/// The address of the peer of a connected socket of the Internet protocol.
pub(crate) fn host_of(socket: BorrowedFd<'_>) -> Option<SocketAddr> {
    let peer = net::getpeername(socket).ok().flatten()?;
    SocketAddr::try_from(peer).ok()
}
