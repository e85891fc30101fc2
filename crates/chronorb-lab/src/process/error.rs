//! The failures of the processes of an experiment.

use std::io;
use std::process::ExitStatus;

use thiserror::Error;

/// A process of an experiment failed, or parent and child did not understand each other.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// A process could not be started: there are too many, or the program's file is gone.
    #[error("the {child} could not be started: {source}")]
    Start {
        /// The name of the process.
        child: String,
        /// The cause.
        source: io::Error,
    },
    /// A process ended too early.
    #[error("the {child} failed ({status}){}", wrote(errors))]
    Ended {
        /// The name of the process.
        child: String,
        /// The exit status.
        status: ExitStatus,
        /// The beginning of its standard error.
        errors: String,
    },
    /// A process did not answer in time; it was killed.
    #[error("the {child} did not answer in time and was killed{}", wrote(errors))]
    Silent {
        /// The name of the process.
        child: String,
        /// The beginning of its standard error.
        errors: String,
    },
    /// A message could not be decoded: the programs have different versions, or a hidden command
    /// was called by hand.
    #[error("the {partner} sent something that makes no sense: {source}")]
    Nonsense {
        /// The sender.
        partner: String,
        /// The error of the decoder.
        source: serde_json::Error,
    },
    /// There is no such part of an experiment.
    #[error("there is no part {part:?} of an experiment")]
    UnknownPart {
        /// The part that was asked for.
        part: String,
    },
    /// The parent is gone, so no further order can come.
    #[error("the parent is gone")]
    Orphaned,
    /// A child cannot write to its standard output, where its parent listens.
    #[error("standard output cannot be written to: {0}")]
    Output(io::Error),
}

/// Returns the end of a message that quotes standard error.
fn wrote(errors: &str) -> String {
    if errors.is_empty() {
        String::new()
    } else {
        format!("; it wrote:\n{errors}")
    }
}
