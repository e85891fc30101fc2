//! UDP to a group on this machine alone.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

use rustix::net::sockopt::set_ip_multicast_if;

/// A socket that has joined a group, and where to send to.
pub(super) fn receiver() -> io::Result<(UdpSocket, String)> {
    // Bound to the group, it gets what is sent there and nothing else.
    let socket = UdpSocket::bind(SocketAddrV4::new(GROUP, 0))?;
    socket.join_multicast_v4(&GROUP, &Ipv4Addr::LOCALHOST)?;
    let address = socket.local_addr()?.to_string();
    Ok((socket, address))
}

/// A socket that sends to the group at this address.
pub(super) fn sender(address: &str) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    set_ip_multicast_if(&socket, &Ipv4Addr::LOCALHOST)?;
    socket.set_multicast_loop_v4(true)?;
    socket.set_multicast_ttl_v4(0)?;
    socket.connect(address)?;
    Ok(socket)
}

/// Of those that are for anybody's use within an organisation (RFC 2365).
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 67, 82);
