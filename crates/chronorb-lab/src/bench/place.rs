//! The CPUs and the scheduling of processes, and their limit of open files.

use std::fs;
use std::io;
use std::str::FromStr;

use chronorb_rt::{Scheduling, list, set_current, set_scheduling_of};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

use crate::error::LabError;

/// The CPUs of a client and its server.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Both on the last CPU.
    SameCpu,
    /// The client on the first, the server on the last.
    AcrossCpus,
    /// The kernel chooses.
    Unpinned,
}

impl Placement {
    /// All placements.
    pub const ALL: [Self; 3] = [Self::SameCpu, Self::AcrossCpus, Self::Unpinned];

    /// Returns the name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SameCpu => "same CPU",
            Self::AcrossCpus => "across CPUs",
            Self::Unpinned => "unpinned",
        }
    }
}

impl FromStr for Placement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "same" => Ok(Self::SameCpu),
            "across" => Ok(Self::AcrossCpus),
            "unpinned" => Ok(Self::Unpinned),
            _ => Err(format!("{text:?} is not same, across or unpinned")),
        }
    }
}

/// The scheduling of all threads of clients and servers.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallScheduling {
    /// `SCHED_OTHER`.
    #[default]
    Other,
    /// `SCHED_FIFO`, at priority 20.
    Fifo,
}

impl CallScheduling {
    /// Returns the name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Other => "SCHED_OTHER",
            Self::Fifo => "SCHED_FIFO 20",
        }
    }

    /// Returns the native real-time priority, if there is one.
    pub(super) const fn priority(self) -> Option<u8> {
        match self {
            Self::Other => None,
            Self::Fifo => Some(FIFO),
        }
    }
}

/// Schedules the calling thread, and the threads that it will start.
///
/// # Errors
///
/// [`LabError::Scheduling`] if the process has no right to do so.
pub(crate) fn schedule_this_thread(scheduled: CallScheduling) -> Result<(), LabError> {
    match scheduled {
        CallScheduling::Other => Ok(()),
        CallScheduling::Fifo => set_current(Scheduling::fifo(FIFO)).map_err(refused),
    }
}

/// Schedules the threads of the ORB, which declare their own scheduling at their start.
pub(super) fn schedule_orb_threads(scheduled: CallScheduling) -> Result<(), LabError> {
    match scheduled {
        CallScheduling::Other => Ok(()),
        CallScheduling::Fifo => list().iter().try_for_each(|thread| {
            set_scheduling_of(thread.tid, Scheduling::fifo(FIFO)).map_err(refused)
        }),
    }
}

/// Checks that this process may schedule threads in this way.
pub(crate) fn check_permitted(scheduled: CallScheduling) -> Result<(), LabError> {
    let trial = std::thread::spawn(move || schedule_this_thread(scheduled));
    trial
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn refused(source: chronorb_rt::SchedulingError) -> LabError {
    LabError::Scheduling {
        priority: FIFO,
        source,
    }
}

/// The CPUs that this process may use, in order.
#[derive(Clone, Debug)]
pub(crate) struct Cpus(Vec<usize>);

impl Cpus {
    /// Returns the CPUs of this process.
    pub(crate) fn of_this_process() -> Result<Self, LabError> {
        let set = sched_getaffinity(None).map_err(LabError::work("asking for the CPUs"))?;
        let cpus = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
        Ok(Self(cpus.collect()))
    }

    /// Returns the numbers of the CPUs.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().copied()
    }

    /// Whether there are several CPUs.
    pub(crate) fn are_several(&self) -> bool {
        self.0.len() > 1
    }

    /// Returns the trials whose place has enough CPUs here.
    pub(crate) fn possible<T>(
        &self,
        trials: impl IntoIterator<Item = T>,
        place: impl Fn(&T) -> Placement,
    ) -> Vec<T> {
        let is_possible = |trial: &T| self.are_several() || place(trial) != Placement::AcrossCpus;
        trials.into_iter().filter(is_possible).collect()
    }

    /// Pins a client and its server to their CPUs, with all their present and future threads.
    pub(crate) fn place(
        &self,
        placement: Placement,
        client: u32,
        server: u32,
    ) -> Result<(), LabError> {
        let last = &self.0[self.0.len().saturating_sub(1)..];
        let first = &self.0[..1.min(self.0.len())];
        let (of_client, of_server) = match placement {
            Placement::SameCpu => (last, last),
            Placement::AcrossCpus => (first, last),
            Placement::Unpinned => (&self.0[..], &self.0[..]),
        };
        pin(client, of_client)
            .and_then(|()| pin(server, of_server))
            .map_err(LabError::work("pinning a process"))
    }

    /// Pins a process to a CPU, with all its present and future threads.
    pub(crate) fn pin(&self, process: u32, cpu: usize) -> Result<(), LabError> {
        pin(process, &[cpu]).map_err(LabError::work("pinning a process"))
    }
}

/// Pins all threads of a process to these CPUs.
fn pin(process: u32, cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        set.set(*cpu);
    }
    for entry in fs::read_dir(format!("/proc/{process}/task"))? {
        let thread = entry?.file_name().to_str().and_then(|id| id.parse().ok());
        let Some(thread) = thread.and_then(Pid::from_raw) else {
            continue;
        };
        match sched_setaffinity(Some(thread), &set) {
            // The thread has ended meanwhile.
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Raises the limit of open files of this process and its children to `wanted`, or to the hard
/// limit. Returns the new limit.
pub(crate) fn allow_files(wanted: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let (now, most) = (
        limit.current.unwrap_or(u64::MAX),
        limit.maximum.unwrap_or(u64::MAX),
    );
    if now >= wanted {
        return now;
    }
    let raised = Rlimit {
        current: Some(wanted.min(most)),
        maximum: limit.maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => wanted.min(most),
        Err(_) => now,
    }
}

/// Raises the limit of open files of this process for so many connections.
///
/// # Errors
///
/// The system permits fewer.
pub(crate) fn allow_connections(connections: u32) -> io::Result<()> {
    let needed = u64::from(connections) + OTHER_FILES;
    if allow_files(needed) >= needed {
        return Ok(());
    }
    let remedy = format!("{needed} descriptors are needed: raise the limit (ulimit -Hn)");
    Err(io::Error::other(remedy))
}

const FIFO: u8 = 20;
/// The files of a process beside its connections.
const OTHER_FILES: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_pinned_and_unpinned() {
        let cpus = Cpus::of_this_process().unwrap();
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let allowed = |pid: u32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
            let line = status.lines().find(|l| l.starts_with("Cpus_allowed_list"));
            line.unwrap_or_default()
                .split_whitespace()
                .nth(1)
                .unwrap_or_default()
                .to_owned()
        };
        let before = allowed(child.id());
        cpus.place(Placement::SameCpu, child.id(), child.id())
            .unwrap();
        let last = cpus.0.last().unwrap().to_string();
        let pinned = allowed(child.id());
        cpus.place(Placement::Unpinned, child.id(), child.id())
            .unwrap();
        let after = allowed(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((pinned, after), (last, before));
    }

    #[test]
    fn no_more_files_are_allowed_than_the_hard_limit_says() {
        let most = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        assert!(allow_files(64) >= 64);
        assert!(allow_files(u64::MAX) <= most);
    }
}
