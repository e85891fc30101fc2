//! The handles of pools and lanes, and their published endpoints.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chronorb_giop::Version;
use chronorb_rt::Wake;
use chronorb_transport::Endpoint;

use crate::protocol::Way;
use crate::rtcorba::{Priority, set_request_priority};

/// The number of a lane's pool, and the index of the lane in the pool.
pub(crate) type LaneId = (u32, u32);

/// An endpoint as references name it.
pub(crate) struct PublishedEndpoint {
    pub(crate) way: Way,
    /// The endpoint that the configuration asked for.
    pub(crate) endpoint: Endpoint,
    /// The greatest GIOP version of the endpoint, where it is less than the ORB's.
    pub(crate) version: Option<Version>,
}

/// A lane, as POAs know it.
pub(crate) struct LaneHandle {
    /// The priority of its threads; `None` for the default pool.
    pub(crate) priority: Option<Priority>,
    /// The endpoints at which clients reach it.
    pub(crate) published: Arc<[PublishedEndpoint]>,
    /// Notified when a request may continue that waits there for its POA.
    pub(crate) bell: Wake,
}

/// A thread pool, as POAs know it. Without lanes it is a pool of one lane that serves requests of
/// any priority.
pub(crate) struct PoolHandle {
    /// The number of the pool; 0 for the pool of POAs that name none.
    pub(crate) number: u32,
    pub(crate) lanes: Vec<Arc<LaneHandle>>,
    pub(crate) has_lanes: bool,
    /// The number of POAs that the pool serves.
    pub(crate) users: AtomicUsize,
}

impl PoolHandle {
    /// Whether this is the pool of POAs that name none.
    pub(crate) fn is_default(&self) -> bool {
        self.number == 0
    }

    pub(crate) fn lane_of(&self, priority: Priority) -> Option<&LaneHandle> {
        let mut lanes = self.lanes.iter();
        let lane = lanes.find(|lane| lane.priority == Some(priority))?;
        Some(lane)
    }

    pub(crate) fn least_urgent_lane(&self) -> &LaneHandle {
        let least = self.lanes.iter().min_by_key(|lane| lane.priority);
        // Both functions that make a pool refuse one without lanes.
        least.expect("a pool has a lane")
    }

    /// The lane that the calling thread serves, if it is one of this pool, which is one of the ORB
    /// with this number.
    pub(crate) fn lane_of_thread(&self, orb: u64) -> Option<&LaneHandle> {
        let (pool, lane) = lane_of_thread(orb)?;
        let lane = self.lanes.get(lane as usize)?;
        (pool == self.number).then_some(lane)
    }
}

/// A POA's use of a pool, until the POA is destroyed.
pub(crate) struct PoolUse(Arc<PoolHandle>);

impl PoolUse {
    pub(crate) fn new(pool: Arc<PoolHandle>) -> Self {
        pool.users.fetch_add(1, Ordering::AcqRel);
        Self(pool)
    }

    pub(crate) fn pool(&self) -> &Arc<PoolHandle> {
        &self.0
    }
}

impl Drop for PoolUse {
    fn drop(&mut self) {
        self.0.users.fetch_sub(1, Ordering::AcqRel);
    }
}

thread_local! {
    /// The ORB, pool and lane that this thread serves; none for a thread of the application.
    static SERVES: Cell<Option<(u64, LaneId)>> = const { Cell::new(None) };
}

/// The lane that the calling thread serves, of the ORB with this number.
pub(crate) fn lane_of_thread(orb: u64) -> Option<LaneId> {
    let (of, lane) = SERVES.get()?;
    (of == orb).then_some(lane)
}

/// Sets the lane that the calling thread serves from now on. Outside of upcalls the thread has the
/// priority of that lane.
pub(crate) fn set_lane_of_thread(orb: u64, id: LaneId, priority: Option<Priority>) {
    SERVES.set(Some((orb, id)));
    set_request_priority(priority);
}
