//! Which hardware address the next hop to a peer has.
//!
//! Who is connected to by a peer needs no answer: the peer's frames say where they come from. Who connects asks here.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::IpAddr;

use chronorb_rt::Deadline;

/// Finds out where packets to a host go on the link.
pub trait Neighbours: fmt::Debug + Send + Sync {
    /// The hardware address of the host itself, or of the router before it.
    ///
    /// # Errors
    /// Where there is no way, or nobody has answered until the deadline (`TimedOut`).
    fn next_hop(&self, to: IpAddr, deadline: Deadline) -> io::Result<[u8; 6]>;
}

/// Neighbours that are known beforehand, as on a wire in memory.
#[derive(Clone, Debug, Default)]
pub struct KnownNeighbours(pub HashMap<IpAddr, [u8; 6]>);

impl Neighbours for KnownNeighbours {
    fn next_hop(&self, to: IpAddr, _: Deadline) -> io::Result<[u8; 6]> {
        let known = self.0.get(&to).copied();
        known.ok_or_else(|| io::ErrorKind::HostUnreachable.into())
    }
}
