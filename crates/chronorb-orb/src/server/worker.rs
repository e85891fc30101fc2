//! A thread of a lane at work: it reads a message, and dispatches it or hands it off.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

mod affine;
#[cfg(feature = "miop")]
mod groups;
mod permits;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use chronorb_cdr::{Arena, CdrError, Frame};
use chronorb_giop::connection::Message;
use chronorb_giop::{HeaderPlaces, MessageHeader, MessageProtocol, MessageType, SystemException};
use chronorb_rt::{AffineThread, Key, Rank, ReleaseOutcome, Scheduling};
use chronorb_transport::Event;

use super::at::At;
use super::connection::WorkGuard;
use super::dispatch::{self, MessageOutcome};
use super::end::End;
use super::input::ReceiveOutcome;
use super::lane::ServerLane;
use super::load::FRAME_CAPACITY;
#[cfg(feature = "diop")]
use super::proof;
use super::queued::{DispatchTarget, HandOff, QueuedRequest, QueuedWork};
use super::scheduler::DispatchPermit;
use super::watch::ThreadWatch;
use crate::core::{Core, Host};
use crate::failure::DISCARDED;
use crate::incident::Incident;
#[cfg(feature = "schedule")]
use crate::meter::Meter;
use crate::observe::{Activity, Stage};
use crate::room::{KEPT_CAPACITY, arena_of};
use crate::rtcorba::{OwnPriority, scheduling};
use crate::upcall::{Parks, Role, Thread};

/// Returns a frame and an arena for replies, of a thread with this scheduling.
pub(super) fn reply_parts(core: &Core, scheduling: Scheduling) -> (Frame, Arena) {
    let config = &core.config;
    let reply = Frame::new(FRAME_CAPACITY, config.max_message_size);
    let mut arena = arena_of(config, scheduling);
    arena.set_bounds(config.bounds);
    (reply, arena)
}

/// A thread with the resources for one request: frames and an arena of its own.
pub(super) struct Worker {
    pub(super) core: Arc<Core>,
    host: Host,
    /// The lane that it works for at present.
    pub(super) lane: Arc<ServerLane>,
    thread: Thread,
    request: Frame,
    /// The places of the request header in the frame, if it was decoded before its dispatch.
    places: Option<Box<HeaderPlaces>>,
    reply: Frame,
    arena: Arena,
    pub(super) watch: Arc<ThreadWatch>,
    /// The permit to dispatch, where a scheduler grants permits.
    permit: Option<DispatchPermit>,
    /// The member number of the thread in the workers of its lane.
    pub(super) member: Option<usize>,
    /// Set while the thread has the priority of another lane.
    raised: bool,
    /// The entry of the thread among those that can be called back from a connection.
    stayer: Option<Arc<AffineThread>>,
    after: AfterRequest,
}

impl Worker {
    /// Returns the worker of a lane's thread.
    #[allow(clippy::disallowed_methods, reason = "once for each thread")]
    pub(super) fn new(core: &Arc<Core>, lane: &Arc<ServerLane>, watch: Arc<ThreadWatch>) -> Self {
        let (reply, arena) = reply_parts(core, lane.setup.scheduling);
        Self {
            // The size of a request is checked as it arrives; more octets may arrive with it.
            request: Frame::new(FRAME_CAPACITY, usize::MAX),
            watch,
            ..Self::with_parts(core, lane, thread_of(core, lane), reply, arena)
        }
    }

    /// Returns a worker for another thread that serves requests of a lane.
    #[allow(clippy::disallowed_methods, reason = "not for threads of lanes")]
    pub(super) fn with_parts(
        core: &Arc<Core>,
        lane: &Arc<ServerLane>,
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
            places: None,
            reply,
            arena,
            watch: Arc::new(ThreadWatch::new(String::new())),
            permit: None,
            member: None,
            raised: false,
            stayer: None,
            after: AfterRequest::Nothing,
        }
    }

    pub(super) fn into_reply_parts(self) -> (Frame, Arena) {
        (self.reply, self.arena)
    }

    /// Makes it a thread that may wait on connections, where the lane has an affinity.
    pub(super) fn become_stayer(&mut self) {
        let affinity = self.lane.strategy.affinity();
        self.stayer = affinity.map(|affinity| affinity.stayer());
    }

    /// Receives one message of a connection and handles it: without a scheduler the request is
    /// dispatched, with one it is admitted first. Further octets are left to the next thread.
    pub(super) fn serve(&mut self, lane: &ServerLane, key: Key, event: Event) {
        self.watch.set(Activity::Reading);
        self.after = AfterRequest::Nothing;
        // Application code runs not only in operations: servants and kept values are dropped, and
        // skeletons report their types. If that panics, one connection ends and not the lane.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let Some(connection) = lane.connections.get(key) else {
                return;
            };
            let at = At::new(lane, &connection, key);
            let served = match lane.strategy.scheduler() {
                None => self.read_and_dispatch(at, event),
                Some(scheduler) => self.read_and_schedule(at, scheduler, event),
            };
            let served = match served {
                Ok(()) => match self.after {
                    AfterRequest::Nothing => Ok(()),
                    AfterRequest::Stay => self.stay(at),
                    AfterRequest::EndTurn => {
                        at.end_turn();
                        Ok(())
                    }
                },
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
            Some((header, work)) => self.dispatch_noted(at, work, header),
            None => Ok(()),
        }
    }

    /// Reads one whole message into the frame, and begins the work on it; `None` where no whole
    /// message has arrived yet, or it was one for the calls of this side.
    fn take_message<'c>(
        &mut self,
        at: At<'c>,
        event: Event,
    ) -> Result<Option<(MessageHeader, WorkGuard<'c>)>, End> {
        let connection = at.connection;
        #[cfg(feature = "miop")]
        if connection.many_peers {
            return self.take_from_group(at);
        }
        self.core.at(Stage::Read);
        // Some transports report room to send together with input. Octets that are not sent now
        // wait for the next such event. Sockets of other transports almost always have room, and
        // would report it at once.
        connection.flush()?;
        if event.hang_up {
            connection.set_hung_up();
        }
        let Some(mut input) = connection.claim_input() else {
            // The thread that has the input, or the end of the turn, reads again.
            return Ok(None);
        };
        if input.closed {
            return Err(End::Lost);
        }
        input.unread = true;
        input.hung_up = connection.is_hung_up();
        let mut parts = 0;
        loop {
            let mut read = |room: &mut [u8]| connection.transport().try_recv(room);
            let received = input.receive(&mut read, &connection.negotiation, &mut self.request);
            let received = received.map_err(|end| input.give_up(end))?;
            if input.opens {
                input.opens = !connection.transport().is_established();
                // The handshake has proved the peer's identity, which access rules may name.
                if !input.opens && !at.lane.permits(connection.transport()) {
                    return Err(input.give_up(End::Lost));
                }
            }
            let limit = self.core.config.input_timeout;
            let ReceiveOutcome::Message { message, more } = received else {
                input.settle_incomplete(parts > 0, limit)?;
                if matches!(received, ReceiveOutcome::Skipping) {
                    drop(input);
                    at.rearm();
                    return Ok(None);
                }
                match input.release() {
                    ReleaseOutcome::Done => return Ok(None),
                    ReleaseOutcome::Again(again) => {
                        input = again;
                        input.unread = true;
                        input.hung_up = connection.is_hung_up();
                        continue;
                    }
                }
            };
            let joined = input.reader.join(message, &mut self.request);
            let joined = joined.map_err(|error| input.give_up(error.into()))?;
            let Some(Message { header, skipped }) = joined else {
                input.refill(&mut self.request);
                parts += 1;
                if parts < MAX_PARTS {
                    continue;
                }
                // Other connections have a right to this thread too.
                input.settle_incomplete(true, limit)?;
                drop(input);
                at.rearm();
                return Ok(None);
            };
            if header.kind == MessageType::Request && connection.is_text_unknown() {
                // Before another thread can read the next request.
                self.arena.reset();
                self.places = self.context(at).learn(header);
            }
            #[cfg(feature = "bidir")]
            let is_for_calls = is_for_calls(header.kind);
            #[cfg(feature = "bidir")]
            if is_for_calls && skipped.is_none() {
                let handled = self.handle(at, header, None);
                handled.map_err(|end| input.give_up(end))?;
            }
            self.after = if connection.is_one_at_a_time() {
                let stays = skipped.is_none()
                    && waits_for_reply(header, &self.request)
                    && input.is_worth_pinning();
                if stays {
                    AfterRequest::Stay
                } else {
                    AfterRequest::Nothing
                }
            } else if let Some(turns) = &connection.turns {
                turns.begin();
                input.paused = true;
                AfterRequest::EndTurn
            } else {
                AfterRequest::Nothing
            };
            let work = connection.begin_work();
            input.settle(true);
            // The input is released before the upcall in any case: the next thread reads it.
            let again = matches!(input.release(), ReleaseOutcome::Again(_));
            if more || again {
                match &connection.turns {
                    // Promotes a follower: it gets an event for this connection at once.
                    None => at.rearm(),
                    Some(turns) => drop(turns.await_end()),
                }
            }
            if let Some(cause) = skipped {
                self.refuse_skipped(at, header, cause)?;
                return Ok(None);
            }
            #[cfg(feature = "bidir")]
            if is_for_calls {
                return Ok(None);
            }
            return Ok(Some((header, work)));
        }
    }

    /// Tells the client of a request whose beginning is in the frame why it was skipped.
    #[cold]
    fn refuse_skipped(
        &mut self,
        at: At<'_>,
        header: MessageHeader,
        cause: CdrError,
    ) -> Result<(), End> {
        let watch = &at.lane.watch;
        watch.refused.fetch_add(1, Ordering::Relaxed);
        let places = self.places.take();
        self.refuse(at, header, places.as_deref(), cause.into())
            .map(drop)
    }

    /// Dispatches the message in the frame, or hands it off.
    #[inline]
    fn dispatch(
        &mut self,
        at: At<'_>,
        work: WorkGuard<'_>,
        header: MessageHeader,
    ) -> Result<(), End> {
        if let MessageOutcome::HandOff(hand_off) = self.handle(at, header, None)? {
            self.hand_off(at, work, header, *hand_off);
        }
        Ok(())
    }

    /// Dispatches the message as [`dispatch`](Self::dispatch) does, whose header may have been
    /// decoded.
    fn dispatch_noted(
        &mut self,
        at: At<'_>,
        work: WorkGuard<'_>,
        header: MessageHeader,
    ) -> Result<(), End> {
        let Some(places) = self.places.take() else {
            return self.dispatch(at, work, header);
        };
        if let MessageOutcome::HandOff(hand_off) = self.handle(at, header, Some(&places))? {
            self.hand_off(at, work, header, *hand_off);
        }
        Ok(())
    }

    /// Hands off the message in the frame.
    #[cold]
    #[inline(never)]
    fn hand_off(
        &mut self,
        at: At<'_>,
        work: WorkGuard<'_>,
        header: MessageHeader,
        hand_off: HandOff,
    ) {
        let (message, _) = self.detach();
        let request = self.queue(self.own_target(), at, work, header, message);
        request.hand_off(hand_off);
    }

    /// Continues a request that was parked at the lane, if one may continue.
    #[cold]
    pub(super) fn resume(&mut self, lane: &ServerLane) {
        let Some(parked) = lane.parking.take() else {
            return;
        };
        let (is_late, priority) = (parked.is_late(), parked.priority);
        let request = QueuedRequest::of_parked(parked);
        match lane.strategy.scheduler() {
            _ if is_late => drop(self.complete(request, Some(DISCARDED))),
            None => drop(self.complete(request, None)),
            Some(scheduler) => self.schedule_parked(lane, scheduler, request, priority),
        }
    }

    /// Serves a request that another thread has read, or tells its client the exception. Returns
    /// the frame of the message.
    pub(super) fn complete(
        &mut self,
        mut request: QueuedRequest,
        refusal: Option<SystemException>,
    ) -> Frame {
        std::mem::swap(&mut self.request, &mut request.message);
        let (lane, key) = (request.work.entrance.clone(), request.work.connection);
        let Some(connection) = lane.connections.get(key) else {
            return std::mem::replace(&mut self.request, request.message);
        };
        let at = At::new(&lane, &connection, key);
        let parks = self.thread.parks;
        if request.waited.is_some() && parks == Parks::Yes {
            self.thread.parks = Parks::Again;
        }
        #[cfg(feature = "schedule")]
        Meter::set_arrival(request.work.arrived);
        // As for a request that a thread has read itself, a panic of application code ends the
        // connection: the client must not wait for an answer.
        scheduling::set_received(request.received);
        let handled = catch_unwind(AssertUnwindSafe(|| match refusal {
            None => self.handle(at, request.header, request.places.as_deref()),
            Some(exception) => {
                self.refuse(at, request.header, request.places.as_deref(), exception)
            }
        }))
        .unwrap_or(Err(End::Lost));
        scheduling::set_received(None);
        #[cfg(feature = "schedule")]
        Meter::set_arrival(None);
        self.thread.parks = parks;
        std::mem::swap(&mut self.request, &mut request.message);
        let mut frame = Frame::new(0, 0);
        let outcome = match handled {
            Ok(MessageOutcome::HandOff(hand_off)) => {
                request.hand_off(*hand_off);
                Ok(())
            }
            handled => {
                std::mem::swap(&mut frame, &mut request.message);
                // The work must end before `conclude` checks whether the connection is over.
                drop(request);
                handled.map(drop)
            }
        };
        at.conclude(outcome);
        frame
    }

    /// Takes the message in the frame out. Also returns whether it has no more memory than it
    /// needs; if there is none for a copy, it keeps the frame.
    fn detach(&mut self) -> (Frame, bool) {
        match self.request.fitting_copy() {
            Ok(copy) => (copy, true),
            Err(_) => {
                let empty = Frame::new(FRAME_CAPACITY, usize::MAX);
                (std::mem::replace(&mut self.request, empty), false)
            }
        }
    }

    /// The dispatch target for the thread's own lane.
    fn own_target(&self) -> DispatchTarget {
        DispatchTarget {
            lane: self.lane.clone(),
            at: None,
        }
    }

    /// Returns a message, whose work the thread has begun, as a request for another thread.
    fn queue(
        &mut self,
        target: DispatchTarget,
        at: At<'_>,
        work: WorkGuard<'_>,
        header: MessageHeader,
        message: Frame,
    ) -> QueuedRequest {
        // The queued request has the turn.
        if self.after == AfterRequest::EndTurn {
            self.after = AfterRequest::Nothing;
        }
        QueuedRequest {
            work: QueuedWork::new(&self.core, &self.lane, at.key, work),
            target,
            header,
            places: None,
            message,
            rank: Rank::default(),
            received: None,
            permit: None,
            waited: None,
        }
    }

    /// Tells the client of the request in the frame that it is not served.
    fn refuse(
        &mut self,
        at: At<'_>,
        header: MessageHeader,
        places: Option<&HeaderPlaces>,
        exception: SystemException,
    ) -> Result<MessageOutcome, End> {
        self.handle_with(at, |context| context.refuse(header, places, exception))
    }

    /// Handles the message in the frame, from a connection of the lane, and sends the answer. A
    /// request header that was decoded before has these `places`.
    fn handle(
        &mut self,
        at: At<'_>,
        header: MessageHeader,
        places: Option<&HeaderPlaces>,
    ) -> Result<MessageOutcome, End> {
        self.watch.set(Activity::Serving);
        let begun = self.lane.watch.now();
        #[cfg(feature = "miop")]
        if at.connection.many_peers {
            let handled = self.handle_for_group(at.lane, header);
            self.watch.has_served(begun);
            return handled;
        }
        let handled = self.handle_with(at, |context| match header.kind {
            MessageType::Request => context.request(header, places),
            MessageType::LocateRequest => context.locate(header),
            // A request in progress cannot be cancelled; the client ignores its reply.
            MessageType::CancelRequest => Ok(MessageOutcome::NoReply),
            MessageType::CloseConnection => {
                #[cfg(feature = "bidir")]
                context.at.connection.end_calls(true);
                Err(End::Ended)
            }
            MessageType::MessageError => Err(End::Lost),
            #[cfg(feature = "bidir")]
            MessageType::Reply | MessageType::LocateReply => context.reply(header),
            #[cfg(not(feature = "bidir"))]
            MessageType::Reply | MessageType::LocateReply => Err(End::Malformed),
            MessageType::Fragment => Err(End::Malformed),
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

    /// The message in the frame, from this connection, with the resources of the thread.
    #[inline]
    fn context<'w>(&'w mut self, at: At<'w>) -> dispatch::Context<'w> {
        dispatch::Context {
            core: &self.core,
            host: &self.host,
            at,
            arena: &self.arena,
            request: &mut self.request,
            reply: &mut self.reply,
            thread: &self.thread,
        }
    }

    #[inline]
    fn handle_with(
        &mut self,
        at: At<'_>,
        handle: impl FnOnce(&mut dispatch::Context<'_>) -> Result<MessageOutcome, End>,
    ) -> Result<MessageOutcome, End> {
        self.arena.reset();
        let handled = handle(&mut self.context(at))?;
        if matches!(handled, MessageOutcome::Answered) {
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

/// Whether a message concerns the calls of this side. Such messages are handled in their order,
/// before another thread can read: a reply, then the peer's promise that it has begun nothing else,
/// then the end of the connection.
#[cfg(feature = "bidir")]
fn is_for_calls(kind: MessageType) -> bool {
    matches!(
        kind,
        MessageType::Reply | MessageType::LocateReply | MessageType::CloseConnection
    )
}

/// The step of a thread after a request that it has not handed off.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum AfterRequest {
    Nothing,
    /// The thread may wait on the connection of the request.
    Stay,
    /// The connection is read again, since its requests have an order.
    EndTurn,
}

/// The description of a lane's thread for upcalls.
fn thread_of(core: &Core, lane: &ServerLane) -> Thread {
    Thread {
        own: OwnPriority {
            priority: lane.priority(),
            scheduling: Some(lane.setup.scheduling),
        },
        patience: core.config.hold_timeout,
        parks: lane.strategy.parks(),
        role: Role::Lane,
    }
}

/// Notes that code of the application panicked outside of an operation.
#[cold]
#[inline(never)]
fn note_panic(lane: &ServerLane, key: Key) {
    let incident = Incident::PanickedApplication;
    match lane.connections.get(key) {
        Some(connection) => lane.incidents.note(incident, &*connection, 0),
        None => lane.incidents.note(incident, &"", 0),
    }
}

/// Whether the client waits for the reply to this message, having announced that it has one request
/// at a time.
fn waits_for_reply(header: MessageHeader, message: &Frame) -> bool {
    header.kind == MessageType::Request
        && !header.more_fragments
        && header.protocol.waits_for_target(message.as_slice())
}

/// Fragments and cancellations that a thread takes from one connection in one go.
const MAX_PARTS: u32 = 64;
