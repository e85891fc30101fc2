//! What parent and children say to each other.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::class::Class;
use super::load::Load;
use super::switch::Switching;
use crate::stats::Record;

/// To a child, as its argument.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum Part {
    Server(ServerOrder),
    Client(ClientOrder),
    Load(Load),
    Hold(HoldOrder),
    Scavenger(ScavengerOrder),
    Switch(SwitchOrder),
}

/// What a server is to do.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct ServerOrder {
    pub(super) class: Class,
    pub(super) lock_memory: bool,
    /// The priority of each lane, and its threads.
    pub(super) lanes: Vec<(u8, u32)>,
}

/// From a server, when it serves.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Serving {
    pub(super) reference: String,
}

/// What a client is to do.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct ClientOrder {
    pub(super) class: Class,
    pub(super) lock_memory: bool,
    pub(super) reference: String,
    /// The process of the server, whose context switches are counted.
    pub(super) server: u32,
    /// The priority of each thread that calls.
    pub(super) callers: Vec<u8>,
}

/// From a child, when it is ready to begin.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Ready {}

/// To a client, for each measurement; the end of its work is `None`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Run {
    /// When it begins, in ns of the monotonic clock.
    pub(super) at_ns: u64,
    pub(super) length: Duration,
    /// What each thread does.
    pub(super) paces: Vec<Pace>,
    /// What a call computes.
    pub(super) steps: u32,
}

/// What a thread of a client does in a measurement.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) enum Pace {
    /// Nothing.
    Rest,
    /// It wakes up so often, and calls nobody.
    WakeEvery(Duration),
    /// It calls so often.
    CallEvery(Duration),
    /// It calls, and calls again when that is answered.
    BackToBack,
}

/// From a client: what came of a measurement.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Measured {
    /// The calls of each thread.
    pub(super) calls: Vec<Record>,
    /// The context switches of these threads.
    pub(super) client_switches: u64,
    /// The context switches of all threads of the server.
    pub(super) server_switches: u64,
}

/// A thread that computes without end, to see how long it is kept from it.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct HoldOrder {
    pub(super) cpu: usize,
    pub(super) length: Duration,
    /// Whether an ordinary thread wants the same processor.
    pub(super) contended: bool,
}

/// How it fared.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Held {
    /// The longest time between two looks at the clock.
    pub(super) longest_gap_us: f64,
    /// How many times it was kept from computing for a ms or more.
    pub(super) gaps_of_a_ms: u64,
    /// How much of the time it had no processor.
    pub(super) lost_percent: f64,
    /// How much of the time the ordinary thread had the processor.
    pub(super) given_percent: f64,
}

/// Threads that take what others leave of processors.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ScavengerOrder {
    pub(super) cpus: Vec<usize>,
}

/// To scavengers, for each measurement; the end of their work is `None`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Scavenge {
    pub(super) at_ns: u64,
    pub(super) length: Duration,
}

/// From scavengers: how far each of them counted.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Scavenged {
    pub(super) counts: Vec<u64>,
}

/// Two threads that take turns.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct SwitchOrder {
    pub(super) switching: Switching,
    /// The processor of each.
    pub(super) cpus: [usize; 2],
    pub(super) lock_memory: bool,
    pub(super) rounds: u32,
}

/// How long their turns took.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Switched {
    /// A context switch each: half of what it takes to be at turn again.
    pub(super) switches: Record,
    /// The context switches of both that the kernel has counted.
    pub(super) counted: u64,
}
