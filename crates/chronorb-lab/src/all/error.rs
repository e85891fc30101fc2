//! Why not all experiments could be run.

use std::io;

use thiserror::Error;

use chronorb_report::ReportError;

/// Not every experiment that was asked for has a report, or there is no index.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AllError {
    /// No experiment has this name.
    #[error("no experiment is called {name:?}; there are {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What could be.
        known: String,
    },
    /// What was asked for was left out again.
    #[error("there is no experiment to run: all that were asked for are to be skipped")]
    Nothing,
    /// The folder for the reports cannot be made, or the index cannot be written.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// Standard output cannot be written to.
    #[error("standard output cannot be written to: {0}")]
    Output(io::Error),
    /// Experiments failed; why was said when they did, and stands in the index.
    #[error("not all experiments could be measured: {0} failed")]
    Failed(String),
}
