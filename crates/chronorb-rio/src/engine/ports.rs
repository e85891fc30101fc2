//! Ports that a class reserves while it uses them.

use std::any::Any;
use std::fmt;
use std::io;
use std::net::SocketAddr;

use crate::driver::DriverError;
use crate::driver::guard::{Guard, GuardError};
use crate::driver::home::Home;

/// A reservation of ports against all other programs of the host.
pub(crate) trait Ports: fmt::Debug + Send + Sync {
    /// Reserves a port of an address; port 0 stands for any free one.
    ///
    /// # Errors
    /// `AddrInUse` if the port is in use.
    fn reserve(&self, address: SocketAddr) -> io::Result<ReservedPort>;
}

/// A port that is reserved until this is dropped.
#[derive(Debug)]
pub(crate) struct ReservedPort {
    /// The number of the port.
    pub number: u16,
    /// The guard that keeps the reservation.
    pub _guard: Box<dyn Any + Send + Sync>,
}

/// Ports of this host, about which a [guard](crate::driver::guard) keeps the kernel silent.
#[derive(Debug)]
pub(crate) struct GuardedPorts {
    home: Home,
}

impl GuardedPorts {
    /// Returns the ports of the calling thread's network namespace.
    ///
    /// # Errors
    /// [`DriverError`] if the namespace cannot be opened.
    pub(crate) fn here() -> Result<Self, DriverError> {
        Ok(Self {
            home: Home::here()?,
        })
    }
}

impl Ports for GuardedPorts {
    fn reserve(&self, address: SocketAddr) -> io::Result<ReservedPort> {
        let guard = self.home.enter(|| Guard::new(address));
        let guard = guard.map_err(io::Error::other)?;
        let guard = guard.map_err(|error| match error {
            GuardError::Taken(_) => io::ErrorKind::AddrInUse.into(),
            other => io::Error::other(other),
        })?;
        Ok(ReservedPort {
            number: guard.address().port(),
            _guard: Box::new(guard),
        })
    }
}
