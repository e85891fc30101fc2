//! Thread pools and their lanes, as POAs and references know them: values and handles.

mod spec;

pub use spec::{
    DestroyThreadpoolError, Lane, PriorityModel, RequestBuffering, Threadpool, ThreadpoolId,
    ThreadpoolLanes,
};
pub(crate) use spec::{LaneSpec, PoolSpec};
