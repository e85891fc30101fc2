//! `chronorb sched simulate`: a schedule in virtual time.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use chronorb_report::{check_writable, write_page};
use chronorb_sched::{
    AnalysisError, Discipline, JobCounts, Response, Simulation, StepSlice, SystemSimulation,
    simulate, simulate_transactions,
};
use chronorb_schedule::{Assignment, Schedule, ScheduleError, Time, parse_time, readable_time};
use clap::{Args, ValueEnum, value_parser};
use serde_json::{Value, json};

use super::progress::with_progress;
use super::source::{SchedCommandError, analysis, assign, print, read};
use super::words::step_name;
use super::{page, text};

#[derive(Args, Debug)]
pub(crate) struct SimulateArguments {
    /// The schedule, a file of TOML.
    file: PathBuf,

    /// The simulated time, such as "10 s" [default: the hyperperiod, or 20 of the longest periods
    /// if that is less].
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    window: Option<Time>,

    /// The number of runs. In the first one everything arrives at zero, in the others the first
    /// arrivals are random; the longest responses of all runs are shown.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = value_parser!(u64).range(1..=100_000))]
    runs: u64,

    /// The order of waiting jobs. Other orders than by priority need operations that call no
    /// others.
    #[arg(long, value_name = "ORDER", default_value = "priority")]
    discipline: Order,

    /// Print one JSON object instead of the table.
    #[arg(long)]
    json: bool,

    /// Also write a report with a Gantt chart, an HTML page that needs no other file.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// The order of waiting jobs.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Order {
    /// By fixed priority, with locks, calls and messages.
    Priority,
    /// By earliest deadline.
    Deadline,
    /// By least laxity.
    Laxity,
    /// By criticality, then by least laxity.
    Urgency,
}

/// The jobs of a simulation.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// The jobs of each step of each transaction.
    pub(super) steps: Vec<Vec<JobCounts>>,
    /// The slices of the first run.
    pub(super) slices: Vec<StepSlice>,
    pub(super) window: Time,
}

fn time(text: &str) -> Result<Time, String> {
    let time = parse_time(text).filter(|time| *time > 0);
    time.ok_or_else(|| "not a time such as \"500 ms\" or \"10 s\"".to_owned())
}

/// Prints the result of a simulation.
pub(crate) fn run(arguments: &SimulateArguments) -> Result<(), SchedCommandError> {
    if let Some(report) = &arguments.report {
        check_writable(report)?;
    }
    let schedule = read(&arguments.file)?;
    let assignment = assign(&arguments.file, &schedule)?;
    let run = simulated(arguments, &schedule, &assignment)?;
    let compares = arguments.discipline == Order::Priority;
    if let Some(report) = &arguments.report {
        let name = arguments.file.display().to_string();
        let page = page::of_run(&name, &schedule, &assignment, &run);
        write_page(&page.html(), report)?;
    }
    if arguments.json {
        print(&object(&assignment, &run, compares).to_string())?;
    } else {
        print(&table(&schedule, &assignment, &run, compares))?;
    }
    match missed(&run) {
        0 => Ok(()),
        1 => Err(SchedCommandError::Unfit(
            "1 job misses its deadline".to_owned(),
        )),
        n => Err(SchedCommandError::Unfit(format!(
            "{n} jobs miss their deadlines"
        ))),
    }
}

fn missed(run: &Run) -> u64 {
    run.steps.iter().flatten().map(|counts| counts.missed).sum()
}

fn simulated(
    arguments: &SimulateArguments,
    schedule: &Schedule,
    assignment: &Assignment,
) -> Result<Run, SchedCommandError> {
    let window = arguments.window.unwrap_or_else(|| usual_window(assignment));
    let result = with_progress("simulating", arguments.runs, |done| {
        let mut all: Option<Run> = None;
        let mut random = fastrand::Rng::with_seed(1);
        for number in 0..arguments.runs {
            let offsets = assignment
                .task_sets
                .transactions
                .iter()
                .map(|it| match number {
                    0 => 0,
                    _ => random.u64(0..it.transaction.period),
                });
            let offsets: Vec<_> = offsets.collect();
            let run = match arguments.discipline {
                Order::Priority => by_priority(schedule, assignment, window, offsets)?,
                order => by_discipline(schedule, assignment, window, &offsets, order)?,
            };
            done.fetch_add(1, Ordering::Relaxed);
            match &mut all {
                None => all = Some(run),
                Some(all) => all.add(&run),
            }
        }
        Ok(all.unwrap_or_default())
    });
    result.map_err(|problem: Problem| problem.into_error(&arguments.file))
}

/// The reason why a schedule cannot be simulated.
enum Problem {
    Analysis(AnalysisError),
    Calls(String),
}

impl From<AnalysisError> for Problem {
    fn from(error: AnalysisError) -> Self {
        Self::Analysis(error)
    }
}

impl Problem {
    fn into_error(self, file: &Path) -> SchedCommandError {
        match self {
            Self::Analysis(AnalysisError::TooComplex) => SchedCommandError::Argument(
                "the simulation takes too many steps: give a shorter time by --for".to_owned(),
            ),
            Self::Analysis(source) => analysis(
                file,
                ScheduleError::Analysis {
                    subject: "the simulation".to_owned(),
                    source,
                },
            ),
            Self::Calls(name) => SchedCommandError::Argument(format!(
                "{name} has several steps: other orders than by priority are simulated for \
                 operations that call no others"
            )),
        }
    }
}

/// Simulates by priority, from a synchronous start.
pub(super) fn synchronous(
    schedule: &Schedule,
    assignment: &Assignment,
    window: Time,
) -> Option<Run> {
    by_priority(schedule, assignment, window, Vec::new()).ok()
}

fn by_priority(
    schedule: &Schedule,
    assignment: &Assignment,
    window: Time,
    offsets: Vec<Time>,
) -> Result<Run, Problem> {
    let sets = &assignment.task_sets;
    let rules = SystemSimulation {
        offsets,
        sections: sets.sections(schedule),
        protocol: schedule.rules.locks,
        record: true,
        ..SystemSimulation::new(window)
    };
    let result = simulate_transactions(
        &sets.analysed_resources(),
        &sets.analysed_transactions(),
        &rules,
    )?;
    Ok(Run {
        steps: result.steps,
        slices: result.slices,
        window,
    })
}

/// Simulates each processor by itself, in another order than by priority.
fn by_discipline(
    schedule: &Schedule,
    assignment: &Assignment,
    window: Time,
    offsets: &[Time],
    order: Order,
) -> Result<Run, Problem> {
    let sets = &assignment.task_sets;
    if let Some(it) = sets.transactions.iter().find(|it| it.works.len() != 1) {
        return Err(Problem::Calls(it.name.clone()));
    }
    let mut run = Run {
        steps: vec![vec![JobCounts::default()]; sets.transactions.len()],
        slices: Vec::new(),
        window,
    };
    for resource in 0..sets.resources.len() {
        let (mut tasks, mut owners) = (Vec::new(), Vec::new());
        for (task, transaction, step) in sets.tasks(resource) {
            let executed = sets.transactions[transaction].works[step].executed();
            let mut task = task.with_offset(offsets[transaction]);
            if let Some(operation) = executed.map(|it| &schedule.operations[it]) {
                task = task.with_criticality(operation.criticality, operation.importance);
            }
            tasks.push(task);
            owners.push(transaction);
        }
        if tasks.is_empty() {
            continue;
        }
        let mut rules = Simulation::new(window);
        rules.record = true;
        rules.discipline = match order {
            Order::Priority => Discipline::FixedPriority,
            Order::Deadline => Discipline::EarliestDeadline,
            Order::Laxity => Discipline::LeastLaxity,
            Order::Urgency => Discipline::MaximumUrgency,
        };
        let shortest = tasks.iter().map(|task| task.period).min().unwrap_or(1);
        rules.quantum = (shortest / QUANTA).max(1);
        let result = simulate(&tasks, &rules, |_, _| 0)?;
        for (counts, transaction) in result.tasks.iter().zip(&owners) {
            run.steps[*transaction][0] = *counts;
        }
        run.slices
            .extend(result.slices.iter().map(|slice| StepSlice {
                transaction: owners[slice.task],
                job: slice.job,
                step: 0,
                start: slice.start,
                end: slice.end,
                locked: false,
            }));
    }
    Ok(run)
}

/// Laxity is compared again so many times in the shortest period.
const QUANTA: Time = 50;

impl Run {
    fn add(&mut self, other: &Self) {
        let counts = self
            .steps
            .iter_mut()
            .flatten()
            .zip(other.steps.iter().flatten());
        for (all, one) in counts {
            all.met += one.met;
            all.missed += one.missed;
            all.worst_response = all.worst_response.max(one.worst_response);
        }
    }
}

/// The periods of all transactions.
pub(super) fn periods(assignment: &Assignment) -> impl Iterator<Item = Time> + '_ {
    let transactions = assignment.task_sets.transactions.iter();
    transactions.map(|it| it.transaction.period)
}

/// Returns the hyperperiod, or 20 of the longest periods if that is less.
fn usual_window(assignment: &Assignment) -> Time {
    let periods = || periods(assignment);
    let longest = periods().max().unwrap_or(1);
    let most = longest.saturating_mul(20);
    let multiple = periods().try_fold(1_u64, |all, period| {
        let (mut a, mut b) = (all, period);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        (all / a)
            .checked_mul(period)
            .filter(|multiple| *multiple <= most)
    });
    multiple.unwrap_or(most)
}

fn table(schedule: &Schedule, assignment: &Assignment, run: &Run, compares: bool) -> String {
    let titles = [
        "STEP",
        "RESOURCE",
        "MET",
        "MISSED",
        "SIMULATED",
        "ANALYSED",
        "DEADLINE",
    ];
    let mut rows = vec![titles.map(str::to_owned)];
    for (number, named) in assignment.task_sets.transactions.iter().enumerate() {
        for (step, it) in named.transaction.steps.iter().enumerate() {
            let counts = &run.steps[number][step];
            let analysed = assignment.analysis.transactions[number].steps[step];
            rows.push([
                step_name(schedule, assignment, (number, step)),
                assignment.task_sets.resources[it.resource].name.clone(),
                counts.met.to_string(),
                counts.missed.to_string(),
                readable_time(counts.worst_response),
                if compares {
                    text::response(analysed)
                } else {
                    "-".to_owned()
                },
                readable_time(it.deadline.unwrap_or(named.transaction.deadline)),
            ]);
        }
    }
    let mut text = text::table(2, &rows);
    text += &format!("\nsimulated {} of virtual time", readable_time(run.window));
    if missed(run) == 0 {
        text += "\nfits: no job misses its deadline";
    }
    text
}

fn object(assignment: &Assignment, run: &Run, compares: bool) -> Value {
    let mut transactions = Vec::new();
    for (number, named) in assignment.task_sets.transactions.iter().enumerate() {
        let steps = named
            .transaction
            .steps
            .iter()
            .enumerate()
            .map(|(step, it)| {
                let counts = &run.steps[number][step];
                let analysed = assignment.analysis.transactions[number].steps[step];
                let analysed = analysed.time().filter(|_| compares);
                json!({
                    "resource": assignment.task_sets.resources[it.resource].name,
                    "met": counts.met,
                    "missed": counts.missed,
                    "simulated_ns": counts.worst_response,
                    "analysed_ns": analysed,
                    "deadline_ns": it.deadline.unwrap_or(named.transaction.deadline),
                })
            });
        transactions.push(json!({
            "name": named.name,
            "period_ns": named.transaction.period,
            "steps": steps.collect::<Vec<_>>(),
        }));
    }
    json!({
        "version": 1,
        "window_ns": run.window,
        "missed": missed(run),
        "exceeds_analysis": compares && exceeds(assignment, run),
        "transactions": transactions,
    })
}

/// Whether any simulated response is longer than the analysed one of a schedule that fits.
fn exceeds(assignment: &Assignment, run: &Run) -> bool {
    let analysed = assignment.analysis.transactions.iter();
    assignment.analysis.feasible
        && analysed.zip(&run.steps).any(|(it, counts)| {
            let mut each = it.steps.iter().zip(counts);
            each.any(|(response, counts)| Response::Bounded(counts.worst_response) > *response)
        })
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  chronorb sched simulate mission.toml --report mission.html
  chronorb sched simulate mission.toml --for \"1 s\" --runs 1000
  chronorb sched simulate mission.toml --discipline deadline
  chronorb sched simulate mission.toml --json | jq '.transactions[] | [.name, .steps[-1].missed]'

Exit status: 0 when no job misses its deadline, 1 when one does or the file is no schedule, 2 when
the command line is wrong.";
