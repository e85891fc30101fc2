//! The client of the experiment: a thread for each task, which calls when a job is released.

use std::time::Duration;

use chronorb::prelude::SystemExceptionKind;
use chronorb::rtcorba::{RtCurrent, TimeConstraint};
use chronorb_rt::{Monotonic, Policy, sleep_until};
use serde::{Deserialize, Serialize};

use crate::bench::work::find;
use crate::bench::{priority, start_orb, with_callers};
use crate::error::LabError;
use crate::idl::lab::Work;
use crate::process::{self, Parent, Ready};

/// A client: the options of its ORB, and the object of each task.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ReleaseSpec {
    pub(super) options: Vec<String>,
    pub(super) references: Vec<String>,
}

/// The jobs of all tasks in one run.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct ReleaseOrder {
    /// The time from which offsets count, by the monotonic clock.
    pub(super) start_ns: u64,
    /// The jobs of each task.
    pub(super) tasks: Vec<TaskJobs>,
}

/// The jobs of one task.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(super) struct TaskJobs {
    pub(super) offset: Duration,
    pub(super) period: Duration,
    pub(super) jobs: u32,
    /// The processor time of a job.
    pub(super) cost: Duration,
    /// The processor time of the first job, if that is another one.
    pub(super) first_cost: Option<Duration>,
    /// The deadline from the release, and the criticality, which travel with each call.
    pub(super) constraint: Option<(Duration, i16)>,
}

/// The jobs of a run, by task.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ReleasedJobs {
    /// Whether all threads had real-time priorities.
    pub(super) real_time: bool,
    pub(super) tasks: Vec<Vec<JobTime>>,
}

/// The course of a job.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct JobTime {
    /// The time from its release to its end.
    pub(super) response_ns: u64,
    /// The time from its release to the call, if the thread had slept until the release: the
    /// lateness of the client. Zero if it was still busy with the job before.
    pub(super) called_late_ns: u64,
    /// Whether the server refused it (`TRANSIENT`).
    pub(super) refused: bool,
}

/// Runs the client of an order.
pub(crate) fn client_main(order: &str) -> Result<(), LabError> {
    let spec: ReleaseSpec = process::order(order)?;
    let parent = Parent::or_exit();
    let orb = start_orb(&spec.options)?;
    let connect = |task: usize| {
        let work = find(&orb, Some(priority(URGENT)), &spec.references[task])?;
        for _ in 0..WARM_UP {
            compute(&work, Duration::ZERO)?;
        }
        Ok(work)
    };
    let current = orb.rt_current();
    let run = |work: &mut Work, task: usize, order: &ReleaseOrder| {
        let jobs = order.tasks.get(task).copied().unwrap_or_default();
        jobs.run(work, &current, Monotonic::from_nanos(order.start_ns))
    };
    with_callers(spec.references.len(), connect, run, |callers| {
        process::tell(&Ready {})?;
        while let Some(order) = parent.hear::<Option<ReleaseOrder>>()? {
            let results = callers.run(&order)?;
            process::tell(&ReleasedJobs {
                real_time: results.iter().all(|(real_time, _)| *real_time),
                tasks: results.into_iter().map(|(_, jobs)| jobs).collect(),
            })?;
        }
        Ok(())
    })
}

impl TaskJobs {
    /// Calls at each release, or as soon as the job before has ended. Returns whether this thread
    /// has a real-time priority, and the jobs.
    fn run(
        &self,
        work: &Work,
        current: &RtCurrent,
        start: Monotonic,
    ) -> Result<(bool, Vec<JobTime>), LabError> {
        let mut jobs = Vec::with_capacity(self.jobs as usize);
        let mut release = start + self.offset;
        for job in 0..self.jobs {
            let was_idle = Monotonic::now() < release;
            sleep_until(release);
            let called = if was_idle { Monotonic::now() } else { release };
            let first = self.first_cost.filter(|_| job == 0);
            let _until = self.constraint.map(|(deadline, criticality)| {
                current.constrain(TimeConstraint {
                    deadline: deadline.saturating_sub(Monotonic::now().since(release)),
                    execution: self.cost,
                    criticality,
                    importance: 0,
                })
            });
            let end_ns = compute(work, first.unwrap_or(self.cost))?;
            jobs.push(JobTime {
                response_ns: end_ns.unwrap_or(0).saturating_sub(release.as_nanos()),
                called_late_ns: called.as_nanos().saturating_sub(release.as_nanos()),
                refused: end_ns.is_none(),
            });
            release = release + self.period;
        }
        let scheduling = chronorb_rt::current();
        let real_time = scheduling.is_ok_and(|scheduling| scheduling.policy != Policy::Other);
        Ok((real_time, jobs))
    }
}

/// Has the server compute. Returns the end; nothing if the server refuses.
fn compute(work: &Work, cost: Duration) -> Result<Option<u64>, LabError> {
    let cost_us = u32::try_from(cost.as_micros()).unwrap_or(u32::MAX);
    match work.compute(cost_us) {
        Ok(end_ns) => Ok(Some(end_ns)),
        Err(refusal) if refusal.kind == SystemExceptionKind::Transient => Ok(None),
        Err(failure) => Err(LabError::work("calling the server")(failure)),
    }
}

/// The part of a process that is such a client.
pub(crate) const CLIENT: &str = "scheduling-client";
/// The priority of the threads that release jobs: above that of every lane.
const URGENT: i16 = 32_000;
/// The calls by which a thread connects.
const WARM_UP: u32 = 5;
