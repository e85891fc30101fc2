//! Real-time CORBA: priorities, thread pools with lanes, mutexes, the RT ORB.
//!
//! Source: Real-Time CORBA 1.2, chapter 2.
//!
//! # Errors of these operations
//!
//! The minor codes of the OMG are those of the chapter's table of system exceptions.
//!
//! | exception | minor | cause | raised to |
//! |---|---|---|---|
//! | `DATA_CONVERSION` | OMG 2 | a priority without a native one, or with one that the system does not have | [`RtCurrent::set_priority`]; the creator of a pool; the caller of an object that would be served at it |
//! | `DATA_CONVERSION` | OMG 2 | a [`PriorityTransform`] without an answer | the caller |
//! | `DATA_CONVERSION` | OMG 2 | a request whose priority is negative or cannot be read | its client |
//! | `INITIALIZE` | OMG 1 | the native range is too restricted: `-ORBRealTime required`, and the process may not use the priority | as for a priority without a native one |
//! | `INITIALIZE` | 0 | the calling thread has no CORBA priority | [`RtCurrent::priority`] |
//! | `BAD_INV_ORDER` | OMG 18 | an object's priority is reassigned | [`create_reference_with_id_and_priority`](crate::poa::Poa::create_reference_with_id_and_priority), [`activate_object_with_id_and_priority`](crate::poa::Poa::activate_object_with_id_and_priority) |
//! | `BAD_INV_ORDER` | 0 | there is a priority transform already | [`RtOrb::set_priority_transform`] |
//! | `BAD_PARAM` | 0 | a value outside of 0…32767 | [`Priority::try_from`] |
//! | `BAD_PARAM` | 0 | an object's priority that no lane of its pool has | the operations of a POA that name one |
//! | `BAD_PARAM` | 0 | an invalid pool | its creator |
//! | `NO_RESOURCES` | OMG 2 | no connection for the priority of a request: no lane has it | its client |
//! | `NO_RESOURCES` | 0 | threads or endpoints of a pool cannot be had | its creator |
//! | `NO_PERMISSION` | chronorb 1 | the system refuses a native priority that the process was found to have | as for a priority without a native one |
//! | `INTERNAL` | chronorb 1 | a mapping or a transform of the application panicked | as where it has no answer |
//!
//! Operations of a POA answer [`WrongPolicy`](crate::poa::ObjectError::WrongPolicy) where its
//! policies do not allow them, and `create_poa` names the policy that does not go with the others.

mod current;
mod mutex;
pub(crate) mod policies;
mod priority;
mod real_time;
pub(crate) mod scheduling;
mod state;
mod transform;
mod work_lane;

/// The policy of real-time threads: see
/// [`OrbConfig::scheduling_policy`](crate::OrbConfig::scheduling_policy).
pub use chronorb_rt::Policy as SchedulingPolicy;

pub use crate::core::RtCurrent;
pub use crate::lanes::{
    DestroyThreadpoolError, Lane, PriorityModel, RequestBuffering, Threadpool, ThreadpoolId,
    ThreadpoolLanes,
};
pub use crate::orb::RtOrb;
pub(crate) use current::{
    OwnPriority, PriorityGuard, request_priority, set_priority_of_thread, set_request_priority,
};
pub(crate) use mutex::NamedMutexes;
pub use mutex::{MutexNotFound, RtMutex, RtMutexGuard};
pub use policies::{
    BandsError, BidirectionalMode, ClientPolicy, ClientPolicyKind, FailoverPolicy,
    FailoverSemantics, Heartbeat, NetworkPriority, OnewayBuffering, PolicyCurrent, PolicyManager,
    PriorityBand, PriorityBands, Protocol, Protocols, ProtocolsError, RebindMode, RetryBudget,
    SetOverride, SyncScope, TcpProtocolProperties, UnixDomainProtocolProperties,
    UserDatagramProtocolProperties,
};
pub use priority::{
    ContinuousMapping, DirectMapping, LinearMapping, MappingKind, NativePriority, Priority,
    PriorityMapping,
};
pub(crate) use real_time::RealTime;
pub use real_time::RealTimeMode;
pub use scheduling::{ConstraintGuard, LaneOrder, TimeConstraint};
pub(crate) use state::RtState;
pub use transform::PriorityTransform;
pub(crate) use transform::Transform;
pub use work_lane::{RefusedWork, WorkLane, WorkLaneSpec};
