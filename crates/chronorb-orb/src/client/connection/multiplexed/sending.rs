//! How messages get onto a shared connection.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::Arc;

use chronorb_cdr::{CdrError, Frame};
use chronorb_giop::{
    CompletionStatus, MessageType, Protocol, encode_cancel_request, finish_message, start_message,
};
use chronorb_rt::{Deadline, Gate, PiMutex};
use chronorb_transport::IoError;

use super::Multiplexed;
use crate::client::connection::Awaited;
use crate::client::connection::failure::{Failure, is_harmless, not_sent, timeout};
use crate::client::connection::queue::{Call, Place, SendQueue};
use crate::client::outbox::{self, Gone};

/// Who sends.
pub(in crate::client::connection) enum Sending {
    /// Each thread for itself, one at a time. The most urgent one that waits is next, and passes
    /// its priority on to the one that sends.
    InTurn(PiMutex<()>),
    /// A thread of the connection.
    Queued(Arc<SendQueue>),
}

impl Multiplexed {
    /// Sends the whole message of a call whose reply is [expected](Self::expect), or lets it be
    /// sent; the message is gone from `message` then.
    pub(in crate::client) fn send(
        &self,
        request_id: u32,
        message: &mut Frame,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        let call = Call {
            id: request_id,
            seat: None,
            deadline,
        };
        match &self.sending {
            Sending::InTurn(turn) => self.send_in_turn(turn, message, deadline),
            Sending::Queued(queue) => queue.push(message, &call, || self.is_closed()),
        }
    }

    /// Sends a whole message to which no reply comes, and waits until it has gone.
    pub(in crate::client::connection) fn send_oneway(
        &self,
        message: &mut Frame,
        seat: &Arc<Gate>,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        self.touch();
        match &self.sending {
            Sending::InTurn(turn) => self.send_in_turn(turn, message, deadline),
            Sending::Queued(queue) => {
                // No reply has this number, and as a call it is known to whoever may end the
                // connection.
                let id = self.next_request_id();
                let awaited = Awaited {
                    request_id: id,
                    urgency: None,
                };
                self.expect(awaited, message, seat)?;
                let call = Call {
                    id,
                    seat: Some(seat),
                    deadline,
                };
                let sent = queue.push(message, &call, || self.is_closed());
                let sent = sent.and_then(|()| self.wait_until_sent(queue, id, seat, deadline));
                self.forget(id);
                sent
            }
        }
    }

    /// Sends a whole message, when no other thread sends.
    fn send_in_turn(
        &self,
        turn: &PiMutex<()>,
        message: &Frame,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        if self.is_closed() {
            return Err(Failure::NotProcessed);
        }
        let left = deadline.remaining();
        let sending = left.and_then(|left| turn.try_lock_for(left));
        let Some(_sending) = sending else {
            return Err(timeout(CompletionStatus::No).into());
        };
        let message = message.as_slice();
        let sent = outbox::send(&*self.transport, message, self.fragment_size, deadline);
        sent.map_err(|error| {
            if !is_harmless(error) {
                self.close();
            }
            not_sent(error)
        })
    }

    /// Waits until a message without a reply has gone.
    fn wait_until_sent(
        &self,
        queue: &SendQueue,
        id: u32,
        seat: &Gate,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        loop {
            // That it has gone, or the connection has ended, makes it another number.
            let seen = seat.get();
            if !queue.has(id) {
                return Ok(());
            }
            if self.calls.lock().end.is_some() {
                // It may have gone since, at the last moment.
                return self.unsent_at_end(id).map_or(Ok(()), Err);
            }
            if deadline.has_passed() {
                let completed = match self.take_back(id) {
                    true => CompletionStatus::No,
                    false => CompletionStatus::Maybe,
                };
                return Err(timeout(completed).into());
            }
            seat.wait_while(seen, deadline);
        }
    }

    /// Takes a message back whose time is over; returns whether the server will never have it
    /// whole. Where a part of it was sent that ends the connection.
    pub(super) fn take_back(&self, request_id: u32) -> bool {
        match self.place(request_id) {
            Place::Queued => true,
            Place::Begun(_) => {
                self.close();
                true
            }
            Place::Gone => false,
        }
    }

    /// What becomes of a message that had not gone when the connection ended; `None` where it had.
    pub(super) fn unsent_at_end(&self, request_id: u32) -> Option<Failure> {
        match self.place(request_id) {
            Place::Queued | Place::Begun(None) => Some(Failure::NotProcessed),
            Place::Begun(failure) => failure,
            Place::Gone => None,
        }
    }

    /// Where a message is; it is taken out of the queue where it can be.
    fn place(&self, request_id: u32) -> Place {
        match &self.sending {
            Sending::InTurn(_) => Place::Gone,
            Sending::Queued(queue) => queue.take_back(request_id),
        }
    }

    /// Sends the rest of a whole message, as far as the peer takes it.
    pub(in crate::client::connection) fn try_send(
        &self,
        message: &Frame,
        gone: &mut Gone,
    ) -> Result<(), IoError> {
        let message = message.as_slice();
        outbox::try_send(&*self.transport, message, self.fragment_size, gone)
    }

    /// Tells the server that nobody waits any more; not where that would have to wait.
    pub(super) fn cancel(
        &self,
        request_id: u32,
        protocol: Protocol,
        frame: &mut Frame,
    ) -> Result<(), CdrError> {
        let mut e = start_message(frame, protocol, MessageType::CancelRequest)?;
        encode_cancel_request(&mut e, request_id)?;
        finish_message(frame);
        let turn = match &self.sending {
            Sending::InTurn(turn) => turn,
            Sending::Queued(queue) => {
                queue.try_push(frame);
                return Ok(());
            }
        };
        if let Some(_sending) = turn.try_lock()
            && let Ok(sent) = self.transport.try_send(frame.as_slice())
            && sent < frame.len()
        {
            // The rest would have to be waited for, and nothing else may come before it.
            self.close();
        }
        Ok(())
    }
}
