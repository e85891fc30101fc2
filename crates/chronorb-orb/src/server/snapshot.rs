//! Takes snapshots of an ORB's pools, lanes and threads.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::growth::Growth;
use super::lane::ServerLane;
use super::pool::ServerPool;
use super::watch::are_times_wanted;
use crate::core::Core;
use crate::observe::{LaneSnapshot, PoolSnapshot, Snapshot, ThreadSnapshot};
use crate::quota::QuotaSnapshot;

pub(crate) fn snapshot(core: &Core) -> Snapshot {
    let pools: Vec<_> = core.server().pools.lock().all().cloned().collect();
    Snapshot {
        orb_id: core.config.orb_id.clone(),
        strategy: core.config.threadpool_strategy,
        waiting_for_main_thread: core.main.waiting(),
        incidents: core.incidents.counts().collect(),
        quotas: quotas_of_lanes(&pools)
            .chain(core.quotas.snapshots())
            .collect(),
        pools: pools.iter().map(|pool| of_pool(pool)).collect(),
        #[cfg(feature = "schedule")]
        operations: core
            .meter
            .as_ref()
            .map_or(Vec::new(), |meter| meter.snapshot()),
        #[cfg(not(feature = "schedule"))]
        operations: Vec::new(),
    }
}

/// The quotas of the connections of each lane that has endpoints.
fn quotas_of_lanes(pools: &[Arc<ServerPool>]) -> impl Iterator<Item = QuotaSnapshot> {
    let lanes = pools.iter().flat_map(|pool| pool.lanes());
    lanes.filter(|lane| lane.reads()).map(|lane| {
        let name = format!("connections of lane {}", lane.setup.name);
        lane.room.snapshot(name)
    })
}

/// A watcher of the times of requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Watcher {
    /// The application, by [`Orb::watch`](crate::Orb::watch).
    Application = 1,
    /// Clients of the monitor.
    #[cfg(feature = "monitor")]
    Monitor = 2,
}

/// Makes present and later lanes measure times for a watcher, or ends that.
pub(crate) fn take_times(core: &Core, watcher: Watcher, take: bool) {
    // Lanes are made under the lock.
    let pools = core.server().pools.lock();
    let watcher = watcher as u8;
    if take {
        core.server().watchers.fetch_or(watcher, Ordering::Relaxed);
    } else {
        core.server()
            .watchers
            .fetch_and(!watcher, Ordering::Relaxed);
    }
    let take = are_times_wanted(core);
    for lane in pools.all().flat_map(|pool| pool.lanes()) {
        lane.watch.takes_times.store(take, Ordering::Relaxed);
    }
}

fn of_pool(pool: &ServerPool) -> PoolSnapshot {
    let lanes = pool.lanes().iter();
    let tids: Vec<u32> = lanes
        .flat_map(|lane| lane.watch.threads())
        .map(|thread| thread.tid.load(Ordering::Relaxed))
        .collect();
    let threads = chronorb_rt::list_of(|_, tid| tids.contains(&tid));
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

fn of_lane(lane: &ServerLane, known: &[chronorb_rt::ThreadInfo]) -> LaneSnapshot {
    let (setup, watch) = (&lane.setup, &lane.watch);
    let (seats, queued) = match lane.strategy.scheduler() {
        Some(scheduler) => {
            let (permits, _, waiting) = scheduler.workers(lane.index()).counts();
            (permits, waiting)
        }
        None => {
            let grown = lane.strategy.growth().map_or(0, Growth::threads);
            (setup.static_threads + grown, 0)
        }
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
        order: setup.order,
        endpoints: lane
            .published()
            .map(|p| format!("{}://{}", p.endpoint.scheme, p.way))
            .collect(),
        connections: lane.connections.len(),
        seats,
        queued: queued + lane.parking.count() as u32,
        accepted: count(&watch.accepted),
        served: watch.served(),
        refused: count(&watch.refused),
        buffered: count(&watch.buffered),
        borrowed: count(&watch.borrowed),
        times: watch.times(),
        staying: lane
            .strategy
            .affinity()
            .map_or(0, |affinity| affinity.stays.staying()),
        threads: threads.collect(),
    }
}
