//! A real-time CORBA ORB: remote calls that keep their priority end to end.
//!
//! chronorb speaks GIOP/IIOP, as other ORBs do, and keeps the priority of a call from the client's
//! thread over the wire to the servant's thread: each priority has its own connection, its own
//! endpoint and its own threads in the server, and a request never waits behind one of lower
//! priority.
//!
//! # From IDL to a call
//!
//! An IDL file is compiled by `chronorb-build`, called from `build.rs`:
//!
//! ```no_run
//! # mod chronorb_build { pub fn compile(_: &str) -> Result<(), std::io::Error> { Ok(()) } }
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     chronorb_build::compile("idl/quoter.idl")?;
//!     Ok(())
//! }
//! ```
//!
//! The program includes the generated code by [`include_idl!`], implements the servant trait of
//! an interface, and activates it:
//!
//! ```ignore
//! use chronorb::prelude::*;
//!
//! mod idl {
//!     chronorb::include_idl!("quoter");
//! }
//! use idl::{QuoterServant, QuoterSkeleton};
//!
//! struct Echo;
//!
//! impl QuoterServant for Echo {
//!     fn ping(&self, _: &Call<'_>, n: i32) -> Result<i32, SystemException> {
//!         Ok(n)
//!     }
//! }
//!
//! let orb = Orb::init(&mut std::env::args().collect())?;
//! let root = orb.root_poa()?;
//! let object = root.serve(QuoterSkeleton::new(Echo))?;
//! println!("{}", orb.object_to_string(&object));
//! root.manager().activate()?;
//! orb.run_until_signal()?;
//! ```
//!
//! A client turns the text into a typed reference and calls it:
//!
//! ```ignore
//! let quoter = Quoter::narrow(&orb.string_to_object(&text)?)?.ok_or("not a Quoter")?;
//! assert_eq!(quoter.ping(4)?, 4);
//! ```
//!
//! The whole example is `examples/quoter` in the repository.
//!
//! # Priorities
//!
//! A thread pool with lanes serves each priority by separate threads. A POA's policies determine
//! where the priority of requests comes from:
//!
//! ```no_run
//! use chronorb::prelude::*;
//!
//! # fn example(orb: &Orb) -> Result<(), Box<dyn std::error::Error>> {
//! let low = Priority::new(1_000).ok_or("negative")?;
//! let high = Priority::new(20_000).ok_or("negative")?;
//! let pool = orb.rt().create_threadpool_with_lanes(&ThreadpoolLanes {
//!     lanes: vec![Lane::new(low, 2), Lane::new(high, 1)],
//!     ..Default::default()
//! })?;
//! let root = orb.root_poa()?;
//! let poa = root.create_poa("control", Some(root.manager()), &[
//!     Policy::Threadpool(pool),
//!     Policy::PriorityModel(PriorityModel::ClientPropagated, low),
//! ])?;
//! // A client's thread sets the priority of its calls:
//! orb.rt_current().set_priority(high)?;
//! # let _ = poa;
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//! Settings of a feature that is left out are refused with its name. `default-features = false`
//! disables those that are on by default.
//!
//! | Feature | Default | Contents |
//! |---|---|---|
//! | `access` | on | access rules by address and identity (`-ORBServerTransportRule`, `-ORBClientTransportRule`), the secure profile (`-ORBProfile`), and `Object::with_service_context` |
//! | `distributable-threads` | on | scheduling segments that calls carry to other processes, and schedulers: `rtscheduling` |
//! | `config-file` | on | configuration files, which are TOML (`-ORBConfigFile`), and suggestions for names of settings that do not exist |
//! | `monitor` | on | the monitor for `chronorb top` (`-ORBMonitor`) |
//! | `monitor-client` | off | reading the reports of monitors, as `chronorb top` does |
//! | `uiop` | on | IIOP over Unix-domain sockets |
//! | `shmiop` | on | shared memory |
//! | `diop` | on | datagrams, over UDP |
//! | `miop` | on | groups of objects, over IP multicast |
//! | `bidir` | on | callbacks on the connections that clients opened: bidirectional GIOP (`-ORBBiDir`) |
//! | `tracing` | on | events for subscribers of `tracing`, and lines on standard error (`-ORBLog`) |
//! | `schedule` | off | schedules of operations: start (`-ORBSchedule`), measurement (`-ORBMeasure`) and overruns (`-ORBOverrun`) |
//! | `ssliop` | off | IIOP over TLS, by rustls and ring |
//! | `riop` | off | IIOP by the real-time I/O subsystem (`-ORBRioInterface`) |
//! | `baselines` | off | architectures that the papers measure, for comparison: the thread pools `worker-pool` and `filter-chain`, and the connections `active` |
//! | `faults` | off | disturbed transports, for tests (`-ORBFaults`) |
//! | `trace` | off | traced transports, for Wireshark (`-ORBTraceFile`) |
//!
//! # Minimum Rust version
//! 1.91.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "miop")]
pub use chronorb_orb::GroupError;
pub use chronorb_orb::impl_value;
#[cfg(feature = "tracing")]
pub use chronorb_orb::log;
#[cfg(feature = "monitor")]
pub use chronorb_orb::monitor;
pub use chronorb_orb::outbox;
pub use chronorb_orb::poa;
pub use chronorb_orb::quota;
pub use chronorb_orb::rtcorba;
#[cfg(feature = "distributable-threads")]
pub use chronorb_orb::rtscheduling;
#[cfg(feature = "schedule")]
pub use chronorb_orb::schedule;
pub use chronorb_orb::values;
pub use chronorb_orb::{
    BindError, BodyForm, Call, CompletionStatus, EncodedBody, Incident, InitError, Interface, Ior,
    LastFailure, NotifyError, Object, Operation, Orb, Peer, PendingReply, Reply, ReplyWriter,
    ResolveError, Scope, Servant, Skeleton, SystemException, SystemExceptionKind, UserException,
    Version, minor, narrow,
};

/// The settings of an ORB: [`OrbConfig`](config::OrbConfig) and the types of its fields.
pub mod config {
    pub use chronorb_orb::{
        Architecture, BidirectionalConnections, CharCodeSet, Collocation, ConfigError,
        ConnectionStrategy, Demultiplexing, MonitorSocket, NotThreadCount, OrbConfig,
        PriorityExcess, RealTimeMode, SecurityProfile, ThreadCount, ThreadpoolStrategy,
        TraceSettings, WaitPolicy,
    };
    #[cfg(feature = "baselines")]
    pub use chronorb_orb::{FilterDecision, FilteredRequest, RequestFilter, RequestFilters};
    #[cfg(feature = "riop")]
    pub use chronorb_orb::{RioDriver, RioSettings};
    #[cfg(feature = "access")]
    pub use chronorb_orb::{RuleError, TransportRule, TransportRules};
}

/// Types of IDL that Rust has no type of its own for, and the memory that decoded values borrow.
pub mod data {
    pub use chronorb_orb::{
        Any, AnyBuf, Arena, CdrError, Char, Fixed, FixedError, InlineStr, Lazy, LazyIter,
        LongDouble, Native, StructMember, TypeCode, TypeCodeBuf, Typed, UnionMember, ValueMember,
        ValueModifier, WideStr,
    };
}

/// Snapshots of a running ORB, and the stages of its requests.
pub mod observe {
    pub use chronorb_orb::{
        Activity, LaneSnapshot, OperationSnapshot, PoolSnapshot, Scheduling, Snapshot, Stage,
        StageProbe, ThreadSnapshot,
    };
}

/// Endpoints, peers, and protocols of an application's own.
pub mod transport {
    pub use chronorb_orb::transport::*;
    pub use chronorb_orb::{
        AddressForm, ListeningEndpoint, ListeningEndpoints, PeerProof, PluggableProtocol,
    };
}

/// The items that most programs use.
pub mod prelude {
    pub use chronorb_orb::poa::{
        AdapterActivator, IdAssignment, IdUniqueness, ImplicitActivation, Lifespan, ObjectId,
        ObjectKeys, Poa, PoaManager, Policy, PriorityModel, Refusal, RequestProcessing,
        ServantActivator, ServantLocator, ServantRetention, ThreadModel,
    };
    pub use chronorb_orb::rtcorba::{
        Lane, Priority, RequestBuffering, Threadpool, ThreadpoolLanes,
    };
    pub use chronorb_orb::{
        Any, AnyBuf, Call, CompletionStatus, Interface, Object, Orb, OrbConfig, Scope,
        SystemException, SystemExceptionKind, UserException,
    };
}

#[doc(hidden)]
pub use chronorb_orb::codegen as __runtime;

/// Includes the Rust that `chronorb_build::compile("….idl")` generated in `build.rs`, by the name
/// of the IDL file without its extension.
///
/// A separate module is best, since this defines everything in the IDL.
#[macro_export]
macro_rules! include_idl {
    ($name:literal) => {
        include!(concat!(env!("OUT_DIR"), "/", $name, ".rs"));
    };
}
