//! The server's part of an ORB.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

use chronorb_giop::SystemException;
use chronorb_rt::{PiMutex, raise_open_files};

#[cfg(feature = "tracing")]
use super::ListeningEndpoints;
#[cfg(feature = "bidir")]
use super::lane::ServerLane;
use super::listening::log_listening;
use super::pool::{Pools, ServerPool};
#[cfg(feature = "bidir")]
use crate::bidirectional::CallbackPool;
use crate::core::{Core, RUNNING, STOPPED, STOPPING, Serving};
use crate::lanes::{PoolHandle, PoolUse, ThreadpoolId};
use crate::protocol::Way;
use crate::quota::OriginKey;

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
    /// Returns the pool of a handle, unless it was destroyed.
    #[cfg(any(feature = "bidir", feature = "miop"))]
    pub(super) fn pool(&self, of: &PoolHandle) -> Option<Arc<ServerPool>> {
        let pools = self.pools.lock();
        let mut all = pools.all();
        all.find(|pool| pool.number() == of.number).cloned()
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
    fn lane_ended(&self) -> bool {
        self.live_lanes.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Raises the limit of open files, as far as possible, for this number of further lanes.
    pub(super) fn make_room_for_lanes(&self, lanes: usize, max_connections: u32) {
        let more = lanes as u64 * u64::from(max_connections);
        let before = self.wanted_files.fetch_add(more, Ordering::Relaxed);
        raise_open_files(before + more);
    }

    /// The number of open files that the process may have, and the number that the connections of
    /// all lanes may need, where that is more.
    pub(super) fn lack_of_files(&self) -> Option<(u64, u64)> {
        let wanted = self.wanted_files.load(Ordering::Relaxed);
        let limit = raise_open_files(wanted);
        (limit < wanted).then_some((limit, wanted))
    }
}

impl Serving for ServerState {
    fn default_pool(&self, core: &Arc<Core>) -> Result<Arc<PoolHandle>, SystemException> {
        ServerPool::default_of(core)
    }

    fn use_pool(&self, id: ThreadpoolId) -> Option<PoolUse> {
        self.pools.lock().use_pool(id)
    }

    #[cfg(feature = "bidir")]
    fn callback_pool(&self, pool: &PoolHandle) -> Option<Arc<dyn CallbackPool>> {
        Some(self.pool(pool)?)
    }

    fn is_published(&self, ways: &[Way]) -> bool {
        let pools = self.pools.lock();
        let lanes = pools.all().flat_map(|pool| pool.lanes());
        let mut published = lanes.flat_map(|lane| lane.published());
        published.any(|published| ways.iter().any(|way| way.is_same_place(&published.way)))
    }

    fn log_listening(&self, core: &Core) {
        log_listening(core);
    }

    /// The lane with the most connections is the first.
    #[cold]
    fn make_room_for_file(&self) -> bool {
        let pools = self.pools.lock();
        let lanes = pools.all().flat_map(|pool| pool.lanes());
        let lanes: Vec<_> = lanes.cloned().collect();
        drop(pools);
        let fullest = lanes.iter().max_by_key(|lane| lane.connections.len());
        let all = fullest.into_iter().chain(&lanes);
        all.into_iter().any(|lane| lane.make_room(OriginKey::NONE))
    }
}

impl Core {
    /// Returns the server's part.
    pub(super) fn server(&self) -> &ServerState {
        let state: &dyn Any = &*self.server;
        state.downcast_ref().expect("the server's part is its own")
    }
}

/// Begins the shutdown of the ORB and of all pools, unless another thread has. Returns the requests
/// that waited for a thread, to be dropped without holding a lock. The caller then calls
/// [`lane_ended`] once.
pub(crate) fn stop(core: &Core) -> Option<impl Sized + use<>> {
    let pools = core.server().pools.lock();
    (core.state.get() == RUNNING).then(|| {
        core.state.set(STOPPING);
        // The shutdown counts as a lane until all lanes are notified, so one of them is the last.
        core.server().lane_started();
        pools.stop()
    })
}

/// Notes that the last thread of a lane has ended. The last lane ends the ORB.
pub(crate) fn lane_ended(core: &Core) {
    let last = core.server().lane_ended();
    if last && core.state.get() == STOPPING {
        // The drop of servants may panic; the guard wakes threads that wait for the end anyway.
        let _guard = StopGuard(core);
        core.poas.clear();
    }
}

/// A guard that marks the ORB as stopped when it is dropped.
struct StopGuard<'c>(&'c Core);

impl Drop for StopGuard<'_> {
    fn drop(&mut self) {
        self.0.state.set(STOPPED);
        self.0.main.ring();
        #[cfg(feature = "monitor")]
        if let Some(monitor) = self.0.monitor.get() {
            monitor.stop();
        }
    }
}

/// Open files of a process besides its connections.
const FILES_OF_PROCESS: u64 = 128;
