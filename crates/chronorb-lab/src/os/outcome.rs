//! What was found.

use chronorb_report::Document;
use serde::Serialize;
use serde_json::{Value, json};

use super::case::Case;
use super::class::Class;
use super::kernel::Kernel;
use super::load::Load;
use super::plan::Plan;
use super::switch::Switching;
use super::{OperatingSystem, claims, report};
use crate::Claim;
use crate::bench::Placement;
use crate::environment::Environment;
use crate::experiment::{Experiment, Findings, figures};
use crate::stats::Summary;

/// All that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// What was run.
    pub plan: Plan,
    /// Where.
    pub environment: Environment,
    /// What the kernel of this machine is set to.
    pub kernel: Kernel,
    /// The classes that this process may not use, and why.
    #[serde(skip)]
    pub refused: Vec<(Class, String)>,
    /// The ORB under each class and load.
    #[serde(skip)]
    pub classes: Vec<ClassRow>,
    /// What throttling takes from a real-time thread.
    #[serde(skip)]
    pub throttling: Vec<ThrottlingRow>,
    /// What a context switch costs.
    #[serde(skip)]
    pub switches: Vec<SwitchRow>,
    /// How many of them a request has.
    #[serde(skip)]
    pub requests: Vec<RequestRow>,
    /// What the ORB leaves of processors.
    #[serde(skip)]
    pub scavengers: Vec<ScavengerRow>,
    /// Four clients at four rates.
    #[serde(skip)]
    pub rates: Vec<RateRow>,
}

/// Which clients.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Client {
    /// The one of high priority.
    High,
    /// Those of low priority together.
    Low,
}

/// The calls of one client, or several alike, in a case.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClassRow {
    /// What was tried.
    #[serde(flatten)]
    pub case: Case,
    /// Whose calls.
    pub client: Client,
    /// Their latencies from when they were due, all rounds together.
    #[serde(flatten)]
    pub latency: Summary,
    /// The median over the rounds.
    pub p99_of_rounds_us: f64,
    /// How much of the processors' time was taken meanwhile, by whomever.
    pub cpu_busy_percent: f64,
    /// How much of it a hypervisor gave to others.
    pub cpu_stolen_percent: f64,
}

/// How a real-time thread fared that computes without end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ThrottlingRow {
    /// Whether an ordinary thread wanted the same processor.
    pub contended: bool,
    /// How long it computed.
    pub length_s: f64,
    /// The longest time between two looks at the clock.
    pub longest_gap_us: f64,
    /// How many times it was kept from computing for a ms or more.
    pub gaps_of_a_ms: u64,
    /// How much of the time it had no processor.
    pub lost_percent: f64,
    /// How much of the time the ordinary thread had it.
    pub given_percent: f64,
}

/// What a context switch costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SwitchRow {
    /// How two threads took turns.
    pub switching: Switching,
    /// On how many processors.
    pub cpus: u32,
    /// How often.
    pub turns: u64,
    /// The mean of a switch, half of the time to the next turn.
    pub mean_us: f64,
    /// Its standard deviation.
    pub deviation_us: f64,
    /// The median.
    pub p50_us: f64,
    /// 99 % were not longer.
    pub p99_us: f64,
    /// The longest.
    pub max_us: f64,
    /// The switches that the kernel has counted for each that should have been.
    pub counted_by_expected: f64,
}

/// The context switches of requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RequestRow {
    /// Where client and server were.
    pub placement: Placement,
    /// How many called at once.
    pub clients: u32,
    /// How many requests were made.
    pub requests: u64,
    /// Context switches of the client's threads, for each.
    pub client_switches_per_request: f64,
    /// And of the server's.
    pub server_switches_per_request: f64,
}

/// Client or server.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Where the calls are made.
    Client,
    /// Where they are served.
    Server,
}

/// What was left of a processor while calls were made.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ScavengerRow {
    /// Whose processor.
    pub side: Side,
    /// How many calls were made in a second.
    pub rate_hz: u32,
    /// How many calls were made.
    pub requests: u64,
    /// What was left of what there is without calls.
    pub left_percent: f64,
    /// What was left where the client only woke up as often.
    pub left_by_waking_percent: f64,
    /// The processor time that a request takes, in all.
    pub cpu_us_per_request: f64,
    /// Without what it takes to wake up for it.
    pub orb_us_per_request: f64,
}

/// In which way four clients called.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// At the papers' rates, with next to no work.
    Paper,
    /// At ten times these rates, with work, while the processors are busy.
    Scaled,
}

/// The calls of one of four clients.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RateRow {
    /// How all threads were scheduled.
    pub class: Class,
    /// In which way they called.
    pub mode: Mode,
    /// 1 is the most urgent.
    pub client: u32,
    /// Its priority, as CORBA and Linux have it.
    pub priority: u8,
    /// How often it called.
    pub rate_hz: u32,
    /// The latencies of its calls from when they were due.
    #[serde(flatten)]
    pub latency: Summary,
}

impl Outcome {
    /// The calls of a case.
    pub(super) fn class(&self, case: Case, client: Client) -> Option<&ClassRow> {
        let mut rows = self.classes.iter();
        rows.find(|row| row.case == case && row.client == client && row.latency.calls > 0)
    }

    /// What a context switch cost.
    pub(super) fn switch(&self, switching: Switching, cpus: u32) -> Option<&SwitchRow> {
        let mut rows = self.switches.iter();
        rows.find(|row| row.switching == switching && row.cpus == cpus)
    }

    /// The four clients, the most urgent first; nothing where not all of them called.
    pub(super) fn four(&self, class: Class, mode: Mode) -> Option<[&RateRow; 4]> {
        let rows = self.rates.iter();
        let rows =
            rows.filter(|row| row.class == class && row.mode == mode && row.latency.calls > 0);
        rows.collect::<Vec<_>>().try_into().ok()
    }

    /// That others used the processors where they should have been idle.
    fn busy_caveat(&self) -> Option<String> {
        let idle = self
            .classes
            .iter()
            .filter(|row| row.case.load == Load::Idle);
        let least = idle.map(|row| row.cpu_busy_percent).reduce(f64::min)?;
        (least >= BUSY_PERCENT).then(|| {
            format!(
                "Other programs ran meanwhile: the processors were busy for {least:.0} % of the time where they should \
                 have been idle, so that idle is not idle here."
            )
        })
    }

    /// That scavengers lost to others than the ORB.
    fn scavenger_caveat(&self) -> Option<String> {
        // Nothing is done at the server while the client only wakes up.
        let servers = self
            .scavengers
            .iter()
            .filter(|row| row.side == Side::Server);
        let off = servers.map(|row| (row.left_by_waking_percent - 100.0).abs());
        let most = off.reduce(f64::max)?;
        (most >= OFF_PERCENT).then(|| {
            format!(
                "Other programs took part in what was left to scavengers, by {most:.0} % where nobody called: what they say \
                 of the ORB's processor time is no better than that."
            )
        })
    }

    /// The rows of all parts, each with the name of its part.
    fn rows(&self) -> Vec<Value> {
        [
            parts("scheduling-class", &self.classes),
            parts("throttling", &self.throttling),
            parts("context-switch", &self.switches),
            parts("switches-per-request", &self.requests),
            parts("scavenger", &self.scavengers),
            parts("four-rates", &self.rates),
        ]
        .concat()
    }
}

impl Findings for Outcome {
    fn headline(&self) -> String {
        report::headline(self)
    }

    fn caveats(&self) -> Vec<String> {
        let refused = self.refused.iter().map(|(class, why)| {
            format!(
                "{} was not measured, and nothing else that needs it: {why}.",
                class.name()
            )
        });
        let others = [self.busy_caveat(), self.scavenger_caveat()];
        refused
            .chain(others.into_iter().flatten())
            .chain(self.environment.stolen_caveat())
            .collect()
    }

    fn claims(&self) -> Vec<Claim> {
        claims::of(self)
    }

    fn figures(&self) -> Value {
        let refused = self
            .refused
            .iter()
            .map(|(class, why)| json!({"class": class, "why": why}));
        figures(
            OperatingSystem::NAME,
            self,
            json!({"refused": refused.collect::<Vec<_>>(), "rows": self.rows()}),
        )
    }

    fn document(&self) -> Document {
        report::document(self)
    }
}

/// More than the calls of an idle case take.
const BUSY_PERCENT: f64 = 60.0;
/// By how much counts differ on a quiet machine.
const OFF_PERCENT: f64 = 3.0;

fn parts<T: Serialize>(part: &str, rows: &[T]) -> Vec<Value> {
    rows.iter()
        .map(|row| {
            let mut row = serde_json::to_value(row).expect("rows are plain data");
            row["part"] = part.into();
            row
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::claims::tests::outcome;
    use super::*;

    #[test]
    fn what_others_did_meanwhile_is_said() {
        let mut outcome = outcome();
        assert_eq!(outcome.caveats(), [""; 0]);
        for row in &mut outcome.classes {
            row.cpu_busy_percent = 97.0;
        }
        outcome.scavengers[1].left_by_waking_percent = 110.0;
        outcome.environment.stolen_percent = vec![2.5];
        let caveats = outcome.caveats();
        assert_eq!(caveats.len(), 3, "{caveats:?}");
        let parts = ["97 % of the time", "by 10 %", "2.5 %"];
        for (caveat, part) in caveats.iter().zip(parts) {
            assert!(caveat.contains(part), "{caveat}");
        }
    }

    #[test]
    fn rows_name_their_part_and_what_was_tried() {
        let figures = outcome().figures();
        let rows = figures["rows"].as_array().unwrap();
        let parts: BTreeSet<_> = rows.iter().map(|row| row["part"].as_str()).collect();
        assert_eq!(parts.len(), 6);
        let tried = [
            ("class", "other"),
            ("load", "idle"),
            ("client", "high"),
            ("placement", "unpinned"),
        ];
        for (name, value) in tried {
            assert_eq!(rows[0][name], value, "{}", rows[0]);
        }
        assert!(rows[0]["p99_us"].is_number() && rows[0]["memory_locked"].is_boolean());
    }
}
