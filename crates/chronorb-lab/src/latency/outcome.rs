//! What was found.

use chronorb_report::Document;
use serde::Serialize;
use serde_json::{Value, json};

use super::claims;
use super::idle::IdleConnections;
use super::plan::Plan;
use super::system::System;
use super::{Latency, report};
use crate::Claim;
use crate::bench::{OmniOrb, Placement, Sizes};
use crate::environment::Environment;
use crate::experiment::{Experiment, Findings, figures};
use crate::stats::{Record, Summary, median};

/// The calls of one system in one place in one round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Whose.
    pub system: System,
    /// Where.
    pub placement: Placement,
    /// From 1 on.
    pub round: u32,
    /// The shortest.
    pub min_us: f64,
    /// All of them.
    #[serde(flatten)]
    pub latency: Summary,
}

/// All that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// What was run.
    pub plan: Plan,
    /// Where.
    pub environment: Environment,
    /// How many octets a call has on the wire, for chronorb and for raw TCP.
    pub messages: Sizes,
    /// Whether omniORB took part.
    pub omniorb: OmniOrb,
    /// Every round by itself.
    pub rows: Vec<Row>,
    /// The calls of all rounds together.
    #[serde(skip)]
    pub pooled: Vec<((System, Placement), Record)>,
    /// What idle connections cost, where that was asked for.
    #[serde(rename = "idle_connections")]
    pub idle: Option<IdleConnections>,
}

/// The calls of a batch as a row, and all of them.
pub(super) fn row(
    system: System,
    placement: Placement,
    round: u32,
    latencies_ns: &[u64],
) -> (Row, Record) {
    let record = super::record(latencies_ns);
    let row = Row {
        system,
        placement,
        round,
        min_us: latencies_ns.iter().min().map_or(0.0, |ns| *ns as f64 / 1e3),
        latency: record.summary(),
    };
    (row, record)
}

/// The rounds of one system in one place in one figure each: the least of the shortest calls, the
/// greatest of the longest, and medians.
pub(super) fn summary(rows: &[&Row]) -> Option<(f64, Summary)> {
    let all = |of: fn(&Row) -> f64| rows.iter().map(move |row| of(row));
    let summary = Summary {
        calls: rows.iter().map(|row| row.latency.calls).sum(),
        p50_us: median(all(|row| row.latency.p50_us))?,
        p99_us: median(all(|row| row.latency.p99_us))?,
        p999_us: median(all(|row| row.latency.p999_us))?,
        max_us: all(|row| row.latency.max_us).reduce(f64::max)?,
        mean_us: median(all(|row| row.latency.mean_us))?,
        jitter_us: median(all(|row| row.latency.jitter_us))?,
    };
    Some((all(|row| row.min_us).reduce(f64::min)?, summary))
}

impl Outcome {
    /// The rounds of a system in a place.
    pub(super) fn rounds(&self, system: System, placement: Placement) -> Vec<&Row> {
        let of = |row: &&Row| row.system == system && row.placement == placement;
        self.rows.iter().filter(of).collect()
    }

    /// A figure of a system by that of another in the same round: the median of the rounds.
    pub(super) fn ratio(
        &self,
        system: System,
        to: System,
        placement: Placement,
        of: impl Fn(&Row) -> f64,
    ) -> Option<f64> {
        let others = self.rounds(to, placement);
        let rounds = self.rounds(system, placement);
        median(rounds.iter().filter_map(|row| {
            let other = others.iter().find(|other| other.round == row.round)?;
            Some(of(row) / of(other).max(1e-3))
        }))
    }

    fn ratios(&self) -> Vec<Ratio> {
        let mut ratios = Vec::new();
        for placement in Placement::ALL {
            for system in System::ALL {
                let p50 = |row: &Row| row.latency.p50_us;
                if let Some(ratio) = self.ratio(system, system.raw(), placement, p50) {
                    ratios.push(Ratio {
                        system,
                        placement,
                        p50_by_raw: (ratio * 1e3).round() / 1e3,
                    });
                }
            }
        }
        ratios
    }
}

impl Findings for Outcome {
    fn headline(&self) -> String {
        report::headline(self)
    }

    fn caveats(&self) -> Vec<String> {
        let mut caveats = Vec::new();
        if self.omniorb.version.is_none() {
            caveats.push(self.omniorb.sentence());
        }
        if let Some(idle) = self.idle.as_ref().filter(|i| !i.fewer_because.is_empty()) {
            caveats.push(format!(
                "Only {} idle connections of {}: {}.",
                idle.connections, idle.wanted, idle.fewer_because
            ));
        }
        caveats.extend(self.environment.stolen_caveat());
        caveats
    }

    fn claims(&self) -> Vec<Claim> {
        claims::of(self)
    }

    fn figures(&self) -> Value {
        figures(Latency::NAME, self, json!({"ratios": self.ratios()}))
    }

    fn document(&self) -> Document {
        report::document(self)
    }
}

/// The p50 of a system by that of raw TCP that waits like it.
#[derive(Clone, Copy, Debug, Serialize)]
struct Ratio {
    system: System,
    placement: Placement,
    p50_by_raw: f64,
}
