//! A TCP connection.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::options;
use crate::remote::host_of;
use crate::stream::{Family, StreamConnection};
use crate::{Remote, SocketOptions};

/// A connected TCP socket.
pub(super) type TcpConnection = StreamConnection<TcpFamily>;

#[derive(Debug)]
pub(super) struct TcpFamily;

impl Family for TcpFamily {
    fn options(socket: &OwnedFd) -> io::Result<SocketOptions> {
        options::get(socket)
    }

    fn peer(socket: &OwnedFd) -> String {
        host_of(socket.as_fd()).map_or_else(|| "a peer that is gone".to_owned(), |a| a.to_string())
    }

    fn remote(socket: &OwnedFd) -> Remote {
        Remote::of_socket("iiop", socket)
    }
}
