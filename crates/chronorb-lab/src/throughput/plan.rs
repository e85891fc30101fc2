//! The amount of work of the experiment.

use serde::Serialize;

use super::trial::ThroughputTrial;

/// The number of rounds and calls, and the amount of data.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ThroughputPlan {
    /// The number of turns of every system in every trial.
    pub rounds: u32,
    /// The small calls of a turn, of all clients together.
    pub calls: u32,
    /// The data of a turn in each direction, in MiB.
    pub mebioctets: u32,
    /// The number of timed calls for each call that warms up before them.
    pub warm_up_part: u32,
}

impl ThroughputPlan {
    /// Returns a plan for tests; its figures mean nothing.
    #[must_use]
    pub const fn tiny() -> Self {
        Self::of(2, 32, 1)
    }

    pub(super) const fn of(rounds: u32, calls: u32, mebioctets: u32) -> Self {
        Self {
            rounds,
            calls,
            mebioctets,
            warm_up_part: 10,
        }
    }

    /// Returns the calls of a turn, of all clients together.
    pub(super) const fn calls(&self, trial: ThroughputTrial) -> u32 {
        match trial.octets() {
            0 => self.calls,
            octets => (self.mebioctets << 10) / (octets >> 10),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Throughput;
    use super::*;
    use crate::experiment::Experiment;

    #[test]
    fn every_trial_moves_as_much_data() {
        let plan = Throughput::full();
        for trial in ThroughputTrial::ALL {
            match trial {
                ThroughputTrial::Clients(_) => assert_eq!(plan.calls(trial), plan.calls),
                ThroughputTrial::Data(_) => {
                    let octets = u64::from(plan.calls(trial)) * u64::from(trial.octets());
                    assert_eq!(octets, u64::from(plan.mebioctets) << 20);
                }
            }
        }
    }
}
