//! Thread pools and their lanes, as POAs and references know them: values and handles.

mod handle;
mod spec;

pub(crate) use handle::{
    LaneHandle, LaneId, PoolHandle, PoolUse, PublishedEndpoint, lane_of_thread, set_lane_of_thread,
};
pub(crate) use spec::PoolSpec;
pub use spec::{
    DestroyThreadpoolError, Lane, PriorityModel, RequestBuffering, Threadpool, ThreadpoolId,
    ThreadpoolLanes,
};
