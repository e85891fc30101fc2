//! Thread pools and their lanes, as POAs and references know them: values and handles.

mod endpoint;
mod handle;
mod spec;

pub(crate) use endpoint::PublishedEndpoint;
pub(crate) use handle::{
    LaneHandle, LaneId, PoolHandle, PoolUse, lane_of_thread, set_lane_of_thread,
};
pub use spec::{
    DestroyThreadpoolError, Lane, PriorityModel, RequestBuffering, Threadpool, ThreadpoolId,
    ThreadpoolLanes,
};
pub(crate) use spec::{LaneSpec, PoolSpec};
