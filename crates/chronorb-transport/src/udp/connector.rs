//! Sockets for peers whose addresses are known.

use std::io;
use std::net::SocketAddr;

use rustix::net;

use super::arrivals::Arrivals;
use super::connection::UdpConnection;
use super::{largest_to, socket};
use crate::timed::TimedSocket;
use crate::{Setup, ip_options};

/// Makes a socket that sends to this peer, and receives from this peer only.
pub(super) fn connect(peer: SocketAddr, setup: Setup) -> io::Result<UdpConnection> {
    let socket = socket(&peer)?;
    ip_options::set(&socket, setup.options)?;
    net::connect(&socket, &peer)?;
    Ok(UdpConnection::new(
        TimedSocket::new(socket),
        setup.messages,
        largest_to(&peer),
        Arrivals::new(),
    ))
}
