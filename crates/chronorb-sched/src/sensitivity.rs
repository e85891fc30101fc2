//! Sensitivity: the greatest factor of all execution times, the greatest execution time of one
//! task, and the task that is late first (Bini, Di Natale and Buttazzo 2006).

use crate::error::AnalysisError;
use crate::task::{Task, Time};

/// The unit of factors: a factor of one.
pub const MILLION: u64 = 1_000_000;

/// The greatest factor found; execution times are multiplied by at most a thousand.
const MAX_FACTOR: u64 = 1_000 * MILLION;

/// Returns the greatest factor, in millionths, by which all execution times may be multiplied so
/// that `test` still passes. Zero if it does not pass even with almost none.
///
/// `test` must be monotonic. It gets tasks whose times are multiplied by a million, so that the
/// factor is exact to a millionth. Factors above a thousand are given as a thousand.
///
/// # Errors
/// Those of `test`, and [`AnalysisError::TooLarge`] for times above 2⁶⁴ / 10⁶ units.
///
/// # Example
/// ```
/// use chronorb_sched::{Preemption, Task, breakdown_factor, is_schedulable};
///
/// let tasks = [Task::new(10, 50).with_priority(2), Task::new(20, 100).with_priority(1)];
/// let test = |tasks: &[Task]| is_schedulable(tasks, Preemption::Preemptive);
/// assert_eq!(breakdown_factor(&tasks, test)?, 2_500_000);
/// # Ok::<(), chronorb_sched::AnalysisError>(())
/// ```
pub fn breakdown_factor(
    tasks: &[Task],
    test: impl Fn(&[Task]) -> Result<bool, AnalysisError>,
) -> Result<u64, AnalysisError> {
    greatest(0, MAX_FACTOR, |factor| test(&scaled(tasks, factor)?))
}

/// Returns the tasks with all execution times multiplied by a factor in millionths, and all times
/// by a million.
///
/// # Errors
/// [`AnalysisError::TooLarge`] if a time exceeds 64 bits.
pub fn scaled(tasks: &[Task], factor: u64) -> Result<Vec<Task>, AnalysisError> {
    let times = |time: Time, factor| time.checked_mul(factor).ok_or(AnalysisError::TooLarge);
    let each = tasks.iter().map(|task| {
        Ok(Task {
            cost: times(task.cost, factor)?,
            period: times(task.period, MILLION)?,
            deadline: times(task.deadline, MILLION)?,
            jitter: times(task.jitter, MILLION)?,
            blocking: times(task.blocking, MILLION)?,
            offset: times(task.offset, MILLION)?,
            ..*task
        })
    });
    each.collect()
}

/// Returns the greatest execution time of one task with which `test` still passes; zero if there is
/// none. `test` must be monotonic.
///
/// # Errors
/// Those of `test`, and [`AnalysisError::NoSuchIndex`].
pub fn greatest_cost(
    tasks: &[Task],
    task: usize,
    test: impl Fn(&[Task]) -> Result<bool, AnalysisError>,
) -> Result<Time, AnalysisError> {
    let own = tasks.get(task).ok_or(AnalysisError::NoSuchIndex {
        what: "task",
        index: task,
    })?;
    let mut changed = tasks.to_vec();
    greatest(0, own.deadline, |cost| {
        changed[task].cost = cost;
        test(&changed)
    })
}

/// Returns the task that is late first if all execution times grow: the one with the least
/// [`greatest factor`](breakdown_factor) by a test of its own; the most urgent of several.
///
/// # Errors
/// As for [`breakdown_factor`].
pub fn bottleneck(
    tasks: &[Task],
    meets: impl Fn(&[Task], usize) -> Result<bool, AnalysisError>,
) -> Result<Option<(usize, u64)>, AnalysisError> {
    let mut least: Option<(usize, u64)> = None;
    for i in 0..tasks.len() {
        let factor = breakdown_factor(tasks, |tasks| meets(tasks, i))?;
        let is_less = least.is_none_or(|(before, it)| {
            (factor, u32::MAX - tasks[i].priority) < (it, u32::MAX - tasks[before].priority)
        });
        if is_less {
            least = Some((i, factor));
        }
    }
    Ok(least)
}

/// Returns the greatest value above `least` and up to `most` that passes, or `least`.
fn greatest(
    least: u64,
    most: u64,
    mut passes: impl FnMut(u64) -> Result<bool, AnalysisError>,
) -> Result<u64, AnalysisError> {
    let (mut good, mut bad) = (least, most.saturating_add(1));
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if passes(middle)? {
            good = middle;
        } else {
            bad = middle;
        }
    }
    Ok(good)
}
