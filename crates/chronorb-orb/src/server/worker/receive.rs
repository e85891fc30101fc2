//! Receives one whole message from a connection into the frame of the thread.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::atomic::Ordering;

use chronorb_cdr::{CdrError, Frame};
use chronorb_giop::connection::Message;
use chronorb_giop::{MessageHeader, MessageProtocol, MessageType};
use chronorb_rt::ReleaseOutcome;
use chronorb_transport::Event;

use super::Worker;
use crate::observe::Stage;
use crate::server::at::At;
use crate::server::connection::WorkGuard;
use crate::server::dispatch;
use crate::server::end::End;
use crate::server::intake::{self, Intake};

impl Worker {
    /// Reads one whole message into the frame, and begins the work on it; `None` where no whole
    /// message has arrived yet.
    pub(super) fn take_message<'c>(
        &mut self,
        at: At<'c>,
        event: Event,
    ) -> Result<Option<(MessageHeader, WorkGuard<'c>)>, End> {
        let connection = at.connection;
        #[cfg(feature = "miop")]
        if connection.has_many_peers() {
            return self.take_from_group(at);
        }
        self.core.at(Stage::Read);
        // Some transports report room to send together with input. Octets that are not sent now
        // wait for the next such event. Sockets of other transports almost always have room, and
        // would report it at once.
        connection.flush()?;
        if event.hang_up {
            connection.set_hung_up();
        }
        let Some(mut input) = connection.input.claim() else {
            // The failed claim makes the thread that has the input read again.
            return Ok(None);
        };
        if input.closed {
            return Err(End::Lost);
        }
        input.unread = true;
        input.hung_up = connection.is_hung_up();
        let mut parts = 0;
        loop {
            let intake = intake::receive(
                |room| connection.transport().try_recv(room),
                &mut input,
                &connection.negotiation,
                &mut self.request,
            )
            .map_err(|end| input.give_up(end))?;
            if input.opens {
                input.opens = !connection.transport().is_established();
                // The handshake has proved the peer's identity, which access rules may name.
                if !input.opens && !at.lane.permits(connection.transport()) {
                    return Err(input.give_up(End::Lost));
                }
            }
            let limit = self.core.config.input_timeout;
            let Intake::Message { message, more } = intake else {
                input.settle_incomplete(parts > 0, limit)?;
                if matches!(intake, Intake::Skipping) {
                    drop(input);
                    at.rearm();
                    return Ok(None);
                }
                match input.release() {
                    ReleaseOutcome::Done => return Ok(None),
                    ReleaseOutcome::Again(again) => {
                        input = again;
                        input.unread = true;
                        input.hung_up = connection.is_hung_up();
                        continue;
                    }
                }
            };
            let joined = input.reader.join(message, &mut self.request);
            let joined = joined.map_err(|error| input.give_up(error.into()))?;
            let Some(Message { header, skipped }) = joined else {
                parts += 1;
                if parts < MAX_PARTS {
                    continue;
                }
                // Other connections have a right to this thread too.
                input.settle_incomplete(true, limit)?;
                drop(input);
                at.rearm();
                return Ok(None);
            };
            if header.kind == MessageType::Request && connection.is_text_unknown() {
                // Before another thread can read the next request.
                self.arena.reset();
                dispatch::learn_text(connection, &mut self.request, &self.arena, header);
            }
            self.may_stay = skipped.is_none()
                && connection.is_one_at_a_time()
                && waits_for_reply(header, &self.request)
                && input.is_worth_pinning();
            let work = connection.begin_work();
            input.settle(true);
            // The input is released before the upcall in any case: the next thread reads it.
            let again = matches!(input.release(), ReleaseOutcome::Again(_));
            if more || again {
                // Promotes a follower: it gets an event for this connection at once.
                at.rearm();
            }
            if let Some(cause) = skipped {
                self.refuse_skipped(at, header, cause)?;
                return Ok(None);
            }
            return Ok(Some((header, work)));
        }
    }

    /// Tells the client of a request whose beginning is in the frame why it was skipped.
    #[cold]
    pub(super) fn refuse_skipped(
        &mut self,
        at: At<'_>,
        header: MessageHeader,
        cause: CdrError,
    ) -> Result<(), End> {
        let watch = at.lane.watch();
        watch.refused.fetch_add(1, Ordering::Relaxed);
        self.refuse(at, header, cause.into()).map(drop)
    }
}

/// Whether the client waits for the reply to this message, having announced that it has one request
/// at a time.
pub(super) fn waits_for_reply(header: MessageHeader, message: &Frame) -> bool {
    header.kind == MessageType::Request
        && !header.more_fragments
        && header.protocol.waits_for_target(message.as_slice())
}

/// Fragments and cancellations that a thread takes from one connection in one go.
const MAX_PARTS: u32 = 64;
