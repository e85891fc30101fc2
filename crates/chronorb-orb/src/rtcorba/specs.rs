//! Plain values: priority models, pools and lanes.

use super::{LaneOrder, Priority, RequestBuffering};

/// The source of the priority of a request (RT-CORBA 1.2, 5.7).
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
    pub(crate) lanes: Vec<LaneSpec>,
    pub(crate) stack_size: usize,
    pub(crate) laned: bool,
    pub(crate) borrowing: bool,
    pub(crate) buffering: Option<RequestBuffering>,
    /// The processor of its threads, by the kernel's number; `None` for all.
    #[cfg(feature = "schedule")]
    pub(crate) cpu: Option<u32>,
}

/// The parts of a lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneSpec {
    /// `None` for ordinary scheduling.
    pub(crate) priority: Option<Priority>,
    pub(crate) static_threads: u32,
    pub(crate) dynamic_threads: u32,
    /// `None` for that of the configuration.
    pub(crate) order: Option<LaneOrder>,
}
