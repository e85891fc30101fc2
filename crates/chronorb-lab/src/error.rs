//! The error of the laboratory.

use std::borrow::Cow;
use std::error::Error;
use std::io;

use chronorb_orb::InitError;
use chronorb_rt::SchedulingError;
use chronorb_testnet::NetworkError;
use thiserror::Error;

use crate::process::ProcessError;
use chronorb_report::ReportError;

/// A failure of an experiment, of one of its processes, or of its report.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LabError {
    /// A process failed, or a message between it and its parent could not be decoded.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A process of a trial failed.
    #[error("{trial}: {source}")]
    Trial {
        /// The trial: the system under test and its load.
        trial: String,
        /// The cause.
        source: ProcessError,
    },
    /// A step of an experiment failed.
    #[error("{doing}: {source}")]
    Work {
        /// The step.
        doing: Cow<'static, str>,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A reply was wrong.
    #[error("a wrong answer: {0}")]
    WrongAnswer(String),
    /// The process may not use the requested real-time priority.
    #[error("SCHED_FIFO {priority} cannot be had: {source}")]
    Scheduling {
        /// The priority.
        priority: u8,
        /// The cause, and its remedy.
        source: SchedulingError,
    },
    /// The network of two hosts could not be made, which needs root.
    #[error("{source}{hint}")]
    Network {
        /// The cause.
        source: NetworkError,
        /// The alternative, if there is one.
        hint: &'static str,
    },
    /// An ORB could not start: a setting is wrong, or a right is missing.
    #[error(transparent)]
    Init(#[from] InitError),
    /// The request names something that does not exist, or contradicts itself.
    #[error("{0}")]
    Request(String),
    /// The run is complete, and its result is a failure.
    #[error("{0}")]
    Outcome(String),
    /// The report could not be written.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// Standard output cannot be written to.
    #[error("standard output cannot be written to: {0}")]
    Output(#[source] io::Error),
}

impl LabError {
    /// Converts the cause of the failure of a step.
    pub(crate) fn work<E>(doing: impl Into<Cow<'static, str>>) -> impl Fn(E) -> Self
    where
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let doing = doing.into();
        move |source| Self::Work {
            doing: doing.clone(),
            source: source.into(),
        }
    }
}

impl LabError {
    /// Names the trial in which a process failed; other errors stay.
    pub(crate) fn in_trial(self, trial: impl Into<String>) -> Self {
        match self {
            Self::Process(source) => Self::Trial {
                trial: trial.into(),
                source,
            },
            other => other,
        }
    }
}

impl From<NetworkError> for LabError {
    fn from(source: NetworkError) -> Self {
        Self::Network { source, hint: "" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_is_named_and_keeps_its_cause() {
        let error = LabError::work("calling the server")(io::Error::other("it is gone"));
        assert_eq!(error.to_string(), "calling the server: it is gone");
        assert!(error.source().is_some());
    }
}
