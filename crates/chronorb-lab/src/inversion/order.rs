//! What parent and children say to each other. omniORB's programs speak the same lines.

use chronorb::rtcorba::{LinearMapping, Priority, PriorityMapping};
use serde::{Deserialize, Serialize};

use crate::bench::{self, real_time_options};

/// Real-time priorities of Linux, where they may be used.
pub(super) const HIGH: Priority = Priority::new(24_000).expect("not negative");
pub(super) const LOW: Priority = Priority::new(8_000).expect("not negative");

/// The priority of `SCHED_FIFO` that an ORB makes of one of CORBA.
pub(super) fn fifo(priority: Priority) -> u8 {
    LinearMapping.to_native(priority).unwrap_or_default()
}

/// Returns the options of the ORBs: nothing spins.
pub(super) fn orb_options(architecture: &str, lock_memory: bool) -> Vec<String> {
    let mut options = real_time_options(lock_memory);
    options.extend(bench::options(&[
        "-ORBClientWait",
        "block",
        "-ORBServerWait",
        "block",
        "-ORBArchitecture",
        architecture,
    ]));
    options
}

/// From a server, when it serves: its objects, as `IOR:…`.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Serving {
    pub(super) high: String,
    pub(super) low: String,
}

/// To a client, as its argument.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ClientOrder {
    /// The value of `-ORBArchitecture`.
    pub(super) architecture: String,
    pub(super) lock_memory: bool,
    pub(super) serving: Serving,
    pub(super) low_clients: u32,
}

/// To a client: when to call.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Start {
    /// By the monotonic clock.
    pub(super) start_ns: u64,
    /// Calls are due within this time.
    pub(super) length_ns: u64,
    /// 0 for calls back to back, here and for the low threads.
    pub(super) high_period_ns: u64,
    pub(super) low_period_ns: u64,
    /// How many calls each thread makes, whatever the length; 0 for as many as are due in it.
    pub(super) calls: u64,
}

/// From a client, at the end: two times for each call in ns, that from when it was due to its answer, and that from
/// when it was made.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Measured {
    pub(super) high: Vec<u64>,
    /// Of all low threads, one after the other.
    pub(super) low: Vec<u64>,
}
