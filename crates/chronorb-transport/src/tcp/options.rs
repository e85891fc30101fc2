//! The properties of a TCP socket, set and read back.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::sockopt;

use crate::SocketOptions;
use crate::ip_options::{self, refused};

/// Sets the options before connecting or listening, so that the window is scaled to the buffers and
/// the first packet has its code point.
///
/// # Errors
/// Names the first option that the kernel refuses.
pub(super) fn set(socket: &OwnedFd, options: SocketOptions) -> io::Result<()> {
    sockopt::set_tcp_nodelay(socket, options.no_delay).or_else(refused("TCP_NODELAY"))?;
    sockopt::set_socket_keepalive(socket, options.keep_alive).or_else(refused("SO_KEEPALIVE"))?;
    ip_options::set(socket, options)
}

/// Returns the present values.
pub(super) fn get(socket: &OwnedFd) -> io::Result<SocketOptions> {
    Ok(SocketOptions {
        no_delay: sockopt::tcp_nodelay(socket)?,
        keep_alive: sockopt::socket_keepalive(socket)?,
        ..ip_options::get(socket)?
    })
}
