//! The figures of the experiment.

use serde::Serialize;

use super::attack::Attack;
use super::plan::{AttackPhase, HostilePlan};
use super::services::{ServiceAttack, ServiceRow};
use crate::environment::Environment;
use crate::stats::Summary;

/// A phase of one attack.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HostileRow {
    /// The attack.
    pub attack: Attack,
    /// The phase: before, during or after the attack.
    pub phase: AttackPhase,
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
pub struct Death<A = Attack> {
    /// The attack.
    pub attack: A,
    /// The status of its process.
    pub status: String,
    /// The first line that it wrote to standard error.
    pub last_words: String,
}

/// The outcome of the experiment.
#[derive(Clone, Debug, Serialize)]
pub struct HostileOutcome {
    /// The plan of the run.
    pub plan: HostilePlan,
    /// The machine.
    pub environment: Environment,
    /// Every phase of every attack.
    pub rows: Vec<HostileRow>,
    /// The servers that did not survive.
    pub deaths: Vec<Death>,
    /// Every attack on a service, by some octets and by twice as many.
    pub service_rows: Vec<ServiceRow>,
    /// The services that did not survive.
    pub service_deaths: Vec<Death<ServiceAttack>>,
}

impl HostileOutcome {
    /// Returns the figures of a phase of an attack, if it was measured.
    pub(super) fn row(&self, attack: Attack, phase: AttackPhase) -> Option<&HostileRow> {
        let mut rows = self.rows.iter();
        rows.find(|row| row.attack == attack && row.phase == phase)
    }

    /// Returns the end of the server during an attack, if it ended.
    pub(super) fn death(&self, attack: Attack) -> Option<&Death> {
        self.deaths.iter().find(|death| death.attack == attack)
    }

    /// Returns the figures of an attack on a service with an amount, if it was measured.
    pub(super) fn service_row(&self, attack: ServiceAttack, amount: u32) -> Option<&ServiceRow> {
        let mut rows = self.service_rows.iter();
        rows.find(|row| row.attack == attack && row.amount == amount)
    }

    /// Returns the end of a service during an attack, if it ended.
    pub(super) fn service_death(&self, attack: ServiceAttack) -> Option<&Death<ServiceAttack>> {
        let mut deaths = self.service_deaths.iter();
        deaths.find(|death| death.attack == attack)
    }

    /// Whether the server survived an attack, and no call and no new client failed during it or
    /// after it; nothing where it was not tried.
    pub(super) fn is_withstood(&self, attack: Attack) -> Option<bool> {
        let of = |phase| {
            let row = self.row(attack, phase)?;
            let failed = row.failed_calls_percent + row.failed_newcomers_percent;
            Some(row.survived_percent > 0.0 && failed == 0.0)
        };
        Some(of(AttackPhase::During)? && of(AttackPhase::After)?)
    }
}
