//! A connection, from its holder's point of view.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic, Wake};
use chronorb_transport::{IoError, SendError};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;

use super::class::ClassEngine;
use super::config::ClassProcessing;
use super::connection::{Attendant, Slot};
use super::error::ConnectFault;
use super::open::Class;

/// The handle of a connection. Dropping it starts an orderly close, which the class completes
/// later.
///
/// If a call finds no input or no room, the descriptor becomes readable once there is some, or once
/// the connection has ended.
#[derive(Debug)]
pub(crate) struct Stream {
    class: Arc<Class>,
    slot: usize,
    bell: Arc<Wake>,
    is_interrupted: AtomicBool,
}

impl Stream {
    /// Creates the handle of the connection in a slot, with the slot's bell.
    pub(super) fn new(class: Arc<Class>, slot: usize, bell: Arc<Wake>) -> Self {
        Self {
            class,
            slot,
            bell,
            is_interrupted: AtomicBool::new(false),
        }
    }

    /// Returns the class of the connection.
    pub(crate) fn class(&self) -> &Arc<Class> {
        &self.class
    }

    /// Returns the peer; `None` if the connection has ended and the address is gone.
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        self.slot().connection.lock().remote()
    }

    /// Receives available octets.
    ///
    /// # Errors
    /// [`IoError::WouldBlock`] if there are none; then the descriptor signals the next ones.
    pub(crate) fn try_receive(&self, room: &mut [u8]) -> Result<usize, IoError> {
        let now = Monotonic::now();
        self.engine().with(self.slot, now, |connection| {
            connection.receive(room, || {
                self.bell.drain();
            })
        })
    }

    /// Sends as much of two pieces as fits into the buffer.
    ///
    /// # Errors
    /// [`IoError::WouldBlock`] if nothing fits; then the descriptor signals room.
    pub(crate) fn try_send(&self, first: &[u8], second: &[u8]) -> Result<usize, IoError> {
        let now = Monotonic::now();
        self.engine()
            .with(self.slot, now, |connection| connection.send(first, second))
    }

    /// Receives at least one octet before the deadline.
    ///
    /// # Errors
    /// As those of a [connection](chronorb_transport::Connection::recv).
    pub(crate) fn receive(&self, room: &mut [u8], deadline: Deadline) -> Result<usize, IoError> {
        loop {
            match self.attend_and_receive(room) {
                Err(IoError::WouldBlock) => {}
                other => return other,
            }
            let remaining = deadline.remaining().ok_or(IoError::TimedOut)?;
            self.wait(&self.bell, Some(remaining));
        }
    }

    /// Receives at least one octet; returns `None` if it was interrupted, or if the limit has
    /// passed.
    ///
    /// # Errors
    /// As those of a [connection](chronorb_transport::Connection::recv_until_interrupted).
    pub(crate) fn receive_until_interrupted(
        &self,
        room: &mut [u8],
        limit: Option<Duration>,
    ) -> Result<Option<usize>, IoError> {
        let deadline = limit.map(Deadline::after);
        loop {
            match self.attend_and_receive(room) {
                Err(IoError::WouldBlock) => {}
                other => return other.map(Some),
            }
            if self.is_interrupted.load(Ordering::Acquire) {
                return Ok(None);
            }
            let remaining = match deadline {
                None => None,
                Some(deadline) => match deadline.remaining() {
                    None => return Ok(None),
                    remaining => remaining,
                },
            };
            self.wait(&self.bell, remaining);
        }
    }

    /// Interrupts all threads that wait for input, or lets them wait again.
    pub(crate) fn set_interrupted(&self, interrupted: bool) {
        self.is_interrupted.store(interrupted, Ordering::Release);
        if interrupted {
            // Ends a wait that begins after its thread has checked the flag.
            self.bell.notify();
        }
    }

    /// Permits the listener to report input by a token.
    pub(crate) fn set_token(&self, token: u64) {
        self.slot().set_token(token);
    }

    /// Sends all of two pieces before the deadline.
    ///
    /// # Errors
    /// As those of a [connection](chronorb_transport::Connection::send_both).
    pub(crate) fn send(
        &self,
        first: &[u8],
        second: &[u8],
        deadline: Deadline,
    ) -> Result<(), SendError> {
        let len = first.len() + second.len();
        let mut sent = 0;
        while sent < len {
            let (first, second) = match first.get(sent..) {
                Some(first) => (first, second),
                None => (&[][..], &second[sent - first.len()..]),
            };
            let step = match deadline.remaining() {
                None => Err(IoError::TimedOut),
                Some(_) => self.try_send(first, second),
            };
            match step {
                Ok(n) => sent += n,
                Err(IoError::WouldBlock) => self
                    .await_room(deadline)
                    .map_err(|cause| SendError { sent, cause })?,
                Err(cause) => return Err(SendError { sent, cause }),
            }
        }
        Ok(())
    }

    /// Returns whether there is input, or the end.
    pub(crate) fn has_input(&self) -> bool {
        self.attend(Attendant::Nobody);
        let slot = self.slot();
        slot.connection.lock().has_input()
    }

    /// Closes both directions, and ends all waits.
    pub(crate) fn shut_down(&self) {
        let engine = self.engine();
        let changes = engine.with(self.slot, Monotonic::now(), |connection| {
            connection.shut_down()
        });
        engine
            .slot(self.slot)
            .ring(self.slot, changes, Attendant::Nobody);
    }

    /// Waits until an outgoing connection is established.
    pub(super) fn await_peer(&self, deadline: Deadline) -> Result<(), ConnectFault> {
        let slot = self.slot();
        loop {
            self.bell.drain();
            let connected = slot.connection.lock().is_connected();
            match connected {
                Some(Ok(())) => return Ok(()),
                Some(Err(IoError::Broken(Errno::TIMEDOUT))) => return Err(ConnectFault::TimedOut),
                Some(Err(_)) => return Err(ConnectFault::Refused),
                None => {}
            }
            let remaining = deadline.remaining().ok_or(ConnectFault::TimedOut)?;
            self.wait(&self.bell, Some(remaining));
        }
    }

    /// Waits for room to send, at most until the deadline.
    #[cold]
    fn await_room(&self, deadline: Deadline) -> Result<(), IoError> {
        let slot = self.slot();
        let bell = slot.room_bell()?;
        let must_wait = slot.connection.lock().await_room(|| {
            bell.drain();
        });
        if must_wait {
            let remaining = deadline.remaining().ok_or(IoError::TimedOut)?;
            self.wait(bell, Some(remaining));
        }
        self.attend(Attendant::Nobody);
        Ok(())
    }

    /// Does pending protocol work if the waiting thread is responsible for it, and then receives.
    fn attend_and_receive(&self, room: &mut [u8]) -> Result<usize, IoError> {
        if !self.is_attending() {
            return self.try_receive(room);
        }
        // This connection need not be notified of what its own thread finds.
        self.attend(Attendant::Of(self.slot));
        let received = self.try_receive(room);
        if received.is_ok() && self.slot().connection.lock().has_input() {
            // A reactor that watches the connection afterwards needs a signal for the rest.
            self.bell.notify();
        }
        received
    }

    /// Does pending protocol work if the waiting thread is responsible for it.
    fn attend(&self, attendant: Attendant<'_>) {
        if self.is_attending() {
            let engine = self.engine();
            let now = Monotonic::now();
            engine.drain_alarm(now);
            // After a failure of the interface, the connection times out.
            let _ = engine.step(now, BATCH, attendant);
        }
    }

    fn is_attending(&self) -> bool {
        self.class.config().processing == ClassProcessing::OnArrival
            && self.class.control.is_attended()
    }

    /// Waits for a bell, and for protocol work if this thread does it.
    fn wait(&self, bell: &Wake, limit: Option<Duration>) {
        let limit = limit.map(|limit| Timespec {
            tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: limit.subsec_nanos().into(),
        });
        let engine = self.engine();
        // A signal ends the wait, as it must.
        let _ = if self.is_attending() {
            engine.resume_alarm();
            poll(
                &mut [
                    PollFd::new(bell, PollFlags::IN),
                    PollFd::from_borrowed_fd(engine.packets(), PollFlags::IN),
                    PollFd::from_borrowed_fd(engine.alarm(), PollFlags::IN),
                ],
                limit.as_ref(),
            )
        } else {
            poll(&mut [PollFd::new(bell, PollFlags::IN)], limit.as_ref())
        };
    }

    fn slot(&self) -> &Slot {
        self.engine().slot(self.slot)
    }

    fn engine(&self) -> &ClassEngine {
        &self.class.engine
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // The slot can get another connection as soon as it is released.
        self.slot().close_bell();
        self.engine().let_go(self.slot, Monotonic::now());
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// The number of packets processed between two checks of the connection.
const BATCH: usize = 64;
