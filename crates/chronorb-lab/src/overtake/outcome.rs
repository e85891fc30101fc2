//! The figures of the experiment.

use serde::Serialize;

use super::case::{OvertakeLoad, OvertakeTrial};
use super::plan::OvertakePlan;
use crate::environment::Environment;
use crate::report::PooledRecords;
use crate::report::rounds::over_rounds;
use crate::stats::{Summary, median};

/// The calls of one trial in one round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OvertakeRow {
    /// The trial.
    #[serde(flatten)]
    pub trial: OvertakeTrial,
    /// The round, from 1.
    pub round: u32,
    /// The latencies; those of a periodic series count from when a call was due.
    #[serde(flatten)]
    pub latency: Summary,
    /// The share of the processors' time that any process took meanwhile.
    pub cpu_busy_percent: f64,
    /// The share of it that a hypervisor gave to other machines.
    pub cpu_stolen_percent: f64,
    /// Requests of low and middle priority that were refused (`TRANSIENT`).
    pub refused_requests: u64,
    /// The longest time for which work of the middle lane was kept from computing, where it had
    /// some. Real-time throttling shows here.
    pub middle_longest_stop_us: Option<u32>,
}

/// The outcome of the experiment.
#[derive(Clone, Debug, Serialize)]
pub struct OvertakeOutcome {
    /// The plan of the run.
    pub plan: OvertakePlan,
    /// The machine.
    pub environment: Environment,
    /// Whether the measuring client had a real-time priority all the time.
    pub real_time: bool,
    /// Whether it and the servers had their memory locked.
    pub memory_locked: bool,
    /// The trials, round by round.
    pub rows: Vec<OvertakeRow>,
    /// The calls of all rounds together.
    #[serde(skip)]
    pub(super) pooled: PooledRecords<OvertakeTrial>,
}

/// The rounds of one trial in one figure each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OvertakeFigure {
    pub(super) latency: Summary,
    /// The least and the greatest p99 of a round.
    pub(super) p99_range_us: (f64, f64),
    /// The median over the rounds.
    pub(super) cpu_busy_percent: f64,
    pub(super) refused_requests: u64,
}

impl OvertakeOutcome {
    /// Returns one trial over all rounds; nothing where no call was answered.
    pub(super) fn figure(&self, trial: OvertakeTrial) -> Option<OvertakeFigure> {
        let rows: Vec<_> = self.rounds(trial).collect();
        let p99 = || rows.iter().map(|row| row.latency.p99_us);
        Some(OvertakeFigure {
            latency: over_rounds(rows.iter().map(|row| &row.latency))?,
            p99_range_us: (p99().reduce(f64::min)?, p99().reduce(f64::max)?),
            cpu_busy_percent: median(rows.iter().map(|row| row.cpu_busy_percent))?,
            refused_requests: rows.iter().map(|row| row.refused_requests).sum(),
        })
    }

    /// Returns the rounds of a trial in which calls were answered.
    pub(super) fn rounds(&self, trial: OvertakeTrial) -> impl Iterator<Item = &OvertakeRow> {
        let rows = self.rows.iter();
        rows.filter(move |row| row.trial == trial && row.latency.calls > 0)
    }

    /// Returns the p99 of a trial over all rounds.
    pub(super) fn p99(&self, trial: OvertakeTrial) -> Option<f64> {
        Some(self.figure(trial)?.latency.p99_us)
    }

    /// Returns the p99 of a trial by that of the same pool under another load.
    pub(super) fn ratio(&self, trial: OvertakeTrial, to: OvertakeLoad) -> Option<f64> {
        let other = trial.under(to);
        let (p99, base) = (self.p99(trial)?, self.p99(other)?);
        (trial != other).then(|| p99 / base)
    }
}
