//! Blocking by locks: the protocols of Sha, Rajkumar and Lehoczky (1990).

use crate::error::AnalysisError;
use crate::task::{Task, Time, validate};

/// A critical section: a task holds a lock for at most a time. Sections are not nested, and a task
/// does not suspend itself within one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Section {
    /// The index of the task.
    pub task: usize,
    /// The number of the lock.
    pub lock: usize,
    /// The longest time for which the task holds the lock.
    pub length: Time,
}

/// The protocol of the locks of a processor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LockProtocol {
    /// The holder inherits the priority of waiters; several sections can block one job.
    Inheritance,
    /// The holder has the lock's ceiling; one section at most blocks a job.
    Ceiling,
}

/// Sets [`Task::blocking`] of each task from the critical sections of less urgent tasks.
///
/// A lock can block a task if a task of its priority or above uses the lock. Tasks of equal
/// priority do not block each other: the whole job counts as more urgent work.
///
/// # Errors
/// [`AnalysisError`] for zero values, a section of a task that does not exist, or times that exceed
/// 64 bits.
pub fn assign_blocking(
    tasks: &mut [Task],
    sections: &[Section],
    protocol: LockProtocol,
) -> Result<(), AnalysisError> {
    validate(tasks)?;
    let count = tasks.len();
    if let Some(section) = sections.iter().find(|section| section.task >= count) {
        return Err(AnalysisError::NoSuchIndex {
            what: "task",
            index: section.task,
        });
    }
    let mut locks: Vec<_> = sections.iter().map(|section| section.lock).collect();
    locks.sort_unstable();
    locks.dedup();
    for i in 0..count {
        let priority = tasks[i].priority;
        let uses_above = |lock: usize| {
            let mut users = sections.iter().filter(|section| section.lock == lock);
            users.any(|section| tasks[section.task].priority >= priority)
        };
        let can_block: Vec<_> = locks.iter().filter(|lock| uses_above(**lock)).collect();
        // Sections of tasks below, by locks that can block this one.
        let blocking = sections.iter().filter(|section| {
            let is_below = tasks[section.task].priority < priority;
            is_below && can_block.binary_search(&&section.lock).is_ok()
        });
        let mut by_task = vec![0; count];
        let mut by_lock = vec![0; locks.len()];
        for section in blocking {
            let lock = locks.binary_search(&section.lock).unwrap_or_default();
            by_task[section.task] = section.length.max(by_task[section.task]);
            by_lock[lock] = section.length.max(by_lock[lock]);
        }
        tasks[i].blocking = match protocol {
            LockProtocol::Ceiling => by_lock.into_iter().max().unwrap_or(0),
            LockProtocol::Inheritance => sum(&by_task)?.min(sum(&by_lock)?),
        };
    }
    Ok(())
}

fn sum(times: &[Time]) -> Result<Time, AnalysisError> {
    let sum = times
        .iter()
        .try_fold(0_u64, |sum, time| sum.checked_add(*time));
    sum.ok_or(AnalysisError::TooLarge)
}
