//! Why the experiment fails.

use std::error::Error;

use thiserror::Error;

use crate::contest::ContestError;
use crate::process::ProcessError;

/// It could not be found out where the time of calls goes.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TimeProbesError {
    /// A process failed, or could not be understood.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A process could not be put in its place.
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
    /// This program cannot call by a transport that was asked for.
    #[error("the transport {scheme} cannot be had: {why}")]
    Transport {
        /// Which.
        scheme: &'static str,
        /// What the ORB says.
        why: String,
    },
    /// The stamps of both sides do not make whole calls.
    #[error(
        "of {calls} calls by {transport}, {place}, only {followed} could be followed through both processes"
    )]
    Lost {
        /// The scheme of the transport.
        transport: &'static str,
        /// Where both processes were.
        place: &'static str,
        /// How many were made.
        calls: usize,
        /// Of how many all stamps were found, in order.
        followed: usize,
    },
}

impl TimeProbesError {
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
