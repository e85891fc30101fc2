//! The staff of a thread pool that does more than let each thread of a lane serve what it reads:
//! Half-Sync/Half-Async and the strategies like it, threads on demand, request buffering and borrowing.
//!
//! A lane has a [`Crew`]: seats for as many requests as its threads may serve at a time. Beside the threads that have
//! seats there is always one more that reads. Under Leader/Followers that is any of the lane's threads that is not
//! serving (there is one thread more than seats), and one that finds a seat serves what it has read itself; under
//! Half-Sync/Half-Async it is always the same one, which serves nothing. A worker pool is Half-Sync/Half-Async where
//! what waits is served in the order of arrival, and always may wait. A filter chain is a worker pool in each lane, with
//! one reader for all.
//!
//! What is read finds a seat in this order: a free one of the lane, a new one (a thread on demand), a free one of a
//! lower lane (borrowing). Without any it waits: buffered, where the pool buffers, else unread in its connection.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use chronorb_cdr::Frame;
use chronorb_rt::{
    Bounds, Crew, Deadline, Gate, Kick, Offered, PiMutex, Scheduling, set_scheduling_of,
};

use super::handed::Handed;
use super::spares::FRAME_CAPACITY;
use crate::config::ThreadpoolStrategy;
use crate::order::sort_by_rank;
use crate::rtcorba::Priority;

/// The crews of a pool's lanes, and what they share.
pub(super) struct Staff {
    strategy: ThreadpoolStrategy,
    posts: Box<[Post]>,
    /// The lanes from which each may borrow, the nearest first; and those that may borrow from it, the most urgent first.
    lenders: Box<[Box<[usize]>]>,
    borrowers: Box<[Box<[usize]>]>,
    buffers: bool,
    idle_timeout: Duration,
    /// How threads that wait on their lane's epoll set are called.
    kick: Option<Kick>,
    /// Counts what readers that found no seat may look for.
    vacancy: Gate,
    awaiting: AtomicU32,
    /// Frames for readers that give theirs away.
    spares: PiMutex<Vec<Frame>>,
}

/// A lane's place in the staff.
pub(super) struct Post {
    pub(super) crew: Crew<Handed>,
    /// What its threads have when they serve nothing.
    scheduling: Scheduling,
}

/// What a lane is to be staffed with.
pub(super) struct PostSetup {
    pub(super) priority: Option<Priority>,
    pub(super) scheduling: Scheduling,
    pub(super) static_threads: u32,
    pub(super) dynamic_threads: u32,
}

/// What a pool does beyond letting threads serve what they read.
#[derive(Clone, Copy, Debug)]
pub(super) struct StaffSetup {
    pub(super) strategy: ThreadpoolStrategy,
    pub(super) borrowing: bool,
    /// None for no request buffering.
    pub(super) buffering: Option<Bounds>,
    pub(super) idle_timeout: Duration,
}

impl Staff {
    /// The staff of a pool; `None` where threads serve what they read, and there is nothing more to it.
    ///
    /// # Errors
    /// Where threads could not be called.
    #[allow(clippy::disallowed_methods, reason = "once for each pool")]
    pub(super) fn new(setup: StaffSetup, lanes: &[PostSetup]) -> std::io::Result<Option<Self>> {
        let borrowing = setup.borrowing && lanes.len() > 1;
        let on_demand = lanes.iter().any(|lane| lane.dynamic_threads > 0);
        let readers_serve = setup.strategy.readers_serve();
        if readers_serve && !borrowing && !on_demand && setup.buffering.is_none() {
            return Ok(None);
        }
        let kick = match borrowing && readers_serve {
            true => Some(Kick::install()?),
            false => None,
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
            // Under Leader/Followers one reads while all others serve.
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

    pub(super) fn crew(&self, lane: usize) -> &Crew<Handed> {
        &self.posts[lane].crew
    }

    /// Whether who reads a request serves it, where there is a seat.
    pub(super) fn readers_serve(&self) -> bool {
        self.strategy.readers_serve()
    }

    /// Whether what waits in a lane is served in the order of arrival, whatever its priority.
    pub(super) fn keeps_order(&self) -> bool {
        self.strategy.has_queues()
    }

    /// Whether it is said of each request which lane serves it.
    pub(super) fn filters(&self) -> bool {
        self.strategy == ThreadpoolStrategy::FilterChain
    }

    /// Whether requests without a seat are read, and wait here.
    pub(super) fn buffers(&self) -> bool {
        self.buffers
    }

    /// How threads are called that wait on their lane's epoll set, where they are.
    pub(super) fn kick(&self) -> Option<Kick> {
        self.kick
    }

    /// How long a thread of a lane may be idle before it leaves; `None` for ever.
    pub(super) fn patience(&self, lane: usize) -> Option<Duration> {
        self.crew(lane).has_grown().then_some(self.idle_timeout)
    }

    /// Takes a seat of a lower lane; says which lane's.
    pub(super) fn borrow_seat(&self, lane: usize) -> Option<usize> {
        let mut lenders = self.lenders[lane].iter().copied();
        lenders.find(|lender| self.crew(*lender).try_begin())
    }

    /// Waits until `find` finds a seat, or `is_over`; looks at least every `pause`.
    pub(super) fn await_seat(
        &self,
        find: impl Fn() -> Option<usize>,
        is_over: impl Fn() -> bool,
        pause: Duration,
    ) -> Option<usize> {
        self.awaiting.fetch_add(1, Ordering::SeqCst);
        let seat = loop {
            let vacancy = self.vacancy.get();
            if let Some(seat) = find() {
                break Some(seat);
            }
            if is_over() {
                break None;
            }
            self.vacancy.wait_while(vacancy, Deadline::after(pause));
        };
        self.awaiting.fetch_sub(1, Ordering::SeqCst);
        seat
    }

    /// Has a member of a lane serve a request, for which the caller has that lane's seat.
    ///
    /// A thread that is borrowed is raised before it is woken, so that no work of a priority in between delays it.
    ///
    /// Where the pool is ending the request is dropped: its client is told so with the connection.
    pub(super) fn assign(&self, to: usize, handed: Handed) {
        let from = handed.lane().index();
        let rank = rank(handed.lane().priority());
        if self.crew(to).assign(rank, handed).is_ok() {
            self.call(to, from);
        }
    }

    /// Wakes a member of a lane, at the priority of another one.
    fn call(&self, to: usize, from: usize) {
        let Some(call) = self.crew(to).call() else {
            // All are at work, and look before they rest.
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
            // It rests where it waits for events, or for a seat.
            Some(kick) => {
                kick.send(thread);
                self.tell_vacancy();
            }
            None => self.crew(to).wake(member),
        }
    }

    /// Buffers a request that has found no seat. What has no room, or has to make room for it, comes back to be refused.
    pub(super) fn buffer(
        &self,
        lane: usize,
        handed: Handed,
        priority: Option<Priority>,
    ) -> Buffered {
        let octets = handed.octets();
        let buffered = match self.crew(lane).offer(rank(priority), octets, handed) {
            Offered::Seat(handed) => Buffered::Seat(handed),
            Offered::Refused(handed) => Buffered::Refused(handed),
            Offered::Waits(evicted) => Buffered::Waits { evicted },
        };
        if matches!(buffered, Buffered::Waits { .. }) {
            self.lend_to(lane);
        }
        buffered
    }

    /// Has members of lower lanes serve what waits: a seat may have become free just before it did.
    fn lend_to(&self, lane: usize) {
        while self.crew(lane).has_backlog() {
            let Some(lender) = self.borrow_seat(lane) else {
                return;
            };
            let Some(handed) = self.crew(lane).take() else {
                if let Some(next) = self.next(lender) {
                    // It was read by a thread of the lender, and is as good as assigned to it.
                    self.assign(lender, next);
                }
                return;
            };
            self.assign(lender, handed);
        }
    }

    /// Gives a lane's seat back, or says what is to be served next with it.
    pub(super) fn next(&self, lane: usize) -> Option<Handed> {
        loop {
            let above = &self.borrowers[lane];
            if let Some(borrowed) = above.iter().find_map(|lane| self.crew(*lane).take()) {
                return Some(borrowed);
            }
            if let Some(own) = self.crew(lane).finish() {
                return match self.keeps_order() {
                    true => self.first_of(lane, own),
                    false => Some(own),
                };
            }
            self.tell_vacancy();
            // Something may have begun to wait above before this seat was free.
            let waits = above.iter().any(|lane| self.crew(*lane).has_backlog());
            if !waits || !self.crew(lane).try_begin() {
                return None;
            }
        }
    }

    /// What came first of a request that has waited in a lane and of those that were assigned before it did, and whose
    /// threads have not woken up yet: one of these takes the other then. `None` where they have taken all by now.
    fn first_of(&self, lane: usize, waited: Handed) -> Option<Handed> {
        let crew = self.crew(lane);
        if !crew.has_assigned() {
            return Some(waited);
        }
        match crew.assign(rank(waited.lane().priority()), waited) {
            Ok(()) => crew.take_assigned(),
            Err(waited) => Some(waited),
        }
    }

    /// Lets readers look for a seat again.
    pub(super) fn tell_vacancy(&self) {
        if self.awaiting.load(Ordering::SeqCst) > 0 {
            let vacancy = self.vacancy.get();
            // Whoever was faster has told it.
            let _ = self.vacancy.compare_set(vacancy, vacancy.wrapping_add(1));
        }
    }

    /// Ends it: gives back what waits, and wakes all who wait.
    pub(super) fn close(&self) -> Vec<Handed> {
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

/// How urgent requests of a priority are; the least is what has none.
fn rank(priority: Option<Priority>) -> i32 {
    priority.map_or(-1, |priority| priority.value().into())
}

/// What became of a request without a seat.
pub(super) enum Buffered {
    /// There was a seat after all.
    Seat(Handed),
    /// It waits; less urgent ones that had to make room for it do not.
    Waits { evicted: Vec<Handed> },
    /// There is no room for it.
    Refused(Handed),
}

/// Frames that are kept for readers.
const MAX_SPARES: usize = 64;
