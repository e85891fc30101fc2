//! What parent and children say to each other.

use chronorb::rtcorba::Priority;
use serde::{Deserialize, Serialize};

use super::Strategy;

/// What is the same for all processes.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Terms {
    pub(super) lock_memory: bool,
    pub(super) real_time: bool,
}

impl Terms {
    /// The priority of all threads that serve or call.
    pub(super) const fn priority(self) -> Priority {
        match self.real_time {
            true => REAL_TIME,
            false => Priority::MIN,
        }
    }
}

/// Natively about 24 of 99.
const REAL_TIME: Priority = Priority::new(8_000).expect("not negative");

/// To a server, as its argument.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ServerOrder {
    pub(super) strategy: Strategy,
    pub(super) threads: u32,
    pub(super) terms: Terms,
}

/// From a server, when it serves.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Serving {
    /// Its object, as `IOR:…`.
    pub(super) reference: String,
}

/// To a client, as its argument.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ClientOrder {
    pub(super) reference: String,
    pub(super) callers: u32,
    pub(super) terms: Terms,
}

/// From a client, when all its threads are connected, and again when they have warmed up.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Ready {}

/// To a client, before each measurement; the end of its work is `None`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Batch {
    pub(super) warm_up: u32,
    pub(super) requests: u32,
    /// What each of them computes.
    pub(super) steps: u32,
}

/// To a client that has warmed up: begin.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Go {}

/// From a client: how long it took from the first request to the last reply.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Took {
    pub(super) elapsed_ns: u64,
}
