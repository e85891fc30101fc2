//! A lane: its threads and its waiting requests.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::run::LaneNumbers;
use super::works::Activity;
use crate::schedule::{LaneOrder, Time};

/// The place of a request among the waiting ones; the least comes first.
type Place = (Reverse<u8>, i128, Reverse<u8>, u64);

/// A lane.
#[derive(Debug)]
pub(super) struct LaneQueue {
    order: LaneOrder,
    free: u32,
    waiting: BTreeSet<(Place, usize)>,
}

impl LaneQueue {
    pub(super) const fn new(numbers: LaneNumbers) -> Self {
        Self {
            order: numbers.order,
            free: numbers.threads,
            waiting: BTreeSet::new(),
        }
    }

    /// Takes a free thread for a frame, or lets it wait. Returns whether it has one. A request has
    /// the deadline, the execution time and the ranks of its activity, as by the ORB.
    pub(super) fn admit(
        &mut self,
        frame: usize,
        turn: u64,
        activity: &Activity,
        arrival: Time,
    ) -> bool {
        if self.free > 0 {
            self.free -= 1;
            return true;
        }
        let deadline = i128::from(arrival) + i128::from(activity.deadline);
        let laxity = deadline - i128::from(activity.execution);
        let importance = Reverse(activity.importance);
        let none = Reverse(0);
        let place = match self.order {
            LaneOrder::Fifo => (none, 0, none, turn),
            LaneOrder::Deadline => (none, deadline, importance, turn),
            LaneOrder::Laxity => (none, laxity, importance, turn),
            LaneOrder::Urgency => (Reverse(activity.criticality), laxity, importance, turn),
        };
        self.waiting.insert((place, frame));
        false
    }

    /// Gives a thread back. Returns the frame that gets it.
    pub(super) fn give_back(&mut self) -> Option<usize> {
        let next = self.waiting.pop_first().map(|(_, frame)| frame);
        if next.is_none() {
            self.free += 1;
        }
        next
    }
}
