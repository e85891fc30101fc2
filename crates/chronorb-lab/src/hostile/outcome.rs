//! The figures of the experiment.

use chronorb_report::Document;
use serde::Serialize;
use serde_json::Value;

use super::attack::Attack;
use super::plan::{Phase, Plan};
use super::{Hostile, claims, report};
use crate::Claim;
use crate::environment::Environment;
use crate::experiment::{Experiment, Findings, figures};
use crate::stats::Summary;

/// A phase of one attack.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The attack.
    pub attack: Attack,
    /// Before, during or after it.
    pub phase: Phase,
    /// The calls of the legitimate client that were answered.
    #[serde(flatten)]
    pub latency: Summary,
    /// The percentage of its calls that failed.
    pub failed_calls_percent: f64,
    /// New clients that were answered.
    pub newcomers: u64,
    /// The percentage of new clients that failed.
    pub failed_newcomers_percent: f64,
    /// The longest time from connecting to the reply.
    pub newcomer_max_us: f64,
    /// Octets that the attackers sent.
    pub sent_octets: u64,
    /// Connections that they opened.
    pub connections: u64,
    /// Connections that they could not open.
    pub refused_connections: u64,
    /// The server's resident memory at the end of the phase; 0 where it has ended.
    pub resident_octets: u64,
    /// The most that it had in the phase, looked at every 20 ms.
    pub resident_most_octets: u64,
    /// The processor time of the server, by the length of the phase: 100 is one processor.
    pub cpu_percent: f64,
    /// 100 where the server was alive at the end of the phase, else 0.
    pub survived_percent: f64,
}

/// The end of a server during an attack.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Death {
    /// By which attack.
    pub attack: Attack,
    /// The status of its process.
    pub status: String,
    /// The first line that it wrote to standard error.
    pub last_words: String,
}

/// All that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The plan of the run.
    pub plan: Plan,
    /// The machine.
    pub environment: Environment,
    /// Every phase of every attack.
    pub rows: Vec<Row>,
    /// The servers that did not survive.
    pub deaths: Vec<Death>,
}

impl Outcome {
    /// The phase of an attack.
    pub(super) fn row(&self, attack: Attack, phase: Phase) -> Option<&Row> {
        let mut rows = self.rows.iter();
        rows.find(|row| row.attack == attack && row.phase == phase)
    }

    /// The end of the server during an attack, if it ended.
    pub(super) fn death(&self, attack: Attack) -> Option<&Death> {
        self.deaths.iter().find(|death| death.attack == attack)
    }

    /// Whether nobody else noticed the attack but by waiting: the server lives, and no call and no new client failed
    /// during the attack or after it. Nothing where it was not tried.
    pub(super) fn is_withstood(&self, attack: Attack) -> Option<bool> {
        let rows = [Phase::During, Phase::After].map(|phase| self.row(attack, phase));
        let [Some(during), Some(after)] = rows else {
            return None;
        };
        Some([during, after].into_iter().all(|row| {
            row.survived_percent > 0.0
                && row.failed_calls_percent == 0.0
                && row.failed_newcomers_percent == 0.0
        }))
    }
}

impl Findings for Outcome {
    fn headline(&self) -> String {
        report::headline(self)
    }

    fn caveats(&self) -> Vec<String> {
        self.environment.stolen_caveat().into_iter().collect()
    }

    fn claims(&self) -> Vec<Claim> {
        claims::of(self)
    }

    fn figures(&self) -> Value {
        figures(Hostile::NAME, self, Value::Null)
    }

    fn document(&self) -> Document {
        report::document(self)
    }
}
