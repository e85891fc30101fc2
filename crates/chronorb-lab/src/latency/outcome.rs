//! The figures of the experiment.

use serde::Serialize;
use serde_json::{Value, json};

use super::idle::IdleConnections;
use super::plan::LatencyPlan;
use super::system::LatencySystem;
use crate::bench::{OmniOrb, Placement, Sizes};
use crate::environment::Environment;
use crate::pairs::median_ratio;
use crate::report::PooledRecords;
use crate::report::rounds::over_rounds;
use crate::stats::{Record, Summary};

/// The calls of one system in one place in one round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LatencyRow {
    /// The system.
    pub system: LatencySystem,
    /// The place of client and server.
    pub placement: Placement,
    /// The number of the round, from 1 on.
    pub round: u32,
    /// The shortest call.
    pub min_us: f64,
    /// All calls.
    #[serde(flatten)]
    pub latency: Summary,
}

/// The result of the experiment.
#[derive(Clone, Debug, Serialize)]
pub struct LatencyOutcome {
    /// The plan that was run.
    pub plan: LatencyPlan,
    /// The machine.
    pub environment: Environment,
    /// The octets of a call on the wire, for chronorb and for raw TCP.
    pub messages: Sizes,
    /// The part that omniORB took.
    pub omniorb: OmniOrb,
    /// The rows of all rounds.
    pub rows: Vec<LatencyRow>,
    /// The calls of all rounds together.
    #[serde(skip)]
    pub(super) pooled: PooledRecords<(LatencySystem, Placement)>,
    /// The cost of idle connections, if the plan has some.
    #[serde(rename = "idle_connections")]
    pub idle: Option<IdleConnections>,
}

impl LatencyRow {
    /// Returns the row of a batch of calls.
    pub(super) fn of(
        (system, placement): (LatencySystem, Placement),
        round: u32,
        record: &Record,
    ) -> Self {
        Self {
            system,
            placement,
            round,
            min_us: record.min_us(),
            latency: record.summary(),
        }
    }
}

/// Returns one figure of several rounds each: the shortest call, the longest call, and medians.
pub(super) fn summary(rows: &[&LatencyRow]) -> Option<(f64, Summary)> {
    let summary = over_rounds(rows.iter().map(|row| &row.latency))?;
    let least = rows.iter().map(|row| row.min_us).reduce(f64::min)?;
    Some((least, summary))
}

/// Returns the median latency of a row, for ratios.
pub(super) const fn p50(row: &LatencyRow) -> f64 {
    row.latency.p50_us
}

impl LatencyOutcome {
    /// Returns the rounds of a system in a place.
    pub(super) fn rounds(&self, system: LatencySystem, placement: Placement) -> Vec<&LatencyRow> {
        let of = |row: &&LatencyRow| row.system == system && row.placement == placement;
        self.rows.iter().filter(of).collect()
    }

    /// Returns the ratio of a figure of a system to that of another in the same round: the median
    /// of the rounds.
    pub(super) fn ratio(
        &self,
        system: LatencySystem,
        to: LatencySystem,
        placement: Placement,
        of: impl Fn(&LatencyRow) -> f64,
    ) -> Option<f64> {
        let [rows, others] = [system, to].map(|system| self.rounds(system, placement));
        median_ratio(rows, others, |row| row.round, of)
    }

    /// Returns the ratios of the medians to those of raw TCP that waits in the same way.
    pub(super) fn ratios(&self) -> Vec<Value> {
        let places = Placement::ALL.into_iter();
        let cells = places.flat_map(|placement| LatencySystem::ALL.map(|of| (of, placement)));
        let ratios = cells.filter_map(|(system, placement)| {
            let ratio = self.ratio(system, system.raw(), placement, p50)?;
            let p50_by_raw = (ratio * 1e3).round() / 1e3;
            Some(json!({"system": system, "placement": placement, "p50_by_raw": p50_by_raw}))
        });
        ratios.collect()
    }
}
