//! A request that one thread has read and another one dispatches.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use chronorb_cdr::Frame;
use chronorb_giop::{HeaderPlaces, MessageHeader, MessageProtocol};
use chronorb_rt::{Deadline, Key, Monotonic, Rank};

use super::connection::WorkGuard;
use super::lane::ServerLane;
use super::main_thread;
use super::parking::ParkedRequest;
use super::scheduler::DispatchPermit;
use crate::core::Core;
use crate::poa::{Ticket, WaitCause};
use crate::rtcorba::Priority;

/// The lane that serves a request.
pub(super) struct DispatchTarget {
    pub(super) lane: Arc<ServerLane>,
    /// The priority of the request, where a filter decides it instead of the POA.
    pub(super) at: Option<Priority>,
}

/// The hand-off of a request.
pub(super) struct HandOff {
    to: HandOffTarget,
    /// The places of its header, if it can be found again by them.
    places: Option<Box<HeaderPlaces>>,
}

impl HandOff {
    /// Returns a hand-off, in memory of its own because few requests have one.
    #[cold]
    pub(super) fn new(to: HandOffTarget, places: Option<Box<HeaderPlaces>>) -> Box<Self> {
        Box::new(Self { to, places })
    }
}

/// The destination of a request that is handed off.
pub(super) enum HandOffTarget {
    /// The main thread has to serve the request, at this priority.
    MainThread(Option<Priority>),
    /// The request has to wait: the key of its POA, the reason, and the priority of the request.
    Parking(Key, WaitCause, Option<Priority>),
}

/// A whole message, handed off to the thread that dispatches it.
pub(super) struct QueuedRequest {
    pub(super) work: QueuedWork,
    pub(super) target: DispatchTarget,
    pub(super) header: MessageHeader,
    /// The places of the request header, if it was decoded.
    pub(super) places: Option<Box<HeaderPlaces>>,
    pub(super) message: Frame,
    /// The rank among the waiting requests of a lane with an order.
    pub(super) rank: Rank,
    /// The time at which it was read, in a lane with an order.
    pub(super) received: Option<Monotonic>,
    /// The permit to be dispatched now.
    pub(super) permit: Option<DispatchPermit>,
    /// For a parked request: its ticket, and the time until which it may wait.
    pub(super) waited: Option<(Option<Ticket>, Deadline)>,
}

/// The work on a message while no thread has it. Keeps its lane from ending and its connection from
/// being over, like a [`WorkGuard`].
pub(super) struct QueuedWork {
    core: Arc<Core>,
    /// The lane that has read the message.
    pub(super) entrance: Arc<ServerLane>,
    pub(super) connection: Key,
    /// The arrival of the message, where it is measured.
    #[cfg(feature = "schedule")]
    pub(super) arrived: Option<Monotonic>,
}

impl QueuedWork {
    /// Takes over the work of the thread that has read a message.
    pub(super) fn new(
        core: &Arc<Core>,
        entrance: &Arc<ServerLane>,
        connection: Key,
        work: WorkGuard<'_>,
    ) -> Self {
        work.detach();
        entrance.running.fetch_add(1, Ordering::AcqRel);
        Self {
            core: core.clone(),
            entrance: entrance.clone(),
            connection,
            #[cfg(feature = "schedule")]
            arrived: core.meter.as_ref().and_then(|meter| meter.arrival()),
        }
    }
}

impl Drop for QueuedWork {
    fn drop(&mut self) {
        if let Some(connection) = self.entrance.connections.get(self.connection) {
            connection.end_work();
            if connection.end_turn() {
                self.entrance.rearm(&connection, self.connection);
            }
        }
        self.entrance.leave_one(&self.core);
    }
}

impl QueuedRequest {
    /// Attaches a permit.
    pub(super) fn grant(mut self, permit: DispatchPermit) -> Self {
        self.permit = Some(permit);
        self
    }

    /// The index of the lane whose threads dispatch it: that of its permit, else its own.
    pub(super) fn dispatched_by(&self) -> usize {
        let permit = self.permit.as_ref();
        permit.map_or_else(|| self.target.lane.index(), DispatchPermit::lane)
    }

    /// Leaves the request to the main thread, or parks it at the lane that has read it.
    #[cold]
    pub(super) fn hand_off(mut self, hand_off: HandOff) {
        self.places = hand_off.places.or(self.places);
        match hand_off.to {
            HandOffTarget::MainThread(priority) => {
                let core = self.work.core.clone();
                main_thread::post(&core, priority, self);
            }
            HandOffTarget::Parking(place, closed, priority) => {
                let ticket =
                    Ticket::new(&self.work.core, place, closed, &self.work.entrance.handle);
                self.park(ticket, priority);
            }
        }
    }

    /// Parks the request again, because no thread could dispatch it.
    pub(super) fn park_again(mut self, priority: Option<Priority>) {
        let ticket = self.waited.as_mut().and_then(|(ticket, _)| ticket.take());
        self.park(ticket, priority);
    }

    fn park(self, ticket: Option<Ticket>, priority: Option<Priority>) {
        let lane = self.work.entrance.clone();
        let until = self.waited.as_ref().map(|(_, until)| *until);
        lane.parking.park(ParkedRequest {
            octets: self.message.len(),
            ticket,
            priority,
            until: until.unwrap_or_else(|| lane.parking.deadline()),
            request: self,
        });
    }

    /// Takes a request out of its parking place. Its ticket holds back others until it is served.
    pub(super) fn of_parked(parked: ParkedRequest<Self>) -> Self {
        let mut request = parked.request;
        request.waited = Some((parked.ticket, parked.until));
        request
    }

    /// Makes it one without an answer, because it has been answered.
    #[cold]
    pub(super) fn waive_answer(&mut self) {
        let protocol = self.header.protocol;
        protocol.waive_answer(self.message.as_mut_slice());
        self.places = None;
    }

    /// The lane that it is served for: the one that has read it, or one that this lane serves.
    pub(super) fn lane(&self) -> &Arc<ServerLane> {
        &self.target.lane
    }
}
