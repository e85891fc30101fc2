//! `chronorb sched simulate`: a schedule in virtual time.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use chronorb_report::{check_writable, write_page};
use chronorb_sched::{AnalysisError, Discipline, Response, Simulation, Task, simulate};
use chronorb_schedule::{
    Assignment, Numbers, ResourceKind, Schedule, ScheduleError, SimulationError, SimulationOutcome,
    SimulationRun, StepWork, Time, Work, WorkSlice, parse_time, readable_time,
};
use clap::{Args, ValueEnum, value_parser};
use serde_json::{Value, json};

use super::examples::{longest_deadline, usual_window};
use super::progress::with_progress;
use super::source::{SchedCommandError, analysis, assign, print, read};
use super::words::{bound_word, work_name};
use super::{page, text};

#[derive(Args, Debug)]
pub(crate) struct SimulateArguments {
    /// The schedule, a file of TOML.
    file: PathBuf,

    /// The simulated time, such as "10 s" [default: the hyperperiod, or 20 of the longest periods
    /// if that is less, and at least the longest deadline].
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    window: Option<Time>,

    /// The number of runs. In the first one everything is released at once and takes its longest
    /// time. In the others arrivals, execution times, jitter and the places of critical sections
    /// are random. The longest responses of all runs are shown.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = value_parser!(u64).range(1..=100_000))]
    runs: u64,

    /// The seed of the random runs.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

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
    /// As the ORB: by fixed priority, with lanes, threads, locks, calls and packets.
    Priority,
    /// By earliest deadline.
    Deadline,
    /// By least laxity.
    Laxity,
    /// By criticality, then by least laxity.
    Urgency,
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
    let window = arguments.window;
    let window = window.unwrap_or_else(|| usual_window(&schedule, arguments.runs));
    let outcome = simulated(arguments, &schedule, &assignment, window)?;
    let compares = arguments.discipline == Order::Priority;
    if let Some(report) = &arguments.report {
        let name = arguments.file.display().to_string();
        let compared = compares.then_some(&assignment);
        let page = page::of_run(&name, &schedule, &outcome, window, compared);
        write_page(&page.html(), report)?;
    }
    if arguments.json {
        print(&object(&schedule, &assignment, &outcome, (window, compares)).to_string())?;
    } else {
        print(&table(&schedule, &assignment, &outcome, (window, compares)))?;
    }
    if outcome.counted() == 0 {
        return Err(SchedCommandError::NoVerdict {
            window: readable_time(window),
            least: readable_time(longest_deadline(&schedule)),
        });
    }
    match outcome.missed() {
        0 => Ok(()),
        1 => Err(SchedCommandError::Unfit(
            "1 job misses its deadline".to_owned(),
        )),
        n => Err(SchedCommandError::Unfit(format!(
            "{n} jobs miss their deadlines"
        ))),
    }
}

fn simulated(
    arguments: &SimulateArguments,
    schedule: &Schedule,
    assignment: &Assignment,
    window: Time,
) -> Result<SimulationOutcome, SchedCommandError> {
    let numbers = assignment.numbers(schedule);
    let result = with_progress("simulating", arguments.runs, |done| {
        let mut all: Option<SimulationOutcome> = None;
        for number in 0..arguments.runs {
            let run = match number {
                0 => SimulationRun {
                    record: true,
                    ..SimulationRun::synchronous(schedule, window)
                },
                _ => SimulationRun::random(arguments.seed.wrapping_add(number), window),
            };
            let outcome = match arguments.discipline {
                Order::Priority => schedule.simulate(&numbers, &run)?,
                order => by_discipline(schedule, &numbers, &run, order)?,
            };
            done.fetch_add(1, Ordering::Relaxed);
            match &mut all {
                None => all = Some(outcome),
                Some(all) => all.add(&outcome),
            }
        }
        Ok(all.unwrap_or_default())
    });
    result.map_err(|problem: Problem| problem.into_error(&arguments.file))
}

/// The reason why a schedule cannot be simulated.
enum Problem {
    Simulation(SimulationError),
    Analysis(AnalysisError),
    Calls(String),
}

impl From<SimulationError> for Problem {
    fn from(error: SimulationError) -> Self {
        Self::Simulation(error)
    }
}

impl From<AnalysisError> for Problem {
    fn from(error: AnalysisError) -> Self {
        Self::Analysis(error)
    }
}

impl Problem {
    fn into_error(self, file: &Path) -> SchedCommandError {
        match self {
            Self::Simulation(SimulationError::TooLong)
            | Self::Analysis(AnalysisError::TooComplex) => SchedCommandError::Argument(
                "the simulation takes too many steps: give a shorter time by --for".to_owned(),
            ),
            Self::Simulation(error) => SchedCommandError::Argument(error.to_string()),
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
) -> Option<SimulationOutcome> {
    let run = SimulationRun {
        record: true,
        ..SimulationRun::synchronous(schedule, window)
    };
    schedule.simulate(&assignment.numbers(schedule), &run).ok()
}

/// Simulates each processor by itself, in another order than by priority.
fn by_discipline(
    schedule: &Schedule,
    numbers: &Numbers,
    run: &SimulationRun,
    order: Order,
) -> Result<SimulationOutcome, Problem> {
    let with_calls = schedule.operations.iter().find(|it| !it.calls.is_empty());
    let name = with_calls.map(|it| &it.name);
    if let Some(name) = name.or_else(|| schedule.transactions.first().map(|it| &it.name)) {
        return Err(Problem::Calls(name.clone()));
    }
    // In no time nothing is counted: the result has the activities, one for each operation.
    let nothing = SimulationRun::synchronous(schedule, 0);
    let mut outcome = schedule.simulate(numbers, &nothing)?;
    let mut random = run.seed.map(fastrand::Rng::with_seed);
    let all = schedule.operations.iter().enumerate();
    let tasks = all.map(|(number, it)| {
        let period = it.period.unwrap_or(1);
        let cost = schedule.cost_with_overhead(number).unwrap_or(Time::MAX);
        let offset = random.as_mut().map_or(0, |random| random.u64(0..period));
        let task = Task::new(cost, period)
            .with_deadline(it.deadline.unwrap_or(period))
            .with_jitter(it.jitter)
            .with_priority(numbers.priorities[number])
            .with_criticality(it.criticality, it.importance)
            .with_offset(offset);
        (it.processor, task)
    });
    let tasks: Vec<_> = tasks.collect();
    for processor in 0..schedule.processors.len() {
        let own = (0..tasks.len()).filter(|it| tasks[*it].0 == processor);
        let own: Vec<_> = own.collect();
        let set: Vec<_> = own.iter().map(|it| tasks[*it].1).collect();
        let Some(shortest) = set.iter().map(|task| task.period).min() else {
            continue;
        };
        let mut rules = Simulation::new(run.window);
        rules.record = run.record;
        rules.discipline = match order {
            Order::Priority => Discipline::FixedPriority,
            Order::Deadline => Discipline::EarliestDeadline,
            Order::Laxity => Discipline::LeastLaxity,
            Order::Urgency => Discipline::MaximumUrgency,
        };
        rules.quantum = (shortest / QUANTA).max(1);
        let result = simulate(&set, &rules, |_, _| 0)?;
        for (counts, operation) in result.tasks.iter().zip(&own) {
            let activity = &mut outcome.activities[*operation];
            activity.jobs = counts.met + counts.missed;
            let work = &mut activity.works[0];
            (work.met, work.missed) = (counts.met, counts.missed);
            work.longest = counts.worst_response;
        }
        let slices = result.slices.iter().map(|slice| WorkSlice {
            resource: ResourceKind::Processor(processor),
            activity: own[slice.task],
            job: slice.job,
            work: Work::Execution {
                operation: own[slice.task],
            },
            start: slice.start,
            end: slice.end,
            locked: false,
        });
        outcome.slices.extend(slices);
    }
    Ok(outcome)
}

/// Laxity is compared again so many times in the shortest period.
const QUANTA: Time = 50;

/// Returns the analysed response of a work of an activity: the longest one of its steps.
pub(super) fn analysed(assignment: &Assignment, activity: usize, work: Work) -> Option<Response> {
    let named = &assignment.task_sets.transactions[activity];
    let messages = named.works.iter().filter(|it| **it == StepWork::Message);
    let is_single = messages.count() == 1;
    let is_of = |step: StepWork| match work {
        Work::Execution { operation } => step == StepWork::Execution { operation },
        Work::Request { operation } => step == StepWork::Request { operation },
        Work::Reply { operation } => step == StepWork::Reply { operation },
        Work::Message { .. } => is_single && step == StepWork::Message,
    };
    let responses = &assignment.analysis.transactions[activity].steps;
    let steps = named.works.iter().zip(responses);
    let own = steps.filter(|(step, _)| is_of(**step));
    own.map(|(_, response)| *response).max()
}

/// Returns the name of a processor or a link.
pub(super) fn resource_name(schedule: &Schedule, resource: ResourceKind) -> &str {
    match resource {
        ResourceKind::Processor(number) => &schedule.processors[number].name,
        ResourceKind::Link(number) => &schedule.links[number].name,
    }
}

fn table(
    schedule: &Schedule,
    assignment: &Assignment,
    outcome: &SimulationOutcome,
    (window, compares): (Time, bool),
) -> String {
    let titles = [
        "STEP",
        "RESOURCE",
        "MET",
        "MISSED",
        "SIMULATED",
        "ANALYSED",
        "BOUND",
        "DEADLINE",
    ];
    let mut rows = vec![titles.map(str::to_owned)];
    let mut notes = String::new();
    for (number, activity) in outcome.activities.iter().enumerate() {
        for it in &activity.works {
            let analysed = analysed(assignment, number, it.work).filter(|_| compares);
            let name = work_name(schedule, activity, it.work);
            if is_above(it.longest, analysed) {
                notes += &format!("\nnote: {name} takes longer than analysed");
            }
            rows.push([
                name,
                resource_name(schedule, it.resource).to_owned(),
                it.met.to_string(),
                it.missed.to_string(),
                readable_time(it.longest),
                analysed.map_or_else(|| "-".to_owned(), text::response),
                bound(it.longest, analysed).unwrap_or("-").to_owned(),
                readable_time(it.deadline),
            ]);
        }
    }
    let mut text = text::table(2, &rows);
    text += &format!(
        "\nsimulated {} of virtual time, with {} jobs that count",
        readable_time(window),
        outcome.counted()
    );
    if compares {
        text += "\n";
        text += text::BOUNDS;
    }
    text += &notes;
    if outcome.missed() == 0 && outcome.counted() > 0 {
        text += "\nfits: no job misses its deadline";
    }
    text
}

fn object(
    schedule: &Schedule,
    assignment: &Assignment,
    outcome: &SimulationOutcome,
    (window, compares): (Time, bool),
) -> Value {
    let mut transactions = Vec::new();
    let mut exceeds = false;
    for (number, activity) in outcome.activities.iter().enumerate() {
        let steps = activity.works.iter().map(|it| {
            let analysed = analysed(assignment, number, it.work).filter(|_| compares);
            exceeds |= is_above(it.longest, analysed);
            json!({
                "name": work_name(schedule, activity, it.work),
                "resource": resource_name(schedule, it.resource),
                "met": it.met,
                "missed": it.missed,
                "simulated_ns": it.longest,
                "analysed_ns": analysed.and_then(Response::time),
                "bound": bound(it.longest, analysed),
                "deadline_ns": it.deadline,
            })
        });
        let steps: Vec<_> = steps.collect();
        transactions.push(json!({
            "name": activity.name,
            "period_ns": activity.period,
            "jobs": activity.jobs,
            "steps": steps,
        }));
    }
    json!({
        "version": 1,
        "window_ns": window,
        "counted": outcome.counted(),
        "missed": outcome.missed(),
        "exceeds_analysis": exceeds && assignment.analysis.feasible,
        "transactions": transactions,
    })
}

fn bound(simulated: Time, analysed: Option<Response>) -> Option<&'static str> {
    analysed.and_then(|analysed| bound_word(analysed, Some(simulated)))
}

fn is_above(simulated: Time, analysed: Option<Response>) -> bool {
    analysed.is_some_and(|analysed| Response::Bounded(simulated) > analysed)
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  chronorb sched simulate mission.toml --report mission.html
  chronorb sched simulate mission.toml --for \"1 s\" --runs 1000
  chronorb sched simulate mission.toml --discipline deadline
  chronorb sched simulate mission.toml --json | jq '.transactions[] | [.name, .steps[-1].missed]'

Exit status: 0 when no job misses its deadline, 1 when one does, no job counts or the file is no
schedule, 2 when the command line is wrong.";
