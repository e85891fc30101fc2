//! Why a demonstration fails.

use std::error::Error;
use std::io;

use thiserror::Error;

use crate::process::ProcessError;
use chronorb_report::ReportError;

/// The demonstration, or one of its processes, failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DemoError {
    /// A process failed, or could not be understood.
    #[error(transparent)]
    Process(#[from] ProcessError),
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
