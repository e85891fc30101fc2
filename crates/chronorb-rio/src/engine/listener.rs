//! Acceptance of connections.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::cell::Cell;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use chronorb_rt::{Monotonic, Wake};
use chronorb_transport::AcceptError;
use rustix::io::Errno;

use super::connection::Attendant;
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
        self.work(Attendant::Nobody)?;
        self.take()
    }

    /// Accepts as [`accept`](Self::accept) does, or returns the token of a connection that has got
    /// input, whose bell was not notified of it.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub(crate) fn next_arrival(&self) -> Result<Option<ListenerEvent>, AcceptError> {
        let ready = Cell::new(None);
        let has_arrivals = self.work(Attendant::AtListener(self.index, &ready))?;
        if let Some(token) = ready.get() {
            if has_arrivals {
                // They are accepted after the request.
                self.arrivals.notify();
            }
            return Ok(Some(ListenerEvent::Input(token)));
        }
        Ok(self.take()?.map(ListenerEvent::Stream))
    }

    /// Does pending protocol work if the accepting thread is responsible for it. Returns whether
    /// connections wait.
    fn work(&self, attendant: Attendant<'_>) -> Result<bool, AcceptError> {
        let engine = &self.class.engine;
        self.arrivals.drain();
        if self.class.control.has_ended() {
            return Err(AcceptError::Failed(Errno::NETDOWN));
        }
        if self.set.is_none() {
            return Ok(true);
        }
        let now = Monotonic::now();
        engine.drain_alarm(now);
        let outcome = engine.step(now, BATCH, attendant);
        let outcome = outcome.map_err(|error| failed(&error.0))?;
        if outcome.has_more {
            // Threads that serve connections get a turn before the rest of a flood.
            self.arrivals.notify();
        }
        Ok(outcome.has_arrivals)
    }

    /// Takes a connection that waits.
    fn take(&self) -> Result<Option<Stream>, AcceptError> {
        let engine = &self.class.engine;
        let taken = engine.accept(self.index, Monotonic::now(), |slot| {
            slot.open_bell()
                .map_err(|error| match Errno::from_io_error(&error) {
                    Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => AcceptError::Exhausted,
                    _ => failed(&error),
                })
        })?;
        Ok(taken.map(|(slot, bell)| Stream::new(self.class.clone(), slot, bell)))
    }
}

/// The event that a listener reports.
#[derive(Debug)]
pub(crate) enum ListenerEvent {
    /// A connection of a new peer.
    Stream(Stream),
    /// Input of the connection with this token.
    Input(u64),
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
