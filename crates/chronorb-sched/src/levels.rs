//! Levels of dispatching: maximum urgency first (Stewart and Khosla 1991), least laxity, earliest
//! deadline, and hybrids of them with rate-monotonic priorities.

use std::cmp::Reverse;

use crate::edf::{DeadlineBlocking, test_demand};
use crate::error::{AnalysisError, Steps};
use crate::rta::{Preemption, busy_period, worst};
use crate::task::{Task, Time, validate};
use crate::utilisation::fitting_prefix;

/// A strategy by which tasks are divided into levels.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LevelStrategy {
    /// A static level for each period.
    RateMonotonic,
    /// One level, by deadline.
    EarliestDeadline,
    /// One level, by laxity.
    LeastLaxity,
    /// A level for each criticality, by laxity.
    MaximumUrgency,
    /// A level for the whole critical set, by laxity; below it, one for each criticality.
    MaximumUrgencyOfCriticalSet,
    /// Static levels for the periods of the critical set; below it, one for each criticality, by
    /// laxity.
    RateMonotonicLaxity,
}

/// The order of the jobs of a level.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LevelOrder {
    /// By arrival, then by the static order of the tasks.
    Static,
    /// By absolute deadline.
    Deadline,
    /// By laxity: the deadline minus the time and the remaining execution time.
    Laxity,
}

/// A level: its jobs preempt those of later levels.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DispatchLevel {
    /// The indices of the tasks, in the static order that breaks ties.
    pub tasks: Vec<usize>,
    /// The order of the jobs.
    pub order: LevelOrder,
}

/// Returns the laxity of a job, which is negative if it cannot end in time. The least is the most
/// urgent.
pub const fn laxity(deadline: Time, now: Time, remaining: Time) -> i128 {
    deadline as i128 - now as i128 - remaining as i128
}

/// Returns the critical set: the longest prefix, by criticality and then by period, whose
/// utilisation is at most a whole processor.
///
/// # Errors
/// [`AnalysisError`] for zero values.
pub fn critical_set(tasks: &[Task]) -> Result<Vec<usize>, AnalysisError> {
    validate(tasks)?;
    let mut order: Vec<_> = (0..tasks.len()).collect();
    order.sort_by_key(|i| (Reverse(tasks[*i].criticality), tasks[*i].period, *i));
    let loads = order.iter().map(|i| tasks[*i].load());
    let count = fitting_prefix(loads);
    order.truncate(count);
    Ok(order)
}

/// Divides tasks into levels, the most urgent one first. Within a level, the static order is by
/// period, importance and index; with [`LevelStrategy::MaximumUrgency`], by importance, period and
/// index, as in TAO. It breaks ties of the order by laxity or deadline, on which no guarantee
/// depends.
///
/// # Errors
/// [`AnalysisError`] for zero values.
pub fn dispatch_levels(
    tasks: &[Task],
    strategy: LevelStrategy,
) -> Result<Vec<DispatchLevel>, AnalysisError> {
    let mut is_critical = vec![false; tasks.len()];
    for i in critical_set(tasks)? {
        is_critical[i] = true;
    }
    // Levels by (is not critical, key); the key is of the criticality or of the period.
    let level_of = |i: usize| {
        let task = &tasks[i];
        let by_criticality = Time::from(u8::MAX - task.criticality);
        let is_critical = is_critical[i];
        match strategy {
            LevelStrategy::RateMonotonic => (false, task.period, LevelOrder::Static),
            LevelStrategy::EarliestDeadline => (false, 0, LevelOrder::Deadline),
            LevelStrategy::LeastLaxity => (false, 0, LevelOrder::Laxity),
            LevelStrategy::MaximumUrgency => (false, by_criticality, LevelOrder::Laxity),
            LevelStrategy::MaximumUrgencyOfCriticalSet if is_critical => {
                (false, 0, LevelOrder::Laxity)
            }
            LevelStrategy::RateMonotonicLaxity if is_critical => {
                (false, task.period, LevelOrder::Static)
            }
            LevelStrategy::MaximumUrgencyOfCriticalSet | LevelStrategy::RateMonotonicLaxity => {
                (true, by_criticality, LevelOrder::Laxity)
            }
        }
    };
    let mut order: Vec<_> = (0..tasks.len()).map(|i| (level_of(i), i)).collect();
    order.sort_by_key(|((is_low, key, _), i)| {
        let task = &tasks[*i];
        let by_importance = Reverse(match strategy {
            LevelStrategy::MaximumUrgency => task.importance,
            _ => 0,
        });
        let importance = Reverse(task.importance);
        (*is_low, *key, by_importance, task.period, importance, *i)
    });
    let levels = order.chunk_by(|(a, _), (b, _)| a == b);
    let each = levels.map(|level| DispatchLevel {
        tasks: level.iter().map(|(_, i)| *i).collect(),
        order: level[0].0.2,
    });
    Ok(each.collect())
}

/// The place of a task among levels.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Subpriority {
    /// The level; 0 is the most urgent one.
    pub level: usize,
    /// The order within the level at a synchronous start; a greater one is more urgent. Zero in
    /// static levels.
    pub dynamic: usize,
    /// The static order within the level; a greater one is more urgent.
    pub fixed: usize,
}

/// Returns the place of each task. A task in no level has none.
///
/// # Errors
/// [`AnalysisError::NoSuchIndex`] if a level names a task that does not exist.
pub fn subpriorities(
    tasks: &[Task],
    levels: &[DispatchLevel],
) -> Result<Vec<Option<Subpriority>>, AnalysisError> {
    check(tasks, levels)?;
    let mut places = vec![None; tasks.len()];
    for (level, it) in levels.iter().enumerate() {
        let urgency = |i: usize| match it.order {
            LevelOrder::Static => 0,
            LevelOrder::Deadline => i128::from(tasks[i].deadline),
            LevelOrder::Laxity => laxity(tasks[i].deadline, 0, tasks[i].cost),
        };
        let mut urgencies: Vec<_> = it.tasks.iter().map(|i| urgency(*i)).collect();
        urgencies.sort_unstable();
        urgencies.dedup();
        for (position, i) in it.tasks.iter().enumerate() {
            let less_urgent = urgencies.partition_point(|other| *other <= urgency(*i));
            places[*i] = Some(Subpriority {
                level,
                dynamic: urgencies.len() - less_urgent,
                fixed: it.tasks.len() - 1 - position,
            });
        }
    }
    Ok(places)
}

/// Returns for each task whether its deadlines are guaranteed, whatever tasks of later levels do.
/// The test is safe, and exact for static levels without blocking.
///
/// With `run_to_completion`, jobs of a level do not preempt each other.
///
/// | level | test |
/// |---|---|
/// | static, or of one task | response time with equals counted as more urgent |
/// | first, by deadline or laxity | processor demand |
/// | first, by deadline or laxity, to completion | demand, with the longest later job as blocking; by laxity with deadlines earlier by the execution time |
/// | another, by deadline or laxity | the busy period of it and all earlier levels |
///
/// # Errors
/// [`AnalysisError`] for zero values or a level with a task that does not exist, and if the
/// computation exceeds 64 bits or its bound of steps.
pub fn guaranteed(
    tasks: &[Task],
    levels: &[DispatchLevel],
    run_to_completion: bool,
) -> Result<Vec<bool>, AnalysisError> {
    validate(tasks)?;
    check(tasks, levels)?;
    let mut steps = Steps::new(tasks.len());
    let mut verdicts = vec![false; tasks.len()];
    let mut earlier = Vec::new();
    for level in levels {
        let own: Vec<_> = level.tasks.iter().map(|i| tasks[*i]).collect();
        let is_static = level.order == LevelOrder::Static || own.len() == 1;
        if is_static {
            for (position, i) in level.tasks.iter().enumerate() {
                let mut above: Vec<_> = earlier.clone();
                let others = own.iter().enumerate().filter(|(it, _)| *it != position);
                above.extend(others.map(|(_, task)| task.load()));
                let task = &tasks[*i];
                let mode = Preemption::Preemptive;
                let limit = task.deadline;
                let response = worst(task, task.blocking, &above, mode, limit, &mut steps)?;
                verdicts[*i] = response.meets(task.deadline);
            }
        } else if earlier.is_empty() && own.iter().all(|task| task.blocking == 0) {
            let fits = first_level_fits(&own, level.order, run_to_completion)?;
            for i in &level.tasks {
                verdicts[*i] = fits;
            }
        } else {
            let all: Vec<_> = (earlier.iter().copied())
                .chain(own.iter().map(Task::load))
                .collect();
            let blocking = own.iter().map(|task| task.blocking).max().unwrap_or(0);
            let busy = busy_period(&all, blocking, &mut steps)?.time();
            for i in &level.tasks {
                let task = &tasks[*i];
                let longest = busy.and_then(|time| time.checked_add(task.jitter));
                verdicts[*i] = longest.is_some_and(|time| time <= task.deadline);
            }
        }
        earlier.extend(own.iter().map(Task::load));
    }
    Ok(verdicts)
}

fn first_level_fits(
    tasks: &[Task],
    order: LevelOrder,
    run_to_completion: bool,
) -> Result<bool, AnalysisError> {
    if !run_to_completion {
        return Ok(test_demand(tasks, DeadlineBlocking::None)?.schedulable);
    }
    let mut tasks = tasks.to_vec();
    if order == LevelOrder::Laxity {
        // Waiting jobs are ordered by deadline minus execution time, as by earlier deadlines.
        for task in &mut tasks {
            task.deadline = task.deadline.saturating_sub(task.cost);
            if task.deadline == 0 {
                return Ok(false);
            }
        }
    }
    Ok(test_demand(&tasks, DeadlineBlocking::NonPreemptive)?.schedulable)
}

fn check(tasks: &[Task], levels: &[DispatchLevel]) -> Result<(), AnalysisError> {
    let mut all = levels.iter().flat_map(|level| &level.tasks);
    match all.find(|i| **i >= tasks.len()) {
        Some(index) => Err(AnalysisError::NoSuchIndex {
            what: "task",
            index: *index,
        }),
        None => Ok(()),
    }
}
