//! Tasks, and the load that a task puts on its resource.

use crate::error::AnalysisError;

/// A time or a duration, in nanoseconds or in any other common unit.
pub type Time = u64;

/// A whole processor, in the unit of [`share`].
pub const BILLION: u128 = 1_000_000_000;

/// Returns `time` in billionths of `period`, rounded up. A period of zero counts as one unit.
pub fn share(time: Time, period: Time) -> u128 {
    (u128::from(time) * BILLION).div_ceil(period.max(1).into())
}

/// The work that a recurring activity releases.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Load {
    /// The worst-case execution time of each job.
    pub cost: Time,
    /// The minimum time between two jobs, except for the jitter.
    pub period: Time,
    /// The maximum delay of a job's release, by which two jobs can come closer together.
    pub jitter: Time,
}

impl Load {
    /// Returns the maximum work that is released within a half-open interval of this length.
    /// A value above 64 bits saturates. A period of zero counts as one unit.
    pub fn work_within(&self, time: Time) -> Time {
        self.jobs_within(time).saturating_mul(self.cost)
    }

    /// Returns the maximum number of jobs that are released within a half-open interval of this
    /// length.
    pub(crate) fn jobs_within(&self, time: Time) -> Time {
        time.saturating_add(self.jitter)
            .div_ceil(self.period.max(1))
    }

    /// Returns the maximum number of jobs that are released within a closed interval of this
    /// length.
    pub(crate) fn jobs_through(&self, time: Time) -> Time {
        (time.saturating_add(self.jitter) / self.period.max(1)).saturating_add(1)
    }

    /// Returns the maximum work that is released within a closed interval of this length.
    pub(crate) fn work_through(&self, time: Time) -> Time {
        self.jobs_through(time).saturating_mul(self.cost)
    }

    /// Returns the utilisation in billionths, rounded up.
    pub fn share(&self) -> u128 {
        share(self.cost, self.period)
    }
}

/// The parts in which a step is done on a resource that does not preempt, such as the packets of a
/// message. More urgent work begins between two of them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Parts {
    /// The time of the longest part.
    pub longest: Time,
    /// The time of the last part, or less.
    pub last: Time,
}

/// A periodic or sporadic task.
///
/// # Example
/// ```
/// use chronorb_sched::Task;
///
/// let task = Task::new(10, 50).with_deadline(40).with_priority(3);
/// assert_eq!((task.cost, task.period, task.deadline), (10, 50, 40));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Task {
    /// The worst-case execution time of each job.
    pub cost: Time,
    /// The minimum time between the arrivals of two jobs.
    pub period: Time,
    /// The deadline, relative to the arrival. It may exceed the period.
    pub deadline: Time,
    /// The maximum time from a job's arrival to its release.
    pub jitter: Time,
    /// The maximum time for which less urgent work that holds a lock delays a job.
    pub blocking: Time,
    /// The fixed priority; a greater one is more urgent.
    pub priority: u32,
    /// The criticality; a greater one is kept longer under overload.
    pub criticality: u8,
    /// The importance, which breaks ties; a greater one is served first.
    pub importance: u8,
    /// The first arrival, for the simulator.
    pub offset: Time,
    /// The parts of a job that is not preempted; `None` for one.
    pub(crate) parts: Option<Parts>,
}

impl Task {
    /// Creates a task whose deadline is its period, and whose other values are zero.
    pub const fn new(cost: Time, period: Time) -> Self {
        Self {
            cost,
            period,
            deadline: period,
            jitter: 0,
            blocking: 0,
            priority: 0,
            criticality: 0,
            importance: 0,
            offset: 0,
            parts: None,
        }
    }

    /// Sets the relative deadline.
    #[must_use]
    pub const fn with_deadline(mut self, deadline: Time) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets the release jitter.
    #[must_use]
    pub const fn with_jitter(mut self, jitter: Time) -> Self {
        self.jitter = jitter;
        self
    }

    /// Sets the blocking by locks.
    #[must_use]
    pub const fn with_blocking(mut self, blocking: Time) -> Self {
        self.blocking = blocking;
        self
    }

    /// Sets the fixed priority; a greater one is more urgent.
    #[must_use]
    pub const fn with_priority(mut self, priority: u32) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the criticality and the importance.
    #[must_use]
    pub const fn with_criticality(mut self, criticality: u8, importance: u8) -> Self {
        self.criticality = criticality;
        self.importance = importance;
        self
    }

    /// Sets the first arrival, for the simulator.
    #[must_use]
    pub const fn with_offset(mut self, offset: Time) -> Self {
        self.offset = offset;
        self
    }

    /// Adds the overhead of each job, for example two context switches and the dispatch.
    ///
    /// # Errors
    /// [`AnalysisError::TooLarge`] if the sum exceeds 64 bits.
    pub fn with_overhead(mut self, overhead: Time) -> Result<Self, AnalysisError> {
        let cost = self.cost.checked_add(overhead);
        self.cost = cost.ok_or(AnalysisError::TooLarge)?;
        Ok(self)
    }

    /// Returns the longest time for which a job that is not preempted delays more urgent ones.
    pub(crate) fn longest_part(&self) -> Time {
        let parts = self.parts.map(|it| it.longest.min(self.cost));
        parts.unwrap_or(self.cost)
    }

    /// Returns the time for which a job that is not preempted is not delayed any more.
    pub(crate) fn last_part(&self) -> Time {
        let parts = self.parts.map(|it| it.last.min(self.cost));
        parts.unwrap_or(self.cost)
    }

    /// Returns the load that the task puts on its processor.
    pub const fn load(&self) -> Load {
        Load {
            cost: self.cost,
            period: self.period,
            jitter: self.jitter,
        }
    }
}

/// Checks the values of tasks, which are zero only by mistake.
pub(crate) fn validate(tasks: &[Task]) -> Result<(), AnalysisError> {
    for (task, it) in tasks.iter().enumerate() {
        if it.period == 0 {
            return Err(AnalysisError::ZeroPeriod { task });
        }
        if it.cost == 0 {
            return Err(AnalysisError::ZeroCost { task });
        }
        if it.deadline == 0 {
            return Err(AnalysisError::ZeroDeadline { task });
        }
    }
    Ok(())
}

/// Returns the hyperperiod: the least common multiple of periods.
pub(crate) fn hyperperiod(periods: impl IntoIterator<Item = Time>) -> Result<Time, AnalysisError> {
    periods.into_iter().try_fold(1_u64, |all, period| {
        let multiple = (all / gcd(all, period)).checked_mul(period);
        multiple.ok_or(AnalysisError::TooLarge)
    })
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
