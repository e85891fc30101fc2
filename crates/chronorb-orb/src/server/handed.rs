//! A request that one thread has read and another one serves.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use chronorb_cdr::Frame;
use chronorb_giop::MessageHeader;
use chronorb_rt::{Deadline, Key};

use super::connection::AtWork;
use super::lane::Lane;
use crate::core::Core;
use crate::poa::{Closed, Ticket};
use crate::rtcorba::Priority;

/// Where a request is served.
pub(super) struct Target {
    pub(super) lane: Arc<Lane>,
    /// At which priority, where that is not for its POA to say.
    pub(super) at: Option<Priority>,
}

/// A POA by its place, why it has to be waited for, and the priority of the request.
pub(super) type Wait = (Key, Closed, Option<Priority>);

/// A whole message on its way to the thread that serves it. It keeps the lane that it came in by from ending, and its
/// connection from being over.
pub(super) struct Handed {
    core: Arc<Core>,
    /// The lane that it came in by.
    entrance: Arc<Lane>,
    target: Target,
    connection: Key,
    header: MessageHeader,
    message: Frame,
    /// It was parked, and has to be served by then.
    waited: Option<(Option<Ticket>, Deadline)>,
}

impl Handed {
    pub(super) fn new(
        core: &Arc<Core>,
        entrance: &Arc<Lane>,
        target: Target,
        connection: Key,
        at_work: AtWork<'_>,
        header: MessageHeader,
        message: Frame,
    ) -> Self {
        at_work.goes_on();
        entrance.running.fetch_add(1, Ordering::AcqRel);
        Self {
            core: core.clone(),
            entrance: entrance.clone(),
            target,
            connection,
            header,
            message,
            waited: None,
        }
    }

    /// Parks it at the lane that it came in by.
    #[cold]
    pub(super) fn park(mut self, wait: Option<Wait>) {
        let lane = self.entrance.clone();
        // While it waits it takes no more memory than it needs.
        let mut message = Frame::new(self.message.len(), usize::MAX);
        if message.extend_from_slice(self.message.as_slice()).is_ok() {
            self.message = message;
        }
        let ticket =
            wait.and_then(|(place, closed, _)| Ticket::new(&self.core, place, closed, &lane));
        let priority = wait.and_then(|(_, _, priority)| priority);
        lane.parking().park(self, ticket, priority);
    }

    /// When it has to be served, where it was parked before.
    pub(super) fn until(&self) -> Option<Deadline> {
        self.waited.as_ref().map(|(_, until)| *until)
    }

    /// What its POA knows it by, where it was parked before.
    pub(super) fn take_ticket(&mut self) -> Option<Ticket> {
        let (ticket, _) = self.waited.as_mut()?;
        ticket.take()
    }

    /// It waits no longer; others do as long as it is on its way.
    pub(super) fn set_waited(&mut self, ticket: Option<Ticket>, until: Deadline) {
        self.waited = Some((ticket, until));
    }

    /// The lane that it is served for; it came in by this one, or one that reads for it.
    pub(super) fn lane(&self) -> &Arc<Lane> {
        &self.target.lane
    }

    /// The priority that it is served at, where that is not for its POA to say.
    pub(super) fn priority(&self) -> Option<Priority> {
        self.target.at
    }

    /// How much memory it takes.
    pub(super) fn octets(&self) -> usize {
        self.message.len()
    }

    /// The lane that it came in by, its connection there, and the header of its message.
    pub(super) fn source(&self) -> (Arc<Lane>, Key, MessageHeader) {
        (self.entrance.clone(), self.connection, self.header)
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

impl Drop for Handed {
    fn drop(&mut self) {
        if let Some(connection) = self.entrance.connections.get(self.connection) {
            drop(connection.resume_work());
        }
        self.entrance.leave_one(&self.core);
    }
}
