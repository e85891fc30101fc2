//! The rules and the results of a simulation.

use thiserror::Error;

use super::work::Work;
use crate::schedule::{LaneOrder, Schedule, Time};
use crate::task_sets::ResourceKind;

/// The numbers of an assignment that a simulation uses.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Numbers {
    /// The priority of each operation, and then of each transaction of messages only; a greater one
    /// is more urgent.
    pub priorities: Vec<u32>,
    /// The index of the lane that serves each operation.
    pub lane_of: Vec<usize>,
    /// The threads that execute each operation with a period in turn, at least 1.
    pub threads: Vec<u32>,
    /// The lanes.
    pub lanes: Vec<LaneNumbers>,
}

/// The numbers of a lane.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LaneNumbers {
    /// The number of its threads, at least 1.
    pub threads: u32,
    /// The order of waiting requests.
    pub order: LaneOrder,
}

/// The rules of one run of a simulation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SimulationRun {
    /// The time at which the run ends. A job counts if its deadline is not after it.
    pub window: Time,
    /// The first arrival of each operation with a period, in their order, and then of each
    /// transaction. If it is empty, they are random within the periods.
    pub first: Vec<Time>,
    /// The time at which work outside of the file begins, on each processor and link. If it is left
    /// out, it is random.
    pub outside: Option<Time>,
    /// The seed of execution times, gaps between arrivals, jitter, and the places of critical
    /// sections. Without one, executions take their longest time, arrivals are periodic, the first
    /// release is as late as its jitter permits, and sections are at the start of their pieces.
    pub seed: Option<u64>,
    /// Whether [`SimulationOutcome::slices`] is filled.
    pub record: bool,
}

impl SimulationRun {
    /// Creates a run in which everything is released at one time, that of the longest jitter.
    pub fn synchronous(schedule: &Schedule, window: Time) -> Self {
        let activities = schedule.operations.iter();
        let activities = activities.filter(|it| it.period.is_some());
        let declared = schedule.transactions.iter().map(|it| it.jitter);
        let jitters = || {
            activities
                .clone()
                .map(|it| it.jitter)
                .chain(declared.clone())
        };
        let longest = jitters().max().unwrap_or(0);
        Self {
            window,
            first: jitters().map(|jitter| longest - jitter).collect(),
            outside: Some(longest),
            seed: None,
            record: false,
        }
    }

    /// Creates a run with random first arrivals and times.
    pub const fn random(seed: u64, window: Time) -> Self {
        Self {
            window,
            first: Vec::new(),
            outside: None,
            seed: Some(seed),
            record: false,
        }
    }
}

/// The result of a simulation.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct SimulationOutcome {
    /// The result of each operation with a period, and then of each transaction.
    pub activities: Vec<ActivityOutcome>,
    /// The times of uninterrupted work in the order of their ends, at most 2²⁰, if they are
    /// recorded.
    pub slices: Vec<WorkSlice>,
}

impl SimulationOutcome {
    /// Returns the jobs that count: those whose deadlines are within the window.
    pub fn counted(&self) -> u64 {
        self.activities.iter().map(|it| it.jobs).sum()
    }

    /// Returns the works of counted jobs that were not done by their deadlines.
    pub fn missed(&self) -> u64 {
        let works = self.activities.iter().flat_map(|it| &it.works);
        works.map(|it| it.missed).sum()
    }

    /// Adds the counts of another run of the same schedule. The slices stay.
    pub fn add(&mut self, other: &Self) {
        for (all, one) in self.activities.iter_mut().zip(&other.activities) {
            all.jobs += one.jobs;
            for (all, one) in all.works.iter_mut().zip(&one.works) {
                all.met += one.met;
                all.missed += one.missed;
                all.longest = all.longest.max(one.longest);
            }
        }
    }
}

/// The result of an activity: an operation with a period, or a declared transaction.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ActivityOutcome {
    /// The name of the operation or transaction.
    pub name: String,
    /// The minimum time between arrivals.
    pub period: Time,
    /// The jobs whose deadlines are within the window.
    pub jobs: u64,
    /// The works of each job, calls before their callers.
    pub works: Vec<WorkOutcome>,
}

/// The result of one work of the jobs of an activity.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct WorkOutcome {
    /// The work.
    pub work: Work,
    /// The processor or link that does it.
    pub resource: ResourceKind,
    /// The priority.
    pub priority: u32,
    /// The deadline from the arrival of the job.
    pub deadline: Time,
    /// The executions or messages that ended at their deadline or before.
    pub met: u64,
    /// Those that ended later, or had not ended at the end of the window.
    pub missed: u64,
    /// The longest time from the arrival of a job to the end of the work; or to the end of the
    /// window, if it had not ended.
    pub longest: Time,
}

/// A time of work without interruption.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WorkSlice {
    /// The processor or link.
    pub resource: ResourceKind,
    /// The index of the activity.
    pub activity: usize,
    /// The number of the job, from 0.
    pub job: u64,
    /// The work.
    pub work: Work,
    /// The start.
    pub start: Time,
    /// The end.
    pub end: Time,
    /// Whether a lock is held.
    pub locked: bool,
}

/// The error of a schedule that cannot be simulated.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum SimulationError {
    /// Operations call each other without end.
    #[error("operations call each other without end")]
    Cycle,
    /// The run has more events than a simulation is given.
    #[error("the simulation takes too many steps: give a shorter time")]
    TooLong,
}
