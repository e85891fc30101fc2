//! The properties of a lane.

use chronorb_rt::Scheduling;

use crate::lanes::LaneId;
use crate::rtcorba::{LaneOrder, Priority};

/// The properties of a lane, fixed when it is made.
#[derive(Clone, Debug)]
pub(in crate::server) struct LaneSetup {
    pub(in crate::server) id: LaneId,
    /// `pool:lane`, part of its threads' names.
    pub(in crate::server) name: String,
    pub(in crate::server) priority: Option<Priority>,
    pub(in crate::server) scheduling: Scheduling,
    pub(in crate::server) static_threads: u32,
    pub(in crate::server) dynamic_threads: u32,
    pub(in crate::server) stack_size: usize,
    /// The order in which its waiting requests are served.
    pub(in crate::server) order: LaneOrder,
    /// Whether its pool has lanes, so that all its requests are of one priority.
    pub(in crate::server) laned: bool,
    /// The processor of its threads, by the kernel's number; `None` for all.
    #[cfg(feature = "schedule")]
    pub(in crate::server) cpu: Option<u32>,
}
