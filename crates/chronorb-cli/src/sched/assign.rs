//! `chronorb sched assign`: priorities, bands and lanes as a lock file.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::check::require_fit;
use super::source::{SchedCommandError, assign, print, read};
use super::text;

#[derive(Args, Debug)]
pub(crate) struct AssignArguments {
    /// The schedule, a file of TOML.
    file: PathBuf,

    /// The lock file [default: NAME.rt.lock beside the schedule NAME.toml].
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write nothing, and fail if the lock file is not that of the schedule.
    #[arg(long)]
    verify: bool,

    /// Print one JSON object instead of the table.
    #[arg(long)]
    json: bool,
}

/// Writes the lock file of a schedule.
pub(crate) fn run(arguments: &AssignArguments) -> Result<(), SchedCommandError> {
    let schedule = read(&arguments.file)?;
    let assignment = assign(&arguments.file, &schedule)?;
    require_fit(&arguments.file, &schedule, &assignment, arguments.json)?;
    let output = arguments
        .output
        .clone()
        .unwrap_or_else(|| lock_path(&arguments.file));
    let lock = assignment.lock_file(&schedule);
    let content = lock.to_string();
    if arguments.verify {
        let present = chronorb_rt::read_text(&output).map_err(|error| SchedCommandError::Read {
            file: output.clone(),
            error,
        })?;
        if present != content {
            return Err(SchedCommandError::Argument(format!(
                "{} is not the lock file of {}: write it by chronorb sched assign",
                output.display(),
                arguments.file.display()
            )));
        }
    } else {
        chronorb_rt::write_file(&output, content.as_bytes()).map_err(|error| {
            SchedCommandError::Write {
                file: output.clone(),
                error,
            }
        })?;
    }
    if arguments.json {
        let object = json!({
            "version": 1,
            "lock": output,
            "input": lock.input,
            "lanes": lock.lanes.len(),
            "bands": lock.bands.len(),
            "operations": lock.operations.len(),
        });
        return print(&object.to_string());
    }
    let mut rows =
        vec![["LANE", "PROCESSOR", "OPERATIONS", "THREADS", "PRIORITY"].map(str::to_owned)];
    for lane in &assignment.lanes {
        let names = lane
            .operations
            .iter()
            .map(|it| schedule.operations[*it].name.as_str());
        rows.push([
            lane.name.clone(),
            schedule.processors[lane.processor].name.clone(),
            names.collect::<Vec<_>>().join(" "),
            lane.threads.to_string(),
            assignment.priorities[lane.band].to_string(),
        ]);
    }
    let word = if arguments.verify {
        "verified"
    } else {
        "written"
    };
    let table = text::table(3, &rows);
    print(&format!("{table}\n{word}: {}", output.display()))
}

/// Returns `NAME.rt.lock` of `NAME.toml`.
fn lock_path(file: &Path) -> PathBuf {
    file.with_extension("rt.lock")
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  chronorb sched assign mission.toml
  chronorb sched assign mission.toml --output build/mission.rt.lock
  chronorb sched assign mission.toml --verify

Exit status: 0 when the lock file is written, or is that of the schedule with --verify; 1 when a
deadline is missed, a link has no room, the file is no schedule or the lock file is of another one;
2 when the command line is wrong.";
