//! The messages between the parent and its children.

use std::net::SocketAddr;
use std::time::Duration;

use chronorb_rt::Monotonic;
use serde::{Deserialize, Serialize};

use super::attack::Attack;
use super::plan::HostilePlan;
use super::services::{AttackedService, ServiceAttack, ServicePlan};
use crate::schedule::Window;
use crate::stats::Record;

/// The argument of a child process.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum HostileOrder {
    Victim,
    Client(Target, HostilePlan),
    Attacker(Target, HostilePlan, Attack),
    /// A service that is attacked.
    Service(AttackedService),
    /// Another client of the service.
    OtherClient(AttackedService, Target, ServicePlan),
    /// The attacker of a service, with the amount of its attack.
    Assailant(Target, ServicePlan, ServiceAttack, u32),
}

/// The object of the victim, which it reports when it serves.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Target {
    pub(super) reference: String,
    pub(super) address: SocketAddr,
    pub(super) key: Vec<u8>,
}

/// The beginning and the length of a phase, for a client or an attacker.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct PhaseRun {
    pub(super) at_ns: u64,
    pub(super) length: Duration,
}

impl PhaseRun {
    pub(super) const fn window(self) -> Window {
        Window {
            start: Monotonic::from_nanos(self.at_ns),
            length: self.length,
        }
    }
}

/// The report of the client after a phase.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct AttackCalls {
    pub(super) calls: Attempts,
    /// New clients, with the times from their connecting to the reply.
    pub(super) newcomers: Attempts,
}

/// The calls of one kind.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Attempts {
    /// The calls that were answered.
    pub(super) answered: Record,
    /// The number of the others.
    pub(super) failed: u64,
}

impl Attempts {
    pub(super) fn failed_percent(&self) -> f64 {
        let all = self.failed + self.answered.calls();
        self.failed as f64 / all.max(1) as f64 * 100.0
    }
}

/// The report of an attacker at its end.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(super) struct AttackTraffic {
    pub(super) octets: u64,
    /// Connections that were opened.
    pub(super) connections: u64,
    /// Connections that could not be opened.
    pub(super) refused: u64,
}

impl AttackTraffic {
    pub(super) const fn and(self, other: Self) -> Self {
        Self {
            octets: self.octets + other.octets,
            connections: self.connections + other.connections,
            refused: self.refused + other.refused,
        }
    }
}
