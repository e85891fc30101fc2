//! What was found.

use chronorb_report::Document;
use serde::Serialize;
use serde_json::Value;

use super::claims;
use super::plan::Plan;
use super::trial::{System, Trial};
use super::{Throughput, report};
use crate::Claim;
use crate::bench::{OmniOrb, Placement, Sizes};
use crate::environment::Environment;
use crate::experiment::{Experiment, Findings, figures};
use crate::stats::median;

/// What one system did in one trial in one round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What was tried.
    pub trial: Trial,
    /// By whom.
    pub system: System,
    /// Where.
    pub placement: Placement,
    /// From 1 on.
    pub round: u32,
    /// How many calls there were, of all clients together.
    pub calls: u32,
    /// How many there were in a second.
    pub calls_per_s: f64,
    /// How much data went each way in a second, in MiB; 0 where there was none.
    pub mib_per_s: f64,
}

/// How many octets a call of chronorb has on the wire.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Messages {
    /// Of which trial.
    pub trial: Trial,
    /// How many.
    pub octets: Sizes,
}

/// All that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// What was run.
    pub plan: Plan,
    /// Where.
    pub environment: Environment,
    /// What calls have on the wire.
    pub messages: Vec<Messages>,
    /// Whether omniORB took part.
    pub omniorb: OmniOrb,
    /// Every round by itself.
    pub rows: Vec<Row>,
}

impl Row {
    pub(super) fn new(
        trial: Trial,
        system: System,
        placement: Placement,
        round: u32,
        calls: u32,
        elapsed_ns: u64,
    ) -> Self {
        let calls_per_s = f64::from(calls) / (elapsed_ns.max(1) as f64 / 1e9);
        let mib_per_s = calls_per_s * f64::from(trial.octets()) / f64::from(1 << 20);
        Self {
            trial,
            system,
            placement,
            round,
            calls,
            calls_per_s: rounded(calls_per_s),
            mib_per_s: rounded(mib_per_s),
        }
    }
}

impl Outcome {
    /// The rounds of a system in a trial.
    pub(super) fn rounds(
        &self,
        trial: Trial,
        placement: Placement,
        system: System,
    ) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| {
            row.trial == trial && row.placement == placement && row.system == system
        })
    }

    /// How many calls a system made in a second: the median of the rounds.
    pub(super) fn rate(&self, trial: Trial, placement: Placement, system: System) -> Option<f64> {
        median(
            self.rounds(trial, placement, system)
                .map(|row| row.calls_per_s),
        )
    }

    /// The same by that of another in the same round: the median of the rounds.
    pub(super) fn ratio(
        &self,
        trial: Trial,
        placement: Placement,
        system: System,
        to: System,
    ) -> Option<f64> {
        let rounds = self.rounds(trial, placement, system);
        median(rounds.filter_map(|row| {
            let mut others = self.rounds(trial, placement, to);
            let other = others.find(|other| other.round == row.round)?;
            Some(row.calls_per_s / other.calls_per_s.max(1e-3))
        }))
    }
}

impl Findings for Outcome {
    fn headline(&self) -> String {
        report::headline(self)
    }

    fn caveats(&self) -> Vec<String> {
        let without = self.omniorb.version.is_none();
        let without = without.then(|| self.omniorb.sentence());
        without
            .into_iter()
            .chain(self.environment.stolen_caveat())
            .collect()
    }

    fn claims(&self) -> Vec<Claim> {
        claims::of(self)
    }

    fn figures(&self) -> Value {
        figures(Throughput::NAME, self, Value::Null)
    }

    fn document(&self) -> Document {
        report::document(self)
    }
}

fn rounded(rate: f64) -> f64 {
    (rate * 10.0).round() / 10.0
}
