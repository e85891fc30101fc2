//! The attacks on services in a run, and their figures.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::attack::{AttackedService, ServiceAttack};
use crate::stats::Summary;

/// The attacks on services in a run, and its durations.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ServicePlan {
    /// The attacks, in this order.
    pub attacks: Vec<ServiceAttack>,
    /// The time that the other client is alone before an attack.
    pub alone: Duration,
    /// The longest time of an attack.
    pub longest: Duration,
    /// The time for which the attacker holds what it has taken.
    pub hold: Duration,
    /// The longest time in which the server must come to rest after an attack.
    pub rest: Duration,
    /// The time from one call of the other client to the next.
    pub period: Duration,
    /// The longest time of a call; one that takes longer has failed.
    pub timeout: Duration,
    /// The attacks' sizes are divided by this.
    pub divisor: u32,
}

impl ServicePlan {
    /// The plan whose figures can be quoted.
    #[must_use]
    pub fn full() -> Self {
        Self {
            attacks: ServiceAttack::ALL.to_vec(),
            alone: Duration::from_secs(2),
            longest: Duration::from_secs(20),
            hold: Duration::from_millis(500),
            rest: Duration::from_secs(10),
            period: Duration::from_millis(5),
            timeout: Duration::from_secs(5),
            divisor: 1,
        }
    }

    /// A plan that shows the same in little time.
    #[must_use]
    pub fn short() -> Self {
        Self {
            alone: Duration::from_millis(300),
            longest: Duration::from_secs(3),
            hold: Duration::from_millis(100),
            rest: Duration::from_secs(3),
            divisor: 10,
            ..Self::full()
        }
    }

    /// The least that runs every attack, for tests; its figures mean nothing.
    #[must_use]
    pub fn tiny() -> Self {
        Self {
            alone: Duration::from_millis(20),
            longest: Duration::from_millis(200),
            hold: Duration::from_millis(20),
            rest: Duration::from_millis(200),
            timeout: Duration::from_secs(20),
            divisor: 100,
            ..Self::full()
        }
    }

    /// Returns the approximate duration of all attacks.
    pub(in super::super) fn total(&self) -> Duration {
        let trial = self.alone * 2 + self.hold + self.longest / 3 + AROUND;
        trial * (2 * self.attacks.len() as u32)
    }
}

/// One attack on a service with an amount of octets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ServiceRow {
    /// The service.
    pub service: AttackedService,
    /// The attack.
    pub attack: ServiceAttack,
    /// The amount of the attack: 1, or 2 for twice the octets.
    pub amount: u32,
    /// The calls of the other client that were answered beside the attack.
    #[serde(flatten)]
    pub latency: Summary,
    /// The calls of the other client before the attack.
    pub alone_calls: u64,
    /// The 99th percentile of their latencies.
    pub alone_p99_us: f64,
    /// The percentage of its calls that failed beside the attack and after it.
    pub failed_calls_percent: f64,
    /// Octets that the attacker sent.
    pub sent_octets: u64,
    /// The server's resident memory before the attack.
    pub resident_octets: u64,
    /// The most that it had since then.
    pub resident_most_octets: u64,
    /// The processor time of the server from the beginning of the attack until it came to rest,
    /// less that of the other client's calls.
    pub cpu_ms: f64,
    /// The duration of the attack.
    pub attack_ms: f64,
    /// The time from the end of the attacker's connections to the rest of the server.
    pub rest_ms: f64,
    /// 100 where the server came to rest in time, else 0.
    pub rested_percent: f64,
    /// 100 where the server was alive at the end, else 0.
    pub survived_percent: f64,
}

impl ServiceRow {
    /// Returns by how many octets the memory of the server grew beyond [`MEMORY_CONSTANT`], for
    /// each octet of the attacker.
    pub(super) fn memory_factor(&self) -> f64 {
        let grown = self.grown().saturating_sub(MEMORY_CONSTANT);
        grown as f64 / self.sent_octets.max(1) as f64
    }

    /// Returns by how many bytes the memory of the server grew.
    pub(super) const fn grown(&self) -> u64 {
        self.resident_most_octets
            .saturating_sub(self.resident_octets)
    }

    /// Returns the ratio of the latencies beside the attack and before it.
    pub(super) fn p99_factor(&self) -> f64 {
        self.latency.p99_us / self.alone_p99_us.max(1.0)
    }
}

/// Returns how much more processor time the server takes for twice the octets. Where the attacker
/// did not send twice as many, this is in proportion to the octets that it sent.
pub(super) fn work_factor(once: &ServiceRow, twice: &ServiceRow) -> f64 {
    let times = |row: &ServiceRow| row.cpu_ms.max(LEAST_CPU_MS);
    let octets = twice.sent_octets.max(1) as f64 / once.sent_octets.max(1) as f64;
    times(twice) / times(once) * 2.0 / octets.max(1.0)
}

/// The memory that a server may take besides, for the granularity of its allocator: arenas of
/// threads and pages that are kept.
pub(super) const MEMORY_CONSTANT: u64 = 8 << 20;
/// Less processor time than this counts as this, because proc(5) counts ticks of 10 ms.
pub(super) const LEAST_CPU_MS: f64 = 50.0;
/// The time that starting and ending the processes of a trial takes.
const AROUND: Duration = Duration::from_millis(500);
