//! Configuration of an ORB: a file, the environment and the command line, in
//! rising order of precedence.
//!
//! Every setting has one name in three spellings: `-ORBRequestTimeout` on the
//! command line, `CHRONORB_ORB_REQUEST_TIMEOUT` in the environment and
//! `request_timeout` in the TOML file. Lists are repeated options, values parted by `|`, and
//! arrays. A setting that does not exist is an
//! error in all three.

#[macro_use]
mod table;

mod architecture;
#[cfg(feature = "bidir")]
mod bidirectional;
#[cfg_attr(not(feature = "config-file"), path = "config/no_file.rs")]
mod file;
#[cfg(feature = "baselines")]
mod filters;
mod help;
#[cfg(feature = "access")]
mod secure;
mod settings;
mod thread_count;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use chronorb_giop::codesets::{CodeSetComponent, CodeSetComponentInfo, ISO_8859_1, UTF_8};
use thiserror::Error;

use crate::protocol::{PluggableProtocol, ProtocolProblem, Registry};
use crate::quota::QuotaLimits;
use crate::rtcorba::scheduling::CommonClock;

use self::settings::{ARCHITECTURE, CONFIG_FILE, SETTINGS};
use self::table::{Apply, Setting};

pub use crate::rtcorba::RealTimeMode;
pub use architecture::Architecture;
#[cfg(feature = "baselines")]
pub use filters::{FilterDecision, FilteredRequest, RequestFilter, RequestFilters};
pub use settings::OrbConfig;
pub(crate) use table::lacks;
pub use thread_count::{NotThreadCount, ThreadCount};

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

/// The trace files of connections.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TraceSettings {
    /// `-ORBTraceFile PATH`: a file in the format pcapng, of all protocols of the ORB; none by
    /// default. The effects of `-ORBFaults` are recorded as they occur.
    pub file: Option<PathBuf>,
    /// `-ORBTraceSize OCTETS`: the size at which the next file begins, 65536 to 1099511627776; the
    /// last two are kept.
    pub size: u64,
}

impl Default for TraceSettings {
    fn default() -> Self {
        Self {
            file: None,
            size: 64 << 20,
        }
    }
}

/// The network interface and the parameters of the real-time I/O subsystem, which carries IIOP
/// (`riop`).
#[cfg(feature = "riop")]
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RioSettings {
    /// `-ORBRioInterface NAME`: calls go by this interface, to servers that are reached by it; none
    /// by default, so that `riop` is for endpoints only.
    pub interface: Option<String>,
    /// `-ORBRioDriver`: the driver of the interface, also for endpoints that name none.
    pub driver: chronorb_rio::DriverChoice,
    /// `-ORBRioPlan FILE`: the reservations of the interface's classes, in TOML.
    pub plan: Option<PathBuf>,
}

/// The plan that a schedule makes for the interface of the program's node.
#[cfg(all(feature = "riop", feature = "schedule"))]
#[derive(Clone, Debug)]
pub(crate) struct ScheduledPlan {
    /// The lock file of the schedule.
    pub(crate) lock: PathBuf,
    /// The text of the plan.
    pub(crate) text: String,
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

/// A set of requirements on the settings of an ORB (`-ORBProfile`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SecurityProfile {
    /// No requirements: the settings are independent.
    #[default]
    Open,
    /// Only peers that have proved their identity connect, and only to proved servers.
    ///
    /// * Protocols are SSLIOP with mutual verification, UIOP and SHMIOP, for servers and clients.
    /// * A server permits only peers that a rule names (`-ORBServerTransportRule`), and rules that
    ///   permit Unix-domain peers name their user.
    /// * A client without rules (`-ORBClientTransportRule`) calls servers by TLS, and those of the
    ///   same user by Unix-domain sockets and shared memory.
    ///
    /// * Priorities that clients propagate have a ceiling; 0, unless `-ORBPriorityCeiling` names
    ///   one.
    /// * Object keys are authenticated, unless a policy of the POA decides otherwise; those of
    ///   persistent POAs if there is a secret (`-ORBObjectKeySecret`).
    ///
    /// An ORB whose other settings contradict this cannot be made.
    Secure,
}

/// Reads `open` or `secure`.
impl FromStr for SecurityProfile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "open" => Ok(Self::Open),
            "secure" => Ok(Self::Secure),
            other => Err(format!("{other:?} is not open or secure")),
        }
    }
}

/// A configuration that cannot be used.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ConfigError {
    /// The setting does not exist.
    #[error("{origin}: there is no setting {name}; {}", file::question(.similar))]
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
        built!(("access"), !self.client_transport_rules.is_empty(), false)
    }

    /// Whether the secure profile is in force.
    pub(crate) fn is_secure(&self) -> bool {
        self.profile == SecurityProfile::Secure
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

    /// Checks that the settings agree with the features of the program and with each other, and
    /// returns them with what the profile leaves open.
    ///
    /// # Errors
    /// [`ConfigError::BadValue`] names the one that does not.
    pub(crate) fn checked(self) -> Result<Self, ConfigError> {
        if let Some((name, feature)) = self.left_out() {
            return Err(ConfigError::bad_value("program", name, lacks(feature)));
        }
        built!(
            ("baselines"),
            self.request_filters.check(self.threadpool_strategy)?,
            ()
        );
        built!(("access"), secure::completed(self), Ok(self))
    }

    /// Checks that the protocols which access rules name exist.
    ///
    /// # Errors
    /// [`ConfigError::BadValue`] names the first rule that names another.
    pub(crate) fn check_protocols(&self, protocols: &Registry) -> Result<(), ConfigError> {
        let _ = protocols;
        built!(("access"), secure::check(self, protocols), Ok(()))
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
        for given in source {
            if let Apply::List(clear, _) = given.setting.apply {
                clear(self);
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
                file::unknown("command line", prefix, name, &mut names, |name| {
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
            file::unknown("environment", ENVIRONMENT_PREFIX, key, &mut keys, |key| {
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
