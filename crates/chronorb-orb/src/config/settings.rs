//! The table of settings: their fields, defaults, names, help and parsers.
//!
//! A new setting is a row here, with a field if it has one of its own, and its rows in
//! `docs/src/configuration.md`, which a test compares with the table. `table.rs` explains the form.

use std::time::Duration;

use chronorb_cdr::Bounds;
use chronorb_giop::Version;
use chronorb_giop::connection::MessageWriter;
use chronorb_transport::{Endpoint, EndpointError, WaitPolicy, parse_endpoints};

use super::table::{Apply, Setting, milliseconds, nothing, number, parsed, put};
use super::*;
use crate::demux::Demultiplexing;
use crate::key_codes::ObjectKeySecret;
use crate::protocol::PluggableProtocol;
use crate::rtcorba::{LaneOrder, MappingKind, Priority, SchedulingPolicy};
use crate::stage::StageProbe;

pub(super) const CONFIG_FILE: &str = "config_file";
pub(super) const ARCHITECTURE: &str = "architecture";
/// In microseconds: longer than a call to the same machine takes.
const DEFAULT_SPIN: u64 = 50;
/// In microseconds; longer waits are `poll`.
const MAX_SPIN: u64 = 1_000_000;
/// The unit of allowances for clocks, and the greatest number of them: a day.
const CLOCK_SKEWS: (Duration, u64) = (Duration::from_millis(1), 86_400_000);
/// The unit of errors of clocks, and the greatest number of them that fits into the context of a
/// request.
const CLOCK_ERRORS: (Duration, u64) = (Duration::from_micros(1), 4_000_000);
/// The greatest correction of a clock, in microseconds: a day.
const MAX_CLOCK_CORRECTION: u64 = 86_400_000_000;

const MAX_PRIORITY: u64 = Priority::MAX.value() as u64;

settings! {
    /// The settings of an ORB.
    ///
    /// Most programs use [`Orb::init`](crate::Orb::init), which reads them; tests and
    /// programs that embed an ORB may fill in one by hand.
    #[derive(Clone, Debug)]
    #[non_exhaustive]
    pub struct OrbConfig;

    "config-file" {
        [config_file, "-ORBConfigFile", "FILE: a TOML file of settings" => Text(nothing)]
    }
    always {
        /// `-ORBId`: the name of this ORB in thread names and messages.
        pub orb_id: String = "chronorb".to_owned();
        ["-ORBId", "NAME: the name in thread names and messages [chronorb]" => Parsed]
        /// `-ORBListenEndpoints`: where the default thread pool listens.
        pub listen_endpoints: Vec<Endpoint> = Vec::new();
        ["-ORBListenEndpoints" | "-ORBEndpoint",
            "ENDPOINT: where the default thread pool listens; may be repeated"
            => List(|config, text| {
            config.listen_endpoints.extend(endpoints(text)?);
            Ok(())
        })]
        /// `-ORBProtocols SCHEME,SCHEME…`: the protocols that there shall be, the one first that
        /// calls go by where a server has several; empty for all that this program has, in an order
        /// of the ORB.
        pub protocols: Vec<String> = Vec::new();
        ["-ORBProtocols", "SCHEME,…: the protocols, the preferred one first" => Value(|text| {
            let schemes = text.split(',').map(|scheme| scheme.trim_ascii().to_ascii_lowercase());
            Ok(schemes.collect())
        })]
        /// Protocols of the application, which are preferred to those of the ORB.
        pub(crate) pluggable_protocols: Vec<PluggableProtocol> = Vec::new();
    }
    only "miop" {
        /// `-ORBMulticast NAME=VALUE&…`: how groups are called and listened at.
        pub multicast: chronorb_transport::multicast::MulticastOptions = Default::default();
        ["-ORBMulticast",
            "NAME=VALUE&…: how groups are called and listened at"
            => Value(chronorb_transport::multicast::MulticastOptions::parse)]
    }
    only "ssliop" {
        /// `-ORBSSLCertificate`, `-ORBSSLPrivateKey`, `-ORBSSLCertificateAuthority`,
        /// `-ORBSSLRevocationList`, `-ORBSSLVerify`, `-ORBSSLVersions`: the TLS identity of this
        /// program, and the authorities that it trusts.
        pub ssl: chronorb_transport::tls::TlsSettings = Default::default();
        [ssl_certificate at ssl.certificate, "-ORBSSLCertificate" | "-ORBsslKeyFile",
            "FILE: the certificate of this program, PEM" => Optional]
        [ssl_private_key at ssl.private_key, "-ORBSSLPrivateKey",
            "FILE: the private key, if not in the file of the certificate" => Optional]
        [ssl_certificate_authority at ssl.authority,
            "-ORBSSLCertificateAuthority" | "-ORBsslCAFile",
            "FILE: the authorities that are trusted" => Optional]
        [ssl_revocation_list at ssl.revocation_list, "-ORBSSLRevocationList",
            "FILE: revoked certificates" => Optional]
        [ssl_verify at ssl.verify, "-ORBSSLVerify",
            "none|peer|mutual: the certificates that are asked for [peer]" => Parsed]
        [ssl_versions at ssl.versions, "-ORBSSLVersions",
            "VERSION,…: versions of TLS [1.2,1.3]" => Parsed]
    }
    only "access" {
        /// `-ORBServerTransportRule RULE`: the peers that may connect; the first rule that matches
        /// decides. Without a rule all may.
        pub server_transport_rules: crate::access::TransportRules = Default::default();
        ["-ORBServerTransportRule",
            "RULE: which peers may connect; may be repeated" => List(|config, text| {
            config.server_transport_rules.push(parsed(text)?);
            Ok(())
        })]
        /// `-ORBClientTransportRule RULE`: the servers that this program may connect to; the first
        /// rule that matches decides. Without a rule it may connect to all.
        pub client_transport_rules: crate::access::TransportRules = Default::default();
        ["-ORBClientTransportRule",
            "RULE: to which servers to connect; may be repeated" => List(|config, text| {
            config.client_transport_rules.push(parsed(text)?);
            Ok(())
        })]
    }
    "access" {
        /// `-ORBProfile`: the requirements on other settings.
        pub profile: SecurityProfile = SecurityProfile::Open;
        ["-ORBProfile",
            "open|secure: requirements on other settings [open]", else ["open"] => Parsed]
    }
    only "riop" {
        /// The network interface and the parameters of the real-time I/O subsystem, which carries
        /// IIOP.
        pub rio: RioSettings = RioSettings::default();
        [rio_interface at rio.interface, "-ORBRioInterface",
            "NAME: the network interface of real-time I/O" => Value(|text| match text {
            "" => Err("there is no name".to_owned()),
            name => Ok(Some(name.to_owned())),
        })]
        [rio_driver at rio.driver, "-ORBRioDriver",
            "auto|xdp|packet|kernel: the driver of real-time I/O [auto]" => Parsed]
        [rio_plan at rio.plan, "-ORBRioPlan", "FILE: the plan of real-time I/O" => Optional]
    }
    only "riop" & "schedule" {
        /// The plan of real-time I/O of the schedule that the ORB starts with.
        pub(crate) scheduled_plan: Option<ScheduledPlan> = None;
    }
    always {
        /// `-ORBLaneListenEndpoints POOL:LANE ENDPOINT`: where lanes of RT-CORBA thread pools
        /// listen; pools count from 1 in order of creation, lanes from 0. Other lanes take a free
        /// port of the host of the first listen endpoint.
        pub lane_listen_endpoints: Vec<((u32, u32), Endpoint)> = Vec::new();
        ["-ORBLaneListenEndpoints" | "-ORBLaneEndpoint",
            "POOL:LANE ENDPOINT: where a lane listens; may be repeated" => List(|config, text| {
            let (lane, text) = text
                .trim_ascii()
                .split_once(|character: char| character.is_ascii_whitespace())
                .ok_or_else(|| format!("{text:?} is not POOL:LANE ENDPOINT"))?;
            let lane = lane
                .split_once(':')
                .and_then(|(pool, lane)| Some((pool.parse().ok()?, lane.parse().ok()?)))
                .ok_or_else(|| format!("{lane:?} is not POOL:LANE, for example 1:0"))?;
            let found = endpoints(text)?.into_iter().map(|endpoint| (lane, endpoint));
            config.lane_listen_endpoints.extend(found);
            Ok(())
        })]
        /// `-ORBInitRef NAME=URL`: initial references.
        pub init_refs: Vec<(String, String)> = Vec::new();
        ["-ORBInitRef", "NAME=URL: an initial reference; may be repeated" => Text(|config, text| {
            let (name, url) = text
                .split_once('=')
                .ok_or_else(|| format!("{text:?} is not NAME=URL"))?;
            config.init_refs.retain(|(present, _)| present != name);
            config.init_refs.push((name.to_owned(), url.to_owned()));
            Ok(())
        })]
        /// `-ORBDefaultInitRef URL`: the base URL of initial references that are not configured;
        /// `/NAME` is appended to it.
        pub default_init_ref: Option<String> = None;
        ["-ORBDefaultInitRef", "URL: other initial references; /NAME is added" => Optional]
        /// `-ORBFileReferences`: whether `string_to_object`, and names with `-ORBDefaultInitRef`,
        /// may lead to `file:`. URLs of `-ORBInitRef` always may.
        pub file_references: bool = true;
        ["-ORBFileReferences", "whether references may name files" => Bool]
        /// `-ORBThreads`: threads of the default thread pool, 1 to 1024. It grows while all its
        /// threads are busy, up to the greatest number.
        pub threads: ThreadCount = ThreadCount::DEFAULT;
        ["-ORBThreads",
            "N|N-M: threads of the default thread pool, at least and at most [2-128]" => Parsed]
        /// `-ORBRealTime`: whether real-time scheduling is wanted.
        pub real_time: RealTimeMode = RealTimeMode::Preferred;
        ["-ORBRealTime", "real-time scheduling [preferred]" => Choice {
            "required" => RealTimeMode::Required,
            "preferred" => RealTimeMode::Preferred,
            "off" => RealTimeMode::Off,
        }]
        /// `-ORBGIOPLite`: whether messages go by GIOPlite on connections whose other end wants
        /// that too.
        pub giop_lite: bool = false;
        ["-ORBGIOPLite", "short message headers where the peer agrees" => Bool]
        /// `-ORBLockMemory`: lock all memory of the process at start.
        pub lock_memory: bool = false;
        ["-ORBLockMemory", "lock the memory of the process" => Bool]
        /// `-ORBPriorityMapping`: how CORBA priorities become native ones. The application's own is
        /// set here, and not by a text.
        pub priority_mapping: MappingKind = MappingKind::Linear;
        ["-ORBPriorityMapping", "from CORBA priorities to native ones [linear]" => Choice {
            "linear" => MappingKind::Linear,
            "direct" => MappingKind::Direct,
            "continuous" => MappingKind::Continuous,
        }]
        /// `-ORBSchedulingPolicy`: the policy of the ORB's real-time threads, and of threads that
        /// set a priority by it; with [`SchedulingPolicy::Other`] none of them is a real-time
        /// thread.
        pub scheduling_policy: SchedulingPolicy = SchedulingPolicy::Fifo;
        ["-ORBSchedulingPolicy" | "-ORBSchedPolicy",
            "fifo|rr|other: the policy of real-time threads [fifo]" => Value(|text| match text {
            "fifo" | "SCHED_FIFO" => Ok(SchedulingPolicy::Fifo),
            "rr" | "SCHED_RR" => Ok(SchedulingPolicy::RoundRobin),
            "other" | "SCHED_OTHER" => Ok(SchedulingPolicy::Other),
            other => Err(format!("{other:?} is not fifo, rr or other")),
        })]
        /// `-ORBPriorityCeiling`: the most urgent priority that clients may propagate to a POA
        /// without lanes, bands and a ceiling of its own.
        pub priority_ceiling: Option<Priority> = None;
        ["-ORBPriorityCeiling",
            "none|0..32767: the most urgent priority of clients [none]" => Value(|text| match text {
            "none" => Ok(None),
            text => number(text, 0, MAX_PRIORITY).map(|priority| Priority::new(priority as i16)),
        })]
        /// `-ORBPriorityExcess`: the treatment of a request whose client propagates a priority
        /// above the ceiling.
        pub priority_excess: PriorityExcess = PriorityExcess::Clamp;
        ["-ORBPriorityExcess", "what happens to requests above the ceiling [clamp]" => Choice {
            "clamp" => PriorityExcess::Clamp,
            "refuse" => PriorityExcess::Refuse,
        }]
        /// `-ORBMaxMessageSize`: the greatest GIOP message in octets, both ways.
        pub max_message_size: usize = 16 << 20;
        ["-ORBMaxMessageSize", "octets of a message" => Usize(1 << 10, 1 << 30)]
        /// `-ORBFragmentSize`: messages of more octets than this are sent in fragments of at most
        /// so many, where GIOP 1.2 is spoken; 0 for whole messages only.
        pub fragment_size: usize = 0;
        ["-ORBFragmentSize",
            "OCTETS: split longer messages; 0 for never [0]" => Value(|text| match text {
            "0" => Ok(0),
            text => number(text, MessageWriter::LEAST_FRAGMENT as u64, 1 << 30)
                .map(|size| size as usize)
                .map_err(|problem| format!("{problem}, or 0")),
        })]
        /// `-ORBMaxConnections`: the greatest number of connections of each lane.
        pub max_connections: u32 = 1024;
        ["-ORBMaxConnections", "connections of a lane" => U32(1, 1 << 20)]
        /// `-ORBMaxConnectionsPerPeer`: the greatest number of connections of each lane that one
        /// host, or one user of this machine at Unix-domain sockets, may have; 0 for a quarter of
        /// [`max_connections`](Self::max_connections). The loopback has no such limit.
        pub max_connections_per_peer: u32 = 0;
        ["-ORBMaxConnectionsPerPeer",
            "connections of a peer; 0 for a quarter of all" => U32(0, 1 << 20)]
        /// `-ORBMaxBufferedOctets`: how much incomplete input and unsent output a lane keeps for
        /// all its connections together.
        pub max_buffered_octets: usize = 64 << 20;
        ["-ORBMaxBufferedOctets", "octets that a lane buffers" => Usize(1 << 16, 1 << 40)]
        /// `-ORBArenaSize`: octets of each thread's arena for demarshalled values.
        pub arena_size: usize = 1 << 20;
        ["-ORBArenaSize", "octets of a thread's arena" => Usize(1 << 12, 1 << 32)]
        /// `-ORBRequestTimeout` (milliseconds): the longest duration of a call in all.
        pub request_timeout: Duration = Duration::from_secs(60);
        ["-ORBRequestTimeout", "the longest time of a call" => Time]
        /// `-ORBConnectTimeout` (milliseconds): how long one attempt to connect may take.
        pub connect_timeout: Duration = Duration::from_secs(10);
        ["-ORBConnectTimeout", "the longest time of an attempt to connect" => Time]
        /// `-ORBInputTimeout` (milliseconds): the time that a peer may take to complete a message
        /// that it began, or its first one, and the time that it may take nothing, or too little,
        /// of a reply.
        pub input_timeout: Duration = Duration::from_secs(30);
        ["-ORBInputTimeout", "the longest time for a message or a reply in parts" => Time]
        /// `-ORBMinReplyRate`: the octets of replies that a peer must receive in each second while
        /// some wait for it; 0 for none.
        pub min_reply_rate: u32 = 1024;
        ["-ORBMinReplyRate", "octets/s that a peer has to receive of replies" => U32(0, 1 << 30)]
        /// `-ORBHoldTimeout` (milliseconds): how long a request waits at a holding POA manager.
        pub hold_timeout: Duration = Duration::from_secs(30);
        ["-ORBHoldTimeout", "the longest time at a holding POA manager" => Time]
        /// `-ORBMaxHeldRequests`: how many requests of a lane may wait for holding POA managers and
        /// single-threaded POAs, 1 to 1048576.
        pub max_held_requests: usize = 1024;
        ["-ORBMaxHeldRequests", "requests of a lane that are held" => Usize(1, 1 << 20)]
        /// `-ORBMaxGIOPVersion`: the greatest version to speak.
        pub max_giop_version: Version = Version::V1_2;
        ["-ORBMaxGIOPVersion", "the greatest version of GIOP [1.2]" => Choice {
            "1.0" => Version::V1_0,
            "1.1" => Version::V1_1,
            "1.2" => Version::V1_2,
        }]
        /// `-ORBNativeCharCodeSet`: the code set for `char` and `string` that is preferred.
        pub native_char_code_set: CharCodeSet = CharCodeSet::Utf8;
        ["-ORBNativeCharCodeSet", "the preferred code set of strings [utf-8]" => Choice {
            "utf-8" => CharCodeSet::Utf8,
            "iso-8859-1" => CharCodeSet::Latin1,
        }]
        /// `-ORBCharCodeSetConversion`: whether the other code set may be agreed on, too.
        pub char_code_set_conversion: bool = true;
        ["-ORBCharCodeSetConversion", "whether the other code set may be used" => Bool]
    }
    "access" {
        /// `-ORBObjectKeySecret FILE`: the secret with which object keys of persistent POAs are
        /// authenticated, if these ask for it; a file of 16 random octets.
        pub object_key_secret: Option<ObjectKeySecret> = None;
        ["-ORBObjectKeySecret",
            "FILE: the secret that authenticates object keys"
            => Value(|text| ObjectKeySecret::read(text.as_ref()).map(Some))]
    }
    always {
        /// `-ORBPOADemultiplexing`: how requests find their POA.
        pub poa_demultiplexing: Demultiplexing = Demultiplexing::Active;
        ["-ORBPOADemultiplexing",
            "active|hash|linear: how POAs are found [active]" => Value(demultiplexing)]
        /// `-ORBServantDemultiplexing`: how requests find their servant within a POA.
        pub servant_demultiplexing: Demultiplexing = Demultiplexing::Active;
        ["-ORBServantDemultiplexing",
            "active|hash|linear: how servants are found [active]" => Value(demultiplexing)]
        /// `-ORBCollocation`: how objects of this ORB are called from within it.
        pub collocation: Collocation = Collocation::ThroughPoa;
        ["-ORBCollocation", "calls within the process [poa]" => Choice {
            "off" => Collocation::Off,
            "poa" => Collocation::ThroughPoa,
            "direct" => Collocation::Direct,
        }]
        [architecture, "-ORBArchitecture",
            "NAME: settings of an architecture [real-time]" => Text(architecture::apply)]
        /// `-ORBThreadpoolStrategy`: how threads of pools share the work.
        pub threadpool_strategy: ThreadpoolStrategy = ThreadpoolStrategy::LeaderFollowers;
        ["-ORBThreadpoolStrategy", "how threads of pools share work [leader-followers]" => Choice {
            "leader-followers" => ThreadpoolStrategy::LeaderFollowers,
            "half-sync" => ThreadpoolStrategy::HalfSyncHalfAsync,
            "worker-pool" ["baselines"] => ThreadpoolStrategy::WorkerPool,
            "filter-chain" ["baselines"] => ThreadpoolStrategy::FilterChain,
            "reactive" => ThreadpoolStrategy::Reactive,
            "thread-per-connection" => ThreadpoolStrategy::ThreadPerConnection,
        }]
        /// `-ORBClockSkew` (milliseconds, or `off`): the allowance for the difference of clocks. A
        /// server does not serve a request whose end time passed longer ago; `None` to serve all.
        pub clock_skew: Option<Duration> = Some(Duration::from_millis(100));
        ["-ORBClockSkew",
            "off|MS: allowance for the clocks of clients at end times [100]"
            => Value(|text| bound(text, CLOCK_SKEWS))]
        /// `-ORBClockUncertainty` (microseconds, or `off`): the greatest error of this machine's
        /// `CLOCK_TAI`. Requests then carry [deadlines](crate::rtcorba::TimeConstraint) by that
        /// clock too, and those that arrive so count; `None` for the time that is left alone.
        pub clock_uncertainty: Option<Duration> = None;
        ["-ORBClockUncertainty",
            "off|US: the greatest error of CLOCK_TAI, for deadlines by that clock [off]"
            => Value(|text| bound(text, CLOCK_ERRORS))]
        /// `-ORBClockCorrection` (microseconds, perhaps negative): what has to be added to this
        /// machine's `CLOCK_TAI`, as 37 seconds where the kernel does not know the leap seconds.
        pub clock_correction: i64 = 0;
        ["-ORBClockCorrection",
            "US: what is to be added to CLOCK_TAI [0]" => Value(clock_correction)]
        /// `-ORBOrderedConnections`: whether the requests of a connection are served one at a time,
        /// in the order of arrival, as by a server with one thread. Those of different connections
        /// are served beside each other all the same.
        pub ordered_connections: bool = false;
        ["-ORBOrderedConnections",
            "serve the requests of a connection in the order of arrival" => Bool]
        /// `-ORBLaneOrder`: the order in which requests that wait in a lane are served, for lanes
        /// and pools that name none.
        pub lane_order: LaneOrder = LaneOrder::Fifo;
        ["-ORBLaneOrder", "how requests that wait in a lane are ordered [fifo]" => Choice {
            "fifo" => LaneOrder::Fifo,
            "deadline" => LaneOrder::Deadline,
            "laxity" => LaneOrder::Laxity,
            "muf" => LaneOrder::Urgency,
        }]
        /// `-ORBDynamicThreadIdleTimeout` (milliseconds): how long a thread that was made on demand
        /// stays without work.
        pub dynamic_thread_idle_timeout: Duration = Duration::from_secs(60);
        ["-ORBDynamicThreadIdleTimeout",
            "the idle time after which threads made on demand end" => Time]
        /// `-ORBClientConnection`: how a client's threads have connections to servers.
        pub client_connection: ConnectionStrategy = ConnectionStrategy::Exclusive;
        ["-ORBClientConnection", "how threads share connections [exclusive]" => Choice {
            "exclusive" => ConnectionStrategy::Exclusive,
            "leader" => ConnectionStrategy::Leader,
            "thread" => ConnectionStrategy::Thread,
            "active" ["baselines"] => ConnectionStrategy::Active,
        }]
        /// `-ORBMaxClientConnections`: the greatest number of connections to servers, of all
        /// threads together, 1 to 1048576.
        pub max_client_connections: u32 = 1024;
        ["-ORBMaxClientConnections", "connections to servers" => U32(1, 1 << 20)]
        /// `-ORBMaxPending`: how many asynchronous calls may be under way, 1 to 65536.
        pub max_pending: usize = 256;
        ["-ORBMaxPending", "asynchronous calls under way" => Usize(1, 1 << 16)]
        /// `-ORBMaxValueIds`, `-ORBMaxValueIdLength`, `-ORBMaxTypeNameLength`,
        /// `-ORBMaxTypeMembers`: the bounds of identifiers, names and members in received values, 1
        /// to 1048576 each.
        pub bounds: Bounds = Bounds::DEFAULT;
        [max_value_ids at bounds.value_ids, "-ORBMaxValueIds",
            "repository identifiers of a value" => U32(1, 1 << 20)]
        [max_value_id_length at bounds.value_id_octets, "-ORBMaxValueIdLength",
            "octets of such an identifier" => U32(1, 1 << 20)]
        [max_type_name_length at bounds.type_name_octets, "-ORBMaxTypeNameLength",
            "octets of a name in a type code" => U32(1, 1 << 20)]
        [max_type_members at bounds.type_members, "-ORBMaxTypeMembers",
            "members of a type code" => U32(1, 1 << 20)]
        /// `-ORBClientIdleTimeout` (milliseconds, 0 for never): the time that an unused connection
        /// to a server stays open. Calling threads check it.
        pub client_idle_timeout: Option<Duration> = None;
        ["-ORBClientIdleTimeout",
            "MS: the idle time after which clients close; 0 for never [0]" => Value(idle_timeout)]
        /// `-ORBServerIdleTimeout` (milliseconds, 0 for never): after how long without a request a
        /// connection of a client is closed, in order; at the latest after twice that.
        pub server_idle_timeout: Option<Duration> = None;
        ["-ORBServerIdleTimeout",
            "MS: the idle time after which servers close; 0 for never [0]" => Value(idle_timeout)]
        /// `-ORBPeerTimeout` (milliseconds, 0 for the kernel's times): after how long without a
        /// sign of life of the other side a connection of TCP ends, of a client or of a server.
        /// Octets that were sent are acknowledged in that time (`TCP_USER_TIMEOUT`), and so are the
        /// probes of an idle connection, which begin after half of it (`TCP_KEEPIDLE`, whole
        /// seconds).
        pub peer_timeout: Option<Duration> = None;
        ["-ORBPeerTimeout",
            "MS: the time without a sign of life after which a connection ends; 0 for TCP's own [0]"
            => Value(idle_timeout)]
        /// `-ORBShareConnectionsAcrossPriorities`: whether requests of all priorities share
        /// connections. **It inverts priorities**, and is there to measure that.
        pub share_connections_across_priorities: bool = false;
        ["-ORBShareConnectionsAcrossPriorities", "one connection for all priorities" => Bool]
        /// `-ORBClientWait`: how a client's thread waits for its reply.
        pub client_wait: WaitPolicy = WaitPolicy::Block;
        ["-ORBClientWait", "block|spin[:US]|poll: how clients wait [block]" => Value(waiting)]
        /// `-ORBServerWait`: how the threads of lanes wait for requests.
        pub server_wait: WaitPolicy = WaitPolicy::Block;
        ["-ORBServerWait", "block|spin[:US]|poll: how lanes wait [block]" => Value(waiting)]
    }
    "bidir" {
        /// `-ORBBiDir`: whether servers may call back on connections that this program opens, and
        /// whether it calls back on those of its clients (bidirectional GIOP).
        pub bidirectional: BidirectionalConnections = BidirectionalConnections::Off;
        ["-ORBBiDir", "callbacks on the client's connections [off]", else ["off"] => Choice {
            "off" => BidirectionalConnections::Off,
            "offer" => BidirectionalConnections::Offer,
            "accept" => BidirectionalConnections::Accept,
            "both" => BidirectionalConnections::Both,
        }]
    }
    "monitor" {
        /// `-ORBMonitor`: whether the state of its lanes and threads can be read by a local socket.
        pub monitor: MonitorSocket = MonitorSocket::Off;
        ["-ORBMonitor",
            "off|on|PATH: a socket for chronorb top [off]", else ["off"]
            => Value(|text| match text {
            "off" => Ok(MonitorSocket::Off),
            "on" => Ok(MonitorSocket::On),
            path if path.contains('/') => Ok(MonitorSocket::At(path.into())),
            other => Err(format!("{other:?} is not off, on or a path with a /")),
        })]
    }
    only "tracing" {
        /// `-ORBLog`: which events are written to standard error, in a program without a subscriber
        /// of `tracing`. Where it is given, [`Orb::with_config`](crate::Orb::with_config) installs
        /// the [log](crate::log).
        pub log: Option<crate::log_filter::LogFilter> = None;
        ["-ORBLog", "FILTER: events to write to standard error", else ["off"] => Optional]
    }
    only "faults" {
        /// `-ORBFaults PLANS`: injected faults by protocol, for tests of programs; none by default.
        pub faults: Option<chronorb_transport::faults::FaultPlans> = None;
        ["-ORBFaults",
            "PLANS: injected faults by protocol", else ["off"] => Value(|text| match text {
            "off" => Ok(None),
            plans => chronorb_transport::faults::FaultPlans::parse(plans)
                .map(Some)
                .map_err(|error| error.to_string()),
        })]
    }
    "trace" {
        /// The recording of the octets of connections.
        pub trace: TraceSettings = TraceSettings::default();
        [trace_file at trace.file, "-ORBTraceFile",
            "FILE: a recording of all connections", else ["off"] => Value(|text| match text {
            "off" => Ok(None),
            "" => Err("there is no path".to_owned()),
            path => Ok(Some(path.into())),
        })]
        [trace_size at trace.size, "-ORBTraceSize",
            "OCTETS: the size of a recording" => Value(|text| number(text, 1 << 16, 1 << 40))]
    }
    only "baselines" {
        /// The application's filters of requests, in order. Without the strategy [filter
        /// chain](ThreadpoolStrategy::FilterChain) they make
        /// [`Orb::with_config`](crate::Orb::with_config) fail.
        pub request_filters: RequestFilters = RequestFilters::default();
    }
    always {
        /// A probe that each thread calls at the stages of a request; for tests and measurements.
        pub stage_probe: Option<StageProbe> = None;
    }
    only "schedule" {
        /// `-ORBMeasure N`: one request in so many of each operation is measured; none for 0.
        pub measure: u32 = 0;
        ["-ORBMeasure",
            "one request in so many of each operation is measured; 0 for none", else ["0"]
            => U32(0, 1 << 20)]
        /// `-ORBSchedule FILE`: the schedule that the ORB starts with, or its lock file.
        pub schedule: Option<PathBuf> = None;
        ["-ORBSchedule", "FILE: the schedule to start with" => Optional]
        /// `-ORBScheduleNode NAME`: the node of the schedule that this program is; by default the
        /// only one, or the one named as the [ORB](Self::orb_id).
        pub schedule_node: Option<String> = None;
        ["-ORBScheduleNode", "NAME: the node of the schedule that this program is" => Optional]
        /// `-ORBOverrun`: the treatment of operations that exceed the budgets of the schedule,
        /// where that does not name another; `None` for no measurement of them.
        pub overrun: Option<crate::schedule_table::OverrunPolicy> = None;
        ["-ORBOverrun",
            "off|log|demote|skip: operations that exceed their budgets [off]", else ["off"]
            => Value(|text| match text {
            "off" => Ok(None),
            text => text
                .parse()
                .map(Some)
                .map_err(|_| format!("{text:?} is not off, log, demote or skip")),
        })]
        /// The operations of the schedule, by which budgets and deadlines are known. Those of
        /// [`schedule`](Self::schedule) replace them.
        pub schedule_table: Option<std::sync::Arc<crate::schedule_table::ScheduleTable>> = None;
    }
    always {
        /// `-ORBMaxMainThreadRequests`: how many requests may wait for the main thread, 1 to
        /// 1048576.
        pub max_main_thread_requests: usize = 256;
        ["-ORBMaxMainThreadRequests", "requests that wait for the main thread" => Usize(1, 1 << 20)]
    }
}

fn endpoints(text: &str) -> Result<Vec<Endpoint>, String> {
    parse_endpoints(text).map_err(|e: EndpointError| e.to_string())
}

/// Milliseconds; 0 is never.
fn idle_timeout(text: &str) -> Result<Option<Duration>, String> {
    match text {
        "0" => Ok(None),
        text => milliseconds(text).map(Some),
    }
}

/// `off`, or a number of units up to a greatest one.
fn bound(text: &str, (unit, greatest): (Duration, u64)) -> Result<Option<Duration>, String> {
    match text {
        "off" => Ok(None),
        text => number(text, 0, greatest)
            .map(|units| Some(unit.saturating_mul(units as u32)))
            .map_err(|problem| format!("{problem}, or off")),
    }
}

/// Microseconds, perhaps negative.
fn clock_correction(text: &str) -> Result<i64, String> {
    let digits = text.strip_prefix('-');
    let size = number(digits.unwrap_or(text), 0, MAX_CLOCK_CORRECTION)?.cast_signed();
    Ok(if digits.is_some() { -size } else { size })
}

/// `block`, `spin`, `spin:MICROSECONDS` or `poll`.
fn waiting(text: &str) -> Result<WaitPolicy, String> {
    let spin = |microseconds| WaitPolicy::Spin(Duration::from_micros(microseconds));
    match text.split_once(':').unwrap_or((text, "")) {
        ("block", "") => Ok(WaitPolicy::Block),
        ("poll", "") => Ok(WaitPolicy::Poll),
        ("spin", "") => Ok(spin(DEFAULT_SPIN)),
        ("spin", microseconds) => number(microseconds, 1, MAX_SPIN).map(spin),
        _ => Err(format!(
            "{text:?} is not block, spin, spin:MICROSECONDS or poll"
        )),
    }
}

fn demultiplexing(text: &str) -> Result<Demultiplexing, String> {
    match text {
        "active" => Ok(Demultiplexing::Active),
        "hash" => Ok(Demultiplexing::DynamicHash),
        "linear" => Ok(Demultiplexing::LinearSearch),
        other => Err(format!("{other:?} is not active, hash or linear")),
    }
}
