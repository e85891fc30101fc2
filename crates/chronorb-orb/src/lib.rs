//! The ORB core of chronorb: object references, POA, RT-CORBA thread pools.
//!
//! Applications use the crate `chronorb`, which re-exports this one. The workspace's
//! `ARCHITECTURE.md` describes the path of a request; in this crate it is
//! `object` → `client::{invocation, binding, connection}` → wire →
//! `server::{lane, worker, input, dispatch}` → `upcall` → `poa::{table, servants}` → the
//! servant's skeleton.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod abstract_base;
#[cfg(feature = "access")]
mod access;
#[cfg(feature = "schedule")]
mod active_schedule;
#[cfg(feature = "bidir")]
mod bidirectional;
mod call;
mod client;
mod client_state;
pub mod codegen;
mod config;
mod core;
mod demux;
#[cfg(feature = "distributable-threads")]
mod dynamic_scheduling;
mod encoded_body;
#[cfg(feature = "monitor")]
mod event_channels;
mod failure;
mod fork;
mod gather;
#[cfg(feature = "miop")]
mod group_members;
#[cfg(feature = "miop")]
mod groups;
mod incident;
mod initial_references;
mod key_codes;
mod lanes;
#[cfg(feature = "tracing")]
pub mod log;
#[cfg(feature = "tracing")]
mod log_filter;
mod main_thread;
#[cfg(feature = "schedule")]
mod meter;
#[cfg(feature = "monitor")]
pub mod monitor;
mod object_id;
mod observe;
mod operation_table;
mod orb;
pub mod outbox;
mod peer;
pub mod poa;
mod profile;
mod protocol;
pub mod quota;
mod riders;
mod room;
pub mod rtcorba;
#[cfg(feature = "distributable-threads")]
pub mod rtscheduling;
#[cfg(feature = "schedule")]
pub mod schedule;
#[cfg(feature = "schedule")]
mod schedule_table;
mod scope;
mod server;
mod stack;
mod stage;
pub mod stages;
mod thread_number;
mod upcall;
pub mod values;

#[cfg(feature = "access")]
pub use access::{RuleError, TransportRule, TransportRules};
pub use call::{Call, Operation, Reply, ReplyWriter, Servant, Skeleton, UserException};
pub use chronorb_cdr::impl_value;
pub use chronorb_cdr::{
    Any, AnyBuf, Arena, CdrError, Char, Fixed, FixedError, InlineStr, Lazy, LazyIter, LongDouble,
    Native, StructMember, TypeCode, TypeCodeBuf, Typed, UnionMember, ValueMember, ValueModifier,
    WideStr,
};
pub use chronorb_giop::{
    CompletionStatus, Ior, SystemException, SystemExceptionKind, Version, minor,
};
#[cfg(feature = "riop")]
pub use chronorb_rio::DriverChoice as RioDriver;
pub use chronorb_rt::Scheduling;
pub use chronorb_transport as transport;
pub use chronorb_transport::Credentials;
pub use chronorb_transport::{Endpoint, EndpointError, WaitPolicy, parse_endpoints};
pub use client::PendingReply;
#[cfg(feature = "riop")]
pub use config::RioSettings;
pub use config::{
    Architecture, BidirectionalConnections, CharCodeSet, Collocation, ConfigError,
    ConnectionStrategy, MonitorSocket, NotThreadCount, OrbConfig, PriorityExcess, RealTimeMode,
    SecurityProfile, ThreadCount, ThreadpoolStrategy, TraceSettings,
};
#[cfg(feature = "baselines")]
pub use config::{FilterDecision, FilteredRequest, RequestFilter, RequestFilters};
pub use core::{BindError, Interface, Object, narrow};
pub use demux::Demultiplexing;
pub use encoded_body::{BodyForm, EncodedBody};
pub use failure::LastFailure;
#[cfg(feature = "miop")]
pub use groups::GroupError;
pub use incident::Incident;
pub use initial_references::ResolveError;
pub use observe::{
    Activity, LaneSnapshot, OperationSnapshot, PoolSnapshot, Snapshot, Stage, StageProbe,
    ThreadSnapshot,
};
pub use orb::{InitError, NotifyError, Orb};
pub use peer::Peer;
pub use protocol::{AddressForm, PluggableProtocol};
pub use scope::Scope;
pub use server::{ListeningEndpoint, ListeningEndpoints, PeerProof};
