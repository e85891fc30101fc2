//! The wire form of a monitor's report.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use chronorb_rt::{Monotonic, ThreadInfo};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::config::ThreadpoolStrategy;
use crate::core::Core;
use crate::observe::{Activity, OperationSnapshot, PoolSnapshot, ThreadSnapshot};
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
    pub pools: Vec<PoolSnapshot>,
    /// Threads of the process that have a declared priority, and belong to no lane of this ORB; the
    /// monitor is one.
    pub other_threads: Vec<ThreadSnapshot>,
    /// The measured operations; empty if the ORB measures none.
    #[serde(default)]
    pub operations: Vec<OperationSnapshot>,
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
            pools: snapshot.pools,
            other_threads: others
                .filter(|thread| !in_lanes.contains(&thread.tid))
                .map(of_other)
                .collect(),
            operations: snapshot.operations,
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
