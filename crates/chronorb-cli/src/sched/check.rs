//! `chronorb sched check`: whether all operations meet their deadlines.

use std::path::{Path, PathBuf};

use chronorb_report::{check_writable, write_page};
use chronorb_schedule::{Assignment, Schedule};
use clap::Args;

use super::progress::with_progress;
use super::reason::{Late, Remedies};
use super::source::{SchedCommandError, analysis, assign, print, read};
use super::{page, text};

#[derive(Args, Debug)]
pub(crate) struct CheckArguments {
    /// The schedule, a file of TOML.
    file: PathBuf,

    /// Print one JSON object instead of the table.
    #[arg(long)]
    json: bool,

    /// Also write a report, an HTML page that needs no other file.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// The result of an analysis, with what would make it fit.
#[derive(Debug)]
pub(super) struct Verdict {
    /// The greatest factor of all times, in units of `FACTOR_UNIT`.
    pub(super) factor: u64,
    /// The operation that is late first above that factor.
    pub(super) bottleneck: Option<usize>,
    pub(super) late: Vec<Late>,
    /// Changes with which it would fit; none if nothing is late.
    pub(super) remedies: Remedies,
}

/// Prints whether the operations of a schedule meet their deadlines.
pub(crate) fn run(arguments: &CheckArguments) -> Result<(), SchedCommandError> {
    if let Some(report) = &arguments.report {
        check_writable(report)?;
    }
    let schedule = read(&arguments.file)?;
    let assignment = assign(&arguments.file, &schedule)?;
    let verdict = verdict(&arguments.file, &schedule, &assignment)?;
    if let Some(report) = &arguments.report {
        let name = arguments.file.display().to_string();
        let page = page::of_verdict(&name, &schedule, &assignment, &verdict);
        write_page(&page.html(), report)?;
    }
    if arguments.json {
        print(&text::verdict_object(&schedule, &assignment, &verdict).to_string())?;
    } else {
        print(&text::verdict(&schedule, &assignment, &verdict))?;
    }
    refuse_late(&verdict)
}

/// Returns an error if anything is late.
pub(super) fn refuse_late(verdict: &Verdict) -> Result<(), SchedCommandError> {
    match verdict.late.len() {
        0 => Ok(()),
        1 => Err(SchedCommandError::Late("1 operation is late".to_owned())),
        n => Err(SchedCommandError::Late(format!("{n} operations are late"))),
    }
}

/// Computes the room of a schedule, and what would make it fit.
pub(super) fn verdict(
    file: &Path,
    schedule: &Schedule,
    assignment: &Assignment,
) -> Result<Verdict, SchedCommandError> {
    let ranks = assignment.band_ranks();
    let results = assignment.analysis.operations.iter().enumerate();
    let late = results.filter(|(_, result)| !result.is_on_time());
    let late = late.map(|(operation, _)| Late::of(schedule, assignment, operation));
    let late: Vec<_> = late.collect();
    let found = with_progress("finding the room", 0, |_| {
        let factor = schedule.greatest_factor(&ranks)?;
        Ok((factor, schedule.bottleneck(&ranks, factor)?))
    });
    let (factor, bottleneck) = found.map_err(|error| analysis(file, error))?;
    let remedies = if assignment.analysis.feasible {
        Remedies::default()
    } else {
        Remedies::find(file, schedule, assignment)?
    };
    Ok(Verdict {
        factor,
        bottleneck,
        late,
        remedies,
    })
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  chronorb sched check mission.toml
  chronorb sched check mission.toml --report mission.html
  chronorb sched check mission.toml --json | jq '.late[] | [.operation, .reason, .fits]'

A schedule:
  [[operation]]
  name = \"Nav::update\"
  wcet = \"2 ms\"
  period = \"20 Hz\"
  deadline = \"10 ms\"

Exit status: 0 when all deadlines are met, 1 when one is not or the file is no schedule, 2 when the
command line is wrong.";
