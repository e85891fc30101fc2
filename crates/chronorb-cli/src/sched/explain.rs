//! `chronorb sched explain`: the parts of a response.

use std::fmt::Write as _;
use std::path::PathBuf;

use chronorb_sched::Step;
use chronorb_schedule::{Assignment, Schedule, Time, readable_time};
use clap::Args;
use serde_json::{Value, json};

use super::reason::{Late, late_text};
use super::source::{SchedCommandError, analysis, assign, print, read};
use super::words::step_name;

#[derive(Args, Debug)]
pub(crate) struct ExplainArguments {
    /// The schedule, a file of TOML.
    file: PathBuf,

    /// The name of the operation.
    operation: String,

    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// The parts of the response of one step of a transaction.
#[derive(Debug)]
struct Part {
    name: String,
    resource: String,
    /// The response of the step before it; `None` if it has no bound.
    waits: Option<Time>,
    /// The wait for a thread; `None` if it has no bound.
    thread: Option<Time>,
    cost: Time,
    blocking: Time,
    /// The rest: more urgent work; `None` if it has no bound.
    others: Option<Time>,
    /// The response, from the arrival of the transaction; `None` if it has no bound.
    response: Option<Time>,
    /// More urgent steps on the resource, with their cost and period.
    above: Vec<(String, Time, Time)>,
}

/// Prints the parts of the longest response of an operation.
pub(crate) fn run(arguments: &ExplainArguments) -> Result<(), SchedCommandError> {
    let schedule = read(&arguments.file)?;
    let operation = schedule.operation(&arguments.operation).ok_or_else(|| {
        let names = schedule.operations.iter().map(|it| it.name.as_str());
        let all = names.collect::<Vec<_>>().join(", ");
        SchedCommandError::Argument(format!(
            "the schedule has no operation {:?}: it has {all}",
            arguments.operation
        ))
    })?;
    let assignment = assign(&arguments.file, &schedule)?;
    let greatest = schedule.greatest_cost(&assignment.band_ranks(), operation);
    let greatest = greatest.map_err(|error| analysis(&arguments.file, error))?;
    let parts = parts(&schedule, &assignment, operation);
    if arguments.json {
        print(&object(&schedule, &assignment, operation, greatest, &parts).to_string())
    } else {
        print(&explanation(
            &schedule,
            &assignment,
            operation,
            greatest,
            &parts,
        ))
    }
}

/// Returns the steps of the operation's transaction up to its last one.
fn parts(schedule: &Schedule, assignment: &Assignment, operation: usize) -> Vec<Part> {
    let number = assignment.analysis.operations[operation].transaction;
    let named = &assignment.task_sets.transactions[number];
    let steps = &named.transaction.steps;
    let is_own = |work: &chronorb_schedule::StepWork| work.executed() == Some(operation);
    let Some(last) = named.works.iter().rposition(is_own) else {
        return Vec::new();
    };
    let mut path = vec![last];
    while let Some(before) = path.last().and_then(|step| before(steps, *step)) {
        path.push(before);
    }
    let responses = &assignment.analysis.transactions[number].steps;
    let parts = path.iter().rev().map(|step| {
        let it = &steps[*step];
        let response = responses[*step].time();
        let waits = before(steps, *step).map_or(Some(named.transaction.jitter), |before| {
            responses[before].time()
        });
        let own = it.cost.saturating_add(it.blocking).saturating_add(it.wait);
        let others = response
            .zip(waits)
            .map(|(response, waits)| response.saturating_sub(waits).saturating_sub(own));
        Part {
            name: step_name(schedule, assignment, (number, *step)),
            resource: assignment.task_sets.resources[it.resource].name.clone(),
            waits,
            thread: (it.wait < Time::MAX).then_some(it.wait),
            cost: it.cost,
            blocking: it.blocking,
            others,
            response,
            above: above(schedule, assignment, (number, *step), it),
        }
    });
    parts.collect()
}

fn before(steps: &[Step], step: usize) -> Option<usize> {
    steps[step].after.or_else(|| step.checked_sub(1))
}

/// Returns the work of other transactions that is more urgent on the resource of a step.
fn above(
    schedule: &Schedule,
    assignment: &Assignment,
    own: (usize, usize),
    step: &Step,
) -> Vec<(String, Time, Time)> {
    let mut above = Vec::new();
    for (task, transaction, number) in assignment.task_sets.tasks(step.resource) {
        if transaction != own.0 && task.priority >= step.priority {
            let name = step_name(schedule, assignment, (transaction, number));
            above.push((name, task.cost, task.period));
        }
    }
    above
}

fn or_unbounded(time: Option<Time>) -> String {
    time.map_or_else(|| "unbounded".to_owned(), readable_time)
}

fn explanation(
    schedule: &Schedule,
    assignment: &Assignment,
    operation: usize,
    greatest: Time,
    parts: &[Part],
) -> String {
    let it = &schedule.operations[operation];
    let result = &assignment.analysis.operations[operation];
    let transaction = &assignment.task_sets.transactions[result.transaction].name;
    let response = match result.response.time() {
        Some(time) => format!("at most {}", readable_time(time)),
        None => "no bound".to_owned(),
    };
    let mut text = format!(
        "{}: {response} from the arrival of {transaction}, of {} until its deadline\n",
        it.name,
        readable_time(result.deadline),
    );
    for part in parts {
        let _ = write!(
            text,
            "\n{} on {}\n  waits for what is before it   {}\n\
             {}  executes                      {}\n  \
             is blocked by less urgent     {}\n  waits for more urgent work    {}\n  \
             ends after                    {}\n",
            part.name,
            part.resource,
            or_unbounded(part.waits),
            match part.thread {
                Some(0) => String::new(),
                wait => format!("  waits for a thread            {}\n", or_unbounded(wait)),
            },
            readable_time(part.cost),
            readable_time(part.blocking),
            or_unbounded(part.others),
            or_unbounded(part.response),
        );
        for (name, cost, period) in &part.above {
            let (cost, period) = (readable_time(*cost), readable_time(*period));
            let _ = writeln!(text, "    more urgent: {name}, {cost} each {period}");
        }
    }
    if !result.is_on_time() {
        let late = Late::of(schedule, assignment, operation);
        let _ = writeln!(text, "\nlate: {}", late_text(schedule, assignment, &late));
    }
    let _ = match greatest {
        0 => write!(
            text,
            "\nno execution time of {} alone makes the schedule fit",
            it.name
        ),
        greatest => write!(
            text,
            "\nits execution time, {}, could be {} so that all deadlines are met",
            readable_time(it.cost),
            readable_time(greatest),
        ),
    };
    text
}

fn object(
    schedule: &Schedule,
    assignment: &Assignment,
    operation: usize,
    greatest: Time,
    parts: &[Part],
) -> Value {
    let result = &assignment.analysis.operations[operation];
    let steps = parts.iter().map(|part| {
        let above = part.above.iter().map(
            |(name, cost, period)| json!({ "name": name, "cost_ns": cost, "period_ns": period }),
        );
        json!({
            "name": part.name,
            "resource": part.resource,
            "waits_ns": part.waits,
            "thread_ns": part.thread,
            "cost_ns": part.cost,
            "blocking_ns": part.blocking,
            "others_ns": part.others,
            "response_ns": part.response,
            "more_urgent": above.collect::<Vec<_>>(),
        })
    });
    json!({
        "version": 1,
        "operation": schedule.operations[operation].name,
        "transaction": assignment.task_sets.transactions[result.transaction].name,
        "response_ns": result.response.time(),
        "deadline_ns": result.deadline,
        "greatest_wcet_ns": greatest,
        "steps": steps.collect::<Vec<_>>(),
    })
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  chronorb sched explain mission.toml Nav::update
  chronorb sched explain mission.toml Nav::update --json | jq .greatest_wcet_ns

Exit status: 0 also when the operation is late, 1 when the file is no schedule or has no such
operation, 2 when the command line is wrong.";
