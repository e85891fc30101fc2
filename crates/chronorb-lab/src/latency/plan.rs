//! What is run, and how often.

use serde::Serialize;

use super::system::WaitSet;
use crate::bench::Scheduled;

/// What is run, and how often.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Plan {
    /// How many times every system has its turn in every place.
    pub rounds: u32,
    /// The calls of a turn that are timed.
    pub calls: u32,
    /// Those that go before them.
    pub warm_up: u32,
    /// Which ways to wait take part.
    pub waits: WaitSet,
    /// How all threads are scheduled.
    pub scheduled: Scheduled,
    /// How many idle connections a server shall have; 0 leaves that out.
    pub connections: u32,
}

impl Plan {
    /// All of it, in some minutes.
    #[must_use]
    pub const fn full() -> Self {
        Self {
            rounds: 25,
            calls: 4_000,
            warm_up: 400,
            waits: WaitSet::BOTH,
            scheduled: Scheduled::Other,
            connections: 10_000,
        }
    }

    /// The same in some seconds: few rounds, few calls and fewer connections.
    #[must_use]
    pub const fn short() -> Self {
        Self {
            rounds: 5,
            calls: 1_000,
            warm_up: 200,
            connections: 1_000,
            ..Self::full()
        }
    }

    /// As little as shows that it works; its figures mean nothing.
    #[must_use]
    pub const fn tiny() -> Self {
        Self {
            rounds: 2,
            calls: 100,
            warm_up: 10,
            connections: 50,
            ..Self::full()
        }
    }
}
