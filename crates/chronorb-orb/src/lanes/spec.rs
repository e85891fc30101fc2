//! Plain values: priority models, pools and lanes.

use chronorb_giop::SystemException;
use thiserror::Error;

use crate::rtcorba::{LaneOrder, Priority};

/// The source of the priority of a request (RT-CORBA 1.2, “Real-Time CORBA Priority
/// Models”).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PriorityModel {
    /// From the client; it travels with the request.
    ClientPropagated,
    /// The server declares it; the object's reference contains it.
    ServerDeclared,
}

/// The parts of a pool.
#[derive(Clone, Debug)]
pub(crate) struct PoolSpec {
    pub(crate) pool: ThreadpoolLanes,
    /// Whether all requests of a lane are of its priority.
    pub(crate) laned: bool,
    /// The processor of its threads, by the kernel's number; `None` for all.
    #[cfg(feature = "schedule")]
    pub(crate) cpu: Option<u32>,
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

/// A thread pool without lanes: the parameters of [`RtOrb::create_threadpool`][make].
///
/// [make]: crate::rtcorba::RtOrb::create_threadpool
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

/// A thread pool with lanes: the parameters of [`RtOrb::create_threadpool_with_lanes`][make].
///
/// [make]: crate::rtcorba::RtOrb::create_threadpool_with_lanes
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
/// “Threadpools”).
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
