//! The reason for which an operation is late, and what would make a schedule fit.

use std::path::Path;
use std::sync::atomic::Ordering;

use chronorb_sched::{BILLION, Response, Step};
use chronorb_schedule::{
    Assignment, PriorityRule, Schedule, ThreadOwner, ThreadShortage, Time, readable_time,
};

use super::progress::with_progress;
use super::source::{SchedCommandError, analysis};
use super::words::{percent, step_name};

/// An operation that is late.
#[derive(Debug)]
pub(super) struct Late {
    pub(super) operation: usize,
    pub(super) response: Response,
    pub(super) deadline: Time,
    pub(super) reason: Reason,
}

impl Late {
    /// Returns the facts about a late operation.
    pub(super) fn of(schedule: &Schedule, assignment: &Assignment, operation: usize) -> Self {
        let result = &assignment.analysis.operations[operation];
        Self {
            operation,
            response: result.response,
            deadline: result.deadline,
            reason: Reason::of(schedule, assignment, operation),
        }
    }
}

/// A message that is late although all operations of its transaction are on time.
#[derive(Debug)]
pub(super) struct LateMessage {
    name: String,
    response: Response,
    deadline: Time,
}

impl LateMessage {
    /// Returns the late messages of transactions without a late operation.
    pub(super) fn all(schedule: &Schedule, assignment: &Assignment) -> Vec<Self> {
        let sets = &assignment.task_sets.transactions;
        let mut late = Vec::new();
        for (number, (named, result)) in
            (sets.iter().zip(&assignment.analysis.transactions)).enumerate()
        {
            let steps = named.transaction.steps.iter().zip(&result.steps);
            let deadline = |step: &Step| step.deadline.unwrap_or(named.transaction.deadline);
            let own = steps
                .enumerate()
                .filter_map(|(position, (step, response))| {
                    let deadline = deadline(step);
                    (!response.meets(deadline)).then_some((position, *response, deadline))
                });
            let own: Vec<_> = own.collect();
            if own.iter().any(|it| named.works[it.0].executed().is_some()) {
                continue;
            }
            late.extend(own.into_iter().map(|(position, response, deadline)| Self {
                name: step_name(schedule, assignment, (number, position)),
                response,
                deadline,
            }));
        }
        late
    }

    /// Returns the message, and by how much it is late.
    pub(super) fn text(&self) -> String {
        late_by(&self.name, self.response, self.deadline)
    }
}

/// The reason for which an operation is late.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Reason {
    /// The longest response exceeds the deadline.
    Deadline,
    /// The operation and more urgent work use more than the whole resource.
    Overload { resource: usize, used: u128 },
    /// Another step of its transaction has no bound.
    Follows { step: String },
    /// More urgent work delays it, and has no bound.
    Delayed { resource: usize },
    /// Locks of several processors delay it without a bound, or beyond its period.
    Locks,
    /// The threads of its transaction are too few.
    Threads,
}

impl Reason {
    /// Returns the reason of a late operation.
    fn of(schedule: &Schedule, assignment: &Assignment, operation: usize) -> Self {
        let result = &assignment.analysis.operations[operation];
        if result.response.time().is_some() {
            return Self::Deadline;
        }
        let number = result.transaction;
        let works = &assignment.task_sets.transactions[number].works;
        let is_own = |step: &usize| works[*step].executed() == Some(operation);
        let all = || 0..works.len();
        let name = |step| step_name(schedule, assignment, (number, step));
        let overload = |step: &usize| overload(assignment, (number, *step));
        let steps = &assignment.task_sets.transactions[number].transaction.steps;
        if steps.iter().any(|step| step.wait == Time::MAX) {
            return Self::Threads;
        }
        if let Some((resource, used)) = all().filter(is_own).find_map(|step| overload(&step)) {
            return Self::Overload { resource, used };
        }
        if let Some(step) = all().find(|step| overload(step).is_some()) {
            return Self::Follows { step: name(step) };
        }
        let responses = &assignment.analysis.transactions[number].steps;
        let first = all().find(|step| responses[*step] == Response::Unbounded);
        let first = first.unwrap_or_default();
        if is_own(&first) {
            let step = &assignment.task_sets.transactions[number].transaction.steps[first];
            if step.suspends || step.blocking == Time::MAX {
                return Self::Locks;
            }
            let resource = step.resource;
            Self::Delayed { resource }
        } else {
            Self::Follows { step: name(first) }
        }
    }

    /// Returns the word for programs.
    pub(super) const fn word(&self) -> &'static str {
        match self {
            Self::Deadline => "deadline",
            Self::Overload { .. } => "overload",
            Self::Follows { .. } => "follows",
            Self::Delayed { .. } => "delayed",
            Self::Locks => "locks",
            Self::Threads => "threads",
        }
    }
}

/// Returns the resource of a step and what it and more urgent work use of it, if that is more than
/// the whole.
fn overload(assignment: &Assignment, (number, step): (usize, usize)) -> Option<(usize, u128)> {
    let sets = &assignment.task_sets;
    let step = &sets.transactions[number].transaction.steps[step];
    let tasks = sets.tasks(step.resource).into_iter();
    let urgent = tasks.filter(|(task, ..)| task.priority >= step.priority);
    let used: u128 = urgent.map(|(task, ..)| task.load().share()).sum();
    (used > BILLION).then_some((step.resource, used))
}

/// Returns what is late, by how much, and why.
pub(super) fn late_text(schedule: &Schedule, assignment: &Assignment, late: &Late) -> String {
    let name = &schedule.operations[late.operation].name;
    let resource = |resource: &usize| &assignment.task_sets.resources[*resource].name;
    let why = match &late.reason {
        Reason::Deadline => return late_by(name, late.response, late.deadline),
        Reason::Overload { resource: at, used } => format!(
            "it and more urgent work use {} of {}, {} more than it has",
            percent(*used),
            resource(at),
            percent(used.saturating_sub(BILLION)),
        ),
        Reason::Locks => "with waits for locks that are taken on several processors, it or one of \
                          them takes longer than its period"
            .to_owned(),
        Reason::Threads => "its transaction has too few threads".to_owned(),
        Reason::Follows { step } => format!("{step}, of the same transaction, has none"),
        Reason::Delayed { resource: at } => {
            format!(
                "more urgent work on {} delays it more and more",
                resource(at)
            )
        }
    };
    format!("{name}: its response has no bound: {why}")
}

/// Returns the threads that are too few, and what would do.
pub(super) fn shortage_text(
    schedule: &Schedule,
    assignment: &Assignment,
    shortage: &ThreadShortage,
) -> String {
    let operation = &schedule.operations[shortage.operation].name;
    let has = match shortage.threads {
        1 => "1 thread".to_owned(),
        n => format!("{n} threads"),
    };
    let lane = lane_of(assignment, shortage.operation);
    match (shortage.owner, shortage.needed) {
        (ThreadOwner::Activity, needed) => format!(
            "{operation} has {has}, and can take longer than its period: it needs {}",
            needed.unwrap_or_default()
        ),
        (ThreadOwner::Lane, Some(needed)) => format!(
            "the lane {lane} has {has}, and a request has one also while it waits for calls: \
             with {needed} none would wait for a thread"
        ),
        (ThreadOwner::Lane, None) => {
            format!("the lane {lane} has {has}, and its requests can have any number at once")
        }
    }
}

fn lane_of(assignment: &Assignment, operation: usize) -> &str {
    let mut lanes = assignment.lanes.iter();
    let lane = lanes.find(|lane| lane.operations.contains(&operation));
    lane.map_or("", |lane| &lane.name)
}

fn late_by(name: &str, response: Response, deadline: Time) -> String {
    let Some(response) = response.time() else {
        return format!("{name}: its response has no bound");
    };
    format!(
        "{name}: it can take {}, {} more than its deadline of {}",
        readable_time(response),
        readable_time(response.saturating_sub(deadline)),
        readable_time(deadline),
    )
}

/// Changes with which a schedule would fit that does not.
#[derive(Debug, Default)]
pub(super) struct Remedies {
    /// Execution times of one operation alone, the one with the least change first.
    pub(super) costs: Vec<(usize, Time)>,
    /// Other rules of priorities.
    pub(super) rules: Vec<PriorityRule>,
    /// Deadlines of the late transactions, which alone change.
    pub(super) deadlines: Vec<(String, Time)>,
}

impl Remedies {
    /// Looks for changes of a schedule with which all deadlines are met.
    pub(super) fn find(
        file: &Path,
        schedule: &Schedule,
        assignment: &Assignment,
    ) -> Result<Self, SchedCommandError> {
        let ranks = assignment.band_ranks();
        let candidates = schedule.operations.len().min(MOST_CANDIDATES);
        let steps = candidates + OTHER_RULES.len();
        let found = with_progress("finding what would fit", steps as u64, |done| {
            // Each operation alone could be too long for all that is late.
            let operations = (0..candidates).inspect(|_| {
                done.fetch_add(1, Ordering::Relaxed);
            });
            let costs = schedule.least_cuts(&ranks, operations, MOST_SHOWN)?;
            let mut rules = Vec::new();
            for rule in OTHER_RULES {
                if rule != schedule.rules.priorities {
                    let mut other = schedule.clone();
                    other.rules.priorities = rule;
                    // A rule that cannot be analysed is no remedy.
                    let fits = other.ranks().and_then(|it| other.to_task_sets(&it)?.fits());
                    rules.extend(fits.is_ok_and(|fits| fits).then_some(rule));
                }
                done.fetch_add(1, Ordering::Relaxed);
            }
            Ok((costs, rules))
        });
        let (costs, rules) = found.map_err(|error| analysis(file, error))?;
        Ok(Self {
            costs,
            rules,
            deadlines: deadlines(schedule, assignment).unwrap_or_default(),
        })
    }

    /// Returns a sentence for each remedy.
    pub(super) fn texts(&self, schedule: &Schedule) -> Vec<String> {
        let name = |operation: &usize| &schedule.operations[*operation].name;
        let mut texts = Vec::new();
        for (operation, cost) in &self.costs {
            texts.push(format!(
                "a wcet of {} of {} instead of {} would fit",
                readable_time_down(*cost),
                name(operation),
                readable_time(schedule.operations[*operation].cost),
            ));
        }
        if self.costs.is_empty() {
            texts.push("no wcet of one operation alone would fit".to_owned());
        }
        for rule in &self.rules {
            texts.push(format!("priorities = {:?} would fit", rule_word(*rule)));
        }
        if !self.deadlines.is_empty() {
            let each = self.deadlines.iter();
            let each = each.map(|(name, time)| format!("{} of {name}", readable_time(*time)));
            let all = each.collect::<Vec<_>>().join(" and ");
            let deadlines = if self.deadlines.len() == 1 {
                "a deadline"
            } else {
                "deadlines"
            };
            texts.push(format!("{deadlines} of {all} would fit"));
        }
        texts
    }
}

/// Returns the longest responses of late transactions, which would fit as deadlines. `None` if one
/// has no bound, a late step has a deadline of its own, or priorities would change with deadlines.
fn deadlines(schedule: &Schedule, assignment: &Assignment) -> Option<Vec<(String, Time)>> {
    match schedule.rules.priorities {
        PriorityRule::RateMonotonic | PriorityRule::Declared => {}
        PriorityRule::DeadlineMonotonic | PriorityRule::Optimal | PriorityRule::Holistic => {
            return None;
        }
    }
    let mut deadlines = Vec::new();
    let transactions = assignment.task_sets.transactions.iter();
    for (named, result) in transactions.zip(&assignment.analysis.transactions) {
        if result.on_time {
            continue;
        }
        let steps = named.transaction.steps.iter().zip(&result.steps);
        let mut own = steps.filter_map(|(step, response)| Some((step.deadline?, response)));
        if own.any(|(deadline, response)| !response.meets(deadline)) {
            return None;
        }
        deadlines.push((named.name.clone(), result.response.time()?));
    }
    Some(deadlines)
}

/// Returns the word of a rule in a schedule file.
pub(super) const fn rule_word(rule: PriorityRule) -> &'static str {
    match rule {
        PriorityRule::DeadlineMonotonic => "deadline-monotonic",
        PriorityRule::RateMonotonic => "rate-monotonic",
        PriorityRule::Optimal => "optimal",
        PriorityRule::Holistic => "holistic",
        PriorityRule::Declared => "declared",
    }
}

/// Returns a time that is not longer than it is.
fn readable_time_down(time: Time) -> String {
    let unit = match time {
        0..1_000_000 => 1,
        1_000_000..1_000_000_000 => 1_000,
        _ => 1_000_000,
    };
    readable_time(time / unit * unit)
}

/// The rules that are tried, the simplest first.
const OTHER_RULES: [PriorityRule; 4] = [
    PriorityRule::DeadlineMonotonic,
    PriorityRule::RateMonotonic,
    PriorityRule::Optimal,
    PriorityRule::Holistic,
];
/// The operations whose execution time is looked at.
const MOST_CANDIDATES: usize = 200;
/// The changes that are shown.
const MOST_SHOWN: usize = 3;
