//! The state of a step in an analysis.

use std::cell::Cell;

use crate::rta::{Response, Starts};
use crate::task::Time;

/// A step among the steps of all transactions.
#[derive(Debug)]
pub(super) struct StepState {
    /// The resource, and the index of the task there.
    pub(super) position: (usize, usize),
    pub(super) before: Option<usize>,
    /// The least time from the arrival of the transaction to the release.
    pub(super) offset: Time,
    /// The longest time from the offset to the release.
    pub(super) delay: Response,
    /// The longest wait before the release, on no resource.
    pub(super) wait: Time,
    /// The longest response of the last round, from the arrival.
    pub(super) response: Response,
    /// Whether the last round changed the response.
    pub(super) changed: bool,
    /// The step and those that follow it are of this range, in an order of its own.
    pub(super) family: (usize, usize),
    /// The times at which the searches of the last round ended, by the kind of path.
    pub(super) ends: Cell<[Time; 3]>,
    /// Those of the search that has no path.
    pub(super) starts: Cell<Starts>,
}

impl StepState {
    /// Whether one of two steps of a transaction follows the other.
    pub(super) fn is_related(&self, other: &Self) -> bool {
        let (a, b) = (self.family, other.family);
        (a.0..a.1).contains(&b.0) || (b.0..b.1).contains(&a.0)
    }
}

/// Numbers steps so that those that follow a step have the numbers just after it.
pub(super) fn number_families(states: &mut [StepState]) {
    let mut sizes = vec![1_usize; states.len()];
    for number in (1..states.len()).rev() {
        if let Some(before) = states[number].before {
            sizes[before] += sizes[number];
        }
    }
    // The next free number within the range of each step.
    let mut next = vec![0; states.len()];
    for number in 0..states.len() {
        let first = match states[number].before {
            Some(before) => next[before],
            None => 0,
        };
        if let Some(before) = states[number].before {
            next[before] += sizes[number];
        }
        states[number].family = (first, first + sizes[number]);
        next[number] = first + 1;
    }
}
