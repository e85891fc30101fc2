//! What was found.

use std::time::Duration;

use chronorb_report::Document;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::architecture::Architecture;
use super::plan::{Mode, Periods, Place, Plan};
use super::{Inversion, claims, report};
use crate::Claim;
use crate::bench::OmniOrb;
use crate::environment::Environment;
use crate::experiment::{Experiment, Findings, figures};
use crate::stats::Summary;

/// The class of a client.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The one of high priority.
    High,
    /// Those of low priority, all together.
    Low,
}

impl Class {
    /// Both.
    pub const ALL: [Self; 2] = [Self::High, Self::Low];

    /// In a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Low => "low",
        }
    }
}

/// The calls of one class in one trial.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Row {
    /// How the ORB was built.
    pub architecture: Architecture,
    /// How often clients called, and for what.
    pub mode: Mode,
    /// On which CPUs client and server ran.
    pub place: Place,
    /// How many clients of low priority there were.
    pub low_clients: u32,
    /// Whose calls these are.
    pub class: Class,
    /// What they took from when each was due.
    #[serde(flatten)]
    pub latency: Summary,
    /// The same from when each was made: mean, standard deviation, 99 % and the longest.
    pub call_mean_us: f64,
    #[allow(missing_docs, reason = "see above")]
    pub call_jitter_us: f64,
    #[allow(missing_docs, reason = "see above")]
    pub call_p99_us: f64,
    #[allow(missing_docs, reason = "see above")]
    pub call_max_us: f64,
    /// From one call of such a client to its next; 0 for calls back to back.
    pub period_us: f64,
    /// What a servant computed for each call.
    pub work_us: f64,
    /// How many hundredths of one processor the server took.
    pub server_cpu_percent: f64,
    /// How many the client took, with all its threads.
    pub client_cpu_percent: f64,
    /// How many hundredths of all processors a hypervisor gave to others.
    pub stolen_percent: f64,
}

/// What was found out before a mode whose rates depend on the machine.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Calibration {
    /// The mode.
    pub mode: Mode,
    /// What a request took of a processor for the server, when fifty clients called back to back.
    pub server_cpu_us_per_request: f64,
    /// The same for the client.
    pub client_cpu_us_per_request: f64,
    /// How many requests were served in a second.
    pub requests_per_s: f64,
    /// From one call of the high-priority client to its next, in the mode.
    pub high_period_us: f64,
    /// From one call of a low-priority client to its next.
    pub low_period_us: f64,
}

impl Calibration {
    pub(crate) fn periods(self) -> Periods {
        let period = |us: f64| Duration::from_secs_f64(us / 1e6);
        Periods {
            high: period(self.high_period_us),
            low: period(self.low_period_us),
        }
    }
}

/// All that was found.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Outcome {
    /// What was run.
    pub plan: Plan,
    /// Where.
    pub environment: Environment,
    /// Whether clients and servers had real-time priorities.
    pub real_time: bool,
    /// Whether they had their memory locked.
    pub memory_locked: bool,
    /// Whether there was but one processor for them, whatever was planned.
    #[serde(skip)]
    pub one_cpu: bool,
    /// The omniORB that took part, or why none did.
    pub omniorb: OmniOrb,
    /// How the rates of those modes were found that have none of their own.
    pub calibrations: Vec<Calibration>,
    /// Every class of every trial.
    pub rows: Vec<Row>,
}

impl Outcome {
    /// The modes that were measured.
    pub(super) fn modes(&self) -> Vec<Mode> {
        let measured = |mode: &Mode| self.rows.iter().any(|row| row.mode == *mode);
        Mode::ALL.into_iter().filter(measured).collect()
    }

    /// The architectures that were measured.
    pub(super) fn architectures(&self) -> Vec<Architecture> {
        let measured = |of: &Architecture| self.rows.iter().any(|row| row.architecture == *of);
        Architecture::ALL.into_iter().filter(measured).collect()
    }

    /// The trials of an architecture in a mode in figures of one class, the least clients first.
    pub(super) fn series(&self, of: Architecture, mode: Mode, class: Class) -> Vec<&Row> {
        let rows = self.rows.iter();
        let mut rows: Vec<&Row> = rows
            .filter(|row| row.architecture == of && row.mode == mode && row.class == class)
            .collect();
        rows.sort_by_key(|row| row.low_clients);
        rows
    }

    /// Both classes of each trial: high and low.
    pub(super) fn pairs(&self, of: Architecture, mode: Mode) -> Vec<(&Row, &Row)> {
        let low = self.series(of, mode, Class::Low);
        let high = self.series(of, mode, Class::High).into_iter();
        high.filter_map(|high| {
            let same = |low: &&&Row| low.low_clients == high.low_clients;
            low.iter().find(same).map(|low| (high, *low))
        })
        .collect()
    }
}

impl Findings for Outcome {
    fn headline(&self) -> String {
        report::headline(self)
    }

    fn caveats(&self) -> Vec<String> {
        report::caveats(self)
    }

    fn claims(&self) -> Vec<Claim> {
        claims::of(self)
    }

    fn figures(&self) -> Value {
        let architectures = self.architectures().into_iter().map(|of| {
            let description = of.description();
            json!({
                "name": description.name,
                "title": description.title,
                "stands_for": description.stands_for,
                "meaning": description.meaning,
            })
        });
        figures(
            Inversion::NAME,
            self,
            json!({"architectures": architectures.collect::<Vec<_>>()}),
        )
    }

    fn document(&self) -> Document {
        report::document(self)
    }
}
