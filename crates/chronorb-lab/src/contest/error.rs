//! Why a contest fails.

use std::error::Error;

use thiserror::Error;

use crate::process::ProcessError;

/// It could not be measured how systems compare.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ContestError {
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
    /// An answer was wrong.
    #[error("a wrong answer: {0}")]
    WrongAnswer(String),
    /// A real-time priority was asked for, and this process may not have it.
    #[error("SCHED_FIFO {priority} cannot be had: {source}")]
    Scheduling {
        /// Which.
        priority: u8,
        /// The cause, and what to do about it.
        source: chronorb_rt::SchedulingError,
    },
}

impl ContestError {
    /// Names what was tried when `source` happened.
    pub(crate) fn work<E>(doing: &'static str) -> impl Fn(E) -> Self
    where
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        move |source| Self::Work {
            doing,
            source: source.into(),
        }
    }
}
