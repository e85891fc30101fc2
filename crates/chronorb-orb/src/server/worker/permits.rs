//! Dispatching under a [scheduler](PoolScheduler): a request with a permit is dispatched by this or
//! another thread; one without waits or is refused.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use chronorb_giop::{HeaderPlaces, MessageHeader, MessageProtocol, MessageType};
use chronorb_rt::{Key, Monotonic, OfferOutcome, Rank, WakeReason, set_current};
use chronorb_transport::Event;

use super::{Worker, thread_of};
use crate::failure::DISCARDED;
use crate::incident::Incident;
use crate::lanes::set_lane_of_thread;
use crate::observe::Activity;
use crate::rtcorba::{LaneOrder, Priority, scheduling};
use crate::server::at::At;
use crate::server::connection::WorkGuard;
use crate::server::dispatch;
use crate::server::end::End;
use crate::server::lane::{ServerLane, UPKEEP_PAUSE};
use crate::server::queued::{DispatchTarget, QueuedRequest};
use crate::server::scheduler::{DispatchPermit, PoolScheduler};
use crate::server::strategy::ThreadPart;
use crate::server::threads;
use crate::upcall::Role;

impl Worker {
    /// Reads a message and admits its request to the lane: dispatches it if there is a permit and
    /// readers dispatch, assigns it to another thread, buffers it, or refuses it. A pool that does
    /// not buffer reads nothing without a permit.
    pub(super) fn read_and_schedule(
        &mut self,
        at: At<'_>,
        scheduler: &PoolScheduler,
        event: Event,
    ) -> Result<(), End> {
        if !scheduler.buffers && self.permit.is_none() {
            // Without a permit nothing is read: the transport's flow control holds the client back.
            self.permit = scheduler.find_permit(self.lane.index());
            let waited = self.permit.is_none();
            // A request that was assigned to this thread while it waited comes first: perhaps all
            // other threads wait here too.
            if waited && (self.await_permit(at.lane, scheduler) || self.permit.is_none()) {
                at.lane.put_back(at.key, event);
                return Ok(());
            }
        }
        let Some((header, work)) = self.take_message(at, event)? else {
            return Ok(());
        };
        let mut places = self.places.take();
        if !matches!(
            header.kind,
            MessageType::Request | MessageType::LocateRequest
        ) {
            return self.handle(at, header, None).map(drop);
        }
        #[cfg(feature = "bidir")]
        if at.connection.is_originated() {
            self.arena.reset();
            let parts = (&mut self.request, &self.arena);
            if !dispatch::may_be_called(&self.core, parts, header, &mut places) {
                let exception = dispatch::NOT_BIDIRECTIONAL;
                let refused = self.refuse(at, header, places.as_deref(), exception);
                return refused.map(drop);
            }
        }
        let target = self.own_target();
        #[cfg(feature = "baselines")]
        let target = if scheduler.strategy.filters() && !at.connection.many_peers {
            match self.filter(at, header, &mut places)? {
                Some(filtered) => filtered,
                None => return Ok(()),
            }
        } else {
            target
        };
        if let Some(order) = scheduler.order(target.lane.index()) {
            let message = (header, places);
            return self.schedule_in_order(at, work, message, scheduler, (target, order));
        }
        match self.obtain_permit(scheduler, &target.lane) {
            Some(permit)
                if permit.lane() == target.lane.index()
                    && scheduler.strategy.readers_dispatch() =>
            {
                self.permit = Some(permit);
                self.places = places;
                self.dispatch_noted(at, work, header)
            }
            Some(permit) => {
                let message = std::mem::replace(&mut self.request, scheduler.spare_frame());
                let mut request = self.queue(target, at, work, header, message);
                request.places = places;
                assign(scheduler, request, permit);
                Ok(())
            }
            None => {
                let rank = self.rank(at, &target, scheduler, header, &mut places);
                let rank = LaneOrder::Fifo.rank(rank, None);
                let (message, is_fitting) = self.detach();
                let mut request = self.queue(target, at, work, header, message);
                request.places = places;
                // A waiting request keeps no more memory than it needs.
                if is_fitting {
                    self.buffer(scheduler, request, rank);
                } else {
                    self.turn_away(request);
                }
                Ok(())
            }
        }
    }

    /// Admits the request in the frame to a lane with an order. It is dispatched or assigned if
    /// there is a permit and no more urgent request waits.
    fn schedule_in_order(
        &mut self,
        at: At<'_>,
        work: WorkGuard<'_>,
        (header, mut places): (MessageHeader, Option<Box<HeaderPlaces>>),
        scheduler: &PoolScheduler,
        (target, order): (DispatchTarget, LaneOrder),
    ) -> Result<(), End> {
        let received = Monotonic::now();
        // A reader thread never dispatches, so it resets its arena itself.
        self.arena.reset();
        let (ceiling, lane) = (at.connection.ceiling, target.lane.clone());
        let (priority, constraint) = dispatch::urgency_of(
            &self.core,
            (&mut self.request, &self.arena),
            header,
            &mut places,
            (ceiling, received),
        );
        let priority = if lane.setup.laned {
            lane.priority()
        } else {
            priority.or_else(|| lane.priority())
        };
        let rank = order.rank(priority, constraint.as_ref());
        let permit = self.obtain_permit(scheduler, &lane);
        let is_own = |permit: &DispatchPermit| permit.lane() == lane.index();
        let readers_dispatch = scheduler.strategy.readers_dispatch();
        if readers_dispatch
            && permit.as_ref().is_some_and(is_own)
            && !scheduler.is_preceded(lane.index(), rank)
        {
            self.permit = permit;
            scheduling::set_received(Some(received));
            self.places = places;
            let served = self.dispatch_noted(at, work, header);
            scheduling::set_received(None);
            return served;
        }
        let (message, is_fitting) = self.detach();
        let mut request = self.queue(target, at, work, header, message);
        request.places = places;
        request.rank = rank;
        request.received = Some(received);
        match permit {
            Some(permit) if readers_dispatch && is_own(&permit) => {
                self.serve_queued(scheduler.most_urgent(request.grant(permit)));
            }
            Some(permit) => assign(scheduler, request, permit),
            None if is_fitting => self.buffer(scheduler, request, rank),
            None => self.turn_away(request),
        }
        Ok(())
    }

    /// Continues a parked request, as [`read_and_schedule`](Self::read_and_schedule) does for one
    /// that was read.
    pub(super) fn schedule_parked(
        &mut self,
        lane: &ServerLane,
        scheduler: &PoolScheduler,
        request: QueuedRequest,
        priority: Option<Priority>,
    ) {
        let target = request.lane().clone();
        match self.obtain_permit(scheduler, &target) {
            Some(permit)
                if permit.lane() == target.index() && scheduler.strategy.readers_dispatch() =>
            {
                self.serve_queued(request.grant(permit));
            }
            Some(permit) => assign(scheduler, request, permit),
            None if scheduler.buffers => {
                let rank = match request.received {
                    Some(_) => request.rank,
                    None => {
                        let order = scheduler.order(target.index()).unwrap_or_default();
                        order.rank(priority.or_else(|| target.priority()), None)
                    }
                };
                self.offer(scheduler, request, rank);
            }
            None => {
                // This thread, or another one, tries again when it has a permit.
                request.park_again(priority);
                self.await_permit(lane, scheduler);
            }
        }
    }

    /// Returns a permit for a request of a lane, if there is one: the thread's own, or another. A
    /// new permit needs a new thread, which this starts.
    fn obtain_permit(
        &mut self,
        scheduler: &PoolScheduler,
        lane: &Arc<ServerLane>,
    ) -> Option<DispatchPermit> {
        let own = self.permit.take();
        let mut permit = own.or_else(|| scheduler.find_permit(lane.index()))?;
        if permit.take_new() && !self.start_thread(scheduler, lane) {
            return scheduler.borrow_permit(lane.index());
        }
        Some(permit)
    }

    /// Selects the lane of the message in the frame among those that this lane reads for; `None`
    /// where a filter refuses it.
    #[cfg(feature = "baselines")]
    fn filter(
        &mut self,
        at: At<'_>,
        header: MessageHeader,
        places: &mut Option<Box<HeaderPlaces>>,
    ) -> Result<Option<DispatchTarget>, End> {
        // A reader thread never dispatches, so it resets its arena itself.
        self.arena.reset();
        let (core, lane, ceiling) = (&self.core, &self.lane, at.connection.ceiling);
        let target = crate::server::filter::target_of(
            core,
            lane,
            &mut self.request,
            &self.arena,
            header,
            places,
            ceiling,
        );
        match target? {
            Ok(target) => Ok(Some(target)),
            Err(exception) => {
                self.refuse(at, header, places.as_deref(), exception)?;
                Ok(None)
            }
        }
    }

    /// The priority at which the request in the frame waits for a permit: that of its lane, or in a
    /// pool without lanes its own. Sets the `places` of the header if that is decoded here.
    #[cold]
    fn rank(
        &mut self,
        at: At<'_>,
        target: &DispatchTarget,
        scheduler: &PoolScheduler,
        header: MessageHeader,
        places: &mut Option<Box<HeaderPlaces>>,
    ) -> Option<Priority> {
        if target.lane.setup.laned || scheduler.strategy.keeps_order() {
            return target.lane.priority();
        }
        // A reader thread never dispatches, so it resets its arena itself.
        self.arena.reset();
        let ceiling = at.connection.ceiling;
        let parts = (&mut self.request, &self.arena);
        let rank = dispatch::priority_of(&self.core, parts, header, places, ceiling);
        rank.or_else(|| target.lane.priority())
    }

    /// Lets a request wait for a permit. If there are no permits at all, the first thread on demand
    /// could not be started: no thread would ever take the request.
    fn buffer(&mut self, scheduler: &PoolScheduler, request: QueuedRequest, rank: Rank) {
        if scheduler.workers(request.lane().index()).counts().0 == 0 {
            self.turn_away(request);
        } else {
            self.offer(scheduler, request, rank);
        }
    }

    /// Lets a request wait for a permit in the backlog of its lane. If its client waits for the
    /// server only, it is answered as soon as the request has its place.
    fn offer(&mut self, scheduler: &PoolScheduler, mut request: QueuedRequest, rank: Rank) {
        let lane = request.lane().clone();
        let answer_to = self.acknowledge(&mut request);
        let on_wait = |request: &mut QueuedRequest| {
            if answer_to.is_some() {
                request.waive_answer();
            }
        };
        match scheduler.buffer(request, rank, on_wait) {
            OfferOutcome::Permit(mut request) if scheduler.strategy.readers_dispatch() => {
                self.permit = request.permit.take();
                drop(self.complete(request, None));
            }
            OfferOutcome::Permit(request) => scheduler.assign(request),
            OfferOutcome::Waits(evicted) => {
                if let Some((entrance, key)) = answer_to
                    && let Some(connection) = entrance.connections.get(key)
                {
                    // If the client is gone, its connection ends by itself.
                    let _ = At::new(&entrance, &connection, key).send(self.reply.as_slice());
                }
                lane.watch.buffered.fetch_add(1, Ordering::Relaxed);
                evicted.into_iter().for_each(|less| self.turn_away(less));
            }
            OfferOutcome::Refused(request) => self.turn_away(request),
        }
    }

    /// Writes the answer to a request whose client waits for the server only. Returns the lane and
    /// the connection of the client; `None` if there is no answer before the request is dispatched.
    fn acknowledge(&mut self, request: &mut QueuedRequest) -> Option<(Arc<ServerLane>, Key)> {
        let header = request.header;
        let protocol = header.protocol;
        if header.kind != MessageType::Request
            || !protocol.waits_for_server(request.message.as_slice())
        {
            return None;
        }
        let (lane, key) = (request.work.entrance.clone(), request.work.connection);
        let connection = lane.connections.get(key)?;
        #[cfg(feature = "miop")]
        if connection.many_peers {
            return None;
        }
        #[cfg(feature = "diop")]
        if !connection.is_proved() {
            return None;
        }
        std::mem::swap(&mut self.request, &mut request.message);
        self.arena.reset();
        let at = At::new(&lane, &connection, key);
        let is_written = self
            .context(at)
            .acknowledge(header, request.places.as_deref());
        std::mem::swap(&mut self.request, &mut request.message);
        drop(connection);
        is_written.then_some((lane, key))
    }

    /// Tells the client of a request that there is no room for it.
    fn turn_away(&mut self, request: QueuedRequest) {
        let watch = &request.lane().watch;
        watch.refused.fetch_add(1, Ordering::Relaxed);
        let lane = format_args!("lane {}", request.lane().setup.name);
        let incidents = &self.core.incidents;
        incidents.note(Incident::RefusedRequest, &lane, 0);
        drop(self.complete(request, Some(DISCARDED)));
    }

    /// Starts the thread of a new permit, once there is a request for it; returns whether it was
    /// started.
    #[cold]
    fn start_thread(&self, scheduler: &PoolScheduler, lane: &Arc<ServerLane>) -> bool {
        let part = if scheduler.strategy.readers_dispatch() {
            ThreadPart::Leader
        } else {
            ThreadPart::Dispatcher
        };
        let started = !lane.is_stopping() && threads::start_one(&self.core, lane, part).is_ok();
        scheduler.settle(lane.index(), started);
        started
    }

    /// Waits for a permit as an idle member. Returns whether the thread was called.
    #[cold]
    fn await_permit(&mut self, lane: &ServerLane, scheduler: &PoolScheduler) -> bool {
        self.watch.set(Activity::Blocked);
        let workers = scheduler.workers(lane.index());
        let member = self.member;
        if member.is_none_or(|member| workers.rest(member)) {
            let find = || {
                lane.upkeep(self.core.config.input_timeout);
                scheduler.find_permit(lane.index())
            };
            let is_called = || member.is_some_and(|member| workers.is_called(member));
            let is_over = || lane.is_stopping() || is_called();
            self.permit = scheduler.await_permit(find, is_over, UPKEEP_PAUSE);
        }
        self.rise(scheduler)
    }

    /// Notes that it is no longer idle. Returns whether it was called.
    pub(in crate::server) fn rise(&mut self, scheduler: &PoolScheduler) -> bool {
        let workers = scheduler.workers(self.lane.index());
        let risen = self.member.map(|member| workers.rise(member));
        self.raised |= risen == Some(WakeReason::Raised);
        matches!(risen, Some(WakeReason::Called | WakeReason::Raised))
    }

    /// Returns to its own priority, if it was raised for another lane.
    pub(in crate::server) fn restore_priority(&mut self) {
        if std::mem::take(&mut self.raised) {
            // The thread was started with this priority, so it is permitted.
            let _ = set_current(self.lane.setup.scheduling);
        }
    }

    /// Serves a request that has a permit; a request of another lane at the priority of that lane.
    pub(in crate::server) fn serve_queued(&mut self, mut request: QueuedRequest) {
        self.permit = request.permit.take();
        let home = if Arc::ptr_eq(request.lane(), &self.lane) {
            // Another thread has taken the request for which this one was raised.
            self.restore_priority();
            None
        } else {
            Some(self.visit(request.lane().clone()))
        };
        let role = request.target.at.map_or(Role::Lane, Role::LaneAt);
        let own_role = std::mem::replace(&mut self.thread.role, role);
        let frame = self.complete(request, None);
        self.thread.role = own_role;
        if let Some(scheduler) = self.lane.strategy.scheduler() {
            scheduler.give_frame_back(frame);
        }
        if let Some(home) = home {
            self.visit(home);
        }
    }

    /// Moves to another lane. Returns the previous one.
    #[cold]
    fn visit(&mut self, lane: Arc<ServerLane>) -> Arc<ServerLane> {
        // The request is served even where the process may not use the priority.
        let _ = set_current(lane.setup.scheduling);
        set_lane_of_thread(self.core.number, lane.setup.id, lane.setup.priority);
        self.thread = thread_of(&self.core, &lane);
        std::mem::replace(&mut self.lane, lane)
    }

    /// Returns its permit, after it has served the requests that waited for it.
    pub(in crate::server) fn give_permit_back(&mut self, scheduler: &PoolScheduler) {
        while let Some(mut permit) = self.permit.take() {
            if permit.take_new() {
                // No request needed it.
                scheduler.settle(permit.lane(), false);
            } else if let Some(next) = scheduler.release(permit) {
                self.serve_queued(next);
            }
        }
    }
}

/// Lets another thread dispatch a request.
fn assign(scheduler: &PoolScheduler, request: QueuedRequest, permit: DispatchPermit) {
    let lane = request.lane();
    if permit.lane() != lane.index() {
        lane.watch.borrowed.fetch_add(1, Ordering::Relaxed);
    }
    scheduler.assign(request.grant(permit));
}
