//! Response times under earliest deadline first: Spuri (1996).
//!
//! The worst response of a task is in a busy period of jobs with deadlines up to that of the job in
//! question. All other tasks are released at its start, after their whole jitter. Only the arrivals
//! count at which the deadline of the job meets one of another task, or at which one more job of
//! the task itself is before it.

use std::cmp::Ordering;

use crate::edf::{DeadlineBlocking, Segments, first_deadline};
use crate::error::{AnalysisError, Steps};
use crate::rta::{Preemption, Response, busy_period};
use crate::task::{Task, Time, hyperperiod, validate};
use crate::utilisation::compare_to_processor;

/// Computes the worst-case response times of tasks that are scheduled by earliest deadline on one
/// processor. Deadlines may exceed periods. Priorities and [`Task::blocking`] have no effect.
///
/// The responses are exact without blocking if jobs of equal deadlines run in the worst order, and
/// safe with it. [`test_demand`](crate::test_demand) decides faster whether all deadlines are met.
/// Without preemption a job counts as if the longest one of a later deadline had begun just as it
/// was released.
///
/// # Errors
/// [`AnalysisError`] for zero values or a section of no task, and if the computation exceeds 64
/// bits or its bound of steps.
///
/// # Example
/// ```
/// use chronorb_sched::{DeadlineBlocking, Response, Task, deadline_responses};
///
/// let tasks = [Task::new(2, 5), Task::new(4, 7)];
/// let times = deadline_responses(&tasks, DeadlineBlocking::None)?;
/// assert_eq!(times, [4, 6].map(Response::Bounded));
/// # Ok::<(), chronorb_sched::AnalysisError>(())
/// ```
pub fn deadline_responses(
    tasks: &[Task],
    blocking: DeadlineBlocking<'_>,
) -> Result<Vec<Response>, AnalysisError> {
    validate(tasks)?;
    let segments = Segments::new(tasks, blocking)?;
    let preemption = match blocking {
        DeadlineBlocking::None | DeadlineBlocking::Sections(_) => Preemption::Preemptive,
        DeadlineBlocking::NonPreemptive => Preemption::NonPreemptive,
    };
    let mut steps = Steps::new(tasks.len());
    let horizon = match compare_to_processor(tasks) {
        // All tasks are late by more and more.
        Ordering::Greater => return Ok(vec![Response::Unbounded; tasks.len()]),
        // The busy period may have no end. Once each task has a job before the deadline, the
        // responses repeat themselves with the hyperperiod.
        Ordering::Equal => {
            let all = hyperperiod(tasks.iter().map(|task| task.period))?;
            let latest = tasks.iter().map(first_deadline).max().unwrap_or(0);
            Horizon::Deadline(latest.max(0) + i128::from(all))
        }
        Ordering::Less => {
            let loads: Vec<_> = tasks.iter().map(Task::load).collect();
            let end = busy_period(&loads, segments.longest(), &mut steps)?.time();
            Horizon::Arrival(end.unwrap_or(Time::MAX))
        }
    };
    let busy = Busy {
        tasks,
        segments: &segments,
        preemption,
    };
    let each = 0..tasks.len();
    each.map(|task| busy.worst(task, horizon, &mut steps))
        .collect()
}

/// The last jobs that have to be examined.
#[derive(Clone, Copy, Debug)]
enum Horizon {
    /// Those with deadlines up to this one.
    Deadline(i128),
    /// Those that arrive up to this time.
    Arrival(Time),
}

/// The busy periods of tasks.
struct Busy<'a> {
    tasks: &'a [Task],
    segments: &'a Segments,
    preemption: Preemption,
}

impl Busy<'_> {
    /// Computes the maximum response over the deadlines of a task's jobs.
    fn worst(
        &self,
        task: usize,
        horizon: Horizon,
        steps: &mut Steps,
    ) -> Result<Response, AnalysisError> {
        let own = &self.tasks[task];
        let last = match horizon {
            Horizon::Deadline(last) => last,
            Horizon::Arrival(last) => i128::from(last) + i128::from(own.deadline),
        };
        let mut worst = 0;
        let mut deadline = first_deadline(own);
        // With as much blocking, a later deadline has a later end.
        let (mut before, mut blocking) = (0, Time::MAX);
        loop {
            let arrival = deadline - i128::from(own.deadline);
            let (_, its_blocking) = self.segments.at(deadline);
            if its_blocking != blocking {
                (before, blocking) = (0, its_blocking);
            }
            before = self.busy_until(task, deadline, (blocking, before), steps)?;
            let end = match self.preemption {
                Preemption::Preemptive => Some(before),
                Preemption::NonPreemptive => before.checked_add(own.cost),
            };
            let end = end.ok_or(AnalysisError::TooLarge)?;
            worst = worst.max(i128::from(end) - arrival);
            steps.take(self.tasks.len())?;
            let next = self.tasks.iter().map(|task| next_deadline(task, deadline));
            match next.min().filter(|next| *next <= last) {
                Some(next) => deadline = next,
                None => break,
            }
        }
        let worst = Time::try_from(worst).map_err(|_| AnalysisError::TooLarge)?;
        Ok(Response::Bounded(worst))
    }

    /// Returns the end of a job with a deadline, or its start if it is not preempted, in a busy
    /// period that starts at zero and ends at `from` or later. If that ends before the job arrives,
    /// the response is at most that of another deadline.
    fn busy_until(
        &self,
        task: usize,
        deadline: i128,
        (blocking, from): (Time, Time),
        steps: &mut Steps,
    ) -> Result<Time, AnalysisError> {
        let own = &self.tasks[task];
        let jobs = jobs_until(own, deadline);
        let before = match self.preemption {
            Preemption::Preemptive => jobs,
            Preemption::NonPreemptive => jobs - 1,
        };
        let base = before
            .checked_mul(own.cost)
            .and_then(|work| work.checked_add(blocking));
        let base = base.ok_or(AnalysisError::TooLarge)?;
        let mut time = base.max(from);
        loop {
            steps.take(self.tasks.len())?;
            let others = self.tasks.iter().enumerate().filter(|(i, _)| *i != task);
            let sum = others.map(|(_, other)| other).try_fold(base, |sum, other| {
                let released = match self.preemption {
                    Preemption::Preemptive => other.load().jobs_within(time),
                    Preemption::NonPreemptive => other.load().jobs_through(time),
                };
                let work = released
                    .min(jobs_until(other, deadline))
                    .checked_mul(other.cost)?;
                sum.checked_add(work)
            });
            let longer = sum.ok_or(AnalysisError::TooLarge)?;
            if longer <= time {
                return Ok(time);
            }
            time = longer;
        }
    }
}

/// Returns the number of a task's jobs with deadlines up to a time, from the first one on.
pub(crate) fn jobs_until(task: &Task, deadline: i128) -> Time {
    let since = deadline - first_deadline(task);
    if since < 0 {
        return 0;
    }
    let jobs = since / i128::from(task.period) + 1;
    Time::try_from(jobs).unwrap_or(Time::MAX)
}

/// Returns the first deadline of a task's jobs after a time.
pub(crate) fn next_deadline(task: &Task, deadline: i128) -> i128 {
    let first = first_deadline(task);
    let jobs = i128::from(jobs_until(task, deadline));
    first + jobs * i128::from(task.period)
}
