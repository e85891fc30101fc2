//! A lane: the subscriptions of one priority that have work, and their timers.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use chronorb_rt::{Deadline, Gate, PiMutex};

use crate::clock::{Clock, deadline_of};
use crate::consumer::Body;
use crate::member::{Binding, Member, TurnEnd};

/// The subscriptions of a lane that wait for its thread.
pub(crate) struct LaneQueue<B> {
    /// Locked for moments only.
    state: PiMutex<LaneState<B>>,
    /// Advances when the thread is to look, while it sleeps.
    wake: Gate,
    /// Advances when nothing is left to do, while threads wait for that.
    idle: Gate,
}

struct LaneState<B> {
    /// Each subscription stands there once at most.
    ready: BinaryHeap<Reverse<Turn<B>>>,
    arrivals: u64,
    /// The number of subscriptions, for the room of `ready`.
    subscriptions: usize,
    /// Bindings whose timers the thread does not know yet.
    new_timers: VecDeque<Arc<Binding<B>>>,
    /// The time of the next timer, while the thread sleeps.
    due: Option<u64>,
    /// The threads that wait until nothing is left to do.
    waiters: usize,
    is_asleep: bool,
    is_over: bool,
}

/// A subscription with events, by subpriority and then in the order of arrival.
struct Turn<B> {
    subpriority: i32,
    arrival: u64,
    member: Arc<Member<B>>,
}

/// A time at which a lane has work, whatever events come.
struct Due<B> {
    time: u64,
    /// The place among those of the same time.
    place: u64,
    work: TimedWork<B>,
}

enum TimedWork<B> {
    /// The next timer of a subscription.
    Timers(Arc<Binding<B>>),
    /// A subscription that has used its budget goes on.
    Turn(Arc<Member<B>>),
}

/// A lane whose thread sleeps while an event is put into queues of its consumers. It is called once
/// for all of them: at the latest when this is dropped.
pub(crate) struct PendingCall<'p, B: Body>(Option<&'p LaneQueue<B>>);

impl<'p, B: Body> PendingCall<'p, B> {
    #[inline]
    pub(crate) fn new() -> Self {
        Self(None)
    }

    /// Calls the lane now.
    #[inline]
    pub(crate) fn call(&mut self) {
        if let Some(lane) = self.0.take() {
            lane.call();
        }
    }

    /// Adds a subscription of a lane, which is called later.
    pub(crate) fn add(&mut self, lane: &'p LaneQueue<B>, member: &Arc<Member<B>>) {
        if lane.add(member) {
            self.0 = Some(lane);
        }
    }

    /// Calls the lane now unless it is this one.
    pub(crate) fn call_unless(&mut self, lane: &LaneQueue<B>) {
        if self.0.is_some_and(|pending| !std::ptr::eq(pending, lane)) {
            self.call();
        }
    }
}

impl<B: Body> Drop for PendingCall<'_, B> {
    #[inline]
    fn drop(&mut self) {
        self.call();
    }
}

/// The outcome of a step of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// A subscription was served, or a timer fired.
    Worked,
    /// There is nothing to do before the time of the next timer, in nanoseconds, or before the
    /// state of the wake-up gate changes from this one.
    Idle { seen: u32, due: Option<u64> },
    /// The lane ends.
    Over,
}

/// The work of a lane, for its thread or for calls of `Channel::step`.
pub(crate) struct LaneWorker<B> {
    queue: Arc<LaneQueue<B>>,
    clock: Arc<dyn Clock>,
    timers: Timers<B>,
    /// Whether the last turn was that of a timer. Then a delivery that is ready has the next one.
    has_fired: bool,
    /// Sends what consumers have deferred.
    send_deferred: Option<fn()>,
    /// The deliveries since then.
    deliveries: u32,
}

/// The work of a lane at later times, in the order of their times.
struct Timers<B> {
    heap: BinaryHeap<Reverse<Due<B>>>,
    /// The place of the next one among those of the same time.
    next_place: u64,
    /// The number at which those of ended subscriptions are removed.
    purge_at: usize,
}

impl<B: Body> Timers<B> {
    /// Adds a timer, after those of the same time.
    fn add(&mut self, time: u64, work: TimedWork<B>) {
        let place = self.next_place;
        self.next_place += 1;
        self.heap.push(Reverse(Due { time, place, work }));
    }

    /// Removes the timers of ended subscriptions, if there are many.
    fn purge(&mut self) {
        if self.heap.len() >= self.purge_at {
            self.heap.retain(|Reverse(due)| due.work.is_live());
            self.purge_at = PURGE_LEAST.max(self.heap.len() * 2);
        }
    }

    /// The time of the first one.
    fn next_due(&mut self) -> Option<u64> {
        while let Some(Reverse(first)) = self.heap.peek()
            && !first.work.is_live()
        {
            self.heap.pop();
        }
        self.heap.peek().map(|Reverse(first)| first.time)
    }
}

impl<B: Body> LaneQueue<B> {
    pub(crate) fn new() -> Self {
        Self {
            state: PiMutex::new(LaneState {
                ready: BinaryHeap::new(),
                arrivals: 0,
                subscriptions: 0,
                new_timers: VecDeque::new(),
                due: None,
                waiters: 0,
                is_asleep: false,
                is_over: false,
            }),
            wake: Gate::new(0),
            idle: Gate::new(0),
        }
    }

    /// Makes room for one more subscription, so that events allocate nothing.
    pub(crate) fn add_subscription(&self) {
        let state = &mut *self.state.lock();
        state.subscriptions += 1;
        let missing = state.subscriptions.saturating_sub(state.ready.len());
        state.ready.reserve(missing);
    }

    /// Counts a subscription as removed.
    pub(crate) fn remove_subscription(&self) {
        let subscriptions = &mut self.state.lock().subscriptions;
        *subscriptions = subscriptions.saturating_sub(1);
    }

    /// Adds a subscription that has events, and stands in no lane's list. Returns whether the
    /// thread sleeps, and is to be [called](Self::call). Until then any other notice calls it, so
    /// no thread of another priority can delay that.
    fn add(&self, member: &Arc<Member<B>>) -> bool {
        let mut state = self.state.lock();
        state.arrivals += 1;
        let arrival = state.arrivals;
        state.ready.push(Reverse(Turn {
            subpriority: member.rank.subpriority,
            arrival,
            member: member.clone(),
        }));
        state.is_asleep
    }

    /// Adds a subscription as [`add`](Self::add), and calls the thread.
    pub(crate) fn notify(&self, member: &Arc<Member<B>>) {
        if self.add(member) {
            self.call();
        }
    }

    /// Adds a binding that has timers.
    pub(crate) fn add_timers(&self, binding: &Arc<Binding<B>>) {
        self.change(|state| state.new_timers.push_back(binding.clone()));
    }

    /// Wakes the thread, if it sleeps.
    pub(crate) fn call(&self) {
        self.change(|_| ());
    }

    /// Waits until nothing is left to do. Returns whether that was before the deadline.
    pub(crate) fn flush(&self, deadline: Deadline) -> bool {
        let mut state = self.state.lock();
        let is_done = |state: &LaneState<B>| state.is_asleep && state.ready.is_empty();
        while !is_done(&state) && !state.is_over {
            if deadline.has_passed() {
                return false;
            }
            state.waiters += 1;
            let seen = self.idle.get();
            drop(state);
            self.idle.wait_while(seen, deadline);
            state = self.state.lock();
            state.waiters -= 1;
        }
        true
    }

    /// The time of the next timer, while the thread sleeps.
    pub(crate) fn next_due(&self) -> Option<u64> {
        self.state.lock().due
    }

    /// Ends the lane. Events that wait are dropped.
    pub(crate) fn end(&self) {
        let mut left = BinaryHeap::new();
        self.change(|state| {
            state.is_over = true;
            state.new_timers.clear();
            left = std::mem::take(&mut state.ready);
        });
        self.idle.advance();
    }

    fn change(&self, change: impl FnOnce(&mut LaneState<B>)) {
        let mut state = self.state.lock();
        change(&mut state);
        let is_asleep = std::mem::take(&mut state.is_asleep);
        drop(state);
        if is_asleep {
            self.wake.advance();
        }
    }
}

impl<B: Body> LaneWorker<B> {
    pub(crate) fn new(
        queue: Arc<LaneQueue<B>>,
        clock: Arc<dyn Clock>,
        send_deferred: Option<fn()>,
    ) -> Self {
        Self {
            queue,
            clock,
            timers: Timers {
                heap: BinaryHeap::new(),
                next_place: 0,
                purge_at: PURGE_LEAST,
            },
            has_fired: false,
            send_deferred,
            deliveries: 0,
        }
    }

    /// Serves the lane until it ends.
    pub(crate) fn run(&mut self) {
        loop {
            match self.step() {
                Step::Worked => {}
                Step::Idle { seen, due } => {
                    let deadline = deadline_of(&*self.clock, due);
                    self.queue.wake.wait_while(seen, deadline);
                }
                Step::Over => return,
            }
        }
    }

    /// Works until nothing is left to do. Returns the time of the next timer.
    pub(crate) fn work_off(&mut self) -> Option<u64> {
        loop {
            match self.step() {
                Step::Worked => {}
                Step::Idle { due, .. } => return due,
                Step::Over => return None,
            }
        }
    }

    /// Takes one turn: fires the first timer that is due, or serves the subscription whose turn it
    /// is. While both have work, they take turns.
    fn step(&mut self) -> Step {
        if self.deliveries >= DEFERRED_MOST {
            self.send_deferred();
        }
        let mut state = self.queue.state.lock();
        if self.deliveries > 0 && (state.is_over || state.ready.is_empty()) {
            // A timer that is due waits no longer than for a delivery.
            drop(state);
            self.send_deferred();
            return Step::Worked;
        }
        if state.is_over {
            return Step::Over;
        }
        state.is_asleep = false;
        if !state.new_timers.is_empty() {
            let new = state.new_timers.len().min(NEW_MOST);
            for binding in state.new_timers.drain(..new) {
                if let Some(time) = binding.next_due() {
                    self.timers.add(time, TimedWork::Timers(binding));
                }
            }
            self.timers.purge();
        }
        let due = self.timers.next_due();
        let is_due = due.is_some_and(|due| due <= self.clock.now());
        if is_due && (!self.has_fired || state.ready.is_empty()) {
            drop(state);
            self.has_fired = true;
            self.fire();
            return Step::Worked;
        }
        let Some(Reverse(turn)) = state.ready.pop() else {
            if !state.new_timers.is_empty() {
                return Step::Worked;
            }
            state.is_asleep = true;
            state.due = due;
            if state.waiters > 0 {
                self.queue.idle.advance();
            }
            // A change after this point advances the gate.
            let seen = self.queue.wake.get();
            return Step::Idle { seen, due };
        };
        drop(state);
        self.has_fired = false;
        self.count_delivery();
        let member = turn.member;
        match member.serve(&*self.clock) {
            TurnEnd::More if member.mailbox().is_some_and(|it| it.call()) => {
                self.queue.notify(&member);
            }
            TurnEnd::More | TurnEnd::Idle => {}
            TurnEnd::Paused(time) => self.timers.add(time, TimedWork::Turn(member)),
        }
        Step::Worked
    }

    fn fire(&mut self) {
        let Some(Reverse(Due { work, .. })) = self.timers.heap.pop() else {
            return;
        };
        match work {
            TimedWork::Timers(binding) => {
                self.count_delivery();
                if let Some(time) = binding.fire_next(&*self.clock) {
                    self.timers.add(time, TimedWork::Timers(binding));
                }
            }
            TimedWork::Turn(member) => self.queue.notify(&member),
        }
    }

    /// Counts a delivery after which something may be deferred.
    fn count_delivery(&mut self) {
        self.deliveries += u32::from(self.send_deferred.is_some());
    }

    fn send_deferred(&mut self) {
        self.deliveries = 0;
        if let Some(send) = self.send_deferred {
            send();
        }
    }
}

/// The most new bindings that a lane looks at in one turn.
const NEW_MOST: usize = 64;
/// The number of timers below which those of ended subscriptions stay.
const PURGE_LEAST: usize = 64;
/// The most deliveries before what consumers have deferred is sent.
const DEFERRED_MOST: u32 = 64;

impl<B: Body> TimedWork<B> {
    fn is_live(&self) -> bool {
        match self {
            Self::Timers(binding) => binding.is_live(),
            Self::Turn(member) => !member.gate.is_closed(),
        }
    }
}

impl<B> Turn<B> {
    fn key(&self) -> (i32, u64) {
        (self.subpriority, self.arrival)
    }
}

impl<B> Due<B> {
    fn key(&self) -> (u64, u64) {
        (self.time, self.place)
    }
}

macro_rules! ordered_by_key {
    ($name:ident) => {
        impl<B> PartialEq for $name<B> {
            fn eq(&self, other: &Self) -> bool {
                self.key() == other.key()
            }
        }

        impl<B> Eq for $name<B> {}

        impl<B> PartialOrd for $name<B> {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl<B> Ord for $name<B> {
            fn cmp(&self, other: &Self) -> Ordering {
                self.key().cmp(&other.key())
            }
        }
    };
}

ordered_by_key!(Turn);
ordered_by_key!(Due);
