//! The outcome of the experiment.

use serde::Serialize;

use super::case::{Setting, WaitMethod};
use super::plan::WaitsPlan;
use super::server::IoUring;
use crate::environment::Environment;
use crate::report::rounds::over_rounds;
use crate::stats::{Summary, median};

/// The calls of a way in a setting in one round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WaitsRow {
    /// The setting.
    #[serde(flatten)]
    pub setting: Setting,
    /// The way.
    pub way: WaitMethod,
    /// The number of the round, from 1 on.
    pub round: u32,
    /// The latencies of the calls.
    #[serde(flatten)]
    pub latency: Summary,
}

/// The outcome of the experiment.
#[derive(Clone, Debug, Serialize)]
pub struct WaitsOutcome {
    /// The plan that was run.
    pub plan: WaitsPlan,
    /// The machine.
    pub environment: Environment,
    /// The availability of io_uring.
    pub io_uring: IoUring,
    /// The number of processors that the process may use.
    #[serde(skip)]
    pub processors: usize,
    /// The calls of each way in each setting and round.
    pub rows: Vec<WaitsRow>,
}

/// The ratio of two figures over all rounds that have both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RoundRatio {
    pub(super) median: f64,
    pub(super) least: f64,
    pub(super) greatest: f64,
    /// The number of rounds.
    pub(super) rounds: usize,
    /// The share of the rounds in which it is below 1.
    pub(super) below_one: f64,
}

/// A quantile of the calls of a round.
pub(super) type Quantile = fn(&Summary) -> f64;

pub(super) const P50: Quantile = |latency| latency.p50_us;
pub(super) const P99: Quantile = |latency| latency.p99_us;

impl WaitsOutcome {
    /// The settings that were measured.
    pub(super) fn settings(&self) -> Vec<Setting> {
        let mut settings = Vec::new();
        for row in &self.rows {
            if !settings.contains(&row.setting) {
                settings.push(row.setting);
            }
        }
        settings
    }

    /// The rounds of a way in a setting.
    fn rounds(&self, setting: Setting, way: WaitMethod) -> impl Iterator<Item = &WaitsRow> + Clone {
        let rows = self.rows.iter();
        rows.filter(move |row| (row.setting, row.way) == (setting, way))
    }

    /// The figures of a way in a setting over all rounds, if it was measured.
    pub(super) fn summary(&self, setting: Setting, way: WaitMethod) -> Option<Summary> {
        over_rounds(self.rounds(setting, way).map(|row| &row.latency))
    }

    /// The ratio of a quantile of one way and setting to that of another, round by round.
    pub(super) fn ratio(
        &self,
        (setting, way): (Setting, WaitMethod),
        to: (Setting, WaitMethod),
        of: Quantile,
    ) -> Option<RoundRatio> {
        let ratios: Vec<f64> = (self.rounds(setting, way))
            .filter_map(|row| {
                let other = self.rounds(to.0, to.1).find(|o| o.round == row.round)?;
                Some(of(&row.latency) / of(&other.latency))
            })
            .filter(|ratio| ratio.is_finite())
            .collect();
        let all = || ratios.iter().copied();
        Some(RoundRatio {
            median: median(all())?,
            least: all().reduce(f64::min)?,
            greatest: all().reduce(f64::max)?,
            rounds: ratios.len(),
            below_one: all().filter(|ratio| *ratio < 1.0).count() as f64 / ratios.len() as f64,
        })
    }

    /// The ratio of the p50 of a way to that of a thread that blocks in `recv`.
    pub(super) fn by_blocking(&self, setting: Setting, way: WaitMethod) -> Option<RoundRatio> {
        self.ratio((setting, way), (setting, WaitMethod::Blocking), P50)
    }
}
