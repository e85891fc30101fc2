//! Why the experiment fails.

use std::error::Error;

use thiserror::Error;

use crate::process::ProcessError;

/// A failure of the experiment itself. A server that an attack ends is a finding, and no error.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HostileError {
    /// A process failed that was not to fail, or could not be understood.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A server, a client or an attacker could not do its work.
    #[error("{doing}: {source}")]
    Work {
        /// The step that failed.
        doing: &'static str,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl HostileError {
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
