//! The network namespace in which a driver was opened, for sockets that it makes later.

use std::io;
use std::os::fd::AsFd;

use chronorb_net::NetworkNamespace;
use rustix::fs::fstat;

use super::DriverError;
use super::socket::failed;

/// A network namespace that can be entered again.
#[derive(Debug)]
pub(crate) struct Home(NetworkNamespace);

impl Home {
    /// Returns the namespace of the calling thread.
    pub(crate) fn here() -> Result<Self, DriverError> {
        let here = NetworkNamespace::current().map_err(failed(WHAT, CAPABILITY))?;
        Ok(Self(here))
    }

    /// Runs a function in the namespace. A thread of another namespace needs `CAP_SYS_ADMIN` for
    /// it; a thread of the same one needs nothing.
    pub(crate) fn enter<T>(&self, f: impl FnOnce() -> T) -> Result<T, DriverError> {
        match self.is_here() {
            Ok(true) => Ok(f()),
            Ok(false) => self.0.enter(f).map_err(failed(WHAT, CAPABILITY)),
            Err(error) => Err(failed(WHAT, CAPABILITY)(error)),
        }
    }

    fn is_here(&self) -> io::Result<bool> {
        let here = fstat(NetworkNamespace::current()?.as_fd())?;
        let home = fstat(self.0.as_fd())?;
        Ok((here.st_dev, here.st_ino) == (home.st_dev, home.st_ino))
    }
}

const WHAT: &str = "going back to the network namespace of the driver";
const CAPABILITY: &str = "cap_sys_admin";
