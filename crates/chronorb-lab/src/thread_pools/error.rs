//! Why the experiment fails.

use std::error::Error;

use thiserror::Error;

use crate::contest::ContestError;
use crate::process::ProcessError;

/// The strategies of thread pools could not be compared.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ThreadPoolsError {
    /// A process failed, or could not be understood.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The CPUs could not be found out, or a process not be put on one.
    #[error(transparent)]
    Place(#[from] ContestError),
    /// A server or a client could not do its work.
    #[error("{doing}: {source}")]
    Work {
        /// What it tried.
        doing: &'static str,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl ThreadPoolsError {
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
