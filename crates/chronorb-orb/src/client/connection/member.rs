//! A thread's part in a shared connection.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use chronorb_cdr::{Frame, TextForm};
use chronorb_giop::{CompletionStatus, MessageHeader, MessageType, SystemException};
use chronorb_rt::{Deadline, Gate};

use super::channel::{Awaited, Channel};
use super::failure::{Failure, comm_failure};
use super::multiplexed::Multiplexed;
use super::own_thread::OwnThread;
use super::{ConnectionKey, Exclusive};
use crate::core::Core;
use crate::rtcorba::Priority;

/// A shared connection as all its members have it; ends with the last of them.
pub(in crate::client) struct Open {
    pub(in crate::client) shared: Arc<Multiplexed>,
    /// Its own thread, where it has one.
    pub(super) thread: Option<OwnThread>,
    /// How text travels on it, and the code sets that the server is told.
    pub(super) speech: (TextForm, Option<[u8; 12]>),
    /// What it was found by.
    pub(in crate::client) key: ConnectionKey,
    /// Whether an answer to an asynchronous call has shown that the server knows what first requests tell.
    pub(in crate::client) is_known: AtomicBool,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.shared.close();
    }
}

/// One thread among those that share a connection.
pub(super) struct Member {
    pub(super) open: Arc<Open>,
    /// Where the thread sleeps until somebody has something for it.
    seat: Arc<Gate>,
}

impl Member {
    #[allow(
        clippy::disallowed_methods,
        reason = "once for each connection of a thread"
    )]
    pub(super) fn new(open: Arc<Open>) -> Self {
        Self {
            open,
            seat: Arc::new(Gate::new(0)),
        }
    }

    /// Sees to it that the connection's own thread, where it has one, is no less urgent than a call of this priority.
    ///
    /// # Errors
    /// The priority has no native one.
    pub(super) fn work_for(
        &self,
        core: &Core,
        priority: Option<Priority>,
    ) -> Result<(), SystemException> {
        match &self.open.thread {
            Some(thread) => thread.work_for(core, priority),
            None => Ok(()),
        }
    }
}

impl Channel for Member {
    fn next_request_id(&self) -> u32 {
        self.open.shared.next_request_id()
    }

    fn send(
        &self,
        message: &mut Frame,
        awaited: Option<Awaited>,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        let shared = &self.open.shared;
        let Some(awaited) = awaited else {
            return shared.send_oneway(message, &self.seat, deadline);
        };
        shared.expect(awaited, message, &self.seat)?;
        let sent = shared.send(awaited.request_id, message, deadline);
        if sent.is_err() {
            shared.forget(awaited.request_id);
        }
        sent
    }

    fn receive(
        &self,
        request_id: u32,
        expected: MessageType,
        frame: &mut Frame,
        deadline: Deadline,
    ) -> Result<MessageHeader, Failure> {
        let shared = &self.open.shared;
        let header = match shared.receive(request_id, frame, deadline) {
            Some(received) => received?,
            None => return Err(shared.abandon(request_id, frame)),
        };
        if header.kind != expected {
            shared.close();
            return Err(comm_failure(CompletionStatus::Maybe).into());
        }
        Ok(header)
    }

    /// Others would wait for a message that is written while it is sent.
    fn gathering(&self) -> Option<&Exclusive> {
        None
    }

    fn has_one_call_at_a_time(&self) -> bool {
        false
    }

    #[inline]
    fn speaks_lite(&self) -> bool {
        self.open.shared.speaks_lite()
    }

    fn proposes_lite(&self) -> bool {
        self.open.shared.proposes_lite()
    }

    fn is_stream(&self) -> bool {
        self.open.shared.is_stream()
    }

    fn is_stale(&self) -> bool {
        self.open.shared.is_stale()
    }

    fn is_closed(&self) -> bool {
        self.open.shared.is_closed()
    }

    fn problem(&self) -> Option<String> {
        self.open.shared.transport().problem()
    }

    fn keep(&self) {
        self.open.shared.keep();
    }

    fn close(&self) {
        self.open.shared.close();
    }
}
