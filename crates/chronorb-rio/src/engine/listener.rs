//! Acceptance of connections.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use chronorb_rt::{Monotonic, PiMutex};
use chronorb_transport::AcceptError;
use rustix::io::Errno;

use super::arrivals::Arrivals;
use super::connection::{Attendant, InputTokens};
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
    arrivals: Arc<Arrivals>,
    /// The set to wait for if the accepting thread does the protocol work of the class.
    set: Option<OwnedFd>,
    served: PiMutex<ServedInput>,
}

/// The input that the thread of a listener serves.
#[derive(Debug, Default)]
struct ServedInput {
    /// The tokens of the connections that it serves next.
    tokens: InputTokens,
    /// Whether the last event was a token, so the alarm may be put off.
    has_token: bool,
}

impl Listener {
    pub(super) fn new(
        class: Arc<Class>,
        index: usize,
        address: SocketAddr,
        arrivals: Arc<Arrivals>,
        set: Option<OwnedFd>,
    ) -> Self {
        if set.is_some() {
            class.control.attend();
            // Another thread may have put it off while it was the only one.
            class.engine.resume_alarm();
        }
        Self {
            class,
            index,
            address,
            arrivals,
            set,
            served: PiMutex::new(ServedInput::default()),
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
    /// input, whose bell was not notified of it. After a token the caller serves that connection,
    /// and calls this function again before it waits.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub(crate) fn next_arrival(&self) -> Result<Option<ListenerEvent>, AcceptError> {
        let engine = &self.class.engine;
        let mut served = self.served.lock();
        let mut token = served.tokens.pop();
        if token.is_none() {
            let is_again = std::mem::take(&mut served.has_token);
            if is_again && !self.arrivals.is_notified() && engine.is_idle(Monotonic::now()) {
                engine.resume_alarm();
                return Ok(None);
            }
            // Most of the times that are set until the reply are over with it.
            engine.defer_alarm();
            let worked = self.work(Attendant::AtListener(self.index, &served.tokens));
            token = served.tokens.pop();
            // The thread of another listener may wait for the timer meanwhile.
            if token.is_none() || !self.class.control.is_attended_by_one() {
                engine.resume_alarm();
            }
            if worked? && token.is_some() {
                // They are accepted after the requests.
                self.arrivals.notify();
            }
        }
        if let Some(token) = token {
            served.has_token = true;
            return Ok(Some(ListenerEvent::Input(token)));
        }
        drop(served);
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
        let engine = &self.class.engine;
        engine.stop_listening(self.index, Monotonic::now());
        engine.resume_alarm();
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
