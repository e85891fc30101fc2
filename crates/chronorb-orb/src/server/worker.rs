//! A thread of a lane at work: it reads a message, and dispatches it or hands it off.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

mod affine;
#[cfg(feature = "miop")]
mod groups;
mod permits;
mod queued;
mod receive;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use chronorb_cdr::{Arena, Frame};
use chronorb_giop::{MessageHeader, MessageType, SystemException};
use chronorb_rt::{AffineThread, Key};
use chronorb_transport::Event;

use super::at::At;
use super::connection::WorkGuard;
use super::dispatch::{self, MessageOutcome};
use super::end::End;
use super::lane::Lane;
#[cfg(feature = "diop")]
use super::proof;
use super::queued::{DispatchTarget, QueuedRequest, Wait};
use super::scheduler::DispatchPermit;
use super::spares::FRAME_CAPACITY;
use super::watch::ThreadWatch;
use crate::core::Core;
use crate::host::Host;
use crate::incident::Incident;
use crate::observe::{Activity, Stage};
use crate::room::KEPT_CAPACITY;
use crate::rtcorba::OwnPriority;
use crate::upcall::{Parks, Role, Thread};

/// Returns a frame and an arena for replies.
pub(super) fn reply_parts(core: &Core) -> (Frame, Arena) {
    let config = &core.config;
    let reply = Frame::new(FRAME_CAPACITY, config.max_message_size);
    let mut arena = Arena::new(config.arena_size);
    arena.set_bounds(config.bounds);
    (reply, arena)
}

/// A thread with the resources for one request: frames and an arena of its own.
pub(super) struct Worker {
    core: Arc<Core>,
    host: Host,
    /// The lane that it works for at present.
    lane: Arc<Lane>,
    thread: Thread,
    request: Frame,
    reply: Frame,
    arena: Arena,
    watch: Arc<ThreadWatch>,
    /// The permit to dispatch, where a scheduler grants permits.
    permit: Option<DispatchPermit>,
    /// The reason why the last request was parked.
    parked: Cell<Option<Wait>>,
    /// The member number of the thread in the crew of its lane.
    member: Option<usize>,
    /// Set while the thread has the priority of another lane.
    raised: bool,
    /// The entry of the thread among those that can be called back from a connection.
    stayer: Option<Arc<AffineThread>>,
    /// Set if the thread may wait on the connection of the last request.
    may_stay: bool,
}

impl Worker {
    /// Returns the worker of a lane's thread.
    #[allow(clippy::disallowed_methods, reason = "once for each thread")]
    pub(super) fn new(core: &Arc<Core>, lane: &Arc<Lane>, watch: Arc<ThreadWatch>) -> Self {
        // The size of a request is checked as it arrives; more octets may arrive with it.
        let request = Frame::new(FRAME_CAPACITY, usize::MAX);
        let (reply, arena) = reply_parts(core);
        let thread = thread_of(core, lane);
        Self {
            core: core.clone(),
            host: Host::new(core.clone()),
            lane: lane.clone(),
            thread,
            request,
            reply,
            arena,
            watch,
            permit: None,
            parked: Cell::new(None),
            member: None,
            raised: false,
            stayer: None,
            may_stay: false,
        }
    }

    /// Returns a worker for another thread that serves requests of a lane.
    #[allow(clippy::disallowed_methods, reason = "not for threads of lanes")]
    pub(super) fn with_parts(
        core: &Arc<Core>,
        lane: &Arc<Lane>,
        thread: Thread,
        reply: Frame,
        arena: Arena,
    ) -> Self {
        Self {
            core: core.clone(),
            host: Host::new(core.clone()),
            lane: lane.clone(),
            thread,
            request: Frame::new(0, usize::MAX),
            reply,
            arena,
            watch: Arc::new(ThreadWatch::new(String::new())),
            permit: None,
            parked: Cell::new(None),
            member: None,
            raised: false,
            stayer: None,
            may_stay: false,
        }
    }

    pub(super) fn into_reply_parts(self) -> (Frame, Arena) {
        (self.reply, self.arena)
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(super) fn lane(&self) -> &Arc<Lane> {
        &self.lane
    }

    pub(super) fn watch(&self) -> &Arc<ThreadWatch> {
        &self.watch
    }

    /// Exchanges the message to be handled.
    pub(super) fn exchange_request(&mut self, message: Frame) -> Frame {
        std::mem::replace(&mut self.request, message)
    }

    /// Makes it a thread that may wait on connections, where the lane has an affinity.
    pub(super) fn become_stayer(&mut self) {
        let affinity = self.lane.strategy().affinity();
        self.stayer = affinity.map(|affinity| affinity.stayer());
    }

    /// Receives one message of a connection and handles it. Further octets are left to the next
    /// thread.
    pub(super) fn serve(&mut self, lane: &Lane, key: Key, event: Event) {
        self.watch.set(Activity::Reading);
        self.may_stay = false;
        // Application code runs not only in operations: servants and kept values are dropped, and
        // skeletons report their types. If that panics, one connection ends and not the lane.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let Some(connection) = lane.connections.get(key) else {
                return;
            };
            let at = At::new(lane, &connection, key);
            let served = match lane.strategy().scheduler() {
                None => self.read_and_dispatch(at, event),
                Some(scheduler) => self.read_and_schedule(at, scheduler, event),
            };
            let served = match served {
                Ok(()) if self.may_stay => self.stay(at),
                served => served,
            };
            at.conclude(served);
        }));
        if outcome.is_err() {
            note_panic(lane, key);
            lane.end(key);
        }
    }

    /// Reads a message and dispatches it.
    fn read_and_dispatch(&mut self, at: At<'_>, event: Event) -> Result<(), End> {
        match self.take_message(at, event)? {
            Some((header, work)) => self.dispatch(at, work, header),
            None => Ok(()),
        }
    }

    /// Dispatches the message in the frame.
    fn dispatch(
        &mut self,
        at: At<'_>,
        work: WorkGuard<'_>,
        header: MessageHeader,
    ) -> Result<(), End> {
        let handled = self.handle(at, header)?;
        if !matches!(handled, MessageOutcome::Answered | MessageOutcome::NoReply) {
            self.hand_over(handled, at, work, header);
        }
        Ok(())
    }

    /// Leaves the request in the frame to the main thread, or parks it.
    #[cold]
    fn hand_over(
        &mut self,
        handled: MessageOutcome,
        at: At<'_>,
        work: WorkGuard<'_>,
        header: MessageHeader,
    ) {
        let frame = Frame::new(FRAME_CAPACITY, usize::MAX);
        let request = self.queue(self.own_target(), at, work, header, frame);
        match handled {
            MessageOutcome::ForMainThread(priority) => {
                self.core.main.take_over(&self.core, priority, request);
            }
            _ => request.park(self.take_wait()),
        }
    }

    /// Takes the reason why the last request is to be parked.
    pub(super) fn take_wait(&self) -> Option<Wait> {
        self.parked.take()
    }

    /// Continues a request that was parked at the lane, if one may continue.
    #[cold]
    pub(super) fn resume(&mut self, lane: &Lane) {
        let Some(parked) = lane.parking().take() else {
            return;
        };
        let (is_late, priority) = (parked.is_late(), parked.priority);
        let request = QueuedRequest::of_parked(parked);
        match lane.strategy().scheduler() {
            _ if is_late => drop(request.refuse_by(self)),
            None => drop(request.serve_by(self)),
            Some(scheduler) => self.schedule_parked(lane, scheduler, request, priority),
        }
    }

    /// Begins a request that may have been parked before; returns the state to restore after it.
    pub(super) fn begin_parked(&mut self, was_parked: bool) -> Parks {
        let own = self.thread.parks;
        if was_parked && own == Parks::Yes {
            self.thread.parks = Parks::Again;
        }
        own
    }

    /// Ends the request that [`begin_parked`](Self::begin_parked) began.
    pub(super) fn end_parked(&mut self, own: Parks) {
        self.thread.parks = own;
    }

    /// The dispatch target for the thread's own lane.
    fn own_target(&self) -> DispatchTarget {
        DispatchTarget {
            lane: self.lane.clone(),
            at: None,
        }
    }

    /// Takes the message in the frame, for another thread to dispatch; `frame` replaces it.
    fn queue(
        &mut self,
        target: DispatchTarget,
        at: At<'_>,
        work: WorkGuard<'_>,
        header: MessageHeader,
        frame: Frame,
    ) -> QueuedRequest {
        let message = self.exchange_request(frame);
        QueuedRequest::new(
            &self.core, &self.lane, target, at.key, work, header, message,
        )
    }

    /// Tells the client of the request in the frame that it is not served.
    pub(super) fn refuse(
        &mut self,
        at: At<'_>,
        header: MessageHeader,
        exception: SystemException,
    ) -> Result<MessageOutcome, End> {
        self.handle_with(at, |context| context.refuse(header, exception))
    }

    /// Handles the message in the frame, from a connection of the lane, and sends the answer.
    pub(super) fn handle(
        &mut self,
        at: At<'_>,
        header: MessageHeader,
    ) -> Result<MessageOutcome, End> {
        self.watch.set(Activity::Serving);
        let begun = self.lane.watch().now();
        #[cfg(feature = "miop")]
        if at.connection.has_many_peers() {
            let handled = self.handle_for_group(at.lane, header);
            self.watch.has_served(begun);
            return handled;
        }
        let handled = self.handle_with(at, |context| match header.kind {
            MessageType::Request => context.request(header),
            MessageType::LocateRequest => context.locate(header),
            // A request in progress cannot be cancelled; the client ignores its reply.
            MessageType::CancelRequest => Ok(MessageOutcome::NoReply),
            MessageType::CloseConnection => Err(End::Ended),
            MessageType::MessageError => Err(End::Lost),
            MessageType::Reply | MessageType::LocateReply | MessageType::Fragment => {
                Err(End::Malformed)
            }
        })?;
        if header.kind == MessageType::Request {
            self.watch.has_served(begun);
        }
        Ok(handled)
    }

    /// Whether the answer may go to a peer whose address is not proved: not if it is much longer
    /// than the request.
    #[cfg(feature = "diop")]
    #[cold]
    fn may_answer_unproved(&self, at: At<'_>) -> bool {
        let may = proof::may_be_answered(self.request.len(), self.reply.len());
        if !may {
            let octets = self.reply.len() as i64;
            let incident = Incident::AnswerToUnprovedPeer;
            at.lane.incidents.note(incident, at.connection, octets);
        }
        may
    }

    #[inline]
    fn handle_with(
        &mut self,
        at: At<'_>,
        handle: impl FnOnce(&mut dispatch::Context<'_>) -> Result<MessageOutcome, End>,
    ) -> Result<MessageOutcome, End> {
        self.arena.reset();
        let mut context = dispatch::Context {
            core: &self.core,
            host: &self.host,
            at,
            arena: &self.arena,
            request: &mut self.request,
            reply: &mut self.reply,
            thread: self.thread,
            parked: &self.parked,
        };
        let handled = handle(&mut context)?;
        if handled == MessageOutcome::Answered {
            #[cfg(feature = "diop")]
            if !at.connection.is_proved() && !self.may_answer_unproved(at) {
                return Ok(MessageOutcome::NoReply);
            }
            self.core.at(Stage::Write);
            at.send(self.reply.as_slice())?;
            self.core.at(Stage::Rest);
        }
        self.request.relax(KEPT_CAPACITY);
        self.reply.relax(KEPT_CAPACITY);
        Ok(handled)
    }
}

/// The description of a lane's thread for upcalls.
fn thread_of(core: &Core, lane: &Lane) -> Thread {
    Thread {
        own: OwnPriority {
            priority: lane.priority(),
            scheduling: Some(lane.setup().scheduling),
        },
        patience: core.config.hold_timeout,
        parks: lane.strategy().parks(),
        role: Role::Lane,
    }
}

/// Notes that code of the application panicked outside of an operation.
#[cold]
#[inline(never)]
fn note_panic(lane: &Lane, key: Key) {
    let incident = Incident::PanickedApplication;
    match lane.connections.get(key) {
        Some(connection) => lane.incidents.note(incident, &*connection, 0),
        None => lane.incidents.note(incident, &"", 0),
    }
}
