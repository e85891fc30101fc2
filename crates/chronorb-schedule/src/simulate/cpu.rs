//! A processor: its ready frames by priority.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::schedule::Time;

/// The place of a frame among the ready ones.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Urgency {
    /// The priority with inheritance and ceilings.
    pub(super) priority: u64,
    /// The number of the time at which it became ready.
    pub(super) turn: u64,
}

/// A processor.
#[derive(Debug, Default)]
pub(super) struct Cpu {
    ready: BTreeSet<(Reverse<u64>, u64, usize)>,
    /// The frame that it executes.
    pub(super) running: Option<usize>,
    /// The time up to which the execution of that frame is counted.
    pub(super) since: Time,
    /// The start of the slice that is open.
    pub(super) opened: Time,
    /// The time of the last event for the next point of its frame.
    pub(super) due: Option<Time>,
}

impl Cpu {
    pub(super) fn insert(&mut self, frame: usize, urgency: Urgency) {
        self.ready
            .insert((Reverse(urgency.priority), urgency.turn, frame));
    }

    pub(super) fn remove(&mut self, frame: usize, urgency: Urgency) {
        self.ready
            .remove(&(Reverse(urgency.priority), urgency.turn, frame));
    }

    /// Returns the most urgent frame.
    pub(super) fn first(&self) -> Option<usize> {
        self.ready.first().map(|(_, _, frame)| *frame)
    }
}
