//! The schedule of a command, and its errors.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use chronorb_report::ReportError;
use chronorb_schedule::{Assignment, MAX_TEXT, Schedule, ScheduleError, ScheduleErrors};
use thiserror::Error;

use super::progress::with_progress;

/// A schedule that cannot be read or analysed, or does not fit.
#[derive(Debug, Error)]
pub(crate) enum SchedCommandError {
    #[error("{}: the file cannot be read: {error}", file.display())]
    Read { file: PathBuf, error: io::Error },
    #[error("{}: the schedule has no [[operation]] and no [[transaction]]", file.display())]
    Empty { file: PathBuf },
    #[error("this is no schedule:\n{0}")]
    Schedule(#[from] ScheduleErrors),
    #[error("{}: {error}", file.display())]
    Analysis { file: PathBuf, error: ScheduleError },
    #[error("the schedule does not fit: {0}")]
    Unfit(String),
    #[error(
        "no verdict: no job has its deadline within the {window} that were simulated. Give at \
         least {least} by --for"
    )]
    NoVerdict { window: String, least: String },
    #[error("{0}")]
    Argument(String),
    #[error("{}: the file cannot be written: {error}", file.display())]
    Write { file: PathBuf, error: io::Error },
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error("nothing can be written: {0}")]
    Output(#[from] io::Error),
}

/// Reads a schedule and the files that it includes, which are named from its directory.
pub(super) fn read(file: &Path) -> Result<Schedule, SchedCommandError> {
    let text =
        chronorb_rt::read_text_up_to(file, MAX_TEXT).map_err(|error| SchedCommandError::Read {
            file: file.to_owned(),
            error,
        })?;
    let directory = file.parent().unwrap_or_else(|| Path::new(""));
    let schedule = Schedule::parse(&file.display().to_string(), &text, &mut |name| {
        chronorb_rt::read_text_up_to(&directory.join(name), MAX_TEXT)
            .map_err(|error| error.to_string())
    })?;
    if schedule.operations.is_empty() && schedule.transactions.is_empty() {
        return Err(SchedCommandError::Empty {
            file: file.to_owned(),
        });
    }
    Ok(schedule)
}

/// Assigns the priorities of a schedule.
pub(super) fn assign(file: &Path, schedule: &Schedule) -> Result<Assignment, SchedCommandError> {
    let name = format!("analysing {} operations", schedule.operations.len());
    with_progress(&name, 0, |_| schedule.assign()).map_err(|error| analysis(file, error))
}

pub(super) fn analysis(file: &Path, error: ScheduleError) -> SchedCommandError {
    SchedCommandError::Analysis {
        file: file.to_owned(),
        error,
    }
}

/// Writes a text and a line end to standard output.
pub(super) fn print(text: &str) -> Result<(), SchedCommandError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")?;
    Ok(())
}
