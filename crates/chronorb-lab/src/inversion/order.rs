//! The messages between the parent and its children, which omniORB's programs speak as well.

use chronorb::rtcorba::{LinearMapping, Priority, PriorityMapping};
use serde::{Deserialize, Serialize};

use crate::bench::{self, real_time_options};

/// Real-time priorities of Linux, where they may be used.
pub(super) const HIGH: Priority = Priority::new(24_000).expect("not negative");
pub(super) const LOW: Priority = Priority::new(8_000).expect("not negative");

/// Returns the priority of `SCHED_FIFO` to which an ORB maps a CORBA priority.
pub(super) fn fifo(priority: Priority) -> u8 {
    LinearMapping.to_native(priority).unwrap_or_default()
}

/// Returns the options of the ORBs: no thread polls.
pub(super) fn orb_options(architecture: &str, lock_memory: bool) -> Vec<String> {
    let mut options = real_time_options(lock_memory);
    let wait = ["-ORBClientWait", "block", "-ORBServerWait", "block"];
    options.extend(bench::options(&wait));
    options.extend(bench::options(&["-ORBArchitecture", architecture]));
    options
}

/// The objects of a server, as `IOR:…`.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ServantReferences {
    pub(super) high: String,
    pub(super) low: String,
}

/// The argument of a client process.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct InversionClient {
    /// The value of `-ORBArchitecture`.
    pub(super) architecture: String,
    pub(super) lock_memory: bool,
    pub(super) serving: ServantReferences,
    pub(super) low_clients: u32,
}

/// The times at which a client calls.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct CallSchedule {
    /// The beginning, by the monotonic clock.
    pub(super) start_ns: u64,
    /// The time within which calls are due.
    pub(super) length_ns: u64,
    /// The period of the high thread; 0 for calls back to back, as in the next field.
    pub(super) high_period_ns: u64,
    /// The period of the low threads.
    pub(super) low_period_ns: u64,
    /// The number of calls of each thread, whatever the length; 0 for as many as are due in it.
    pub(super) calls: u64,
}

/// Two times in ns for each call: to its reply from when it was due, and from when it was made.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct CallTimes {
    pub(super) high: Vec<u64>,
    /// The times of all low threads, one thread after the other.
    pub(super) low: Vec<u64>,
}
