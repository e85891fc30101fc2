//! Admission of operations with several rates, as by TAO's reconfigurable scheduler with the
//! strategy FAIR.

use std::cmp::Reverse;

use crate::error::AnalysisError;
use crate::task::{Load, Task, validate};

/// Chooses a rate for each operation, so that every operation gets its lowest rate before any gets
/// a greater one.
///
/// `operations` has the tasks of each operation, one for each rate. The lowest rates are admitted
/// first, by criticality and importance; then the second ones, and so on, each if the utilisation
/// stays at most `limit` billionths. An operation that does not get one rate gets no greater one.
/// Returns the index of the admitted task of each operation, or `None` if there is no room even for
/// the lowest rate.
///
/// # Errors
/// [`AnalysisError`] for a task with zero values; its index is that of the operation.
///
/// # Example
/// ```
/// use chronorb_sched::{BILLION, Task, admit_rates};
///
/// let video = vec![Task::new(30, 100), Task::new(30, 50)];
/// let control = vec![Task::new(10, 50).with_criticality(1, 0), Task::new(10, 25)];
/// assert_eq!(admit_rates(&[video, control], BILLION)?, [Some(1), Some(1)]);
/// # Ok::<(), chronorb_sched::AnalysisError>(())
/// ```
pub fn admit_rates(
    operations: &[Vec<Task>],
    limit: u128,
) -> Result<Vec<Option<usize>>, AnalysisError> {
    // The tasks of each operation, from the lowest rate up.
    let mut choices = Vec::with_capacity(operations.len());
    for (index, tasks) in operations.iter().enumerate() {
        validate(tasks).map_err(|error| error.with_task(index))?;
        let mut rates: Vec<_> = (0..tasks.len()).collect();
        rates.sort_by_key(|rate| (Reverse(tasks[*rate].period), *rate));
        choices.push((index, rates));
    }
    choices.sort_by_key(|(index, rates)| {
        let lowest = rates.first().map(|rate| &operations[*index][*rate]);
        Reverse(lowest.map(|task| (task.criticality, task.importance)))
    });
    let mut admitted: Vec<Option<usize>> = vec![None; operations.len()];
    let mut used = 0_u128;
    let most = choices.iter().map(|(_, rates)| rates.len()).max();
    for number in 0..most.unwrap_or(0) {
        for (index, rates) in &choices {
            let (before, tasks) = (admitted[*index], &operations[*index]);
            let lower = number.checked_sub(1).map(|lower| rates.get(lower).copied());
            let Some(rate) = rates.get(number).filter(|_| before == lower.flatten()) else {
                continue;
            };
            let share = |rate: usize| Load::share(&tasks[rate].load());
            let with = used - before.map_or(0, share) + share(*rate);
            if with <= limit {
                used = with;
                admitted[*index] = Some(*rate);
            }
        }
    }
    Ok(admitted)
}
