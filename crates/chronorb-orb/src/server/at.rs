//! A connection in its lane.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::fmt;

use chronorb_giop::MessageType;
use chronorb_rt::Key;
use chronorb_transport::Event;

use super::connection::ServerConnection;
use super::end::{End, LostConnection};
use super::lane::ServerLane;
use crate::call::{PiecesOf, ReplySink};
use crate::core::Core;
use crate::gather::GatherError;
use crate::incident::Incident;
use crate::stage::Stage;

/// The source of a message and the destination of its reply: a connection, and the lane that owns
/// it.
#[derive(Clone, Copy)]
pub(crate) struct At<'l> {
    pub(super) lane: &'l ServerLane,
    pub(super) connection: &'l ServerConnection,
    /// The key of the connection among those of the lane, and its token in the reactor.
    pub(super) key: Key,
}

impl<'l> At<'l> {
    #[inline]
    pub(super) fn new(lane: &'l ServerLane, connection: &'l ServerConnection, key: Key) -> Self {
        Self {
            lane,
            connection,
            key,
        }
    }

    /// Suspends events of the connection until it is [armed](Self::rearm) again. Returns whether
    /// that succeeded.
    pub(super) fn disarm(self) -> bool {
        self.lane.disarm(self.connection, self.key)
    }

    /// Arms the connection: a thread of the lane also gets an event for octets that wait already.
    pub(super) fn rearm(self) {
        self.lane.rearm(self.connection, self.key);
    }

    /// Ends the turn of a request of the connection, if its requests have an order.
    #[cold]
    pub(super) fn end_turn(self) {
        if self.connection.end_turn() {
            self.rearm();
        }
    }

    /// Sends a message. Octets that the peer does not take at once are sent when there is room.
    #[inline(never)]
    pub(super) fn send(self, message: &[u8]) -> Result<(), LostConnection> {
        self.send_inlined(message)
    }

    /// Sends a message as [`send`](Self::send) does, on the path of the usual request.
    #[inline(always)]
    fn send_inlined(self, message: &[u8]) -> Result<(), LostConnection> {
        if self.connection.send(message)? {
            self.rearm();
        }
        Ok(())
    }

    /// Sends octets that a slow peer did not take before. Input is left to the thread of the
    /// connection.
    pub(super) fn flush(self, event: Event) {
        let connection = self.connection;
        match connection.flush() {
            // Input and the end of the connection are handled by its own thread. Arming or
            // disarming it here would deliver the same event again.
            Ok(_) if !event.writable && !connection.is_over() => {}
            // The next event for room to send continues.
            Ok(true) => {}
            Ok(false) if !connection.is_over() && self.disarm() => {
                // Its own thread may have kept octets in between, and its arming was undone.
                match connection.flush() {
                    Ok(false) => {}
                    Ok(true) => self.rearm(),
                    Err(LostConnection) => self.end(),
                }
            }
            _ => self.end(),
        }
    }

    /// Ends the connection, after the messages in progress.
    pub(super) fn end(self) {
        self.lane.end(self.key);
    }

    /// Ends the connection where the outcome of a message says so, and notes the cause.
    pub(super) fn conclude(self, outcome: Result<(), End>) {
        let Self {
            lane, connection, ..
        } = self;
        match outcome {
            Ok(()) => {}
            Err(End::Ended) => {
                connection.set_ended();
                // A peer that sends nothing more answers nothing more.
                #[cfg(feature = "bidir")]
                connection.end_calls(false);
            }
            Err(End::Lost) => {
                if !connection.transport().is_established() {
                    self.note_handshake();
                }
                self.end();
            }
            Err(End::Late) => {
                lane.note_late(connection);
                self.end();
            }
            Err(End::Malformed) => {
                let incident = Incident::MalformedMessage;
                lane.incidents.note(incident, connection, 0);
                connection.say_goodbye(MessageType::MessageError);
                self.end();
            }
        }
        if connection.is_over() {
            self.end();
        }
    }

    /// Notes why a connection ended during its handshake.
    #[cold]
    fn note_handshake(self) {
        let (incidents, incident) = (&self.lane.incidents, Incident::FailedHandshake);
        match self.connection.transport().problem() {
            Some(problem) => incidents.tell(incident, self.connection, 0, &problem),
            None => incidents.note(incident, self.connection, 0),
        }
    }
}

/// The connection to which one reply is sent.
pub(crate) struct ConnectionSink<'c> {
    pub(super) core: &'c Core,
    pub(super) at: At<'c>,
}

impl ReplySink for ConnectionSink<'_> {
    fn send_whole(&self, message: &[u8]) {
        self.core.at(Stage::Write);
        if self.at.send_inlined(message).is_err() {
            self.at.end();
        }
        self.core.at(Stage::Rest);
    }

    fn send(&self, message: PiecesOf<'_>) -> Option<Result<(), GatherError<LostConnection>>> {
        self.core.at(Stage::Write);
        let sent = self.at.connection.send_pieces(message)?;
        match &sent {
            Ok(false) => {}
            Ok(true) => self.at.rearm(),
            Err(_) => self.at.end(),
        }
        Some(sent.map(drop))
    }
}

impl fmt::Debug for ConnectionSink<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionSink").finish_non_exhaustive()
    }
}
