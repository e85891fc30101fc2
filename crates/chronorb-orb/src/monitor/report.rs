//! The wire form of a monitor's report.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "monitor-client")]
use chronorb_rt::visible;
use chronorb_rt::{Monotonic, Policy, Scheduling, ThreadInfo};
#[cfg(feature = "monitor-client")]
use serde::{Deserialize, Serialize};
#[cfg(feature = "monitor-client")]
use thiserror::Error;

use super::json::{Json, field, object};
use crate::config::ThreadpoolStrategy;
use crate::core::Core;
use crate::event_channels::{ChannelSnapshot, QueueSnapshot};
use crate::observe::{Activity, LaneSnapshot, OperationSnapshot, PoolSnapshot, ThreadSnapshot};
use crate::quota::QuotaSnapshot;
use crate::rtcorba::{LaneOrder, Priority};
use crate::server;

/// The version of [`Report`]. It changes when a field is removed or changes its meaning; clients
/// may ignore added fields.
pub const VERSION: u32 = 1;

/// A monitor's answer to `snapshot`: one line of JSON, with the names of these fields.
///
/// Counts begin when the ORB, the lane or the thread is made; the difference of two reports gives
/// rates.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "monitor-client", derive(Deserialize, Serialize))]
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
    #[cfg_attr(feature = "monitor-client", serde(default))]
    pub incidents: BTreeMap<String, u64>,
    /// The quotas of the connections of its lanes, and of its services.
    #[cfg_attr(feature = "monitor-client", serde(default))]
    pub quotas: Vec<QuotaSnapshot>,
    /// The thread pools that are in use.
    pub pools: Vec<PoolSnapshot>,
    /// Threads of the process that have a declared priority, and belong to no lane of this ORB; the
    /// monitor is one.
    pub other_threads: Vec<ThreadSnapshot>,
    /// The measured operations; empty if the ORB measures none.
    #[cfg_attr(feature = "monitor-client", serde(default))]
    pub operations: Vec<OperationSnapshot>,
    /// The event channels of the program.
    #[cfg_attr(feature = "monitor-client", serde(default))]
    pub channels: Vec<ChannelSnapshot>,
}

/// The way in which the threads of pools share the work.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "monitor-client", derive(Deserialize, Serialize))]
#[cfg_attr(feature = "monitor-client", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Strategy {
    /// [`ThreadpoolStrategy::LeaderFollowers`].
    LeaderFollowers,
    /// [`ThreadpoolStrategy::HalfSyncHalfAsync`].
    HalfSync,
    /// `ThreadpoolStrategy::WorkerPool`, of the feature `baselines`.
    WorkerPool,
    /// `ThreadpoolStrategy::FilterChain`, of the feature `baselines`.
    FilterChain,
    /// [`ThreadpoolStrategy::Reactive`].
    Reactive,
    /// [`ThreadpoolStrategy::ThreadPerConnection`].
    ThreadPerConnection,
}

/// A line is no report.
#[cfg(feature = "monitor-client")]
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

#[cfg(feature = "monitor-client")]
impl Report {
    /// Reads a line that a monitor has sent.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn read(line: &str) -> Result<Self, ReadError> {
        // The error repeats parts of the line.
        let malformed =
            |e: serde_json::Error| ReadError::Malformed(visible(&e.to_string()).into_owned());
        let head: Head = serde_json::from_str(line).map_err(malformed)?;
        match head {
            Head { version, .. } if version != VERSION => Err(ReadError::Version(version)),
            Head {
                error: Some(why), ..
            } => Err(ReadError::Refused(visible(&why).into_owned())),
            _ => serde_json::from_str(line).map_err(malformed),
        }
    }
}

impl Report {
    /// Takes a snapshot of the ORB, on the calling thread.
    pub(super) fn take(core: &Arc<Core>) -> Self {
        let snapshot = server::snapshot(core);
        let lanes = snapshot.pools.iter().flat_map(|pool| &pool.lanes);
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
            quotas: snapshot.quotas,
            pools: snapshot.pools,
            other_threads: others
                .filter(|thread| !in_lanes.contains(&thread.tid))
                .map(of_other)
                .collect(),
            operations: snapshot.operations,
            channels: core.channels.snapshots(),
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
#[cfg_attr(feature = "monitor-client", derive(Deserialize))]
struct Head {
    version: u32,
    error: Option<String>,
}

fn line_of(value: &dyn Json) -> String {
    let mut line = String::new();
    value.write(&mut line);
    line.push('\n');
    line
}

object!(Head: "version" = version, "error" = error);
object!(
    Report:
    "version" = version,
    "monotonic_us" = monotonic_us,
    "pid" = pid,
    "orb_id" = orb_id,
    "command" = command,
    "strategy" = strategy,
    "real_time" = real_time,
    "waiting_for_main_thread" = waiting_for_main_thread,
    "incidents" = incidents,
    "quotas" = quotas,
    "pools" = pools,
    "other_threads" = other_threads,
    "operations" = operations,
    "channels" = channels,
);
object!(
    ChannelSnapshot:
    "name" = name,
    "received" = received,
    "delivered" = delivered,
    "lost" = lost,
    "evicted" = evicted,
    "suppliers" = suppliers,
    "consumers" = consumers,
    "queues" = queues,
);
object!(
    QueueSnapshot:
    "number" = number,
    "subscription" = subscription,
    "is_suspended" = is_suspended,
    "events" = events,
    "lost" = lost,
    "queued" = queued,
);
object!(
    QuotaSnapshot:
    "name" = name,
    "used" = used,
    "total" = total,
    "per_origin" = per_origin,
    "origins" = origins,
    "most" = most,
    "refused" = refused,
);
object!(PoolSnapshot: "number" = number, "has_lanes" = has_lanes, "lanes" = lanes);
object!(
    LaneSnapshot:
    "name" = name,
    "priority" = priority,
    "scheduling" = scheduling,
    "order" = order,
    "endpoints" = endpoints,
    "connections" = connections,
    "seats" = seats,
    "queued" = queued,
    "accepted" = accepted,
    "served" = served,
    "refused" = refused,
    "buffered" = buffered,
    "borrowed" = borrowed,
    "times" = times,
    "threads" = threads,
);
object!(
    ThreadSnapshot:
    "name" = name,
    "tid" = tid,
    "scheduling" = scheduling,
    "cpus" = affinity,
    "activity" = activity,
    "served" = served,
);
object!(
    OperationSnapshot:
    "interface" = interface,
    "operation" = operation,
    "scheduled_as" = scheduled_as,
    "requests" = requests,
    "execution" = execution,
    "worst_execution_ns" = worst_execution,
    "response" = response,
    "worst_response_ns" = worst_response,
    "lateness" = lateness,
    "budget_ns" = budget,
    "deadline_ns" = deadline,
    "overruns" = overruns,
    "demoted" = demoted,
    "skipped" = skipped,
);
impl Json for LaneOrder {
    fn write(&self, text: &mut String) {
        self.name().write(text);
    }
}

object!(Scheduling: "policy" = policy, "priority" = priority);
// The number of requests below a bound, and not below that of the class before.
object!((Duration, u64): "below_ns" = 0, "count" = 1);

impl Json for Duration {
    fn write(&self, text: &mut String) {
        (self.as_nanos() as u64).write(text);
    }
}

impl Json for Priority {
    fn write(&self, text: &mut String) {
        self.value().write(text);
    }
}

impl Json for Policy {
    fn write(&self, text: &mut String) {
        let name = match self {
            Self::Other => "other",
            Self::Fifo => "fifo",
            Self::RoundRobin => "rr",
        };
        name.write(text);
    }
}

impl Json for Strategy {
    fn write(&self, text: &mut String) {
        let name = match self {
            Self::LeaderFollowers => "leader-followers",
            Self::HalfSync => "half-sync",
            Self::WorkerPool => "worker-pool",
            Self::FilterChain => "filter-chain",
            Self::Reactive => "reactive",
            Self::ThreadPerConnection => "thread-per-connection",
        };
        name.write(text);
    }
}

impl Json for Activity {
    fn write(&self, text: &mut String) {
        let name = match self {
            Self::Waiting => "waiting",
            Self::Reading => "reading",
            Self::Serving => "serving",
            Self::Blocked => "blocked",
            Self::Monitoring => "monitoring",
            Self::Running => "running",
            Self::Sleeping => "sleeping",
        };
        name.write(text);
    }
}

fn command_line() -> String {
    let arguments: Vec<_> = std::env::args_os()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    arguments.join(" ").chars().take(MAX_COMMAND).collect()
}

/// Returns the state of a thread that belongs to no lane.
fn of_other(thread: ThreadInfo) -> ThreadSnapshot {
    let activity = if thread.tid == chronorb_rt::thread_id() {
        Activity::Monitoring
    } else {
        activity_of(thread.tid)
    };
    ThreadSnapshot {
        name: thread.name,
        tid: thread.tid,
        scheduling: thread.scheduling,
        affinity: thread.affinity,
        activity,
        served: 0,
    }
}

/// Returns the activity of a thread of this process as the kernel reports it, proc_pid_stat(5).
fn activity_of(tid: u32) -> Activity {
    let path = format!("/proc/self/task/{tid}/stat");
    let stat = std::fs::read(Path::new(&path)).unwrap_or_default();
    // The name is in parentheses, and may contain some itself.
    let name_end = stat.iter().rposition(|&octet| octet == b')');
    match name_end.and_then(|end| stat.get(end + 2)) {
        Some(b'R') => Activity::Running,
        _ => Activity::Sleeping,
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

    /// The derived form, by which clients read, is that of the writer.
    #[cfg(feature = "monitor-client")]
    #[test]
    fn a_line_is_what_clients_read() {
        let scheduling = |policy, priority| Scheduling { policy, priority };
        let thread = |activity| ThreadSnapshot {
            name: "1:0.0 \"{\\\n\u{1f}\u{7f}ü".to_owned(),
            tid: 7,
            scheduling: scheduling(Policy::RoundRobin, 99),
            affinity: vec![0, 3],
            activity,
            served: u64::MAX,
        };
        let lane = |priority, policy| LaneSnapshot {
            name: String::new(),
            priority,
            scheduling: scheduling(policy, 0),
            order: LaneOrder::Urgency,
            endpoints: vec!["iiop://[::1]:2809".to_owned()],
            connections: 2,
            seats: 3,
            queued: 4,
            accepted: 5,
            served: 6,
            refused: 7,
            buffered: 8,
            borrowed: 9,
            times: vec![
                (Duration::from_micros(1), 1),
                (Duration::from_nanos(u64::MAX), 0),
            ],
            staying: 0,
            threads: vec![thread(Activity::Waiting), thread(Activity::Reading)],
        };
        let operation = |budget: Option<Duration>| OperationSnapshot {
            interface: "Flight::Navigator".to_owned(),
            operation: "steer".to_owned(),
            scheduled_as: budget.map(|_| "steering".to_owned()),
            requests: 10,
            execution: vec![(Duration::from_micros(2), 1)],
            worst_execution: Duration::from_micros(1),
            response: Vec::new(),
            worst_response: Duration::from_nanos(u64::MAX),
            lateness: vec![(Duration::from_micros(4), 2)],
            budget,
            deadline: budget.map(|budget| budget * 2),
            overruns: 11,
            demoted: 12,
            skipped: 13,
        };
        let activities = [
            Activity::Serving,
            Activity::Blocked,
            Activity::Monitoring,
            Activity::Running,
            Activity::Sleeping,
        ];
        for strategy in [
            Strategy::LeaderFollowers,
            Strategy::HalfSync,
            Strategy::WorkerPool,
            Strategy::FilterChain,
            Strategy::Reactive,
            Strategy::ThreadPerConnection,
        ] {
            let report = Report {
                version: VERSION,
                monotonic_us: 1,
                pid: 2,
                orb_id: "lab".to_owned(),
                command: "{".to_owned(),
                strategy,
                real_time: strategy == Strategy::Reactive,
                waiting_for_main_thread: 0,
                incidents: [("a".to_owned(), 1), ("b".to_owned(), 2)].into(),
                quotas: vec![QuotaSnapshot {
                    name: "iterators".to_owned(),
                    used: 5,
                    refused: u64::MAX,
                    ..QuotaSnapshot::default()
                }],
                pools: vec![PoolSnapshot {
                    number: 1,
                    has_lanes: true,
                    lanes: vec![
                        lane(Some(Priority::MAX), Policy::Fifo),
                        lane(None, Policy::Other),
                    ],
                }],
                other_threads: activities.map(thread).into(),
                operations: vec![operation(None), operation(Some(Duration::from_millis(3)))],
                channels: vec![ChannelSnapshot {
                    name: "EventService".to_owned(),
                    received: 1,
                    queues: vec![QueueSnapshot {
                        subscription: "1:20".to_owned(),
                        is_suspended: true,
                        ..QueueSnapshot::default()
                    }],
                    ..ChannelSnapshot::default()
                }],
            };
            let line = report.to_line();
            assert_eq!(Report::read(&line).expect("a report"), report, "{line}");
            let value: serde_json::Value = serde_json::from_str(&line).expect("JSON");
            assert_eq!(value, serde_json::to_value(&report).expect("a value"));
        }
    }

    #[cfg(feature = "monitor-client")]
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
        assert_eq!(activity_of(chronorb_rt::thread_id()), Activity::Running);
        assert_eq!(activity_of(u32::MAX), Activity::Sleeping);
    }
}
