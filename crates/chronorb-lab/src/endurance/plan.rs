//! The length of a run, and its random numbers.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The length of a run, and its random numbers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct EndurancePlan {
    /// The duration of the load.
    pub length: Duration,
    /// The seed of what is killed and stopped.
    pub seed: u64,
    /// The clients of each load.
    pub clients: u32,
    /// The longest time of a call.
    pub timeout: Duration,
    /// The shortest and the longest time from one signal to the next.
    pub pause: (Duration, Duration),
    /// The longest time for which a process is stopped.
    pub longest_stop: Duration,
    /// Each signal but one of so many stops a process; that one kills it.
    pub stops_for_a_kill: u32,
}

impl EndurancePlan {
    pub(super) fn full() -> Self {
        Self {
            length: Duration::from_secs(15 * 60),
            seed: 1,
            clients: 2,
            timeout: Duration::from_secs(1),
            pause: (Duration::from_millis(200), Duration::from_millis(1_500)),
            longest_stop: Duration::from_secs(2),
            stops_for_a_kill: 3,
        }
    }

    pub(super) fn short() -> Self {
        Self {
            length: Duration::from_secs(60),
            ..Self::full()
        }
    }

    /// The least that has every load, for tests; its figures mean nothing.
    #[must_use]
    pub fn tiny() -> Self {
        Self {
            length: Duration::from_secs(3),
            clients: 1,
            timeout: Duration::from_secs(20),
            pause: (Duration::from_millis(200), Duration::from_millis(400)),
            longest_stop: Duration::from_millis(100),
            ..Self::full()
        }
    }
}

/// A kind of client.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EnduranceLoad {
    /// Calls of high priority.
    UrgentCalls,
    /// Calls of low priority.
    Calls,
    /// Asynchronous calls, several at the same time.
    Asynchronous,
    /// Names that are bound anew and resolved.
    Names,
    /// Events that are pushed and taken.
    Events,
}

impl EnduranceLoad {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::UrgentCalls,
        Self::Calls,
        Self::Asynchronous,
        Self::Names,
        Self::Events,
    ];

    /// The name in a few words.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::UrgentCalls => "calls of high priority",
            Self::Calls => "calls of low priority",
            Self::Asynchronous => "asynchronous calls",
            Self::Names => "names",
            Self::Events => "events",
        }
    }

    /// The server that its clients call.
    pub(super) const fn server(self) -> ServerKind {
        match self {
            Self::UrgentCalls | Self::Calls | Self::Asynchronous => ServerKind::Echo,
            Self::Names => ServerKind::Names,
            Self::Events => ServerKind::Events,
        }
    }
}

/// A server.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) enum ServerKind {
    /// A server with two lanes.
    Echo,
    /// A name server with a store.
    Names,
    /// An event channel.
    Events,
}

impl ServerKind {
    pub(super) const ALL: [Self; 3] = [Self::Echo, Self::Names, Self::Events];

    /// The name of its initial reference.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Echo => "Echo",
            Self::Names => "NameService",
            Self::Events => "EventService",
        }
    }
}

/// The time beyond its timeout after which a call hangs.
pub(super) const GRACE: Duration = Duration::from_secs(2);
/// The time after which the effects of a disturbance have ended: calls that began at its end have
/// their timeout, and a push has the second that it may take.
pub(super) const RECOVERY: Duration = Duration::from_secs(3);
