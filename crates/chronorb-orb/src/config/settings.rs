//! All settings, with their names and parsers.

#[cfg(feature = "access")]
use std::path::Path;
use std::time::Duration;

use chronorb_giop::Version;
use chronorb_giop::fragments::Pieces;
#[cfg(feature = "miop")]
use chronorb_transport::multicast::MulticastOptions;
use chronorb_transport::{Endpoint, EndpointError, Waiting, parse_endpoints};

use super::*;
use crate::demux::Demultiplexing;
#[cfg(feature = "access")]
use crate::poa::ObjectKeySecret;

/// One setting: its key, the names of its option, separated by spaces, and its parser.
pub(super) struct Setting {
    pub(super) key: &'static str,
    pub(super) options: &'static str,
    /// The feature of the setting, if the program is built without it.
    pub(super) missing: Option<&'static MissingFeature>,
    pub(super) apply: Apply,
}

type Apply = fn(&mut OrbConfig, &str) -> Result<(), String>;

/// A cargo feature that this program is built without.
pub(super) struct MissingFeature {
    pub(super) feature: &'static str,
    /// The values that the program supports without the feature; all others are refused.
    pub(super) without: &'static [&'static str],
}

impl Setting {
    /// Parses a value and applies it, or refuses it.
    pub(super) fn take(&self, config: &mut OrbConfig, text: &str) -> Result<(), String> {
        match self.missing {
            Some(missing) if missing.without.contains(&text) => Ok(()),
            Some(missing) => Err(lacks(missing.feature)),
            None => (self.apply)(config, text),
        }
    }
}

/// A setting of a cargo feature: the feature, the key, the options, the values that a program
/// without the feature accepts too, and the parser.
macro_rules! of_feature {
    ($feature:tt, $key:expr, $options:expr, $without:expr, $apply:expr $(,)?) => {{
        #[cfg(feature = $feature)]
        const SETTING: (Option<&'static MissingFeature>, Apply) = (None, $apply);
        #[cfg(not(feature = $feature))]
        const SETTING: (Option<&'static MissingFeature>, Apply) = (
            Some(&MissingFeature {
                feature: $feature,
                without: $without,
            }),
            nothing,
        );
        Setting {
            key: $key,
            options: $options,
            missing: SETTING.0,
            apply: SETTING.1,
        }
    }};
}

pub(super) const CONFIG_FILE: &str = "config_file";
pub(super) const ARCHITECTURE: &str = "architecture";
/// In microseconds: longer than a call to the same machine takes.
const DEFAULT_SPIN: u64 = 50;
/// In microseconds; longer waits are `poll`.
const MAX_SPIN: u64 = 1_000_000;

const MAX_PRIORITY: u64 = Priority::MAX.value() as u64;

pub(super) const SETTINGS: &[Setting] = &[
    of_feature!(
        "config-file",
        CONFIG_FILE,
        "-ORBConfigFile",
        &[],
        // Read before all others.
        nothing,
    ),
    Setting {
        key: "orb_id",
        options: "-ORBId",
        missing: None,
        apply: |config, text| {
            config.orb_id = text.to_owned();
            Ok(())
        },
    },
    Setting {
        key: "listen_endpoints",
        options: "-ORBListenEndpoints -ORBEndpoint",
        missing: None,
        apply: |config, text| {
            config.listen_endpoints.extend(endpoints(text)?);
            Ok(())
        },
    },
    Setting {
        key: "protocols",
        options: "-ORBProtocols",
        missing: None,
        apply: |config, text| {
            let schemes = text
                .split(',')
                .map(|scheme| scheme.trim().to_ascii_lowercase());
            config.protocols = schemes.collect();
            Ok(())
        },
    },
    of_feature!("miop", "multicast", "-ORBMulticast", &[], |config, text| {
        config.multicast = MulticastOptions::parse(text)?;
        Ok(())
    },),
    of_feature!(
        "ssliop",
        "ssl_certificate",
        "-ORBSSLCertificate -ORBsslKeyFile",
        &[],
        |config, text| {
            config.ssl.certificate = Some(text.into());
            Ok(())
        },
    ),
    of_feature!(
        "ssliop",
        "ssl_private_key",
        "-ORBSSLPrivateKey",
        &[],
        |config, text| {
            config.ssl.private_key = Some(text.into());
            Ok(())
        },
    ),
    of_feature!(
        "ssliop",
        "ssl_certificate_authority",
        "-ORBSSLCertificateAuthority -ORBsslCAFile",
        &[],
        |config, text| {
            config.ssl.authority = Some(text.into());
            Ok(())
        },
    ),
    of_feature!(
        "ssliop",
        "ssl_revocation_list",
        "-ORBSSLRevocationList",
        &[],
        |config, text| {
            config.ssl.revocation_list = Some(text.into());
            Ok(())
        },
    ),
    of_feature!(
        "ssliop",
        "ssl_verify",
        "-ORBSSLVerify",
        &[],
        |config, text| parsed(text).map(|verify| config.ssl.verify = verify),
    ),
    of_feature!(
        "ssliop",
        "ssl_versions",
        "-ORBSSLVersions",
        &[],
        |config, text| parsed(text).map(|versions| config.ssl.versions = versions),
    ),
    of_feature!(
        "access",
        "server_transport_rules",
        "-ORBServerTransportRule",
        &[],
        |config, text| parsed(text).map(|rule| config.server_transport_rules.push(rule)),
    ),
    of_feature!(
        "access",
        "client_transport_rules",
        "-ORBClientTransportRule",
        &[],
        |config, text| parsed(text).map(|rule| config.client_transport_rules.push(rule)),
    ),
    of_feature!(
        "access",
        "profile",
        "-ORBProfile",
        &["open"],
        |config, text| parsed(text).map(|profile| config.profile = profile),
    ),
    of_feature!(
        "riop",
        "rio_interface",
        "-ORBRioInterface",
        &[],
        rio::interface,
    ),
    of_feature!(
        "riop",
        "rio_driver",
        "-ORBRioDriver",
        &[],
        |config, text| parsed(text).map(|driver| config.rio.driver = driver),
    ),
    of_feature!("riop", "rio_plan", "-ORBRioPlan", &[], |config, text| {
        config.rio.plan = Some(text.into());
        Ok(())
    },),
    Setting {
        key: "lane_listen_endpoints",
        options: "-ORBLaneListenEndpoints -ORBLaneEndpoint",
        missing: None,
        apply: |config, text| {
            let (lane, text) = text
                .trim()
                .split_once(char::is_whitespace)
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
        },
    },
    Setting {
        key: "init_refs",
        options: "-ORBInitRef",
        missing: None,
        apply: |config, text| {
            let (name, url) = text
                .split_once('=')
                .ok_or_else(|| format!("{text:?} is not NAME=URL"))?;
            config.init_refs.retain(|(present, _)| present != name);
            config.init_refs.push((name.to_owned(), url.to_owned()));
            Ok(())
        },
    },
    Setting {
        key: "default_init_ref",
        options: "-ORBDefaultInitRef",
        missing: None,
        apply: |config, text| {
            config.default_init_ref = Some(text.to_owned());
            Ok(())
        },
    },
    Setting {
        key: "file_references",
        options: "-ORBFileReferences",
        missing: None,
        apply: |config, text| put_bool(&mut config.file_references, text),
    },
    Setting {
        key: "threads",
        options: "-ORBThreads",
        missing: None,
        apply: |config, text| put_u32(&mut config.threads, text, 1, 1024),
    },
    Setting {
        key: "real_time",
        options: "-ORBRealTime",
        missing: None,
        apply: |config, text| {
            config.real_time = match text {
                "required" => RealTimeMode::Required,
                "preferred" => RealTimeMode::Preferred,
                "off" => RealTimeMode::Off,
                other => return Err(format!("{other:?} is not required, preferred or off")),
            };
            Ok(())
        },
    },
    of_feature!(
        "gioplite",
        "giop_lite",
        "-ORBGIOPLite",
        &["false", "no", "0"],
        |config, text| put_bool(&mut config.giop_lite, text),
    ),
    Setting {
        key: "lock_memory",
        options: "-ORBLockMemory",
        missing: None,
        apply: |config, text| put_bool(&mut config.lock_memory, text),
    },
    Setting {
        key: "priority_mapping",
        options: "-ORBPriorityMapping",
        missing: None,
        apply: |config, text| {
            config.priority_mapping = match text {
                "linear" => MappingKind::Linear,
                "direct" => MappingKind::Direct,
                "continuous" => MappingKind::Continuous,
                other => return Err(format!("{other:?} is not linear, direct or continuous")),
            };
            Ok(())
        },
    },
    Setting {
        key: "scheduling_policy",
        options: "-ORBSchedulingPolicy -ORBSchedPolicy",
        missing: None,
        apply: |config, text| {
            config.scheduling_policy = match text {
                "fifo" | "SCHED_FIFO" => SchedulingPolicy::Fifo,
                "rr" | "SCHED_RR" => SchedulingPolicy::RoundRobin,
                "other" | "SCHED_OTHER" => SchedulingPolicy::Other,
                other => return Err(format!("{other:?} is not fifo, rr or other")),
            };
            Ok(())
        },
    },
    Setting {
        key: "priority_ceiling",
        options: "-ORBPriorityCeiling",
        missing: None,
        apply: |config, text| {
            config.priority_ceiling = match text {
                "none" => None,
                text => Priority::new(number(text, 0, MAX_PRIORITY)? as i16),
            };
            Ok(())
        },
    },
    Setting {
        key: "priority_excess",
        options: "-ORBPriorityExcess",
        missing: None,
        apply: |config, text| {
            config.priority_excess = match text {
                "clamp" => PriorityExcess::Clamp,
                "refuse" => PriorityExcess::Refuse,
                other => return Err(format!("{other:?} is not clamp or refuse")),
            };
            Ok(())
        },
    },
    Setting {
        key: "max_message_size",
        options: "-ORBMaxMessageSize",
        missing: None,
        apply: |config, text| put_usize(&mut config.max_message_size, text, 1 << 10, 1 << 30),
    },
    Setting {
        key: "fragment_size",
        options: "-ORBFragmentSize",
        missing: None,
        apply: |config, text| {
            let least = Pieces::LEAST_SIZE as u64;
            let size = match text {
                "0" => 0,
                text => {
                    number(text, least, 1 << 30).map_err(|problem| format!("{problem}, or 0"))?
                }
            };
            config.fragment_size = size as usize;
            Ok(())
        },
    },
    Setting {
        key: "max_connections",
        options: "-ORBMaxConnections",
        missing: None,
        apply: |config, text| put_u32(&mut config.max_connections, text, 1, 1 << 20),
    },
    Setting {
        key: "max_connections_per_peer",
        options: "-ORBMaxConnectionsPerPeer",
        missing: None,
        apply: |config, text| put_u32(&mut config.max_connections_per_peer, text, 0, 1 << 20),
    },
    Setting {
        key: "max_buffered_octets",
        options: "-ORBMaxBufferedOctets",
        missing: None,
        apply: |config, text| put_usize(&mut config.max_buffered_octets, text, 1 << 16, 1 << 40),
    },
    Setting {
        key: "arena_size",
        options: "-ORBArenaSize",
        missing: None,
        apply: |config, text| put_usize(&mut config.arena_size, text, 1 << 12, 1 << 32),
    },
    Setting {
        key: "request_timeout",
        options: "-ORBRequestTimeout",
        missing: None,
        apply: |config, text| put_time(&mut config.request_timeout, text),
    },
    Setting {
        key: "connect_timeout",
        options: "-ORBConnectTimeout",
        missing: None,
        apply: |config, text| put_time(&mut config.connect_timeout, text),
    },
    Setting {
        key: "input_timeout",
        options: "-ORBInputTimeout",
        missing: None,
        apply: |config, text| put_time(&mut config.input_timeout, text),
    },
    Setting {
        key: "min_reply_rate",
        options: "-ORBMinReplyRate",
        missing: None,
        apply: |config, text| put_u32(&mut config.min_reply_rate, text, 0, 1 << 30),
    },
    Setting {
        key: "hold_timeout",
        options: "-ORBHoldTimeout",
        missing: None,
        apply: |config, text| put_time(&mut config.hold_timeout, text),
    },
    Setting {
        key: "max_held_requests",
        options: "-ORBMaxHeldRequests",
        missing: None,
        apply: |config, text| put_usize(&mut config.max_held_requests, text, 1, 1 << 20),
    },
    Setting {
        key: "max_giop_version",
        options: "-ORBMaxGIOPVersion",
        missing: None,
        apply: |config, text| {
            config.max_giop_version = match text {
                "1.0" => Version::V1_0,
                "1.1" => Version::V1_1,
                "1.2" => Version::V1_2,
                other => return Err(format!("{other:?} is not 1.0, 1.1 or 1.2")),
            };
            Ok(())
        },
    },
    Setting {
        key: "native_char_code_set",
        options: "-ORBNativeCharCodeSet",
        missing: None,
        apply: |config, text| {
            config.native_char_code_set = match text {
                "utf-8" => CharCodeSet::Utf8,
                "iso-8859-1" => CharCodeSet::Latin1,
                other => return Err(format!("{other:?} is not utf-8 or iso-8859-1")),
            };
            Ok(())
        },
    },
    Setting {
        key: "char_code_set_conversion",
        options: "-ORBCharCodeSetConversion",
        missing: None,
        apply: |config, text| put_bool(&mut config.char_code_set_conversion, text),
    },
    of_feature!(
        "access",
        "object_key_secret",
        "-ORBObjectKeySecret",
        &[],
        |config, text| {
            let secret = ObjectKeySecret::read(Path::new(text));
            secret.map(|secret| config.object_key_secret = Some(secret))
        },
    ),
    Setting {
        key: "poa_demultiplexing",
        options: "-ORBPOADemultiplexing",
        missing: None,
        apply: |config, text| put_demultiplexing(&mut config.poa_demultiplexing, text),
    },
    Setting {
        key: "servant_demultiplexing",
        options: "-ORBServantDemultiplexing",
        missing: None,
        apply: |config, text| put_demultiplexing(&mut config.servant_demultiplexing, text),
    },
    Setting {
        key: "collocation",
        options: "-ORBCollocation",
        missing: None,
        apply: |config, text| {
            config.collocation = match text {
                "off" => Collocation::Off,
                "poa" => Collocation::ThroughPoa,
                "direct" => Collocation::Direct,
                other => return Err(format!("{other:?} is not off, poa or direct")),
            };
            Ok(())
        },
    },
    Setting {
        key: ARCHITECTURE,
        options: "-ORBArchitecture",
        missing: None,
        apply: architecture::apply,
    },
    Setting {
        key: "threadpool_strategy",
        options: "-ORBThreadpoolStrategy",
        missing: None,
        apply: |config, text| {
            config.threadpool_strategy = match text {
                "leader-followers" => ThreadpoolStrategy::LeaderFollowers,
                "half-sync" => ThreadpoolStrategy::HalfSyncHalfAsync,
                "worker-pool" => ThreadpoolStrategy::WorkerPool,
                "filter-chain" => ThreadpoolStrategy::FilterChain,
                "reactive" => ThreadpoolStrategy::Reactive,
                "thread-per-connection" => ThreadpoolStrategy::ThreadPerConnection,
                other => {
                    return Err(format!(
                        "{other:?} is not leader-followers, half-sync, worker-pool, filter-chain, \
                         reactive or thread-per-connection"
                    ));
                }
            };
            Ok(())
        },
    },
    Setting {
        key: "dynamic_thread_idle_timeout",
        options: "-ORBDynamicThreadIdleTimeout",
        missing: None,
        apply: |config, text| put_time(&mut config.dynamic_thread_idle_timeout, text),
    },
    Setting {
        key: "client_connection",
        options: "-ORBClientConnection",
        missing: None,
        apply: |config, text| {
            config.client_connection = match text {
                "exclusive" => ConnectionStrategy::Exclusive,
                "leader" => ConnectionStrategy::Leader,
                "thread" => ConnectionStrategy::Thread,
                "active" => ConnectionStrategy::Active,
                other => {
                    return Err(format!(
                        "{other:?} is not exclusive, leader, thread or active"
                    ));
                }
            };
            Ok(())
        },
    },
    Setting {
        key: "max_client_connections",
        options: "-ORBMaxClientConnections",
        missing: None,
        apply: |config, text| put_u32(&mut config.max_client_connections, text, 1, 1 << 20),
    },
    Setting {
        key: "max_pending",
        options: "-ORBMaxPending",
        missing: None,
        apply: |config, text| put_usize(&mut config.max_pending, text, 1, 1 << 16),
    },
    Setting {
        key: "max_value_ids",
        options: "-ORBMaxValueIds",
        missing: None,
        apply: |config, text| put_u32(&mut config.bounds.value_ids, text, 1, 1 << 20),
    },
    Setting {
        key: "max_value_id_length",
        options: "-ORBMaxValueIdLength",
        missing: None,
        apply: |config, text| put_u32(&mut config.bounds.value_id_octets, text, 1, 1 << 20),
    },
    Setting {
        key: "max_type_name_length",
        options: "-ORBMaxTypeNameLength",
        missing: None,
        apply: |config, text| put_u32(&mut config.bounds.type_name_octets, text, 1, 1 << 20),
    },
    Setting {
        key: "max_type_members",
        options: "-ORBMaxTypeMembers",
        missing: None,
        apply: |config, text| put_u32(&mut config.bounds.type_members, text, 1, 1 << 20),
    },
    Setting {
        key: "client_idle_timeout",
        options: "-ORBClientIdleTimeout",
        missing: None,
        apply: |config, text| put_idle_timeout(&mut config.client_idle_timeout, text),
    },
    Setting {
        key: "server_idle_timeout",
        options: "-ORBServerIdleTimeout",
        missing: None,
        apply: |config, text| put_idle_timeout(&mut config.server_idle_timeout, text),
    },
    Setting {
        key: "share_connections_across_priorities",
        options: "-ORBShareConnectionsAcrossPriorities",
        missing: None,
        apply: |config, text| put_bool(&mut config.share_connections_across_priorities, text),
    },
    Setting {
        key: "client_wait",
        options: "-ORBClientWait",
        missing: None,
        apply: |config, text| put_waiting(&mut config.client_wait, text),
    },
    Setting {
        key: "server_wait",
        options: "-ORBServerWait",
        missing: None,
        apply: |config, text| put_waiting(&mut config.server_wait, text),
    },
    of_feature!("monitor", "monitor", "-ORBMonitor", &["off"], monitor,),
    of_feature!("tracing", "log", "-ORBLog", &["off"], |config, text| {
        parsed(text).map(|filter| config.log = Some(filter))
    },),
    of_feature!("faults", "faults", "-ORBFaults", &["off"], wrapping::faults,),
    of_feature!(
        "trace",
        "trace_file",
        "-ORBTraceFile",
        &["off"],
        wrapping::trace_file,
    ),
    of_feature!(
        "trace",
        "trace_size",
        "-ORBTraceSize",
        &[],
        wrapping::trace_size,
    ),
    Setting {
        key: "max_main_thread_requests",
        options: "-ORBMaxMainThreadRequests",
        missing: None,
        apply: |config, text| put_usize(&mut config.max_main_thread_requests, text, 1, 1 << 20),
    },
];

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

fn nothing(_: &mut OrbConfig, _: &str) -> Result<(), String> {
    Ok(())
}

/// Returns the message that this program is built without a feature.
pub(crate) fn lacks(feature: &str) -> String {
    format!("this program is built without the feature {feature} of the crate chronorb")
}

#[cfg(any(
    feature = "ssliop",
    feature = "riop",
    feature = "tracing",
    feature = "access"
))]
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

/// `block`, `spin`, `spin:MICROSECONDS` or `poll`.
fn put_waiting(place: &mut Waiting, text: &str) -> Result<(), String> {
    let spin = |microseconds| Waiting::Spin(Duration::from_micros(microseconds));
    *place = match text.split_once(':').unwrap_or((text, "")) {
        ("block", "") => Waiting::Block,
        ("poll", "") => Waiting::Poll,
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

fn put_u32(place: &mut u32, text: &str, least: u32, greatest: u32) -> Result<(), String> {
    *place = number(text, least.into(), greatest.into())? as u32;
    Ok(())
}

fn put_usize(place: &mut usize, text: &str, least: u64, greatest: u64) -> Result<(), String> {
    *place = number(text, least, greatest)? as usize;
    Ok(())
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

fn put_bool(place: &mut bool, text: &str) -> Result<(), String> {
    *place = match text {
        "true" | "yes" | "1" => true,
        "false" | "no" | "0" => false,
        other => return Err(format!("{other:?} is not true or false")),
    };
    Ok(())
}

fn milliseconds(text: &str) -> Result<Duration, String> {
    number(text, 1, 1000 * 86_400 * 365).map(Duration::from_millis)
}

fn put_time(place: &mut Duration, text: &str) -> Result<(), String> {
    *place = milliseconds(text)?;
    Ok(())
}
