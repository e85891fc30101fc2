//! Real-time CORBA: priorities, thread pools with lanes, mutexes, the RT ORB.
//!
//! Source: Real-Time CORBA 1.2, chapter 5.

mod current;
mod mutex;
mod priority;
mod rt_orb;

pub use current::RtCurrent;
pub(crate) use current::{OwnPriority, PriorityGuard, request_priority};
pub(crate) use mutex::NamedMutexes;
pub use mutex::{MutexNotFound, RtMutex, RtMutexGuard};
pub use priority::{
    DirectMapping, LinearMapping, MappingKind, NativePriority, Priority, PriorityMapping,
};
pub use rt_orb::{
    DestroyThreadpoolError, Lane, RequestBuffering, RtOrb, Threadpool, ThreadpoolId,
    ThreadpoolLanes,
};
