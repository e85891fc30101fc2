//! A TCP connection.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::net;

use super::options;
use crate::stream::{Family, StreamConnection};
use crate::{Remote, SocketOptions};

/// A connected TCP socket.
pub(super) type TcpConnection = StreamConnection<Tcp>;

#[derive(Debug)]
pub(super) struct Tcp;

impl Family for Tcp {
    fn options(socket: &OwnedFd) -> io::Result<SocketOptions> {
        options::get(socket)
    }

    fn peer(socket: &OwnedFd) -> String {
        net::getpeername(socket)
            .ok()
            .flatten()
            .and_then(|address| SocketAddr::try_from(address).ok())
            .map_or_else(|| "a peer that is gone".to_owned(), |a| a.to_string())
    }

    fn remote(socket: &OwnedFd) -> Remote {
        Remote::of_socket("iiop", socket)
    }
}
