//! Why the experiment fails.

use std::error::Error;

use thiserror::Error;

use crate::process::ProcessError;

/// It could not be measured what ways to wait cost.
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
