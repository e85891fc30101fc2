//! What an ORB's pools, lanes and threads are doing at one time.

use std::sync::atomic::Ordering;
use std::time::Duration;

use chronorb_rt::Scheduling;

use super::lane::Lane;
use super::pool::Threadpool;
use super::watch::Activity;
use crate::config::ThreadpoolStrategy;
use crate::core::Core;
use crate::incident::Incident;
use crate::rtcorba::Priority;

/// What an ORB is doing: its thread pools, and who waits where.
///
/// Its parts are looked at one after another while the ORB works on, so that sums need not be exact.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// `-ORBId`.
    pub orb_id: String,
    /// How its threads share the work.
    pub strategy: ThreadpoolStrategy,
    /// Requests that wait for the main thread.
    pub waiting_for_main_thread: usize,
    /// Faults and refusals of peers, by cause, since the ORB was made.
    pub incidents: Vec<(Incident, u64)>,
    /// The ORB's own pool, if it has been used, and those of the RT ORB.
    pub pools: Vec<PoolSnapshot>,
}

/// What a thread pool is doing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PoolSnapshot {
    /// Its number; 0 is the ORB's own.
    pub number: u32,
    /// Whether it has lanes; otherwise it is shown as one lane.
    pub has_lanes: bool,
    /// Its lanes.
    pub lanes: Vec<LaneSnapshot>,
}

/// What a lane is doing, and has done since it was made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LaneSnapshot {
    /// The number of the pool and of the lane, `1:0`.
    pub name: String,
    /// Its priority; that of threads that serve nothing, in a pool without lanes; none for ordinary scheduling.
    pub priority: Option<Priority>,
    /// What its threads have natively, when they serve nothing.
    pub scheduling: Scheduling,
    /// Where it listens, as `iiop://127.0.0.1:2809`.
    pub endpoints: Vec<String>,
    /// Its connections.
    pub connections: usize,
    /// How many of its threads may serve at a time.
    pub seats: u32,
    /// How many requests are buffered, or wait for their POAs.
    pub queued: u32,
    /// Connections that it has taken in so far.
    pub accepted: u64,
    /// Requests that its threads have served so far, for whichever lane.
    pub served: u64,
    /// Requests that were answered by `TRANSIENT` because there was no room for them, or skipped
    /// because they were too large or found no memory.
    pub refused: u64,
    /// Requests that were buffered so far.
    pub buffered: u64,
    /// Requests that were served by threads of lower lanes.
    pub borrowed: u64,
    /// How many requests took how long, from the whole message to the reply, since the ORB is
    /// [watched](crate::Orb::watch): the bounds of classes, which are not reached, and the counts.
    pub times: Vec<(Duration, u64)>,
    /// How many of its threads stay with a connection, and do not wait on the lane's set.
    pub staying: usize,
    /// Its threads.
    pub threads: Vec<ThreadSnapshot>,
}

/// What a thread is doing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ThreadSnapshot {
    /// Its name, uncut.
    pub name: String,
    /// The kernel's id.
    pub tid: u32,
    /// Its scheduling now.
    pub scheduling: Scheduling,
    /// The CPUs on which it may run, by number.
    pub affinity: Vec<usize>,
    /// What it is doing.
    pub activity: Activity,
    /// Requests that it has served so far.
    pub served: u64,
}

pub(crate) fn snapshot(core: &Core) -> Snapshot {
    let pools: Vec<_> = core.pools.lock().all().cloned().collect();
    Snapshot {
        orb_id: core.config.orb_id.clone(),
        strategy: core.config.threadpool_strategy,
        waiting_for_main_thread: core.main.waiting(),
        incidents: core.incidents.counts().collect(),
        pools: pools.iter().map(|pool| of_pool(pool)).collect(),
    }
}

/// Who wants to know how long requests take.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Watcher {
    /// The application, by [`Orb::watch`](crate::Orb::watch).
    Application = 1,
    /// Clients of the monitor.
    #[cfg(feature = "monitor")]
    Monitor = 2,
}

/// Has all lanes, and those to come, take times for somebody, or not any more.
pub(crate) fn take_times(core: &Core, watcher: Watcher, take: bool) {
    // Lanes are made under the lock.
    let pools = core.pools.lock();
    let watcher = watcher as u8;
    match take {
        true => core.watchers.fetch_or(watcher, Ordering::Relaxed),
        false => core.watchers.fetch_and(!watcher, Ordering::Relaxed),
    };
    let take = are_times_wanted(core);
    for lane in pools.all().flat_map(|pool| pool.lanes()) {
        lane.watch().takes_times.store(take, Ordering::Relaxed);
    }
}

/// Whether a lane that is being made takes times.
pub(super) fn are_times_wanted(core: &Core) -> bool {
    core.watchers.load(Ordering::Relaxed) != 0
}

fn of_pool(pool: &Threadpool) -> PoolSnapshot {
    let threads = chronorb_rt::list();
    PoolSnapshot {
        number: pool.number(),
        has_lanes: pool.has_lanes(),
        lanes: pool
            .lanes()
            .iter()
            .map(|lane| of_lane(lane, &threads))
            .collect(),
    }
}

fn of_lane(lane: &Lane, known: &[chronorb_rt::ThreadInfo]) -> LaneSnapshot {
    let (setup, watch) = (lane.setup(), lane.watch());
    let (seats, queued) = match lane.staff() {
        Some(staff) => {
            let (seats, _, waiting) = staff.crew(lane.index()).counts();
            (seats, waiting)
        }
        None => (setup.static_threads, 0),
    };
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    let threads = watch.threads();
    let threads = threads.iter().filter_map(|thread| {
        let tid = thread.tid.load(Ordering::Relaxed);
        let info = known.iter().find(|known| known.tid == tid)?;
        Some(ThreadSnapshot {
            name: thread.name.clone(),
            tid,
            scheduling: info.scheduling,
            affinity: info.affinity.clone(),
            activity: thread.activity(),
            served: thread.served(),
        })
    });
    LaneSnapshot {
        name: setup.name.clone(),
        priority: setup.priority,
        scheduling: setup.scheduling,
        endpoints: lane
            .published()
            .map(|p| format!("{}://{}", p.endpoint.scheme, p.way))
            .collect(),
        connections: lane.connections.len(),
        seats,
        queued: queued + lane.parking().count() as u32,
        accepted: count(&watch.accepted),
        served: watch.served(),
        refused: count(&watch.refused),
        buffered: count(&watch.buffered),
        borrowed: count(&watch.borrowed),
        times: watch.times(),
        staying: lane
            .lingering()
            .map_or(0, |lingering| lingering.stays.staying()),
        threads: threads.collect(),
    }
}
