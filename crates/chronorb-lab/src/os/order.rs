//! What parent and children say to each other.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::class::Class;
use super::load::Load;
use super::switch::Switching;
use crate::bench::{ClientSpec, ServerSpec};
use crate::stats::Record;

/// To a child, as its argument.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum Part {
    /// A server, and the priorities of its lanes.
    Server(Class, Vec<u8>, ServerSpec),
    Client(Class, ClientSpec),
    Load(Load),
    Hold(HoldOrder),
    Scavenger(ScavengerOrder),
    Switch(SwitchOrder),
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
