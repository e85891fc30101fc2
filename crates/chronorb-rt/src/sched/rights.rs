//! The real-time rights of the process, and how to grant missing ones.

use std::fs;
use std::sync::OnceLock;
use std::thread;

use rustix::io::Errno;
use rustix::param::page_size;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities};

use crate::mem::memory;
use crate::sched::scheduling::{Scheduling, SchedulingError, set_current};

/// The real-time rights of the process, determined by trying.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Rights {
    /// The highest priority that `SCHED_FIFO` grants, 1..=99; `None` if it is refused altogether.
    pub max_fifo: Option<u8>,
    /// The reason why `max_fifo` is not 99; `None` if it is.
    pub refusal: Option<PriorityRefusal>,
    /// The amount of memory that the process may lock.
    pub memory_lock: MemoryLock,
}

/// The reason why real-time priorities are refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PriorityRefusal {
    /// The process has no `CAP_SYS_NICE`, and its `RLIMIT_RTPRIO` is too low.
    NoRight,
    /// The process has `CAP_SYS_NICE` in a user namespace only (a container without root), where
    /// it does not count.
    UserNamespace,
    /// The process has the right, but its control group has no real-time budget
    /// (`RT_GROUP_SCHED`), or a security module refuses.
    ControlGroup,
}

/// The amount of memory that a process may lock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MemoryLock {
    /// All of it.
    Unlimited,
    /// At most this number of bytes, `RLIMIT_MEMLOCK`.
    Limited(u64),
    /// Nothing.
    None,
}

/// A right that is missing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MissingRight {
    /// The missing right.
    pub what: String,
    /// The consequence of missing it.
    pub cost: &'static str,
    /// The way to grant it.
    pub remedy: &'static str,
}

impl Rights {
    /// Determines the rights. The first call tries them on a temporary thread; further calls return
    /// the same result.
    #[must_use]
    pub fn probe() -> Self {
        static RIGHTS: OnceLock<Rights> = OnceLock::new();
        *RIGHTS.get_or_init(|| {
            let probed = thread::Builder::new()
                .name("rights".to_owned())
                .spawn(Self::try_all);
            match probed.map(thread::JoinHandle::join) {
                Ok(Ok(rights)) => rights,
                // Without one more thread the rights do not matter.
                Ok(Err(_)) | Err(_) => Self {
                    max_fifo: None,
                    refusal: Some(PriorityRefusal::NoRight),
                    memory_lock: MemoryLock::None,
                },
            }
        })
    }

    /// The rights that are missing for real time, most costly first.
    #[must_use]
    pub fn missing(&self) -> Vec<MissingRight> {
        let priorities = self.refusal.map(|refusal| MissingRight {
            what: match self.max_fifo {
                None => "real-time priorities".to_owned(),
                Some(max) => format!("real-time priorities above {max}"),
            },
            cost: "threads share the CPU with every other process: a request may wait for \
                   milliseconds, whatever its priority",
            remedy: refusal.remedy(),
        });
        let memory = match self.memory_lock {
            MemoryLock::Unlimited => None,
            MemoryLock::Limited(bytes) => {
                Some(format!("locking more than {bytes} bytes of memory"))
            }
            MemoryLock::None => Some("locking memory".to_owned()),
        };
        let memory = memory.map(|what| MissingRight {
            what,
            cost: "a page that the system has taken away is fetched again while a request waits",
            remedy: "grant CAP_IPC_LOCK (setcap cap_ipc_lock=ep PROGRAM, or \
                     AmbientCapabilities=CAP_IPC_LOCK in the systemd unit), or raise the limit: \
                     LimitMEMLOCK=infinity in the unit, 'memlock unlimited' in \
                     /etc/security/limits.d, or ulimit -l unlimited",
        });
        priorities.into_iter().chain(memory).collect()
    }

    fn try_all() -> Self {
        let granted = |priority: &u8| set_current(Scheduling::fifo(*priority));
        let max_fifo = (1..=99).rev().find(|priority| granted(priority).is_ok());
        let refusal = granted(&99).err().map(PriorityRefusal::find);
        // The thread ends; it need not end at a high priority.
        let _was_allowed_before = set_current(Scheduling::OTHER);
        Self {
            max_fifo,
            refusal,
            memory_lock: MemoryLock::find(),
        }
    }
}

impl PriorityRefusal {
    /// Returns the way to grant the priorities.
    fn remedy(self) -> &'static str {
        match self {
            Self::NoRight => {
                "grant CAP_SYS_NICE (setcap cap_sys_nice=ep PROGRAM, or \
                 AmbientCapabilities=CAP_SYS_NICE in the systemd unit), or a limit: LimitRTPRIO=99 \
                 in the unit, 'rtprio 99' in /etc/security/limits.d, or ulimit -r 99"
            }
            Self::UserNamespace => {
                "CAP_SYS_NICE inside of a user namespace does not count: grant a limit from \
                 outside (ulimits: rtprio: 99 of the container), or run the container with root's \
                 namespace and CAP_SYS_NICE"
            }
            Self::ControlGroup => {
                "the right is there, but refused: give the control group a real-time budget \
                 (cpu.rt_runtime_us; docker run --cpu-rt-runtime), or run in the root group, or \
                 with a kernel without RT_GROUP_SCHED"
            }
        }
    }

    /// Finds out why the highest priority was refused with `error`.
    fn find(error: SchedulingError) -> Self {
        let capable =
            capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_NICE));
        let limit = getrlimit(Resource::Rtprio).current;
        let limit_suffices = limit.is_none_or(|limit| limit >= 99);
        match (capable, limit_suffices, error) {
            (
                _,
                _,
                SchedulingError::InvalidPriority
                | SchedulingError::NoSuchThread
                | SchedulingError::Os(_),
            )
            | (_, true, SchedulingError::NotPermitted) => Self::ControlGroup,
            (false, false, SchedulingError::NotPermitted) => Self::NoRight,
            (true, false, SchedulingError::NotPermitted) => {
                if in_user_namespace() {
                    Self::UserNamespace
                } else {
                    Self::ControlGroup
                }
            }
        }
    }
}

/// Raises the limit of open files (the soft `RLIMIT_NOFILE`) to `wanted` if it is lower, as far as
/// the hard limit allows. Returns the resulting limit, which may still be lower.
pub fn raise_open_files(wanted: u64) -> u64 {
    let limits = getrlimit(Resource::Nofile);
    let present = limits.current.unwrap_or(u64::MAX);
    let raised = limits.maximum.map_or(wanted, |most| wanted.min(most));
    if present >= raised {
        return present;
    }
    let limits = Rlimit {
        current: Some(raised),
        maximum: limits.maximum,
    };
    match setrlimit(Resource::Nofile, limits) {
        Ok(()) => raised,
        Err(_) => present,
    }
}

impl MemoryLock {
    fn find() -> Self {
        let Some(limit) = getrlimit(Resource::Memlock).current else {
            return Self::Unlimited;
        };
        // Only an attempt to exceed the limit shows whether `CAP_IPC_LOCK` is effective.
        let above = usize::try_from(limit)
            .ok()
            .and_then(|limit| limit.checked_add(page_size()));
        match above.map(memory::can_lock) {
            Some(Ok(true)) => Self::Unlimited,
            Some(Ok(false) | Err(Errno::PERM)) if limit == 0 => Self::None,
            _ => Self::Limited(limit),
        }
    }
}

/// Whether the process is not in the initial user namespace, which alone maps all users.
fn in_user_namespace() -> bool {
    let Ok(map) = fs::read_to_string("/proc/self/uid_map") else {
        return false;
    };
    !map.split_ascii_whitespace().eq(["0", "0", "4294967295"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_rights_miss_nothing() {
        let full = Rights {
            max_fifo: Some(99),
            refusal: None,
            memory_lock: MemoryLock::Unlimited,
        };
        assert_eq!(full.missing(), []);
    }

    #[test]
    fn each_missing_right_is_told_with_its_remedy() {
        let none = Rights {
            max_fifo: None,
            refusal: Some(PriorityRefusal::NoRight),
            memory_lock: MemoryLock::Limited(8192),
        };
        let missing = none.missing();
        assert_eq!(missing.len(), 2);
        assert_eq!(missing[0].what, "real-time priorities");
        assert!(missing[0].remedy.contains("CAP_SYS_NICE"));
        assert!(missing[1].what.contains("8192 bytes"));
        assert!(missing[1].remedy.contains("LimitMEMLOCK"));
    }

    #[test]
    fn a_limit_of_the_priority_is_told() {
        let limited = Rights {
            max_fifo: Some(10),
            refusal: Some(PriorityRefusal::NoRight),
            memory_lock: MemoryLock::Unlimited,
        };
        assert_eq!(limited.missing()[0].what, "real-time priorities above 10");
    }

    #[test]
    fn probing_is_stable_and_consistent() {
        let rights = Rights::probe();
        assert_eq!(rights, Rights::probe());
        assert_eq!(rights.refusal.is_none(), rights.max_fifo == Some(99));
    }
}
