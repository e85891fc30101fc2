//! Snapshots: pools, lanes and threads of an ORB at one time.

use std::time::Duration;

use chronorb_rt::Scheduling;

use crate::config::ThreadpoolStrategy;
use crate::incident::Incident;
use crate::rtcorba::Priority;

/// What an ORB is doing: its thread pools, and who waits where.
///
/// Its parts are looked at one after another while the ORB works on, so that sums need not be
/// exact.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// `-ORBId`.
    pub orb_id: String,
    /// How its threads share the work.
    pub strategy: ThreadpoolStrategy,
    /// Requests that wait for the main thread.
    pub waiting_for_main_thread: usize,
    /// Faults and refusals of peers, by cause, since the ORB was made.
    pub incidents: Vec<(Incident, u64)>,
    /// The ORB's own pool, if it has been used, and those of the RT ORB.
    pub pools: Vec<PoolSnapshot>,
}

/// What a thread pool is doing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PoolSnapshot {
    /// Its number; 0 is the ORB's own.
    pub number: u32,
    /// Whether it has lanes; otherwise it is shown as one lane.
    pub has_lanes: bool,
    /// Its lanes.
    pub lanes: Vec<LaneSnapshot>,
}

/// What a lane is doing, and has done since it was made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LaneSnapshot {
    /// The number of the pool and of the lane, `1:0`.
    pub name: String,
    /// Its priority; that of threads that serve nothing, in a pool without lanes; none for ordinary
    /// scheduling.
    pub priority: Option<Priority>,
    /// What its threads have natively, when they serve nothing.
    pub scheduling: Scheduling,
    /// Where it listens, as `iiop://127.0.0.1:2809`.
    pub endpoints: Vec<String>,
    /// Its connections.
    pub connections: usize,
    /// How many of its threads may serve at a time.
    pub seats: u32,
    /// How many requests are buffered, or wait for their POAs.
    pub queued: u32,
    /// Connections that it has taken in so far.
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
    /// How many requests took how long, from the whole message to the reply, since the ORB is
    /// [watched](crate::Orb::watch): the bounds of classes, which are not reached, and the counts.
    pub times: Vec<(Duration, u64)>,
    /// How many of its threads stay with a connection, and do not wait on the lane's set.
    pub staying: usize,
    /// Its threads.
    pub threads: Vec<ThreadSnapshot>,
}

/// What a thread is doing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ThreadSnapshot {
    /// Its name, uncut.
    pub name: String,
    /// The kernel's id.
    pub tid: u32,
    /// Its scheduling now.
    pub scheduling: Scheduling,
    /// The CPUs on which it may run, by number.
    pub affinity: Vec<usize>,
    /// What it is doing.
    pub activity: Activity,
    /// Requests that it has served so far.
    pub served: u64,
}

/// What a thread of the ORB is doing.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Activity {
    /// It waits for something to do.
    Waiting,
    /// It takes in connections, or reads.
    Reading,
    /// It serves a request.
    Serving,
    /// It has something to read, and waits for a thread that may serve it.
    Blocked,
}

impl Activity {
    /// Converts from the number of an activity (`activity as u32`).
    pub(crate) fn of(number: u32) -> Self {
        match number {
            0 => Self::Waiting,
            1 => Self::Reading,
            2 => Self::Serving,
            _ => Self::Blocked,
        }
    }
}
