//! A client's connection: exclusive to a thread and a priority, so that one
//! request is under way on it at a time, and nobody else reads from it.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Weak};

use chronorb_cdr::{Frame, TextForm};
use chronorb_giop::{
    CompletionStatus, MessageHeader, MessageType, SystemException, SystemExceptionKind, minor,
};
use chronorb_rt::Deadline;
use chronorb_transport::{Connection, IoError};

use super::inbox::Inbox;
use super::outbox;
use crate::core::Core;

/// A connection to a server.
pub(super) struct ClientConnection {
    transport: Box<dyn Connection>,
    /// The ORB that it was made for.
    core: Weak<Core>,
    text: TextForm,
    /// The code sets as requests announce them; none where the server has not told its own.
    code_sets: Option<[u8; 12]>,
    /// Whether requests still carry the code sets: until the first reply shows that the server has seen them.
    announces: Cell<bool>,
    next_request: Cell<u32>,
    closed: Cell<bool>,
    inbox: RefCell<Inbox>,
    fragment_size: usize,
}

/// A call did not come to a reply.
pub(super) enum Failure {
    /// The server closed the connection in order, and has not touched the request: it can be
    /// sent again.
    NotProcessed,
    Exception(SystemException),
}

impl From<SystemException> for Failure {
    fn from(exception: SystemException) -> Self {
        Self::Exception(exception)
    }
}

impl ClientConnection {
    pub(super) fn new(
        transport: Box<dyn Connection>,
        core: &Arc<Core>,
        text: TextForm,
        code_sets: Option<[u8; 12]>,
    ) -> Self {
        Self {
            transport,
            core: Arc::downgrade(core),
            text,
            code_sets,
            announces: Cell::new(true),
            next_request: Cell::new(1),
            closed: Cell::new(false),
            inbox: RefCell::new(Inbox::new(
                core.config.max_message_size,
                core.config.client_wait,
            )),
            fragment_size: core.config.fragment_size,
        }
    }

    pub(super) fn text(&self) -> TextForm {
        self.text
    }

    /// Whether text travels on it like this, and the server has been or will be told so.
    pub(super) fn speaks(&self, text: TextForm, code_sets: Option<[u8; 12]>) -> bool {
        self.text == text && self.code_sets == code_sets
    }

    /// The number of its ORB; `None` where that is gone.
    pub(super) fn orb(&self) -> Option<u64> {
        self.core.upgrade().map(|core| core.number)
    }

    /// Whether it is of no more use: the ORB was shut down, or the server has ended it or said
    /// goodbye while it was idle.
    pub(super) fn is_stale(&self) -> bool {
        let core = self.core.upgrade();
        core.is_none_or(|core| core.check_running().is_err()) || self.transport.is_stale()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.get()
    }

    /// Whether requests still tell the server about the connection.
    pub(super) fn announces(&self) -> bool {
        self.announces.get()
    }

    /// The code sets, as long as the server may not have seen them.
    pub(super) fn code_sets_to_announce(&self) -> Option<[u8; 12]> {
        self.code_sets.filter(|_| self.announces.get())
    }

    pub(super) fn next_request_id(&self) -> u32 {
        let id = self.next_request.get();
        self.next_request.set(id.wrapping_add(1));
        id
    }

    /// Sends a whole message.
    ///
    /// A request that was not sent whole was not processed, since a server acts on whole
    /// messages only.
    pub(super) fn send(&self, message: &Frame, deadline: Deadline) -> Result<(), Failure> {
        let message = message.as_slice();
        let sent = outbox::send(&*self.transport, message, self.fragment_size, deadline);
        sent.map_err(|error| {
            // A call that had no time left has done the connection no harm.
            if error.sent > 0 || error.cause != IoError::TimedOut {
                self.close();
            }
            match error.cause {
                IoError::TimedOut => timeout(CompletionStatus::No).into(),
                // The server closed while the connection was idle; the request may go on a new one.
                IoError::Closed => Failure::NotProcessed,
                _ => comm_failure(CompletionStatus::No).into(),
            }
        })
    }

    /// Receives the next reply into `frame`.
    ///
    /// A connection on which a reply was given up is closed, so that a late reply can never be
    /// taken for that of another call.
    pub(super) fn receive_reply(
        &self,
        frame: &mut Frame,
        deadline: Deadline,
    ) -> Result<MessageHeader, Failure> {
        let received = self.receive(frame, MessageType::Reply, deadline);
        match &received {
            Ok(_) => self.announces.set(false),
            Err(_) => self.close(),
        }
        received
    }

    /// Receives the next locate reply into `frame`; in the same way.
    pub(super) fn receive_locate_reply(
        &self,
        frame: &mut Frame,
        deadline: Deadline,
    ) -> Result<MessageHeader, Failure> {
        let received = self.receive(frame, MessageType::LocateReply, deadline);
        if received.is_err() {
            self.close();
        }
        received
    }

    fn receive(
        &self,
        frame: &mut Frame,
        expected: MessageType,
        deadline: Deadline,
    ) -> Result<MessageHeader, Failure> {
        let mut inbox = self.inbox.borrow_mut();
        let header = inbox.receive(&*self.transport, frame, deadline)?;
        match header.kind {
            kind if kind == expected => Ok(header),
            // The server promises that it has not begun what it has not answered; a part of
            // the answer shows that it has.
            MessageType::CloseConnection if !inbox.has_part() => Err(Failure::NotProcessed),
            _ => Err(comm_failure(CompletionStatus::Maybe).into()),
        }
    }

    /// Ends the connection; bindings that use it connect anew.
    pub(super) fn close(&self) {
        self.closed.set(true);
        self.transport.shutdown();
    }
}

pub(super) fn timeout(completed: CompletionStatus) -> SystemException {
    let minor = match completed {
        CompletionStatus::No => minor::TIMEOUT_REQUEST_END,
        _ => minor::TIMEOUT_REPLY_END,
    };
    SystemException::new(SystemExceptionKind::Timeout, minor, completed)
}

pub(super) fn comm_failure(completed: CompletionStatus) -> SystemException {
    SystemException::new(
        SystemExceptionKind::CommFailure,
        minor::CONNECTION_LOST,
        completed,
    )
}
