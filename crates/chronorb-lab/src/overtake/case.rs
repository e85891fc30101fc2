//! What is compared: strategies, thread pools, loads, and ways to call.

use serde::{Deserialize, Serialize};

/// How the threads of the server share the work.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// The thread that reads a request serves it.
    LeaderFollowers,
    /// One thread of each lane reads, others serve.
    HalfSyncHalfAsync,
}

impl Strategy {
    /// Both.
    pub const ALL: [Self; 2] = [Self::LeaderFollowers, Self::HalfSyncHalfAsync];

    /// As a heading.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::LeaderFollowers => "Leader/Followers",
            Self::HalfSyncHalfAsync => "Half-Sync/Half-Async",
        }
    }

    /// The value of `-ORBThreadpoolStrategy`.
    pub(crate) const fn option(self) -> &'static str {
        match self {
            Self::LeaderFollowers => "leader-followers",
            Self::HalfSyncHalfAsync => "half-sync",
        }
    }
}

/// A thread pool of the server. All have as many threads.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pool {
    /// A low, a middle and a high lane.
    Lanes,
    /// The same, with request buffering.
    Buffering,
    /// The same as the first, with borrowing.
    Borrowing,
    /// One for all priorities.
    NoLanes,
}

impl Pool {
    pub(super) const ALL: [Self; 4] =
        [Self::Lanes, Self::Buffering, Self::Borrowing, Self::NoLanes];

    const fn name(self) -> &'static str {
        match self {
            Self::Lanes => "lanes",
            Self::Buffering => "lanes, buffering",
            Self::Borrowing => "lanes, borrowing",
            Self::NoLanes => "no lanes",
        }
    }
}

/// What others ask of the server meanwhile.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// Nothing.
    Idle,
    /// Nothing, but another process keeps the processors awake, by work of ordinary scheduling.
    ///
    /// It takes time to wake a processor, in a virtual machine a lot of it. Under this load, as
    /// under most, none is asleep.
    Awake,
    /// Endless work of low and middle priority: all their threads and all processors are busy, and
    /// more requests wait.
    Saturated,
    /// The same, and the buffers are full, so that requests are refused.
    Full,
    /// Slow calls of high priority: the thread of the high lane is always busy. The processors are
    /// kept awake.
    Exhausted,
    /// Both endless work of low and middle priority and slow calls of high priority.
    ExhaustedSaturated,
}

impl Load {
    const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Awake => "idle, processors awake",
            Self::Saturated => "saturated",
            Self::Full => "saturated, buffers full",
            Self::Exhausted => "high lane exhausted",
            Self::ExhaustedSaturated => "high lane exhausted, others saturated",
        }
    }

    /// Whether all processors are to be busy.
    pub(super) const fn saturates(self) -> bool {
        matches!(
            self,
            Self::Saturated | Self::Full | Self::ExhaustedSaturated
        )
    }

    /// Whether the processors are to be kept awake by somebody else.
    pub(super) const fn wakes(self) -> bool {
        matches!(self, Self::Awake | Self::Exhausted)
    }

    /// Whether the high lane is to be exhausted.
    pub(super) const fn exhausts(self) -> bool {
        matches!(self, Self::Exhausted | Self::ExhaustedSaturated)
    }
}

/// A pool under a load.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Case {
    /// The pool.
    pub pool: Pool,
    /// The load.
    pub load: Load,
}

impl Case {
    /// All that are measured.
    pub const ALL: [Self; 12] = [
        Self::new(Pool::Lanes, Load::Idle),
        Self::new(Pool::Lanes, Load::Awake),
        Self::new(Pool::Lanes, Load::Saturated),
        Self::new(Pool::Buffering, Load::Idle),
        Self::new(Pool::Buffering, Load::Awake),
        Self::new(Pool::Buffering, Load::Full),
        Self::new(Pool::Borrowing, Load::Idle),
        Self::new(Pool::Borrowing, Load::Awake),
        Self::new(Pool::Borrowing, Load::Exhausted),
        Self::new(Pool::Lanes, Load::ExhaustedSaturated),
        Self::new(Pool::NoLanes, Load::Idle),
        Self::new(Pool::NoLanes, Load::Saturated),
    ];

    pub(super) const fn new(pool: Pool, load: Load) -> Self {
        Self { pool, load }
    }

    /// The same pool under another load.
    pub(super) const fn under(self, load: Load) -> Self {
        Self::new(self.pool, load)
    }

    /// In words.
    pub(super) fn name(self) -> String {
        format!("{}: {}", self.pool.name(), self.load.name())
    }
}

/// How calls follow each other.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Series {
    /// At times fixed beforehand, from which latencies count.
    Periodic,
    /// Each as soon as the one before is answered.
    BackToBack,
}

impl Series {
    /// Both, in their order.
    pub const ALL: [Self; 2] = [Self::Periodic, Self::BackToBack];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Periodic => "periodic",
            Self::BackToBack => "back to back",
        }
    }
}

/// What one set of figures is of.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct Trial {
    /// How the threads of the server share the work.
    pub strategy: Strategy,
    /// The pool under its load.
    #[serde(flatten)]
    pub case: Case,
    /// How calls follow each other.
    pub series: Series,
}

impl Trial {
    /// The same under another load.
    pub(super) const fn under(self, load: Load) -> Self {
        Self {
            case: self.case.under(load),
            ..self
        }
    }
}
