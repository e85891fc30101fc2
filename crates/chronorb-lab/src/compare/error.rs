//! Why figures cannot be compared, or what is worse.

use std::io;

use thiserror::Error;

use chronorb_report::ReportError;

/// Two files of figures cannot be compared, or one is worse than the other and was not to be.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CompareError {
    /// A file cannot be read.
    #[error("{path} cannot be read: {source}")]
    Read {
        /// Which.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// A file is no JSON.
    #[error("{path} is no JSON: {source}")]
    NotJson {
        /// Which.
        path: String,
        /// The cause.
        source: serde_json::Error,
    },
    /// A file is JSON, but not the figures of an experiment.
    #[error(
        "{path} has no figures of an experiment: {missing}. `chronorb lab EXPERIMENT --json` writes them, and each \
         report has them beside it"
    )]
    NotFigures {
        /// Which.
        path: String,
        /// What is not as it has to be.
        missing: String,
    },
    /// The files are of different experiments.
    #[error("the files are of different experiments, {first:?} and {second:?}")]
    Different {
        /// That of the first file.
        first: String,
        /// That of the second.
        second: String,
    },
    /// A figure that was asked for is in no row that both files have.
    #[error("no row of both files has a figure {name:?}; there are {known}")]
    Figure {
        /// What was asked for.
        name: String,
        /// What could be.
        known: String,
    },
    /// The report could not be written.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// Standard output cannot be written to.
    #[error("standard output cannot be written to: {0}")]
    Output(io::Error),
    /// No row of one file is in the other, so that nothing is known to be no worse.
    #[error("nothing can be said to be no worse: no row of one file has a match in the other")]
    Nothing,
    /// Figures are worse, and were not to be.
    #[error("figures that are worse by more than {percent} %: {count}, most of all {worst}")]
    Worse {
        /// How many.
        count: usize,
        /// What was permitted.
        percent: f64,
        /// Which changed most.
        worst: String,
    },
}
