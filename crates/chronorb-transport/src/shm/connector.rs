//! Connecting by shared memory within a deadline.

use std::io;

use chronorb_rt::Deadline;

use super::connection::ShmConnection;
use super::memory::Memory;
use super::{DEFAULT_RING, Place, rendezvous};
use crate::{Address, ConnectError, SocketOptions, uds};

/// Creates the memory, connects, and sends the memory. Whether the peer accepts it is found out
/// later, as with any connection that waits to be accepted.
pub(super) fn connect(
    address: &Address,
    deadline: Deadline,
) -> Result<ShmConnection, ConnectError> {
    let refused = |source: io::Error| ConnectError::Refused {
        address: address.to_string(),
        source,
    };
    let place = Place::of(address).map_err(refused)?;
    let ring = place.ring.unwrap_or(DEFAULT_RING);
    let (memory, file) = Memory::create(ring).map_err(|e| refused(e.into()))?;
    let path = Address::Path(place.path.to_owned());
    let socket = uds::connect(&path, SocketOptions::default(), deadline)?;
    rendezvous::offer(socket.socket(), &file, ring).map_err(|e| refused(e.into()))?;
    Ok(ShmConnection::connected(socket, memory, file))
}
