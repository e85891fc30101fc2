//! The server's part of an ORB.

use std::cmp::Reverse;
#[cfg(feature = "bidir")]
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

use chronorb_rt::{PiMutex, raise_open_files};

#[cfg(feature = "tracing")]
use super::ListeningEndpoints;
#[cfg(feature = "bidir")]
use super::lane::ServerLane;
use super::pool::{PoolUse, Pools};
use crate::core::{Core, RUNNING, STOPPING};
use crate::quota::OriginKey;
use crate::rtcorba::ThreadpoolId;

/// The thread pools of an ORB and the resources that they share.
pub(crate) struct ServerState {
    pub(super) pools: PiMutex<Pools>,
    /// Lanes whose threads have not all ended.
    live_lanes: AtomicUsize,
    /// Open files that all lanes may need.
    wanted_files: AtomicU64,
    /// The watchers for which lanes measure times, one bit each.
    pub(super) watchers: AtomicU8,
    /// The endpoints that were last reported to the log.
    #[cfg(feature = "tracing")]
    pub(super) logged_listening: PiMutex<ListeningEndpoints>,
    /// The key for proofs of addresses.
    #[cfg(feature = "diop")]
    pub(super) address_codes: std::hash::RandomState,
}

impl Default for ServerState {
    fn default() -> Self {
        Self {
            pools: PiMutex::default(),
            live_lanes: AtomicUsize::new(0),
            wanted_files: AtomicU64::new(FILES_OF_PROCESS),
            watchers: AtomicU8::new(0),
            #[cfg(feature = "tracing")]
            logged_listening: PiMutex::default(),
            #[cfg(feature = "diop")]
            address_codes: std::hash::RandomState::new(),
        }
    }
}

impl ServerState {
    /// Returns the pool of this number, which cannot be destroyed before the result is dropped.
    pub(crate) fn use_pool(&self, id: ThreadpoolId) -> Option<PoolUse> {
        self.pools.lock().use_pool(id)
    }

    /// The shared handle of a lane, unless its pool was destroyed.
    #[cfg(feature = "bidir")]
    pub(super) fn lane(&self, lane: &ServerLane) -> Option<Arc<ServerLane>> {
        let pools = self.pools.lock();
        let mut lanes = pools.all().flat_map(|pool| pool.lanes());
        let same = lanes.find(|same| std::ptr::eq(Arc::as_ptr(same), lane));
        same.cloned()
    }

    /// Notes that a lane begins to have threads.
    pub(super) fn lane_started(&self) {
        self.live_lanes.fetch_add(1, Ordering::AcqRel);
    }

    /// Notes that the last thread of a lane has ended. Returns whether it was the last lane.
    pub(crate) fn lane_ended(&self) -> bool {
        self.live_lanes.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Raises the limit of open files, as far as possible, for this number of further lanes.
    pub(super) fn make_room_for_lanes(&self, lanes: usize, max_connections: u32) {
        let more = lanes as u64 * u64::from(max_connections);
        let before = self.wanted_files.fetch_add(more, Ordering::Relaxed);
        raise_open_files(before + more);
    }

    /// Closes a connection of a client that is idle, in order, since no descriptor is left for a
    /// connection to a server; returns whether there was one. The lane with the most connections is
    /// the first.
    #[cold]
    pub(crate) fn make_room_for_file(&self) -> bool {
        let pools = self.pools.lock();
        let lanes = pools.all().flat_map(|pool| pool.lanes());
        let mut lanes: Vec<_> = lanes.cloned().collect();
        drop(pools);
        lanes.sort_by_cached_key(|lane| Reverse(lane.connections.len()));
        lanes.iter().any(|lane| lane.make_room(OriginKey::NONE))
    }

    /// The number of open files that the process may have, and the number that the connections of
    /// all lanes may need, where that is more.
    pub(super) fn lack_of_files(&self) -> Option<(u64, u64)> {
        let wanted = self.wanted_files.load(Ordering::Relaxed);
        let limit = raise_open_files(wanted);
        (limit < wanted).then_some((limit, wanted))
    }
}

/// Begins the shutdown of the ORB and of all pools, unless another thread has. Returns the requests
/// that waited for a thread, to be dropped without holding a lock. The caller then calls
/// [`Core::lane_ended`] once.
pub(crate) fn stop(core: &Core) -> Option<impl Sized + use<>> {
    let pools = core.server.pools.lock();
    (core.state.get() == RUNNING).then(|| {
        core.state.set(STOPPING);
        // The shutdown counts as a lane until all lanes are notified, so one of them is the last.
        core.server.lane_started();
        pools.stop()
    })
}

/// Open files of a process besides its connections.
const FILES_OF_PROCESS: u64 = 128;
