//! Why a server or client fails that takes part in a comparison.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use chronorb::prelude::*;
use chronorb_orb::InitError;
use thiserror::Error;

use crate::contest::ContestError;

/// It could not take part.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PeerError {
    /// The ORB could not start: a setting is wrong, or a right is missing.
    #[error(transparent)]
    Init(#[from] InitError),
    /// The objects could not be offered: the endpoint cannot be had.
    #[error("the objects cannot be offered: {0}")]
    Offer(Box<dyn Error + Send + Sync>),
    /// The file for the references cannot be written.
    #[error("the references cannot be written to {}: {source}", file.display())]
    Write {
        /// Which file.
        file: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file with the references cannot be read, or has none: no server has written it.
    #[error("no reference can be read from {}, which the server writes: {source}", file.display())]
    Read {
        /// Which file.
        file: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The server cannot serve on.
    #[error("the server cannot serve: {0}")]
    Serve(SystemException),
    /// A call failed, because the server is gone, or its answer was wrong.
    #[error(transparent)]
    Call(#[from] ContestError),
    /// Standard output cannot be written to.
    #[error("standard output cannot be written to: {0}")]
    Output(io::Error),
}
