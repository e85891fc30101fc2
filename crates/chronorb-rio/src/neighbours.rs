//! Hardware addresses of next hops.
//!
//! Only a connecting end needs a lookup. An accepting end takes the address from the peer's frames.

use std::fmt;
use std::io;
use std::net::IpAddr;

use chronorb_net::{Netlink, ResolveError, resolve};
use chronorb_rt::Deadline;

use crate::driver::DriverError;
use crate::driver::home::Home;

/// A resolver of IP addresses to hardware addresses on the link.
pub(crate) trait Neighbours: fmt::Debug + Send + Sync {
    /// Returns the hardware address of the host itself, or of the router on the way to it.
    ///
    /// # Errors
    /// An error if there is no route, or if no answer arrives before the deadline (`TimedOut`).
    fn next_hop(&self, to: IpAddr, deadline: Deadline) -> io::Result<[u8; 6]>;
}

/// The kernel's routing and neighbour tables.
#[derive(Debug)]
pub(crate) struct KernelNeighbours {
    home: Home,
    /// The index of the interface.
    index: u32,
}

impl KernelNeighbours {
    /// Creates the resolver for the interface with this index in the calling thread's network
    /// namespace.
    ///
    /// # Errors
    /// [`DriverError`] if the namespace cannot be opened.
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
