//! What was found.

use chronorb_report::Document;
use serde::Serialize;
use serde_json::Value;

use super::case::{Case, Load, Series, Strategy, Trial};
use super::claims;
use super::plan::Plan;
use super::{Overtake, report};
use crate::Claim;
use crate::environment::Environment;
use crate::experiment::{Experiment, Findings, figures};
use crate::stats::{Record, Summary, median};

/// The calls of one trial in one round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What was tried.
    #[serde(flatten)]
    pub trial: Trial,
    /// From 1 on.
    pub round: u32,
    /// Their latencies. Those of a periodic series count from when a call was due.
    #[serde(flatten)]
    pub latency: Summary,
    /// How much of the processors' time was taken meanwhile, by whomever.
    pub cpu_busy_percent: f64,
    /// How much of it a hypervisor gave to others.
    pub cpu_stolen_percent: f64,
    /// Requests of low and middle priority that were refused (`TRANSIENT`).
    pub refused_requests: u64,
    /// The longest time for which work of the middle lane was kept from computing; nothing where it
    /// had none. Real-time throttling shows here.
    pub middle_longest_stop_us: Option<u32>,
}

/// All that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// What was run.
    pub plan: Plan,
    /// Where.
    pub environment: Environment,
    /// Whether the measuring client had a real-time priority all the time.
    pub real_time: bool,
    /// Whether it and the servers had their memory locked.
    pub memory_locked: bool,
    /// Every round by itself.
    pub rows: Vec<Row>,
    /// The calls of all rounds together.
    #[serde(skip)]
    pub pooled: Vec<(Trial, Record)>,
}

/// The rounds of one trial in one figure each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Figure {
    pub(super) calls: u64,
    /// The medians over the rounds.
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    /// The least and the greatest p99 of a round.
    pub(super) p99_range_us: (f64, f64),
    /// Over all rounds.
    pub(super) max_us: f64,
    pub(super) cpu_busy_percent: f64,
    pub(super) refused_requests: u64,
    pub(super) middle_longest_stop_us: Option<u32>,
}

impl Outcome {
    /// One trial over all rounds; nothing where it was not measured, or no call was answered in its
    /// time.
    pub(super) fn figure(&self, trial: Trial) -> Option<Figure> {
        let rows: Vec<&Row> = self.rounds(trial).collect();
        let all = |of: fn(&Row) -> f64| rows.iter().map(move |row| of(row));
        let p99 = || all(|row| row.latency.p99_us);
        Some(Figure {
            calls: rows.iter().map(|row| row.latency.calls).sum(),
            p50_us: median(all(|row| row.latency.p50_us))?,
            p99_us: median(p99())?,
            p99_range_us: (p99().reduce(f64::min)?, p99().reduce(f64::max)?),
            max_us: all(|row| row.latency.max_us).reduce(f64::max)?,
            cpu_busy_percent: median(all(|row| row.cpu_busy_percent))?,
            refused_requests: rows.iter().map(|row| row.refused_requests).sum(),
            middle_longest_stop_us: rows.iter().filter_map(|r| r.middle_longest_stop_us).max(),
        })
    }

    /// The rounds of a trial in which calls were answered.
    pub(super) fn rounds(&self, trial: Trial) -> impl Iterator<Item = &Row> {
        let rows = self.rows.iter();
        rows.filter(move |row| row.trial == trial && row.latency.calls > 0)
    }

    /// The calls of a trial, all rounds together.
    pub(super) fn calls(&self, trial: Trial) -> Option<&Record> {
        let mut pooled = self.pooled.iter();
        let (_, record) = pooled.find(|(of, record)| *of == trial && record.calls() > 0)?;
        Some(record)
    }

    /// The p99 of a trial by that of the same pool under another load.
    pub(super) fn ratio(&self, trial: Trial, to: Load) -> Option<f64> {
        let other = trial.under(to);
        if trial == other {
            return None;
        }
        Some(self.figure(trial)?.p99_us / self.figure(other)?.p99_us)
    }
}

impl Findings for Outcome {
    fn headline(&self) -> String {
        report::headline(self)
    }

    fn caveats(&self) -> Vec<String> {
        let mut caveats = Vec::new();
        if !self.real_time {
            caveats.push(
                "These figures are not real-time: this process may not use real-time priorities, so \
                 that all threads ran under the ordinary scheduler, and only lanes and connections \
                 kept the priorities apart."
                    .to_owned(),
            );
        }
        caveats.extend(self.environment.stolen_caveat());
        caveats
    }

    fn claims(&self) -> Vec<Claim> {
        claims::of(self)
    }

    fn figures(&self) -> Value {
        figures(Overtake::NAME, self, Value::Null)
    }

    fn document(&self) -> Document {
        report::document(self)
    }
}

pub(super) const fn trial(strategy: Strategy, case: Case, series: Series) -> Trial {
    Trial {
        strategy,
        case,
        series,
    }
}
