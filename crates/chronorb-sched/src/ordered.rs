//! Response times of a level that is served by the earliest deadline without preemption, below
//! more urgent levels: as in George, Rivierre and Spuri (1996), with the work of those levels.
//!
//! A job is delayed by the jobs of the level with an earlier deadline that are released before it
//! starts, by one job of the level that started before it was released, and by all work of more
//! urgent levels. The last of these delays it until it ends, the others until it starts.
//!
//! The busy period starts at the last moment before the job at which no more urgent work, and no
//! job of the level with a deadline up to its own, was waiting. The job that blocks started before
//! that moment, so there is at most one. A less urgent task that holds a lock took it before, too,
//! so the blocking by locks counts once.

use std::cmp::Ordering;

use crate::edf::{DeadlineBlocking, Segments};
use crate::edf_responses::{jobs_until, next_deadline};
use crate::error::{AnalysisError, Steps};
use crate::rta::busy_period;
use crate::task::{Load, Task, Time};
use crate::utilisation::compare_within;

/// A level of a processor with the work that preempts it.
pub(crate) struct OrderedLevel<'a> {
    /// The tasks of the level. The deadline is the time by which they are ordered.
    pub(crate) tasks: &'a [Task],
    /// The work of more urgent levels.
    pub(crate) above: &'a [Load],
    /// The blocking by less urgent levels.
    pub(crate) blocking: Time,
}

impl OrderedLevel<'_> {
    /// Computes the worst response of a task from its arrival. `None` if the level and the work
    /// above it use the whole processor.
    ///
    /// The deadlines of jobs may be later than those of their tasks by at most `spread`, each by
    /// another time. The job itself has the latest one, and the others have the earliest ones.
    pub(crate) fn response(
        &self,
        task: usize,
        spread: Time,
        steps: &mut Steps,
    ) -> Result<Option<Time>, AnalysisError> {
        let level = self.tasks.iter().map(Task::load);
        let loads: Vec<_> = level.chain(self.above.iter().copied()).collect();
        if compare_within(loads.iter().copied(), steps)? != Ordering::Less {
            return Ok(None);
        }
        let own = &self.tasks[task];
        let segments = Segments::new(self.tasks, DeadlineBlocking::NonPreemptive)?;
        let longest = segments.longest().checked_add(self.blocking);
        let longest = longest.ok_or(AnalysisError::TooLarge)?;
        let Some(busy) = busy_period(&loads, longest, steps)?.time() else {
            return Ok(None);
        };
        let latest = i128::from(own.deadline) + i128::from(spread);
        let last = i128::from(busy) + latest;
        let mut worst = 0;
        let mut deadline = latest - i128::from(own.jitter);
        let (mut start, mut blocking) = (0, Time::MAX);
        loop {
            let (_, its_blocking) = segments.at(deadline);
            if its_blocking != blocking {
                (start, blocking) = (0, its_blocking);
            }
            let end;
            (start, end) = self.busy_until(task, deadline, (blocking, start), steps)?;
            worst = worst.max(i128::from(end) - (deadline - latest));
            steps.take(loads.len())?;
            let next = self.tasks.iter().map(|task| next_deadline(task, deadline));
            match next.min().filter(|next| *next <= last) {
                Some(next) => deadline = next,
                None => break,
            }
        }
        let worst = Time::try_from(worst).map_err(|_| AnalysisError::TooLarge)?;
        Ok(Some(worst))
    }

    /// Returns the start and the end of the last job of a task with a deadline up to this one, in a
    /// busy period from zero on. The start is at `from` or later.
    fn busy_until(
        &self,
        task: usize,
        deadline: i128,
        (blocking, from): (Time, Time),
        steps: &mut Steps,
    ) -> Result<(Time, Time), AnalysisError> {
        let terms = self.tasks.len() + self.above.len();
        let own = &self.tasks[task];
        let base = (jobs_until(own, deadline).saturating_sub(1))
            .checked_mul(own.cost)
            .and_then(|work| work.checked_add(blocking)?.checked_add(self.blocking));
        let base = base.ok_or(AnalysisError::TooLarge)?;
        let others = || {
            let all = self.tasks.iter().enumerate();
            all.filter(move |(i, _)| *i != task).map(|(_, it)| it)
        };
        // The work of the level that is served before the job.
        let before = |time: Time| {
            others().try_fold(base, |sum, other| {
                let released = other.load().jobs_through(time);
                let jobs = released.min(jobs_until(other, deadline));
                sum.checked_add(jobs.checked_mul(other.cost)?)
            })
        };
        let with_above = |work: Option<Time>, through: fn(&Load, Time) -> Time, time: Time| {
            let mut above = self.above.iter();
            let sum = above.try_fold(work?, |sum, load| sum.checked_add(through(load, time)));
            sum.filter(|sum| *sum < Time::MAX)
        };
        let mut start = base.max(from);
        loop {
            steps.take(terms)?;
            let longer = with_above(before(start), Load::work_through, start);
            let longer = longer.ok_or(AnalysisError::TooLarge)?;
            if longer <= start {
                break;
            }
            start = longer;
        }
        let work = before(start).and_then(|work| work.checked_add(own.cost));
        let mut end = start.checked_add(own.cost).ok_or(AnalysisError::TooLarge)?;
        loop {
            steps.take(terms)?;
            let longer = with_above(work, Load::work_within, end);
            let longer = longer.ok_or(AnalysisError::TooLarge)?;
            if longer <= end {
                return Ok((start, end));
            }
            end = longer;
        }
    }
}
