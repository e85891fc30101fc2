//! Shared memory, the transport of SHMIOP: for peers on the same machine that want to be as fast as
//! memory is.
//!
//! An endpoint is the path of a socket file, as that of [Unix-domain sockets](crate::uds), with the
//! same options and one more: `ring`, the octets of the ring of each direction, a power of two from
//! 4096 to 16 MiB, 65536 where it is left out. Longer messages flow through it in pieces.
//!
//! Who connects makes a file without a name in memory (`memfd_create`), seals it, so that it can
//! never become shorter, and hands it over by the socket; the one who accepts checks that, and
//! seals it for good. Nothing is awaited: as with any socket, who connects can send before somebody
//! accepts. From then on octets go by the memory, and the socket is a doorbell and a sign of life:
//! its end is the end of the peer.
//!
//! How each side waits stands in the memory, and the other one acts on it: it does nothing for who
//! [looks](crate::Connection::look) again and again, wakes who sleeps in
//! [`recv`](crate::Connection::recv), and rings, by one octet on the socket, for who waits by a
//! [`Reactor`](crate::Reactor). A connection shares nothing with others, and there is no lock.
//!
//! Neither side trusts the other: whatever a peer writes into the memory or the socket, the worst
//! that comes of it is wrong octets, or the end of the connection
//! ([`IoError::Violated`](crate::IoError::Violated)). That a peer was killed is found out at once
//! at a reactor, and within 100 ms by a thread that sleeps on the memory.

mod acceptor;
mod channel;
mod connection;
mod connector;
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
const DEFAULT_RING: usize = 64 << 10;
/// After which a thread that sleeps on the memory looks whether its peer still lives.
const LONGEST_DELAY: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests;
