//! What was found.

use chronorb_report::Document;
use serde::Serialize;
use serde_json::Value;

use super::case::{Class, Setting, Trial, Way};
use super::claims;
use super::order::IoUring;
use super::plan::Plan;
use super::{Waits, report};
use crate::Claim;
use crate::environment::Environment;
use crate::experiment::{Experiment, Findings, figures};
use crate::stats::{Summary, median};

/// The calls of one trial in one round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What was tried.
    #[serde(flatten)]
    pub trial: Trial,
    /// From 1 on.
    pub round: u32,
    /// What calls took.
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
    /// Whether there is io_uring.
    pub io_uring: IoUring,
    /// How many processors the process may use.
    #[serde(skip)]
    pub processors: usize,
    /// Every round by itself.
    pub rows: Vec<Row>,
}

/// The rounds of one trial in one figure each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Figure {
    /// The medians over the rounds, in µs.
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    pub(super) p999_us: f64,
    /// Over all rounds.
    pub(super) max_us: f64,
}

/// One trial by another in the same rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ratio {
    /// Over the rounds.
    pub(super) median: f64,
    pub(super) least: f64,
    pub(super) greatest: f64,
    pub(super) rounds: usize,
    /// The share of them in which it was below 1.
    pub(super) below_one: f64,
}

/// A quantile of the calls of a round.
pub(super) type Quantile = fn(&Summary) -> f64;

pub(super) const P50: Quantile = |latency| latency.p50_us;
pub(super) const P99: Quantile = |latency| latency.p99_us;

impl Outcome {
    /// The settings in which something was measured.
    pub(super) fn settings(&self) -> Vec<Setting> {
        let mut settings = Vec::new();
        for row in &self.rows {
            if !settings.contains(&row.trial.setting) {
                settings.push(row.trial.setting);
            }
        }
        settings
    }

    /// The rounds of a trial.
    pub(super) fn rounds(&self, setting: Setting, way: Way) -> impl Iterator<Item = &Row> {
        let trial = Trial { setting, way };
        self.rows.iter().filter(move |row| row.trial == trial)
    }

    /// One trial over all rounds; nothing where it was not measured.
    pub(super) fn figure(&self, setting: Setting, way: Way) -> Option<Figure> {
        let all = |of: Quantile| {
            let rounds = self.rounds(setting, way);
            rounds.map(move |row| of(&row.latency))
        };
        Some(Figure {
            p50_us: median(all(P50))?,
            p99_us: median(all(P99))?,
            p999_us: median(all(|latency| latency.p999_us))?,
            max_us: all(|latency| latency.max_us).reduce(f64::max)?,
        })
    }

    /// A quantile of one trial by that of another, round by round.
    pub(super) fn ratio(
        &self,
        (setting, way): (Setting, Way),
        to: (Setting, Way),
        of: Quantile,
    ) -> Option<Ratio> {
        let ratios: Vec<f64> = (self.rounds(setting, way))
            .filter_map(|row| {
                let other = self.rounds(to.0, to.1).find(|o| o.round == row.round)?;
                Some(of(&row.latency) / of(&other.latency))
            })
            .filter(|ratio| ratio.is_finite())
            .collect();
        let all = || ratios.iter().copied();
        Some(Ratio {
            median: median(all())?,
            least: all().reduce(f64::min)?,
            greatest: all().reduce(f64::max)?,
            rounds: ratios.len(),
            below_one: all().filter(|ratio| *ratio < 1.0).count() as f64 / ratios.len() as f64,
        })
    }

    /// The p50 of a way by that of a thread that blocks in `recv`.
    pub(super) fn by_blocking(&self, setting: Setting, way: Way) -> Option<Ratio> {
        self.ratio((setting, way), (setting, Way::Blocking), P50)
    }
}

impl Findings for Outcome {
    fn headline(&self) -> String {
        report::headline(self)
    }

    fn caveats(&self) -> Vec<String> {
        let mut caveats = Vec::new();
        if let IoUring::Refused(reason) = &self.io_uring {
            caveats.push(format!(
                "io_uring was not measured: the system refuses it ({reason})."
            ));
        }
        if self.environment.max_fifo_priority.is_none() {
            caveats.push(
                "SCHED_FIFO was not measured: this process may not use real-time priorities."
                    .to_owned(),
            );
        }
        if self.processors < 2 {
            caveats.push(
                "Nothing was measured with two processors: this process may use one only, so that \
                 nothing is known of spinning either."
                    .to_owned(),
            );
        }
        let [one, ..] = self.environment.load_average;
        if one >= NOTABLE_LOAD {
            caveats.push(format!(
                "Other programs ran before or meanwhile (load {one:.1}): tails are theirs too."
            ));
        }
        caveats.extend(self.environment.stolen_caveat());
        if !self.plan.is_full() {
            caveats.push("This was a short run: fewer rounds, and fewer calls in each.".to_owned());
        }
        caveats
    }

    fn claims(&self) -> Vec<Claim> {
        claims::of(self)
    }

    fn figures(&self) -> Value {
        figures(Waits::NAME, self, Value::Null)
    }

    fn document(&self) -> Document {
        report::document(self)
    }
}

/// The settings without idle connections, measured or not.
pub(super) fn places() -> impl Iterator<Item = Setting> {
    use super::case::Processors;
    let all = [Class::Ordinary, Class::RealTime];
    all.into_iter().flat_map(|class| {
        [Processors::One, Processors::Two].map(|processors| Setting {
            processors,
            class,
            idle: 0,
        })
    })
}

/// A load that leaves no processor to the experiment alone.
const NOTABLE_LOAD: f64 = 0.5;
