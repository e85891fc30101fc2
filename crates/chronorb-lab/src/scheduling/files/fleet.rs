//! The processes of a schedule: one for each node, and their runs.

use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic, Scheduling, ThreadBuilder, sleep_until};
use chronorb_sched::Time;
use chronorb_schedule::{Operation, Schedule};

use super::cases::FileCase;
use super::node::{
    ActivityReleases, ActivityTimes, NodeOrder, NodeSpec, OperationSpec, OperationStep,
    OperationTimes, PeriodicJobs, SCHEDULE_NODE,
};
use crate::bench::work::compute;
use crate::bench::{Cpus, ObjectReferences, real_time_options};
use crate::error::LabError;
use crate::process::Child;
use crate::scheduling::fleet::{CALIBRATION_PERIOD, LEAD, PATIENCE, with_disturbance};
use crate::scheduling::sets::nanos;

/// The processes of a schedule.
///
/// A node whose processor has a `cpu` computes on that processor of this machine, counted from the
/// last one. Any other node stands for a machine of its own: its operations wait as long as they
/// would execute, and its process is on the first processor.
pub(super) struct ScheduleFleet<'c> {
    case: &'c FileCase,
    cpus: Cpus,
    nodes: Vec<Child>,
}

/// The operations of a schedule in one run.
pub(super) struct ScheduleRun {
    pub(super) real_time: bool,
    /// The executions of each operation, in the order of the schedule.
    pub(super) operations: Vec<OperationTimes>,
    pub(super) disturbance: Time,
}

impl<'c> ScheduleFleet<'c> {
    /// Starts a process for each node, and tells it the operations of the others.
    pub(super) fn start(case: &'c FileCase, lock_memory: bool) -> Result<Self, LabError> {
        let cpus = Cpus::of_this_process()?;
        let mut nodes = Vec::new();
        let mut references = ObjectReferences::new();
        for (index, node) in case.schedule.nodes.iter().enumerate() {
            let spec = node_spec(case, index, lock_memory)?;
            let name = format!("node {}", node.name);
            let (child, own): (_, ObjectReferences) = Child::start(name, SCHEDULE_NODE, &spec)?;
            cpus.pin(child.id(), cpu_of(&case.schedule, index, &cpus))?;
            references.extend(own);
            nodes.push(child);
        }
        for node in &mut nodes {
            node.tell(&references)?;
        }
        let mut fleet = Self { case, cpus, nodes };
        // Calls that connect.
        fleet.release(&fleet.idle_jobs(WARM_UP))?;
        fleet.report()?;
        Ok(fleet)
    }

    /// Measures the overhead of a piece by jobs that only call: the 99th percentile of their
    /// responses, divided by the pieces of a job, of the activity with the longest one.
    pub(super) fn calibrate(&mut self, jobs: u32) -> Result<Time, LabError> {
        let times = self.release(&self.idle_jobs(jobs))?;
        self.report()?;
        let activities = self.case.activities().map(|(operation, it, _)| {
            let own = times.iter().flat_map(|times| &times.responses_ns);
            let own = own.filter(|(name, _)| *name == it.name);
            let mut responses: Vec<_> = own.flat_map(|(_, responses)| responses).collect();
            responses.sort_unstable();
            let p99 = responses.get((responses.len() * 99).div_ceil(100).saturating_sub(1));
            p99.map_or(0, |p99| p99.div_ceil(self.case.pieces(operation)))
        });
        Ok(activities.max().unwrap_or(0))
    }

    /// Runs the jobs that are released within a time, while the doctor measures the wake-ups of the
    /// processors.
    pub(super) fn run(
        &mut self,
        length: Duration,
        first: &[Time],
    ) -> Result<ScheduleRun, LabError> {
        let within = nanos(length);
        let activities = self.case.activities().zip(first);
        let jobs = activities.map(|((_, operation, period), first)| {
            let jobs = within.saturating_sub(*first).div_ceil(period).max(1);
            let jobs = PeriodicJobs {
                offset: Duration::from_nanos(*first),
                period: Duration::from_nanos(period),
                jobs: u32::try_from(jobs).unwrap_or(u32::MAX),
            };
            (operation.name.clone(), jobs)
        });
        let releases = ActivityReleases {
            start_ns: 0,
            works: true,
            jobs: jobs.collect(),
        };
        let cpus = self.cpus.clone();
        let (times, disturbance) = with_disturbance(&cpus, length, || self.release(&releases))?;
        let all = self.report()?;
        let names = self.case.schedule.operations.iter().map(|it| &it.name);
        let operations = names.filter_map(|name| all.iter().find(|it| it.name == *name));
        Ok(ScheduleRun {
            real_time: times.iter().all(|times| times.real_time),
            operations: operations.cloned().collect(),
            disturbance,
        })
    }

    /// Ends all processes.
    pub(super) fn stop(self) -> Result<(), LabError> {
        let end = Deadline::after(PATIENCE);
        let mut nodes = self.nodes.into_iter();
        nodes.try_for_each(|node| Ok(node.dismiss(end)?))
    }

    /// Returns so many jobs of each activity, which only call.
    fn idle_jobs(&self, jobs: u32) -> ActivityReleases {
        let activities = self.case.activities().map(|(_, operation, _)| {
            let jobs = PeriodicJobs {
                offset: Duration::ZERO,
                period: CALIBRATION_PERIOD,
                jobs,
            };
            (operation.name.clone(), jobs)
        });
        ActivityReleases {
            start_ns: 0,
            works: false,
            jobs: activities.collect(),
        }
    }

    /// Releases jobs from a time on at which all threads wait. Returns those of each node when all
    /// have ended.
    fn release(&mut self, releases: &ActivityReleases) -> Result<Vec<ActivityTimes>, LabError> {
        let lengths = releases.jobs.values();
        let length = lengths.map(|it| it.offset + it.period * it.jobs).max();
        let order = NodeOrder::Run(ActivityReleases {
            start_ns: (Monotonic::now() + LEAD).as_nanos(),
            ..releases.clone()
        });
        self.ask(&order, length.unwrap_or_default())
    }

    fn report(&mut self) -> Result<Vec<OperationTimes>, LabError> {
        let reports: Vec<Vec<_>> = self.ask(&NodeOrder::Report, Duration::ZERO)?;
        Ok(reports.into_iter().flatten().collect())
    }

    fn ask<T: serde::de::DeserializeOwned>(
        &mut self,
        order: &NodeOrder,
        length: Duration,
    ) -> Result<Vec<T>, LabError> {
        for node in &mut self.nodes {
            node.tell(&Some(order))?;
        }
        let end = Deadline::after(length * 2 + PATIENCE);
        let nodes = self.nodes.iter_mut();
        nodes.map(|node| Ok(node.hear(end)?)).collect()
    }
}

/// Measures the millionths by which an execution takes longer while its processor has interrupts
/// and the doctor measures wake-ups: the 90th percentile on the first processor that nodes compute
/// on. Longer ones are disturbances.
pub(super) fn measure_dilation(length: Duration) -> Result<u64, LabError> {
    let cpus = Cpus::of_this_process()?;
    let last: Vec<_> = cpus.iter().last().into_iter().collect();
    let measure = || {
        let thread = ThreadBuilder::new("lab-dilation")
            .scheduling(Scheduling::fifo(DILATION_PRIORITY))
            .affinity(&last)
            .spawn(move || {
                let end = Deadline::after(length);
                let mut times = Vec::new();
                while !end.has_passed() {
                    let begin = Monotonic::now();
                    compute(DILATED);
                    times.push(nanos(Monotonic::now().since(begin)));
                    sleep_until(Monotonic::now() + DILATED);
                }
                times
            });
        let thread = thread.map_err(LabError::work("starting a thread that computes"))?;
        let times = thread.join();
        Ok(times.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    };
    let (mut times, _) = with_disturbance(&cpus, length, measure)?;
    times.sort_unstable();
    let usual = times.get(times.len() * 9 / 10).copied().unwrap_or(0);
    let more = usual.saturating_sub(nanos(DILATED));
    Ok(more * 1_000_000 / nanos(DILATED))
}

/// Returns the processor of this machine for a node.
fn cpu_of(schedule: &Schedule, node: usize, cpus: &Cpus) -> usize {
    let all: Vec<_> = cpus.iter().collect();
    let declared = declared_cpu(schedule, node);
    let place = declared.map_or(0, |cpu| all.len() - 1 - cpu as usize % all.len());
    all[place]
}

fn declared_cpu(schedule: &Schedule, node: usize) -> Option<u32> {
    let mut processors = schedule.processors.iter();
    processors.find(|it| it.node == node)?.cpu
}

fn node_spec(case: &FileCase, node: usize, lock_memory: bool) -> Result<NodeSpec, LabError> {
    let schedule = &case.schedule;
    let is_own = |operation: &Operation| schedule.processors[operation.processor].node == node;
    let all = schedule.operations.iter().enumerate();
    let operations = all.filter(|(_, it)| is_own(it)).map(|(index, it)| {
        Ok(OperationSpec {
            name: it.name.clone(),
            priority: case.assignment.priority(index),
            deadline_ns: case.deadline(index),
            threads: it.period.map_or(0, |_| it.threads),
            steps: steps(schedule, it)?,
        })
    });
    let operations = operations.collect::<Result<_, LabError>>()?;
    let is_served = |operation: &usize| schedule.operations[*operation].period.is_none();
    let lanes = case.assignment.lanes.iter().filter(|lane| {
        schedule.processors[lane.processor].node == node && lane.operations.iter().any(is_served)
    });
    let lanes = lanes.map(|lane| (case.assignment.priorities[lane.band], lane.threads));
    Ok(NodeSpec {
        options: real_time_options(lock_memory),
        computes: declared_cpu(schedule, node).is_some(),
        lanes: lanes.collect(),
        operations,
    })
}

/// Returns the steps of an execution: sections of locks first, calls where the file has them.
///
/// # Errors
/// The operation has locks and calls, or it is an activity that a lane would serve.
fn steps(schedule: &Schedule, operation: &Operation) -> Result<Vec<OperationStep>, LabError> {
    let mut calls = schedule.operations.iter().flat_map(|it| &it.calls);
    let is_called = calls.any(|call| schedule.operations[call.operation].name == operation.name);
    let is_activity = operation.period.is_some();
    let with_calls = !operation.calls.is_empty();
    if is_activity && (is_called || operation.lane.is_some())
        || with_calls && !operation.locks.is_empty()
    {
        let refusal = format!("{} is of a kind that is not run", operation.name);
        return Err(LabError::Request(refusal));
    }
    let mut steps = Vec::new();
    let mut left = operation.cost;
    let mut execute = |steps: &mut Vec<_>, time: Time| {
        let time = time.min(left);
        left -= time;
        if time > 0 {
            steps.push(OperationStep::Execute(Duration::from_nanos(time)));
        }
    };
    let sections = operation.locks.iter().map(|used| {
        let time = Duration::from_nanos(used.time);
        OperationStep::Locked(used.lock.clone(), time)
    });
    steps.extend(sections);
    let held: Time = operation.locks.iter().map(|used| used.time).sum();
    let count: u64 = operation.calls.iter().map(|it| u64::from(it.count)).sum();
    let even = operation.cost.div_ceil(1 + count);
    for call in &operation.calls {
        for _ in 0..call.count {
            execute(&mut steps, call.before.unwrap_or(even));
            let callee = schedule.operations[call.operation].name.clone();
            steps.push(if call.oneway {
                OperationStep::Start(callee)
            } else {
                OperationStep::Call(callee)
            });
        }
    }
    execute(&mut steps, operation.cost - held);
    Ok(steps)
}

/// The jobs by which the processes connect.
const WARM_UP: u32 = 5;
/// The execution by which the dilation is measured.
const DILATED: Duration = Duration::from_millis(10);
/// Below the threads that measure wake-ups.
const DILATION_PRIORITY: u8 = 80;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::cases::tests::cases;
    use super::*;

    fn millis(time: f64) -> Duration {
        Duration::from_secs_f64(time / 1e3)
    }

    #[test]
    fn an_execution_has_the_steps_of_its_file() {
        let cases = cases();
        let of = |name: &str| {
            let mut each = cases.iter().map(|case| &case.schedule);
            each.find_map(|schedule| {
                let operation = &schedule.operations[schedule.operation(name)?];
                Some(steps(schedule, operation).unwrap())
            })
            .unwrap()
        };
        let execute = |time| OperationStep::Execute(millis(time));
        let callee = |name: &str| name.to_owned();
        assert_eq!(
            of("A::run"),
            [
                execute(1.0),
                OperationStep::Start(callee("B::push")),
                execute(4.0),
            ]
        );
        assert_eq!(
            of("B::b"),
            [
                execute(0.15),
                OperationStep::Call(callee("A::a")),
                execute(0.15),
            ]
        );
        assert_eq!(
            of("Low::record"),
            [
                OperationStep::Locked("map".to_owned(), millis(5.0)),
                execute(3.0),
            ]
        );
    }

    #[test]
    fn lanes_are_those_of_the_operations_that_are_called() {
        for case in cases() {
            let nodes = 0..case.schedule.nodes.len();
            let specs: Vec<_> = nodes
                .map(|it| node_spec(case, it, false).unwrap())
                .collect();
            for spec in &specs {
                let served = spec.operations.iter().filter(|it| it.threads == 0);
                let priorities: BTreeSet<_> = served.map(|it| it.priority).collect();
                let lanes: BTreeSet<_> = spec.lanes.iter().map(|(priority, _)| *priority).collect();
                assert_eq!(priorities, lanes, "{}", case.title());
            }
            assert!(specs.iter().any(|spec| spec.computes), "{}", case.title());
        }
    }
}
