//! All settings: their names, and how their texts are taken in.

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

/// One setting: its key, the names of its option, parted by spaces, and how its text is taken in.
pub(super) struct Setting {
    pub(super) key: &'static str,
    pub(super) options: &'static str,
    /// The feature of the setting, if the program is built without it.
    pub(super) missing: Option<&'static Missing>,
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
    Choice(&'static [Choice]),
    Text(fn(&mut OrbConfig, &str) -> Result<(), String>),
}

/// A name, and the function that sets its value.
type Choice = (&'static str, fn(&mut OrbConfig));

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
                choose(config);
            }
            Self::Text(apply) => return apply(config, text),
        }
        Ok(())
    }
}

/// The problem of a text that is none of the names.
fn no_choice(text: &str, choices: &[Choice]) -> String {
    #[cfg(not(feature = "baselines"))]
    if BASELINES.contains(&text) {
        return lacks("baselines");
    }
    let mut problem = format!("{text:?} is not ");
    for (index, (name, _)) in choices.iter().enumerate() {
        problem.push_str(match choices.len() - index {
            _ if index == 0 => "",
            1 => " or ",
            _ => ", ",
        });
        problem.push_str(name);
    }
    problem
}

/// A cargo feature that this program is built without.
pub(super) struct Missing {
    pub(super) feature: &'static str,
    /// The values that the program supports without the feature; all others are refused.
    pub(super) without: &'static [&'static str],
}

impl Setting {
    /// Takes in a value, or refuses it.
    pub(super) fn take(&self, config: &mut OrbConfig, text: &str) -> Result<(), String> {
        match self.missing {
            Some(missing) if missing.without.contains(&text) => Ok(()),
            Some(missing) => Err(lacks(missing.feature)),
            None => self.apply.apply(config, text),
        }
    }
}

/// A setting of a cargo feature: the feature, the key, the options, the values that a program
/// without the feature takes too, and how a text is taken in.
macro_rules! of_feature {
    ($feature:tt, $key:expr, $options:expr, $without:expr, $apply:expr $(,)?) => {{
        #[cfg(feature = $feature)]
        const SETTING: (Option<&'static Missing>, Apply) = (None, Apply::Text($apply));
        #[cfg(not(feature = $feature))]
        const SETTING: (Option<&'static Missing>, Apply) = (
            Some(&Missing {
                feature: $feature,
                without: $without,
            }),
            Apply::Text(nothing),
        );
        Setting {
            key: $key,
            options: $options,
            missing: SETTING.0,
            apply: SETTING.1,
        }
    }};
}

/// A setting of every program.
const fn setting(key: &'static str, options: &'static str, apply: Apply) -> Setting {
    Setting {
        key,
        options,
        missing: None,
        apply,
    }
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
    setting(
        "orb_id",
        "-ORBId",
        Apply::Text(|config, text| {
            config.orb_id = text.to_owned();
            Ok(())
        }),
    ),
    setting(
        "listen_endpoints",
        "-ORBListenEndpoints -ORBEndpoint",
        Apply::Text(|config, text| {
            config.listen_endpoints.extend(endpoints(text)?);
            Ok(())
        }),
    ),
    setting(
        "protocols",
        "-ORBProtocols",
        Apply::Text(|config, text| {
            let schemes = text
                .split(',')
                .map(|scheme| scheme.trim().to_ascii_lowercase());
            config.protocols = schemes.collect();
            Ok(())
        }),
    ),
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
    setting(
        "lane_listen_endpoints",
        "-ORBLaneListenEndpoints -ORBLaneEndpoint",
        Apply::Text(|config, text| {
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
        }),
    ),
    setting(
        "init_refs",
        "-ORBInitRef",
        Apply::Text(|config, text| {
            let (name, url) = text
                .split_once('=')
                .ok_or_else(|| format!("{text:?} is not NAME=URL"))?;
            config.init_refs.retain(|(present, _)| present != name);
            config.init_refs.push((name.to_owned(), url.to_owned()));
            Ok(())
        }),
    ),
    setting(
        "default_init_ref",
        "-ORBDefaultInitRef",
        Apply::Text(|config, text| {
            config.default_init_ref = Some(text.to_owned());
            Ok(())
        }),
    ),
    setting(
        "file_references",
        "-ORBFileReferences",
        Apply::Bool(|config| &mut config.file_references),
    ),
    setting(
        "threads",
        "-ORBThreads",
        Apply::U32(|config| &mut config.threads, 1, 1024),
    ),
    setting(
        "real_time",
        "-ORBRealTime",
        Apply::Choice(&[
            ("required", |config| {
                config.real_time = RealTimeMode::Required
            }),
            ("preferred", |config| {
                config.real_time = RealTimeMode::Preferred
            }),
            ("off", |config| config.real_time = RealTimeMode::Off),
        ]),
    ),
    of_feature!(
        "gioplite",
        "giop_lite",
        "-ORBGIOPLite",
        &["false", "no", "0"],
        |config, text| Apply::Bool(|config| &mut config.giop_lite).apply(config, text),
    ),
    setting(
        "lock_memory",
        "-ORBLockMemory",
        Apply::Bool(|config| &mut config.lock_memory),
    ),
    setting(
        "priority_mapping",
        "-ORBPriorityMapping",
        Apply::Choice(&[
            ("linear", |config| {
                config.priority_mapping = MappingKind::Linear
            }),
            ("direct", |config| {
                config.priority_mapping = MappingKind::Direct
            }),
            ("continuous", |config| {
                config.priority_mapping = MappingKind::Continuous
            }),
        ]),
    ),
    setting(
        "scheduling_policy",
        "-ORBSchedulingPolicy -ORBSchedPolicy",
        Apply::Text(|config, text| {
            config.scheduling_policy = match text {
                "fifo" | "SCHED_FIFO" => SchedulingPolicy::Fifo,
                "rr" | "SCHED_RR" => SchedulingPolicy::RoundRobin,
                "other" | "SCHED_OTHER" => SchedulingPolicy::Other,
                other => return Err(format!("{other:?} is not fifo, rr or other")),
            };
            Ok(())
        }),
    ),
    setting(
        "priority_ceiling",
        "-ORBPriorityCeiling",
        Apply::Text(|config, text| {
            config.priority_ceiling = match text {
                "none" => None,
                text => Priority::new(number(text, 0, MAX_PRIORITY)? as i16),
            };
            Ok(())
        }),
    ),
    setting(
        "priority_excess",
        "-ORBPriorityExcess",
        Apply::Choice(&[
            ("clamp", |config| {
                config.priority_excess = PriorityExcess::Clamp
            }),
            ("refuse", |config| {
                config.priority_excess = PriorityExcess::Refuse
            }),
        ]),
    ),
    setting(
        "max_message_size",
        "-ORBMaxMessageSize",
        Apply::Usize(|config| &mut config.max_message_size, 1 << 10, 1 << 30),
    ),
    setting(
        "fragment_size",
        "-ORBFragmentSize",
        Apply::Text(|config, text| {
            let least = Pieces::LEAST_SIZE as u64;
            let size = match text {
                "0" => 0,
                text => {
                    number(text, least, 1 << 30).map_err(|problem| format!("{problem}, or 0"))?
                }
            };
            config.fragment_size = size as usize;
            Ok(())
        }),
    ),
    setting(
        "max_connections",
        "-ORBMaxConnections",
        Apply::U32(|config| &mut config.max_connections, 1, 1 << 20),
    ),
    setting(
        "max_connections_per_peer",
        "-ORBMaxConnectionsPerPeer",
        Apply::U32(|config| &mut config.max_connections_per_peer, 0, 1 << 20),
    ),
    setting(
        "max_buffered_octets",
        "-ORBMaxBufferedOctets",
        Apply::Usize(|config| &mut config.max_buffered_octets, 1 << 16, 1 << 40),
    ),
    setting(
        "arena_size",
        "-ORBArenaSize",
        Apply::Usize(|config| &mut config.arena_size, 1 << 12, 1 << 32),
    ),
    setting(
        "request_timeout",
        "-ORBRequestTimeout",
        Apply::Time(|config| &mut config.request_timeout),
    ),
    setting(
        "connect_timeout",
        "-ORBConnectTimeout",
        Apply::Time(|config| &mut config.connect_timeout),
    ),
    setting(
        "input_timeout",
        "-ORBInputTimeout",
        Apply::Time(|config| &mut config.input_timeout),
    ),
    setting(
        "min_reply_rate",
        "-ORBMinReplyRate",
        Apply::U32(|config| &mut config.min_reply_rate, 0, 1 << 30),
    ),
    setting(
        "hold_timeout",
        "-ORBHoldTimeout",
        Apply::Time(|config| &mut config.hold_timeout),
    ),
    setting(
        "max_held_requests",
        "-ORBMaxHeldRequests",
        Apply::Usize(|config| &mut config.max_held_requests, 1, 1 << 20),
    ),
    setting(
        "max_giop_version",
        "-ORBMaxGIOPVersion",
        Apply::Choice(&[
            ("1.0", |config| config.max_giop_version = Version::V1_0),
            ("1.1", |config| config.max_giop_version = Version::V1_1),
            ("1.2", |config| config.max_giop_version = Version::V1_2),
        ]),
    ),
    setting(
        "native_char_code_set",
        "-ORBNativeCharCodeSet",
        Apply::Choice(&[
            ("utf-8", |config| {
                config.native_char_code_set = CharCodeSet::Utf8
            }),
            ("iso-8859-1", |config| {
                config.native_char_code_set = CharCodeSet::Latin1
            }),
        ]),
    ),
    setting(
        "char_code_set_conversion",
        "-ORBCharCodeSetConversion",
        Apply::Bool(|config| &mut config.char_code_set_conversion),
    ),
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
    setting(
        "poa_demultiplexing",
        "-ORBPOADemultiplexing",
        Apply::Text(|config, text| put_demultiplexing(&mut config.poa_demultiplexing, text)),
    ),
    setting(
        "servant_demultiplexing",
        "-ORBServantDemultiplexing",
        Apply::Text(|config, text| put_demultiplexing(&mut config.servant_demultiplexing, text)),
    ),
    setting(
        "collocation",
        "-ORBCollocation",
        Apply::Choice(&[
            ("off", |config| config.collocation = Collocation::Off),
            ("poa", |config| config.collocation = Collocation::ThroughPoa),
            ("direct", |config| config.collocation = Collocation::Direct),
        ]),
    ),
    setting(
        ARCHITECTURE,
        "-ORBArchitecture",
        Apply::Text(architecture::apply),
    ),
    setting(
        "threadpool_strategy",
        "-ORBThreadpoolStrategy",
        Apply::Choice(&[
            ("leader-followers", |config| {
                config.threadpool_strategy = ThreadpoolStrategy::LeaderFollowers
            }),
            ("half-sync", |config| {
                config.threadpool_strategy = ThreadpoolStrategy::HalfSyncHalfAsync
            }),
            #[cfg(feature = "baselines")]
            ("worker-pool", |config| {
                config.threadpool_strategy = ThreadpoolStrategy::WorkerPool
            }),
            #[cfg(feature = "baselines")]
            ("filter-chain", |config| {
                config.threadpool_strategy = ThreadpoolStrategy::FilterChain
            }),
            ("reactive", |config| {
                config.threadpool_strategy = ThreadpoolStrategy::Reactive
            }),
            ("thread-per-connection", |config| {
                config.threadpool_strategy = ThreadpoolStrategy::ThreadPerConnection
            }),
        ]),
    ),
    setting(
        "dynamic_thread_idle_timeout",
        "-ORBDynamicThreadIdleTimeout",
        Apply::Time(|config| &mut config.dynamic_thread_idle_timeout),
    ),
    setting(
        "client_connection",
        "-ORBClientConnection",
        Apply::Choice(&[
            ("exclusive", |config| {
                config.client_connection = ConnectionStrategy::Exclusive
            }),
            ("leader", |config| {
                config.client_connection = ConnectionStrategy::Leader
            }),
            ("thread", |config| {
                config.client_connection = ConnectionStrategy::Thread
            }),
            ("active", |config| {
                config.client_connection = ConnectionStrategy::Active
            }),
        ]),
    ),
    setting(
        "max_client_connections",
        "-ORBMaxClientConnections",
        Apply::U32(|config| &mut config.max_client_connections, 1, 1 << 20),
    ),
    setting(
        "max_pending",
        "-ORBMaxPending",
        Apply::Usize(|config| &mut config.max_pending, 1, 1 << 16),
    ),
    setting(
        "max_value_ids",
        "-ORBMaxValueIds",
        Apply::U32(|config| &mut config.bounds.value_ids, 1, 1 << 20),
    ),
    setting(
        "max_value_id_length",
        "-ORBMaxValueIdLength",
        Apply::U32(|config| &mut config.bounds.value_id_octets, 1, 1 << 20),
    ),
    setting(
        "max_type_name_length",
        "-ORBMaxTypeNameLength",
        Apply::U32(|config| &mut config.bounds.type_name_octets, 1, 1 << 20),
    ),
    setting(
        "max_type_members",
        "-ORBMaxTypeMembers",
        Apply::U32(|config| &mut config.bounds.type_members, 1, 1 << 20),
    ),
    setting(
        "client_idle_timeout",
        "-ORBClientIdleTimeout",
        Apply::Text(|config, text| put_idle_timeout(&mut config.client_idle_timeout, text)),
    ),
    setting(
        "server_idle_timeout",
        "-ORBServerIdleTimeout",
        Apply::Text(|config, text| put_idle_timeout(&mut config.server_idle_timeout, text)),
    ),
    setting(
        "share_connections_across_priorities",
        "-ORBShareConnectionsAcrossPriorities",
        Apply::Bool(|config| &mut config.share_connections_across_priorities),
    ),
    setting(
        "client_wait",
        "-ORBClientWait",
        Apply::Text(|config, text| put_waiting(&mut config.client_wait, text)),
    ),
    setting(
        "server_wait",
        "-ORBServerWait",
        Apply::Text(|config, text| put_waiting(&mut config.server_wait, text)),
    ),
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
    setting(
        "max_main_thread_requests",
        "-ORBMaxMainThreadRequests",
        Apply::Usize(|config| &mut config.max_main_thread_requests, 1, 1 << 20),
    ),
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

/// The names of strategies and architectures of the feature `baselines`.
#[cfg(not(feature = "baselines"))]
pub(super) const BASELINES: [&str; 2] = ["worker-pool", "filter-chain"];

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
