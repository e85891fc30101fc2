//! Why the experiment fails.

use std::error::Error;
use std::io;

use thiserror::Error;

use crate::process::ProcessError;
use crate::report::{PlotError, ReportError};

/// It could not be counted, or not be told, what calls cost inside; or they cost too much.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WhiteboxError {
    /// A process failed, or could not be understood.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A server or a client could not do its work.
    #[error("{doing}: {source}")]
    Work {
        /// What it tried.
        doing: &'static str,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The program's allocator does not count.
    #[error(
        "allocations are not counted: chronorb_rt::CountingAllocator is not the program's global allocator"
    )]
    Allocator,
    /// A budget is broken, and was to be kept.
    #[error("{missed} of the budgets' claims are missed: calls do more than they need")]
    Budget {
        /// How many claims.
        missed: usize,
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

impl WhiteboxError {
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
