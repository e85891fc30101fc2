//! Assignment of fixed priorities: rate-monotonic (Liu and Layland 1973), deadline-monotonic (Leung
//! and Whitehead 1982; by deadline minus jitter, Zuhily and Burns 2007), and optimal (Audsley
//! 1991).

use std::cmp::Reverse;

use crate::error::{AnalysisError, Steps};
use crate::rta::{Preemption, response_among};
use crate::task::{Task, validate};

/// Assigns distinct priorities by period, the shortest one first; then by importance and index.
/// Optimal for deadlines equal to periods.
pub fn assign_rate_monotonic(tasks: &mut [Task]) {
    assign_by(tasks, |task| task.period);
}

/// Assigns distinct priorities by deadline minus jitter, the shortest one first; then by importance
/// and index. Optimal for preemptive tasks with deadlines of at most the period.
pub fn assign_deadline_monotonic(tasks: &mut [Task]) {
    assign_by(tasks, |task| {
        i128::from(task.deadline) - i128::from(task.jitter)
    });
}

fn assign_by<K: Ord>(tasks: &mut [Task], key: impl Fn(&Task) -> K) {
    let mut order: Vec<_> = (0..tasks.len()).collect();
    order.sort_by_key(|i| (key(&tasks[*i]), Reverse(tasks[*i].importance), *i));
    for (rank, i) in order.into_iter().rev().enumerate() {
        tasks[i].priority = u32::try_from(rank + 1).unwrap_or(u32::MAX);
    }
}

/// Assigns distinct priorities so that every task meets its deadline, if any order does so.
///
/// From the lowest level up, a level gets the least urgent task, by deadline minus jitter, that
/// meets its deadline there. Values of [`Task::blocking`] are taken as they are. Returns the
/// levels that no task could fill: none if the set is schedulable. Otherwise the tasks keep
/// their priorities.
///
/// # Errors
/// As for [`responses`](crate::responses).
///
/// # Example
/// ```
/// use chronorb_sched::{Preemption, Task, assign_optimal};
///
/// let x = Task::new(3, 12).with_deadline(6);
/// let y = Task::new(3, 12).with_deadline(7).with_jitter(3);
/// let mut tasks = [x, y];
/// assert_eq!(assign_optimal(&mut tasks, Preemption::Preemptive)?, 0);
/// assert!(tasks[1].priority > tasks[0].priority);
/// # Ok::<(), chronorb_sched::AnalysisError>(())
/// ```
pub fn assign_optimal(tasks: &mut [Task], preemption: Preemption) -> Result<usize, AnalysisError> {
    validate(tasks)?;
    let mut steps = Steps::new(tasks.len());
    // While a level is filled, the tasks that have none yet are at this priority.
    let mut trial = tasks.to_vec();
    for task in &mut trial {
        task.priority = u32::MAX;
    }
    let mut left: Vec<_> = (0..tasks.len()).collect();
    left.sort_by_key(|i| {
        let task = &tasks[*i];
        let laxity = i128::from(task.deadline) - i128::from(task.jitter);
        (Reverse(laxity), task.importance, Reverse(*i))
    });
    for level in 1..=tasks.len() {
        let mut fitting = None;
        for (position, i) in left.iter().enumerate() {
            let response = response_among(
                &trial,
                *i,
                preemption,
                trial[*i].deadline,
                &mut steps,
                |other| other.priority == u32::MAX,
            )?;
            if response.meets(trial[*i].deadline) {
                fitting = Some(position);
                break;
            }
        }
        let Some(position) = fitting else {
            return Ok(left.len());
        };
        let i = left.remove(position);
        trial[i].priority = u32::try_from(level).unwrap_or(u32::MAX - 1);
    }
    tasks.copy_from_slice(&trial);
    Ok(0)
}
