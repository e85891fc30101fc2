//! The amount of work of the experiment.

use serde::Serialize;

use super::system::WaitSet;
use crate::bench::CallScheduling;

/// The number of rounds, calls and connections.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LatencyPlan {
    /// The number of turns of every system in every place.
    pub rounds: u32,
    /// The calls of a turn that are timed.
    pub calls: u32,
    /// The calls before them, which are not timed.
    pub warm_up: u32,
    /// The ways to wait that take part.
    pub waits: WaitSet,
    /// The scheduling of all threads.
    pub scheduled: CallScheduling,
    /// The number of idle connections of a server; 0 leaves this part out.
    pub connections: u32,
}

impl LatencyPlan {
    /// Returns a plan for tests; its figures mean nothing.
    #[must_use]
    pub const fn tiny() -> Self {
        Self::of(2, 100, 10, 50)
    }

    pub(super) const fn of(rounds: u32, calls: u32, warm_up: u32, connections: u32) -> Self {
        Self {
            rounds,
            calls,
            warm_up,
            waits: WaitSet::BOTH,
            scheduled: CallScheduling::Other,
            connections,
        }
    }
}
