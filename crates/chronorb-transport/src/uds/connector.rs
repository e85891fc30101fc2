//! Connecting to a Unix-domain socket within a deadline.

use std::io;

use chronorb_rt::Deadline;
use rustix::io::Errno;
use rustix::net;

use super::{Name, options, socket};
use crate::timed::TimedSocket;
use crate::{Address, ConnectError, SocketOptions};

/// Connects, and waits until the deadline for room in the backlog of the peer.
pub(crate) fn connect(
    address: &Address,
    wanted: SocketOptions,
    deadline: Deadline,
) -> Result<TimedSocket, ConnectError> {
    let refused = |source: io::Error| ConnectError::Refused {
        address: address.to_string(),
        source,
    };
    let path = address
        .as_path()
        .ok_or_else(|| refused(io::ErrorKind::AddrNotAvailable.into()))?;
    let name = Name::of(path)
        .socket_address()
        .map_err(|problem| refused(io::Error::new(io::ErrorKind::InvalidInput, problem)))?;
    let socket = socket().map_err(|error| refused(error.into()))?;
    options::set(&socket, wanted).map_err(refused)?;
    let socket = TimedSocket::new(socket);
    loop {
        // The kernel counts it as sending (socket(7)).
        socket
            .end_sending(deadline)
            .map_err(|_| ConnectError::TimedOut {
                address: address.to_string(),
            })?;
        match net::connect(&socket, &name) {
            Ok(()) => return Ok(socket),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(refused(error.into())),
        }
    }
}
