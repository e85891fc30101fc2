//! The scheduler of a thread pool whose threads do more than dispatch what they read:
//! Half-Sync/Half-Async and the strategies like it, threads on demand, request buffering and
//! borrowing.
//!
//! A lane has a [`Crew`]: permits for as many requests as its threads may dispatch at a time.
//! Beside the threads with permits there is always one more that reads. Under Leader/Followers it
//! is any thread of the lane that is not dispatching (there is one thread more than permits), and
//! a thread that finds a permit dispatches what it has read itself. Under Half-Sync/Half-Async it
//! is always the same thread, which dispatches nothing. A worker pool is Half-Sync/Half-Async with
//! a bounded queue in the order of arrival. A filter chain is a worker pool in each lane, with one
//! reader for all.
//!
//! A request that is read gets a permit in this order: a free one of its lane, a new one (a thread
//! on demand), a free one of a lower lane (borrowing). Without any it waits: buffered, where the
//! pool buffers, else unread in its connection.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use chronorb_cdr::Frame;
use chronorb_rt::{
    Bounds, Crew, Deadline, Gate, Kick, Offered, PiMutex, Scheduling, set_scheduling_of,
};

use super::queued::QueuedRequest;
use super::spares::FRAME_CAPACITY;
use crate::config::ThreadpoolStrategy;
use crate::order::sort_by_rank;
use crate::rtcorba::Priority;

/// The threads of a pool's lanes and their requests.
pub(super) struct PoolScheduler {
    strategy: ThreadpoolStrategy,
    posts: Box<[Post]>,
    /// The lanes from which each may borrow, the nearest first.
    lenders: Box<[Box<[usize]>]>,
    /// The lanes that may borrow from each, the most urgent first.
    borrowers: Box<[Box<[usize]>]>,
    buffers: bool,
    idle_timeout: Duration,
    /// Wakes threads that wait on the reactor of their lane.
    kick: Option<Kick>,
    /// Counts the occasions at which a reader without a permit may find one.
    vacancy: Gate,
    awaiting: AtomicU32,
    /// Frames for readers that give theirs away.
    spares: PiMutex<Vec<Frame>>,
}

/// A lane in the scheduler.
struct Post {
    crew: Crew<QueuedRequest>,
    /// The scheduling of its threads while they dispatch nothing.
    scheduling: Scheduling,
}

/// The threads of a lane.
pub(super) struct PostSetup {
    pub(super) priority: Option<Priority>,
    pub(super) scheduling: Scheduling,
    pub(super) static_threads: u32,
    pub(super) dynamic_threads: u32,
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

/// The right to dispatch one request at a time, by a thread of the lane that it belongs to. It goes
/// back to the scheduler by [`PoolScheduler::release`].
#[must_use]
pub(super) struct Permit {
    lane: usize,
    /// Its thread is still to be started.
    is_new: bool,
}

impl Permit {
    fn of(lane: usize) -> Self {
        Self {
            lane,
            is_new: false,
        }
    }

    /// The place of its lane in the pool.
    pub(super) fn lane(&self) -> usize {
        self.lane
    }

    /// Whether its thread is still to be started. The caller does that, and
    /// [settles](PoolScheduler::settle) it.
    pub(super) fn take_new(&mut self) -> bool {
        std::mem::take(&mut self.is_new)
    }
}

impl PoolScheduler {
    /// The scheduler of a pool; `None` where threads dispatch what they read, and nothing else is
    /// asked for.
    ///
    /// # Errors
    /// Those of installing the signal that wakes threads of other lanes.
    #[allow(clippy::disallowed_methods, reason = "once for each pool")]
    pub(super) fn new(setup: SchedulerSetup, lanes: &[PostSetup]) -> std::io::Result<Option<Self>> {
        let borrowing = setup.borrowing && lanes.len() > 1;
        let on_demand = lanes.iter().any(|lane| lane.dynamic_threads > 0);
        let readers_dispatch = setup.strategy.readers_dispatch();
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
        let ranked = |from: usize, towards: fn(&PostSetup, &PostSetup) -> bool| {
            let mut others: Vec<usize> = (0..lanes.len())
                .filter(|other| borrowing && towards(&lanes[*other], &lanes[from]))
                .collect();
            sort_by_rank(&mut others, |other| {
                std::cmp::Reverse(lanes[*other].priority)
            });
            others.into_boxed_slice()
        };
        let lower = |other: &PostSetup, from: &PostSetup| other.priority < from.priority;
        let higher = |other: &PostSetup, from: &PostSetup| other.priority > from.priority;
        let post = |lane: &PostSetup| {
            let greatest = lane.static_threads.saturating_add(lane.dynamic_threads);
            // Under Leader/Followers one thread reads while all others dispatch.
            let members = greatest.saturating_add(1);
            Post {
                crew: Crew::new(lane.static_threads, greatest, members, bounds),
                scheduling: lane.scheduling,
            }
        };
        Ok(Some(Self {
            strategy: setup.strategy,
            posts: lanes.iter().map(post).collect(),
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

    pub(super) fn crew(&self, lane: usize) -> &Crew<QueuedRequest> {
        &self.posts[lane].crew
    }

    /// Whether the thread that has read a request dispatches it, if there is a permit.
    pub(super) fn readers_dispatch(&self) -> bool {
        self.strategy.readers_dispatch()
    }

    /// Whether the requests that wait in a lane are served in the order of arrival, whatever their
    /// priorities.
    pub(super) fn keeps_order(&self) -> bool {
        self.strategy.keeps_order()
    }

    /// Whether filters assign the lane of a request.
    #[cfg(feature = "baselines")]
    pub(super) fn filters(&self) -> bool {
        self.strategy.filters()
    }

    /// Whether requests without a permit are read, and wait here.
    pub(super) fn buffers(&self) -> bool {
        self.buffers
    }

    /// The signal that wakes threads that wait on the reactor of their lane, where it is needed.
    pub(super) fn kick(&self) -> Option<Kick> {
        self.kick
    }

    /// The time that a thread of a lane may be idle before it ends; `None` for ever.
    pub(super) fn patience(&self, lane: usize) -> Option<Duration> {
        self.crew(lane).has_grown().then_some(self.idle_timeout)
    }

    /// A permit for a request of a lane: a free one, one of a new thread, or one of a lower lane.
    pub(super) fn find_permit(&self, lane: usize) -> Option<Permit> {
        let crew = self.crew(lane);
        if crew.try_begin() {
            return Some(Permit::of(lane));
        }
        if crew.grow() {
            return Some(Permit { lane, is_new: true });
        }
        self.borrow_permit(lane)
    }

    /// A permit of a lane lower than this one.
    pub(super) fn borrow_permit(&self, lane: usize) -> Option<Permit> {
        let mut lenders = self.lenders[lane].iter().copied();
        lenders
            .find(|lender| self.crew(*lender).try_begin())
            .map(Permit::of)
    }

    /// Notes whether the thread of a new permit of the lane was started. Without it the permit is
    /// gone.
    pub(super) fn settle(&self, lane: usize, started: bool) {
        self.crew(lane).settle(started);
        if !started {
            self.tell_vacancy();
        }
    }

    /// Waits until `find` finds a permit, or `is_over`; tries at least every `pause`.
    pub(super) fn await_permit(
        &self,
        find: impl Fn() -> Option<Permit>,
        is_over: impl Fn() -> bool,
        pause: Duration,
    ) -> Option<Permit> {
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

    /// Has a thread of a lane dispatch a request that has a permit of that lane.
    ///
    /// The priority of a borrowed thread is raised before it is woken, so that no work of a priority
    /// in between delays it. Where the pool is ending the request is dropped: its client learns that
    /// from the end of the connection.
    pub(super) fn assign(&self, request: QueuedRequest) {
        let (from, to) = (request.lane().index(), request.dispatched_by());
        let rank = rank(request.lane().priority());
        if self.crew(to).assign(rank, request).is_ok() {
            self.call(to, from);
        }
    }

    /// Wakes a member of a lane, at the priority of another one.
    fn call(&self, to: usize, from: usize) {
        let Some(call) = self.crew(to).call() else {
            // All are at work, and look for assigned requests before they rest.
            return;
        };
        let thread = call.thread();
        let raised = from != to && {
            // It may fail where the process may not use the priority any more; then it is tried
            // again by the thread itself.
            set_scheduling_of(thread, self.posts[from].scheduling).is_ok()
        };
        let member = call.make(raised);
        match self.kick {
            // It rests where it waits for events, or for a permit.
            Some(kick) => {
                kick.send(thread);
                self.tell_vacancy();
            }
            None => self.crew(to).wake(member),
        }
    }

    /// Buffers a request without a permit. A request for which there is no room, or which has to
    /// make room for this one, comes back to be refused.
    pub(super) fn buffer(&self, request: QueuedRequest, priority: Option<Priority>) -> Buffered {
        let (lane, octets) = (request.lane().index(), request.octets());
        match self.crew(lane).offer(rank(priority), octets, request) {
            Offered::Seat(request) => Buffered::Permitted(request.grant(Permit::of(lane))),
            Offered::Refused(request) => Buffered::Refused(request),
            Offered::Waits(evicted) => {
                self.lend_to(lane);
                Buffered::Waits { evicted }
            }
        }
    }

    /// Has threads of lower lanes dispatch what waits, because a permit may have become free just
    /// before the request began to wait.
    fn lend_to(&self, lane: usize) {
        while self.crew(lane).has_backlog() {
            let Some(permit) = self.borrow_permit(lane) else {
                return;
            };
            let Some(request) = self.crew(lane).take() else {
                if let Some(next) = self.release(permit) {
                    // A thread of the lender has read it, and it is as good as assigned to that.
                    self.assign(next);
                }
                return;
            };
            self.assign(request.grant(permit));
        }
    }

    /// Gives a permit back. Returns the request to be dispatched next by it, if one waits; it has
    /// the permit then.
    pub(super) fn release(&self, permit: Permit) -> Option<QueuedRequest> {
        let lane = permit.lane();
        loop {
            let above = &self.borrowers[lane];
            if let Some(borrowed) = above.iter().find_map(|lane| self.crew(*lane).take()) {
                return Some(borrowed.grant(permit));
            }
            if let Some(own) = self.crew(lane).finish() {
                let own = own.grant(permit);
                return if self.keeps_order() {
                    self.first_of(lane, own)
                } else {
                    Some(own)
                };
            }
            self.tell_vacancy();
            // A request may have begun to wait above before this permit was free.
            let waits = above.iter().any(|lane| self.crew(*lane).has_backlog());
            if !waits || !self.crew(lane).try_begin() {
                return None;
            }
        }
    }

    /// The first to arrive of a request that has waited in a lane and of those that were assigned
    /// before it did, and whose threads have not woken up yet: one of these takes the other then.
    /// `None` where they have taken all by now.
    fn first_of(&self, lane: usize, waited: QueuedRequest) -> Option<QueuedRequest> {
        let crew = self.crew(lane);
        if !crew.has_assigned() {
            return Some(waited);
        }
        match crew.assign(rank(waited.lane().priority()), waited) {
            Ok(()) => crew.take_assigned(),
            Err(waited) => Some(waited),
        }
    }

    /// Lets readers try again to find a permit.
    fn tell_vacancy(&self) {
        if self.awaiting.load(Ordering::SeqCst) > 0 {
            let vacancy = self.vacancy.get();
            // Another thread has told it meanwhile.
            let _ = self.vacancy.compare_set(vacancy, vacancy.wrapping_add(1));
        }
    }

    /// Ends the scheduler: gives back the requests that wait, and wakes all threads.
    pub(super) fn close(&self) -> Vec<QueuedRequest> {
        let mut left = Vec::new();
        for post in &self.posts {
            left.append(&mut post.crew.close());
            if self.kick.is_none() {
                post.crew.wake_all();
            }
        }
        self.tell_vacancy();
        left
    }

    /// A frame for a reader that gives its own away.
    #[allow(clippy::disallowed_methods, reason = "until there are enough of them")]
    pub(super) fn spare_frame(&self) -> Frame {
        let spare = self.spares.lock().pop();
        spare.unwrap_or_else(|| Frame::new(FRAME_CAPACITY, usize::MAX))
    }

    /// Takes back a frame that was given away.
    pub(super) fn give_frame_back(&self, frame: Frame) {
        if frame.capacity() >= FRAME_CAPACITY {
            let mut spares = self.spares.lock();
            if spares.len() < MAX_SPARES {
                spares.push(frame);
            }
        }
    }
}

/// The rank of a priority in queues: the least is that of requests without a priority.
fn rank(priority: Option<Priority>) -> i32 {
    priority.map_or(-1, |priority| priority.value().into())
}

/// What became of a request without a permit.
pub(super) enum Buffered {
    /// There was a permit after all, which the request has.
    Permitted(QueuedRequest),
    /// It waits. Less urgent requests had to make room for it, and are to be refused.
    Waits { evicted: Vec<QueuedRequest> },
    /// There is no room for it.
    Refused(QueuedRequest),
}

/// Frames that are kept for readers.
const MAX_SPARES: usize = 64;
