//! `chronorb sched check`: whether all operations meet their deadlines.

use std::path::{Path, PathBuf};

use chronorb_report::{check_writable, write_page};
use chronorb_schedule::{Analysis, Assignment, Schedule};
use clap::{Args, value_parser};

use super::examples::Examples;
use super::links::LinkVerdict;
use super::progress::with_progress;
use super::reason::{Late, LateMessage, Remedies};
use super::source::{SchedCommandError, analysis, assign, print, read};
use super::{page, text};

#[derive(Args, Debug)]
pub(crate) struct CheckArguments {
    /// The schedule, a file of TOML.
    file: PathBuf,

    /// The number of simulated runs, whose longest responses are shown beside the analysed ones.
    /// The first one is from a synchronous start, the others are random.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = value_parser!(u64).range(0..=100_000))]
    runs: u64,

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
    /// The late messages of transactions whose operations are on time.
    pub(super) late_messages: Vec<LateMessage>,
    /// The analysis with a lane for each level, if some share one.
    pub(super) own_lanes: Option<Analysis>,
    /// The longest responses of a simulation.
    pub(super) examples: Examples,
    /// Changes with which it would fit; none if nothing is late.
    pub(super) remedies: Remedies,
    /// The admission of the messages by real-time I/O.
    pub(super) links: LinkVerdict,
}

impl Verdict {
    /// Whether all deadlines are met, and all links have room.
    pub(super) const fn fits(&self) -> bool {
        self.late.is_empty() && self.late_messages.is_empty() && self.links.fits()
    }
}

/// Prints whether the operations of a schedule meet their deadlines.
pub(crate) fn run(arguments: &CheckArguments) -> Result<(), SchedCommandError> {
    if let Some(report) = &arguments.report {
        check_writable(report)?;
    }
    let schedule = read(&arguments.file)?;
    let assignment = assign(&arguments.file, &schedule)?;
    let verdict = verdict(&arguments.file, &schedule, &assignment, arguments.runs)?;
    if let Some(report) = &arguments.report {
        let name = arguments.file.display().to_string();
        let page = page::of_verdict(&name, &schedule, &assignment, &verdict);
        write_page(&page.html(), report)?;
    }
    tell(&schedule, &assignment, &verdict, arguments.json)
}

/// Checks a schedule for a command that needs one that fits; prints the verdict if it does not.
pub(super) fn require_fit(
    file: &Path,
    schedule: &Schedule,
    assignment: &Assignment,
    json: bool,
) -> Result<(), SchedCommandError> {
    if assignment.analysis.feasible && LinkVerdict::of(schedule, assignment).fits() {
        return Ok(());
    }
    let verdict = verdict(file, schedule, assignment, 1)?;
    tell(schedule, assignment, &verdict, json)
}

/// Prints a verdict. Returns an error if the schedule does not fit.
fn tell(
    schedule: &Schedule,
    assignment: &Assignment,
    verdict: &Verdict,
    json: bool,
) -> Result<(), SchedCommandError> {
    if json {
        print(&text::verdict_object(schedule, assignment, verdict).to_string())?;
    } else {
        print(&text::verdict(schedule, assignment, verdict))?;
    }
    let late = match verdict.late.len() {
        0 => None,
        1 => Some("1 operation is late".to_owned()),
        n => Some(format!("{n} operations are late")),
    };
    let messages = match verdict.late_messages.len() {
        0 => None,
        1 => Some("1 message is late".to_owned()),
        n => Some(format!("{n} messages are late")),
    };
    let refused = match verdict.links.refused.len() {
        0 => None,
        1 => Some("1 class of messages is refused".to_owned()),
        n => Some(format!("{n} classes of messages are refused")),
    };
    let problems: Vec<_> = late.into_iter().chain(messages).chain(refused).collect();
    if problems.is_empty() {
        return Ok(());
    }
    Err(SchedCommandError::Unfit(problems.join(", ")))
}

/// Computes the room of a schedule, examples of its responses, and what would make it fit.
pub(super) fn verdict(
    file: &Path,
    schedule: &Schedule,
    assignment: &Assignment,
    runs: u64,
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
    let own_lanes = assignment.with_own_lanes(schedule);
    let own_lanes = own_lanes.map_err(|error| analysis(file, error))?;
    let remedies = if assignment.analysis.feasible {
        Remedies::default()
    } else {
        Remedies::find(file, schedule, assignment)?
    };
    Ok(Verdict {
        factor,
        bottleneck,
        late,
        late_messages: LateMessage::all(schedule, assignment),
        own_lanes,
        examples: Examples::of(schedule, assignment, runs),
        remedies,
        links: LinkVerdict::of(schedule, assignment),
    })
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  chronorb sched check mission.toml
  chronorb sched check mission.toml --report mission.html
  chronorb sched check mission.toml --runs 1000
  chronorb sched check mission.toml --json | jq '.late[] | [.operation, .reason, .fits]'

A schedule:
  [[operation]]
  name = \"Nav::update\"
  wcet = \"2 ms\"
  period = \"20 Hz\"
  deadline = \"10 ms\"

Exit status: 0 when all deadlines are met and all links have room, 1 when not or the file is no
schedule, 2 when the command line is wrong.";
