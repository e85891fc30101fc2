//! Reads the schedule that a program starts with, and compares it with the configuration.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chronorb_giop::SystemException;
use chronorb_schedule::{
    LockFile, LockOperation, MAX_TEXT, Schedule, ScheduleErrors, SessionError, Sessions,
};
use thiserror::Error;

use crate::config::{OrbConfig, RealTimeMode};
use crate::rtcorba::{Priority, SchedulingPolicy};
use crate::schedule_table::{OperationIdentity, OperationSchedule, ScheduleTable, TableError};

/// A schedule that an ORB cannot start with.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// A file cannot be read.
    #[error("{path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file has mistakes.
    #[error(transparent)]
    Malformed(#[from] ScheduleErrors),
    /// The schedule has changed after its lock file was written.
    #[error("{lock} was written for another {schedule}: assign the schedule again")]
    Outdated {
        /// The schedule.
        schedule: PathBuf,
        /// The lock file.
        lock: PathBuf,
    },
    /// The lock file does not say which of its nodes this program is.
    #[error(
        "{lock} has the nodes {nodes}, and neither -ORBScheduleNode nor -ORBId names one of them"
    )]
    UnknownNode {
        /// The lock file.
        lock: PathBuf,
        /// The names of its nodes.
        nodes: String,
    },
    /// The operations of the lock file contradict each other.
    #[error("{lock}: {source}")]
    Table {
        /// The lock file.
        lock: PathBuf,
        /// The contradiction.
        source: TableError,
    },
    /// Further calls cannot be admitted: the schedule by itself does not fit.
    #[error("{schedule}: {source}")]
    Sessions {
        /// The schedule.
        schedule: PathBuf,
        /// The cause.
        source: SessionError,
    },
    /// A setting contradicts the schedule.
    #[error("{setting} contradicts {entry} of {lock}: {problem}")]
    Contradiction {
        /// The option of the setting, with its value.
        setting: String,
        /// The entry of the lock file.
        entry: String,
        /// The lock file.
        lock: PathBuf,
        /// The contradiction.
        problem: &'static str,
    },
    /// The schedule needs a feature of the crate that is left out.
    #[error("{entry} of {lock}: {problem}")]
    LeftOut {
        /// The entry of the lock file.
        entry: String,
        /// The lock file.
        lock: PathBuf,
        /// The feature that is missing.
        problem: String,
    },
    /// Two lanes with different priorities have the same native one.
    #[error(
        "{lock}: lanes {first} and {second} have the same native priority by \
             -ORBPriorityMapping, {native}"
    )]
    SameNative {
        /// The lock file.
        lock: PathBuf,
        /// The name of a lane.
        first: String,
        /// The name of the other lane.
        second: String,
        /// The native scheduling of both.
        native: String,
    },
    /// The ceiling of a lock has the native priority of a less urgent lane.
    #[error(
        "{lock}: sections of the lock {section} and the lane {lane} have the same native priority \
         by -ORBPriorityMapping, {native}"
    )]
    LowCeiling {
        /// The lock file.
        lock: PathBuf,
        /// The name of the lock of the schedule.
        section: String,
        /// The name of the lane.
        lane: String,
        /// The native scheduling of both.
        native: String,
    },
    /// The lanes of a processor cannot be made.
    #[error("{lock}: the lanes of processor {processor} cannot be made: {cause}")]
    Lanes {
        /// The lock file.
        lock: PathBuf,
        /// The name of the processor.
        processor: String,
        /// The cause.
        cause: String,
        /// The exception.
        source: SystemException,
    },
}

/// A lock file, and the node that this program is.
pub(crate) struct LoadedSchedule {
    pub(super) path: PathBuf,
    pub(super) lock: LockFile,
    pub(super) node: String,
    pub(super) table: Arc<ScheduleTable>,
}

impl LoadedSchedule {
    /// Reads the schedule that the configuration names, if it names one. Returns the configuration
    /// with its operations.
    ///
    /// # Errors
    /// [`StartError`], also where the configuration contradicts it.
    pub(crate) fn of(mut config: OrbConfig) -> Result<(Option<Self>, OrbConfig), StartError> {
        let Some(path) = &config.schedule else {
            return Ok((None, config));
        };
        let (path, lock) = read(path)?;
        let node = node_of(&config, &path, &lock)?;
        let table = table_of(&lock).map_err(|source| StartError::Table {
            lock: path.clone(),
            source,
        })?;
        let table = Arc::new(table);
        config.schedule_table = Some(table.clone());
        let this = Self {
            path,
            lock,
            node,
            table,
        };
        this.check(&config)?;
        this.plan_real_time_io(&mut config)?;
        Ok((Some(this), config))
    }

    /// Adds the plan of real-time I/O to the configuration, if the node has an interface.
    fn plan_real_time_io(&self, config: &mut OrbConfig) -> Result<(), StartError> {
        let Some(text) = self.lock.rio_plan(&self.node) else {
            return Ok(());
        };
        let mut interfaces = self.lock.interfaces.iter();
        let interface = interfaces.find(|it| it.node == self.node);
        let entry = interface.map_or_else(String::new, |it| {
            format!("interface {} (link {})", it.name, it.link)
        });
        let lock = self.path.clone();
        #[cfg(not(feature = "riop"))]
        {
            let (_, _) = (text, config);
            let problem = crate::config::lacks("riop");
            Err(StartError::LeftOut {
                entry,
                lock,
                problem,
            })
        }
        #[cfg(feature = "riop")]
        {
            let name = interface.map(|it| &it.name);
            let given = &config.rio.interface;
            let is_other = given.is_some() && given.as_ref() != name;
            let protocols = &config.protocols;
            let is_missing = !protocols.is_empty() && !protocols.iter().any(|it| it == RIOP);
            let contradictions = [
                (
                    is_other,
                    "-ORBRioInterface",
                    "calls would go by another interface, without its reservations",
                ),
                (
                    is_missing,
                    "-ORBProtocols without riop",
                    "its messages would have no classes",
                ),
                (
                    listens_without(&config.listen_endpoints, RIOP),
                    "-ORBListenEndpoints without riop",
                    "requests would have no classes",
                ),
            ];
            if let Some((_, setting, problem)) = contradictions.into_iter().find(|it| it.0) {
                return Err(StartError::Contradiction {
                    setting: setting.to_owned(),
                    entry,
                    lock,
                    problem,
                });
            }
            config.scheduled_plan = Some(crate::config::ScheduledPlan { lock, text });
            Ok(())
        }
    }

    /// Compares the settings with the lanes of the node.
    fn check(&self, config: &OrbConfig) -> Result<(), StartError> {
        let lanes = self.lock.lanes.iter().filter(|lane| lane.node == self.node);
        let Some(highest) = lanes.max_by_key(|lane| lane.priority) else {
            return Ok(());
        };
        let ceiling = config.priority_ceiling.map(Priority::value);
        let contradictions = [
            (
                config.real_time == RealTimeMode::Off,
                "-ORBRealTime off",
                "its priorities would not reach the operating system",
            ),
            (
                config.scheduling_policy == SchedulingPolicy::Other,
                "-ORBSchedulingPolicy other",
                "its threads would have no fixed priority",
            ),
            (
                config.share_connections_across_priorities,
                "-ORBShareConnectionsAcrossPriorities true",
                "requests of other priorities would wait in front of it",
            ),
            (
                ceiling.is_some_and(|ceiling| ceiling < highest.priority),
                "-ORBPriorityCeiling",
                "the priority of the lane is above the ceiling",
            ),
        ];
        let found = contradictions.into_iter().find(|(is_one, ..)| *is_one);
        found.map_or(Ok(()), |(_, setting, problem)| {
            Err(StartError::Contradiction {
                setting: setting.to_owned(),
                entry: format!("lane {} (priority {})", highest.name, highest.priority),
                lock: self.path.clone(),
                problem,
            })
        })
    }
}

/// Whether there are endpoints, and none is of the protocol.
#[cfg(feature = "riop")]
fn listens_without(endpoints: &[chronorb_transport::Endpoint], scheme: &str) -> bool {
    !endpoints.is_empty() && !endpoints.iter().any(|it| it.scheme == scheme)
}

#[cfg(feature = "riop")]
const RIOP: &str = "riop";

/// Reads a lock file, or a schedule with the lock file beside it. Returns the path of the lock
/// file.
fn read(path: &Path) -> Result<(PathBuf, LockFile), StartError> {
    if path
        .extension()
        .is_some_and(|extension| extension == "lock")
    {
        return Ok((
            path.to_owned(),
            LockFile::parse(&shown(path), &text_of(path)?)?,
        ));
    }
    let schedule = parse(path)?;
    let beside = lock_path(path);
    let lock = LockFile::parse(&shown(&beside), &text_of(&beside)?)?;
    check_digest(path, &schedule, &beside, &lock.input)?;
    Ok((beside, lock))
}

/// Parses a schedule with the files that it includes.
fn parse(path: &Path) -> Result<Schedule, StartError> {
    let text = text_of(path)?;
    let folder = path.parent().map_or_else(PathBuf::new, Path::to_owned);
    let mut include = |name: &str| {
        let read = fs::read_to_string(folder.join(name));
        read.map_err(|error| error.to_string())
    };
    Ok(Schedule::parse(&shown(path), &text, &mut include)?)
}

/// Checks that a lock file, which has this digest, was written for a schedule.
fn check_digest(
    path: &Path,
    schedule: &Schedule,
    lock: &Path,
    digest: &str,
) -> Result<(), StartError> {
    if schedule.digest == digest {
        Ok(())
    } else {
        Err(StartError::Outdated {
            schedule: path.to_owned(),
            lock: lock.to_owned(),
        })
    }
}

/// Returns the admission of sessions to the schedule of a lock file, `NAME.toml` beside
/// `NAME.rt.lock`.
pub(super) fn sessions_of(lock: &Path, digest: &str) -> Result<Sessions, StartError> {
    let path = lock.with_extension("").with_extension("toml");
    let schedule = parse(&path)?;
    check_digest(&path, &schedule, lock, digest)?;
    Sessions::new(schedule).map_err(|source| StartError::Sessions {
        schedule: path,
        source,
    })
}

/// Returns the path of the lock file of a schedule: `NAME.rt.lock` beside `NAME.toml`.
fn lock_path(schedule: &Path) -> PathBuf {
    schedule.with_extension("rt.lock")
}

fn text_of(path: &Path) -> Result<String, StartError> {
    chronorb_rt::read_text_up_to(path, MAX_TEXT).map_err(|source| StartError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Returns the node that the configuration names, or the only one.
fn node_of(config: &OrbConfig, path: &Path, lock: &LockFile) -> Result<String, StartError> {
    let of_lanes = lock.lanes.iter().map(|lane| &lane.node);
    let of_activities = lock.activities.iter().map(|activity| &activity.node);
    let mut nodes: Vec<_> = of_lanes.chain(of_activities).cloned().collect();
    nodes.sort_unstable();
    nodes.dedup();
    let named = match &config.schedule_node {
        Some(node) => nodes.iter().find(|known| *known == node),
        None if nodes.len() == 1 => nodes.first(),
        None => nodes.iter().find(|known| **known == config.orb_id),
    };
    named.cloned().ok_or_else(|| StartError::UnknownNode {
        lock: path.to_owned(),
        nodes: nodes.join(", "),
    })
}

fn table_of(lock: &LockFile) -> Result<ScheduleTable, TableError> {
    ScheduleTable::with_identities(lock.operations.iter().map(|it| {
        let identity = OperationIdentity {
            name: it.name.clone(),
            interface: it.interface.clone(),
            operation: it.operation.clone(),
        };
        (identity, entry_of(it))
    }))
}

fn entry_of(operation: &LockOperation) -> OperationSchedule {
    let priority = priority_of(operation.priority);
    let mut entry = OperationSchedule::new(priority, operation.subpriority, operation.level);
    entry.budget = Some(Duration::from_nanos(operation.wcet));
    entry.deadline = Some(Duration::from_nanos(operation.deadline));
    entry
}

/// Converts a priority of a lock file, which has none below 0.
pub(super) fn priority_of(value: i16) -> Priority {
    Priority::new(value).unwrap_or(Priority::MIN)
}
