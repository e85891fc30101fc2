//! The RT ORB: thread pools, mutexes, the priority transform.

use std::ops::RangeInclusive;
use std::sync::Arc;

use chronorb_giop::{SystemException, SystemExceptionKind};

use crate::core::Core;
use crate::failure::because;
use crate::lanes::{
    DestroyThreadpoolError, Lane, PoolSpec, Threadpool, ThreadpoolId, ThreadpoolLanes,
};
use crate::rtcorba::{
    MutexNotFound, NativePriority, PriorityMapping, PriorityTransform, RtMutex, WorkLane,
    WorkLaneSpec,
};
use crate::server;

/// `RTCORBA::RTORB`: thread pools (RT-CORBA 1.2, “Threadpools”) and mutexes (RT-CORBA 1.2,
/// “Mutex Interface”).
#[derive(Clone, Debug)]
pub struct RtOrb {
    core: Arc<Core>,
}

impl RtOrb {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// Makes a thread pool with lanes.
    ///
    /// Each lane gets its own endpoint, epoll set, buffers and threads of its native priority. They
    /// run when this returns. How they share the work is the ORB's
    /// [strategy](crate::ThreadpoolStrategy). A pool that buffers, borrows or has threads on
    /// demand, and any under Half-Sync/Half-Async or a strategy like it, has one thread more in
    /// each lane than it was given: one reads while all others serve.
    ///
    /// ```no_run
    /// use chronorb_orb::rtcorba::{Lane, Priority, RequestBuffering, ThreadpoolLanes};
    /// # fn example(orb: chronorb_orb::Orb) -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = orb.rt().create_threadpool_with_lanes(&ThreadpoolLanes {
    ///     lanes: vec![
    ///         Lane::new(Priority::new(1_000).unwrap(), 4),
    ///         Lane::new(Priority::new(20_000).unwrap(), 2),
    ///     ],
    ///     allow_borrowing: true,
    ///     request_buffering: Some(RequestBuffering { max_requests: 64, max_octets: 1 << 20 }),
    ///     ..ThreadpoolLanes::default()
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `BAD_PARAM` where there is no lane, a lane without any thread, more threads than the ORB can
    /// have (65536), or a priority twice; `DATA_CONVERSION` (OMG minor 2) where a priority has no
    /// native one; `INITIALIZE` (OMG minor 1) where real-time scheduling is required and the
    /// process may not use that native priority; `NO_RESOURCES` where threads or endpoints cannot
    /// be had (the log says why); `NO_IMPLEMENT` where the ORB's
    /// [strategy](crate::ThreadpoolStrategy) has no such pools (the log says which);
    /// `BAD_INV_ORDER` (OMG minor 4) after shutdown.
    pub fn create_threadpool_with_lanes(
        &self,
        pool: &ThreadpoolLanes,
    ) -> Result<ThreadpoolId, SystemException> {
        let mut priorities: Vec<_> = pool.lanes.iter().map(|lane| lane.priority).collect();
        priorities.sort_unstable();
        priorities.dedup();
        if priorities.len() != pool.lanes.len() {
            let what = "two lanes have the same priority: each has one of its own";
            return Err(because(BAD_PARAM, format_args!("{what}")));
        }
        self.create(pool.clone(), true)
    }

    /// Makes a thread pool without lanes: its threads wait at the default priority, and take the
    /// priority of the request or object for each upcall.
    ///
    /// # Errors
    /// As [`create_threadpool_with_lanes`](Self::create_threadpool_with_lanes).
    pub fn create_threadpool(&self, pool: &Threadpool) -> Result<ThreadpoolId, SystemException> {
        let lane = Lane {
            priority: pool.default_priority,
            static_threads: pool.static_threads,
            dynamic_threads: pool.dynamic_threads,
            order: pool.order,
        };
        let pool = ThreadpoolLanes {
            lanes: vec![lane],
            stack_size: pool.stack_size,
            request_buffering: pool.request_buffering,
            ..ThreadpoolLanes::default()
        };
        self.create(pool, false)
    }

    /// Destroys a thread pool: no further requests enter, those in progress are answered, and all
    /// its threads have ended when this returns. The POAs that it serves must be destroyed before.
    ///
    /// # Errors
    /// [`DestroyThreadpoolError`]. `BAD_INV_ORDER` leaves the pool as it was.
    pub fn destroy_threadpool(&self, pool: ThreadpoolId) -> Result<(), DestroyThreadpoolError> {
        server::ServerPool::destroy(&self.core, pool)
    }

    /// The native real-time priorities that this ORB may give to threads: from 1 to the highest
    /// permitted one. `None` if the process has no right to any, or [`real_time`][mode] or
    /// [`scheduling_policy`][policy] exclude them; 0, ordinary scheduling, is always available.
    ///
    /// A CORBA priority whose native one is beyond is served by ordinary scheduling, and with
    /// `-ORBRealTime required` it is refused: `INITIALIZE` (OMG minor 1).
    ///
    /// [mode]: crate::OrbConfig::real_time
    /// [policy]: crate::OrbConfig::scheduling_policy
    pub fn native_priority_range(&self) -> Option<RangeInclusive<NativePriority>> {
        self.core.rt.real_time.max_native.map(|max| 1..=max)
    }

    /// The mapping of CORBA priorities to native ones that this ORB uses.
    pub fn priority_mapping(&self) -> Arc<dyn PriorityMapping> {
        self.core.rt.real_time.mapping.clone()
    }

    /// Installs the priority transform of this ORB, once. It does not affect requests in progress.
    ///
    /// # Errors
    /// `BAD_INV_ORDER` where there is one.
    pub fn set_priority_transform(
        &self,
        transform: Arc<dyn PriorityTransform>,
    ) -> Result<(), SystemException> {
        let set = self.core.rt.transform.0.set(transform);
        // Calls of bindings that were made without a transform do not ask for one.
        self.core.rt.policies.renew_bindings();
        set.map_err(|_| SystemException::no(SystemExceptionKind::BadInvOrder, 0))
    }

    /// Starts a lane for work of the application.
    ///
    /// A panic of `work` ends the work on one item, and is an incident.
    ///
    /// # Errors
    /// `NO_RESOURCES` where a thread cannot be started; those of a priority without a native one,
    /// as for a pool.
    pub fn start_work_lane<T: Send + 'static>(
        &self,
        spec: &WorkLaneSpec,
        work: impl Fn(T) + Send + Sync + 'static,
    ) -> Result<WorkLane<T>, SystemException> {
        self.core.check_running()?;
        let (real_time, incidents) = (&self.core.rt.real_time, self.core.incidents.clone());
        WorkLane::start(spec, real_time, incidents, work)
    }

    fn create(&self, pool: ThreadpoolLanes, laned: bool) -> Result<ThreadpoolId, SystemException> {
        let threads = pool.lanes.iter().map(|lane| {
            let threads = u64::from(lane.static_threads) + u64::from(lane.dynamic_threads);
            (threads > 0).then_some(threads)
        });
        let cause = match threads.sum::<Option<u64>>() {
            Some(1..=MAX_THREADS) => {
                let spec = PoolSpec {
                    pool,
                    laned,
                    #[cfg(feature = "schedule")]
                    cpu: None,
                };
                return server::ServerPool::create(&self.core, &spec);
            }
            Some(0) => "the pool has no lanes",
            Some(_) => "the pool has more than 65536 threads",
            None => "a lane has neither static nor dynamic threads",
        };
        Err(because(BAD_PARAM, format_args!("{cause}")))
    }
}

/// Synchronizers (RT-CORBA 1.2, “Mutex Interface”). They do not need the ORB to run.
impl RtOrb {
    /// Makes a mutex without a name, unlocked.
    pub fn create_mutex(&self) -> RtMutex {
        RtMutex::inheriting(self.core.number)
    }

    /// Destroys a mutex, and removes its name from the list. Later attempts to lock it fail with
    /// `OBJECT_NOT_EXIST`.
    ///
    /// A mutex without a name needs no end: its memory is given back with its last reference.
    ///
    /// # Errors
    /// See [`RtMutex`]; a mutex whose owner has ended can be destroyed. `BAD_PARAM` for a mutex of
    /// another ORB.
    pub fn destroy_mutex(&self, mutex: &RtMutex) -> Result<(), SystemException> {
        if mutex.orb() != self.core.number {
            return Err(SystemException::no(SystemExceptionKind::BadParam, 0));
        }
        let mut named = self.core.rt.mutexes.lock();
        mutex.destroy()?;
        named.retain(|_, other| other != mutex);
        Ok(())
    }

    /// The mutex of this name, which is made, unlocked, where there is none yet; and whether it was
    /// made. It is there until it is destroyed, or the ORB ends.
    ///
    /// Names are those of one ORB. If its schedule has a lock of this name, and `locks =
    /// "ceiling"`, the owner has the ceiling that the lock file gives. That needs real-time
    /// priorities: without the right to them the mutex inherits priorities as all others.
    pub fn create_named_mutex(&self, name: &str) -> (RtMutex, bool) {
        let mut named = self.core.rt.mutexes.lock();
        if let Some(mutex) = named.get(name) {
            return (mutex.clone(), false);
        }
        let mutex = self.new_named_mutex(name);
        named.insert(name.to_owned(), mutex.clone());
        (mutex, true)
    }

    /// Returns a new mutex, with the ceiling of the schedule.
    #[cfg(feature = "schedule")]
    fn new_named_mutex(&self, name: &str) -> RtMutex {
        let schedule = self.core.schedule.get();
        let ceiling = schedule.and_then(|schedule| schedule.ceiling(name));
        let native = ceiling.and_then(|it| self.core.rt.real_time.scheduling(it).ok());
        match native.filter(|native| native.priority > 0) {
            Some(native) => RtMutex::with_ceiling(self.core.number, native),
            None => self.create_mutex(),
        }
    }

    #[cfg(not(feature = "schedule"))]
    fn new_named_mutex(&self, _name: &str) -> RtMutex {
        self.create_mutex()
    }

    /// The mutex of this name.
    ///
    /// # Errors
    /// [`MutexNotFound`] where it was not made, or is destroyed.
    pub fn open_named_mutex(&self, name: &str) -> Result<RtMutex, MutexNotFound> {
        let named = self.core.rt.mutexes.lock();
        named.get(name).cloned().ok_or(MutexNotFound)
    }
}

const BAD_PARAM: SystemException = SystemException::no(SystemExceptionKind::BadParam, 0);
/// Threads of a pool, all lanes together.
const MAX_THREADS: u64 = 65_536;
