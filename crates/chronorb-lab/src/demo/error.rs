//! Why a demonstration fails.

use std::error::Error;
use std::io;
use std::process::ExitStatus;

use thiserror::Error;

use crate::report::ReportError;

/// The demonstration, or one of its processes, failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DemoError {
    /// A process could not be started: there are too many, or the program's file is gone.
    #[error("the {child} could not be started: {source}")]
    Start {
        /// Which process.
        child: String,
        /// The cause.
        source: io::Error,
    },
    /// A process ended too early.
    #[error("the {child} failed ({status}){}{errors}", if errors.is_empty() { "" } else { "; it wrote:\n" })]
    Ended {
        /// Which process.
        child: String,
        /// How it ended.
        status: ExitStatus,
        /// What it wrote to standard error.
        errors: String,
    },
    /// A process did not answer in time; it was killed.
    #[error("the {child} did not answer in time and was killed{}{errors}", if errors.is_empty() { "" } else { "; it wrote:\n" })]
    Silent {
        /// Which process.
        child: String,
        /// What it wrote to standard error.
        errors: String,
    },
    /// A process said something that its parent, or a parent something that its child, does not
    /// understand: two different versions talk to each other, or somebody used a hidden command.
    #[error("the {partner} sent something that makes no sense: {source}")]
    Nonsense {
        /// Who sent it.
        partner: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The server or a client could not do its work.
    #[error("{doing}: {source}")]
    Work {
        /// What it tried.
        doing: &'static str,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The report could not be written.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// Standard output cannot be written to.
    #[error("standard output cannot be written to: {0}")]
    Output(io::Error),
}

impl DemoError {
    /// Names what was tried when `source` happened.
    pub(super) fn work<E>(doing: &'static str) -> impl Fn(E) -> Self
    where
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        move |source| Self::Work {
            doing,
            source: source.into(),
        }
    }
}
