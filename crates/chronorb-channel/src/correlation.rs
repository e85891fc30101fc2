//! The state of the groups and timers of one subscription.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use chronorb_events::{Event, Lane, OctetAccount, Program, SubscriptionId};

use crate::consumer::Body;

/// The state of the groups and timers of one subscription.
pub(crate) struct Correlation<B> {
    lane: Lane<B>,
    id: SubscriptionId,
    /// Whether there are groups, which may lose events, or timers.
    has_state: bool,
    is_suspended: bool,
    resumed: u64,
}

/// The suspension of a subscription, as its owner wants it.
#[derive(Debug, Default)]
pub(crate) struct Suspension {
    is_suspended: AtomicBool,
    /// The time of the last resumption in nanoseconds, at least 1; 0 before the first one.
    resumed: AtomicU64,
}

impl Suspension {
    pub(crate) fn suspend(&self) {
        self.is_suspended.store(true, Ordering::Release);
    }

    pub(crate) fn resume(&self, now: u64) {
        if self.is_suspended.swap(false, Ordering::AcqRel) {
            self.resumed.store(now.max(1), Ordering::Release);
        }
    }

    #[inline]
    pub(crate) fn is_suspended(&self) -> bool {
        self.is_suspended.load(Ordering::Relaxed)
    }
}

impl<B: Body> Correlation<B> {
    /// The state of a subscription whose timers count from now, and whose groups keep what the
    /// account grants.
    pub(crate) fn new(program: &Arc<Program>, now: u64, account: OctetAccount<B>) -> Self {
        let mut lane = Lane::new();
        let id = lane.subscribe_within(program.clone(), 0, now, account);
        Self {
            lane,
            id,
            has_state: !program.is_stateless(),
            is_suspended: false,
            resumed: 0,
        }
    }

    /// Filters an event, and gives each set that is delivered to `deliver`. At most one timer that
    /// is due fires before, so that an event causes a bounded number of deliveries. Others have
    /// their own turns. Returns the number of events that groups could not keep.
    pub(crate) fn filter(
        &mut self,
        event: &Event<B>,
        now: u64,
        suspension: &Suspension,
        mut deliver: impl FnMut(&[Event<B>]),
    ) -> u64 {
        if self.follow(suspension) {
            return 0;
        }
        if self.has_state {
            self.lane.fire_next(now, |_, set| deliver(set));
        }
        self.lane
            .offer_to(self.id, event, now, |_, set| deliver(set));
        self.take_lost()
    }

    /// Fires the first timer, if it is due. Returns the number of events that groups could not
    /// keep.
    pub(crate) fn fire_next(
        &mut self,
        now: u64,
        suspension: &Suspension,
        mut deliver: impl FnMut(&[Event<B>]),
    ) -> u64 {
        self.follow(suspension);
        self.lane.fire_next(now, |_, set| deliver(set));
        self.take_lost()
    }

    /// Fires all timers that are due. Returns the number of events that groups could not keep.
    pub(crate) fn expire(
        &mut self,
        now: u64,
        suspension: &Suspension,
        mut deliver: impl FnMut(&[Event<B>]),
    ) -> u64 {
        self.follow(suspension);
        self.lane.expire(now, |_, set| deliver(set));
        self.take_lost()
    }

    /// The number of events that groups could not keep since the last call.
    fn take_lost(&mut self) -> u64 {
        if self.has_state {
            self.lane.take_lost(self.id)
        } else {
            0
        }
    }

    /// Clears the groups, which keep nothing from now on.
    pub(crate) fn close(&mut self) {
        self.lane.close_groups(self.id);
    }

    /// The time of the next timer.
    pub(crate) fn next_due(&self) -> Option<u64> {
        self.lane.next_due()
    }

    /// Suspends or resumes the subscription as its owner wants. Returns whether it is suspended.
    fn follow(&mut self, suspension: &Suspension) -> bool {
        let resumed = suspension.resumed.load(Ordering::Acquire);
        if resumed != self.resumed {
            // Deadlines begin anew even if nothing has happened since the suspension.
            self.resumed = resumed;
            self.is_suspended = false;
            self.lane.suspend(self.id);
            self.lane.resume(self.id, resumed);
        }
        if suspension.is_suspended() && !self.is_suspended {
            self.is_suspended = true;
            self.lane.suspend(self.id);
        }
        self.is_suspended
    }
}
