//! The scheduler of a thread pool whose threads do more than dispatch what they read:
//! Half-Sync/Half-Async and the strategies like it, threads on demand, request buffering and
//! borrowing.
//!
//! A lane has a [`WorkerSet`] with permits for as many requests as its threads may dispatch at a
//! time. There is always one thread more than permits, which reads. Under Leader/Followers it is
//! any thread of the lane that is not dispatching; a thread that finds a permit dispatches the
//! request that it has read itself. Under Half-Sync/Half-Async it is always the same thread, which
//! never dispatches. A worker pool is Half-Sync/Half-Async with a bounded queue in the order of
//! arrival. A filter chain is a worker pool in each lane, with one reader for all lanes.
//!
//! A request that was read gets a permit in this order: a free one of its lane, a new one (a thread
//! on demand), a free one of a lower lane (borrowing). Without a permit it waits: buffered, where
//! the pool buffers, else unread in its connection.
//!
//! A lane may have a [`LaneOrder`]. Whenever a thread of it is about to take a request, it first
//! yields its processor: a reader of the same priority then reads what has arrived, so that the
//! most urgent request is chosen among all. A request that is being dispatched is not interrupted.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use chronorb_cdr::Frame;
use chronorb_rt::{
    Bounds, Deadline, Gate, Kick, OfferOutcome, PiMutex, Rank, Scheduling, WorkerSet,
    set_scheduling_of,
};

use super::lane::setup::LaneSetup;
use super::load::FRAME_CAPACITY;
use super::queued::QueuedRequest;
use crate::config::ThreadpoolStrategy;
use crate::rtcorba::LaneOrder;

/// The threads of a pool's lanes and their requests.
pub(super) struct PoolScheduler {
    pub(super) strategy: ThreadpoolStrategy,
    lanes: Box<[LaneWorkers]>,
    /// The lanes from which each may borrow, the nearest first.
    lenders: Box<[Box<[usize]>]>,
    /// The lanes that may borrow from each, the most urgent first.
    borrowers: Box<[Box<[usize]>]>,
    /// Requests without a permit are read, and wait in the scheduler.
    pub(super) buffers: bool,
    idle_timeout: Duration,
    /// Wakes threads that wait on the reactor of their lane.
    pub(super) kick: Option<Kick>,
    /// Counts the occasions on which a reader without a permit may find one.
    vacancy: Gate,
    awaiting: AtomicU32,
    /// Frames for readers that hand theirs off.
    spares: PiMutex<Vec<Frame>>,
}

/// A lane in the scheduler.
struct LaneWorkers {
    workers: WorkerSet<QueuedRequest>,
    /// The scheduling of its threads while they dispatch nothing.
    scheduling: Scheduling,
    order: LaneOrder,
}

/// The features of a pool that need a scheduler.
#[derive(Clone, Copy, Debug)]
pub(super) struct SchedulerSetup {
    pub(super) strategy: ThreadpoolStrategy,
    pub(super) borrowing: bool,
    /// `None` for no request buffering.
    pub(super) buffering: Option<Bounds>,
    pub(super) idle_timeout: Duration,
}

/// The right of a lane's thread to dispatch one request at a time. [`PoolScheduler::release`]
/// returns it.
#[must_use]
pub(super) struct DispatchPermit {
    lane: usize,
    /// Whether its thread still has to be started.
    is_new: bool,
}

impl DispatchPermit {
    fn of(lane: usize) -> Self {
        Self {
            lane,
            is_new: false,
        }
    }

    /// The index of its lane in the pool.
    pub(super) fn lane(&self) -> usize {
        self.lane
    }

    /// Whether its thread still has to be started. The caller does that, and
    /// [settles](PoolScheduler::settle) it.
    pub(super) fn take_new(&mut self) -> bool {
        std::mem::take(&mut self.is_new)
    }
}

impl PoolScheduler {
    /// Returns the scheduler of a pool; `None` where threads only dispatch what they read.
    ///
    /// # Errors
    /// Those of installing the signal that wakes threads of other lanes.
    #[allow(clippy::disallowed_methods, reason = "once for each pool")]
    pub(super) fn new(setup: SchedulerSetup, lanes: &[LaneSetup]) -> std::io::Result<Option<Self>> {
        let borrowing = setup.borrowing && lanes.len() > 1;
        let readers_dispatch = setup.strategy.readers_dispatch();
        // Threads that dispatch what they read start others by themselves, if there is one.
        let on_demand = lanes.iter().any(|lane| {
            lane.dynamic_threads > 0 && (!readers_dispatch || lane.static_threads == 0)
        });
        if readers_dispatch && !borrowing && !on_demand && setup.buffering.is_none() {
            return Ok(None);
        }
        let kick = if borrowing && readers_dispatch {
            Some(Kick::install()?)
        } else {
            None
        };
        let bounds = setup.buffering.unwrap_or(Bounds {
            things: 0,
            octets: 0,
        });
        let ranked = |from: usize, towards: fn(&LaneSetup, &LaneSetup) -> bool| {
            let mut others: Vec<usize> = (0..lanes.len())
                .filter(|other| borrowing && towards(&lanes[*other], &lanes[from]))
                .collect();
            others.sort_by_key(|other| std::cmp::Reverse(lanes[*other].priority));
            others.into_boxed_slice()
        };
        let lower = |other: &LaneSetup, from: &LaneSetup| other.priority < from.priority;
        let higher = |other: &LaneSetup, from: &LaneSetup| other.priority > from.priority;
        let post = |lane: &LaneSetup| {
            let greatest = lane.static_threads.saturating_add(lane.dynamic_threads);
            // Under Leader/Followers one thread reads while all others dispatch.
            let members = greatest.saturating_add(1);
            LaneWorkers {
                workers: WorkerSet::new(lane.static_threads, greatest, members, bounds),
                scheduling: lane.scheduling,
                order: lane.order,
            }
        };
        Ok(Some(Self {
            strategy: setup.strategy,
            lanes: lanes.iter().map(post).collect(),
            lenders: (0..lanes.len()).map(|lane| ranked(lane, lower)).collect(),
            borrowers: (0..lanes.len()).map(|lane| ranked(lane, higher)).collect(),
            buffers: setup.buffering.is_some(),
            idle_timeout: setup.idle_timeout,
            kick,
            vacancy: Gate::new(0),
            awaiting: AtomicU32::new(0),
            spares: PiMutex::new(Vec::new()),
        }))
    }

    pub(super) fn workers(&self, lane: usize) -> &WorkerSet<QueuedRequest> {
        &self.lanes[lane].workers
    }

    /// The time that a thread of a lane may be idle before it ends; `None` for ever.
    pub(super) fn patience(&self, lane: usize) -> Option<Duration> {
        self.workers(lane).has_grown().then_some(self.idle_timeout)
    }

    /// Finds a permit for a request of a lane: a free one, one for a new thread, or a borrowed one.
    pub(super) fn find_permit(&self, lane: usize) -> Option<DispatchPermit> {
        let workers = self.workers(lane);
        if workers.try_begin() {
            return Some(DispatchPermit::of(lane));
        }
        if workers.grow() {
            return Some(DispatchPermit { lane, is_new: true });
        }
        self.borrow_permit(lane)
    }

    /// Borrows a permit of a lower lane.
    pub(super) fn borrow_permit(&self, lane: usize) -> Option<DispatchPermit> {
        let mut lenders = self.lenders[lane].iter().copied();
        lenders
            .find(|lender| self.workers(*lender).try_begin())
            .map(DispatchPermit::of)
    }

    /// Notes whether the thread of a new permit of the lane was started. If not, the permit no
    /// longer exists.
    pub(super) fn settle(&self, lane: usize, started: bool) {
        self.workers(lane).settle(started);
        if !started {
            self.notify_vacancy();
        }
    }

    /// Waits until `find` finds a permit, or `is_over`; tries again at least every `pause`.
    pub(super) fn await_permit(
        &self,
        find: impl Fn() -> Option<DispatchPermit>,
        is_over: impl Fn() -> bool,
        pause: Duration,
    ) -> Option<DispatchPermit> {
        self.awaiting.fetch_add(1, Ordering::SeqCst);
        let permit = loop {
            let vacancy = self.vacancy.get();
            if let Some(permit) = find() {
                break Some(permit);
            }
            if is_over() {
                break None;
            }
            self.vacancy.wait_while(vacancy, Deadline::after(pause));
        };
        self.awaiting.fetch_sub(1, Ordering::SeqCst);
        permit
    }

    /// Assigns a request to a thread of the lane whose permit it has.
    ///
    /// The priority of a borrowed thread is raised before the thread is woken, so that no work of a
    /// priority in between delays it. Where the pool is ending the request is dropped: its client
    /// learns that from the end of the connection.
    pub(super) fn assign(&self, request: QueuedRequest) {
        let (from, to) = (request.lane().index(), request.dispatched_by());
        let rank = LaneOrder::Fifo.rank(request.lane().priority(), None);
        if self.workers(to).assign(rank, request).is_ok() {
            self.call(to, from);
        }
    }

    /// Wakes a member of a lane, at the priority of another lane.
    fn call(&self, to: usize, from: usize) {
        let Some(call) = self.workers(to).call() else {
            // All members are busy, and check for assigned requests before they become idle.
            return;
        };
        let thread = call.thread();
        let raised = from != to && {
            // This fails where the process may no longer use the priority; the thread itself then
            // tries again.
            set_scheduling_of(thread, self.lanes[from].scheduling).is_ok()
        };
        let member = call.make(raised);
        match self.kick {
            // An idle member waits for events, or for a permit.
            Some(kick) => {
                kick.send(thread);
                self.notify_vacancy();
            }
            None => self.workers(to).wake(member),
        }
    }

    /// Buffers a request without a permit, which `on_wait` changes when it gets its place. A
    /// request for which there is no room, or which is evicted for this one, comes back to be
    /// refused.
    pub(super) fn buffer(
        &self,
        request: QueuedRequest,
        rank: Rank,
        on_wait: impl FnOnce(&mut QueuedRequest),
    ) -> OfferOutcome<QueuedRequest> {
        let (lane, octets) = (request.lane().index(), request.message.len());
        let workers = self.workers(lane);
        match workers.offer(rank, octets, request, on_wait) {
            // A permit was free after all.
            OfferOutcome::Permit(request) => {
                OfferOutcome::Permit(request.grant(DispatchPermit::of(lane)))
            }
            OfferOutcome::Refused(request) => OfferOutcome::Refused(request),
            OfferOutcome::Waits(evicted) => {
                self.lend_to(lane);
                OfferOutcome::Waits(evicted)
            }
        }
    }

    /// Lets threads of lower lanes dispatch buffered requests, because a permit may have become
    /// free just before the request began to wait.
    fn lend_to(&self, lane: usize) {
        while self.workers(lane).has_backlog() {
            let Some(permit) = self.borrow_permit(lane) else {
                return;
            };
            let Some(request) = self.workers(lane).take() else {
                if let Some(next) = self.release(permit) {
                    // A thread of the lender has read it, so it counts as assigned to that lane.
                    self.assign(next);
                }
                return;
            };
            self.assign(request.grant(permit));
        }
    }

    /// The order of a lane whose waiting requests have another one than that of arrival.
    #[inline]
    pub(super) fn order(&self, lane: usize) -> Option<LaneOrder> {
        let order = self.lanes[lane].order;
        (!order.is_fifo()).then_some(order)
    }

    /// Lets a reader of the lane read what has arrived. Returns whether a more urgent request than
    /// one of this rank waits now.
    pub(super) fn is_preceded(&self, lane: usize, rank: Rank) -> bool {
        std::thread::yield_now();
        self.workers(lane).is_preceded(rank)
    }

    /// Exchanges a request for a more urgent one of its lane, which gets the permit.
    pub(super) fn most_urgent(&self, mut request: QueuedRequest) -> QueuedRequest {
        let lane = request.lane().index();
        let is_of_lane = request.dispatched_by() == lane;
        if !is_of_lane || self.order(lane).is_none() || !self.is_preceded(lane, request.rank) {
            return request;
        }
        let (rank, octets) = (request.rank, request.message.len());
        let permit = request.permit.take();
        let mut first = self.workers(lane).exchange(rank, octets, request);
        first.permit = permit;
        first
    }

    /// Returns a permit. The result is the next request to dispatch with it, if one waits; the
    /// request then has the permit.
    pub(super) fn release(&self, permit: DispatchPermit) -> Option<QueuedRequest> {
        let lane = permit.lane();
        if self.order(lane).is_some() {
            std::thread::yield_now();
        }
        loop {
            let above = &self.borrowers[lane];
            if let Some(borrowed) = above.iter().find_map(|lane| self.workers(*lane).take()) {
                return Some(borrowed.grant(permit));
            }
            if let Some(own) = self.workers(lane).finish() {
                let own = own.grant(permit);
                return if self.strategy.keeps_order() {
                    self.first_of(lane, own)
                } else {
                    Some(own)
                };
            }
            self.notify_vacancy();
            // A request may have begun to wait in a higher lane before this permit was free.
            let waits = above.iter().any(|lane| self.workers(*lane).has_backlog());
            if !waits || !self.workers(lane).try_begin() {
                return None;
            }
        }
    }

    /// The first to arrive among a request that has waited in a lane and the requests that were
    /// assigned before it to threads that have not woken up yet; one of those threads then takes
    /// the other request. `None` where they have taken all requests by now.
    fn first_of(&self, lane: usize, waited: QueuedRequest) -> Option<QueuedRequest> {
        let workers = self.workers(lane);
        if !workers.has_assigned() {
            return Some(waited);
        }
        match workers.assign(LaneOrder::Fifo.rank(waited.lane().priority(), None), waited) {
            Ok(()) => workers.take_assigned(),
            Err(waited) => Some(waited),
        }
    }

    /// Makes readers try again to find a permit.
    fn notify_vacancy(&self) {
        if self.awaiting.load(Ordering::SeqCst) > 0 {
            let vacancy = self.vacancy.get();
            // If the exchange fails, another thread has done it.
            let _ = self.vacancy.compare_set(vacancy, vacancy.wrapping_add(1));
        }
    }

    /// Ends the scheduler: gives back waiting requests, and wakes all threads.
    pub(super) fn close(&self) -> Vec<QueuedRequest> {
        let mut left = Vec::new();
        for post in &self.lanes {
            left.append(&mut post.workers.close());
            if self.kick.is_none() {
                post.workers.wake_all();
            }
        }
        self.notify_vacancy();
        left
    }

    /// Returns a frame for a reader that hands its own off.
    #[allow(clippy::disallowed_methods, reason = "until there are enough of them")]
    pub(super) fn spare_frame(&self) -> Frame {
        let spare = self.spares.lock().pop();
        spare.unwrap_or_else(|| Frame::new(FRAME_CAPACITY, usize::MAX))
    }

    /// Takes back a frame that was handed off.
    pub(super) fn give_frame_back(&self, frame: Frame) {
        if frame.capacity() >= FRAME_CAPACITY {
            let mut spares = self.spares.lock();
            if spares.len() < MAX_SPARES {
                spares.push(frame);
            }
        }
    }
}

/// The number of spare frames for readers.
const MAX_SPARES: usize = 64;
