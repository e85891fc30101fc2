//! The RT ORB: making thread pools.

use std::sync::Arc;

use chronorb_giop::{SystemException, SystemExceptionKind};
use thiserror::Error;

use super::{LaneOrder, LaneSpec, PoolSpec, Priority};
use crate::core::Core;
use crate::failure::because;
use crate::server;

/// `RTCORBA::RTORB`: thread pools and mutexes (RT-CORBA 1.2, 5.8 and 5.9).
#[derive(Clone, Debug)]
pub struct RtOrb {
    pub(super) core: Arc<Core>,
}

/// Names a thread pool of an ORB.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ThreadpoolId(pub(crate) u32);

impl ThreadpoolId {
    /// Returns the number, from 1 in order of creation; `-ORBLaneListenEndpoints` uses it.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// A thread pool without lanes: the parameters of [`RtOrb::create_threadpool`].
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Threadpool {
    /// Octets of stack for each thread; 0 for the default of 256 KiB.
    pub stack_size: usize,
    /// Threads made with the pool.
    pub static_threads: u32,
    /// Threads made on demand, in addition.
    pub dynamic_threads: u32,
    /// The priority of its threads while they serve nothing.
    pub default_priority: Priority,
    /// Whether requests that find no thread are buffered by the ORB, and how many.
    pub request_buffering: Option<RequestBuffering>,
    /// The order of requests of equal priority that wait; `None` for that of `-ORBLaneOrder`.
    pub order: Option<LaneOrder>,
}

impl Threadpool {
    /// A pool of `threads` static threads.
    pub const fn new(default_priority: Priority, threads: u32) -> Self {
        Self {
            stack_size: 0,
            static_threads: threads,
            dynamic_threads: 0,
            default_priority,
            request_buffering: None,
            order: None,
        }
    }
}

/// A thread pool with lanes: the parameters of [`RtOrb::create_threadpool_with_lanes`].
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ThreadpoolLanes {
    /// Octets of stack for each thread; 0 for the default of 256 KiB.
    pub stack_size: usize,
    /// The lanes, at least one, each priority once.
    pub lanes: Vec<Lane>,
    /// Whether a lane all of whose threads are busy may use threads of lower ones, the nearest
    /// first. A thread that is borrowed has the priority of the lane that uses it, until the
    /// request is served.
    pub allow_borrowing: bool,
    /// Whether requests that find no thread are buffered by the ORB, and how many.
    pub request_buffering: Option<RequestBuffering>,
}

/// A lane of a thread pool.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Lane {
    /// The priority of its threads.
    pub priority: Priority,
    /// Threads made with the pool.
    pub static_threads: u32,
    /// Threads made on demand, in addition.
    pub dynamic_threads: u32,
    /// The order in which its waiting requests are served; `None` for that of `-ORBLaneOrder`. An
    /// order other than that of arrival makes the pool buffer requests.
    pub order: Option<LaneOrder>,
}

impl Lane {
    /// A lane of `threads` static threads.
    pub const fn new(priority: Priority, threads: u32) -> Self {
        Self {
            priority,
            static_threads: threads,
            dynamic_threads: 0,
            order: None,
        }
    }

    /// The lane, with this order of its waiting requests.
    #[must_use]
    pub const fn ordered(self, order: LaneOrder) -> Self {
        Self {
            order: Some(order),
            ..self
        }
    }
}

/// The bounds of the requests that the ORB buffers while all threads are busy (RT-CORBA 1.2,
/// 5.8.3).
///
/// The bounds hold for each lane, so that requests of one priority cannot take the room of those of
/// another. In a pool without lanes, under
/// [Leader/Followers](crate::ThreadpoolStrategy::LeaderFollowers) and Half-Sync/Half-Async, more
/// urgent requests are served first, and take the room of less urgent ones. A request for which
/// there is no room is answered at once by `TRANSIENT` (OMG minor 1).
///
/// Without buffering, requests that find no thread stay where they are, unread: the transport holds
/// their clients back. Strategies that have queues by nature buffer in any case, by the ORB's own
/// bounds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RequestBuffering {
    /// The greatest number of requests; 0 for the ORB's own bound, 4096.
    pub max_requests: u32,
    /// The greatest number of octets of all of them; 0 for the ORB's own bound,
    /// `-ORBMaxBufferedOctets`.
    pub max_octets: usize,
}

/// A thread pool could not be destroyed.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum DestroyThreadpoolError {
    /// There is no pool of this number.
    #[error("there is no such thread pool, or no more")]
    InvalidThreadpool,
    /// The pool is in use (`BAD_INV_ORDER`, minor `THREADPOOL_IN_USE`), or the caller is one of its
    /// threads (`BAD_INV_ORDER`, OMG minor 3); or its threads have not ended in time (`TIMEOUT`),
    /// and will end later.
    #[error(transparent)]
    System(#[from] SystemException),
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
        self.create(PoolSpec {
            lanes: pool.lanes.iter().map(lane_spec).collect(),
            stack_size: pool.stack_size,
            laned: true,
            borrowing: pool.allow_borrowing,
            buffering: pool.request_buffering,
            #[cfg(feature = "schedule")]
            cpu: None,
        })
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
        self.create(PoolSpec {
            lanes: vec![lane_spec(&lane)],
            stack_size: pool.stack_size,
            laned: false,
            borrowing: false,
            buffering: pool.request_buffering,
            #[cfg(feature = "schedule")]
            cpu: None,
        })
    }

    /// Destroys a thread pool: no further requests enter, those in progress are answered, and all
    /// its threads have ended when this returns. The POAs that it serves must be destroyed before.
    ///
    /// # Errors
    /// [`DestroyThreadpoolError`]. `BAD_INV_ORDER` leaves the pool as it was.
    pub fn destroy_threadpool(&self, pool: ThreadpoolId) -> Result<(), DestroyThreadpoolError> {
        server::ServerPool::destroy(&self.core, pool)
    }

    fn create(&self, spec: PoolSpec) -> Result<ThreadpoolId, SystemException> {
        let threads = spec.lanes.iter().map(|lane| {
            let threads = u64::from(lane.static_threads) + u64::from(lane.dynamic_threads);
            (threads > 0).then_some(threads)
        });
        let cause = match threads.sum::<Option<u64>>() {
            Some(1..=MAX_THREADS) => return server::ServerPool::create(&self.core, &spec),
            Some(0) => "the pool has no lanes",
            Some(_) => "the pool has more than 65536 threads",
            None => "a lane has neither static nor dynamic threads",
        };
        Err(because(BAD_PARAM, format_args!("{cause}")))
    }
}

fn lane_spec(lane: &Lane) -> LaneSpec {
    LaneSpec {
        priority: Some(lane.priority),
        static_threads: lane.static_threads,
        dynamic_threads: lane.dynamic_threads,
        order: lane.order,
    }
}

const BAD_PARAM: SystemException = SystemException::no(SystemExceptionKind::BadParam, 0);
/// Threads of a pool, all lanes together.
const MAX_THREADS: u64 = 65_536;
