//! Real-time CORBA: priorities, thread pools with lanes, the RT ORB.
//!
//! Source: Real-Time CORBA 1.2, chapter 5.

mod current;
pub(crate) mod policies;
mod priority;
mod rt_orb;

pub use current::RtCurrent;
pub(crate) use current::{OwnPriority, PriorityGuard, request_priority};
pub use policies::{
    BandsError, ClientPolicy, ClientPolicyKind, NetworkPriority, PolicyCurrent, PolicyManager,
    PriorityBand, PriorityBands, Protocol, Protocols, ProtocolsError, SetOverride,
    TcpProtocolProperties,
};
pub use priority::{
    DirectMapping, LinearMapping, MappingKind, NativePriority, Priority, PriorityMapping,
};
pub use rt_orb::{Lane, RtOrb, ThreadpoolId, ThreadpoolLanes};
