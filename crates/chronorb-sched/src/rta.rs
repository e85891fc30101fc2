//! Response times under fixed priorities: the analysis of Joseph and Pandya (1986), of Audsley,
//! Burns and others (1993), of Lehoczky (1990) for deadlines beyond the period, and of Davis and
//! others (2007) for work that is not preempted.

use std::cmp::Ordering;

use crate::error::{AnalysisError, Steps};
use crate::task::{Load, Task, Time, hyperperiod, validate};
use crate::utilisation::compare_within;

/// The effect of more urgent work on a job that has begun.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Preemption {
    /// The job is preempted, as a thread with a fixed priority.
    #[default]
    Preemptive,
    /// The job runs to its end, as a message on a link; or to the end of the [part](crate::Parts)
    /// that it has begun.
    NonPreemptive,
}

/// The worst-case response time of a task.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Response {
    /// No job takes longer than this from its arrival to its end.
    Bounded(Time),
    /// No bound exists, because the task and more urgent ones exceed their resource, or the
    /// analysis found none.
    Unbounded,
}

impl Response {
    /// Whether every job ends within this time after its arrival.
    pub fn meets(self, deadline: Time) -> bool {
        matches!(self, Self::Bounded(time) if time <= deadline)
    }

    /// Returns the bound; `None` if there is none.
    pub const fn time(self) -> Option<Time> {
        match self {
            Self::Bounded(time) => Some(time),
            Self::Unbounded => None,
        }
    }
}

/// Computes the worst-case response times of all tasks on one processor or link.
///
/// Tasks of equal priority count as more urgent than each other. Without preemption, the longest
/// less urgent job blocks, in addition to [`Task::blocking`] if that is longer.
///
/// # Errors
/// [`AnalysisError`] for tasks with zero values, and if the computation exceeds 64 bits or its
/// bound of steps.
///
/// # Example
/// ```
/// use chronorb_sched::{Preemption, Response, Task, responses};
///
/// let tasks = [
///     Task::new(40, 100).with_priority(3),
///     Task::new(40, 150).with_priority(2),
///     Task::new(100, 350).with_priority(1),
/// ];
/// let times = responses(&tasks, Preemption::Preemptive)?;
/// assert_eq!(times, [40, 80, 300].map(Response::Bounded));
/// # Ok::<(), chronorb_sched::AnalysisError>(())
/// ```
pub fn responses(tasks: &[Task], preemption: Preemption) -> Result<Vec<Response>, AnalysisError> {
    validate(tasks)?;
    let mut steps = Steps::new(tasks.len());
    let each = 0..tasks.len();
    each.map(|task| response_of(tasks, task, preemption, &mut steps))
        .collect()
}

/// Whether every task meets its deadline; computes no more responses than needed.
///
/// # Errors
/// As for [`responses`].
pub fn is_schedulable(tasks: &[Task], preemption: Preemption) -> Result<bool, AnalysisError> {
    validate(tasks)?;
    let mut steps = Steps::new(tasks.len());
    for (i, task) in tasks.iter().enumerate() {
        let response = response_up_to(tasks, i, preemption, task.deadline, &mut steps)?;
        if !response.meets(task.deadline) {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(crate) fn response_of(
    tasks: &[Task],
    task: usize,
    preemption: Preemption,
    steps: &mut Steps,
) -> Result<Response, AnalysisError> {
    response_up_to(tasks, task, preemption, Time::MAX, steps)
}

/// Computes the response of a task as [`worst`] does.
pub(crate) fn response_up_to(
    tasks: &[Task],
    task: usize,
    preemption: Preemption,
    limit: Time,
    steps: &mut Steps,
) -> Result<Response, AnalysisError> {
    let own = &tasks[task];
    response_among(tasks, task, preemption, limit, steps, |other| {
        other.priority >= own.priority
    })
}

/// Computes the response of a task to which only the tasks that `is_above` selects are more urgent.
pub(crate) fn response_among(
    tasks: &[Task],
    task: usize,
    preemption: Preemption,
    limit: Time,
    steps: &mut Steps,
    is_above: impl Fn(&Task) -> bool,
) -> Result<Response, AnalysisError> {
    let own = &tasks[task];
    let mut above = Vec::with_capacity(tasks.len());
    let mut longest_below = 0;
    for (i, other) in tasks.iter().enumerate() {
        if i == task {
            continue;
        }
        if is_above(other) {
            above.push(other.load());
        } else {
            longest_below = longest_below.max(other.longest_part());
        }
    }
    match preemption {
        Preemption::Preemptive => worst(own, own.blocking, &above, preemption, limit, steps),
        Preemption::NonPreemptive => {
            let blocking = own.blocking.max(longest_below);
            worst(own, blocking, &above, preemption, limit, steps)
        }
    }
}

/// Computes the maximum response time over all jobs of a busy period, or that of the first job
/// whose response exceeds the limit. Where that takes too many steps, and each job meets the limit
/// because the whole busy period does, the result is the time of the busy period.
pub(crate) fn worst(
    own: &Task,
    blocking: Time,
    above: &[Load],
    preemption: Preemption,
    limit: Time,
    steps: &mut Steps,
) -> Result<Response, AnalysisError> {
    let all = || above.iter().copied().chain([own.load()]);
    let count = match compare_within(all(), steps)? {
        Ordering::Greater => return Ok(Response::Unbounded),
        Ordering::Equal => {
            // The busy period may have no end, but repeats itself with the hyperperiod.
            let periods = hyperperiod(all().map(|load| load.period));
            Some(periods.unwrap_or(Time::MAX) / own.period)
        }
        Ordering::Less => None,
    };
    let mut jobs = BusyPeriod::new(own, blocking, above, preemption);
    jobs.worst(count, limit, &mut Starts::default(), steps)
}

/// The work of loads on one resource.
pub(crate) trait Work {
    /// Returns the steps that a sum for a time takes.
    fn terms(&self, time: Time) -> usize;

    /// Adds the maximum work that is released within a half-open interval of this length; `None`
    /// if the sum exceeds 64 bits.
    fn within(&self, base: Time, time: Time) -> Option<Time>;

    /// Adds the maximum work that is released within a closed interval of this length; `None` if
    /// the sum exceeds 64 bits.
    fn through(&self, base: Time, time: Time) -> Option<Time>;
}

impl Work for [Load] {
    fn terms(&self, _: Time) -> usize {
        self.len()
    }

    fn within(&self, base: Time, time: Time) -> Option<Time> {
        let mut each = self.iter();
        each.try_fold(base, |sum, load| sum.checked_add(load.work_within(time)))
    }

    fn through(&self, base: Time, time: Time) -> Option<Time> {
        let mut each = self.iter();
        each.try_fold(base, |sum, load| sum.checked_add(load.work_through(time)))
    }
}

/// The times at which the searches of a busy period can start: the ends of those for less work.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Starts {
    first_job: Time,
    busy_period: Time,
}

/// The jobs of a task in a busy period.
pub(crate) struct BusyPeriod<'l, W: ?Sized> {
    own: Load,
    /// The end of a job that nothing delays, without preemption.
    last: Time,
    blocking: Time,
    above: &'l W,
    preemption: Preemption,
    /// The start of the search for the end of the next job.
    start: Time,
}

impl<'l, W: Work + ?Sized> BusyPeriod<'l, W> {
    pub(crate) fn new(own: &Task, blocking: Time, above: &'l W, preemption: Preemption) -> Self {
        Self {
            own: own.load(),
            last: own.last_part(),
            blocking,
            above,
            preemption,
            start: 0,
        }
    }

    /// Computes the response as [`worst`] does. The loads together need less than the whole
    /// resource, or `count` is the number of jobs that represent all of them.
    pub(crate) fn worst(
        &mut self,
        count: Option<u64>,
        limit: Time,
        starts: &mut Starts,
        steps: &mut Steps,
    ) -> Result<Response, AnalysisError> {
        let Self {
            own,
            blocking,
            above,
            ..
        } = *self;
        self.start = starts.first_job;
        let mut longest = self.response(0, steps)?;
        starts.first_job = self.start;
        if longest > limit {
            return Ok(Response::Bounded(longest));
        }
        let (count, bound) = if let Some(count) = count {
            (count, None)
        } else {
            let first = blocking.checked_add(own.cost);
            let first = first.ok_or(AnalysisError::TooLarge)?;
            let from = first.max(starts.busy_period);
            let terms = |time| above.terms(time) + 1;
            let end = fixed_point(from, steps, terms, |time| {
                above.within(blocking.checked_add(own.work_within(time))?, time)
            })?;
            starts.busy_period = end;
            let busy = end.saturating_add(own.jitter);
            (busy.div_ceil(own.period), Some(busy))
        };
        if !steps.has(count, above.terms(self.start))
            && let Some(bound) = bound.filter(|bound| *bound <= limit && *bound < Time::MAX)
        {
            return Ok(Response::Bounded(bound));
        }
        for job in 1..count {
            longest = longest.max(self.response(job, steps)?);
            if longest > limit {
                break;
            }
        }
        Ok(Response::Bounded(longest))
    }

    /// Returns the response of the next job, from its arrival.
    fn response(&mut self, job: u64, steps: &mut Steps) -> Result<Time, AnalysisError> {
        let (own, above) = (self.own, self.above);
        let before = job
            .checked_mul(own.cost)
            .and_then(|it| it.checked_add(self.blocking));
        let before = before.ok_or(AnalysisError::TooLarge)?;
        let terms = |time| above.terms(time);
        let end = match self.preemption {
            Preemption::Preemptive => {
                let work = before.checked_add(own.cost);
                let work = work.ok_or(AnalysisError::TooLarge)?;
                let from = work.max(self.start);
                let end = fixed_point(from, steps, terms, |time| above.within(work, time))?;
                self.start = end;
                Some(end)
            }
            Preemption::NonPreemptive => {
                let before = before.checked_add(own.cost - self.last);
                let before = before.ok_or(AnalysisError::TooLarge)?;
                let from = before.max(self.start);
                let sum = |time| above.through(before, time);
                self.start = fixed_point(from, steps, terms, sum)?;
                self.start.checked_add(self.last)
            }
        };
        // A job arrives `job` periods after the first one, which is late by the jitter.
        let since_first = end.and_then(|end| end.checked_add(own.jitter));
        let since_first = since_first.ok_or(AnalysisError::TooLarge)?;
        let arrival = job.checked_mul(own.period).ok_or(AnalysisError::TooLarge)?;
        Ok(since_first.saturating_sub(arrival))
    }
}

/// Returns the longest time for which loads keep their resource busy, whatever their order.
pub(crate) fn busy_period(
    loads: &[Load],
    blocking: Time,
    steps: &mut Steps,
) -> Result<Response, AnalysisError> {
    let is_delayed = blocking > 0 || loads.iter().any(|load| load.jitter > 0);
    match compare_within(loads.iter().copied(), steps)? {
        Ordering::Greater => return Ok(Response::Unbounded),
        Ordering::Equal if is_delayed => return Ok(Response::Unbounded),
        Ordering::Equal | Ordering::Less => {}
    }
    let first = blocking.max(1);
    let terms = |_| loads.len();
    let end = fixed_point(first, steps, terms, |time| loads.within(blocking, time))?;
    Ok(Response::Bounded(end))
}

/// Returns the least `time` from `from` on that equals the work in `time`. `from` must not be
/// greater than the least solution.
fn fixed_point(
    from: Time,
    steps: &mut Steps,
    terms: impl Fn(Time) -> usize,
    work: impl Fn(Time) -> Option<Time>,
) -> Result<Time, AnalysisError> {
    let mut time = from;
    loop {
        steps.take(terms(time))?;
        let longer = work(time).filter(|sum| *sum < Time::MAX);
        let longer = longer.ok_or(AnalysisError::TooLarge)?;
        if longer <= time {
            return Ok(time);
        }
        time = longer;
    }
}

/// Computes the response time of a first job within a limit, and ends with the first value above
/// it. `work` is the job's own execution time, and the blocking. Times saturate at 64 bits.
///
/// If the limit is at most the period, the result is the worst response time of the task, without
/// its own jitter.
///
/// # Errors
/// A lower bound of the response time, which exceeds `limit`.
///
/// # Example
/// ```
/// use chronorb_sched::{Load, response_within};
///
/// let above = [Load { cost: 2, period: 10, jitter: 0 }];
/// assert_eq!(response_within(3, 20, &above), Ok(5));
/// assert_eq!(response_within(19, 20, &above), Err(23));
/// ```
pub fn response_within(work: Time, limit: Time, above: &[Load]) -> Result<Time, Time> {
    let mut response = work;
    // The value grows by at least 1 in each iteration, by whole jobs, until it is stable or too
    // long.
    loop {
        if response > limit {
            return Err(response);
        }
        let longer = (above.iter()).fold(work, |sum, load| {
            sum.saturating_add(load.work_within(response))
        });
        if longer == response {
            return Ok(response);
        }
        response = longer;
    }
}
