//! Ports that belong to a class while it uses them.

use std::any::Any;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, Ordering};

use crate::driver::DriverError;
use crate::driver::guard::{Guard, GuardError};
use crate::driver::home::Home;

/// Gives ports, so that nobody else on the host has them meanwhile.
pub trait Ports: fmt::Debug + Send + Sync {
    /// Reserves a port of an address, any free one if it is 0.
    ///
    /// # Errors
    /// `AddrInUse` where somebody has it.
    fn reserve(&self, address: SocketAddr) -> io::Result<ReservedPort>;
}

/// A port that nobody else has until this is dropped.
#[derive(Debug)]
pub struct ReservedPort {
    /// Its number.
    pub number: u16,
    /// What keeps it.
    pub guard: Box<dyn Any + Send + Sync>,
}

/// Ports of a host that has no kernel of its own, at the end of a wire in memory: nobody else is there to have them.
#[derive(Debug)]
pub struct FreePorts {
    next: AtomicU16,
}

impl Default for FreePorts {
    fn default() -> Self {
        Self {
            next: AtomicU16::new(FIRST),
        }
    }
}

impl Ports for FreePorts {
    fn reserve(&self, address: SocketAddr) -> io::Result<ReservedPort> {
        let number = match address.port() {
            0 => self.next.fetch_add(1, Ordering::Relaxed).max(FIRST),
            given => given,
        };
        Ok(ReservedPort {
            number,
            guard: Box::new(()),
        })
    }
}

/// Ports of this host, about which the kernel is [quiet](crate::driver::guard) meanwhile.
#[derive(Debug)]
pub struct GuardedPorts {
    home: Home,
}

impl GuardedPorts {
    /// Those of the network namespace of the calling thread.
    ///
    /// # Errors
    /// Where the namespace cannot be held.
    pub fn here() -> Result<Self, DriverError> {
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
            guard: Box::new(guard),
        })
    }
}

/// The first port that is given to who wants any (RFC 6335 §6).
const FIRST: u16 = 49_152;
