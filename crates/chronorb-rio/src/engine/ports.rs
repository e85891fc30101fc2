//! Ports that belong to a class while it uses them.

use std::any::Any;
use std::fmt;
use std::io;
use std::net::SocketAddr;

use crate::driver::DriverError;
use crate::driver::guard::{Guard, GuardError};
use crate::driver::home::Home;

/// Gives ports, so that nobody else on the host has them meanwhile.
pub(crate) trait Ports: fmt::Debug + Send + Sync {
    /// Reserves a port of an address, any free one if it is 0.
    ///
    /// # Errors
    /// `AddrInUse` where somebody has it.
    fn reserve(&self, address: SocketAddr) -> io::Result<ReservedPort>;
}

/// A port that nobody else has until this is dropped.
#[derive(Debug)]
pub(crate) struct ReservedPort {
    /// Its number.
    pub number: u16,
    /// What keeps it.
    pub _guard: Box<dyn Any + Send + Sync>,
}

/// Ports of this host, about which the kernel is [quiet](crate::driver::guard) meanwhile.
#[derive(Debug)]
pub(crate) struct GuardedPorts {
    home: Home,
}

impl GuardedPorts {
    /// Those of the network namespace of the calling thread.
    ///
    /// # Errors
    /// Where the namespace cannot be held.
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
