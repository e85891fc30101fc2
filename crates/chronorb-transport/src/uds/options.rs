//! The properties that a Unix-domain socket has.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::sockopt;

use crate::SocketOptions;

/// Sets the buffers. There are no packets that other properties could be of.
pub(super) fn set(socket: &OwnedFd, options: SocketOptions) -> io::Result<()> {
    if let Some(size) = options.send_buffer {
        sockopt::set_socket_send_buffer_size(socket, size as usize)?;
    }
    if let Some(size) = options.receive_buffer {
        sockopt::set_socket_recv_buffer_size(socket, size as usize)?;
    }
    Ok(())
}

/// Returns the present values.
pub(super) fn get(socket: &OwnedFd) -> io::Result<SocketOptions> {
    let octets = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
    Ok(SocketOptions {
        no_delay: true,
        keep_alive: false,
        peer_timeout: None,
        dont_route: true,
        dscp: None,
        priority: None,
        send_buffer: Some(octets(sockopt::socket_send_buffer_size(socket)?)),
        receive_buffer: Some(octets(sockopt::socket_recv_buffer_size(socket)?)),
    })
}
