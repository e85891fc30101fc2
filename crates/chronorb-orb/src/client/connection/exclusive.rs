//! A connection of one thread alone: one request is under way on it at a time, and nobody else
//! reads from it. No lock, no sharing.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::cell::{Cell, RefCell};

use chronorb_cdr::{Encoder, Frame};
use chronorb_giop::connection::Negotiation;
use chronorb_giop::{CompletionStatus, MessageHeader, MessageType};
use chronorb_rt::Deadline;
use chronorb_transport::{Carriage, Connection, SendError};

use super::channel::{Awaited, Channel};
use super::failure::{Failure, comm_failure, is_harmless, not_sent};
use super::multiplexed::first_request_id;
use super::permit::Permit;
use crate::client::inbox::Inbox;
use crate::client::outbox;
use crate::config::OrbConfig;
use crate::gather::{self, GatherError, Write};

/// A connection that belongs to a thread.
pub(in crate::client) struct Exclusive {
    transport: Box<dyn Connection>,
    permit: Permit,
    next_request: Cell<u32>,
    closed: Cell<bool>,
    inbox: RefCell<Inbox>,
    negotiation: Negotiation,
    fragment_size: usize,
    is_stream: bool,
}

impl Exclusive {
    pub(super) fn new(transport: Box<dyn Connection>, permit: Permit, config: &OrbConfig) -> Self {
        let is_stream = transport.carriage() == Carriage::Stream;
        Self {
            negotiation: Negotiation::new(config.speaks_lite_on(&*transport)),
            transport,
            permit,
            is_stream,
            next_request: Cell::new(first_request_id()),
            closed: Cell::new(false),
            inbox: RefCell::new(Inbox::new(config)),
            fragment_size: if is_stream { config.fragment_size } else { 0 },
        }
    }

    /// Sends a request of `total` octets that was written without what is great in its body, which
    /// begins at `start`; as [`send`](Channel::send) does.
    pub(in crate::client) fn send_gathered(
        &self,
        encoder: &mut Encoder<'_>,
        start: usize,
        total: usize,
        body: Write<'_>,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        // A panic of the body leaves the connection with a part of a message.
        self.closed.set(true);
        let mut send =
            |first: &[u8], second: &[u8]| self.transport.send_both(first, second, deadline);
        let (before, result) = gather::send(encoder, start, total, body, &mut send);
        self.closed.set(false);
        result.map_err(|unsent| match unsent {
            GatherError::Failed(error) => self.unsent(SendError {
                sent: before + error.sent,
                ..error
            }),
            GatherError::Unwritten(exception) => {
                if before > 0 {
                    self.close();
                }
                exception.into()
            }
        })
    }

    /// What it means that a message was not sent whole.
    fn unsent(&self, error: SendError) -> Failure {
        if !is_harmless(error) {
            self.close();
        }
        not_sent(error)
    }

    fn receive_next(
        &self,
        expected: MessageType,
        frame: &mut Frame,
        deadline: Deadline,
    ) -> Result<MessageHeader, Failure> {
        let mut inbox = self.inbox.borrow_mut();
        let header = inbox.receive(&*self.transport, &self.negotiation, frame, deadline)?;
        match header.kind {
            kind if kind == expected => Ok(header),
            // The server promises that it has not begun what it has not answered; a part of
            // the answer shows that it has.
            MessageType::CloseConnection if !inbox.has_part() => Err(Failure::NotProcessed),
            _ => Err(comm_failure(CompletionStatus::Maybe).into()),
        }
    }
}

impl Channel for Exclusive {
    fn next_request_id(&self) -> u32 {
        let id = self.next_request.get();
        self.next_request.set(id.wrapping_add(1));
        id
    }

    fn send(
        &self,
        message: &mut Frame,
        _awaited: Option<Awaited>,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        let message = message.as_slice();
        let sent = outbox::send(&*self.transport, message, self.fragment_size, deadline);
        sent.map_err(|error| self.unsent(error))
    }

    /// Receives the next reply. A connection on which a reply was given up is closed, so that a
    /// late reply can never be taken for that of another call.
    fn receive(
        &self,
        _request_id: u32,
        expected: MessageType,
        frame: &mut Frame,
        deadline: Deadline,
    ) -> Result<MessageHeader, Failure> {
        let received = self.receive_next(expected, frame, deadline);
        if received.is_err() {
            self.close();
        }
        received
    }

    fn gathering(&self) -> Option<&Exclusive> {
        (self.is_stream && self.fragment_size == 0).then_some(self)
    }

    fn has_one_call_at_a_time(&self) -> bool {
        true
    }

    #[inline]
    fn speaks_lite(&self) -> bool {
        self.negotiation.is_lite()
    }

    fn proposes_lite(&self) -> bool {
        self.negotiation.is_proposing()
    }

    fn is_stream(&self) -> bool {
        self.is_stream
    }

    fn is_stale(&self) -> bool {
        self.transport.is_stale()
    }

    fn is_closed(&self) -> bool {
        self.closed.get()
    }

    fn problem(&self) -> Option<String> {
        self.transport.problem()
    }

    /// No other thread can close it.
    fn keep(&self) {}

    fn close(&self) {
        self.closed.set(true);
        self.permit.give_back();
        self.transport.shutdown();
    }
}
