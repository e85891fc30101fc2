//! The figures of the experiment.

use serde::Serialize;

use super::plan::ThroughputPlan;
use super::trial::{ThroughputSystem, ThroughputTrial};
use crate::bench::{OmniOrb, Placement, Sizes};
use crate::environment::Environment;
use crate::pairs::median_ratio;
use crate::stats::median;

/// The rate of one system in one trial in one round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ThroughputRow {
    /// The trial.
    pub trial: ThroughputTrial,
    /// The system.
    pub system: ThroughputSystem,
    /// The place of clients and server.
    pub placement: Placement,
    /// The number of the round, from 1 on.
    pub round: u32,
    /// The number of calls of all clients together.
    pub calls: u32,
    /// The calls in a second.
    pub calls_per_s: f64,
    /// The data in each direction in a second, in MiB; 0 for a trial without data.
    pub mib_per_s: f64,
}

/// The size of the messages of a trial.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TrialMessages {
    /// The trial.
    pub trial: ThroughputTrial,
    /// The octets of a call of chronorb on the wire.
    pub octets: Sizes,
}

/// The result of the experiment.
#[derive(Clone, Debug, Serialize)]
pub struct ThroughputOutcome {
    /// The plan that was run.
    pub plan: ThroughputPlan,
    /// The machine.
    pub environment: Environment,
    /// The sizes of messages.
    pub messages: Vec<TrialMessages>,
    /// The part that omniORB took.
    pub omniorb: OmniOrb,
    /// The rows of all rounds.
    pub rows: Vec<ThroughputRow>,
}

impl ThroughputRow {
    /// Returns the row of so many calls that took `elapsed_ns` together.
    pub(super) fn of(
        (trial, placement): (ThroughputTrial, Placement),
        system: ThroughputSystem,
        round: u32,
        calls: u32,
        elapsed_ns: u64,
    ) -> Self {
        let calls_per_s = f64::from(calls) / (elapsed_ns.max(1) as f64 / 1e9);
        let rounded = |rate: f64| (rate * 10.0).round() / 10.0;
        Self {
            trial,
            system,
            placement,
            round,
            calls,
            calls_per_s: rounded(calls_per_s),
            mib_per_s: rounded(trial.mebioctets(calls_per_s)),
        }
    }
}

impl ThroughputOutcome {
    /// Returns the rounds of a system in a trial.
    pub(super) fn rounds(
        &self,
        (trial, placement): (ThroughputTrial, Placement),
        system: ThroughputSystem,
    ) -> impl Iterator<Item = &ThroughputRow> {
        self.rows.iter().filter(move |row| {
            row.trial == trial && row.placement == placement && row.system == system
        })
    }

    /// Returns the calls of a system in a second: the median of the rounds.
    pub(super) fn rate(
        &self,
        trial: (ThroughputTrial, Placement),
        system: ThroughputSystem,
    ) -> Option<f64> {
        median(self.rounds(trial, system).map(|row| row.calls_per_s))
    }

    /// Returns the ratio of the rate of a system to that of another in the same round: the median
    /// of the rounds.
    pub(super) fn ratio(
        &self,
        trial: (ThroughputTrial, Placement),
        [system, to]: [ThroughputSystem; 2],
    ) -> Option<f64> {
        let (rows, others) = (self.rounds(trial, system), self.rounds(trial, to));
        median_ratio(rows, others, |row| row.round, |row| row.calls_per_s)
    }
}
