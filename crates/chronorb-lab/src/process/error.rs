//! Why the processes of an experiment fail.

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
        /// Which process.
        child: String,
        /// The cause.
        source: io::Error,
    },
    /// A process ended too early.
    #[error("the {child} failed ({status}){}{errors}", if errors.is_empty() { "" } else { "; it wrote:\n" })]
    Ended {
        /// Which process.
        child: String,
        /// How it ended.
        status: ExitStatus,
        /// What it wrote to standard error.
        errors: String,
    },
    /// A process did not answer in time; it was killed.
    #[error("the {child} did not answer in time and was killed{}{errors}", if errors.is_empty() { "" } else { "; it wrote:\n" })]
    Silent {
        /// Which process.
        child: String,
        /// What it wrote to standard error.
        errors: String,
    },
    /// A process said something that its parent, or a parent something that its child, does not
    /// understand: two different versions talk to each other, or somebody used a hidden command.
    #[error("the {partner} sent something that makes no sense: {source}")]
    Nonsense {
        /// Who sent it.
        partner: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// There is no such part of an experiment.
    #[error("there is no part {part:?} of an experiment")]
    UnknownPart {
        /// The part that was asked for.
        part: String,
    },
    /// The parent is gone, and with it whoever would say what to do.
    #[error("the parent is gone")]
    Orphaned,
    /// A child cannot write to its standard output, where its parent listens.
    #[error("standard output cannot be written to: {0}")]
    Output(io::Error),
}
