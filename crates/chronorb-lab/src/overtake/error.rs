//! Why the experiment fails.

use std::error::Error;

use thiserror::Error;

use crate::process::ProcessError;

/// It could not be measured how calls of high priority overtake.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OvertakeError {
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
}

impl OvertakeError {
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
