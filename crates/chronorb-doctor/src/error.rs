//! Errors of the doctor.

use std::io;

use chronorb_report::ReportError;
use chronorb_rt::SpawnError;
use thiserror::Error;

/// The machine could not be measured, or the diagnosis could not be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DoctorError {
    /// The kernel does not tell on which CPUs threads may run.
    #[error("the CPUs to measure are not known: {0}")]
    Cpus(String),
    /// A thread that measures could not be made: a CPU went away, or memory is short.
    #[error("no thread to measure CPU {cpu}: {source}")]
    Thread {
        /// The number of the CPU.
        cpu: usize,
        /// The cause.
        source: SpawnError,
    },
    /// The report could not be written.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// Standard output cannot be written to.
    #[error("standard output cannot be written to: {0}")]
    Output(io::Error),
}
