//! The wire form of a monitor's report.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use chronorb_rt::{Monotonic, Policy, Scheduling, ThreadInfo};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::config::ThreadpoolStrategy;
use crate::core::Core;
use crate::observe::{Activity, LaneSnapshot, PoolSnapshot, ThreadSnapshot};
use crate::server;

/// The version of [`Report`]. It changes when a field is removed or changes its meaning; clients
/// may ignore added fields.
pub const VERSION: u32 = 1;

/// A monitor's answer to `snapshot`: one line of JSON, with the names of these fields.
///
/// Counts begin when the ORB, the lane or the thread is made; the difference of two reports gives
/// rates.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// [`VERSION`].
    pub version: u32,
    /// When it was taken, in microseconds of the machine's monotonic clock.
    pub monotonic_us: u64,
    /// The process.
    pub pid: u32,
    /// `-ORBId`.
    pub orb_id: String,
    /// The command line of the process, at most its first few thousand characters.
    pub command: String,
    /// The way in which the threads of its pools share the work.
    pub strategy: Strategy,
    /// Whether priorities reach the operating system.
    pub real_time: bool,
    /// Requests that wait for the main thread.
    pub waiting_for_main_thread: usize,
    /// The numbers of incidents by the name of their cause
    /// ([`Incident::name`](crate::Incident::name)); empty if the ORB's version does not report
    /// them.
    #[serde(default)]
    pub incidents: BTreeMap<String, u64>,
    /// The thread pools that are in use.
    pub pools: Vec<PoolReport>,
    /// Threads of the process that have a declared priority, and belong to no lane of this ORB; the
    /// monitor is one.
    pub other_threads: Vec<ThreadReport>,
}

/// A thread pool.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PoolReport {
    /// The number; 0 is the ORB's own.
    pub number: u32,
    /// Whether it has lanes; otherwise it is shown as one lane.
    pub has_lanes: bool,
    /// The lanes.
    pub lanes: Vec<LaneReport>,
}

/// A lane.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LaneReport {
    /// The numbers of the pool and of the lane, `1:0`.
    pub name: String,
    /// The CORBA priority, 0 to 32767; none for ordinary scheduling.
    pub priority: Option<i16>,
    /// The native scheduling of its threads while they serve nothing.
    pub scheduling: SchedulingReport,
    /// The endpoints, for example `iiop://127.0.0.1:2809`.
    pub endpoints: Vec<String>,
    /// The number of connections.
    pub connections: usize,
    /// The number of its threads that may serve at a time.
    pub seats: u32,
    /// The number of requests that are buffered now.
    pub queued: u32,
    /// The number of accepted connections.
    pub accepted: u64,
    /// Requests that its threads have served, for whichever lane.
    pub served: u64,
    /// Requests that were answered by `TRANSIENT` because there was no room for them.
    pub refused: u64,
    /// Requests that were buffered.
    pub buffered: u64,
    /// Requests that were served by threads of lower lanes.
    pub borrowed: u64,
    /// The durations of requests, from the whole message to the reply, in ascending order. They are
    /// measured while a monitor watches.
    pub times: Vec<TimesReport>,
    /// The threads.
    pub threads: Vec<ThreadReport>,
}

/// The number of requests below a duration, and not below that of the class before.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TimesReport {
    /// The bound, at most a quarter above the least time of the class, in nanoseconds.
    pub below_ns: u64,
    /// The number of requests.
    pub count: u64,
}

/// A thread.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ThreadReport {
    /// The full name.
    pub name: String,
    /// The kernel's id.
    pub tid: u32,
    /// The present scheduling.
    pub scheduling: SchedulingReport,
    /// The CPUs on which it may run, by number.
    pub cpus: Vec<usize>,
    /// The present activity.
    pub activity: ThreadActivity,
    /// Requests that it has served; 0 for a thread that belongs to no lane.
    pub served: u64,
}

/// An activity of a thread.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ThreadActivity {
    /// A lane's thread waits for something to do.
    Waiting,
    /// A lane's thread accepts connections, or reads.
    Reading,
    /// A lane's thread serves a request.
    Serving,
    /// A lane's thread has something to read, and waits for a thread that may serve it.
    Blocked,
    /// The thread is the monitor, which makes this report.
    Monitoring,
    /// A thread of no lane runs, or could run.
    Running,
    /// A thread of no lane waits for something.
    Sleeping,
}

/// The scheduling of a thread.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SchedulingReport {
    /// The policy.
    pub policy: PolicyReport,
    /// The native priority, 1 to 99; 0 for [`PolicyReport::Other`].
    pub priority: u8,
}

/// A scheduling policy.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PolicyReport {
    /// `SCHED_OTHER`, and its like.
    Other,
    /// `SCHED_FIFO`.
    Fifo,
    /// `SCHED_RR`.
    Rr,
}

/// The way in which the threads of pools share the work.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Strategy {
    /// [`ThreadpoolStrategy::LeaderFollowers`].
    LeaderFollowers,
    /// [`ThreadpoolStrategy::HalfSyncHalfAsync`].
    HalfSync,
    /// [`ThreadpoolStrategy::WorkerPool`].
    WorkerPool,
    /// [`ThreadpoolStrategy::FilterChain`].
    FilterChain,
    /// [`ThreadpoolStrategy::Reactive`].
    Reactive,
    /// [`ThreadpoolStrategy::ThreadPerConnection`].
    ThreadPerConnection,
}

/// A line is no report.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The monitor refuses to report, with the reason.
    #[error("the monitor refuses: {0}")]
    Refused(String),
    /// The monitor is that of another version of chronorb.
    #[error("the monitor speaks version {0}, and this program version {VERSION}")]
    Version(u32),
    /// The line is not a monitor's.
    #[error("this is not the answer of a monitor: {0}")]
    Malformed(String),
}

impl Report {
    /// Reads a line that a monitor has sent.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn read(line: &str) -> Result<Self, ReadError> {
        let malformed = |e: serde_json::Error| ReadError::Malformed(e.to_string());
        let head: Head = serde_json::from_str(line).map_err(malformed)?;
        match head {
            Head { version, .. } if version != VERSION => Err(ReadError::Version(version)),
            Head {
                error: Some(why), ..
            } => Err(ReadError::Refused(why)),
            _ => serde_json::from_str(line).map_err(malformed),
        }
    }

    /// Takes a snapshot of the ORB, on the calling thread.
    pub(super) fn take(core: &Arc<Core>) -> Self {
        let snapshot = server::snapshot(core);
        let pools: Vec<_> = snapshot.pools.into_iter().map(PoolReport::from).collect();
        let lanes = pools.iter().flat_map(|pool| &pool.lanes);
        let in_lanes: HashSet<u32> = lanes
            .flat_map(|lane| lane.threads.iter().map(|thread| thread.tid))
            .collect();
        let others = chronorb_rt::list().into_iter();
        Self {
            version: VERSION,
            monotonic_us: Monotonic::now().as_nanos() / 1000,
            pid: std::process::id(),
            orb_id: snapshot.orb_id,
            command: command_line(),
            strategy: snapshot.strategy.into(),
            real_time: core.rt.real_time.is_available(),
            waiting_for_main_thread: snapshot.waiting_for_main_thread,
            incidents: snapshot
                .incidents
                .into_iter()
                .map(|(incident, count)| (incident.name().to_owned(), count))
                .collect(),
            pools,
            other_threads: others
                .filter(|thread| !in_lanes.contains(&thread.tid))
                .map(ThreadReport::of_other)
                .collect(),
        }
    }

    /// Renders the report as a line.
    pub(super) fn to_line(&self) -> String {
        line_of(self)
    }
}

/// Renders the line of a refusal, with the reason.
pub(super) fn refusal(why: &str) -> String {
    line_of(&Head {
        version: VERSION,
        error: Some(why.to_owned()),
    })
}

/// The common fields of all lines of a monitor.
#[derive(Deserialize, Serialize)]
struct Head {
    version: u32,
    error: Option<String>,
}

fn line_of(value: &impl Serialize) -> String {
    // Texts, numbers and lists of them can always be written.
    let mut line = serde_json::to_string(value).unwrap_or_default();
    line.push('\n');
    line
}

fn command_line() -> String {
    let arguments: Vec<_> = std::env::args_os()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    arguments.join(" ").chars().take(MAX_COMMAND).collect()
}

impl From<PoolSnapshot> for PoolReport {
    fn from(pool: PoolSnapshot) -> Self {
        Self {
            number: pool.number,
            has_lanes: pool.has_lanes,
            lanes: pool.lanes.into_iter().map(LaneReport::from).collect(),
        }
    }
}

impl From<LaneSnapshot> for LaneReport {
    fn from(lane: LaneSnapshot) -> Self {
        Self {
            name: lane.name,
            priority: lane.priority.map(|priority| priority.value()),
            scheduling: lane.scheduling.into(),
            endpoints: lane.endpoints,
            connections: lane.connections,
            seats: lane.seats,
            queued: lane.queued,
            accepted: lane.accepted,
            served: lane.served,
            refused: lane.refused,
            buffered: lane.buffered,
            borrowed: lane.borrowed,
            times: lane
                .times
                .into_iter()
                .map(|(below, count)| TimesReport {
                    below_ns: below.as_nanos() as u64,
                    count,
                })
                .collect(),
            threads: lane.threads.into_iter().map(ThreadReport::from).collect(),
        }
    }
}

impl From<ThreadSnapshot> for ThreadReport {
    fn from(thread: ThreadSnapshot) -> Self {
        Self {
            name: thread.name,
            tid: thread.tid,
            scheduling: thread.scheduling.into(),
            cpus: thread.affinity,
            activity: thread.activity.into(),
            served: thread.served,
        }
    }
}

impl ThreadReport {
    fn of_other(thread: ThreadInfo) -> Self {
        let activity = if thread.tid == chronorb_rt::thread_id() {
            ThreadActivity::Monitoring
        } else {
            doing_of(thread.tid)
        };
        Self {
            name: thread.name,
            tid: thread.tid,
            scheduling: thread.scheduling.into(),
            cpus: thread.affinity,
            activity,
            served: 0,
        }
    }
}

/// Returns the activity of a thread of this process as the kernel reports it, proc_pid_stat(5).
fn doing_of(tid: u32) -> ThreadActivity {
    let path = format!("/proc/self/task/{tid}/stat");
    let stat = std::fs::read(Path::new(&path)).unwrap_or_default();
    // The name is in parentheses, and may contain some itself.
    let name_end = stat.iter().rposition(|&octet| octet == b')');
    match name_end.and_then(|end| stat.get(end + 2)) {
        Some(b'R') => ThreadActivity::Running,
        _ => ThreadActivity::Sleeping,
    }
}

impl From<Activity> for ThreadActivity {
    fn from(activity: Activity) -> Self {
        match activity {
            Activity::Waiting => Self::Waiting,
            Activity::Reading => Self::Reading,
            Activity::Serving => Self::Serving,
            Activity::Blocked => Self::Blocked,
        }
    }
}

impl From<Scheduling> for SchedulingReport {
    fn from(scheduling: Scheduling) -> Self {
        Self {
            policy: match scheduling.policy {
                Policy::Other => PolicyReport::Other,
                Policy::Fifo => PolicyReport::Fifo,
                Policy::RoundRobin => PolicyReport::Rr,
            },
            priority: scheduling.priority,
        }
    }
}

impl From<ThreadpoolStrategy> for Strategy {
    fn from(strategy: ThreadpoolStrategy) -> Self {
        match strategy {
            ThreadpoolStrategy::LeaderFollowers => Self::LeaderFollowers,
            ThreadpoolStrategy::HalfSyncHalfAsync => Self::HalfSync,
            #[cfg(feature = "baselines")]
            ThreadpoolStrategy::WorkerPool => Self::WorkerPool,
            #[cfg(feature = "baselines")]
            ThreadpoolStrategy::FilterChain => Self::FilterChain,
            ThreadpoolStrategy::Reactive => Self::Reactive,
            ThreadpoolStrategy::ThreadPerConnection => Self::ThreadPerConnection,
        }
    }
}

/// Characters of the command line.
const MAX_COMMAND: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_no_report_are_told_apart() {
        let read = |line: &str| Report::read(line).expect_err(line);
        assert!(matches!(read(&refusal("busy")), ReadError::Refused(why) if why == "busy"));
        assert!(matches!(read(r#"{"version":7}"#), ReadError::Version(7)));
        for line in ["", "{}", "[]", "rubbish", r#"{"version":1}"#] {
            assert!(matches!(read(line), ReadError::Malformed(_)), "{line}");
        }
    }

    #[test]
    fn a_thread_that_waits_sleeps_and_one_that_asks_runs() {
        assert_eq!(doing_of(chronorb_rt::thread_id()), ThreadActivity::Running);
        assert_eq!(doing_of(u32::MAX), ThreadActivity::Sleeping);
    }
}
