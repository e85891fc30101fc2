//! Transactions over processors and links: the model of their analysis and simulation.

use crate::rta::Preemption;
use crate::task::{Parts, Time};

/// A processor or a link.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Resource {
    /// Whether more urgent work preempts the work of the resource.
    pub preemption: Preemption,
    /// The longest delay by work outside of the model, for example a frame of other traffic.
    pub blocking: Time,
}

/// A step of a transaction: a piece of execution on a processor, or a message on a link. A two-way
/// call has two steps of the client and one of the server, with the messages between them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Step {
    /// The index of the resource.
    pub resource: usize,
    /// The worst-case execution or transmission time.
    pub cost: Time,
    /// The priority on the resource; a greater one is more urgent.
    pub priority: u32,
    /// The blocking by locks, or by messages outside of the model; [`Time::MAX`] if it has no
    /// bound.
    pub blocking: Time,
    /// The step of the same transaction after whose end it begins, which precedes it in the list.
    /// `None` for the one just before it. Several steps can have one predecessor, as after a
    /// one-way call.
    pub after: Option<usize>,
    /// The deadline, from the arrival of the transaction; `None` for that of the transaction.
    pub deadline: Option<Time>,
    /// The least execution or transmission time; zero if it is unknown.
    pub least: Time,
    /// The time from the arrival of the transaction by which the step is ordered in its level; for
    /// [`Step::ordered_by`].
    pub order: Option<Time>,
    /// The longest wait before the step, on no resource: for example for a thread.
    /// [`Time::MAX`] if it has no bound.
    pub wait: Time,
    /// The parts in which a resource without preemption does the step; `None` for one part. A
    /// resource with preemption leaves them out.
    pub parts: Option<Parts>,
    /// Whether the step can suspend itself; for [`Step::suspending`].
    pub suspends: bool,
}

impl Step {
    /// Creates a step without blocking, which follows the one before it.
    pub const fn new(resource: usize, cost: Time, priority: u32) -> Self {
        Self {
            resource,
            cost,
            priority,
            blocking: 0,
            after: None,
            deadline: None,
            least: 0,
            order: None,
            wait: 0,
            parts: None,
            suspends: false,
        }
    }

    /// Sets the step after which it begins.
    #[must_use]
    pub const fn after(mut self, step: usize) -> Self {
        self.after = Some(step);
        self
    }

    /// Sets the least execution or transmission time; the cost is the greatest one.
    #[must_use]
    pub const fn with_least(mut self, least: Time) -> Self {
        self.least = least;
        self
    }

    /// Divides the step into parts; for [`Preemption::NonPreemptive`].
    #[must_use]
    pub const fn in_parts(mut self, parts: Parts) -> Self {
        self.parts = Some(parts);
        self
    }

    /// Multiplies the cost and the parts by `factor / unit`, rounded up; `None` if the cost exceeds
    /// 64 bits. The response grows with the factor.
    ///
    /// # Panics
    /// If `unit` is zero.
    pub fn scaled(mut self, factor: u64, unit: u64) -> Option<Self> {
        let times = |time: Time| {
            let time = u128::from(time) * u128::from(factor);
            Time::try_from(time.div_ceil(unit.into())).ok()
        };
        let cost = times(self.cost)?;
        if let Some(parts) = &mut self.parts {
            // What comes before the last part must not be shorter for a greater factor.
            let before = times(self.cost.saturating_sub(parts.last))?;
            parts.longest = times(parts.longest)?;
            parts.last = cost.saturating_sub(before);
        }
        self.cost = cost;
        Some(self)
    }

    /// Returns the end of the part that follows a time of execution.
    pub(crate) fn end_of_part(&self, done: Time) -> Time {
        let Some(parts) = self.parts else {
            return self.cost;
        };
        let last = self.cost.saturating_sub(parts.last);
        let next = (done / parts.longest.max(1)).saturating_add(1);
        let end = next.saturating_mul(parts.longest.max(1));
        if done < last {
            end.min(last)
        } else {
            self.cost
        }
    }

    /// Sets the longest wait before the step, on no resource.
    #[must_use]
    pub const fn with_wait(mut self, wait: Time) -> Self {
        self.wait = wait;
        self
    }

    /// Orders the step by this time from the arrival of its transaction, which is its deadline for
    /// earliest deadline first.
    ///
    /// If all steps of one priority on a preemptive resource have such a time, they are a level
    /// like a lane with an order: when one of them ends, the one with the earliest time is next,
    /// and none preempts another. Steps of greater priority preempt all of them. The analysis also
    /// holds if the time of a job counts from its release, or from any moment between arrival and
    /// release, as long as the jobs of one step keep their order.
    #[must_use]
    pub const fn ordered_by(mut self, time: Time) -> Self {
        self.order = Some(time);
        self
    }

    /// Lets the step suspend itself while it executes, as to wait for a lock that a thread on
    /// another processor holds. Its [`blocking`](Self::blocking) contains the longest time of all
    /// that it waits, and that of less urgent work in and after each wait.
    ///
    /// Less urgent steps count that its execution can be deferred to the end of its response. A
    /// response above the period is unbounded.
    #[must_use]
    pub const fn suspending(mut self) -> Self {
        self.suspends = true;
        self
    }

    /// Sets a deadline of its own, from the arrival of the transaction.
    #[must_use]
    pub const fn with_deadline(mut self, deadline: Time) -> Self {
        self.deadline = Some(deadline);
        self
    }
}

/// A chain or a tree of steps, each of which begins when its predecessor ends.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Transaction {
    /// The minimum time between two arrivals.
    pub period: Time,
    /// The deadline of all steps that have none of their own, relative to the arrival.
    pub deadline: Time,
    /// The maximum time from the arrival to the release of the first step.
    pub jitter: Time,
    /// The steps in their order.
    pub steps: Vec<Step>,
}

impl Transaction {
    /// Creates a transaction whose deadline is its period, without jitter.
    pub const fn new(period: Time, steps: Vec<Step>) -> Self {
        Self {
            period,
            deadline: period,
            jitter: 0,
            steps,
        }
    }

    /// Returns the step after which a step begins; `None` for the first one.
    pub(crate) fn before(&self, step: usize) -> Option<usize> {
        self.steps[step].after.or_else(|| step.checked_sub(1))
    }

    /// Returns the deadline of a step, from the arrival of the transaction.
    pub(crate) fn deadline_of(&self, step: usize) -> Time {
        self.steps[step].deadline.unwrap_or(self.deadline)
    }
}
