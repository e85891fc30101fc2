//! The sizes and the number of measurements of a run.

use std::time::Duration;

use serde::Serialize;

/// The sizes and the number of measurements of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DemuxPlan {
    /// Numbers of entries: POAs, servants and operations, 1 to 65,534 each.
    pub sizes: Vec<u32>,
    /// A further number of servants, for the strategies `active` and `hash`.
    pub many_servants: Option<u32>,
    /// The number of rounds, each of which measures every case once.
    pub rounds: u32,
    /// The length of one measurement of a case.
    pub turn: Duration,
    /// The number of objects that are activated in one POA to measure their cost.
    pub scale_objects: u32,
    /// The number of POAs that are made to measure their cost.
    pub scale_poas: u32,
}

impl DemuxPlan {
    /// Returns the plan of less than a minute.
    #[must_use]
    pub fn full() -> Self {
        Self {
            sizes: vec![1, 10, 100, 1_000, 10_000],
            many_servants: Some(1_000_000),
            rounds: 41,
            turn: Duration::from_millis(1),
            scale_objects: 1_000_000,
            scale_poas: 10_000,
        }
    }

    /// Returns the plan of less than ten seconds: fewer rounds, and no million of entries.
    #[must_use]
    pub fn short() -> Self {
        Self {
            many_servants: None,
            rounds: 9,
            scale_objects: 100_000,
            scale_poas: 1_000,
            ..Self::full()
        }
    }

    /// Returns the smallest plan that has all parts, for tests.
    #[must_use]
    pub fn tiny() -> Self {
        Self {
            sizes: vec![1, 10],
            rounds: 2,
            turn: Duration::from_micros(50),
            // So many that a few allocations of other threads are below the tolerance.
            scale_objects: 10_000,
            scale_poas: 10,
            ..Self::short()
        }
    }

    /// Whether the plan has everything that the full plan has.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.many_servants.is_some() && self.scale_objects >= Self::full().scale_objects
    }
}
