//! Scheduling policy and priority of threads.

use core::cell::Cell;
use core::fmt;
use std::io;

use libc::c_int;
use rustix::io::Errno;

use crate::sys;

/// A scheduling policy of Linux, sched(7).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Policy {
    /// Time sharing (`SCHED_OTHER`; read back also for `SCHED_BATCH` and `SCHED_IDLE`).
    Other,
    /// Fixed priority, first in first out (`SCHED_FIFO`).
    Fifo,
    /// Fixed priority, round robin among equals (`SCHED_RR`).
    #[cfg_attr(feature = "serde", serde(rename = "rr"))]
    RoundRobin,
}

/// The scheduling parameters of a thread: its policy and its native priority.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
pub struct Scheduling {
    /// The policy.
    pub policy: Policy,
    /// 1..=99 for [`Policy::Fifo`] and [`Policy::RoundRobin`], higher is more urgent; 0 for
    /// [`Policy::Other`].
    pub priority: u8,
}

impl Scheduling {
    /// Time sharing.
    pub const OTHER: Self = Self {
        policy: Policy::Other,
        priority: 0,
    };

    /// First in first out at `priority`, 1..=99.
    #[must_use]
    pub const fn fifo(priority: u8) -> Self {
        Self {
            policy: Policy::Fifo,
            priority,
        }
    }

    /// Round robin at `priority`, 1..=99.
    #[must_use]
    pub const fn rr(priority: u8) -> Self {
        Self {
            policy: Policy::RoundRobin,
            priority,
        }
    }

    /// Whether policy and priority fit together.
    #[must_use]
    pub const fn is_valid(self) -> bool {
        match self.policy {
            Policy::Other => self.priority == 0,
            Policy::Fifo | Policy::RoundRobin => 1 <= self.priority && self.priority <= 99,
        }
    }
}

impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.policy {
            Policy::Other => f.write_str("other"),
            Policy::Fifo => write!(f, "fifo {}", self.priority),
            Policy::RoundRobin => write!(f, "rr {}", self.priority),
        }
    }
}

/// Returns the scheduling parameters of the calling thread.
///
/// # Errors
/// `Unsupported` for a policy that [`Policy`] does not name, such as `SCHED_DEADLINE`.
pub fn current() -> io::Result<Scheduling> {
    of_thread(0)
}

/// Sets the policy and priority of the calling thread. One system call.
///
/// Whether children of the thread start with time sharing (`SCHED_RESET_ON_FORK`) stays as the
/// thread's builder declared it.
///
/// # Errors
/// See [`SchedulingError`]; the thread is then scheduled as before.
pub fn set_current(scheduling: Scheduling) -> Result<(), SchedulingError> {
    let flags = if RESET_ON_FORK.get() {
        libc::SCHED_RESET_ON_FORK
    } else {
        0
    };
    set(0, scheduling, flags)
}

/// Sets the policy and priority of the thread `tid` of this process, by the kernel's thread id:
/// [`thread_id`](crate::thread_id), [`Thread::tid`](crate::Thread::tid).
///
/// Whether children of that thread start with time sharing (`SCHED_RESET_ON_FORK`) stays as the
/// kernel has it. The thread's id can be given to a new thread as soon as it has ended, so that
/// the caller must know that it runs.
///
/// # Errors
/// [`SchedulingError::NoSuchThread`] for an id of no thread of this process; otherwise as
/// [`set_current`]. The thread is then scheduled as before.
pub fn set_scheduling_of(tid: u32, scheduling: Scheduling) -> Result<(), SchedulingError> {
    let tid = i32::try_from(tid)
        .ok()
        .filter(|&tid| tid > 0)
        .ok_or(SchedulingError::NoSuchThread)?;
    sys::signal_thread(tid, 0)?;
    let (policy, _) = sys::scheduler(tid)?;
    set(tid, scheduling, policy & libc::SCHED_RESET_ON_FORK)
}

/// Returns the scheduling parameters of a thread of any process, by its thread id. For a process
/// with one thread this is the process id.
///
/// # Errors
/// There is no such thread, or [`Policy`] has no name for its policy.
pub fn scheduling_of_process(tid: u32) -> io::Result<Scheduling> {
    of_thread(foreign(tid)?)
}

/// Sets the policy and priority of a thread of any process, also of a thread of the kernel. Whether
/// its children start with time sharing is forgotten.
///
/// # Errors
/// As [`set_scheduling_of`].
pub fn set_scheduling_of_process(tid: u32, scheduling: Scheduling) -> Result<(), SchedulingError> {
    set(foreign(tid)?, scheduling, 0)
}

/// Rejects 0, which would be the calling thread.
fn foreign(tid: u32) -> Result<i32, Errno> {
    let tid = i32::try_from(tid).ok().filter(|&tid| tid > 0);
    tid.ok_or(Errno::SRCH)
}

/// The reason why a thread does not get the requested scheduling.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SchedulingError {
    /// The process lacks the right, or its control group has no real-time budget.
    /// [`Rights::missing`](crate::Rights::missing) tells which.
    #[error(
        "not permitted to use this real-time priority; grant CAP_SYS_NICE (setcap \
         cap_sys_nice=ep, or AmbientCapabilities= of the service) or a limit (LimitRTPRIO=, \
         rtprio in limits.d, ulimit -r); in a control group with RT_GROUP_SCHED, grant a budget \
         (cpu.rt_runtime_us)"
    )]
    NotPermitted,
    /// The priority is outside of the policy's range: 1..=99 for real time, 0 for time sharing.
    #[error("the priority is outside of the range of its policy")]
    InvalidPriority,
    /// The process has no such thread, or no longer.
    #[error("the process has no such thread")]
    NoSuchThread,
    /// The system gave another error number.
    #[error("the scheduling could not be set: system error {0}")]
    Os(i32),
}

impl From<Errno> for SchedulingError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::PERM => Self::NotPermitted,
            Errno::INVAL => Self::InvalidPriority,
            Errno::SRCH => Self::NoSuchThread,
            other => Self::Os(other.raw_os_error()),
        }
    }
}

/// Sets the scheduling of the thread `tid`; 0 is the calling thread.
fn set(tid: i32, scheduling: Scheduling, flags: c_int) -> Result<(), SchedulingError> {
    if !scheduling.is_valid() {
        return Err(SchedulingError::InvalidPriority);
    }
    let policy = match scheduling.policy {
        Policy::Other => libc::SCHED_OTHER,
        Policy::Fifo => libc::SCHED_FIFO,
        Policy::RoundRobin => libc::SCHED_RR,
    };
    sys::set_scheduler(tid, policy | flags, scheduling.priority.into())?;
    Ok(())
}

/// Declares whether [`set_current`] asks for `SCHED_RESET_ON_FORK` on the calling thread.
pub(crate) fn set_reset_on_fork(reset: bool) {
    RESET_ON_FORK.set(reset);
}

/// Returns the scheduling parameters of the thread `tid`; 0 is the calling thread.
pub(crate) fn of_thread(tid: i32) -> io::Result<Scheduling> {
    let (policy, priority) = sys::scheduler(tid)?;
    let policy = match policy & !libc::SCHED_RESET_ON_FORK {
        libc::SCHED_OTHER | libc::SCHED_BATCH | libc::SCHED_IDLE => Policy::Other,
        libc::SCHED_FIFO => Policy::Fifo,
        libc::SCHED_RR => Policy::RoundRobin,
        _ => return Err(io::ErrorKind::Unsupported.into()),
    };
    // The kernel's priorities are 0..=99.
    let priority = priority as u8;
    Ok(Scheduling { policy, priority })
}

thread_local! {
    static RESET_ON_FORK: Cell<bool> = const { Cell::new(false) };
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;
    use crate::{Rights, thread_id};

    #[test]
    fn the_scheduling_of_another_process_can_be_asked_for_and_set() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("cat is there");
        let process = child.id();
        let same = set_scheduling_of_process(process, scheduling_of_process(process).unwrap());
        if Rights::probe().max_fifo >= Some(2) {
            let urgent = Scheduling::rr(2);
            set_scheduling_of_process(process, urgent).unwrap();
            assert_eq!(scheduling_of_process(process).unwrap(), urgent);
        }
        drop(child.stdin.take());
        child.wait().expect("it ends");
        assert_eq!(same, Ok(()));
        let nobody = set_scheduling_of_process(0, Scheduling::OTHER);
        assert_eq!(nobody, Err(SchedulingError::NoSuchThread));
        assert!(scheduling_of_process(u32::MAX).is_err());
    }

    #[test]
    fn priorities_outside_of_the_policy_are_refused() {
        for scheduling in [
            Scheduling::fifo(0),
            Scheduling::fifo(100),
            Scheduling::rr(0),
            Scheduling {
                policy: Policy::Other,
                priority: 1,
            },
        ] {
            assert_eq!(
                set_current(scheduling),
                Err(SchedulingError::InvalidPriority),
                "{scheduling}"
            );
        }
    }

    #[test]
    fn what_is_set_is_read_back_or_refused_as_the_rights_say() {
        thread::spawn(|| {
            for scheduling in [Scheduling::fifo(1), Scheduling::rr(2), Scheduling::OTHER] {
                let allowed = Rights::probe().max_fifo.unwrap_or(0) >= scheduling.priority;
                let before = current().unwrap();
                match set_current(scheduling) {
                    Ok(()) => {
                        assert!(allowed);
                        assert_eq!(current().unwrap(), scheduling);
                    }
                    Err(error) => {
                        assert!(!allowed);
                        assert_eq!(error, SchedulingError::NotPermitted);
                        assert_eq!(current().unwrap(), before);
                    }
                }
            }
        })
        .join()
        .unwrap();
    }

    /// Runs `test` with the id of another thread, which runs `at_its_start` and waits meanwhile.
    fn with_another_thread(at_its_start: fn(), test: impl FnOnce(u32)) {
        thread::scope(|scope| {
            let (send, started) = mpsc::channel();
            let (ended, end) = mpsc::channel::<()>();
            scope.spawn(move || {
                at_its_start();
                send.send(thread_id()).unwrap();
                // It ends with the sender.
                let _ended = end.recv();
            });
            test(started.recv().unwrap());
            drop(ended);
        });
    }

    #[test]
    fn another_thread_is_set_and_the_calling_one_stays() {
        let may =
            |scheduling: Scheduling| Rights::probe().max_fifo.unwrap_or(0) >= scheduling.priority;
        let own = current().unwrap();
        with_another_thread(
            || (),
            |other| {
                for scheduling in [Scheduling::fifo(1), Scheduling::rr(2), Scheduling::OTHER] {
                    match set_scheduling_of(other, scheduling) {
                        Ok(()) => {
                            assert!(may(scheduling));
                            assert_eq!(of_thread(other.cast_signed()).unwrap(), scheduling);
                        }
                        Err(error) => {
                            assert!(!may(scheduling));
                            assert_eq!(error, SchedulingError::NotPermitted);
                        }
                    }
                }
                assert_eq!(
                    set_scheduling_of(other, Scheduling::fifo(100)),
                    Err(SchedulingError::InvalidPriority)
                );
            },
        );
        assert_eq!(current().unwrap(), own);
    }

    #[test]
    fn another_thread_keeps_its_flag() {
        fn with_reset() {
            set_reset_on_fork(true);
            set_current(Scheduling::OTHER).unwrap();
        }
        let has_flag = |tid: u32| {
            let (policy, _) = sys::scheduler(tid.cast_signed()).unwrap();
            policy & libc::SCHED_RESET_ON_FORK != 0
        };
        with_another_thread(with_reset, |other| {
            set_scheduling_of(other, Scheduling::OTHER).unwrap();
            assert!(has_flag(other));
        });
        with_another_thread(
            || (),
            |other| {
                set_scheduling_of(other, Scheduling::OTHER).unwrap();
                assert!(!has_flag(other));
            },
        );
    }

    #[test]
    fn a_thread_that_is_not_of_this_process_is_left_alone() {
        let gone = thread::spawn(thread_id).join().unwrap();
        // The kernel keeps the id for a moment after the end.
        while set_scheduling_of(gone, Scheduling::OTHER).is_ok() {
            thread::yield_now();
        }
        let parent = std::os::unix::process::parent_id();
        for tid in [gone, parent, 0, u32::MAX] {
            assert_eq!(
                set_scheduling_of(tid, Scheduling::OTHER),
                Err(SchedulingError::NoSuchThread),
                "{tid}"
            );
        }
    }
}
