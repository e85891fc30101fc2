//! A lane: the subscriptions of one priority, their state and timers.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use crate::correlation::{Offer, State};
use crate::event::{DEADLINE_TIMEOUT, Event, Header, INTERVAL_TIMEOUT, TIMEOUT};
use crate::filter::TimerKind;
use crate::octets::OctetAccount;
use crate::plan::Routes;
use crate::program::Program;

/// The name of a subscription. Names are not used again, and have the order of dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriptionId {
    subpriority: i32,
    /// The place by age.
    number: u64,
}

/// The subscriptions of one priority, without threads and without a clock.
///
/// A lane belongs to one thread at a time. Its caller tells it the time, in nanoseconds of a clock
/// that never goes back, and takes what it delivers. Events and timers allocate nothing, but for
/// the clones that conjunctions keep.
///
/// # Example
/// ```
/// use std::time::Duration;
/// use chronorb_events::{Event, Filter, Lane, Limits, Program, Rules};
///
/// let mut lane = Lane::new();
/// let filter = Filter::Conjunction(vec![Filter::event(1, 20), Filter::event(2, 20)]);
/// let program = Program::compile(&filter, Rules::Corrected, &Limits::default())?;
/// lane.subscribe(program.into(), 0, 0);
///
/// let mut sets = Vec::new();
/// for source in [1, 2] {
///     lane.push(&Event::new(source, 20, ()), 0, |_, set| sets.push(set.len()));
/// }
/// assert_eq!(sets, [2]);
/// # Ok::<(), chronorb_events::SubscriptionError>(())
/// ```
#[derive(Debug)]
pub struct Lane<B> {
    subscriptions: BTreeMap<SubscriptionId, Subscription<B>>,
    plan: Routes<SubscriptionId>,
    timers: BinaryHeap<Reverse<Timer>>,
    next_number: u64,
    arrivals: u64,
}

#[derive(Debug)]
struct Subscription<B> {
    program: Arc<Program>,
    state: State<B>,
    is_suspended: bool,
    /// The events that its groups could not keep since they were asked for.
    lost: u64,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Timer {
    due: u64,
    id: SubscriptionId,
    number: usize,
}

impl<B> Default for Lane<B> {
    fn default() -> Self {
        Self {
            subscriptions: BTreeMap::new(),
            plan: Routes::default(),
            timers: BinaryHeap::new(),
            next_number: 0,
            arrivals: 0,
        }
    }
}

impl<B: Clone + Default> Lane<B> {
    /// A lane without subscriptions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a subscription. Its timers count from `now`.
    ///
    /// Subscriptions with a lower subpriority are served first, then older ones.
    pub fn subscribe(
        &mut self,
        program: Arc<Program>,
        subpriority: i32,
        now: u64,
    ) -> SubscriptionId {
        self.subscribe_within(program, subpriority, now, OctetAccount::unlimited())
    }

    /// Adds a subscription as [`subscribe`](Self::subscribe) does. Its groups keep events as far as
    /// the account grants their octets; others are [lost](Self::take_lost).
    pub fn subscribe_within(
        &mut self,
        program: Arc<Program>,
        subpriority: i32,
        now: u64,
        account: OctetAccount<B>,
    ) -> SubscriptionId {
        let id = SubscriptionId {
            subpriority,
            number: self.next_number,
        };
        self.next_number += 1;
        for (number, timer) in program.timers.iter().enumerate() {
            self.timers.push(Reverse(Timer {
                due: now.saturating_add(timer.nanos),
                id,
                number,
            }));
        }
        self.plan.insert(&program, id);
        let subscription = Subscription {
            state: State::new(&program, now, account),
            program,
            is_suspended: false,
            lost: 0,
        };
        self.subscriptions.insert(id, subscription);
        id
    }

    /// Removes a subscription with its timers. Returns whether it was there.
    pub fn unsubscribe(&mut self, id: SubscriptionId) -> bool {
        let Some(removed) = self.subscriptions.remove(&id) else {
            return false;
        };
        self.plan.remove(&removed.program, &id);
        if removed.program.has_timers() {
            self.timers.retain(|Reverse(timer)| timer.id != id);
        }
        true
    }

    /// Stops a subscription: events pass it by and leave its state as it is, and its timers
    /// deliver nothing. Returns whether it is there.
    pub fn suspend(&mut self, id: SubscriptionId) -> bool {
        let subscription = self.subscriptions.get_mut(&id);
        subscription.map(|one| one.is_suspended = true).is_some()
    }

    /// Lets a suspended subscription go on. Deadlines begin anew. Returns whether it is there.
    pub fn resume(&mut self, id: SubscriptionId, now: u64) -> bool {
        let Some(subscription) = self.subscriptions.get_mut(&id) else {
            return false;
        };
        if subscription.is_suspended {
            subscription.is_suspended = false;
            subscription.state.restart(now);
        }
        true
    }

    /// Clears the groups of a subscription, which keep nothing from now on. Events that it delivers
    /// alone are delivered still. Returns whether it is there.
    pub fn close_groups(&mut self, id: SubscriptionId) -> bool {
        let Some(subscription) = self.subscriptions.get_mut(&id) else {
            return false;
        };
        subscription.state.close(&subscription.program);
        true
    }

    /// The number of events that the groups of a subscription could not keep since the last call,
    /// because their octets were not granted.
    pub fn take_lost(&mut self, id: SubscriptionId) -> u64 {
        let subscription = self.subscriptions.get_mut(&id);
        subscription.map_or(0, |one| std::mem::take(&mut one.lost))
    }

    /// The number of subscriptions.
    pub fn len(&self) -> usize {
        self.subscriptions.len()
    }

    /// Whether there are no subscriptions.
    pub fn is_empty(&self) -> bool {
        self.subscriptions.is_empty()
    }

    /// Whether an event may concern a subscription of the lane.
    pub fn concerns(&self, header: &Header) -> bool {
        self.plan.candidates(header).next().is_some()
    }

    /// Offers an event to the subscriptions that it may concern, and gives each set of events that
    /// one of them delivers to `deliver`. Timers that are due by `now` fire before.
    pub fn push(
        &mut self,
        event: &Event<B>,
        now: u64,
        mut deliver: impl FnMut(SubscriptionId, &[Event<B>]),
    ) {
        self.expire(now, &mut deliver);
        let arrival = self.next_arrival();
        for id in self.plan.candidates(&event.header) {
            let Some(subscription) = self.subscriptions.get_mut(id) else {
                continue;
            };
            let offer = Offer {
                event,
                arrival,
                timer: None,
                now,
            };
            subscription.offer(*id, &offer, &mut deliver);
        }
    }

    /// Offers an event to one subscription, and fires no timers. For callers that know which
    /// one it concerns, and fire timers [one by one](Self::fire_next).
    pub fn offer_to(
        &mut self,
        id: SubscriptionId,
        event: &Event<B>,
        now: u64,
        mut deliver: impl FnMut(SubscriptionId, &[Event<B>]),
    ) {
        let arrival = self.next_arrival();
        let Some(subscription) = self.subscriptions.get_mut(&id) else {
            return;
        };
        let offer = Offer {
            event,
            arrival,
            timer: None,
            now,
        };
        subscription.offer(id, &offer, &mut deliver);
    }

    /// The time at which the next timer is due, in nanoseconds.
    pub fn next_due(&self) -> Option<u64> {
        self.timers.peek().map(|Reverse(timer)| timer.due)
    }

    /// Fires the timers that are due, in order of their times, and gives what they deliver to
    /// `deliver`.
    ///
    /// A late timer delivers one event, with the last time at which it was due. Later events of an
    /// interval timer stay at multiples of its time.
    pub fn expire(&mut self, now: u64, mut deliver: impl FnMut(SubscriptionId, &[Event<B>])) {
        while self.fire_next(now, &mut deliver) {}
    }

    /// Fires the first timer that is due, as [`expire`](Self::expire) does. Returns whether one was
    /// due. A deadline that deliveries have moved is due later, and delivers nothing now.
    pub fn fire_next(
        &mut self,
        now: u64,
        mut deliver: impl FnMut(SubscriptionId, &[Event<B>]),
    ) -> bool {
        if self.next_due().is_none_or(|due| due > now) {
            return false;
        }
        if let Some(Reverse(timer)) = self.timers.pop() {
            self.fire(timer, now, &mut deliver);
        }
        true
    }

    fn fire(
        &mut self,
        mut timer: Timer,
        now: u64,
        deliver: &mut impl FnMut(SubscriptionId, &[Event<B>]),
    ) {
        let arrival = self.next_arrival();
        let Some(subscription) = self.subscriptions.get_mut(&timer.id) else {
            return;
        };
        let node = subscription.program.timers[timer.number];
        let last_due = |due: u64| due + (now - due) / node.nanos * node.nanos;
        let (event_type, due, next) = match node.kind {
            TimerKind::Once => (TIMEOUT, timer.due, None),
            TimerKind::Interval => {
                let due = last_due(timer.due);
                (INTERVAL_TIMEOUT, due, Some(due.saturating_add(node.nanos)))
            }
            TimerKind::Deadline => {
                let restarted = subscription.state.restarted(node.cell);
                let due = restarted.saturating_add(node.nanos);
                // Deliveries do not move the timer, so it looks when it fires.
                if due > timer.due {
                    timer.due = due;
                    self.timers.push(Reverse(timer));
                    return;
                }
                let due = last_due(due);
                (DEADLINE_TIMEOUT, due, Some(due.saturating_add(node.nanos)))
            }
        };
        let mut event = Event::new(0, event_type, B::default());
        event.header.creation_time = due / 100;
        let offer = Offer {
            event: &event,
            arrival,
            timer: Some(node.node),
            // Deadlines count from the time at which they were due.
            now: due,
        };
        subscription.offer(timer.id, &offer, deliver);
        if let Some(due) = next {
            timer.due = due;
            self.timers.push(Reverse(timer));
        }
    }

    fn next_arrival(&mut self) -> u64 {
        self.arrivals += 1;
        self.arrivals
    }
}

impl<B: Clone> Subscription<B> {
    fn offer(
        &mut self,
        id: SubscriptionId,
        offer: &Offer<'_, B>,
        deliver: &mut impl FnMut(SubscriptionId, &[Event<B>]),
    ) {
        if self.is_suspended {
            return;
        }
        let program = &self.program;
        let lost = self
            .state
            .offer(program, offer, &mut |set| deliver(id, set));
        self.lost += lost as u64;
    }
}
