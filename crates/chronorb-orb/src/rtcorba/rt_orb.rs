//! The RT ORB: making thread pools.

use std::sync::Arc;

use chronorb_giop::{SystemException, SystemExceptionKind};

use super::Priority;
use crate::core::Core;
use crate::server::{LaneSpec, Threadpool};

/// `RTCORBA::RTORB`: thread pools (RT-CORBA 1.2, 5.8).
#[derive(Clone, Debug)]
pub struct RtOrb {
    pub(super) core: Arc<Core>,
}

/// Names a thread pool of an ORB.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ThreadpoolId(pub(crate) u32);

impl ThreadpoolId {
    /// Its number, from 1 in order of creation; `-ORBLaneListenEndpoints` uses it.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// What `create_threadpool_with_lanes` needs.
#[derive(Clone, Debug, Default)]
pub struct ThreadpoolLanes {
    /// Octets of stack for each thread; 0 for the default of 256 KiB.
    pub stack_size: usize,
    /// The lanes, at least one, each priority once.
    pub lanes: Vec<Lane>,
    /// Whether an exhausted lane may use threads of lower ones.
    pub allow_borrowing: bool,
    /// Whether requests beyond the number of threads are buffered by the ORB.
    pub allow_request_buffering: bool,
}

/// A lane of a thread pool.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Lane {
    /// The priority of its threads.
    pub priority: Priority,
    /// Threads made with the pool, at least one.
    pub static_threads: u32,
    /// Threads made on demand.
    pub dynamic_threads: u32,
}

impl Lane {
    /// A lane of `threads` static threads.
    pub const fn new(priority: Priority, threads: u32) -> Self {
        Self {
            priority,
            static_threads: threads,
            dynamic_threads: 0,
        }
    }
}

impl RtOrb {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// Makes a thread pool with lanes.
    ///
    /// Each lane gets its own endpoint, epoll set, buffers and threads of its native priority,
    /// which lead and follow one another. They run when this returns.
    ///
    /// # Errors
    /// `BAD_PARAM` where there is no lane, a lane without static threads, or a priority twice;
    /// `DATA_CONVERSION` (OMG minor 2) where a priority has no native one; `NO_IMPLEMENT` for
    /// dynamic threads, borrowing and request buffering, which this version does not have;
    /// `NO_RESOURCES` where threads or endpoints cannot be had (the log says why);
    /// `BAD_INV_ORDER` (OMG minor 4) after shutdown.
    pub fn create_threadpool_with_lanes(
        &self,
        pool: &ThreadpoolLanes,
    ) -> Result<ThreadpoolId, SystemException> {
        let no_implement = SystemException::no(SystemExceptionKind::NoImplement, 0);
        let bad_param = SystemException::no(SystemExceptionKind::BadParam, 0);
        if pool.allow_borrowing || pool.allow_request_buffering {
            return Err(no_implement);
        }
        if pool.lanes.iter().any(|lane| lane.dynamic_threads > 0) {
            return Err(no_implement);
        }
        let mut priorities: Vec<_> = pool.lanes.iter().map(|lane| lane.priority).collect();
        priorities.sort_unstable();
        priorities.dedup();
        if pool.lanes.is_empty()
            || priorities.len() != pool.lanes.len()
            || pool.lanes.iter().any(|lane| lane.static_threads == 0)
        {
            return Err(bad_param);
        }
        let lanes = pool
            .lanes
            .iter()
            .map(|lane| LaneSpec {
                priority: Some(lane.priority),
                threads: lane.static_threads,
            })
            .collect::<Vec<_>>();
        Threadpool::create(&self.core, &lanes, pool.stack_size, true)
    }

    /// Makes a thread pool without lanes: its threads wait at `default_priority`, and take the
    /// priority of the request or object for each upcall.
    ///
    /// # Errors
    /// As [`create_threadpool_with_lanes`](Self::create_threadpool_with_lanes).
    pub fn create_threadpool(
        &self,
        stack_size: usize,
        static_threads: u32,
        default_priority: Priority,
    ) -> Result<ThreadpoolId, SystemException> {
        if static_threads == 0 {
            return Err(SystemException::no(SystemExceptionKind::BadParam, 0));
        }
        let lane = LaneSpec {
            priority: Some(default_priority),
            threads: static_threads,
        };
        Threadpool::create(&self.core, &[lane], stack_size, false)
    }
}
