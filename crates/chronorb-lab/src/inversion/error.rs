//! Why the experiment fails.

use std::error::Error;

use chronorb_testnet::NetworkError;
use thiserror::Error;

use crate::contest::ContestError;
use crate::process::ProcessError;

/// It could not be measured how priorities are inverted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InversionError {
    /// A process failed, or could not be understood, or a call failed in it.
    #[error("{trial}: {source}")]
    Trial {
        /// What was tried: the architecture, the mode, and how many low-priority clients.
        trial: String,
        /// The cause.
        source: ProcessError,
    },
    /// A child could not understand its parent, or not talk to it.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// Processes could not be put into their places.
    #[error(transparent)]
    Place(#[from] ContestError),
    /// The network of two hosts could not be made: that needs root.
    #[error("{0}; without --namespaces all runs over the loopback device")]
    Network(#[from] NetworkError),
    /// A server or a client could not do its work.
    #[error("{doing}: {source}")]
    Work {
        /// What it tried.
        doing: &'static str,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl InversionError {
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
