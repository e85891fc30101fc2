//! The properties of a lane, and the lane of the calling thread.

use std::cell::Cell;

use chronorb_rt::Scheduling;

use crate::core::Core;
use crate::rtcorba::{LaneOrder, Priority, set_request_priority};

/// The number of a lane's pool, and the index of the lane in the pool.
pub(in crate::server) type LaneId = (u32, u32);

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

thread_local! {
    /// The ORB, pool and lane that this thread serves; none for a thread of the application.
    static SERVES: Cell<Option<(u64, LaneId)>> = const { Cell::new(None) };
}

/// The lane of this ORB that the calling thread serves.
pub(in crate::server) fn lane_of_thread(core: &Core) -> Option<LaneId> {
    let (orb, lane) = SERVES.get()?;
    (orb == core.number).then_some(lane)
}

/// Sets the lane that the calling thread serves from now on. Outside of upcalls the thread has the
/// priority of that lane.
pub(in crate::server) fn set_lane_of_thread(core: &Core, lane: &LaneSetup) {
    SERVES.set(Some((core.number, lane.id)));
    set_request_priority(lane.priority);
}
