//! Real-time CORBA: priorities, thread pools with lanes, the RT ORB.
//!
//! Source: Real-Time CORBA 1.2, chapter 5.

mod current;
mod priority;
mod real_time;
mod rt_orb;
mod transform;

/// How real-time threads are scheduled: see
/// [`OrbConfig::scheduling_policy`](crate::OrbConfig::scheduling_policy).
pub use chronorb_rt::Policy as SchedulingPolicy;

pub use current::RtCurrent;
pub(crate) use current::{OwnPriority, PriorityGuard, request_priority};
pub use priority::{
    ContinuousMapping, DirectMapping, LinearMapping, MappingKind, NativePriority, Priority,
    PriorityMapping,
};
pub(crate) use real_time::RealTime;
pub use rt_orb::{Lane, RtOrb, ThreadpoolId, ThreadpoolLanes};
pub use transform::PriorityTransform;
pub(crate) use transform::{Transform, onward_priority};
