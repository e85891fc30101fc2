//! Shared memory, the transport of SHMIOP: for peers on the same machine that need the speed of
//! memory.
//!
//! An endpoint is the path of a socket file, as that of [Unix-domain sockets](crate::uds), with the
//! same options and one more: `ring`, the octets of the ring of each direction, a power of two from
//! 4096 to 16 MiB, 131072 where it is left out. Longer messages flow through it in pieces.
//!
//! The connecting side creates an anonymous file in memory (`memfd_create`), seals it so that it
//! can never shrink, and sends it over the socket. The accepting side checks that, and seals it
//! permanently. Neither side waits: as with any socket, the connecting side can send before the
//! other one accepts. From then on octets go through the memory. The socket is a doorbell and shows
//! that the peer lives: its end is the end of the peer.
//!
//! Each side publishes in the memory how it waits, and the other side acts on it. It does nothing
//! for a side that [polls](crate::Connection::look), wakes a thread that sleeps in
//! [`recv`](crate::Connection::recv), and rings, by one octet on the socket, for a thread that
//! waits in a [`Reactor`](crate::Reactor). A connection shares nothing with others, and there is no
//! lock.
//!
//! [`fan_out`] is memory of another kind: one process publishes messages, and many read them.
//!
//! Neither side trusts the other. Whatever a peer writes into the memory or the socket, the worst
//! results are wrong octets, or the end of the connection
//! ([`IoError::Violated`](crate::IoError::Violated)). A killed peer is detected at once at a
//! reactor, and within 100 ms by a thread that sleeps on the memory.

mod acceptor;
mod channel;
mod connection;
mod connector;
pub mod fan_out;
mod memory;
mod options;
mod rendezvous;
mod ring;
mod sync;
mod word;

use std::time::Duration;

use chronorb_rt::Deadline;

use self::acceptor::ShmAcceptor;
use self::options::Place;
use crate::{
    Acceptor, Address, ConnectError, Connection, Endpoint, EndpointError, ListenError, Setup,
    Transport,
};

/// Shared memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct SharedMemory;

impl Transport for SharedMemory {
    fn scheme(&self) -> &str {
        "shmiop"
    }

    fn check(&self, endpoint: &Endpoint) -> Result<(), EndpointError> {
        options::check(endpoint)
    }

    fn listen(
        &self,
        endpoint: &Endpoint,
        _setup: Setup,
    ) -> Result<Vec<Box<dyn Acceptor>>, ListenError> {
        Ok(vec![Box::new(ShmAcceptor::open(endpoint)?)])
    }

    fn connect(
        &self,
        address: &Address,
        _setup: Setup,
        deadline: Deadline,
    ) -> Result<Box<dyn Connection>, ConnectError> {
        Ok(Box::new(connector::connect(address, deadline)?))
    }
}

/// Whether a ring can have so many octets.
fn is_ring(octets: usize) -> bool {
    octets.is_power_of_two() && (MIN_RING..=MAX_RING).contains(&octets)
}

const MIN_RING: usize = 4 << 10;
const MAX_RING: usize = 16 << 20;
/// A message with 64 KiB of data and its headers fits, so that its sender need not wait for room.
const DEFAULT_RING: usize = 128 << 10;
/// After which a thread that sleeps on the memory looks whether its peer still lives.
const LONGEST_DELAY: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests;
