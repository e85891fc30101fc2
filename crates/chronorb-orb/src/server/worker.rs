//! A thread at work: it reads a message, and serves it, or has it served.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

mod conclude;
#[cfg(feature = "miop")]
mod groups;
mod handed;
mod staying;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use chronorb_cdr::{Arena, CdrError, Frame};
use chronorb_giop::connection::Message;
use chronorb_giop::{MessageHeader, MessageProtocol, MessageType, SystemException};
use chronorb_rt::{Key, Released, Risen, Stayer, set_current};
use chronorb_transport::Event;

use self::conclude::{conclude, note_panic};
use super::connection::{AtWork, ServerConnection};
use super::dispatch::{self, Handled};
use super::end::End;
use super::filter;
use super::handed::{Handed, Target, Wait};
use super::intake::{self, Intake};
use super::lane::setup::set_lane_of_thread;
use super::lane::{Lane, UPKEEP_PAUSE};
use super::parking::Unparked;
#[cfg(feature = "diop")]
use super::proof;
use super::spares::FRAME_CAPACITY;
use super::staff::{Buffered, Staff};
use super::threads::{self, Part};
use super::watch::ThreadWatch;
use crate::core::Core;
use crate::host::Host;
use crate::incident::Incident;
use crate::observe::Activity;
use crate::observe::Stage;
use crate::room::KEPT_CAPACITY;
use crate::rtcorba::{OwnPriority, Priority};
use crate::upcall::{Parks, Role, Thread};

/// The frame and the arena of replies.
pub(super) fn reply_parts(core: &Core) -> (Frame, Arena) {
    let config = &core.config;
    let reply = Frame::new(FRAME_CAPACITY, config.max_message_size);
    let mut arena = Arena::new(config.arena_size);
    arena.set_bounds(config.bounds);
    (reply, arena)
}

/// A thread with what it needs for one request: frames and an arena of its own.
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
    /// The lane of the pool whose seat it has.
    seat: Option<usize>,
    /// The seat is a new one, of a thread that is still to be started.
    is_new_seat: Cell<bool>,
    /// What the last request has to wait for that was parked.
    parked: Cell<Option<Wait>>,
    /// Its place in the crew of its lane.
    member: Option<usize>,
    /// Who called it has given it the priority of another lane.
    raised: bool,
    /// What it stays with connections by, where its lane's threads do.
    stayer: Option<Arc<Stayer>>,
    /// The connection of the request that it served last may be stayed with.
    may_stay: bool,
}

impl Worker {
    /// For a thread of a lane.
    #[allow(clippy::disallowed_methods, reason = "once for each thread")]
    pub(super) fn new(core: &Arc<Core>, lane: &Arc<Lane>, watch: Arc<ThreadWatch>) -> Self {
        // What a request may be is checked as it arrives, and what is received with it may be more.
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
            seat: None,
            is_new_seat: Cell::new(false),
            parked: Cell::new(None),
            member: None,
            raised: false,
            stayer: None,
            may_stay: false,
        }
    }

    /// For another thread that serves requests of a lane.
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
            seat: None,
            is_new_seat: Cell::new(false),
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

    /// Puts another message into the place of the one to be handled.
    pub(super) fn exchange_request(&mut self, message: Frame) -> Frame {
        std::mem::replace(&mut self.request, message)
    }

    /// Makes it a thread that may stay with connections, where the lane's threads do.
    pub(super) fn become_stayer(&mut self) {
        self.stayer = self.lane.lingering().map(|lingering| lingering.stayer());
    }

    /// Receives one message and sees to it; what comes after it is left to the next thread.
    pub(super) fn serve(&mut self, lane: &Lane, key: Key, event: Event) {
        self.watch.set(Activity::Reading);
        self.may_stay = false;
        // Application code runs not only in operations: servants and kept values are dropped, and
        // skeletons asked for their types. If that panics, one connection ends and not the lane.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let Some(connection) = lane.connections.get(key) else {
                return;
            };
            let served = match lane.staff() {
                None => self.serve_connection(lane, &connection, key, event),
                Some(staff) => self.serve_or_hand_on(lane, staff, &connection, key, event),
            };
            let served = match served {
                Ok(()) if self.may_stay => self.stay(lane, &connection, key),
                served => served,
            };
            conclude(lane, &connection, key, served);
        }));
        if outcome.is_err() {
            note_panic(lane, key);
            lane.end(key);
        }
    }

    /// Serves what it reads.
    fn serve_connection(
        &mut self,
        lane: &Lane,
        connection: &ServerConnection,
        key: Key,
        event: Event,
    ) -> Result<(), End> {
        let Some((header, at_work)) = self.take_message(lane, connection, key, event)? else {
            return Ok(());
        };
        self.serve_here(lane, connection, key, at_work, header)
    }

    fn serve_here(
        &mut self,
        lane: &Lane,
        connection: &ServerConnection,
        key: Key,
        at_work: AtWork<'_>,
        header: MessageHeader,
    ) -> Result<(), End> {
        let handled = self.handle(lane, connection, key, header)?;
        if !matches!(handled, Handled::Answered | Handled::Silently) {
            self.hand_over(handled, key, at_work, header);
        }
        Ok(())
    }

    /// Leaves the request in the frame to the main thread, or parks it.
    #[cold]
    fn hand_over(
        &mut self,
        handled: Handled,
        key: Key,
        at_work: AtWork<'_>,
        header: MessageHeader,
    ) {
        let frame = Frame::new(FRAME_CAPACITY, usize::MAX);
        let handed = self.hand_on(self.own_target(), key, at_work, header, frame);
        match handled {
            Handled::ForMainThread(priority) => {
                self.core.main.take_over(&self.core, priority, handed);
            }
            _ => handed.park(self.take_wait()),
        }
    }

    /// What the request has to wait for that is to be parked.
    pub(super) fn take_wait(&self) -> Option<Wait> {
        self.parked.take()
    }

    /// Goes on with a request that was parked at its lane, if one may: serves it, where there is a
    /// seat and that is its part, or has another thread serve it.
    #[cold]
    pub(super) fn resume(&mut self, lane: &Lane) {
        let (handed, priority) = match lane.parking().take() {
            None => return,
            Some(Unparked::Late(handed)) => {
                drop(handed.refuse_by(self));
                return;
            }
            Some(Unparked::Ready(handed, priority)) => (handed, priority),
        };
        let Some(staff) = lane.staff() else {
            drop(handed.serve_by(self));
            return;
        };
        let target = handed.lane().clone();
        let own = target.index();
        if self.seat.is_none() {
            self.seat = self.find_seat(staff, &target);
        }
        if self.is_new_seat.take() && !self.start_thread(staff, &target) {
            self.seat = staff.borrow_seat(own);
        }
        match self.seat {
            Some(seat) if seat == own && staff.readers_serve() => self.serve_handed(handed, seat),
            Some(seat) => {
                self.seat = None;
                if seat != own {
                    target.watch().borrowed.fetch_add(1, Ordering::Relaxed);
                }
                staff.assign(seat, handed);
            }
            None if staff.buffers() => {
                let rank = priority.or_else(|| target.priority());
                self.offer(&target, staff, handed, rank);
            }
            None => {
                // It looks again when it has a seat, or another thread does.
                lane.parking().put_back(handed, priority);
                self.await_seat(lane, staff);
            }
        }
    }

    /// Begins a request that was parked before or was not; returns what is to be set again after it.
    pub(super) fn begin_parked(&mut self, was_parked: bool) -> Parks {
        let own = self.thread.parks;
        if was_parked && own == Parks::Yes {
            self.thread.parks = Parks::Again;
        }
        own
    }

    /// Ends what [`begin_parked`](Self::begin_parked) has begun.
    pub(super) fn end_parked(&mut self, own: Parks) {
        self.thread.parks = own;
    }

    /// Serves what it reads where there is a seat and that is its part; otherwise another thread does, or it waits,
    /// or is refused. See [`Staff`].
    fn serve_or_hand_on(
        &mut self,
        lane: &Lane,
        staff: &Staff,
        connection: &ServerConnection,
        key: Key,
        event: Event,
    ) -> Result<(), End> {
        if !staff.buffers() && self.seat.is_none() {
            // Without a seat nothing is read: the transport holds the client back.
            self.seat = self.find_seat(staff, &self.lane);
            let waited = self.seat.is_none();
            // What is assigned to it while it waits comes first: perhaps all others wait like this.
            if waited && (self.await_seat(lane, staff) || self.seat.is_none()) {
                lane.put_back(key, event);
                return Ok(());
            }
        }
        let Some((header, at_work)) = self.take_message(lane, connection, key, event)? else {
            return Ok(());
        };
        if !matches!(
            header.kind,
            MessageType::Request | MessageType::LocateRequest
        ) {
            return self.handle(lane, connection, key, header).map(drop);
        }
        let target = match staff.filters() && !connection.has_many_peers() {
            false => self.own_target(),
            true => match self.filter(header, connection.ceiling())? {
                Ok(target) => target,
                Err(exception) => {
                    let refused = self.refuse(lane, connection, key, header, exception);
                    return refused.map(drop);
                }
            },
        };
        if self.seat.is_none() {
            self.seat = self.find_seat(staff, &target.lane);
        }
        let own = target.lane.index();
        if self.is_new_seat.take() && !self.start_thread(staff, &target.lane) {
            self.seat = staff.borrow_seat(own);
        }
        match self.seat {
            Some(seat) if seat == own && staff.readers_serve() => {
                self.serve_here(lane, connection, key, at_work, header)
            }
            Some(seat) => {
                self.seat = None;
                if seat != own {
                    let watch = target.lane.watch();
                    watch.borrowed.fetch_add(1, Ordering::Relaxed);
                }
                let handed = self.hand_on(target, key, at_work, header, staff.spare_frame());
                staff.assign(seat, handed);
                Ok(())
            }
            None => self.buffer(target, staff, (connection, key), at_work, header),
        }
    }

    /// The thread's own lane.
    fn own_target(&self) -> Target {
        Target {
            lane: self.lane.clone(),
            at: None,
        }
    }

    /// Where the message in the frame is served, of the lanes that its lane reads for.
    fn filter(
        &mut self,
        header: MessageHeader,
        ceiling: Option<Priority>,
    ) -> Result<Result<Target, SystemException>, End> {
        // Who only reads has nobody else to empty it.
        self.arena.reset();
        let (core, entrance) = (&self.core, &self.lane);
        filter::target_of(
            core,
            entrance,
            &mut self.request,
            &self.arena,
            header,
            ceiling,
        )
    }

    /// Lets the request in the frame wait for a seat.
    #[cold]
    fn buffer(
        &mut self,
        target: Target,
        staff: &Staff,
        (connection, key): (&ServerConnection, Key),
        at_work: AtWork<'_>,
        header: MessageHeader,
    ) -> Result<(), End> {
        let lane = &*target.lane.clone();
        let rank = match lane.setup().laned || staff.keeps_order() {
            true => None,
            false => {
                // Who only reads has nobody else to empty it.
                self.arena.reset();
                let ceiling = connection.ceiling();
                dispatch::priority_of(&self.core, &mut self.request, &self.arena, header, ceiling)
            }
        };
        let rank = rank.or_else(|| lane.priority());
        // What waits takes no more room than it needs.
        let mut copy = Frame::new(self.request.len(), usize::MAX);
        if copy.extend_from_slice(self.request.as_slice()).is_err() {
            let own = Frame::new(FRAME_CAPACITY, usize::MAX);
            let handed = self.hand_on(target, key, at_work, header, own);
            self.turn_away(handed);
            return Ok(());
        }
        let own = std::mem::replace(&mut self.request, copy);
        let handed = self.hand_on(target, key, at_work, header, own);
        if staff.crew(lane.index()).counts().0 == 0 {
            // The first thread on demand could not be had: nobody would serve it.
            self.turn_away(handed);
            return Ok(());
        }
        self.offer(lane, staff, handed, rank);
        Ok(())
    }

    /// Lets a request wait for a seat in the backlog of its lane.
    fn offer(&mut self, lane: &Lane, staff: &Staff, handed: Handed, rank: Option<Priority>) {
        match staff.buffer(lane.index(), handed, rank) {
            Buffered::Seat(handed) if staff.readers_serve() => {
                self.seat = Some(lane.index());
                drop(handed.serve_by(self));
            }
            Buffered::Seat(handed) => {
                staff.assign(lane.index(), handed);
            }
            Buffered::Waits { evicted } => {
                lane.watch().buffered.fetch_add(1, Ordering::Relaxed);
                evicted.into_iter().for_each(|less| self.turn_away(less));
            }
            Buffered::Refused(handed) => self.turn_away(handed),
        }
    }

    /// Tells the client of a request that there is no room for it.
    fn turn_away(&mut self, handed: Handed) {
        let watch = handed.lane().watch();
        watch.refused.fetch_add(1, Ordering::Relaxed);
        let lane = format_args!("lane {}", handed.lane().setup().name);
        let incidents = &self.core.incidents;
        incidents.note(Incident::RefusedRequest, &lane, 0);
        drop(handed.refuse_by(self));
    }

    /// A seat for a request of a lane: a free one, one of a new thread, or one of a lower lane.
    fn find_seat(&self, staff: &Staff, lane: &Lane) -> Option<usize> {
        let own = lane.index();
        let crew = staff.crew(own);
        if crew.try_begin() {
            return Some(own);
        }
        if crew.grow() {
            self.is_new_seat.set(true);
            return Some(own);
        }
        staff.borrow_seat(own)
    }

    /// Starts the thread for a new seat, once there is a request for it; returns whether there is one.
    #[cold]
    fn start_thread(&self, staff: &Staff, lane: &Arc<Lane>) -> bool {
        let part = match staff.readers_serve() {
            true => Part::LeaderAndFollower,
            false => Part::Server,
        };
        let started = !lane.is_stopping() && threads::start_one(&self.core, lane, part).is_ok();
        staff.crew(lane.index()).settle(started);
        started
    }

    /// Waits for a seat, and rests meanwhile. Returns whether it was called.
    #[cold]
    fn await_seat(&mut self, lane: &Lane, staff: &Staff) -> bool {
        self.watch.set(Activity::Blocked);
        let crew = staff.crew(lane.index());
        let member = self.member;
        if member.is_none_or(|member| crew.rest(member)) {
            let find = || {
                lane.upkeep(self.core.config.input_timeout);
                self.find_seat(staff, lane)
            };
            let is_called = || member.is_some_and(|member| crew.is_called(member));
            let is_over = || lane.is_stopping() || is_called();
            self.seat = staff.await_seat(find, is_over, UPKEEP_PAUSE);
        }
        self.rise(staff)
    }

    /// Makes it a member of its lane's crew.
    pub(super) fn become_member(&mut self, member: usize) {
        self.member = Some(member);
    }

    /// It does not rest any more. Returns whether it was called.
    pub(super) fn rise(&mut self, staff: &Staff) -> bool {
        let crew = staff.crew(self.lane.index());
        let risen = self.member.map(|member| crew.rise(member));
        self.raised |= risen == Some(Risen::Raised);
        matches!(risen, Some(Risen::Called | Risen::Raised))
    }

    /// Takes its own priority again, where it was raised for another lane.
    pub(super) fn be_lowered(&mut self) {
        if std::mem::take(&mut self.raised) {
            // The thread was made with it, so that it is permitted.
            let _ = set_current(self.lane.setup().scheduling);
        }
    }

    /// The message in the frame, for another thread to serve; `frame` takes its place.
    fn hand_on(
        &mut self,
        target: Target,
        key: Key,
        at_work: AtWork<'_>,
        header: MessageHeader,
        frame: Frame,
    ) -> Handed {
        let message = self.exchange_request(frame);
        Handed::new(
            &self.core, &self.lane, target, key, at_work, header, message,
        )
    }

    /// Serves what another thread has read, by the seat of a lane of the pool; for another lane at that one's
    /// priority.
    pub(super) fn serve_handed(&mut self, handed: Handed, seat: usize) {
        self.seat = Some(seat);
        let visits = !Arc::ptr_eq(handed.lane(), &self.lane);
        let home = match visits {
            true => Some(self.visit(handed.lane().clone())),
            false => {
                // Somebody else has taken what it was raised for.
                self.be_lowered();
                None
            }
        };
        let role = match handed.priority() {
            None => Role::Lane,
            Some(priority) => Role::LaneAt(priority),
        };
        let own_role = std::mem::replace(&mut self.thread.role, role);
        let frame = handed.serve_by(self);
        self.thread.role = own_role;
        if let Some(staff) = self.lane.staff() {
            staff.give_frame_back(frame);
        }
        if let Some(home) = home {
            self.visit(home);
        }
    }

    /// Works for another lane from now on. Returns the one before.
    #[cold]
    fn visit(&mut self, lane: Arc<Lane>) -> Arc<Lane> {
        // Where it is refused, the request is served all the same, as any is without the right to it.
        let _ = set_current(lane.setup().scheduling);
        set_lane_of_thread(&self.core, lane.setup());
        self.thread = thread_of(&self.core, &lane);
        std::mem::replace(&mut self.lane, lane)
    }

    /// Serves what waits for the seat that the thread has, until nothing does, and gives the seat back.
    pub(super) fn serve_on(&mut self) {
        if self.is_new_seat.take() {
            // It was not needed.
            self.seat = None;
            let lane = self.lane.clone();
            let Some(staff) = lane.staff() else { return };
            staff.crew(lane.index()).settle(false);
            staff.tell_vacancy();
        }
        while let Some(seat) = self.seat.take() {
            let home = self.lane.clone();
            let Some(staff) = home.staff() else { return };
            if let Some(next) = staff.next(seat) {
                self.serve_handed(next, seat);
            }
        }
    }

    /// Reads one whole message into the frame, for which the work has then begun; `None` where there is none yet.
    fn take_message<'c>(
        &mut self,
        lane: &Lane,
        connection: &'c ServerConnection,
        key: Key,
        event: Event,
    ) -> Result<Option<(MessageHeader, AtWork<'c>)>, End> {
        #[cfg(feature = "miop")]
        if connection.has_many_peers() {
            return self.take_from_group(lane, connection, key);
        }
        self.core.at(Stage::Read);
        // Some transports tell of room to send as of input. What does not go yet goes when that is told the next time: the
        // sockets of others always have room, and would tell of it at once.
        connection.flush()?;
        if event.hang_up {
            connection.set_hung_up();
        }
        let Some(mut input) = connection.input.claim() else {
            // The thread that has it was told to look again.
            return Ok(None);
        };
        if input.closed {
            return Err(End::Gone);
        }
        input.unread = true;
        input.hung_up = connection.is_hung_up();
        let mut parts = 0;
        loop {
            let intake = intake::receive(
                |room| connection.transport().try_recv(room),
                &mut input,
                &connection.negotiation,
                &mut self.request,
            )
            .map_err(|end| input.give_up(end))?;
            if input.opens {
                input.opens = !connection.transport().is_established();
                // The peer has proved its identity, which rules may name.
                if !input.opens && !lane.permits(connection.transport()) {
                    return Err(input.give_up(End::Gone));
                }
            }
            let limit = self.core.config.input_timeout;
            let Intake::Message { message, more } = intake else {
                input.settle_incomplete(parts > 0, limit)?;
                if matches!(intake, Intake::Skipping) {
                    drop(input);
                    lane.rearm(connection, key);
                    return Ok(None);
                }
                match input.release() {
                    Released::Done => return Ok(None),
                    Released::Again(again) => {
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
                parts += 1;
                if parts < MAX_PARTS {
                    continue;
                }
                // Others have a right to this thread too.
                input.settle_incomplete(true, limit)?;
                drop(input);
                lane.rearm(connection, key);
                return Ok(None);
            };
            if header.kind == MessageType::Request && connection.is_text_unknown() {
                // Before the next request can be read by another thread.
                self.arena.reset();
                dispatch::learn_text(connection, &mut self.request, &self.arena, header);
            }
            self.may_stay = skipped.is_none()
                && connection.is_one_at_a_time()
                && waits_for_reply(header, &self.request)
                && input.is_worth_staying();
            let at_work = connection.begin_work();
            input.settle(true);
            // The input is let go before the upcall, whatever it is told: the next thread looks.
            let again = matches!(input.release(), Released::Again(_));
            if more || again {
                // Promotes a follower: it gets an event for this connection at once.
                lane.rearm(connection, key);
            }
            if let Some(cause) = skipped {
                self.refuse_skipped(lane, connection, key, header, cause)?;
                return Ok(None);
            }
            return Ok(Some((header, at_work)));
        }
    }

    /// Tells the client of a request whose beginning is in the frame why it was skipped.
    #[cold]
    fn refuse_skipped(
        &mut self,
        lane: &Lane,
        connection: &ServerConnection,
        key: Key,
        header: MessageHeader,
        cause: CdrError,
    ) -> Result<(), End> {
        lane.watch().refused.fetch_add(1, Ordering::Relaxed);
        self.refuse(lane, connection, key, header, cause.into())
            .map(drop)
    }

    /// Tells the client of the request in the frame that it is not served.
    pub(super) fn refuse(
        &mut self,
        lane: &Lane,
        connection: &ServerConnection,
        key: Key,
        header: MessageHeader,
        exception: SystemException,
    ) -> Result<Handled, End> {
        self.handle_with(lane, connection, key, |context| {
            context.refuse(header, exception)
        })
    }

    /// Handles the message in the frame, of a connection of the lane, and sends the answer.
    pub(super) fn handle(
        &mut self,
        lane: &Lane,
        connection: &ServerConnection,
        key: Key,
        header: MessageHeader,
    ) -> Result<Handled, End> {
        self.watch.set(Activity::Serving);
        let begun = self.lane.watch().now();
        #[cfg(feature = "miop")]
        if connection.has_many_peers() {
            let handled = self.handle_for_group(lane, header);
            self.watch.has_served(begun);
            return handled;
        }
        let handled = self.handle_with(lane, connection, key, |context| match header.kind {
            MessageType::Request => context.request(header),
            MessageType::LocateRequest => context.locate(header),
            // A request that has begun cannot be taken back; its reply is ignored by the client.
            MessageType::CancelRequest => Ok(Handled::Silently),
            MessageType::CloseConnection => Err(End::Ended),
            MessageType::MessageError => Err(End::Gone),
            MessageType::Reply | MessageType::LocateReply | MessageType::Fragment => {
                Err(End::Malformed)
            }
        })?;
        if header.kind == MessageType::Request {
            self.watch.has_served(begun);
        }
        Ok(handled)
    }

    /// Whether the answer may go to a peer whose address is not proved: not where it is much longer
    /// than the request.
    #[cfg(feature = "diop")]
    #[cold]
    fn may_answer_unproved(&self, lane: &Lane, connection: &ServerConnection) -> bool {
        let may = proof::may_be_answered(self.request.len(), self.reply.len());
        if !may {
            let octets = self.reply.len() as i64;
            let incident = Incident::AnswerToUnprovedPeer;
            lane.incidents.note(incident, connection, octets);
        }
        may
    }

    #[inline]
    fn handle_with(
        &mut self,
        lane: &Lane,
        connection: &ServerConnection,
        key: Key,
        handle: impl FnOnce(&mut dispatch::Context<'_>) -> Result<Handled, End>,
    ) -> Result<Handled, End> {
        self.arena.reset();
        let mut context = dispatch::Context {
            core: &self.core,
            host: &self.host,
            lane,
            connection,
            key,
            arena: &self.arena,
            request: &mut self.request,
            reply: &mut self.reply,
            thread: self.thread,
            parked: &self.parked,
        };
        let handled = handle(&mut context)?;
        if handled == Handled::Answered {
            #[cfg(feature = "diop")]
            if !connection.is_proved() && !self.may_answer_unproved(lane, connection) {
                return Ok(Handled::Silently);
            }
            self.core.at(Stage::Write);
            lane.send(connection, key, self.reply.as_slice())?;
            self.core.at(Stage::Rest);
        }
        self.request.relax(KEPT_CAPACITY);
        self.reply.relax(KEPT_CAPACITY);
        Ok(handled)
    }
}

/// Whether the client of a message sends the next one only after it was answered, where it
/// announced that it sends one at a time.
fn waits_for_reply(header: MessageHeader, message: &Frame) -> bool {
    header.kind == MessageType::Request
        && !header.more_fragments
        && header.protocol.waits_for_target(message.as_slice())
}

/// A thread of a lane, as the one that serves.
fn thread_of(core: &Core, lane: &Lane) -> Thread {
    Thread {
        own: OwnPriority {
            priority: lane.priority(),
            scheduling: Some(lane.setup().scheduling),
        },
        patience: core.config.hold_timeout,
        // The threads of connections hold up nobody else.
        parks: match lane.setup().per_connection {
            true => Parks::No,
            false => Parks::Yes,
        },
        role: Role::Lane,
    }
}

/// Fragments and cancellations that a thread takes from one connection in one go.
const MAX_PARTS: u32 = 64;
