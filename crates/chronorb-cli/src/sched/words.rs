//! Names and numbers in the outputs of all commands.

use chronorb_sched::{BILLION, Response};
use chronorb_schedule::{ActivityOutcome, Assignment, Schedule, StepWork, Time, Work};

/// Returns the name of each step, as it is shown.
pub(super) fn step_name(
    schedule: &Schedule,
    assignment: &Assignment,
    at: (usize, usize),
) -> String {
    let transaction = &assignment.task_sets.transactions[at.0];
    let name = |operation: usize| schedule.operations[operation].name.as_str();
    let step = match transaction.works[at.1] {
        StepWork::Execution { operation } => name(operation).to_owned(),
        StepWork::Request { operation } => format!("request to {}", name(operation)),
        StepWork::Reply { operation } => format!("reply of {}", name(operation)),
        StepWork::Message => "message".to_owned(),
    };
    if matches!(transaction.works[..], [StepWork::Message]) {
        transaction.name.clone()
    } else if transaction.works.len() == 1 || step == transaction.name {
        step
    } else {
        format!("{} / {step}", transaction.name)
    }
}

/// Returns the name of a work of a simulated activity.
pub(super) fn work_name(schedule: &Schedule, activity: &ActivityOutcome, work: Work) -> String {
    let name = |operation: usize| schedule.operations[operation].name.as_str();
    let text = match work {
        Work::Execution { operation } => name(operation).to_owned(),
        Work::Request { operation } => format!("request to {}", name(operation)),
        Work::Reply { operation } => format!("reply of {}", name(operation)),
        Work::Message { .. } => "message".to_owned(),
    };
    if text == activity.name {
        text
    } else {
        format!("{} / {text}", activity.name)
    }
}

/// Renders billionths as a percentage, rounded up.
pub(super) fn percent(billionths: u128) -> String {
    let tenths = (billionths * 1_000).div_ceil(BILLION);
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// Returns the word for an analysed response beside a simulated one. It is exact if a job takes
/// that long, and sufficient if it is perhaps too long. `None` without a bound.
pub(super) fn bound_word(analysed: Response, simulated: Option<Time>) -> Option<&'static str> {
    let analysed = analysed.time()?;
    Some(match simulated {
        Some(simulated) if simulated == analysed => "exact",
        Some(simulated) if simulated > analysed => "exceeded",
        _ => "sufficient",
    })
}
