//! What is run, and how often.

use serde::Serialize;

use super::protocol::Protocol;
use super::trial::Trial;
use crate::bench::{Placement, Scheduled, Waits};

/// What is run, and how often.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Plan {
    /// The protocols, in the order of their turns.
    pub protocols: Vec<Protocol>,
    /// How many times everyone has a turn in every place: few calls and many rounds, so that what disturbs one
    /// disturbs the others.
    pub rounds: u32,
    /// The calls of a turn that are timed, where they carry little; fewer where they carry much.
    pub calls: u32,
    /// A part in so many is called besides, before the time counts.
    pub warm_up_part: u32,
    /// How threads wait.
    pub waits: Vec<Waits>,
    /// Where client and server run.
    pub places: Vec<Placement>,
    /// How all threads are scheduled.
    pub scheduled: Scheduled,
}

impl Plan {
    /// All of it, in some ten minutes.
    #[must_use]
    pub fn full() -> Self {
        Self {
            protocols: Protocol::ALL.to_vec(),
            rounds: 40,
            calls: 500,
            warm_up_part: 10,
            waits: vec![Waits::Block, Waits::Spin],
            places: vec![Placement::SameCpu, Placement::AcrossCpus],
            scheduled: Scheduled::Other,
        }
    }

    /// The same in a minute or so.
    #[must_use]
    pub fn short() -> Self {
        Self {
            rounds: 5,
            calls: 200,
            ..Self::full()
        }
    }

    /// As little as shows that it works; its figures mean nothing.
    #[must_use]
    pub fn tiny() -> Self {
        Self {
            rounds: 2,
            calls: 20,
            ..Self::full()
        }
    }

    /// How many calls, or messages, a turn has, of all clients together.
    pub(super) fn calls(&self, trial: Trial) -> u32 {
        match trial {
            Trial::Call(octets) if octets >= 1 << 15 => self.calls / 5,
            Trial::Call(_) | Trial::Clients(_) => self.calls,
            // They keep a distance from each other.
            Trial::Oneway(octets) if octets >= 1 << 15 => self.calls / 10,
            Trial::Oneway(_) => self.calls / 2,
            // Of fewer none would be lost.
            Trial::Flood(_) => self.calls * 100,
        }
        .max(1)
    }
}
