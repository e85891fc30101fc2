//! Thread pools: sets of lanes.

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chronorb_giop::{
    CompletionStatus, SystemException, SystemExceptionKind, TAG_INTERNET_IOP, minor,
};
use chronorb_rt::{Bounds, Deadline, log};
use chronorb_transport::{Address, Endpoint};

use super::endpoints::Endpoints;
use super::lane::ServerLane;
use super::lane::setup::LaneSetup;
use super::queued::QueuedRequest;
use super::scheduler::{PoolScheduler, SchedulerSetup};
use super::threads;
#[cfg(feature = "bidir")]
use crate::config::ThreadpoolStrategy::{Reactive, ThreadPerConnection};
use crate::core::Core;
use crate::failure::because;
use crate::incident::Incident;
use crate::lanes::{
    DestroyThreadpoolError, Lane, PoolHandle, PoolSpec, PoolUse, RequestBuffering, ThreadpoolId,
    ThreadpoolLanes, lane_of_thread,
};
use crate::protocol::PluggableProtocol;
use crate::rtcorba::Priority;

/// The thread pools of an ORB.
#[derive(Default)]
pub(crate) struct Pools {
    /// The pool of POAs that name none.
    default: Option<Arc<ServerPool>>,
    /// In order of creation; a number is never used again.
    named: Vec<Option<Arc<ServerPool>>>,
}

impl Pools {
    fn get(&self, id: ThreadpoolId) -> Option<Arc<ServerPool>> {
        let index = usize::try_from(id.0).ok()?.checked_sub(1)?;
        self.named.get(index).cloned().flatten()
    }

    /// Returns the pool of this number, which cannot be destroyed before the result is dropped.
    pub(super) fn use_pool(&self, id: ThreadpoolId) -> Option<PoolUse> {
        self.get(id).map(|pool| PoolUse::new(pool.handle.clone()))
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<ServerPool>> {
        self.default.iter().chain(self.named.iter().flatten())
    }

    /// Tells the threads of all pools to end. Returns the requests that waited for a thread, to be
    /// dropped.
    pub(crate) fn stop(&self) -> impl Sized + use<> {
        self.all().flat_map(|pool| pool.stop()).collect::<Vec<_>>()
    }
}

/// A thread pool. Without lanes it is a pool of one lane that serves requests of any priority.
pub(crate) struct ServerPool {
    /// The pool, as POAs know it.
    handle: Arc<PoolHandle>,
    lanes: Vec<Arc<ServerLane>>,
    scheduler: Option<Arc<PoolScheduler>>,
}

impl ServerPool {
    /// Returns the pool of POAs that name none; the first call makes it.
    pub(crate) fn default_of(core: &Arc<Core>) -> Result<Arc<PoolHandle>, SystemException> {
        let mut pools = core.server().pools.lock();
        // Under the lock, so that no pool is opened once the ORB stops all pools.
        core.check_running()?;
        if let Some(pool) = &pools.default {
            return Ok(pool.handle.clone());
        }
        let threads = core.config.threads;
        let spec = PoolSpec {
            pool: ThreadpoolLanes {
                lanes: vec![Lane {
                    priority: Priority::default(),
                    static_threads: threads.least(),
                    // A queue in the order of arrival is there to be served by a fixed number.
                    dynamic_threads: if core.config.threadpool_strategy.keeps_order() {
                        0
                    } else {
                        threads.most() - threads.least()
                    },
                    order: None,
                }],
                ..ThreadpoolLanes::default()
            },
            laned: false,
            #[cfg(feature = "schedule")]
            cpu: None,
        };
        let endpoints = match &core.config.listen_endpoints[..] {
            [] => any_endpoints(core),
            given => given.to_vec(),
        };
        log::start();
        let pool = Self::open(core, 0, &spec, &[endpoints])?;
        let handle = pool.handle.clone();
        pools.default = Some(pool);
        Ok(handle)
    }

    /// Makes a pool of an RT ORB.
    pub(crate) fn create(
        core: &Arc<Core>,
        spec: &PoolSpec,
    ) -> Result<ThreadpoolId, SystemException> {
        if let Some(why) = core.config.threadpool_strategy.refuses(spec) {
            let exception = SystemException::no(SystemExceptionKind::NoImplement, 0);
            let cure = "use another -ORBThreadpoolStrategy, or a pool without";
            return Err(because(exception, format_args!("{why}; {cure}")));
        }
        let mut pools = core.server().pools.lock();
        core.check_running()?;
        let number = pools.named.len() as u32 + 1;
        let lanes = 0..spec.pool.lanes.len() as u32;
        let mut given = core.config.lane_listen_endpoints.iter();
        let is_missing = |(pool, lane): (u32, u32)| pool == number && !lanes.contains(&lane);
        if let Some(((pool, lane), _)) = given.find(|(lane, _)| is_missing(*lane)) {
            let exception = SystemException::no(SystemExceptionKind::BadParam, 0);
            let what = format_args!("-ORBLaneListenEndpoints names lane {pool}:{lane}");
            let cause = format_args!("{what}, and pool {number} has {} lanes", lanes.end);
            return Err(because(exception, cause));
        }
        let given = lanes.map(|lane| given_endpoints(core, (number, lane)));
        let given: Vec<_> = if core.config.threadpool_strategy.filters() {
            // One thread reads at all of the endpoints.
            vec![given.flatten().collect()]
        } else {
            given.collect()
        };
        let endpoints = given
            .into_iter()
            .map(|given| {
                if given.is_empty() {
                    free_endpoints(core)
                } else {
                    given
                }
            })
            .collect::<Vec<_>>();
        log::start();
        let pool = Self::open(core, number, spec, &endpoints)?;
        pools.named.push(Some(pool));
        Ok(ThreadpoolId(number))
    }

    /// Destroys a pool of an RT ORB: requests in progress are answered, and all its threads have
    /// ended when this returns.
    ///
    /// # Errors
    /// [`DestroyThreadpoolError`].
    pub(crate) fn destroy(
        core: &Arc<Core>,
        id: ThreadpoolId,
    ) -> Result<(), DestroyThreadpoolError> {
        let bad_order = |minor| SystemException::no(SystemExceptionKind::BadInvOrder, minor);
        let pool = {
            let mut pools = core.server().pools.lock();
            core.check_running()?;
            let pool = pools.get(id);
            let pool = pool.ok_or(DestroyThreadpoolError::InvalidThreadpool)?;
            let here = worker_pool(core);
            if here == Some(pool.number()) {
                return Err(bad_order(minor::WOULD_DEADLOCK).into());
            }
            if pool.handle.users.load(Ordering::Acquire) > 0 {
                return Err(bad_order(minor::THREADPOOL_IN_USE).into());
            }
            pools.named[id.0 as usize - 1] = None;
            pool
        };
        // The drop of requests and the end of a lane must not run under the lock.
        drop(pool.stop());
        let deadline = Deadline::after(core.config.request_timeout);
        let ended = pool
            .lanes
            .iter()
            .all(|lane| lane.wait_until_ended(deadline));
        if ended {
            Ok(())
        } else {
            let (kind, completed) = (SystemExceptionKind::Timeout, CompletionStatus::Maybe);
            Err(SystemException::new(kind, 0, completed).into())
        }
    }

    /// Opens all lanes, then starts their threads; a failure leaves no lane behind.
    fn open(
        core: &Arc<Core>,
        number: u32,
        spec: &PoolSpec,
        endpoints: &[Vec<Endpoint>],
    ) -> Result<Arc<Self>, SystemException> {
        let strategy = core.config.threadpool_strategy;
        #[cfg(feature = "bidir")]
        if core.config.is_bidirectional() && matches!(strategy, Reactive | ThreadPerConnection) {
            let exception = SystemException::no(SystemExceptionKind::NoImplement, 0);
            let cause = "-ORBBiDir needs a thread that reads while the others dispatch; use \
                         another -ORBThreadpoolStrategy";
            return Err(because(exception, format_args!("{cause}")));
        }
        let order_of = |lane: &Lane| lane.order.unwrap_or(core.config.lane_order);
        if !strategy.orders() && spec.pool.lanes.iter().any(|lane| !order_of(lane).is_fifo()) {
            let exception = SystemException::no(SystemExceptionKind::NoImplement, 0);
            let cause = "lanes are ordered under leader-followers and half-sync; use one of these \
                         for -ORBThreadpoolStrategy, or the order fifo";
            return Err(because(exception, format_args!("{cause}")));
        }
        let setups = spec
            .pool
            .lanes
            .iter()
            .enumerate()
            .map(|(index, lane)| {
                let (static_threads, dynamic_threads) = strategy.threads(lane, &core.config);
                // The default pool has ordinary scheduling.
                let priority = (number > 0).then_some(lane.priority);
                let scheduling = match priority {
                    Some(priority) => core.rt.real_time.scheduling(priority)?,
                    None => chronorb_rt::Scheduling::OTHER,
                };
                Ok(LaneSetup {
                    id: (number, index as u32),
                    name: format!("{number}:{index}"),
                    priority,
                    scheduling,
                    static_threads,
                    dynamic_threads,
                    stack_size: match spec.pool.stack_size {
                        0 => STACK_SIZE,
                        size => size,
                    },
                    order: order_of(lane),
                    laned: spec.laned,
                    #[cfg(feature = "schedule")]
                    cpu: spec.cpu,
                })
            })
            .collect::<Result<Vec<_>, SystemException>>()?;
        let scheduler = scheduler_of(core, spec, &setups)?;
        let max_connections = core.config.max_connections;
        core.server()
            .make_room_for_lanes(endpoints.len(), max_connections);
        let lanes = if strategy.filters() {
            open_with_one_reader(core, setups, &endpoints.concat(), scheduler.as_ref())?
        } else {
            let open = |(setup, endpoints): (LaneSetup, &Vec<_>)| {
                let endpoints = Endpoints::open(core, &setup, endpoints)?;
                let lane =
                    ServerLane::open(core, setup, endpoints, Box::default(), scheduler.as_ref());
                lane.map(Arc::new)
            };
            let lanes = setups.into_iter().zip(endpoints).map(open);
            lanes.collect::<Result<Vec<_>, _>>()?
        };
        let handles = lanes.iter().map(|lane| lane.handle.clone());
        let pool = Arc::new(Self {
            handle: Arc::new(PoolHandle {
                number,
                lanes: handles.collect(),
                has_lanes: spec.laned,
                users: AtomicUsize::new(0),
            }),
            lanes,
            scheduler,
        });
        for lane in pool.lanes.iter().filter(|lane| lane.reads()) {
            if let Err(exception) = threads::start(core, lane) {
                drop(pool.stop());
                return Err(exception);
            }
        }
        Ok(pool)
    }

    /// Tells all threads to end. Returns the requests that waited for them, to be dropped.
    #[must_use = "the requests are to be dropped without holding a lock"]
    fn stop(&self) -> Vec<QueuedRequest> {
        self.lanes.iter().for_each(|lane| lane.stop());
        let scheduler = self.scheduler.as_ref();
        let mut left = scheduler
            .map(|scheduler| scheduler.close())
            .unwrap_or_default();
        for lane in &self.lanes {
            lane.parking.close(&mut left);
        }
        left
    }

    pub(crate) fn number(&self) -> u32 {
        self.handle.number
    }

    pub(crate) fn has_lanes(&self) -> bool {
        self.handle.has_lanes
    }

    pub(crate) fn lanes(&self) -> &[Arc<ServerLane>] {
        &self.lanes
    }
}

/// Returns the lanes of a pool, unless it was destroyed.
#[cfg(feature = "miop")]
pub(crate) fn lanes_of(core: &Core, pool: &PoolHandle) -> Vec<Arc<ServerLane>> {
    let pool = core.server().pool(pool);
    pool.map_or_else(Vec::new, |pool| pool.lanes.clone())
}

/// Reports endpoints of the configuration that belong to pools that were never made. A program that
/// runs the ORB has made its pools.
pub(crate) fn report_unused_endpoints(core: &Core) {
    let made = core.server().pools.lock().named.len() as u32;
    for ((pool, lane), endpoint) in &core.config.lane_listen_endpoints {
        if *pool > made {
            let setting = format_args!("-ORBLaneListenEndpoints {pool}:{lane}");
            let scheme = &endpoint.scheme;
            let detail = format_args!("no pool {pool} was made: nothing listens by {scheme} there");
            let incidents = &core.incidents;
            incidents.tell(Incident::UnusedSetting, &setting, 0, &detail);
        }
    }
}

/// Opens lanes for all of which the most urgent one reads, at the same endpoints.
fn open_with_one_reader(
    core: &Core,
    mut setups: Vec<LaneSetup>,
    endpoints: &[Endpoint],
    scheduler: Option<&Arc<PoolScheduler>>,
) -> Result<Vec<Arc<ServerLane>>, SystemException> {
    setups.sort_by_key(|setup| Reverse(setup.priority));
    let mut setups = setups.into_iter();
    let first = setups.next();
    // Both functions that make a pool refuse one without lanes.
    let first = first.ok_or(SystemException::no(SystemExceptionKind::BadParam, 0))?;
    let endpoints = Endpoints::open(core, &first, endpoints)?;
    let open =
        |setup, endpoints, served| ServerLane::open(core, setup, endpoints, served, scheduler);
    let mut lanes = setups
        .map(|setup| open(setup, endpoints.shared(), Box::default()).map(Arc::new))
        .collect::<Result<Vec<_>, _>>()?;
    let served_lanes = lanes.clone().into_boxed_slice();
    lanes.push(Arc::new(open(first, endpoints, served_lanes)?));
    lanes.sort_unstable_by_key(|lane| lane.index());
    Ok(lanes)
}

/// Returns the scheduler of a pool, if its threads do more than dispatch what they read.
fn scheduler_of(
    core: &Core,
    spec: &PoolSpec,
    lanes: &[LaneSetup],
) -> Result<Option<Arc<PoolScheduler>>, SystemException> {
    let limit = |wanted: usize, otherwise: usize| if wanted == 0 { otherwise } else { wanted };
    let bounds = |buffering: RequestBuffering| Bounds {
        things: limit(buffering.max_requests as usize, MAX_BUFFERED_REQUESTS) as u32,
        octets: limit(buffering.max_octets, core.config.max_buffered_octets),
    };
    let strategy = core.config.threadpool_strategy;
    // Requests can be ordered only where they are read before they are served.
    let is_ordered = lanes.iter().any(|lane| !lane.order.is_fifo());
    let queues = (strategy.keeps_order() || is_ordered).then(RequestBuffering::default);
    // Replies are read while all threads that dispatch wait for some.
    #[cfg(feature = "bidir")]
    let reading = core
        .config
        .is_bidirectional()
        .then(RequestBuffering::default);
    #[cfg(not(feature = "bidir"))]
    let reading = None;
    let setup = SchedulerSetup {
        strategy,
        borrowing: spec.pool.allow_borrowing,
        buffering: spec
            .pool
            .request_buffering
            .or(queues)
            .or(reading)
            .map(bounds),
        idle_timeout: core.config.dynamic_thread_idle_timeout,
    };
    let scheduler = PoolScheduler::new(setup, lanes).map_err(|error| {
        let exception = SystemException::no(SystemExceptionKind::NoResources, 0);
        let what = "threads cannot be lent to other lanes";
        because(exception, format_args!("{what}: {error}"))
    })?;
    Ok(scheduler.map(Arc::new))
}

/// Whether the calling thread belongs to a pool of the ORB.
pub(crate) fn is_pool_thread(core: &Core) -> bool {
    worker_pool(core).is_some()
}

/// The number of the pool that the calling thread serves.
fn worker_pool(core: &Core) -> Option<u32> {
    lane_of_thread(core.number).map(|(pool, _)| pool)
}

/// The endpoints that the configuration gives to a lane.
fn given_endpoints(core: &Core, lane: (u32, u32)) -> Vec<Endpoint> {
    let given = core.config.lane_listen_endpoints.iter();
    given
        .filter(|(of, _)| *of == lane)
        .map(|(_, endpoint)| endpoint.clone())
        .collect()
}

/// The endpoints of a lane for which the configuration names none: any port of the hosts of the
/// default pool, or any path beside its paths.
fn free_endpoints(core: &Core) -> Vec<Endpoint> {
    let given = &core.config.listen_endpoints;
    if given.is_empty() {
        return any_endpoints(core);
    }
    let free = given.iter().map(|endpoint| {
        let mut free = endpoint.clone();
        match &mut free.address {
            Address::Host { port, .. } => *port = 0,
            Address::Path(path) => path.clear(),
        }
        // These options apply to one endpoint only.
        free.options
            .retain(|(name, _)| name != "portspan" && name != "class");
        free
    });
    let mut endpoints: Vec<_> = free.collect();
    // Several ports of one host have become the same endpoint.
    endpoints.dedup();
    endpoints
}

/// Any endpoint of each of the server's protocols: those of its policy, else real-time I/O if the
/// schedule has an interface, else IIOP, else the preferred one.
fn any_endpoints(core: &Core) -> Vec<Endpoint> {
    let protocols = &core.protocols;
    let of_policy = core.rt.policies.server_protocols();
    #[cfg(all(feature = "riop", feature = "schedule"))]
    if core.config.scheduled_plan.is_some()
        && of_policy.is_none()
        && let Ok(riop) = protocols.find("riop")
    {
        return vec![riop.any_endpoint()];
    }
    let wanted: Vec<_> = match of_policy {
        Some(wanted) => wanted.tags().filter(|tag| protocols.has(*tag)).collect(),
        None if protocols.has(TAG_INTERNET_IOP) => vec![TAG_INTERNET_IOP],
        None => protocols.iter().take(1).map(|first| first.tag()).collect(),
    };
    let wanted = wanted.into_iter().filter_map(|tag| protocols.of_tag(tag));
    wanted.map(PluggableProtocol::any_endpoint).collect()
}

/// The number of requests that a lane buffers unless the application asks for another.
const MAX_BUFFERED_REQUESTS: usize = 4096;
/// Octets of stack of a pool's thread unless the application asks for others.
const STACK_SIZE: usize = 256 << 10;
