//! The log of programs that have no subscriber of `tracing` of their own: lines on standard error.
//!
//! All messages of the ORB are events of `tracing`, with the target `chronorb`. A program with a
//! subscriber receives them there. One without it calls [`install`], or its user gives `-ORBLog`
//! (`CHRONORB_ORB_LOG`), which [`Orb::init`](crate::Orb::init) obeys.
//!
//! The thread `chronorb.log`, which exists only once a subscriber wants events, passes them on: see
//! [`chronorb_rt::log`]. A thread that serves requests never waits for it.

mod line;

use std::time::Duration;

use chronorb_rt::log as events;
use thiserror::Error;
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

pub use crate::log_filter::{FilterError, LogFilter};

use crate::config::OrbConfig;

/// Keeps the log: dropping it waits, for one second at most, until all events so far are written.
#[derive(Debug)]
#[must_use = "dropping it waits for the events so far"]
pub struct LogGuard(());

impl Drop for LogGuard {
    fn drop(&mut self) {
        events::flush(PATIENCE);
    }
}

/// The log could not be installed: the program has a subscriber of `tracing` already.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("this process has a subscriber of `tracing` already, which gets the ORB's events")]
pub struct LogInstallError;

/// Makes events be written to standard error, one line each, as `-ORBLog` of the configuration
/// selects, or warnings and errors without it.
///
/// ```text
/// 2026-01-31T12:00:00.000Z WARN chronorb: server full: the lane has as many connections as
/// it may (-ORBMaxConnections) peer=192.0.2.7:40312 thread="0:0.1 quoter"
/// ```
///
/// # Errors
/// [`LogInstallError`], which a program without a subscriber of its own may ignore.
pub fn install(config: &OrbConfig) -> Result<LogGuard, LogInstallError> {
    let filter = config.log.clone().unwrap_or_default();
    let lines = Lines { filter };
    tracing::subscriber::set_global_default(lines).map_err(|_| LogInstallError)?;
    Ok(LogGuard(()))
}

/// A subscriber that writes events as lines, and takes no notice of spans.
struct Lines {
    filter: LogFilter,
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && self.filter.allows(metadata.target(), metadata.level())
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.filter.most())
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        line::write(event);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The time that the end of the program waits for the log.
const PATIENCE: Duration = Duration::from_secs(1);
