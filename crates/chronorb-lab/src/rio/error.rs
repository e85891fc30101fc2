//! Why the experiment fails.

use std::error::Error;

use chronorb_testnet::NetworkError;
use thiserror::Error;

use crate::contest::ContestError;
use crate::inversion::InversionError;
use crate::process::ProcessError;

/// It could not be measured what RIO does.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RioError {
    /// A process failed, or could not be understood.
    #[error("{trial}: {source}")]
    Trial {
        /// What was tried.
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
    /// The part with the ORB failed.
    #[error(transparent)]
    Orb(#[from] InversionError),
    /// The network of two hosts could not be made: that needs root.
    #[error(transparent)]
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

impl RioError {
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
