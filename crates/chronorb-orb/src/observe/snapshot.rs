//! Snapshots: pools, lanes and threads of an ORB at one time.

use std::time::Duration;

use chronorb_rt::Scheduling;
#[cfg(feature = "monitor-client")]
use serde::{Deserialize, Serialize};

use crate::config::ThreadpoolStrategy;
use crate::incident::Incident;
use crate::observe::OperationSnapshot;
use crate::quota::QuotaSnapshot;
use crate::rtcorba::{LaneOrder, Priority};

/// The state of an ORB: its thread pools, and waiting threads.
///
/// The parts are read one after another while the ORB runs, so sums need not be exact.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// `-ORBId`.
    pub orb_id: String,
    /// The way in which its threads share the work.
    pub strategy: ThreadpoolStrategy,
    /// Requests that wait for the main thread.
    pub waiting_for_main_thread: usize,
    /// Faults and refusals of peers, by cause, since the ORB was made.
    pub incidents: Vec<(Incident, u64)>,
    /// The quotas of the connections of each lane, and those of the services of the program
    /// ([`Orb::quota`](crate::Orb::quota)).
    pub quotas: Vec<QuotaSnapshot>,
    /// The ORB's own pool, if it has been used, and those of the RT ORB.
    pub pools: Vec<PoolSnapshot>,
    /// The measured operations, in the order of their names; none without `-ORBMeasure` and
    /// `-ORBOverrun`.
    pub operations: Vec<OperationSnapshot>,
}

/// The state of a thread pool.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "monitor-client", derive(Deserialize, Serialize))]
#[non_exhaustive]
pub struct PoolSnapshot {
    /// The number; 0 is the ORB's own.
    pub number: u32,
    /// Whether it has lanes; otherwise it is shown as one lane.
    pub has_lanes: bool,
    /// The lanes.
    pub lanes: Vec<LaneSnapshot>,
}

/// The state of a lane, and its counts since it was made.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "monitor-client", derive(Deserialize, Serialize))]
#[non_exhaustive]
pub struct LaneSnapshot {
    /// The number of the pool and of the lane, `1:0`.
    pub name: String,
    /// The priority. In a pool without lanes it is that of threads that serve nothing; none for
    /// ordinary scheduling.
    pub priority: Option<Priority>,
    /// The native scheduling of its threads while they serve nothing.
    pub scheduling: Scheduling,
    /// The order of its waiting requests.
    #[cfg_attr(feature = "monitor-client", serde(default))]
    pub order: LaneOrder,
    /// The endpoints, for example `iiop://127.0.0.1:2809`.
    pub endpoints: Vec<String>,
    /// The number of connections.
    pub connections: usize,
    /// The number of its threads that may serve at a time.
    pub seats: u32,
    /// The number of requests that are buffered, or wait for their POAs.
    pub queued: u32,
    /// The number of connections accepted so far.
    pub accepted: u64,
    /// Requests that its threads have served so far, for whichever lane.
    pub served: u64,
    /// Requests that were answered by `TRANSIENT` because there was no room for them, or skipped
    /// because they were too large or found no memory.
    pub refused: u64,
    /// Requests that were buffered so far.
    pub buffered: u64,
    /// Requests that were served by threads of lower lanes.
    pub borrowed: u64,
    /// The durations of requests, from the whole message to the reply, since the ORB is
    /// [watched](crate::Orb::watch): the exclusive upper bounds of classes, and the counts.
    #[cfg_attr(feature = "monitor-client", serde(with = "times"))]
    pub times: Vec<(Duration, u64)>,
    /// The number of its threads that stay with a connection instead of waiting on the lane's set.
    /// Monitors do not report it.
    #[cfg_attr(feature = "monitor-client", serde(skip))]
    pub staying: usize,
    /// The threads.
    pub threads: Vec<ThreadSnapshot>,
}

/// The state of a thread.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "monitor-client", derive(Deserialize, Serialize))]
#[non_exhaustive]
pub struct ThreadSnapshot {
    /// The full name.
    pub name: String,
    /// The kernel's id.
    pub tid: u32,
    /// The present scheduling.
    pub scheduling: Scheduling,
    /// The CPUs on which it may run, by number.
    #[cfg_attr(feature = "monitor-client", serde(rename = "cpus"))]
    pub affinity: Vec<usize>,
    /// The present activity.
    pub activity: Activity,
    /// Requests that it has served so far.
    pub served: u64,
}

/// An activity of a thread of the process.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "monitor-client", derive(Deserialize, Serialize))]
#[cfg_attr(feature = "monitor-client", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Activity {
    /// A lane's thread waits for work.
    Waiting,
    /// A lane's thread accepts connections, or reads.
    Reading,
    /// A lane's thread serves a request.
    Serving,
    /// A lane's thread has input to read, and waits for a thread that may serve it.
    Blocked,
    /// The thread is the monitor, which makes the report.
    Monitoring,
    /// A thread of no lane runs, or could run.
    Running,
    /// A thread of no lane waits for something.
    Sleeping,
}

impl Activity {
    /// Converts from the number of an activity of a lane's thread (`activity as u32`).
    pub(crate) fn of(number: u32) -> Self {
        match number {
            0 => Self::Waiting,
            1 => Self::Reading,
            2 => Self::Serving,
            _ => Self::Blocked,
        }
    }
}

/// The form of times in a monitor's report.
#[cfg(feature = "monitor-client")]
pub(super) mod times {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// The number of requests below a bound, and not below that of the class before.
    #[derive(Deserialize, Serialize)]
    struct TimeClass {
        below_ns: u64,
        count: u64,
    }

    pub(in crate::observe) fn serialize<S: Serializer>(
        times: &[(Duration, u64)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(times.iter().map(|(below, count)| TimeClass {
            below_ns: below.as_nanos() as u64,
            count: *count,
        }))
    }

    pub(in crate::observe) fn deserialize<'d, D: Deserializer<'d>>(
        deserializer: D,
    ) -> Result<Vec<(Duration, u64)>, D::Error> {
        let classes = Vec::<TimeClass>::deserialize(deserializer)?.into_iter();
        let below = |class: TimeClass| (Duration::from_nanos(class.below_ns), class.count);
        Ok(classes.map(below).collect())
    }
}
