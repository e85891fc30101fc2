//! The network namespace that a driver was opened in, for the sockets that it makes later.

use std::io;
use std::os::fd::AsFd;

use chronorb_rt::NetworkNamespace;
use rustix::fs::fstat;

/// A network namespace to come back to.
#[derive(Debug)]
pub(super) struct Home(NetworkNamespace);

impl Home {
    /// That of the calling thread.
    pub(super) fn here() -> io::Result<Self> {
        Ok(Self(NetworkNamespace::current()?))
    }

    /// Does something there. A thread that is elsewhere needs `CAP_SYS_ADMIN` for it, one that is there needs nothing.
    pub(super) fn enter<T>(&self, f: impl FnOnce() -> T) -> io::Result<T> {
        let here = fstat(NetworkNamespace::current()?.as_fd())?;
        let there = fstat(self.0.as_fd())?;
        if (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino) {
            return Ok(f());
        }
        self.0.enter(f)
    }
}
