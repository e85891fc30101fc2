//! What parent and children say to each other.

use chronorb::rtcorba::Priority;
use serde::{Deserialize, Serialize};

use super::case::{Pool, Strategy};
use super::plan::Plan;
use crate::stats::Record;

/// Real-time priorities of Linux, where they may be used.
pub(super) const HIGH: Priority = Priority::new(24_000).expect("not negative");
pub(super) const MIDDLE: Priority = Priority::new(8_000).expect("not negative");
/// The system's ordinary scheduling: what the others leave of the processors.
pub(super) const LOW: Priority = Priority::MIN;

/// To a server, as its argument.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ServerOrder {
    pub(super) strategy: Strategy,
    pub(super) lock_memory: bool,
    pub(super) plan: Plan,
}

/// From a server, when it serves.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Serving {
    /// The object of each pool, as `IOR:…`.
    pub(super) references: Vec<(Pool, String)>,
}

/// To a client, as its argument.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ClientOrder {
    pub(super) role: Role,
    pub(super) lock_memory: bool,
    pub(super) plan: Plan,
    /// What a call of the measuring client computes.
    pub(super) high_steps: u32,
}

/// The clients.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) enum Role {
    /// Makes the calls that are measured.
    High,
    /// Exhausts the high lane.
    Slow,
    /// Saturates the middle lane.
    Middle,
    /// Saturates the low lane.
    Low,
    /// Keeps the processors awake, and asks nothing of the server.
    Awake,
}

/// To a client, before each case; the end of its work is `None`.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Prepare {
    pub(super) reference: String,
    /// How many threads call.
    pub(super) callers: u32,
}

/// From a client, when all its threads are connected.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Ready {}

/// To a client: when the case begins, in ns of the monotonic clock.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Start {
    pub(super) at_ns: u64,
}

/// From the client that measures: the calls of each span.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Measured {
    pub(super) spans: [Record; 2],
    /// Whether it ran at a real-time priority.
    pub(super) real_time: bool,
}

/// From another client: how it fared in each span.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Loaded {
    pub(super) spans: [Fare; 2],
}

/// How those fared who make the load.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(super) struct Fare {
    /// How many of their requests were refused (`TRANSIENT`).
    pub(super) refused: u64,
    /// The longest time for which endless work was kept from computing.
    pub(super) longest_stop_us: u32,
}

impl Fare {
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            refused: self.refused + other.refused,
            longest_stop_us: self.longest_stop_us.max(other.longest_stop_us),
        }
    }
}
