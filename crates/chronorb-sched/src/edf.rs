//! Deadlines as priorities: the processor demand of Baruah and others (1990), by the quick analysis
//! of Zhang and Burns (2009); blocking as by the stack resource policy of Baker (1991).

use std::cmp::Ordering;

use crate::blocking::Section;
use crate::error::{AnalysisError, Steps};
use crate::rta::{Response, busy_period};
use crate::task::{Task, Time, hyperperiod, validate};
use crate::utilisation::compare_to_processor;

/// The work that delays jobs with an earlier deadline.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum DeadlineBlocking<'a> {
    /// None: every job is preempted at once.
    #[default]
    None,
    /// Critical sections with the stack resource policy.
    Sections(&'a [Section]),
    /// The longest job of a later deadline: jobs are not preempted.
    NonPreemptive,
}

/// The result of a test by processor demand.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DemandTest {
    /// Whether every job meets its deadline.
    pub schedulable: bool,
    /// The time before which a deadline would be missed first, if any is. Zero if the utilisation
    /// decides.
    pub limit: Time,
    /// The number of deadlines that were tested.
    pub checks: u64,
    /// The last tested deadline.
    pub deadline: Time,
    /// The demand up to that deadline, with the blocking.
    pub demand: Time,
}

/// Tests tasks that are scheduled by earliest deadline on one processor. The test is exact without
/// jitter and blocking, and safe with them. Priorities and [`Task::blocking`] have no effect.
///
/// # Errors
/// [`AnalysisError`] for zero values or a section of no task, and if the computation exceeds 64
/// bits or its bound of steps.
///
/// # Example
/// ```
/// use chronorb_sched::{DeadlineBlocking, Task, test_demand};
///
/// let tasks = [Task::new(2, 5), Task::new(4, 7)];
/// assert!(test_demand(&tasks, DeadlineBlocking::None)?.schedulable);
/// # Ok::<(), chronorb_sched::AnalysisError>(())
/// ```
pub fn test_demand(
    tasks: &[Task],
    blocking: DeadlineBlocking<'_>,
) -> Result<DemandTest, AnalysisError> {
    validate(tasks)?;
    let mut test = DemandTest {
        schedulable: true,
        limit: 0,
        checks: 0,
        deadline: 0,
        demand: 0,
    };
    let usage = compare_to_processor(tasks);
    // A job that can be late by its whole deadline before it is released meets none.
    let is_late = tasks.iter().any(|task| task.jitter >= task.deadline);
    if usage == Ordering::Greater || is_late {
        test.schedulable = false;
        return Ok(test);
    }
    let segments = Segments::new(tasks, blocking)?;
    let is_plain = |task: &Task| effective_deadline(task) >= task.period;
    match test_deadlines(tasks, &segments, usage, test) {
        // The demand within a time is at most the use of it, then (Liu and Layland 1973).
        Err(AnalysisError::TooComplex | AnalysisError::TooLarge)
            if segments.longest() == 0 && tasks.iter().all(is_plain) =>
        {
            Ok(test)
        }
        tested => tested,
    }
}

/// Tests the deadlines from the last one that matters back.
fn test_deadlines(
    tasks: &[Task],
    segments: &Segments,
    usage: Ordering,
    mut test: DemandTest,
) -> Result<DemandTest, AnalysisError> {
    let Some(earliest) = tasks.iter().map(effective_deadline).min() else {
        return Ok(test);
    };
    let mut steps = Steps::new(tasks.len());
    test.limit = limit(tasks, usage, segments.longest(), &mut steps)?;
    let mut next = deadline_before(tasks, test.limit);
    // Within a segment the blocking is constant, so a demand below the time proves all deadlines
    // between them.
    while let Some(time) = next {
        steps.take(tasks.len())?;
        let (start, blocking) = segments.at(time.into());
        let demand = demand_within(tasks, time)?.checked_add(blocking);
        let demand = demand.ok_or(AnalysisError::TooLarge)?;
        test = DemandTest {
            checks: test.checks + 1,
            deadline: time,
            demand,
            ..test
        };
        if demand > time {
            test.schedulable = false;
            return Ok(test);
        }
        next = if demand <= start.max(earliest) {
            deadline_before(tasks, start)
        } else if demand < time {
            Some(demand)
        } else {
            deadline_before(tasks, time)
        };
    }
    Ok(test)
}

/// Returns the work of all jobs that arrive and have their deadlines within this time.
///
/// # Errors
/// [`AnalysisError::TooLarge`] if the work exceeds 64 bits; errors for zero values.
pub fn demand(tasks: &[Task], time: Time) -> Result<Time, AnalysisError> {
    validate(tasks)?;
    demand_within(tasks, time)
}

fn demand_within(tasks: &[Task], time: Time) -> Result<Time, AnalysisError> {
    let work = tasks.iter().try_fold(0_u64, |sum, task| {
        let jobs = match time.checked_sub(effective_deadline(task)) {
            None => return Some(sum),
            Some(since) => (since / task.period).checked_add(1)?,
        };
        sum.checked_add(jobs.checked_mul(task.cost)?)
    });
    work.ok_or(AnalysisError::TooLarge)
}

/// Returns the deadline from the latest release, which the jitter allows.
const fn effective_deadline(task: &Task) -> Time {
    task.deadline.saturating_sub(task.jitter)
}

/// Returns the greatest absolute deadline before a time.
fn deadline_before(tasks: &[Task], time: Time) -> Option<Time> {
    let each = tasks.iter().filter_map(|task| {
        let first = effective_deadline(task);
        let since = time.checked_sub(first)?.checked_sub(1)?;
        Some(first + since / task.period * task.period)
    });
    each.max()
}

/// Returns a time before which the first missed deadline is, if there is any.
fn limit(
    tasks: &[Task],
    usage: Ordering,
    blocking: Time,
    steps: &mut Steps,
) -> Result<Time, AnalysisError> {
    let latest = tasks.iter().map(effective_deadline).max().unwrap_or(0);
    if usage == Ordering::Equal {
        // Demand grows by the hyperperiod in each hyperperiod, so the first one shows all.
        let all = hyperperiod(tasks.iter().map(|task| task.period))?;
        let limit = all.checked_add(latest).and_then(|it| it.checked_add(1));
        return limit.ok_or(AnalysisError::TooLarge);
    }
    let by_usage = limit_by_usage(tasks, blocking).map(|limit| limit.max(latest));
    let loads: Vec<_> = tasks.iter().map(Task::load).collect();
    let busy = busy_period(&loads, blocking, steps).ok();
    let by_busy = busy.and_then(Response::time);
    let limit = match (by_usage, by_busy) {
        (Some(a), Some(b)) => a.min(b),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => return Err(AnalysisError::TooComplex),
    };
    // A deadline at the limit itself cannot be the first one that is missed.
    Ok(limit)
}

/// Returns (blocking + Σ (T − D)·U) / (1 − U), rounded up; `None` if it exceeds 64 bits.
fn limit_by_usage(tasks: &[Task], blocking: Time) -> Option<Time> {
    let mut free = 1_u128 << 64;
    let mut work = u128::from(blocking);
    for task in tasks {
        let (cost, period) = (u128::from(task.cost), u128::from(task.period));
        free = free.checked_sub((cost << 64).div_ceil(period))?;
        let early = task.period.saturating_sub(effective_deadline(task));
        work += (u128::from(early) * cost).div_ceil(period);
    }
    if free == 0 || work > u128::from(Time::MAX) {
        return None;
    }
    Time::try_from((work << 64).div_ceil(free)).ok()
}

/// The blocking by deadline: pairs of a start, and of the blocking from there to the next start.
#[derive(Debug)]
pub(crate) struct Segments(Vec<(i128, Time)>);

impl Segments {
    pub(crate) fn new(
        tasks: &[Task],
        blocking: DeadlineBlocking<'_>,
    ) -> Result<Self, AnalysisError> {
        if let DeadlineBlocking::Sections(sections) = blocking {
            let wrong = sections.iter().find(|section| section.task >= tasks.len());
            if let Some(section) = wrong {
                return Err(AnalysisError::NoSuchIndex {
                    what: "task",
                    index: section.task,
                });
            }
        }
        let mut starts: Vec<_> = tasks.iter().map(first_deadline).collect();
        starts.sort_unstable();
        starts.dedup();
        let is_later = |task: &Task, time| first_deadline(task) > time;
        let at = |time: i128| match blocking {
            DeadlineBlocking::None => 0,
            DeadlineBlocking::NonPreemptive => {
                let later = tasks.iter().filter(|task| is_later(task, time));
                later.map(|task| task.cost).max().unwrap_or(0)
            }
            DeadlineBlocking::Sections(sections) => {
                // A lock blocks a job if a task of its preemption level or above uses the lock.
                let early = tasks.iter().filter(|task| !is_later(task, time));
                let lowest = early.map(|task| task.deadline).max().unwrap_or(0);
                let is_shared = |section: &&Section| {
                    sections.iter().any(|other| {
                        other.lock == section.lock && tasks[other.task].deadline <= lowest
                    })
                };
                let late = |section: &&Section| is_later(&tasks[section.task], time);
                let blocking = sections.iter().filter(late).filter(is_shared);
                blocking.map(|section| section.length).max().unwrap_or(0)
            }
        };
        let each = starts.into_iter().map(|start| (start, at(start)));
        let mut segments: Vec<_> = each.collect();
        segments.dedup_by_key(|(_, blocking)| *blocking);
        Ok(Self(segments))
    }

    /// Returns the longest blocking.
    pub(crate) fn longest(&self) -> Time {
        self.0.iter().map(|(_, time)| *time).max().unwrap_or(0)
    }

    /// Returns the start of the segment of a deadline, and its blocking.
    pub(crate) fn at(&self, deadline: i128) -> (Time, Time) {
        let next = self.0.partition_point(|(start, _)| *start <= deadline);
        match next.checked_sub(1).map(|segment| self.0[segment]) {
            Some((start, blocking)) => (Time::try_from(start).unwrap_or(0), blocking),
            None => (0, self.longest()),
        }
    }
}

/// Returns the deadline of a job that is released at zero after its whole jitter.
pub(crate) fn first_deadline(task: &Task) -> i128 {
    i128::from(task.deadline) - i128::from(task.jitter)
}
