//! What is measured, and how often.

use std::time::Duration;

use serde::Serialize;

/// What is measured, and how often.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Plan {
    /// Numbers of entries: POAs, servants and operations, 1 to 65,534 each.
    pub sizes: Vec<u32>,
    /// A further number of servants, for the strategies `active` and `hash`.
    pub many_servants: Option<u32>,
    /// How many times every case is measured, one after the other.
    pub rounds: u32,
    /// How long a case is measured in one round.
    pub turn: Duration,
    /// How many objects are activated in one POA to see what they take.
    pub scale_objects: u32,
    /// How many POAs are made to see what they take.
    pub scale_poas: u32,
}

impl Plan {
    /// All of it, in less than a minute.
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

    /// Less of it, in less than ten seconds: fewer rounds, and nothing of a million.
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

    /// As little as shows that it works; its figures mean nothing.
    #[must_use]
    pub fn tiny() -> Self {
        Self {
            sizes: vec![1, 10],
            many_servants: None,
            rounds: 2,
            turn: Duration::from_micros(50),
            scale_objects: 100,
            scale_poas: 10,
        }
    }

    /// Whether everything that the full plan has is in it.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.many_servants.is_some() && self.scale_objects >= Self::full().scale_objects
    }
}
