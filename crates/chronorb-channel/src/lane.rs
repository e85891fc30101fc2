//! A lane: the subscriptions of one priority that have work, and their timers.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::Arc;

use chronorb_rt::{Deadline, Gate, Monotonic, PiMutex};

use crate::clock::Clock;
use crate::consumer::Body;
use crate::member::Member;

/// The subscriptions of a lane that wait for its thread.
pub(crate) struct LaneQueue<B> {
    /// Locked for moments only.
    state: PiMutex<LaneState<B>>,
    /// Advances when the thread is to look, while it sleeps.
    wake: Gate,
}

struct LaneState<B> {
    /// Each subscription stands there once at most.
    ready: BinaryHeap<Reverse<Turn<B>>>,
    arrivals: u64,
    /// The number of subscriptions, for the room of `ready`.
    subscriptions: usize,
    /// Subscriptions whose timers the thread does not know yet.
    new_timers: Vec<Arc<Member<B>>>,
    is_asleep: bool,
    is_over: bool,
}

/// A subscription with events, by subpriority and then in the order of arrival.
struct Turn<B> {
    subpriority: i32,
    arrival: u64,
    member: Arc<Member<B>>,
}

/// The next timer of a subscription.
struct Due<B> {
    time: u64,
    member: Arc<Member<B>>,
}

/// The outcome of a step of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
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
    timers: BinaryHeap<Reverse<Due<B>>>,
}

impl<B: Body> LaneQueue<B> {
    pub(crate) fn new() -> Self {
        Self {
            state: PiMutex::new(LaneState {
                ready: BinaryHeap::new(),
                arrivals: 0,
                subscriptions: 0,
                new_timers: Vec::new(),
                is_asleep: false,
                is_over: false,
            }),
            wake: Gate::new(0),
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

    /// Adds a subscription that has events, and stands in no lane's list.
    pub(crate) fn notify(&self, member: &Arc<Member<B>>) {
        self.change(|state| {
            state.arrivals += 1;
            state.ready.push(Reverse(Turn {
                subpriority: member.rank.subpriority,
                arrival: state.arrivals,
                member: member.clone(),
            }));
        });
    }

    /// Adds a subscription that has timers.
    pub(crate) fn add_timers(&self, member: &Arc<Member<B>>) {
        self.change(|state| state.new_timers.push(member.clone()));
    }

    /// Ends the lane. Events that wait are dropped.
    pub(crate) fn end(&self) {
        let mut left = BinaryHeap::new();
        self.change(|state| {
            state.is_over = true;
            state.new_timers.clear();
            left = std::mem::take(&mut state.ready);
        });
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
    pub(crate) fn new(queue: Arc<LaneQueue<B>>, clock: Arc<dyn Clock>) -> Self {
        Self {
            queue,
            clock,
            timers: BinaryHeap::new(),
        }
    }

    /// Serves the lane until it ends.
    pub(crate) fn run(mut self) {
        loop {
            match self.step() {
                Step::Worked => {}
                Step::Idle { seen, due } => {
                    let due = Monotonic::from_nanos(due.unwrap_or(u64::MAX));
                    self.queue.wake.wait_while(seen, Deadline::at(due));
                }
                Step::Over => return,
            }
        }
    }

    /// Fires the first timer that is due, or else serves the subscription whose turn it is.
    pub(crate) fn step(&mut self) -> Step {
        let mut state = self.queue.state.lock();
        if state.is_over {
            return Step::Over;
        }
        for member in state.new_timers.drain(..) {
            let due = member.mailbox().and_then(|mailbox| mailbox.next_due());
            self.timers
                .extend(due.map(|time| Reverse(Due { time, member })));
        }
        let due = self.timers.peek().map(|Reverse(due)| due.time);
        let now = self.clock.now();
        if due.is_some_and(|due| due <= now) {
            drop(state);
            self.fire(now);
            return Step::Worked;
        }
        let Some(Reverse(turn)) = state.ready.pop() else {
            state.is_asleep = true;
            // A change after this point advances the gate.
            let seen = self.queue.wake.get();
            return Step::Idle { seen, due };
        };
        drop(state);
        let member = turn.member;
        let more = member.serve(now);
        if more && member.mailbox().is_some_and(|mailbox| mailbox.set_ready()) {
            self.queue.notify(&member);
        }
        Step::Worked
    }

    fn fire(&mut self, now: u64) {
        if let Some(Reverse(Due { member, .. })) = self.timers.pop()
            && let Some(time) = member.expire(now)
        {
            self.timers.push(Reverse(Due { time, member }));
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
        (self.time, self.member.rank.number)
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
