//! The plan of the experiment.

use serde::Serialize;

use super::cell::Workload;
use super::protocol::Protocol;
use crate::bench::{CallScheduling, Placement, Waits};

/// The protocols, and the amount of calls.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ProtocolsPlan {
    /// The protocols, in the order of their turns.
    pub protocols: Vec<Protocol>,
    /// The number of turns of each system in each cell. Few calls and many rounds make sure that a
    /// disturbance affects all systems.
    pub rounds: u32,
    /// The measured calls of a turn with little data; turns with much data have fewer.
    pub calls: u32,
    /// The divisor of `calls` that gives the number of unmeasured calls before them.
    pub warm_up_part: u32,
    /// The ways in which threads wait.
    pub waits: Vec<Waits>,
    /// The processors of client and server.
    pub places: Vec<Placement>,
    /// The scheduling of all threads.
    pub scheduled: CallScheduling,
}

impl ProtocolsPlan {
    /// The least plan, for tests of the experiment itself.
    #[must_use]
    pub fn tiny() -> Self {
        Self::of(1, 20)
    }

    pub(super) fn of(rounds: u32, calls: u32) -> Self {
        Self {
            protocols: Protocol::ALL.to_vec(),
            rounds,
            calls,
            warm_up_part: 10,
            waits: vec![Waits::Block, Waits::Spin],
            places: vec![Placement::SameCpu, Placement::AcrossCpus],
            scheduled: CallScheduling::Other,
        }
    }

    /// The number of calls, or messages, of a turn, of all clients together.
    pub(super) fn calls(&self, workload: Workload) -> u32 {
        match workload {
            Workload::Call(octets) if octets >= 1 << 15 => self.calls / 5,
            Workload::Call(_) | Workload::Clients(_) => self.calls,
            // There is a pause after each message.
            Workload::Oneway(octets) if octets >= 1 << 15 => self.calls / 10,
            Workload::Oneway(_) => self.calls / 2,
            // Of fewer none would be lost.
            Workload::Flood(_) => self.calls * 100,
        }
        .max(1)
    }
}
