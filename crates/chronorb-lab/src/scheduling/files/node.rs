//! A process that is a node of a schedule: its lanes, its operations, and the threads of its
//! activities.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chronorb::prelude::*;
use chronorb_rt::{Monotonic, Policy as SchedulingPolicy, sleep_until};
use serde::{Deserialize, Serialize};

use crate::bench::work::{compute, set_priority};
use crate::bench::{ObjectReferences, PoolSpec, priority, start_orb, with_callers};
use crate::error::LabError;
use crate::idl::lab::{Scheduled, ScheduledServant, ScheduledSkeleton};
use crate::process::{self, Parent};

/// A node of a schedule.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct NodeSpec {
    /// The options of its ORB.
    pub(super) options: Vec<String>,
    /// Whether operations take processor time; otherwise they wait as long.
    pub(super) computes: bool,
    /// The priorities and threads of its lanes.
    pub(super) lanes: Vec<(i16, u32)>,
    /// All operations of the node.
    pub(super) operations: Vec<OperationSpec>,
}

/// An operation of a node.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct OperationSpec {
    /// The name in the schedule.
    pub(super) name: String,
    pub(super) priority: i16,
    /// The deadline from the release of the job.
    pub(super) deadline_ns: u64,
    /// The number of threads of a client that execute it; 0 for an operation that a lane serves.
    pub(super) threads: u32,
    /// The steps of an execution.
    pub(super) steps: Vec<OperationStep>,
}

/// A step of the execution of an operation.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) enum OperationStep {
    /// Executes for a time.
    Execute(Duration),
    /// Executes for a time while it has a lock of this name.
    Locked(String, Duration),
    /// Calls the operation of this name, and waits for its end.
    Call(String),
    /// Calls the operation of this name one-way.
    Start(String),
}

/// An order to a node.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) enum NodeOrder {
    /// Releases jobs of activities. The answer is [`ActivityTimes`], when these have ended.
    Run(ActivityReleases),
    /// Reports all operations since the last report. The answer is a list of [`OperationTimes`].
    Report,
}

/// The jobs of all activities of a schedule in one run.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct ActivityReleases {
    /// The time from which offsets count, by the monotonic clock.
    pub(super) start_ns: u64,
    /// Whether operations execute for their times; otherwise they only call.
    pub(super) works: bool,
    /// The jobs by activity.
    pub(super) jobs: BTreeMap<String, PeriodicJobs>,
}

/// The jobs of an activity.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct PeriodicJobs {
    pub(super) offset: Duration,
    pub(super) period: Duration,
    pub(super) jobs: u32,
}

/// The jobs of the activities of a node in one run.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ActivityTimes {
    /// Whether all threads had real-time priorities.
    pub(super) real_time: bool,
    /// The responses of the jobs of each activity.
    pub(super) responses_ns: Vec<(String, Vec<u64>)>,
}

/// The executions of an operation since the last report.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct OperationTimes {
    pub(super) name: String,
    pub(super) jobs: u64,
    /// The jobs that ended after their deadline.
    pub(super) missed: u64,
    /// The longest time from the release of a job to the end of the operation.
    pub(super) longest_ns: u64,
}

/// Runs the node of an order.
pub(crate) fn schedule_node_main(order: &str) -> Result<(), LabError> {
    let spec: NodeSpec = process::order(order)?;
    let parent = Parent::or_exit();
    let orb = start_orb(&spec.options)?;
    let operations = spec.operations.into_iter();
    let node = Arc::new(RunningNode {
        orb,
        computes: spec.computes,
        operations: operations.map(RunningOperation::of).collect(),
        callees: OnceLock::new(),
    });
    process::tell(&node.offer(spec.lanes)?)?;
    let references: ObjectReferences = parent.hear()?;
    let callees = references.iter().map(|(name, reference)| {
        let object = node.orb.string_to_object(reference);
        let object = object.map_err(LabError::work("finding an operation"))?;
        Ok((name.clone(), Scheduled::unchecked_narrow(&object)))
    });
    let callees = callees.collect::<Result<_, LabError>>()?;
    // It is set once, here.
    let _ = node.callees.set(callees);
    let threads = node.operations.iter().enumerate().flat_map(|(index, it)| {
        let threads = it.spec.threads;
        (0..threads).map(move |thread| (index, thread, threads))
    });
    let threads: Vec<_> = threads.collect();
    let connect = |thread: usize| {
        let operation = &node.operations[threads[thread].0];
        set_priority(&node.orb, priority(operation.spec.priority))
    };
    let run = |(): &mut (), thread: usize, order: &ActivityReleases| {
        let (operation, first, step) = threads[thread];
        node.release(&node.operations[operation], first, step, order)
    };
    with_callers(threads.len(), connect, run, |callers| {
        while let Some(order) = parent.hear::<Option<NodeOrder>>()? {
            match order {
                NodeOrder::Run(order) => {
                    let results = callers.run(&order)?;
                    let mut times = ActivityTimes {
                        real_time: true,
                        responses_ns: Vec::new(),
                    };
                    for ((operation, ..), (real_time, responses)) in threads.iter().zip(results) {
                        times.real_time &= real_time;
                        let name = node.operations[*operation].spec.name.clone();
                        times.responses_ns.push((name, responses));
                    }
                    process::tell(&times)?;
                }
                NodeOrder::Report => {
                    let all = node.operations.iter().map(RunningOperation::report);
                    process::tell(&all.collect::<Vec<_>>())?;
                }
            }
        }
        Ok(())
    })
}

/// A node that runs.
struct RunningNode {
    orb: Orb,
    computes: bool,
    operations: Vec<RunningOperation>,
    /// The operations of all nodes that lanes serve.
    callees: OnceLock<BTreeMap<String, Scheduled>>,
}

/// An operation with its executions since the last report.
struct RunningOperation {
    spec: OperationSpec,
    jobs: AtomicU64,
    missed: AtomicU64,
    longest_ns: AtomicU64,
}

impl RunningOperation {
    fn of(spec: OperationSpec) -> Self {
        Self {
            spec,
            jobs: AtomicU64::new(0),
            missed: AtomicU64::new(0),
            longest_ns: AtomicU64::new(0),
        }
    }

    /// Counts an execution that ends now. Returns its response.
    fn end(&self, release_ns: u64) -> u64 {
        let response = Monotonic::now().as_nanos().saturating_sub(release_ns);
        self.jobs.fetch_add(1, Ordering::Relaxed);
        self.longest_ns.fetch_max(response, Ordering::Relaxed);
        if response > self.spec.deadline_ns {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
        response
    }

    fn report(&self) -> OperationTimes {
        OperationTimes {
            name: self.spec.name.clone(),
            jobs: self.jobs.swap(0, Ordering::Relaxed),
            missed: self.missed.swap(0, Ordering::Relaxed),
            longest_ns: self.longest_ns.swap(0, Ordering::Relaxed),
        }
    }
}

impl RunningNode {
    /// Makes the lanes, and activates an object for each operation that they serve.
    fn offer(self: &Arc<Self>, lanes: Vec<(i16, u32)>) -> Result<ObjectReferences, LabError> {
        let mut references = ObjectReferences::new();
        if lanes.is_empty() {
            return Ok(references);
        }
        let root = self.orb.root_poa().map_err(LabError::work(OFFERING))?;
        let pool = PoolSpec::lanes(lanes).make(&self.orb);
        let pool = pool.map_err(LabError::work(OFFERING))?;
        for (index, operation) in self.operations.iter().enumerate() {
            let spec = &operation.spec;
            if spec.threads > 0 {
                continue;
            }
            let policies = [
                Policy::Threadpool(pool),
                Policy::PriorityModel(PriorityModel::ServerDeclared, priority(spec.priority)),
            ];
            let poa = root.create_poa(&spec.name, Some(root.manager()), &policies);
            let poa = poa.map_err(LabError::work(OFFERING))?;
            let servant = OperationServant {
                node: self.clone(),
                operation: index,
            };
            let object = poa.serve(ScheduledSkeleton::new(servant));
            let object = object.map_err(LabError::work(OFFERING))?;
            references.insert(spec.name.clone(), self.orb.object_to_string(&object));
        }
        let active = root.manager().activate();
        active.map_err(LabError::work(OFFERING))?;
        Ok(references)
    }

    /// Executes every `step`th job of an activity from the `first` on. Returns whether this thread
    /// has a real-time priority, and the responses.
    fn release(
        &self,
        operation: &RunningOperation,
        first: u32,
        step: u32,
        order: &ActivityReleases,
    ) -> Result<(bool, Vec<u64>), LabError> {
        let Some(jobs) = order.jobs.get(&operation.spec.name) else {
            return Ok((true, Vec::new()));
        };
        let mut responses = Vec::with_capacity(jobs.jobs as usize);
        for job in (first..jobs.jobs).step_by(step as usize) {
            let release = Monotonic::from_nanos(order.start_ns) + jobs.offset + jobs.period * job;
            sleep_until(release);
            let response = self.execute(operation, release.as_nanos(), order.works);
            responses.push(response.map_err(LabError::work("calling an operation"))?);
        }
        let scheduling = chronorb_rt::current();
        let real_time = scheduling.is_ok_and(|it| it.policy != SchedulingPolicy::Other);
        Ok((real_time, responses))
    }

    /// Executes an operation for a job. Returns the response.
    fn execute(
        &self,
        operation: &RunningOperation,
        release_ns: u64,
        works: bool,
    ) -> Result<u64, SystemException> {
        for step in &operation.spec.steps {
            match step {
                OperationStep::Execute(time) => self.take(*time, works),
                OperationStep::Locked(lock, time) => {
                    let (mutex, _) = self.orb.rt().create_named_mutex(lock);
                    let _section = mutex.guard()?;
                    self.take(*time, works);
                }
                OperationStep::Call(callee) => self.callee(callee)?.execute(release_ns, works)?,
                OperationStep::Start(callee) => self.callee(callee)?.start(release_ns, works)?,
            }
        }
        Ok(operation.end(release_ns))
    }

    /// Takes a time: of the processor, or of the clock where the node stands for a machine of its
    /// own.
    fn take(&self, time: Duration, works: bool) {
        if !works {
        } else if self.computes {
            compute(time);
        } else {
            sleep_until(Monotonic::now() + time);
        }
    }

    fn callee(&self, name: &str) -> Result<&Scheduled, SystemException> {
        let callee = self.callees.get().and_then(|it| it.get(name));
        callee.ok_or_else(|| SystemException::no(SystemExceptionKind::ObjectNotExist, 0))
    }
}

/// The servant of an operation.
struct OperationServant {
    node: Arc<RunningNode>,
    operation: usize,
}

impl ScheduledServant for OperationServant {
    fn execute(&self, _: &Call<'_>, release_ns: u64, works: bool) -> Result<(), SystemException> {
        let operation = &self.node.operations[self.operation];
        self.node.execute(operation, release_ns, works).map(drop)
    }

    fn start(&self, call: &Call<'_>, release_ns: u64, works: bool) -> Result<(), SystemException> {
        self.execute(call, release_ns, works)
    }
}

/// The part of a process that is a node of a schedule.
pub(crate) const SCHEDULE_NODE: &str = "schedule-node";
const OFFERING: &str = "offering the operations of a node";
