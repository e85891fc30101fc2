//! A connection by a Unix-domain socket.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::sockopt;

use super::options;
use crate::stream::{Family, StreamConnection};
use crate::{Remote, SocketOptions};

/// A connected Unix-domain socket.
pub(super) type UnixConnection = StreamConnection<UnixFamily>;

#[derive(Debug)]
pub(super) struct UnixFamily;

impl Family for UnixFamily {
    fn options(socket: &OwnedFd) -> io::Result<SocketOptions> {
        options::get(socket)
    }

    /// Returns the name of the peer. The connecting side has no address: it is known by its
    /// process, as the kernel recorded it.
    fn peer(socket: &OwnedFd) -> String {
        match sockopt::socket_peercred(socket) {
            Ok(peer) => format!(
                "process {} of user {}",
                peer.pid.as_raw_pid(),
                peer.uid.as_raw()
            ),
            Err(_) => "a peer that is gone".to_owned(),
        }
    }

    fn remote(socket: &OwnedFd) -> Remote {
        Remote::of_unix_socket("uiop", socket)
    }
}
