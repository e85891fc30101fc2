//! Sending on a shared connection.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::Arc;

use chronorb_cdr::{CdrError, Frame};
use chronorb_giop::{
    CompletionStatus, MessageType, Protocol, encode_cancel_request, finish_message, start_message,
};
use chronorb_rt::{Deadline, Gate, PiMutex, PiMutexGuard};
use chronorb_transport::IoError;

#[cfg(feature = "baselines")]
use super::active::SendQueue;
use super::link::{Failure, Link, timeout};
use super::shared::SharedConnection;

/// The way in which messages of several threads are sent.
pub(super) enum SendMode {
    /// Each thread sends its own messages, one thread at a time. The most urgent waiting thread is
    /// next, and the sending thread inherits its priority.
    ///
    /// The lock has the rest of messages for which the transport had no room. Nothing may be sent
    /// before it.
    InTurn(PiMutex<Frame>),
    /// A thread of the connection sends the messages of a queue.
    #[cfg(feature = "baselines")]
    Queued(Arc<SendQueue>),
}

/// A message that the server will never have whole.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct UnsentMessage {
    /// The failure of its call.
    pub(super) failure: Failure,
    /// Whether a part of the message was sent. The connection must end then.
    pub(super) is_begun: bool,
}

#[cfg_attr(
    not(feature = "baselines"),
    expect(unused_variables, reason = "a message is taken back from a queue only")
)]
impl SendMode {
    pub(super) fn in_turn() -> Self {
        Self::InTurn(PiMutex::new(Frame::new(0, usize::MAX)))
    }

    /// Takes the turn to send, if no other thread has it and nothing is left to send. Nothing is
    /// sent while it is held.
    pub(super) fn take_idle_turn(&self) -> Option<Option<PiMutexGuard<'_, Frame>>> {
        match self {
            Self::InTurn(turn) => turn.try_lock().filter(|rest| rest.is_empty()).map(Some),
            #[cfg(feature = "baselines")]
            Self::Queued(_) => Some(None),
        }
    }

    /// Takes a message back; `None` if it was sent.
    fn take_back(&self, request_id: u32) -> Option<UnsentMessage> {
        match self {
            Self::InTurn(_) => None,
            #[cfg(feature = "baselines")]
            Self::Queued(queue) => queue.take_back(request_id),
        }
    }

    /// The failure of a call whose message was not sent when the connection ended; `None` if it
    /// was sent.
    pub(super) fn unsent_at_end(&self, request_id: u32) -> Option<Failure> {
        self.take_back(request_id).map(|unsent| unsent.failure)
    }

    /// Notes that the connection has ended.
    pub(super) fn end(&self) {
        match self {
            Self::InTurn(_) => {}
            #[cfg(feature = "baselines")]
            Self::Queued(queue) => queue.end(),
        }
    }
}

impl SharedConnection {
    /// Whether sending takes messages out of their frames.
    pub(in crate::client) fn takes_frames(&self) -> bool {
        !matches!(self.sending, SendMode::InTurn(_))
    }

    /// Sends the whole message of a call whose reply is [expected](Self::expect), or queues it: it
    /// is gone from `message` then. A call whose message was not sent is removed.
    #[cfg_attr(
        not(feature = "baselines"),
        expect(
            clippy::needless_pass_by_ref_mut,
            reason = "only a queue takes messages"
        )
    )]
    pub(in crate::client) fn send(
        &self,
        request_id: u32,
        message: &mut Frame,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        let sent = match &self.sending {
            SendMode::InTurn(turn) => self.send_in_turn(turn, message, deadline),
            #[cfg(feature = "baselines")]
            SendMode::Queued(queue) => {
                let is_closed = || self.link.is_closed();
                queue.push(message, request_id, None, deadline, is_closed)
            }
        };
        if sent.is_err() {
            self.forget(request_id);
        }
        sent
    }

    /// Sends a whole message to which no reply comes.
    #[cfg_attr(
        not(feature = "baselines"),
        expect(
            unused_variables,
            clippy::needless_pass_by_ref_mut,
            reason = "only a queue takes messages, and is waited for"
        )
    )]
    pub(super) fn send_oneway(
        &self,
        message: &mut Frame,
        waiter: &Arc<Gate>,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        self.touch();
        match &self.sending {
            SendMode::InTurn(turn) => self.send_in_turn(turn, message, deadline),
            #[cfg(feature = "baselines")]
            SendMode::Queued(queue) => self.send_by_queue(queue, message, waiter, deadline),
        }
    }

    /// Whether the messages of a thread may be kept, to be sent together: not where they go through
    /// a queue.
    pub(super) fn may_batch(&self) -> bool {
        matches!(self.sending, SendMode::InTurn(_))
    }

    /// Sends the octets of whole messages to which no reply comes, after those of other threads.
    #[cold]
    pub(super) fn send_octets(&self, octets: &[u8], deadline: Deadline) -> Result<(), Failure> {
        self.touch();
        match &self.sending {
            SendMode::InTurn(turn) => {
                let send = |link: &Link| link.send_octets(octets, deadline);
                self.send_by_turn(turn, deadline, send)
            }
            #[cfg(feature = "baselines")]
            SendMode::Queued(_) => Err(Failure::NotProcessed),
        }
    }

    /// Takes the octets of whole messages, and sends those for which there is room, without
    /// waiting. Returns the number of octets that are left, which go before anything else.
    ///
    /// # Errors
    /// [`IoError::WouldBlock`] if another thread sends, or earlier octets are left. Then none is
    /// taken.
    #[cold]
    pub(super) fn offer(&self, octets: &[u8]) -> Result<usize, IoError> {
        let mut rest = match &self.sending {
            SendMode::InTurn(turn) => turn.try_lock().ok_or(IoError::WouldBlock)?,
            #[cfg(feature = "baselines")]
            SendMode::Queued(_) => return Err(IoError::Closed),
        };
        if self.link.is_closed() {
            return Err(IoError::Closed);
        }
        self.touch();
        let try_send = |octets: &[u8]| match octets {
            [] => Ok(0),
            octets => self.link.transport().try_send(octets),
        };
        let sent = try_send(rest.as_slice())?;
        rest.remove_first(sent);
        if !rest.is_empty() {
            return Err(IoError::WouldBlock);
        }
        let sent = try_send(octets)?;
        let kept = rest.extend_from_slice(octets.get(sent..).unwrap_or_default());
        // Without the rest of a message, nothing can follow it.
        kept.map_err(|_| IoError::Closed)?;
        Ok(rest.len())
    }

    /// Sends a whole message when no other thread sends.
    fn send_in_turn(
        &self,
        turn: &PiMutex<Frame>,
        message: &Frame,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        let send = |link: &Link| link.send(message.as_slice(), deadline);
        self.send_by_turn(turn, deadline, send)
    }

    /// Sends by `send` when no other thread sends.
    #[inline]
    fn send_by_turn(
        &self,
        turn: &PiMutex<Frame>,
        deadline: Deadline,
        send: impl FnOnce(&Link) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let left = deadline.remaining();
        let Some(mut rest) = left.and_then(|left| turn.try_lock_for(left)) else {
            return Err(timeout(CompletionStatus::No).into());
        };
        // An idle connection is closed by a thread that has the turn.
        if self.link.is_closed() {
            return Err(Failure::NotProcessed);
        }
        let before = self.send_rest(&mut rest, deadline);
        let sent = before.and_then(|()| send(&self.link));
        if sent.is_err() && self.link.is_closed() {
            self.close();
        }
        sent
    }

    #[inline]
    fn send_rest(&self, rest: &mut Frame, deadline: Deadline) -> Result<(), Failure> {
        if !rest.is_empty() {
            self.link.send_octets(rest.as_slice(), deadline)?;
            rest.clear();
        }
        Ok(())
    }

    /// Takes a message back whose time is over; returns whether the server will never have it
    /// whole. Closes the connection if a part of it was sent.
    pub(super) fn take_back(&self, request_id: u32) -> bool {
        let unsent = self.sending.take_back(request_id);
        if unsent.is_some_and(|unsent| unsent.is_begun) {
            self.close();
        }
        unsent.is_some()
    }

    /// Tells the server that a call was given up, unless that would have to wait.
    pub(super) fn cancel(
        &self,
        request_id: u32,
        protocol: Protocol,
        frame: &mut Frame,
    ) -> Result<(), CdrError> {
        let mut e = start_message(frame, protocol, MessageType::CancelRequest)?;
        encode_cancel_request(&mut e, request_id)?;
        finish_message(frame);
        match &self.sending {
            SendMode::InTurn(turn) => {
                if let Some(rest) = turn.try_lock()
                    && rest.is_empty()
                    && let Ok(sent) = self.link.transport().try_send(frame.as_slice())
                    && sent < frame.len()
                {
                    // The rest would have to wait, and nothing else may be sent before it.
                    self.close();
                }
            }
            #[cfg(feature = "baselines")]
            SendMode::Queued(queue) => queue.try_push(frame),
        }
        Ok(())
    }
}
