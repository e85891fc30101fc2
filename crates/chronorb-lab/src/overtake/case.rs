//! The strategies, thread pools, loads and series of calls that are compared.

use serde::{Deserialize, Serialize};

use crate::named::name_of;

/// The way in which the threads of the server share the work.
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

    /// The name in headings.
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

/// A thread pool of the server; all have the same number of threads.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OvertakePool {
    /// A low, a middle and a high lane.
    Lanes,
    /// The same lanes, with request buffering.
    Buffering,
    /// The same lanes, with borrowing.
    Borrowing,
    /// One pool for all priorities.
    NoLanes,
}

impl OvertakePool {
    pub(super) const ALL: [Self; 4] =
        [Self::Lanes, Self::Buffering, Self::Borrowing, Self::NoLanes];
}

/// The load on the server during the measured calls.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OvertakeLoad {
    /// No load.
    Idle,
    /// No load on the server, but another process keeps the processors awake with ordinary work.
    ///
    /// Waking a processor takes time, in a virtual machine a lot. Under most loads none sleeps, so
    /// this is the fair comparison.
    Awake,
    /// Endless work of low and middle priority: all their threads and all processors are busy, and
    /// more requests wait.
    Saturated,
    /// The same work with full buffers, so that requests are refused.
    Full,
    /// Slow calls of high priority: the thread of the high lane is always busy. The processors are
    /// kept awake.
    Exhausted,
    /// Both endless work of low and middle priority and slow calls of high priority.
    ExhaustedSaturated,
}

impl OvertakeLoad {
    /// Whether endless work keeps all processors busy.
    pub(super) const fn saturates(self) -> bool {
        matches!(
            self,
            Self::Saturated | Self::Full | Self::ExhaustedSaturated
        )
    }

    /// Whether another process keeps the processors awake.
    pub(super) const fn wakes(self) -> bool {
        matches!(self, Self::Awake | Self::Exhausted)
    }

    /// Whether slow calls exhaust the high lane.
    pub(super) const fn exhausts(self) -> bool {
        matches!(self, Self::Exhausted | Self::ExhaustedSaturated)
    }
}

/// A pool under a load.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct OvertakeCase {
    /// The pool.
    pub pool: OvertakePool,
    /// The load.
    pub load: OvertakeLoad,
}

impl OvertakeCase {
    /// All that are measured.
    pub const ALL: [Self; 12] = {
        use {OvertakeLoad as Load, OvertakePool as Pool};
        [
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
        ]
    };

    pub(super) const fn new(pool: OvertakePool, load: OvertakeLoad) -> Self {
        Self { pool, load }
    }

    /// Returns the same pool under another load.
    pub(super) const fn under(self, load: OvertakeLoad) -> Self {
        Self::new(self.pool, load)
    }

    /// Returns the name in tables.
    pub(super) fn name(self) -> String {
        words(&self.pool) + ": " + &words(&self.load)
    }
}

/// The sequence of calls.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallSeries {
    /// At times fixed beforehand, from which latencies count.
    Periodic,
    /// Each as soon as the one before is answered.
    BackToBack,
}

impl CallSeries {
    /// Both, in their order.
    pub const ALL: [Self; 2] = [Self::Periodic, Self::BackToBack];

    pub(super) fn name(self) -> String {
        words(&self)
    }
}

/// Returns the name of a choice in texts.
fn words(choice: &impl Serialize) -> String {
    name_of(choice).replace('-', " ")
}

/// The subject of one set of figures.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct OvertakeTrial {
    /// The way in which the threads of the server share the work.
    pub strategy: Strategy,
    /// The pool under its load.
    #[serde(flatten)]
    pub case: OvertakeCase,
    /// The sequence of calls.
    pub series: CallSeries,
}

impl OvertakeTrial {
    pub(super) const fn new(strategy: Strategy, case: OvertakeCase, series: CallSeries) -> Self {
        Self {
            strategy,
            case,
            series,
        }
    }

    /// Returns the same trial under another load.
    pub(super) const fn under(self, load: OvertakeLoad) -> Self {
        Self::new(self.strategy, self.case.under(load), self.series)
    }
}
