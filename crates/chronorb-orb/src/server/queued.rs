//! A request that one thread has read and another one dispatches.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use chronorb_cdr::Frame;
use chronorb_giop::MessageHeader;
use chronorb_rt::{Deadline, Key};

use super::connection::WorkGuard;
use super::lane::Lane;
use super::parking::ParkedRequest;
use super::scheduler::DispatchPermit;
use crate::core::Core;
use crate::poa::{Closed, Ticket};
use crate::rtcorba::Priority;

/// The lane that serves a request.
pub(super) struct DispatchTarget {
    pub(super) lane: Arc<Lane>,
    /// The priority of the request, where a filter decides it instead of the POA.
    pub(super) at: Option<Priority>,
}

/// A POA's key, why the request has to wait for it, and the priority of the request.
pub(super) type Wait = (Key, Closed, Option<Priority>);

/// A whole message, handed off to the thread that dispatches it.
pub(super) struct QueuedRequest {
    work: QueuedWork,
    target: DispatchTarget,
    header: MessageHeader,
    message: Frame,
    /// The permit to be dispatched now.
    permit: Option<DispatchPermit>,
    /// For a parked request: its ticket, and the time until which it may wait.
    waited: Option<(Option<Ticket>, Deadline)>,
}

/// The work on a message while no thread has it. Keeps its lane from ending and its connection from
/// being over, like a [`WorkGuard`].
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
        target: DispatchTarget,
        connection: Key,
        work: WorkGuard<'_>,
        header: MessageHeader,
        message: Frame,
    ) -> Self {
        // The request owns the work from here on.
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

    /// Attaches a permit.
    pub(super) fn grant(mut self, permit: DispatchPermit) -> Self {
        self.permit = Some(permit);
        self
    }

    /// Takes the permit, for the thread that dispatches the request.
    pub(super) fn take_permit(&mut self) -> Option<DispatchPermit> {
        self.permit.take()
    }

    /// The index of the lane whose threads dispatch it: that of its permit, else its own.
    pub(super) fn dispatched_by(&self) -> usize {
        let permit = self.permit.as_ref();
        permit.map_or_else(|| self.target.lane.index(), DispatchPermit::lane)
    }

    /// Parks the request at the lane that has read it.
    #[cold]
    pub(super) fn park(mut self, wait: Option<Wait>) {
        // A waiting request keeps no more memory than it needs.
        let mut message = Frame::new(self.message.len(), usize::MAX);
        if message.extend_from_slice(self.message.as_slice()).is_ok() {
            self.message = message;
        }
        let (core, lane) = (&self.work.core, &self.work.entrance);
        let ticket = wait.and_then(|(place, closed, _)| Ticket::new(core, place, closed, lane));
        let priority = wait.and_then(|(_, _, priority)| priority);
        self.park_with(ticket, priority);
    }

    /// Parks the request again, because no thread could dispatch it.
    pub(super) fn park_again(mut self, priority: Option<Priority>) {
        let ticket = self.waited.as_mut().and_then(|(ticket, _)| ticket.take());
        self.park_with(ticket, priority);
    }

    fn park_with(self, ticket: Option<Ticket>, priority: Option<Priority>) {
        let lane = self.work.entrance.clone();
        let until = self.waited.as_ref().map(|(_, until)| *until);
        lane.parking().park(ParkedRequest {
            octets: self.octets(),
            ticket,
            priority,
            until: until.unwrap_or_else(|| lane.parking().deadline()),
            request: self,
        });
    }

    /// Takes a request out of its parking place. Its ticket holds back others until it is served.
    pub(super) fn of_parked(parked: ParkedRequest<Self>) -> Self {
        let mut request = parked.request;
        request.waited = Some((parked.ticket, parked.until));
        request
    }

    /// The lane that it is served for: the one that has read it, or one that this lane serves.
    pub(super) fn lane(&self) -> &Arc<Lane> {
        &self.target.lane
    }

    /// The priority of the request, where a filter decides it instead of the POA.
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

    /// Takes out the message.
    pub(super) fn take_message(&mut self) -> Frame {
        std::mem::replace(&mut self.message, Frame::new(0, 0))
    }

    /// Puts the message back.
    pub(super) fn set_message(&mut self, message: Frame) {
        self.message = message;
    }
}
