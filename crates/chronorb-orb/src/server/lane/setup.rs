//! What a lane is made with, and the lane of the calling thread.

use std::cell::Cell;

use chronorb_rt::Scheduling;

use crate::core::Core;
use crate::rtcorba::{Priority, set_request_priority};

/// The number of a lane's pool, and its own there.
pub(in crate::server) type LaneId = (u32, u32);

/// What a lane is made with.
#[derive(Clone, Debug)]
pub(in crate::server) struct LaneSetup {
    pub(in crate::server) id: LaneId,
    /// `pool:lane`, part of its threads' names.
    pub(in crate::server) name: String,
    pub(in crate::server) priority: Option<Priority>,
    pub(in crate::server) scheduling: Scheduling,
    pub(in crate::server) static_threads: u32,
    pub(in crate::server) stack_size: usize,
    /// Whether its pool has lanes, so that all its requests are of one priority.
    pub(in crate::server) laned: bool,
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

/// Sets the lane that the calling thread serves from now on, at whose priority it is while it is in
/// no upcall.
pub(in crate::server) fn set_lane_of_thread(core: &Core, lane: &LaneSetup) {
    SERVES.set(Some((core.number, lane.id)));
    set_request_priority(lane.priority);
}
