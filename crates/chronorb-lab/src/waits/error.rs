//! Why the experiment fails.

use std::error::Error;
use std::io;

use thiserror::Error;

use crate::process::ProcessError;
use crate::report::{PlotError, ReportError};

/// It could not be measured, or not be told, what ways to wait cost.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WaitsError {
    /// The server's process failed, or could not be understood.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The server or the client could not do its work.
    #[error("{doing}: {source}")]
    Work {
        /// What it tried.
        doing: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A plot could not be drawn.
    #[error(transparent)]
    Plot(#[from] PlotError),
    /// The report could not be written.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// Standard output cannot be written to.
    #[error("standard output cannot be written to: {0}")]
    Output(io::Error),
}

impl WaitsError {
    /// Names what was tried when `source` happened.
    pub(super) fn work<E>(doing: impl Into<String>) -> impl FnOnce(E) -> Self
    where
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        move |source| Self::Work {
            doing: doing.into(),
            source: source.into(),
        }
    }
}
