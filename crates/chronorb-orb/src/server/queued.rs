//! A request that one thread has read and another one dispatches.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use chronorb_cdr::Frame;
use chronorb_giop::MessageHeader;
use chronorb_rt::{Deadline, Key};

use super::connection::WorkGuard;
use super::lane::Lane;
use super::parking::Parked;
use super::scheduler::Permit;
use crate::core::Core;
use crate::poa::{Closed, Ticket};
use crate::rtcorba::Priority;

/// The lane that serves a request.
pub(super) struct Target {
    pub(super) lane: Arc<Lane>,
    /// The priority of the request, where a filter decides it and not the POA.
    pub(super) at: Option<Priority>,
}

/// A POA by its place, why it has to be waited for, and the priority of the request.
pub(super) type Wait = (Key, Closed, Option<Priority>);

/// A whole message on its way to the thread that dispatches it.
pub(super) struct QueuedRequest {
    work: QueuedWork,
    target: Target,
    header: MessageHeader,
    message: Frame,
    /// The right to be dispatched now.
    permit: Option<Permit>,
    /// Set where the request was parked: its ticket, and the end of its patience.
    waited: Option<(Option<Ticket>, Deadline)>,
}

/// A message in progress that no thread works on. Keeps its lane from ending and its connection
/// from being over, as a [`WorkGuard`] does.
struct QueuedWork {
    core: Arc<Core>,
    /// The lane that has read the message.
    entrance: Arc<Lane>,
    connection: Key,
}

impl Drop for QueuedWork {
    fn drop(&mut self) {
        if let Some(connection) = self.entrance.connections.get(self.connection) {
            connection.end_work();
        }
        self.entrance.leave_one(&self.core);
    }
}

impl QueuedRequest {
    pub(super) fn new(
        core: &Arc<Core>,
        entrance: &Arc<Lane>,
        target: Target,
        connection: Key,
        work: WorkGuard<'_>,
        header: MessageHeader,
        message: Frame,
    ) -> Self {
        // The request owns it from here on.
        std::mem::forget(work);
        entrance.running.fetch_add(1, Ordering::AcqRel);
        Self {
            work: QueuedWork {
                core: core.clone(),
                entrance: entrance.clone(),
                connection,
            },
            target,
            header,
            message,
            permit: None,
            waited: None,
        }
    }

    /// Grants the right to be dispatched.
    pub(super) fn grant(mut self, permit: Permit) -> Self {
        self.permit = Some(permit);
        self
    }

    /// The right to be dispatched, for the thread that does it.
    pub(super) fn take_permit(&mut self) -> Option<Permit> {
        self.permit.take()
    }

    /// The place of the lane whose threads dispatch it: that of its permit, else its own.
    pub(super) fn dispatched_by(&self) -> usize {
        let permit = self.permit.as_ref();
        permit.map_or_else(|| self.target.lane.index(), Permit::lane)
    }

    /// Parks the request at the lane that has read it.
    #[cold]
    pub(super) fn park(mut self, wait: Option<Wait>) {
        // While it waits it takes no more memory than it needs.
        let mut message = Frame::new(self.message.len(), usize::MAX);
        if message.extend_from_slice(self.message.as_slice()).is_ok() {
            self.message = message;
        }
        let (core, lane) = (&self.work.core, &self.work.entrance);
        let ticket = wait.and_then(|(place, closed, _)| Ticket::new(core, place, closed, lane));
        let priority = wait.and_then(|(_, _, priority)| priority);
        self.park_with(ticket, priority);
    }

    /// Parks the request again, since no thread could dispatch it.
    pub(super) fn park_again(mut self, priority: Option<Priority>) {
        let ticket = self.waited.as_mut().and_then(|(ticket, _)| ticket.take());
        self.park_with(ticket, priority);
    }

    fn park_with(self, ticket: Option<Ticket>, priority: Option<Priority>) {
        let lane = self.work.entrance.clone();
        let until = self.waited.as_ref().map(|(_, until)| *until);
        lane.parking().park(Parked {
            octets: self.octets(),
            ticket,
            priority,
            until: until.unwrap_or_else(|| lane.parking().deadline()),
            request: self,
        });
    }

    /// A request that was parked. Its ticket holds back others as long as it is on its way.
    pub(super) fn of_parked(parked: Parked<Self>) -> Self {
        let mut request = parked.request;
        request.waited = Some((parked.ticket, parked.until));
        request
    }

    /// The lane that it is served for: the one that has read it, or one behind that.
    pub(super) fn lane(&self) -> &Arc<Lane> {
        &self.target.lane
    }

    /// The priority of the request, where a filter decides it and not the POA.
    pub(super) fn priority(&self) -> Option<Priority> {
        self.target.at
    }

    /// Octets of its message.
    pub(super) fn octets(&self) -> usize {
        self.message.len()
    }

    /// The lane that has read it, its connection there, and the header of its message.
    pub(super) fn source(&self) -> (Arc<Lane>, Key, MessageHeader) {
        let work = &self.work;
        (work.entrance.clone(), work.connection, self.header)
    }

    /// Whether it was parked before.
    pub(super) fn was_parked(&self) -> bool {
        self.waited.is_some()
    }

    /// Takes its message out.
    pub(super) fn take_message(&mut self) -> Frame {
        std::mem::replace(&mut self.message, Frame::new(0, 0))
    }

    /// Puts its message back.
    pub(super) fn set_message(&mut self, message: Frame) {
        self.message = message;
    }
}
