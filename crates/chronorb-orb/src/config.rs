//! Configuration of an ORB: a file, the environment and the command line, in
//! rising order of precedence.
//!
//! Every setting has one name in three spellings: `-ORBRequestTimeout` on the
//! command line, `CHRONORB_ORB_REQUEST_TIMEOUT` in the environment and
//! `request_timeout` in the TOML file. Lists are repeated options, values parted by `|`, and
//! arrays. A setting that does not exist is an
//! error in all three.

mod architecture;
#[cfg_attr(not(feature = "config-file"), path = "config/no_file.rs")]
mod file;
#[cfg(feature = "baselines")]
mod filters;
mod help;
#[cfg(feature = "riop")]
mod rio;
#[cfg(feature = "access")]
mod secure;
mod settings;
#[cfg_attr(not(feature = "config-file"), path = "config/not_similar.rs")]
mod similar;
mod thread_count;
mod wrapping;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chronorb_cdr::Bounds;
use chronorb_giop::Version;
use chronorb_giop::codesets::{CodeSetComponent, CodeSetComponentInfo, ISO_8859_1, UTF_8};
#[cfg(feature = "miop")]
use chronorb_transport::multicast::MulticastOptions;
use chronorb_transport::{Endpoint, WaitPolicy};
use thiserror::Error;

#[cfg(feature = "access")]
pub use self::secure::SecurityProfile;
#[cfg(feature = "access")]
pub(crate) use self::secure::{check, completed};
#[cfg(feature = "access")]
use crate::access::TransportRules;
use crate::demux::Demultiplexing;
use crate::key_codes::ObjectKeySecret;
use crate::protocol::{PluggableProtocol, ProtocolProblem};
use crate::quota::QuotaLimits;
pub use crate::rtcorba::RealTimeMode;
use crate::rtcorba::scheduling::CommonClock;
use crate::rtcorba::{LaneOrder, MappingKind, Priority, SchedulingPolicy};
#[cfg(feature = "schedule")]
use crate::schedule_table::{OverrunPolicy, ScheduleTable};
use crate::stage::StageProbe;

use self::settings::{ARCHITECTURE, CONFIG_FILE, SETTINGS, Setting};

pub use architecture::Architecture;
#[cfg(feature = "baselines")]
pub use filters::{FilterDecision, FilteredRequest, RequestFilter, RequestFilters};
#[cfg(feature = "riop")]
pub use rio::RioSettings;
#[cfg(all(feature = "riop", feature = "schedule"))]
pub(crate) use rio::ScheduledPlan;
pub(crate) use settings::lacks;
pub use thread_count::{NotThreadCount, ThreadCount};
#[cfg(feature = "trace")]
pub use wrapping::TraceSettings;

/// The settings of an ORB.
///
/// Most programs use [`Orb::init`](crate::Orb::init), which reads them; tests and
/// programs that embed an ORB may fill in one by hand.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OrbConfig {
    /// `-ORBId`: the name of this ORB in thread names and messages.
    pub orb_id: String,
    /// `-ORBListenEndpoints`: where the default thread pool listens.
    pub listen_endpoints: Vec<Endpoint>,
    /// `-ORBProtocols SCHEME,SCHEME…`: the protocols that there shall be, the one first that calls
    /// go by where a server has several; empty for all that this program has, in an order of the
    /// ORB.
    pub protocols: Vec<String>,
    /// Protocols of the application, which are preferred to those of the ORB.
    pub(crate) pluggable_protocols: Vec<PluggableProtocol>,
    /// The plan of real-time I/O of the schedule that the ORB starts with.
    #[cfg(all(feature = "riop", feature = "schedule"))]
    pub(crate) scheduled_plan: Option<ScheduledPlan>,
    /// `-ORBMulticast NAME=VALUE&…`: how groups are called and listened at.
    #[cfg(feature = "miop")]
    pub multicast: MulticastOptions,
    /// `-ORBSSLCertificate`, `-ORBSSLPrivateKey`, `-ORBSSLCertificateAuthority`,
    /// `-ORBSSLRevocationList`, `-ORBSSLVerify`, `-ORBSSLVersions`: the TLS identity of this
    /// program, and the authorities that it trusts.
    #[cfg(feature = "ssliop")]
    pub ssl: chronorb_transport::tls::TlsSettings,
    /// The network interface and the parameters of the real-time I/O subsystem, which carries IIOP.
    #[cfg(feature = "riop")]
    pub rio: RioSettings,
    /// `-ORBServerTransportRule RULE`: the peers that may connect; the first rule that matches
    /// decides. Without a rule all may.
    #[cfg(feature = "access")]
    pub server_transport_rules: TransportRules,
    /// `-ORBClientTransportRule RULE`: the servers that this program may connect to; the first rule
    /// that matches decides. Without a rule it may connect to all.
    #[cfg(feature = "access")]
    pub client_transport_rules: TransportRules,
    /// `-ORBProfile`: the requirements on other settings.
    #[cfg(feature = "access")]
    pub profile: SecurityProfile,
    /// `-ORBLaneListenEndpoints POOL:LANE ENDPOINT`: where lanes of RT-CORBA thread pools
    /// listen; pools count from 1 in order of creation, lanes from 0. Other lanes take a
    /// free port of the host of the first listen endpoint.
    pub lane_listen_endpoints: Vec<((u32, u32), Endpoint)>,
    /// `-ORBInitRef NAME=URL`: initial references.
    pub init_refs: Vec<(String, String)>,
    /// `-ORBDefaultInitRef URL`: the base URL of initial references that are not configured;
    /// `/NAME` is appended to it.
    pub default_init_ref: Option<String>,
    /// `-ORBFileReferences`: whether `string_to_object`, and names with `-ORBDefaultInitRef`, may
    /// lead to `file:`. URLs of `-ORBInitRef` always may.
    pub file_references: bool,
    /// `-ORBThreads`: threads of the default thread pool, 1 to 1024. It grows while all its threads
    /// are busy, up to the greatest number.
    pub threads: ThreadCount,
    /// `-ORBRealTime`: whether real-time scheduling is wanted.
    pub real_time: RealTimeMode,
    /// `-ORBLockMemory`: lock all memory of the process at start.
    pub lock_memory: bool,
    /// `-ORBPriorityMapping`: how CORBA priorities become native ones. The application's own is
    /// set here, and not by a text.
    pub priority_mapping: MappingKind,
    /// `-ORBSchedulingPolicy`: the policy of the ORB's real-time threads, and of threads that set a
    /// priority by it; with [`SchedulingPolicy::Other`] none of them is a real-time thread.
    pub scheduling_policy: SchedulingPolicy,
    /// `-ORBPriorityCeiling`: the most urgent priority that clients may propagate to a POA without
    /// lanes, bands and a ceiling of its own.
    pub priority_ceiling: Option<Priority>,
    /// `-ORBPriorityExcess`: the treatment of a request whose client propagates a priority above
    /// the ceiling.
    pub priority_excess: PriorityExcess,
    /// `-ORBMaxMessageSize`: the greatest GIOP message in octets, both ways.
    pub max_message_size: usize,
    /// `-ORBFragmentSize`: messages of more octets than this are sent in fragments of at most so
    /// many, where GIOP 1.2 is spoken; 0 for whole messages only.
    pub fragment_size: usize,
    /// `-ORBMaxConnections`: the greatest number of connections of each lane.
    pub max_connections: u32,
    /// `-ORBMaxConnectionsPerPeer`: the greatest number of connections of each lane that one host,
    /// or one user of this machine at Unix-domain sockets, may have; 0 for a quarter of
    /// [`max_connections`](Self::max_connections). The loopback has no such limit.
    pub max_connections_per_peer: u32,
    /// `-ORBMaxBufferedOctets`: how much incomplete input and unsent output a lane
    /// keeps for all its connections together.
    pub max_buffered_octets: usize,
    /// `-ORBArenaSize`: octets of each thread's arena for demarshalled values.
    pub arena_size: usize,
    /// `-ORBRequestTimeout` (milliseconds): the longest duration of a call in all.
    pub request_timeout: Duration,
    /// `-ORBConnectTimeout` (milliseconds): how long one attempt to connect may take.
    pub connect_timeout: Duration,
    /// `-ORBInputTimeout` (milliseconds): the time that a peer may take to complete a message that
    /// it began, or its first one, and the time that it may take nothing, or too little, of a
    /// reply.
    pub input_timeout: Duration,
    /// `-ORBMinReplyRate`: the octets of replies that a peer must receive in each second while some
    /// wait for it; 0 for none.
    pub min_reply_rate: u32,
    /// `-ORBHoldTimeout` (milliseconds): how long a request waits at a holding POA manager.
    pub hold_timeout: Duration,
    /// `-ORBMaxHeldRequests`: how many requests of a lane may wait for holding POA managers and
    /// single-threaded POAs, 1 to 1048576.
    pub max_held_requests: usize,
    /// `-ORBGIOPLite`: whether messages go by GIOPlite on connections whose other end wants that
    /// too.
    pub giop_lite: bool,
    /// `-ORBMaxGIOPVersion`: the greatest version to speak.
    pub max_giop_version: Version,
    /// `-ORBNativeCharCodeSet`: the code set for `char` and `string` that is preferred.
    pub native_char_code_set: CharCodeSet,
    /// `-ORBCharCodeSetConversion`: whether the other code set may be agreed on, too.
    pub char_code_set_conversion: bool,
    /// `-ORBObjectKeySecret FILE`: the secret with which object keys of persistent POAs are
    /// authenticated, if these ask for it; a file of 16 random octets.
    pub object_key_secret: Option<ObjectKeySecret>,
    /// `-ORBPOADemultiplexing`: how requests find their POA.
    pub poa_demultiplexing: Demultiplexing,
    /// `-ORBServantDemultiplexing`: how requests find their servant within a POA.
    pub servant_demultiplexing: Demultiplexing,
    /// `-ORBCollocation`: how objects of this ORB are called from within it.
    pub collocation: Collocation,
    /// `-ORBThreadpoolStrategy`: how threads of pools share the work.
    pub threadpool_strategy: ThreadpoolStrategy,
    /// `-ORBClockSkew` (milliseconds, or `off`): the allowance for the difference of clocks. A
    /// server does not serve a request whose end time passed longer ago; `None` to serve all.
    pub clock_skew: Option<Duration>,
    /// `-ORBClockUncertainty` (microseconds, or `off`): the greatest error of this machine's
    /// `CLOCK_TAI`. Requests then carry [deadlines](crate::rtcorba::TimeConstraint) by that clock
    /// too, and those that arrive so count; `None` for the time that is left alone.
    pub clock_uncertainty: Option<Duration>,
    /// `-ORBClockCorrection` (microseconds, perhaps negative): what has to be added to this
    /// machine's `CLOCK_TAI`, as 37 seconds where the kernel does not know the leap seconds.
    pub clock_correction: i64,
    /// `-ORBOrderedConnections`: whether the requests of a connection are served one at a time, in
    /// the order of arrival, as by a server with one thread. Those of different connections are
    /// served beside each other all the same.
    pub ordered_connections: bool,
    /// `-ORBLaneOrder`: the order in which requests that wait in a lane are served, for lanes and
    /// pools that name none.
    pub lane_order: LaneOrder,
    /// `-ORBDynamicThreadIdleTimeout` (milliseconds): how long a thread that was made on demand
    /// stays without work.
    pub dynamic_thread_idle_timeout: Duration,
    /// `-ORBClientConnection`: how a client's threads have connections to servers.
    pub client_connection: ConnectionStrategy,
    /// `-ORBMaxClientConnections`: the greatest number of connections to servers, of all threads
    /// together, 1 to 1048576.
    pub max_client_connections: u32,
    /// `-ORBMaxPending`: how many asynchronous calls may be under way, 1 to 65536.
    pub max_pending: usize,
    /// `-ORBMaxValueIds`, `-ORBMaxValueIdLength`, `-ORBMaxTypeNameLength`, `-ORBMaxTypeMembers`:
    /// the bounds of identifiers, names and members in received values, 1 to 1048576 each.
    pub bounds: Bounds,
    /// `-ORBClientIdleTimeout` (milliseconds, 0 for never): the time that an unused connection to a
    /// server stays open. Calling threads check it.
    pub client_idle_timeout: Option<Duration>,
    /// `-ORBServerIdleTimeout` (milliseconds, 0 for never): after how long without a request a
    /// connection of a client is closed, in order; at the latest after twice that.
    pub server_idle_timeout: Option<Duration>,
    /// `-ORBPeerTimeout` (milliseconds, 0 for the kernel's times): after how long without a sign of
    /// life of the other side a connection of TCP ends, of a client or of a server. Octets that
    /// were sent are acknowledged in that time (`TCP_USER_TIMEOUT`), and so are the probes of an
    /// idle connection, which begin after half of it (`TCP_KEEPIDLE`, whole seconds).
    pub peer_timeout: Option<Duration>,
    /// `-ORBShareConnectionsAcrossPriorities`: whether requests of all priorities share
    /// connections. **It inverts priorities**, and is there to measure that.
    pub share_connections_across_priorities: bool,
    /// `-ORBClientWait`: how a client's thread waits for its reply.
    pub client_wait: WaitPolicy,
    /// `-ORBServerWait`: how the threads of lanes wait for requests.
    pub server_wait: WaitPolicy,
    /// `-ORBBiDir`: whether servers may call back on connections that this program opens, and
    /// whether it calls back on those of its clients (bidirectional GIOP).
    #[cfg(feature = "bidir")]
    pub bidirectional: BidirectionalConnections,
    /// `-ORBMonitor`: whether the state of its lanes and threads can be read by a local socket.
    #[cfg(feature = "monitor")]
    pub monitor: MonitorSocket,
    /// `-ORBLog`: which events are written to standard error, in a program without a subscriber of
    /// `tracing`. Where it is given, [`Orb::with_config`](crate::Orb::with_config) installs the
    /// [log](crate::log).
    #[cfg(feature = "tracing")]
    pub log: Option<crate::log_filter::LogFilter>,
    /// `-ORBFaults PLANS`: injected faults by protocol, for tests of programs; none by default.
    #[cfg(feature = "faults")]
    pub faults: Option<chronorb_transport::faults::FaultPlans>,
    /// The recording of the octets of connections.
    #[cfg(feature = "trace")]
    pub trace: TraceSettings,
    /// The application's filters of requests, in order. Without the strategy [filter
    /// chain](ThreadpoolStrategy::FilterChain) they make
    /// [`Orb::with_config`](crate::Orb::with_config) fail.
    #[cfg(feature = "baselines")]
    pub request_filters: RequestFilters,
    /// A probe that each thread calls at the stages of a request; for tests and measurements.
    pub stage_probe: Option<StageProbe>,
    /// `-ORBMeasure N`: one request in so many of each operation is measured; none for 0.
    #[cfg(feature = "schedule")]
    pub measure: u32,
    /// `-ORBOverrun`: the treatment of operations that exceed the budgets of the schedule, where
    /// that does not name another; `None` for no measurement of them.
    #[cfg(feature = "schedule")]
    pub overrun: Option<OverrunPolicy>,
    /// `-ORBSchedule FILE`: the schedule that the ORB starts with, or its lock file.
    #[cfg(feature = "schedule")]
    pub schedule: Option<PathBuf>,
    /// `-ORBScheduleNode NAME`: the node of the schedule that this program is; by default the only
    /// one, or the one named as the [ORB](Self::orb_id).
    #[cfg(feature = "schedule")]
    pub schedule_node: Option<String>,
    /// The operations of the schedule, by which budgets and deadlines are known. Those of
    /// [`schedule`](Self::schedule) replace them.
    #[cfg(feature = "schedule")]
    pub schedule_table: Option<std::sync::Arc<ScheduleTable>>,
    /// `-ORBMaxMainThreadRequests`: how many requests may wait for the main thread, 1 to 1048576.
    pub max_main_thread_requests: usize,
}

impl Default for OrbConfig {
    fn default() -> Self {
        Self {
            orb_id: "chronorb".to_owned(),
            listen_endpoints: Vec::new(),
            protocols: Vec::new(),
            pluggable_protocols: Vec::new(),
            #[cfg(feature = "miop")]
            multicast: MulticastOptions::default(),
            #[cfg(feature = "ssliop")]
            ssl: chronorb_transport::tls::TlsSettings::default(),
            #[cfg(feature = "riop")]
            rio: RioSettings::default(),
            #[cfg(feature = "access")]
            server_transport_rules: TransportRules::default(),
            #[cfg(feature = "access")]
            client_transport_rules: TransportRules::default(),
            #[cfg(feature = "access")]
            profile: SecurityProfile::Open,
            lane_listen_endpoints: Vec::new(),
            init_refs: Vec::new(),
            default_init_ref: None,
            file_references: true,
            threads: ThreadCount::DEFAULT,
            real_time: RealTimeMode::Preferred,
            lock_memory: false,
            priority_mapping: MappingKind::Linear,
            scheduling_policy: SchedulingPolicy::Fifo,
            priority_ceiling: None,
            priority_excess: PriorityExcess::Clamp,
            max_message_size: 16 << 20,
            fragment_size: 0,
            max_connections: 1024,
            max_connections_per_peer: 0,
            max_buffered_octets: 64 << 20,
            arena_size: 1 << 20,
            request_timeout: Duration::from_secs(60),
            connect_timeout: Duration::from_secs(10),
            input_timeout: Duration::from_secs(30),
            min_reply_rate: 1024,
            hold_timeout: Duration::from_secs(30),
            max_held_requests: 1024,
            giop_lite: false,
            max_giop_version: Version::V1_2,
            native_char_code_set: CharCodeSet::Utf8,
            char_code_set_conversion: true,
            object_key_secret: None,
            poa_demultiplexing: Demultiplexing::Active,
            servant_demultiplexing: Demultiplexing::Active,
            collocation: Collocation::ThroughPoa,
            threadpool_strategy: ThreadpoolStrategy::LeaderFollowers,
            clock_skew: Some(Duration::from_millis(100)),
            clock_uncertainty: None,
            clock_correction: 0,
            ordered_connections: false,
            lane_order: LaneOrder::Fifo,
            dynamic_thread_idle_timeout: Duration::from_secs(60),
            client_connection: ConnectionStrategy::Exclusive,
            max_client_connections: 1024,
            max_pending: 256,
            bounds: Bounds::DEFAULT,
            client_idle_timeout: None,
            server_idle_timeout: None,
            peer_timeout: None,
            share_connections_across_priorities: false,
            client_wait: WaitPolicy::Block,
            server_wait: WaitPolicy::Block,
            #[cfg(feature = "bidir")]
            bidirectional: BidirectionalConnections::Off,
            #[cfg(feature = "monitor")]
            monitor: MonitorSocket::Off,
            #[cfg(feature = "tracing")]
            log: None,
            #[cfg(feature = "faults")]
            faults: None,
            #[cfg(feature = "trace")]
            trace: TraceSettings::default(),
            #[cfg(feature = "baselines")]
            request_filters: RequestFilters::default(),
            stage_probe: None,
            #[cfg(feature = "schedule")]
            measure: 0,
            #[cfg(feature = "schedule")]
            overrun: None,
            #[cfg(feature = "schedule")]
            schedule: None,
            #[cfg(feature = "schedule")]
            schedule_node: None,
            #[cfg(feature = "schedule")]
            schedule_table: None,
            #[cfg(all(feature = "riop", feature = "schedule"))]
            scheduled_plan: None,
            max_main_thread_requests: 256,
        }
    }
}

/// The way in which objects of an ORB are called from within it.
///
/// A call within the process has the same semantics as one from outside: it waits at a holding POA
/// manager, is served at the priority of the POA's model, and gets copies of its arguments and the
/// same exceptions. The calling thread serves it, so the call ends only when the servant returns.
/// Two kinds of calls go through the transport. Objects of a thread pool of their own are served by
/// the pool's threads, unless the caller is a thread of the pool and of the priority. The callers
/// of oneway operations do not wait for the servant, so a later call may overtake them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Collocation {
    /// Through the transport, as from outside.
    Off,
    /// By the calling thread; arguments and results are marshalled.
    #[default]
    ThroughPoa,
    /// By the calling thread; generated stubs call the servant without marshalling, if that makes
    /// no difference.
    Direct,
}

/// The sides of connections on which an ORB uses bidirectional GIOP.
///
/// Except with [`Off`](Self::Off) the threads of a pool never all dispatch at a time: each lane has
/// one thread more, which reads, and requests wait in its buffer. Strategies without such a thread
/// are refused.
#[cfg(feature = "bidir")]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum BidirectionalConnections {
    /// None.
    #[default]
    Off,
    /// Servers may call back on the connections that this ORB opens by the policy
    /// [`ClientPolicy::Bidirectional`](crate::rtcorba::ClientPolicy::Bidirectional).
    Offer,
    /// This ORB calls back on connections of clients that offer it. A client is believed its own
    /// address, and with TLS the hosts that its certificate names. Without TLS it may have other
    /// addresses: these count for references in its requests alone.
    Accept,
    /// Both.
    Both,
}

#[cfg(feature = "bidir")]
impl OrbConfig {
    /// Whether connections may be bidirectional.
    pub(crate) fn is_bidirectional(&self) -> bool {
        self.bidirectional != BidirectionalConnections::Off
    }
}

#[cfg(feature = "bidir")]
impl BidirectionalConnections {
    pub(crate) fn offers(self) -> bool {
        matches!(self, Self::Offer | Self::Both)
    }

    pub(crate) fn accepts(self) -> bool {
        matches!(self, Self::Accept | Self::Both)
    }
}

/// The treatment of a request whose client propagates a priority above the ceiling.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum PriorityExcess {
    /// The request is served at the ceiling.
    #[default]
    Clamp,
    /// The request is refused: `NO_PERMISSION`, minor `0x43520004`.
    Refuse,
}

/// The way in which the threads of a client share connections to servers.
///
/// In none of them do requests of different priorities share a connection, except for those of a
/// [band](crate::rtcorba::PriorityBands).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ConnectionStrategy {
    /// Each thread has its own. No thread waits for another, and no lock is taken.
    #[default]
    Exclusive,
    /// The threads of the process share one. Of those that wait for a reply, one reads for all: the
    /// leader; once it has its own reply the most urgent one leads on.
    Leader,
    /// The threads of the process share one, and a thread of the connection reads for all. Each
    /// reply changes threads, which costs a wake-up.
    Thread,
    /// The threads of the process share one, and a thread of the connection sends and reads for
    /// all. Each request and each reply changes threads, which costs two wake-ups, and requests are
    /// sent in the order in which they were made. It serves comparisons only, and needs the feature
    /// `baselines`.
    #[cfg(feature = "baselines")]
    Active,
}

/// The way in which the threads of thread pools share reading and serving requests.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ThreadpoolStrategy {
    /// Leader/Followers: the thread that reads a request serves it, and another one reads on. No
    /// request changes threads, unless it is buffered or its thread is borrowed.
    #[default]
    LeaderFollowers,
    /// Half-Sync/Half-Async: one thread of each lane, at the lane's priority, accepts connections
    /// and reads; the others serve. Each request changes threads, which costs a wake-up.
    HalfSyncHalfAsync,
    /// A worker pool: one thread, at the pool's default priority, accepts connections and reads. It
    /// puts all requests into one queue, from which the other threads take them in the order of
    /// arrival, **whatever their priorities**. The queue is bounded by
    /// [`RequestBuffering`](crate::rtcorba::RequestBuffering), or by its own bounds. Pools with
    /// lanes are refused, because one queue for all contradicts them.
    #[cfg(feature = "baselines")]
    WorkerPool,
    /// A filter chain: one thread accepts connections and reads for all lanes of a pool, of the
    /// most urgent lane's priority. It finds the target of each request, asks the application's
    /// [filters](OrbConfig::request_filters), and leaves the request in the queue of its lane,
    /// whose threads take it from there in the order of arrival. All lanes have the same endpoints.
    /// The queues are bounded as those of a worker pool, each for itself. A pool without lanes is
    /// one of one lane.
    #[cfg(feature = "baselines")]
    FilterChain,
    /// A reactor: the one thread of each lane accepts connections, reads and serves, **however many
    /// threads were asked for**. While it serves, no input is read. Pools that buffer or borrow are
    /// refused, since there is no thread for it.
    Reactive,
    /// A thread for each connection: one thread of each lane accepts connections, and each gets a
    /// thread of the lane's priority that reads and serves until the connection ends, **however
    /// many threads were asked for**. There are at most twice as many as a lane may have
    /// [connections](OrbConfig::max_connections): one that was ended in the middle of an upcall
    /// makes room before its thread has ended. Each has a stack, two frames and an arena. Pools
    /// that buffer or borrow are refused: nothing waits for a thread.
    ThreadPerConnection,
}

/// Whether an ORB has a [monitor](crate::monitor), and where its socket is.
#[cfg(feature = "monitor")]
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum MonitorSocket {
    /// There is none, and no thread for it.
    #[default]
    Off,
    /// `<pid>-<number>.sock` in the first of [these directories](crate::monitor::directories),
    /// which is created if it is missing. It must belong to the user, with mode 0700.
    On,
    /// A socket of this name. A left-over socket without a listener is replaced.
    At(PathBuf),
}

/// A code set for `char` and `string` on the wire.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CharCodeSet {
    /// UTF-8. A single `char` is ASCII.
    #[default]
    Utf8,
    /// ISO 8859-1. Other characters are `DATA_CONVERSION` (OMG minor 1).
    Latin1,
}

/// A configuration that cannot be used.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ConfigError {
    /// The setting does not exist.
    #[error("{origin}: there is no setting {name}; {}", similar::question(.similar))]
    Unknown {
        /// The source of the value.
        origin: String,
        /// The name in that source.
        name: String,
        /// Up to three names of settings that may have been meant, the closest first; none without
        /// the feature `config-file`.
        similar: Vec<String>,
    },
    /// `-ORBHelp` was given: all options were written to standard output.
    #[error("nothing was started, because -ORBHelp asked for the list of options")]
    Help,
    /// A command line ends after an option that needs a value.
    #[error("the option {name} needs a value")]
    MissingValue {
        /// The option.
        name: String,
    },
    /// The value of a setting cannot be used.
    #[error("{origin}: {name}: {problem}")]
    BadValue {
        /// The source of the value.
        origin: String,
        /// The name in that source.
        name: String,
        /// The error, and the expected form.
        problem: String,
    },
    /// The configuration file cannot be read or is not TOML.
    #[error("the configuration file {path}: {problem}")]
    BadFile {
        /// The file.
        path: PathBuf,
        /// The reader's word.
        problem: String,
    },
}

impl ConfigError {
    /// Converts an error in the protocols, or the endpoints, of a configuration.
    pub(crate) fn of_protocols(problem: ProtocolProblem) -> Self {
        let name = match problem {
            ProtocolProblem::Endpoint(_) | ProtocolProblem::Unlistenable(..) => {
                "-ORBListenEndpoints"
            }
            ProtocolProblem::Setting(_) => "-ORBSSL…",
            #[cfg(any(feature = "faults", feature = "trace", feature = "riop"))]
            ProtocolProblem::Of { setting, .. } => setting,
            _ => "-ORBProtocols",
        };
        Self::bad_value("configuration", name, problem.to_string())
    }

    fn bad_value(origin: &str, name: &str, problem: String) -> Self {
        Self::BadValue {
            origin: origin.to_owned(),
            name: name.to_owned(),
            problem,
        }
    }
}

impl OrbConfig {
    /// Whether access rules decide to which addresses this process connects.
    pub(crate) fn judges_addresses(&self) -> bool {
        #[cfg(feature = "access")]
        return !self.client_transport_rules.is_empty();
        #[cfg(not(feature = "access"))]
        false
    }

    /// Whether the secure profile is in force.
    pub(crate) fn is_secure(&self) -> bool {
        #[cfg(feature = "access")]
        return self.profile == SecurityProfile::Secure;
        #[cfg(not(feature = "access"))]
        false
    }

    /// Returns the clock of absolute deadlines; `None` if its error is not stated.
    pub(crate) fn clock(&self) -> Option<CommonClock> {
        self.clock_uncertainty.map(|uncertainty| CommonClock {
            uncertainty: u32::try_from(uncertainty.as_nanos()).unwrap_or(u32::MAX),
            correction: self.clock_correction.saturating_mul(1_000),
        })
    }

    /// Adds a protocol of the application. Client and server both need it: clients skip profiles of
    /// protocols that they do not have.
    pub fn add_protocol(&mut self, protocol: PluggableProtocol) {
        self.pluggable_protocols.push(protocol);
    }

    /// Reads the file named by `-ORBConfigFile` or `CHRONORB_ORB_CONFIG_FILE`, the environment, and
    /// the `-ORB…` options of a command line, which it takes out of `args`.
    ///
    /// `-ORBHelp` writes all options to standard output, with the default of each and a line of
    /// explanation.
    ///
    /// # Errors
    /// [`ConfigError`] names the setting, its source, and the expected form. `args` stays
    /// unchanged. [`ConfigError::Help`] after `-ORBHelp`.
    pub fn read(args: &mut Vec<String>) -> Result<Self, ConfigError> {
        let (options, rest) = split_options(args)?;
        let environment = environment(std::env::vars_os())?;
        let mut config = Self::default();
        let mut files = options.iter().rev().chain(&environment);
        if let Some(file) = files.find(|given| given.setting.key == CONFIG_FILE) {
            let path = Path::new(&file.value);
            config.apply(&path.display().to_string(), &file::read(path)?)?;
        }
        config.apply("environment", &environment)?;
        config.apply("command line", &options)?;
        *args = rest;
        Ok(config)
    }

    /// Reads as [`read`](Self::read) does, with arguments as the system provides them
    /// (`std::env::args_os`): arguments that are not the ORB's may be anything, and stay unchanged.
    ///
    /// # Errors
    /// As [`read`](Self::read); [`ConfigError::BadValue`] where a value of the ORB's is not UTF-8.
    pub fn read_os(args: &mut Vec<OsString>) -> Result<Self, ConfigError> {
        // No argument has a NUL: it marks those that are no text.
        let text_of = |(index, arg): (usize, &OsString)| match arg.to_str() {
            Some(text) => text.to_owned(),
            None => format!("{NOT_TEXT}{index}"),
        };
        let mut texts: Vec<_> = args.iter().enumerate().map(text_of).collect();
        let config = Self::read(&mut texts)?;
        let restored = |text: String| match text.strip_prefix(NOT_TEXT) {
            Some(index) => index.parse().ok().and_then(|i: usize| args.get(i)).cloned(),
            None => Some(text.into()),
        };
        let rest = texts.into_iter().filter_map(restored).collect();
        *args = rest;
        Ok(config)
    }

    /// Returns the key and the options of every setting, and the feature that it would need where
    /// this program is built without it. For tests of documents.
    #[doc(hidden)]
    pub fn settings()
    -> impl Iterator<Item = (&'static str, &'static [&'static str], Option<&'static str>)> {
        SETTINGS.iter().map(|setting| {
            let missing = setting.missing;
            (
                setting.key,
                setting.options,
                missing.map(|missing| missing.feature),
            )
        })
    }

    /// Returns the code sets that references publish, and that a client chooses from.
    pub(crate) fn code_sets(&self) -> CodeSetComponentInfo {
        let (native, other) = match self.native_char_code_set {
            CharCodeSet::Utf8 => (UTF_8, ISO_8859_1),
            CharCodeSet::Latin1 => (ISO_8859_1, UTF_8),
        };
        let conversion = self.char_code_set_conversion.then_some(other);
        CodeSetComponentInfo::with_char(CodeSetComponent {
            native,
            conversion: conversion.into_iter().collect(),
        })
    }

    /// Checks that the settings agree.
    ///
    /// # Errors
    /// [`ConfigError::BadValue`] names the one that does not.
    #[cfg(feature = "baselines")]
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let has_chain = self.threadpool_strategy == ThreadpoolStrategy::FilterChain;
        if has_chain || self.request_filters.is_empty() {
            return Ok(());
        }
        let problem = "they would never be called: they need -ORBThreadpoolStrategy filter-chain";
        let name = "request_filters";
        Err(ConfigError::bad_value("program", name, problem.to_owned()))
    }

    /// Returns the limits of the connections of a lane, in all and for one peer.
    pub(crate) fn connection_limits(&self) -> QuotaLimits {
        let per_origin = match self.max_connections_per_peer {
            0 => (self.max_connections / 4).max(1),
            given => given,
        };
        QuotaLimits {
            total: self.max_connections.into(),
            per_origin: per_origin.into(),
        }
    }

    /// Applies the settings of one source. Its endpoints and access rules replace those of earlier
    /// sources; initial references do so name by name. The settings of an architecture are applied
    /// before its others.
    fn apply(&mut self, origin: &str, source: &[GivenSetting]) -> Result<(), ConfigError> {
        let gives = |key| source.iter().any(|given| given.setting.key == key);
        if gives("listen_endpoints") {
            self.listen_endpoints.clear();
        }
        if gives("lane_listen_endpoints") {
            self.lane_listen_endpoints.clear();
        }
        #[cfg(feature = "access")]
        for (key, rules) in [
            ("server_transport_rules", &mut self.server_transport_rules),
            ("client_transport_rules", &mut self.client_transport_rules),
        ] {
            if gives(key) {
                rules.clear();
            }
        }
        let (presets, others): (Vec<_>, Vec<_>) = source
            .iter()
            .partition(|given| given.setting.key == ARCHITECTURE);
        for given in presets.into_iter().chain(others) {
            let taken = given.setting.take(self, &given.value);
            taken.map_err(|problem| ConfigError::bad_value(origin, &given.name, problem))?;
        }
        Ok(())
    }
}

/// A setting as one source gives it.
struct GivenSetting {
    setting: &'static Setting,
    /// The name in that source.
    name: String,
    value: String,
}

/// The documents that describe all settings.
const LIST: &str = "the documentation of chronorb::config::OrbConfig and the chapter Configuration \
                    of the book list all settings";
/// The prefix of a substitute for an argument that is not UTF-8.
const NOT_TEXT: char = '\0';
const OPTION_PREFIX: &str = "-ORB";
const ENVIRONMENT_PREFIX: &str = "CHRONORB_ORB_";
/// Parts the values of a list in one environment variable.
const ENVIRONMENT_SEPARATOR: char = '|';

/// Parts a command line into `-ORB…` options and the rest.
fn split_options(args: &[String]) -> Result<(Vec<GivenSetting>, Vec<String>), ConfigError> {
    let mut options = Vec::new();
    let mut rest = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if !arg.starts_with(OPTION_PREFIX) {
            rest.push(arg.clone());
            continue;
        }
        if arg.eq_ignore_ascii_case(help::OPTION) {
            help::print();
            return Err(ConfigError::Help);
        }
        let setting = SETTINGS
            .iter()
            .find(|s| s.options.iter().any(|o| o.eq_ignore_ascii_case(arg)))
            .ok_or_else(|| {
                let (prefix, name) = arg.split_at(OPTION_PREFIX.len());
                let options = SETTINGS.iter().flat_map(|s| s.options);
                let mut names = options.map(|option| &option[OPTION_PREFIX.len()..]);
                similar::unknown("command line", prefix, name, &mut names, |name| {
                    format!("{OPTION_PREFIX}{name}")
                })
            })?;
        let missing = || ConfigError::MissingValue { name: arg.clone() };
        let mut value = args.next().ok_or_else(missing)?.clone();
        if setting.key == "lane_listen_endpoints" && !value.contains(' ') {
            // TAO's spelling has the lane and the endpoint as two arguments.
            value = format!("{value} {}", args.next().ok_or_else(missing)?);
        }
        if value.contains(NOT_TEXT) {
            let problem = "the value is not UTF-8".to_owned();
            return Err(ConfigError::bad_value("command line", arg, problem));
        }
        options.push(GivenSetting {
            setting,
            name: arg.clone(),
            value,
        });
    }
    Ok((options, rest))
}

/// Returns the settings of the environment; the values of lists are separated by `|`.
fn environment(
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Result<Vec<GivenSetting>, ConfigError> {
    let mut given = Vec::new();
    for (name, value) in variables {
        let Some(name) = name.to_str() else { continue };
        let Some(key) = name.strip_prefix(ENVIRONMENT_PREFIX) else {
            continue;
        };
        let setting = SETTINGS.iter().find(|s| s.key.eq_ignore_ascii_case(key));
        let setting = setting.ok_or_else(|| {
            let mut keys = SETTINGS.iter().map(|s| s.key);
            similar::unknown("environment", ENVIRONMENT_PREFIX, key, &mut keys, |key| {
                format!("{ENVIRONMENT_PREFIX}{}", key.to_ascii_uppercase())
            })
        })?;
        let value = value.to_str().ok_or_else(|| {
            let problem = format!("{value:?} is not UTF-8");
            ConfigError::bad_value("environment", name, problem)
        })?;
        for value in elements(setting, value) {
            given.push(GivenSetting {
                setting,
                name: name.to_owned(),
                value: value.to_owned(),
            });
        }
    }
    Ok(given)
}

/// The elements of a list; an endpoint may have the separator in it, before its options.
fn elements<'v>(setting: &Setting, value: &'v str) -> Vec<&'v str> {
    if !setting.key.ends_with("listen_endpoints") {
        return value.split(ENVIRONMENT_SEPARATOR).collect();
    }
    let mut elements = Vec::new();
    let mut start = 0;
    for (at, _) in value.match_indices(ENVIRONMENT_SEPARATOR) {
        let next = value[at + 1..].split(ENVIRONMENT_SEPARATOR).next();
        if next.is_some_and(|next| next.contains("://")) {
            elements.push(&value[start..at]);
            start = at + 1;
        }
    }
    elements.push(&value[start..]);
    elements
}

#[cfg(test)]
mod left_out;
#[cfg(test)]
mod tests;
