//! Why the experiment fails.

use std::error::Error;

use thiserror::Error;

use crate::process::ProcessError;

/// It could not be measured what the operating system does for the ORB.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OsError {
    /// A process failed, or could not be understood.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A server, a client or another part could not do its work.
    #[error("{doing}: {source}")]
    Work {
        /// What it tried.
        doing: &'static str,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl OsError {
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
