//! The properties of sockets that send packets of IPv4 and IPv6, set and read back.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, sockopt};

use crate::{SocketOptions, sys};

/// Sets the options of the IP layer, before connecting or listening.
///
/// # Errors
/// Names the first option that the kernel refuses.
pub(crate) fn set(socket: &OwnedFd, options: SocketOptions) -> io::Result<()> {
    sys::set_dont_route(socket, options.dont_route).or_else(refused("SO_DONTROUTE"))?;
    if let Some(size) = options.send_buffer {
        sockopt::set_socket_send_buffer_size(socket, size as usize)
            .or_else(refused("SO_SNDBUF"))?;
    }
    if let Some(size) = options.receive_buffer {
        sockopt::set_socket_recv_buffer_size(socket, size as usize)
            .or_else(refused("SO_RCVBUF"))?;
    }
    if let Some(dscp) = options.dscp {
        set_dscp(socket, dscp)?;
    }
    // After the code point, with which the kernel sets a priority of its own choice.
    if let Some(priority) = options.priority {
        sys::set_packet_priority(socket, priority).or_else(refused("SO_PRIORITY"))?;
    }
    Ok(())
}

/// Reads the options of a socket of a protocol without TCP's `TCP_NODELAY` and `SO_KEEPALIVE`: the
/// result says that data are sent at once and that idle peers are not probed.
pub(crate) fn get(socket: &OwnedFd) -> io::Result<SocketOptions> {
    let octets = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
    Ok(SocketOptions {
        no_delay: true,
        keep_alive: false,
        peer_timeout: None,
        dont_route: sys::dont_route(socket)?,
        dscp: Some(dscp(socket)?),
        priority: Some(sys::packet_priority(socket)?),
        send_buffer: Some(octets(sockopt::socket_send_buffer_size(socket)?)),
        receive_buffer: Some(octets(sockopt::socket_recv_buffer_size(socket)?)),
    })
}

/// Sets the upper six bits of the octet; of a stream the kernel keeps the lower two (ECN).
fn set_dscp(socket: &OwnedFd, dscp: u8) -> io::Result<()> {
    if dscp > MAX_DSCP {
        return refused("IP_TOS")(Errno::INVAL);
    }
    let octet = dscp << ECN_BITS;
    // A socket of IPv6 has both: packets to an IPv4 peer of a dual-stack socket use the first.
    sockopt::set_ip_tos(socket, octet).or_else(refused("IP_TOS"))?;
    if sockopt::socket_domain(socket)? == AddressFamily::INET6 {
        sockopt::set_ipv6_tclass(socket, octet.into()).or_else(refused("IPV6_TCLASS"))?;
    }
    Ok(())
}

/// The code point of the packets to this peer, or of the packets in answer to the first ones.
fn dscp(socket: &OwnedFd) -> io::Result<u8> {
    let local = SocketAddr::try_from(net::getsockname(socket)?)?;
    let octet = match local.ip().to_canonical() {
        IpAddr::V4(_) => sockopt::ip_tos(socket)?,
        // The kernel's values are octets.
        IpAddr::V6(_) => sockopt::ipv6_tclass(socket)? as u8,
    };
    Ok(octet >> ECN_BITS)
}

/// The error of an option, with its name.
pub(crate) fn refused<T, E: Into<io::Error>>(
    option: &'static str,
) -> impl FnOnce(E) -> io::Result<T> {
    move |error| {
        let error = error.into();
        let text = format!("the socket option {option} is refused: {error}");
        Err(io::Error::new(error.kind(), text))
    }
}

const MAX_DSCP: u8 = 63;
const ECN_BITS: u32 = 2;
