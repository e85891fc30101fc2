//! Few levels: tasks of several priorities that share one native priority, or one lane.

use crate::error::{AnalysisError, Steps};
use crate::rta::{Preemption, response_among};
use crate::task::{Task, validate};

/// Divides tasks into the fewest bands of neighbouring priorities so that each task meets its
/// deadline, although all others of its band count as more urgent.
///
/// Returns the band of each task; band 0 is the least urgent one. `None` if the tasks are not
/// schedulable even with a band for each priority. From the lowest level up, each band takes as
/// many priorities as pass, which needs the fewest bands (Katcher, Sathaye and Strosnider 1995).
///
/// # Errors
/// As for [`responses`](crate::responses).
///
/// # Example
/// ```
/// use chronorb_sched::{Preemption, Task, assign_bands};
///
/// let tasks = [
///     Task::new(1, 10).with_priority(3),
///     Task::new(2, 20).with_priority(2),
///     Task::new(30, 100).with_priority(1),
/// ];
/// let bands = assign_bands(&tasks, Preemption::Preemptive)?;
/// assert_eq!(bands, Some(vec![1, 1, 0]));
/// # Ok::<(), chronorb_sched::AnalysisError>(())
/// ```
pub fn assign_bands(
    tasks: &[Task],
    preemption: Preemption,
) -> Result<Option<Vec<u32>>, AnalysisError> {
    validate(tasks)?;
    let mut steps = Steps::new(tasks.len());
    let mut priorities: Vec<_> = tasks.iter().map(|task| task.priority).collect();
    priorities.sort_unstable();
    priorities.dedup();
    let mut bands = vec![0; tasks.len()];
    let (mut lowest, mut band) = (0, 0);
    while lowest < priorities.len() {
        // A band that is longer delays all of its tasks more, so the first failure ends it.
        let mut end = lowest;
        while end < priorities.len() {
            let band = priorities[lowest]..=priorities[end];
            if !passes(tasks, band, preemption, &mut steps)? {
                break;
            }
            end += 1;
        }
        if end == lowest {
            return Ok(None);
        }
        let members = priorities[lowest]..=priorities[end - 1];
        for (task, its_band) in tasks.iter().zip(&mut bands) {
            if members.contains(&task.priority) {
                *its_band = band;
            }
        }
        lowest = end;
        band += 1;
    }
    Ok(Some(bands))
}

fn passes(
    tasks: &[Task],
    band: std::ops::RangeInclusive<u32>,
    preemption: Preemption,
    steps: &mut Steps,
) -> Result<bool, AnalysisError> {
    for (i, task) in tasks.iter().enumerate() {
        if band.contains(&task.priority) {
            let above = |other: &Task| other.priority >= *band.start();
            let response = response_among(tasks, i, preemption, task.deadline, steps, above)?;
            if !response.meets(task.deadline) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
