//! The trials of a run.

use std::time::Duration;

use chronorb_orb::rtcorba::{FailoverPolicy, FailoverSemantics, Heartbeat};
use serde::{Deserialize, Serialize};

/// The trials of a run, and their times.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FailoverPlan {
    /// The number of deaths.
    pub trials: u32,
    /// The threads that call in each trial.
    pub threads: u32,
    /// The longest time from the beginning of the calls to the death.
    pub latest: Duration,
    /// The time from one heartbeat of a server to the next.
    pub heartbeat: Duration,
    /// The longest time until the answer to a heartbeat.
    pub heartbeat_timeout: Duration,
    /// The longest time of a call.
    pub timeout: Duration,
    /// The calls of each thread after the first reply of the backup.
    pub calls_after: u32,
}

/// The policy of the calls, and the death of the server.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct FailoverCase {
    /// The policy.
    pub policy: Semantics,
    /// The death.
    pub plug: Plug,
}

/// A fail-over policy, by the name of the standard.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Semantics {
    /// A failure ends the call; the next one goes to the backup.
    OrbDefault,
    /// Calls that were not begun are repeated.
    BestEffort,
    /// Calls that may have been executed are repeated.
    AtLeastOnce,
}

/// The death of a server.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Plug {
    /// The process is killed, and the kernel ends its connections.
    Kill,
    /// The process is stopped. Nothing ends its connections.
    Stop,
}

impl FailoverPlan {
    /// A thousand deaths.
    #[must_use]
    pub fn full() -> Self {
        Self {
            trials: 1_000,
            threads: 3,
            latest: Duration::from_millis(60),
            heartbeat: Duration::from_millis(10),
            heartbeat_timeout: Duration::from_millis(40),
            timeout: Duration::from_secs(10),
            calls_after: 10,
        }
    }

    /// Thirty deaths.
    #[must_use]
    pub fn short() -> Self {
        Self {
            trials: 30,
            ..Self::full()
        }
    }

    /// One death of each case, for tests; its figures mean nothing. The heartbeats are patient,
    /// so that a busy machine does not look like a death.
    #[must_use]
    pub fn tiny() -> Self {
        Self {
            trials: FailoverCase::ALL.len() as u32,
            latest: Duration::from_millis(10),
            heartbeat_timeout: Duration::from_millis(500),
            timeout: Duration::from_secs(60),
            ..Self::full()
        }
    }

    /// Returns the time within which heartbeats detect a death. A wait may end later by an eighth.
    pub(super) fn bound(&self) -> Duration {
        self.heartbeat + self.heartbeat_timeout * 9 / 8
    }

    /// Returns the approximate duration of the run.
    pub(super) fn length(&self) -> Duration {
        (self.latest / 2 + self.bound() + AROUND) * self.trials
    }

    /// Returns the policy of calls.
    pub(super) fn policy(&self, semantics: Semantics) -> FailoverPolicy {
        FailoverPolicy {
            semantics: match semantics {
                Semantics::OrbDefault => FailoverSemantics::OrbDefault,
                Semantics::BestEffort => FailoverSemantics::BestEffort,
                Semantics::AtLeastOnce => FailoverSemantics::AtLeastOnce,
            },
            // Heartbeats detect what is silent, so that their bound is measured.
            attempt_timeout: Some(self.timeout),
            standbys: 1,
            heartbeat: Some(Heartbeat {
                interval: self.heartbeat,
                time_out: self.heartbeat_timeout,
            }),
            ..FailoverPolicy::default()
        }
    }
}

impl FailoverCase {
    /// All cases.
    pub const ALL: [Self; 6] = [
        Self::new(Semantics::OrbDefault, Plug::Kill),
        Self::new(Semantics::OrbDefault, Plug::Stop),
        Self::new(Semantics::BestEffort, Plug::Kill),
        Self::new(Semantics::BestEffort, Plug::Stop),
        Self::new(Semantics::AtLeastOnce, Plug::Kill),
        Self::new(Semantics::AtLeastOnce, Plug::Stop),
    ];

    const fn new(policy: Semantics, plug: Plug) -> Self {
        Self { policy, plug }
    }

    /// Returns the case of a trial; they take turns.
    pub(super) const fn of_trial(number: u32) -> Self {
        Self::ALL[number as usize % Self::ALL.len()]
    }

    /// Returns its name in tables.
    pub(super) fn title(self) -> String {
        format!("{}, {}", self.policy.title(), self.plug.title())
    }
}

impl Semantics {
    /// All policies.
    pub const ALL: [Self; 3] = [Self::OrbDefault, Self::BestEffort, Self::AtLeastOnce];

    /// Returns its name in the standard.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::OrbDefault => "ORB_DEFAULT",
            Self::BestEffort => "BEST_EFFORT",
            Self::AtLeastOnce => "AT_LEAST_ONCE",
        }
    }
}

impl Plug {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Kill, Self::Stop];

    /// Returns its name in tables.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Kill => "killed",
            Self::Stop => "stopped",
        }
    }
}

/// The approximate time to start and to end the processes of a trial.
const AROUND: Duration = Duration::from_millis(150);
