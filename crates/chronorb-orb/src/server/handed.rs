//! A request that one thread has read and another one serves.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use chronorb_cdr::Frame;
use chronorb_giop::{MessageHeader, SystemException};
use chronorb_rt::{Deadline, Key};

use super::connection::AtWork;
use super::dispatch::{DISCARDED, Handled, Wait};
use super::filter::Target;
use super::intake::End;
use super::lane::Lane;
use super::threads;
use super::worker::{self, Worker};
use crate::core::Core;
use crate::poa::Ticket;
use crate::rtcorba::Priority;

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

    /// Serves it. The worker's own frame for requests comes back in exchange.
    pub(super) fn serve_by(self, worker: &mut Worker) -> Frame {
        self.conclude(worker, None)
    }

    /// Tells the client that it is not served: the ORB has no room for it.
    pub(super) fn refuse_by(self, worker: &mut Worker) -> Frame {
        self.conclude(worker, Some(DISCARDED))
    }

    /// Serves it, or tells the client why it is not.
    fn conclude(mut self, worker: &mut Worker, refusal: Option<SystemException>) -> Frame {
        let message = std::mem::replace(&mut self.message, Frame::new(0, 0));
        let (lane, key, header) = (self.entrance.clone(), self.connection, self.header);
        let own = worker.exchange_request(message);
        let Some(connection) = lane.connections.get(key) else {
            return worker.exchange_request(own);
        };
        let parks = worker.begin_parked(self.waited.is_some());
        // As for a request that a thread has read itself, a panic of what the application left is
        // the end of the connection: the client must not wait for an answer.
        let handled = catch_unwind(AssertUnwindSafe(|| match refusal {
            None => worker.handle(&lane, &connection, key, header),
            Some(exception) => worker.refuse(&lane, &connection, key, header, exception),
        }))
        .unwrap_or(Err(End::Gone));
        worker.end_parked(parks);
        let outcome = match handled {
            Ok(Handled::ForMainThread(priority)) => {
                let message = worker.exchange_request(Frame::new(0, 0));
                self.message = message;
                let core = self.core.clone();
                core.main.take_over(&core, priority, self);
                Ok(())
            }
            Ok(Handled::Parked) => {
                self.message = worker.exchange_request(Frame::new(0, 0));
                self.park(worker.take_wait());
                Ok(())
            }
            handled => {
                // The work ends before it is asked whether the connection is over.
                drop(self);
                handled.map(drop)
            }
        };
        worker::conclude(&lane, &connection, key, outcome);
        worker.exchange_request(own)
    }
}

impl Drop for Handed {
    fn drop(&mut self) {
        if let Some(connection) = self.entrance.connections.get(self.connection) {
            drop(connection.resume_work());
        }
        threads::leave(&self.core, &self.entrance);
    }
}
