//! All settings, with their names and parsers.

#[cfg(feature = "access")]
use std::path::Path;
#[cfg(any(feature = "ssliop", feature = "riop", feature = "schedule"))]
use std::path::PathBuf;
use std::time::Duration;

use chronorb_giop::Version;
use chronorb_giop::connection::MessageWriter;
#[cfg(feature = "miop")]
use chronorb_transport::multicast::MulticastOptions;
use chronorb_transport::{Endpoint, EndpointError, WaitPolicy, parse_endpoints};

use super::*;
use crate::demux::Demultiplexing;
#[cfg(feature = "access")]
use crate::key_codes::ObjectKeySecret;

/// One setting: its texts, and the kind of its value.
pub(super) struct Setting {
    /// The key, as in a file.
    pub(super) key: &'static str,
    /// The names of its option.
    pub(super) options: &'static [&'static str],
    /// The line of `-ORBHelp`: for [`Apply::Text`] the form of the value and `: `, then the
    /// meaning; in brackets the default, if it is not a boolean or a number.
    pub(super) help: &'static str,
    /// The feature of the setting, if the program is built without it.
    pub(super) missing: Option<&'static MissingFeature>,
    pub(super) apply: Apply,
}

/// The kinds of settings, and the places of their values.
pub(super) enum Apply {
    Bool(fn(&mut OrbConfig) -> &mut bool),
    /// A number from the first bound to the second.
    U32(fn(&mut OrbConfig) -> &mut u32, u32, u32),
    Usize(fn(&mut OrbConfig) -> &mut usize, u64, u64),
    /// In milliseconds.
    Time(fn(&mut OrbConfig) -> &mut Duration),
    /// One of these names.
    Choice(&'static [NamedValue]),
    Text(fn(&mut OrbConfig, &str) -> Result<(), String>),
}

/// A name, and the function that sets its value; `None` if the program is built without its
/// feature, [`BASELINES`].
pub(super) type NamedValue = (&'static str, Option<fn(&mut OrbConfig)>);

impl Apply {
    fn apply(&self, config: &mut OrbConfig, text: &str) -> Result<(), String> {
        match *self {
            Self::Bool(place) => {
                *place(config) = match text {
                    "true" | "yes" | "1" => true,
                    "false" | "no" | "0" => false,
                    other => return Err(format!("{other:?} is not true or false")),
                };
            }
            Self::U32(place, least, greatest) => {
                *place(config) = number(text, least.into(), greatest.into())? as u32;
            }
            Self::Usize(place, least, greatest) => {
                *place(config) = number(text, least, greatest)? as usize;
            }
            Self::Time(place) => *place(config) = milliseconds(text)?,
            Self::Choice(choices) => {
                let chosen = choices.iter().find(|(name, _)| *name == text);
                let (_, choose) = chosen.ok_or_else(|| no_choice(text, choices))?;
                choose.ok_or_else(|| lacks(BASELINES))?(config);
            }
            Self::Text(apply) => return apply(config, text),
        }
        Ok(())
    }
}

/// The problem of a text that is none of the names.
fn no_choice(text: &str, choices: &[NamedValue]) -> String {
    let names = || choices.iter().filter(|(_, choose)| choose.is_some());
    let last = names().count().saturating_sub(1);
    let mut problem = format!("{text:?} is not ");
    for (index, (name, _)) in names().enumerate() {
        problem.push_str(match index {
            0 => "",
            _ if index == last => " or ",
            _ => ", ",
        });
        problem.push_str(name);
    }
    problem
}

/// A cargo feature that this program is built without.
pub(super) struct MissingFeature {
    pub(super) feature: &'static str,
    /// The values that the program supports without the feature; all others are refused.
    pub(super) without: &'static [&'static str],
}

impl Setting {
    /// The first name of its option.
    pub(super) fn option(&self) -> &'static str {
        self.options.first().copied().unwrap_or_default()
    }

    /// Parses a value and applies it, or refuses it.
    pub(super) fn take(&self, config: &mut OrbConfig, text: &str) -> Result<(), String> {
        match self.missing {
            Some(missing) if missing.without.contains(&text) => Ok(()),
            Some(missing) => Err(lacks(missing.feature)),
            None => self.apply.apply(config, text),
        }
    }
}

/// The table of settings. Each has its key, its options and its line of help; in brackets the
/// feature that it needs and the values that ask for what a program without it does; and the kind
/// of its value.
macro_rules! settings {
    ($(
        $key:literal, $($option:literal)|+, $help:literal
        $(, [$feature:tt, $without:expr])? => $apply:expr;
    )*) => {
        pub(super) const SETTINGS: &[Setting] = {
            use Apply::*;
            &[$({
                let (missing, apply) = kind!($apply $(, $feature, $without)?);
                Setting {
                    key: $key,
                    options: &[$($option),+],
                    help: $help,
                    missing,
                    apply,
                }
            }),*]
        };
    };
}

/// The feature of a setting, if the program is built without it, and the kind of its value.
macro_rules! kind {
    ($apply:expr) => {
        (None, $apply)
    };
    ($apply:expr, $feature:tt, $without:expr) => {{
        #[cfg(feature = $feature)]
        const KIND: (Option<&'static MissingFeature>, Apply) = (None, $apply);
        #[cfg(not(feature = $feature))]
        const KIND: (Option<&'static MissingFeature>, Apply) = (
            Some(&MissingFeature {
                feature: $feature,
                without: $without,
            }),
            Apply::Text(nothing),
        );
        KIND
    }};
}

/// The place of a value in the configuration.
macro_rules! place {
    ($($field:ident).+) => {
        |config| &mut config.$($field).+
    };
}

/// The names of the values of a field; in brackets the feature that a value needs.
macro_rules! choices {
    ($field:ident { $($name:literal $([$feature:tt])? => $value:expr),* $(,)? }) => {
        &[$(choice!($field, $name, $value $(, $feature)?)),*]
    };
}

macro_rules! choice {
    ($field:ident, $name:literal, $value:expr) => {
        ($name, Some(|config: &mut OrbConfig| config.$field = $value))
    };
    ($field:ident, $name:literal, $value:expr, $feature:tt) => {{
        #[cfg(feature = $feature)]
        const CHOICE: NamedValue = choice!($field, $name, $value);
        #[cfg(not(feature = $feature))]
        const CHOICE: NamedValue = ($name, None);
        CHOICE
    }};
}

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
    // Read before all others.
    "config_file", "-ORBConfigFile",
        "FILE: a TOML file of settings", ["config-file", &[]] => Text(nothing);
    "orb_id", "-ORBId",
        "NAME: the name in thread names and messages [chronorb]" => Text(|config, text| {
        config.orb_id = text.to_owned();
        Ok(())
    });
    "listen_endpoints", "-ORBListenEndpoints" | "-ORBEndpoint",
        "ENDPOINT: where the default thread pool listens; may be repeated" => Text(|config, text| {
        config.listen_endpoints.extend(endpoints(text)?);
        Ok(())
    });
    "protocols", "-ORBProtocols",
        "SCHEME,…: the protocols, the preferred one first" => Text(|config, text| {
        let schemes = text
            .split(',')
            .map(|scheme| scheme.trim_ascii().to_ascii_lowercase());
        config.protocols = schemes.collect();
        Ok(())
    });
    "multicast", "-ORBMulticast",
        "NAME=VALUE&…: how groups are called and listened at", ["miop", &[]] =>
        Text(|config, text| {
        config.multicast = MulticastOptions::parse(text)?;
        Ok(())
    });
    "ssl_certificate", "-ORBSSLCertificate" | "-ORBsslKeyFile",
        "FILE: the certificate of this program, PEM", ["ssliop", &[]] =>
        Text(|config, text| put_path(&mut config.ssl.certificate, text));
    "ssl_private_key", "-ORBSSLPrivateKey",
        "FILE: the private key, if not in the file of the certificate", ["ssliop", &[]] =>
        Text(|config, text| put_path(&mut config.ssl.private_key, text));
    "ssl_certificate_authority", "-ORBSSLCertificateAuthority" | "-ORBsslCAFile",
        "FILE: the authorities that are trusted", ["ssliop", &[]] =>
        Text(|config, text| put_path(&mut config.ssl.authority, text));
    "ssl_revocation_list", "-ORBSSLRevocationList", "FILE: revoked certificates", ["ssliop", &[]] =>
        Text(|config, text| put_path(&mut config.ssl.revocation_list, text));
    "ssl_verify", "-ORBSSLVerify",
        "none|peer|mutual: the certificates that are asked for [peer]", ["ssliop", &[]] =>
        Text(|config, text| parsed(text).map(|verify| config.ssl.verify = verify));
    "ssl_versions", "-ORBSSLVersions", "VERSION,…: versions of TLS [1.2,1.3]", ["ssliop", &[]] =>
        Text(|config, text| parsed(text).map(|versions| config.ssl.versions = versions));
    "server_transport_rules", "-ORBServerTransportRule",
        "RULE: which peers may connect; may be repeated", ["access", &[]] =>
        Text(|config, text| parsed(text).map(|rule| config.server_transport_rules.push(rule)));
    "client_transport_rules", "-ORBClientTransportRule",
        "RULE: to which servers to connect; may be repeated", ["access", &[]] =>
        Text(|config, text| parsed(text).map(|rule| config.client_transport_rules.push(rule)));
    "profile", "-ORBProfile",
        "open|secure: requirements on other settings [open]", ["access", &["open"]] =>
        Text(|config, text| parsed(text).map(|profile| config.profile = profile));
    "rio_interface", "-ORBRioInterface",
        "NAME: the network interface of real-time I/O", ["riop", &[]] => Text(rio::interface);
    "rio_driver", "-ORBRioDriver",
        "auto|xdp|packet|kernel: the driver of real-time I/O [auto]", ["riop", &[]] =>
        Text(|config, text| parsed(text).map(|driver| config.rio.driver = driver));
    "rio_plan", "-ORBRioPlan", "FILE: the plan of real-time I/O", ["riop", &[]] =>
        Text(|config, text| put_path(&mut config.rio.plan, text));
    "lane_listen_endpoints", "-ORBLaneListenEndpoints" | "-ORBLaneEndpoint",
        "POOL:LANE ENDPOINT: where a lane listens; may be repeated" => Text(|config, text| {
        let (lane, text) = text
            .trim_ascii()
            .split_once(|character: char| character.is_ascii_whitespace())
            .ok_or_else(|| format!("{text:?} is not POOL:LANE ENDPOINT"))?;
        let lane = lane
            .split_once(':')
            .and_then(|(pool, lane)| Some((pool.parse().ok()?, lane.parse().ok()?)))
            .ok_or_else(|| format!("{lane:?} is not POOL:LANE, for example 1:0"))?;
        let found = endpoints(text)?;
        config
            .lane_listen_endpoints
            .extend(found.into_iter().map(|endpoint| (lane, endpoint)));
        Ok(())
    });
    "init_refs", "-ORBInitRef",
        "NAME=URL: an initial reference; may be repeated" => Text(|config, text| {
        let (name, url) = text
            .split_once('=')
            .ok_or_else(|| format!("{text:?} is not NAME=URL"))?;
        config.init_refs.retain(|(present, _)| present != name);
        config.init_refs.push((name.to_owned(), url.to_owned()));
        Ok(())
    });
    "default_init_ref", "-ORBDefaultInitRef",
        "URL: other initial references; /NAME is added" => Text(|config, text| {
        config.default_init_ref = Some(text.to_owned());
        Ok(())
    });
    "file_references", "-ORBFileReferences",
        "whether references may name files" => Bool(place!(file_references));
    "threads", "-ORBThreads",
        "N|N-M: threads of the default thread pool, at least and at most [2-128]" =>
        Text(|config, text| parsed(text).map(|threads| config.threads = threads));
    "real_time", "-ORBRealTime", "real-time scheduling [preferred]" => Choice(choices!(real_time {
        "required" => RealTimeMode::Required,
        "preferred" => RealTimeMode::Preferred,
        "off" => RealTimeMode::Off,
    }));
    "giop_lite", "-ORBGIOPLite",
        "short message headers where the peer agrees" =>
        Bool(place!(giop_lite));
    "lock_memory", "-ORBLockMemory", "lock the memory of the process" => Bool(place!(lock_memory));
    "priority_mapping", "-ORBPriorityMapping",
        "from CORBA priorities to native ones [linear]" => Choice(choices!(priority_mapping {
        "linear" => MappingKind::Linear,
        "direct" => MappingKind::Direct,
        "continuous" => MappingKind::Continuous,
    }));
    "scheduling_policy", "-ORBSchedulingPolicy" | "-ORBSchedPolicy",
        "fifo|rr|other: the policy of real-time threads [fifo]" => Text(|config, text| {
        config.scheduling_policy = match text {
            "fifo" | "SCHED_FIFO" => SchedulingPolicy::Fifo,
            "rr" | "SCHED_RR" => SchedulingPolicy::RoundRobin,
            "other" | "SCHED_OTHER" => SchedulingPolicy::Other,
            other => return Err(format!("{other:?} is not fifo, rr or other")),
        };
        Ok(())
    });
    "priority_ceiling", "-ORBPriorityCeiling",
        "none|0..32767: the most urgent priority of clients [none]" => Text(|config, text| {
        config.priority_ceiling = match text {
            "none" => None,
            text => Priority::new(number(text, 0, MAX_PRIORITY)? as i16),
        };
        Ok(())
    });
    "priority_excess", "-ORBPriorityExcess",
        "what happens to requests above the ceiling [clamp]" => Choice(choices!(priority_excess {
        "clamp" => PriorityExcess::Clamp,
        "refuse" => PriorityExcess::Refuse,
    }));
    "max_message_size", "-ORBMaxMessageSize",
        "octets of a message" => Usize(place!(max_message_size), 1 << 10, 1 << 30);
    "fragment_size", "-ORBFragmentSize",
        "OCTETS: split longer messages; 0 for never [0]" => Text(|config, text| {
        let least = MessageWriter::LEAST_FRAGMENT as u64;
        let size = match text {
            "0" => 0,
            text => {
                number(text, least, 1 << 30).map_err(|problem| format!("{problem}, or 0"))?
            }
        };
        config.fragment_size = size as usize;
        Ok(())
    });
    "max_connections", "-ORBMaxConnections",
        "connections of a lane" => U32(place!(max_connections), 1, 1 << 20);
    "max_connections_per_peer", "-ORBMaxConnectionsPerPeer",
        "connections of a peer; 0 for a quarter of all" =>
        U32(place!(max_connections_per_peer), 0, 1 << 20);
    "max_buffered_octets", "-ORBMaxBufferedOctets", "octets that a lane buffers" =>
        Usize(place!(max_buffered_octets), 1 << 16, 1 << 40);
    "arena_size", "-ORBArenaSize",
        "octets of a thread's arena" => Usize(place!(arena_size), 1 << 12, 1 << 32);
    "request_timeout", "-ORBRequestTimeout",
        "the longest time of a call" => Time(place!(request_timeout));
    "connect_timeout", "-ORBConnectTimeout",
        "the longest time of an attempt to connect" => Time(place!(connect_timeout));
    "input_timeout", "-ORBInputTimeout",
        "the longest time for a message or a reply in parts" => Time(place!(input_timeout));
    "min_reply_rate", "-ORBMinReplyRate",
        "octets/s that a peer has to receive of replies" => U32(place!(min_reply_rate), 0, 1 << 30);
    "hold_timeout", "-ORBHoldTimeout",
        "the longest time at a holding POA manager" => Time(place!(hold_timeout));
    "max_held_requests", "-ORBMaxHeldRequests",
        "requests of a lane that are held" => Usize(place!(max_held_requests), 1, 1 << 20);
    "max_giop_version", "-ORBMaxGIOPVersion",
        "the greatest version of GIOP [1.2]" => Choice(choices!(max_giop_version {
        "1.0" => Version::V1_0,
        "1.1" => Version::V1_1,
        "1.2" => Version::V1_2,
    }));
    "native_char_code_set", "-ORBNativeCharCodeSet",
        "the preferred code set of strings [utf-8]" => Choice(choices!(native_char_code_set {
        "utf-8" => CharCodeSet::Utf8,
        "iso-8859-1" => CharCodeSet::Latin1,
    }));
    "char_code_set_conversion", "-ORBCharCodeSetConversion",
        "whether the other code set may be used" =>
        Bool(place!(char_code_set_conversion));
    "object_key_secret", "-ORBObjectKeySecret",
        "FILE: the secret that authenticates object keys", ["access", &[]] => Text(|config, text| {
        let secret = ObjectKeySecret::read(Path::new(text));
        secret.map(|secret| config.object_key_secret = Some(secret))
    });
    "poa_demultiplexing", "-ORBPOADemultiplexing",
        "active|hash|linear: how POAs are found [active]" =>
        Text(|config, text| put_demultiplexing(&mut config.poa_demultiplexing, text));
    "servant_demultiplexing", "-ORBServantDemultiplexing",
        "active|hash|linear: how servants are found [active]" =>
        Text(|config, text| put_demultiplexing(&mut config.servant_demultiplexing, text));
    "collocation", "-ORBCollocation",
        "calls within the process [poa]" => Choice(choices!(collocation {
        "off" => Collocation::Off,
        "poa" => Collocation::ThroughPoa,
        "direct" => Collocation::Direct,
    }));
    "architecture", "-ORBArchitecture",
        "NAME: settings of an architecture [real-time]" => Text(architecture::apply);
    "threadpool_strategy", "-ORBThreadpoolStrategy",
        "how threads of pools share work [leader-followers]" =>
        Choice(choices!(threadpool_strategy {
        "leader-followers" => ThreadpoolStrategy::LeaderFollowers,
        "half-sync" => ThreadpoolStrategy::HalfSyncHalfAsync,
        "worker-pool" ["baselines"] => ThreadpoolStrategy::WorkerPool,
        "filter-chain" ["baselines"] => ThreadpoolStrategy::FilterChain,
        "reactive" => ThreadpoolStrategy::Reactive,
        "thread-per-connection" => ThreadpoolStrategy::ThreadPerConnection,
    }));
    "clock_skew", "-ORBClockSkew",
        "off|MS: allowance for the clocks of clients at end times [100]" =>
        Text(|config, text| put_bound(&mut config.clock_skew, text, CLOCK_SKEWS));
    "clock_uncertainty", "-ORBClockUncertainty",
        "off|US: the greatest error of CLOCK_TAI, for deadlines by that clock [off]" =>
        Text(|config, text| put_bound(&mut config.clock_uncertainty, text, CLOCK_ERRORS));
    "clock_correction", "-ORBClockCorrection", "US: what is to be added to CLOCK_TAI [0]" =>
        Text(|config, text| put_clock_correction(&mut config.clock_correction, text));
    "ordered_connections", "-ORBOrderedConnections",
        "serve the requests of a connection in the order of arrival" =>
        Bool(place!(ordered_connections));
    "lane_order", "-ORBLaneOrder", "how requests that wait in a lane are ordered [fifo]" =>
        Choice(choices!(lane_order {
        "fifo" => LaneOrder::Fifo,
        "deadline" => LaneOrder::Deadline,
        "laxity" => LaneOrder::Laxity,
        "muf" => LaneOrder::Urgency,
    }));
    "dynamic_thread_idle_timeout", "-ORBDynamicThreadIdleTimeout",
        "the idle time after which threads made on demand end" =>
        Time(place!(dynamic_thread_idle_timeout));
    "client_connection", "-ORBClientConnection",
        "how threads share connections [exclusive]" => Choice(choices!(client_connection {
        "exclusive" => ConnectionStrategy::Exclusive,
        "leader" => ConnectionStrategy::Leader,
        "thread" => ConnectionStrategy::Thread,
        "active" ["baselines"] => ConnectionStrategy::Active,
    }));
    "max_client_connections", "-ORBMaxClientConnections", "connections to servers" =>
        U32(place!(max_client_connections), 1, 1 << 20);
    "max_pending", "-ORBMaxPending",
        "asynchronous calls under way" => Usize(place!(max_pending), 1, 1 << 16);
    "max_value_ids", "-ORBMaxValueIds",
        "repository identifiers of a value" => U32(place!(bounds.value_ids), 1, 1 << 20);
    "max_value_id_length", "-ORBMaxValueIdLength", "octets of such an identifier" =>
        U32(place!(bounds.value_id_octets), 1, 1 << 20);
    "max_type_name_length", "-ORBMaxTypeNameLength", "octets of a name in a type code" =>
        U32(place!(bounds.type_name_octets), 1, 1 << 20);
    "max_type_members", "-ORBMaxTypeMembers",
        "members of a type code" => U32(place!(bounds.type_members), 1, 1 << 20);
    "client_idle_timeout", "-ORBClientIdleTimeout",
        "MS: the idle time after which clients close; 0 for never [0]" =>
        Text(|config, text| put_idle_timeout(&mut config.client_idle_timeout, text));
    "server_idle_timeout", "-ORBServerIdleTimeout",
        "MS: the idle time after which servers close; 0 for never [0]" =>
        Text(|config, text| put_idle_timeout(&mut config.server_idle_timeout, text));
    "peer_timeout", "-ORBPeerTimeout",
        "MS: the time without a sign of life after which a connection ends; 0 for TCP's own [0]" =>
        Text(|config, text| put_idle_timeout(&mut config.peer_timeout, text));
    "share_connections_across_priorities", "-ORBShareConnectionsAcrossPriorities",
        "one connection for all priorities" =>
        Bool(place!(share_connections_across_priorities));
    "client_wait", "-ORBClientWait", "block|spin[:US]|poll: how clients wait [block]" =>
        Text(|config, text| put_waiting(&mut config.client_wait, text));
    "server_wait", "-ORBServerWait", "block|spin[:US]|poll: how lanes wait [block]" =>
        Text(|config, text| put_waiting(&mut config.server_wait, text));
    "bidirectional", "-ORBBiDir",
        "callbacks on the client's connections [off]", ["bidir", &["off"]] =>
        Choice(choices!(bidirectional {
        "off" => BidirectionalConnections::Off,
        "offer" => BidirectionalConnections::Offer,
        "accept" => BidirectionalConnections::Accept,
        "both" => BidirectionalConnections::Both,
    }));
    "monitor", "-ORBMonitor",
        "off|on|PATH: a socket for chronorb top [off]", ["monitor", &["off"]] => Text(monitor);
    "log", "-ORBLog", "FILTER: events to write to standard error", ["tracing", &["off"]] =>
        Text(|config, text| parsed(text).map(|filter| config.log = Some(filter)));
    "faults", "-ORBFaults",
        "PLANS: injected faults by protocol", ["faults", &["off"]] => Text(wrapping::faults);
    "trace_file", "-ORBTraceFile",
        "FILE: a recording of all connections", ["trace", &["off"]] => Text(wrapping::trace_file);
    "trace_size", "-ORBTraceSize",
        "OCTETS: the size of a recording", ["trace", &[]] => Text(wrapping::trace_size);
    "measure", "-ORBMeasure", "one request in so many of each operation is measured; 0 for none",
        ["schedule", &["0"]] => U32(place!(measure), 0, 1 << 20);
    "schedule", "-ORBSchedule",
        "FILE: the schedule to start with", ["schedule", &[]] => Text(schedule);
    "schedule_node", "-ORBScheduleNode",
        "NAME: the node of the schedule that this program is", ["schedule", &[]] =>
        Text(schedule_node);
    "overrun", "-ORBOverrun",
        "off|log|demote|skip: operations that exceed their budgets [off]", ["schedule", &["off"]] =>
        Text(overrun);
    "max_main_thread_requests", "-ORBMaxMainThreadRequests",
        "requests that wait for the main thread" =>
        Usize(place!(max_main_thread_requests), 1, 1 << 20);
}

#[cfg(feature = "schedule")]
fn schedule(config: &mut OrbConfig, text: &str) -> Result<(), String> {
    put_path(&mut config.schedule, text)
}

#[cfg(feature = "schedule")]
fn schedule_node(config: &mut OrbConfig, text: &str) -> Result<(), String> {
    config.schedule_node = Some(text.to_owned());
    Ok(())
}

#[cfg(feature = "schedule")]
fn overrun(config: &mut OrbConfig, text: &str) -> Result<(), String> {
    config.overrun = match text {
        "off" => None,
        text => Some(
            text.parse()
                .map_err(|_| format!("{text:?} is not off, log, demote or skip"))?,
        ),
    };
    Ok(())
}

#[cfg(feature = "monitor")]
fn monitor(config: &mut OrbConfig, text: &str) -> Result<(), String> {
    config.monitor = match text {
        "off" => MonitorSocket::Off,
        "on" => MonitorSocket::On,
        path if path.contains('/') => MonitorSocket::At(path.into()),
        other => return Err(format!("{other:?} is not off, on or a path with a /")),
    };
    Ok(())
}

#[cfg(any(feature = "ssliop", feature = "riop", feature = "schedule"))]
fn put_path(place: &mut Option<PathBuf>, text: &str) -> Result<(), String> {
    *place = Some(text.into());
    Ok(())
}

fn nothing(_: &mut OrbConfig, _: &str) -> Result<(), String> {
    Ok(())
}

/// The feature of strategies and architectures that serve comparisons only.
pub(super) const BASELINES: &str = "baselines";

/// Returns the message that this program is built without a feature.
pub(crate) fn lacks(feature: &str) -> String {
    format!("this program is built without the feature {feature} of the crate chronorb")
}

pub(super) fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(
    text: &str,
) -> Result<T, String> {
    text.parse().map_err(|problem: T::Err| problem.to_string())
}

fn endpoints(text: &str) -> Result<Vec<Endpoint>, String> {
    parse_endpoints(text).map_err(|e: EndpointError| e.to_string())
}

/// Milliseconds; 0 is never.
fn put_idle_timeout(place: &mut Option<Duration>, text: &str) -> Result<(), String> {
    *place = match text {
        "0" => None,
        text => Some(milliseconds(text)?),
    };
    Ok(())
}

/// `off`, or a number of units up to a greatest one.
fn put_bound(
    place: &mut Option<Duration>,
    text: &str,
    (unit, greatest): (Duration, u64),
) -> Result<(), String> {
    *place = match text {
        "off" => None,
        text => {
            let units = number(text, 0, greatest);
            let units = units.map_err(|problem| format!("{problem}, or off"))?;
            Some(unit.saturating_mul(units as u32))
        }
    };
    Ok(())
}

/// Microseconds, perhaps negative.
fn put_clock_correction(place: &mut i64, text: &str) -> Result<(), String> {
    let correction = text.strip_prefix('-').map_or_else(
        || number(text, 0, MAX_CLOCK_CORRECTION).map(u64::cast_signed),
        |text| number(text, 0, MAX_CLOCK_CORRECTION).map(|number| -number.cast_signed()),
    );
    *place = correction?;
    Ok(())
}

/// `block`, `spin`, `spin:MICROSECONDS` or `poll`.
fn put_waiting(place: &mut WaitPolicy, text: &str) -> Result<(), String> {
    let spin = |microseconds| WaitPolicy::Spin(Duration::from_micros(microseconds));
    *place = match text.split_once(':').unwrap_or((text, "")) {
        ("block", "") => WaitPolicy::Block,
        ("poll", "") => WaitPolicy::Poll,
        ("spin", "") => spin(DEFAULT_SPIN),
        ("spin", microseconds) => spin(number(microseconds, 1, MAX_SPIN)?),
        _ => {
            return Err(format!(
                "{text:?} is not block, spin, spin:MICROSECONDS or poll"
            ));
        }
    };
    Ok(())
}

pub(super) fn number(text: &str, least: u64, greatest: u64) -> Result<u64, String> {
    text.parse()
        .ok()
        .filter(|n| (least..=greatest).contains(n))
        .ok_or_else(|| format!("{text:?} is not a number from {least} to {greatest}"))
}

fn put_demultiplexing(place: &mut Demultiplexing, text: &str) -> Result<(), String> {
    *place = match text {
        "active" => Demultiplexing::Active,
        "hash" => Demultiplexing::DynamicHash,
        "linear" => Demultiplexing::LinearSearch,
        other => return Err(format!("{other:?} is not active, hash or linear")),
    };
    Ok(())
}

fn milliseconds(text: &str) -> Result<Duration, String> {
    number(text, 1, 1000 * 86_400 * 365).map(Duration::from_millis)
}
