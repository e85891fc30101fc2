//! The orders of the parent to its children, and their answers.

use std::time::Duration;

use chronorb_rt::Monotonic;
use serde::{Deserialize, Serialize};

use super::attack::Attack;
use super::plan::Plan;
use crate::schedule::Window;
use crate::stats::Record;

/// To a child, as its argument.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum Part {
    Victim,
    Client(Target, Plan),
    Attacker(Target, Plan, Attack),
}

/// From the victim, when it serves.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Target {
    pub(super) reference: String,
    pub(super) address: String,
    pub(super) key: Vec<u8>,
}

/// To a client or an attacker: when to begin, and how long to go on.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Run {
    pub(super) at_ns: u64,
    pub(super) length: Duration,
}

impl Run {
    pub(super) const fn window(self) -> Window {
        Window {
            start: Monotonic::from_nanos(self.at_ns),
            length: self.length,
        }
    }
}

/// From the client, after a phase.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Measured {
    /// The calls that were answered.
    pub(super) calls: Record,
    /// Those that were not.
    pub(super) failed: u64,
    /// The new clients that were answered, with the time from their connecting to the reply.
    pub(super) newcomers: Record,
    pub(super) failed_newcomers: u64,
}

/// From an attacker, at its end.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(super) struct Sent {
    pub(super) octets: u64,
    /// Connections that were opened.
    pub(super) connections: u64,
    /// Connections that could not be.
    pub(super) refused: u64,
}

impl Sent {
    pub(super) const fn and(self, other: Self) -> Self {
        Self {
            octets: self.octets + other.octets,
            connections: self.connections + other.connections,
            refused: self.refused + other.refused,
        }
    }
}
