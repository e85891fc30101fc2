//! Which hardware address the next hop to a peer has.
//!
//! Who is connected to by a peer needs no answer: the peer's frames say where they come from. Who
//! connects asks here.

use std::fmt;
use std::io;
use std::net::IpAddr;

use chronorb_net::{Netlink, ResolveError, resolve};
use chronorb_rt::Deadline;

use crate::driver::DriverError;
use crate::driver::home::Home;

/// Finds out where packets to a host go on the link.
pub(crate) trait Neighbours: fmt::Debug + Send + Sync {
    /// The hardware address of the host itself, or of the router before it.
    ///
    /// # Errors
    /// Where there is no way, or nobody has answered until the deadline (`TimedOut`).
    fn next_hop(&self, to: IpAddr, deadline: Deadline) -> io::Result<[u8; 6]>;
}

/// The neighbours that the kernel knows, or asks for.
#[derive(Debug)]
pub(crate) struct KernelNeighbours {
    home: Home,
    /// The number of the interface.
    index: u32,
}

impl KernelNeighbours {
    /// Those of an interface of the network namespace of the calling thread, by its number there.
    ///
    /// # Errors
    /// Where the namespace cannot be held.
    pub(crate) fn of(index: u32) -> Result<Self, DriverError> {
        let home = Home::here()?;
        Ok(Self { home, index })
    }

    fn ask(&self, to: IpAddr, deadline: Deadline) -> io::Result<[u8; 6]> {
        let route = Netlink::open().and_then(|mut it| it.route_to(to, Some(self.index)));
        let route = route.map_err(io::Error::other)?;
        resolve(self.index, route.gateway.unwrap_or(to), deadline).map_err(|error| match error {
            ResolveError::Late(_) => io::Error::new(io::ErrorKind::TimedOut, error),
            other => io::Error::new(io::ErrorKind::HostUnreachable, other),
        })
    }
}

impl Neighbours for KernelNeighbours {
    fn next_hop(&self, to: IpAddr, deadline: Deadline) -> io::Result<[u8; 6]> {
        let asked = self.home.enter(|| self.ask(to, deadline));
        asked.map_err(io::Error::other)?
    }
}
