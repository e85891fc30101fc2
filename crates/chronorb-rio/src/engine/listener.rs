//! Acceptance of connections.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use chronorb_rt::{Monotonic, Wake};
use chronorb_transport::AcceptError;
use rustix::io::Errno;

use super::open::Class;
use super::stream::Stream;

/// An address of a class at which peers connect.
///
/// Its descriptor is readable while [`accept`](Self::accept) has work.
#[derive(Debug)]
pub(crate) struct Listener {
    class: Arc<Class>,
    index: usize,
    address: SocketAddr,
    arrivals: Arc<Wake>,
    /// The set to wait for if the accepting thread does the protocol work of the class.
    set: Option<OwnedFd>,
}

impl Listener {
    pub(super) fn new(
        class: Arc<Class>,
        index: usize,
        address: SocketAddr,
        arrivals: Arc<Wake>,
        set: Option<OwnedFd>,
    ) -> Self {
        if set.is_some() {
            class.control.attend();
        }
        Self {
            class,
            index,
            address,
            arrivals,
            set,
        }
    }

    /// Returns the address.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts the next connection; returns `None` if there is none. In a class that is processed
    /// on arrival, it first does the pending protocol work.
    ///
    /// # Errors
    /// [`AcceptError::Exhausted`] while no file descriptor is left; [`AcceptError::Failed`] if the
    /// interface fails or its subsystem has ended.
    pub(crate) fn accept(&self) -> Result<Option<Stream>, AcceptError> {
        let engine = &self.class.engine;
        self.arrivals.drain();
        if self.class.control.has_ended() {
            return Err(AcceptError::Failed(Errno::NETDOWN));
        }
        let now = Monotonic::now();
        if self.set.is_some() {
            engine.drain_alarm(now);
            let outcome = engine.step(now, BATCH, None);
            if outcome.map_err(|error| failed(&error.0))?.has_more {
                // Threads that serve connections get a turn before the rest of a flood.
                self.arrivals.notify();
            }
        }
        let taken = engine.accept(self.index, now, |slot| {
            slot.open_bell()
                .map_err(|error| match Errno::from_io_error(&error) {
                    Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => AcceptError::Exhausted,
                    _ => failed(&error),
                })
        })?;
        Ok(taken.map(|(slot, bell)| Stream::new(self.class.clone(), slot, bell)))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.class
            .engine
            .stop_listening(self.index, Monotonic::now());
        if self.set.is_some() {
            self.class.control.leave();
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.set {
            Some(set) => set.as_fd(),
            None => self.arrivals.as_fd(),
        }
    }
}

fn failed(error: &std::io::Error) -> AcceptError {
    AcceptError::Failed(Errno::from_io_error(error).unwrap_or(Errno::IO))
}

/// The maximum number of packets processed at a time.
const BATCH: usize = 64;
