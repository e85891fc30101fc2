//! The attacks of a run, and its durations.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Hostile;
use super::attack::Attack;
use super::services::ServicePlan;
use crate::experiment::Experiment;

/// The attacks of a run, and its durations.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct HostilePlan {
    /// The attacks, in this order.
    pub attacks: Vec<Attack>,
    /// The time that the client is alone before an attack.
    pub before: Duration,
    /// The duration of an attack.
    pub during: Duration,
    /// The time that the client is alone after it.
    pub after: Duration,
    /// The time from one call of the client to the next.
    pub period: Duration,
    /// The time from one new client to the next.
    pub newcomer_period: Duration,
    /// The longest time of a call; one that takes longer has failed.
    pub timeout: Duration,
    /// Octets that each new client sends.
    pub newcomer_octets: u32,
    /// The attacks' sizes are divided by this.
    pub divisor: u32,
    /// The attacks on services, which follow.
    pub services: ServicePlan,
}

impl HostilePlan {
    /// The least that runs every attack, for tests; its figures mean nothing.
    #[must_use]
    pub fn tiny() -> Self {
        Self {
            before: Duration::from_millis(60),
            during: Duration::from_millis(150),
            after: Duration::from_millis(60),
            newcomer_period: Duration::from_millis(20),
            timeout: Duration::from_secs(20),
            divisor: 200,
            services: ServicePlan::tiny(),
            ..Hostile::full()
        }
    }

    /// Returns the duration of a phase.
    pub(super) const fn length(&self, phase: AttackPhase) -> Duration {
        match phase {
            AttackPhase::Before => self.before,
            AttackPhase::During => self.during,
            AttackPhase::After => self.after,
        }
    }

    /// Returns the approximate duration of the run.
    pub(super) fn total(&self) -> Duration {
        let phases = self.before + self.during + self.after;
        (phases + AROUND) * self.attacks.len() as u32 + self.services.total()
    }

    /// Returns a size of an attack in this plan, at least 1.
    pub(super) fn size(&self, full: usize) -> usize {
        (full / self.divisor as usize).max(1)
    }
}

/// A part of a trial.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttackPhase {
    /// The client is alone.
    Before,
    /// The attack is on.
    During,
    /// The client is alone again.
    After,
}

impl AttackPhase {
    /// All, in their order.
    pub const ALL: [Self; 3] = [Self::Before, Self::During, Self::After];
}

/// The time that starting and ending the processes of a trial takes.
const AROUND: Duration = Duration::from_millis(500);
