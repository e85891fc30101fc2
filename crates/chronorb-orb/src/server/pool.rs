//! Thread pools: sets of lanes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use chronorb_giop::{SystemException, SystemExceptionKind, minor};
use chronorb_rt::Deadline;
use chronorb_transport::{Address, Endpoint, parse_endpoints};

use super::lane::{Lane, LaneSetup};
use super::worker;
use crate::core::{Core, RUNNING, STOPPED, STOPPING};
use crate::poa::is_in_upcall;
use crate::rtcorba::{Priority, ThreadpoolId};

/// The thread pools of an ORB.
#[derive(Default)]
pub(crate) struct Pools {
    /// The pool of POAs that name none.
    default: Option<Arc<Threadpool>>,
    named: Vec<Arc<Threadpool>>,
}

impl Pools {
    pub(crate) fn get(&self, id: ThreadpoolId) -> Option<Arc<Threadpool>> {
        let index = usize::try_from(id.0).ok()?.checked_sub(1)?;
        self.named.get(index).cloned()
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Threadpool>> {
        self.default.iter().chain(&self.named)
    }
}

/// A thread pool. Without lanes it is a pool of one lane that takes requests of any priority.
pub(crate) struct Threadpool {
    /// 0 for the ORB's own.
    number: u32,
    lanes: Vec<Arc<Lane>>,
    laned: bool,
}

/// What a lane is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneSpec {
    /// `None` for ordinary scheduling.
    pub(crate) priority: Option<Priority>,
    pub(crate) threads: u32,
}

impl Threadpool {
    /// The pool of POAs that name none; the first call makes it.
    pub(crate) fn default_of(core: &Arc<Core>) -> Result<Arc<Self>, SystemException> {
        let mut pools = core.pools.lock();
        // Under the lock, so that no pool is opened once the ORB stops them all.
        core.check_running()?;
        if let Some(pool) = &pools.default {
            return Ok(pool.clone());
        }
        let spec = LaneSpec {
            priority: None,
            threads: core.config.threads,
        };
        let endpoints = match &core.config.listen_endpoints[..] {
            [] => any_endpoint()?,
            given => given.to_vec(),
        };
        let pool = Self::open(core, 0, &[(spec, endpoints)], 0, false)?;
        pools.default = Some(pool.clone());
        Ok(pool)
    }

    /// Makes a pool of an RT ORB.
    pub(crate) fn create(
        core: &Arc<Core>,
        lanes: &[LaneSpec],
        stack_size: usize,
        laned: bool,
    ) -> Result<ThreadpoolId, SystemException> {
        let mut pools = core.pools.lock();
        core.check_running()?;
        let number = pools.named.len() as u32 + 1;
        let lanes = lanes
            .iter()
            .enumerate()
            .map(|(index, spec)| Ok((*spec, lane_endpoints(core, (number, index as u32))?)))
            .collect::<Result<Vec<_>, SystemException>>()?;
        let pool = Self::open(core, number, &lanes, stack_size, laned)?;
        pools.named.push(pool);
        Ok(ThreadpoolId(number))
    }

    /// Opens all lanes, then starts their threads; a failure leaves nothing behind.
    fn open(
        core: &Arc<Core>,
        number: u32,
        lanes: &[(LaneSpec, Vec<Endpoint>)],
        stack_size: usize,
        laned: bool,
    ) -> Result<Arc<Self>, SystemException> {
        let lanes = lanes
            .iter()
            .enumerate()
            .map(|(index, (spec, endpoints))| {
                let scheduling = match spec.priority {
                    Some(priority) => core.real_time.scheduling(priority)?,
                    None => chronorb_rt::Scheduling::OTHER,
                };
                let setup = LaneSetup {
                    id: (number, index as u32),
                    name: format!("{number}:{index}"),
                    priority: spec.priority,
                    scheduling,
                    threads: spec.threads,
                    stack_size: if stack_size == 0 {
                        STACK_SIZE
                    } else {
                        stack_size
                    },
                };
                Lane::open(core, setup, endpoints).map(Arc::new)
            })
            .collect::<Result<Vec<_>, _>>()?;
        for (started, lane) in lanes.iter().enumerate() {
            if let Err(exception) = worker::start(core, lane) {
                lanes[..=started].iter().for_each(|lane| lane.stop());
                return Err(exception);
            }
        }
        Ok(Arc::new(Self {
            number,
            lanes,
            laned,
        }))
    }

    /// Whether it is the pool of POAs that name none.
    pub(crate) fn is_default(&self) -> bool {
        self.number == 0
    }

    /// The lane that the calling thread serves, if it is one of this pool.
    pub(crate) fn lane_of_thread(&self, core: &Core) -> Option<&Lane> {
        let (pool, lane) = worker::lane_of_thread(core)?;
        let lane = self.lanes.get(lane as usize)?;
        (pool == self.number).then_some(lane)
    }

    pub(crate) fn has_lanes(&self) -> bool {
        self.laned
    }

    pub(crate) fn lanes(&self) -> &[Arc<Lane>] {
        &self.lanes
    }

    pub(crate) fn lane_of(&self, priority: Priority) -> Option<&Lane> {
        let mut lanes = self.lanes.iter();
        let lane = lanes.find(|lane| lane.priority() == Some(priority))?;
        Some(lane)
    }

    pub(crate) fn least_urgent_lane(&self) -> &Lane {
        let least = self.lanes.iter().min_by_key(|lane| lane.priority());
        // Both ways of making a pool refuse one without lanes.
        least.expect("a pool has a lane")
    }
}

/// Whether one of the addresses is an endpoint of this ORB.
pub(crate) fn is_published(core: &Core, addresses: &[Address]) -> bool {
    let pools = core.pools.lock();
    let mut published = pools
        .all()
        .flat_map(|pool| pool.lanes())
        .flat_map(|lane| lane.published());
    published.any(|published| addresses.contains(&published.address))
}

/// Ends the ORB; see [`Orb::shutdown`](crate::Orb::shutdown).
pub(crate) fn shutdown(core: &Arc<Core>, wait: bool) -> Result<(), SystemException> {
    if wait && (worker::lane_of_thread(core).is_some() || is_in_upcall(core)) {
        return Err(SystemException::no(
            SystemExceptionKind::BadInvOrder,
            minor::WOULD_DEADLOCK,
        ));
    }
    let root = core.poas.present_root();
    let begun = {
        let pools = core.pools.lock();
        let begins = core.state.get() == RUNNING;
        if begins {
            core.state.set(STOPPING);
            // This counts as a lane until all are told, so that one of them is the last.
            core.live_lanes.fetch_add(1, Ordering::AcqRel);
            pools
                .all()
                .flat_map(|pool| pool.lanes())
                .for_each(|lane| lane.stop());
        }
        begins
    };
    if begun {
        // Both may run application code, which may use pools.
        core.poas.deactivate();
        core.main.close();
        lane_ended(core);
    }
    crate::client::forget_orb(core);
    while wait && core.state.get() != STOPPED {
        core.state
            .wait_while(STOPPING, Deadline::after(core.config.request_timeout));
    }
    if wait && let Some(root) = root {
        // Threads of the application may still be calling its objects.
        let _ = root.destroy(true, true);
    }
    Ok(())
}

/// The last thread of a lane has ended. The last lane ends the ORB.
pub(super) fn lane_ended(core: &Core) {
    let last = core.live_lanes.fetch_sub(1, Ordering::AcqRel) == 1;
    if last && core.state.get() == STOPPING {
        finish(core);
    }
}

fn finish(core: &Core) {
    /// Servants are dropped, which may panic; who waits for the end must see it all the same.
    struct Stopped<'c>(&'c Core);
    impl Drop for Stopped<'_> {
        fn drop(&mut self) {
            self.0.state.set(STOPPED);
            self.0.main.ring();
        }
    }
    let _stopped = Stopped(core);
    core.poas.clear();
}

/// Where a lane listens: where the configuration says, else at any port of the default host.
fn lane_endpoints(core: &Core, lane: (u32, u32)) -> Result<Vec<Endpoint>, SystemException> {
    let config = &core.config;
    let given: Vec<Endpoint> = config
        .lane_listen_endpoints
        .iter()
        .filter(|(of, _)| *of == lane)
        .map(|(_, endpoint)| endpoint.clone())
        .collect();
    if !given.is_empty() {
        return Ok(given);
    }
    match config.listen_endpoints.first() {
        Some(endpoint) => Ok(vec![Endpoint {
            port: 0,
            port_span: 1,
            ..endpoint.clone()
        }]),
        None => any_endpoint(),
    }
}

fn any_endpoint() -> Result<Vec<Endpoint>, SystemException> {
    parse_endpoints("iiop://").map_err(|_| SystemException::no(SystemExceptionKind::Internal, 0))
}

/// Octets of stack of a pool's thread, where nothing else is asked for.
const STACK_SIZE: usize = 256 << 10;
