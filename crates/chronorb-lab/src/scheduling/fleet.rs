//! A server with a lane for each priority of a task set, its client, and their runs.

use std::collections::BTreeSet;
use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic};
use chronorb_sched::{Task, Time};

use super::client::{CLIENT, JobTime, ReleaseOrder, ReleaseSpec, ReleasedJobs, TaskJobs};
use super::servers::{OVERRUN_SERVER, OverrunServer, RELAY, RelaySpec, RelayTarget};
use super::sets::nanos;
use crate::bench::{
    Cpus, Model, ObjectReferences, ObjectSpec, Placement, PoolSpec, SERVER, ServantSpec,
    ServerSpec, real_time_options,
};
use crate::environment::ProcessorTime;
use crate::error::LabError;
use crate::process::{Child, Ready};
use crate::usage;

/// The processes of a task set. The server has one processor, the client another one if there are
/// several.
pub(super) struct LaneFleet {
    server: Child,
    /// The process by which calls go to the server, if there is one.
    relay: Option<Child>,
    client: Child,
    cpus: Cpus,
    tasks: Vec<Task>,
    /// Whether calls carry deadlines.
    is_constrained: bool,
}

/// A relay before the server, and the clocks of the processes.
pub(super) struct HopOptions {
    /// The order of the lanes.
    pub(super) order: &'static str,
    /// The number of tasks whose calls go through the relay.
    pub(super) relayed: usize,
    /// The time by which the clock of the relay is ahead.
    pub(super) relay_ahead: Duration,
    /// The greatest error of each clock, if it is stated.
    pub(super) clock_error: Option<Duration>,
}

impl HopOptions {
    /// Returns the options of an ORB whose clock is ahead by a time.
    fn of_clock(&self, ahead: Duration) -> Vec<String> {
        let mut options = vec!["-ORBClockCorrection".to_owned(), micros(ahead)];
        if let Some(error) = self.clock_error {
            options.extend(["-ORBClockUncertainty".to_owned(), micros(error)]);
        }
        options
    }
}

/// The costs of a job beside its own computing, as calls on an idle server show them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallCosts {
    /// The time from a release to the beginning of the job, and from its end to the reading of the
    /// clock: the 99th percentile.
    pub(super) latency: Time,
    /// The processor time of the server: the mean.
    pub(super) processor: Time,
}

/// The jobs of a run.
pub(super) struct LaneRun {
    pub(super) real_time: bool,
    /// The jobs of each task.
    pub(super) tasks: Vec<Vec<JobTime>>,
    /// The time for which a thread of the highest priority was kept from its processor at most,
    /// and the time that the hypervisor took.
    pub(super) disturbance: Time,
}

impl LaneFleet {
    /// Starts server and client; all threads are connected when this returns.
    pub(super) fn start(tasks: &[Task], lock_memory: bool) -> Result<Self, LabError> {
        let spec = server_spec(tasks, lock_memory, ServantSpec::Work);
        let (server, serving) = Child::start("server", SERVER, &spec)?;
        Self::connect(tasks, lock_memory, server, &serving)
    }

    /// Starts a server whose lanes have an order, and a client whose calls carry deadlines.
    pub(super) fn start_in_order(
        tasks: &[Task],
        lock_memory: bool,
        order: &str,
    ) -> Result<Self, LabError> {
        let mut spec = server_spec(tasks, lock_memory, ServantSpec::Work);
        let order = ["-ORBLaneOrder", order].map(str::to_owned);
        spec.options.extend(order);
        let (server, serving) = Child::start("server", SERVER, &spec)?;
        let fleet = Self::connect(tasks, lock_memory, server, &serving)?;
        Ok(Self {
            is_constrained: true,
            ..fleet
        })
    }

    /// Starts a server and a relay whose lanes have an order, and a client whose calls carry
    /// deadlines. The relay has the processor of the client.
    pub(super) fn start_over_hops(
        tasks: &[Task],
        lock_memory: bool,
        hops: &HopOptions,
    ) -> Result<Self, LabError> {
        let ordered = ["-ORBLaneOrder", hops.order].map(str::to_owned);
        let mut spec = server_spec(tasks, lock_memory, ServantSpec::Work);
        spec.options.extend(ordered.clone());
        spec.options.extend(hops.of_clock(Duration::ZERO));
        let (server, mut serving): (_, ObjectReferences) = Child::start("server", SERVER, &spec)?;
        let targets = spec.objects.iter().take(hops.relayed).filter_map(|object| {
            Some(RelayTarget {
                name: object.name.clone(),
                reference: serving.get(&object.name)?.clone(),
                model: object.pool?.1,
            })
        });
        let threads = u32::try_from(hops.relayed).unwrap_or(1);
        let mut options = real_time_options(lock_memory);
        options.extend(ordered);
        options.extend(hops.of_clock(hops.relay_ahead));
        let relay = RelaySpec {
            options,
            pool: PoolSpec::lanes(lanes_of(tasks, threads)),
            targets: targets.collect(),
        };
        let (relay, relayed): (_, ObjectReferences) = Child::start("relay", RELAY, &relay)?;
        serving.extend(relayed);
        let of_clock = hops.of_clock(Duration::ZERO);
        let fleet = Self::connect_with(tasks, lock_memory, server, &serving, of_clock)?;
        fleet
            .cpus
            .place(fleet.placement(), relay.id(), fleet.server.id())?;
        Ok(Self {
            relay: Some(relay),
            is_constrained: true,
            ..fleet
        })
    }

    /// Shortens the computing of each job by the processor time of a call.
    pub(super) fn include_call(&mut self, costs: CallCosts) {
        for task in &mut self.tasks {
            task.cost = task.cost.saturating_sub(costs.processor).max(1);
        }
    }

    /// Starts a server with a policy for overruns of the first task, whose budget is its cost and a
    /// tenth.
    pub(super) fn start_with_overruns(
        tasks: &[Task],
        lock_memory: bool,
        policy: &str,
    ) -> Result<Self, LabError> {
        let order = OverrunServer {
            spec: server_spec(tasks, lock_memory, ServantSpec::Burst),
            policy: policy.to_owned(),
            budget: Duration::from_nanos(tasks[0].cost / 10 * 11),
        };
        let (server, serving) = Child::start("server", OVERRUN_SERVER, &order)?;
        Self::connect(tasks, lock_memory, server, &serving)
    }

    fn connect(
        tasks: &[Task],
        lock_memory: bool,
        server: Child,
        serving: &ObjectReferences,
    ) -> Result<Self, LabError> {
        Self::connect_with(tasks, lock_memory, server, serving, Vec::new())
    }

    /// Connects a client with further options of its ORB.
    fn connect_with(
        tasks: &[Task],
        lock_memory: bool,
        server: Child,
        serving: &ObjectReferences,
        further: Vec<String>,
    ) -> Result<Self, LabError> {
        let references = (0..tasks.len()).filter_map(|index| serving.get(&object_name(index)));
        let mut options = real_time_options(lock_memory);
        options.extend(further);
        let spec = ReleaseSpec {
            options,
            references: references.cloned().collect(),
        };
        let (client, Ready {}) = Child::start("client", CLIENT, &spec)?;
        let cpus = Cpus::of_this_process()?;
        let fleet = Self {
            server,
            relay: None,
            client,
            cpus,
            tasks: tasks.to_vec(),
            is_constrained: false,
        };
        let (client, server) = (fleet.client.id(), fleet.server.id());
        fleet.cpus.place(fleet.placement(), client, server)?;
        Ok(fleet)
    }

    fn placement(&self) -> Placement {
        if self.cpus.are_several() {
            Placement::AcrossCpus
        } else {
            Placement::SameCpu
        }
    }

    /// Measures the costs of a job by some calls, one after the other, on the idle server.
    pub(super) fn calibrate(&mut self, calls: u32) -> Result<CallCosts, LabError> {
        let jobs = TaskJobs {
            offset: Duration::ZERO,
            period: CALIBRATION_PERIOD,
            jobs: calls,
            cost: CALIBRATION_COST,
            first_cost: None,
            constraint: self.is_constrained.then_some((CALIBRATION_PERIOD, 0)),
        };
        let before = usage::of(self.server.id());
        let (_, mut tasks) = self.release(vec![jobs], CALIBRATION_PERIOD * calls)?;
        let used = usage::of(self.server.id()).since(before);
        let cost = nanos(CALIBRATION_COST);
        let jobs = tasks.swap_remove(0);
        let processor = used.cpu_ns / u64::from(calls.max(1));
        let mut latencies: Vec<_> = jobs.iter().map(|job| job.response_ns).collect();
        latencies.sort_unstable();
        let p99 = latencies.get((latencies.len() * 99).div_ceil(100).saturating_sub(1));
        Ok(CallCosts {
            latency: p99.copied().unwrap_or_default().saturating_sub(cost),
            processor: processor.saturating_sub(cost),
        })
    }

    /// Runs the jobs that are released within a time, with the offsets of the tasks, while the
    /// doctor measures the wake-ups of the processors.
    pub(super) fn run(&mut self, length: Duration, offsets: &[Time]) -> Result<LaneRun, LabError> {
        let jobs = self.jobs(length, offsets);
        self.observe(jobs, length)
    }

    /// Runs the jobs of a time from a common release; the first job of the first task takes so
    /// much processor time.
    pub(super) fn run_with_overrun(
        &mut self,
        length: Duration,
        first_cost: Duration,
    ) -> Result<LaneRun, LabError> {
        let mut jobs = self.jobs(length, &vec![0; self.tasks.len()]);
        jobs[0].first_cost = Some(first_cost);
        self.observe(jobs, length)
    }

    /// Returns the jobs that are released within a time.
    fn jobs(&self, length: Duration, offsets: &[Time]) -> Vec<TaskJobs> {
        let within = nanos(length);
        let tasks = self
            .tasks
            .iter()
            .zip(offsets)
            .map(|(task, offset)| TaskJobs {
                offset: Duration::from_nanos(*offset),
                period: Duration::from_nanos(task.period),
                jobs: u32::try_from(within.saturating_sub(*offset).div_ceil(task.period))
                    .unwrap_or(1),
                cost: Duration::from_nanos(task.cost),
                first_cost: None,
                constraint: self.is_constrained.then(|| {
                    let deadline = Duration::from_nanos(task.deadline);
                    (deadline, i16::from(task.criticality))
                }),
            });
        tasks.collect()
    }

    /// Runs jobs while the doctor measures the wake-ups of the processors.
    fn observe(&mut self, tasks: Vec<TaskJobs>, length: Duration) -> Result<LaneRun, LabError> {
        let cpus = self.cpus.clone();
        let run = || self.release(tasks, length);
        let ((real_time, tasks), disturbance) = with_disturbance(&cpus, length, run)?;
        Ok(LaneRun {
            real_time,
            tasks,
            disturbance,
        })
    }

    fn release(
        &mut self,
        tasks: Vec<TaskJobs>,
        length: Duration,
    ) -> Result<(bool, Vec<Vec<JobTime>>), LabError> {
        self.server.check()?;
        let order = ReleaseOrder {
            start_ns: (Monotonic::now() + LEAD).as_nanos(),
            tasks,
        };
        self.client.tell(&Some(order))?;
        let jobs: ReleasedJobs = self.client.hear(Deadline::after(length * 2 + PATIENCE))?;
        Ok((jobs.real_time, jobs.tasks))
    }

    /// Ends all processes.
    pub(super) fn stop(self) -> Result<(), LabError> {
        let end = Deadline::after(PATIENCE);
        self.client.dismiss(end)?;
        self.relay.map_or(Ok(()), |relay| relay.stop(end))?;
        Ok(self.server.stop(end)?)
    }
}

/// Runs work of a length while the doctor measures the wake-ups of the processors. Returns its
/// result and its disturbance: the time for which a thread of the highest priority was kept from
/// its processor at most, and the time that the hypervisor took.
pub(super) fn with_disturbance<T>(
    cpus: &Cpus,
    length: Duration,
    work: impl FnOnce() -> Result<T, LabError>,
) -> Result<(T, Time), LabError> {
    let (before, begun) = (ProcessorTime::now(), Monotonic::now());
    let probe = std::thread::Builder::new()
        .name("lab-probe".to_owned())
        .spawn(move || chronorb_doctor::measure(length + LEAD))
        .map_err(LabError::work("starting the probe of latencies"))?;
    let result = work()?;
    let wake_ups = probe.join();
    let wake_ups = wake_ups.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let wake_ups = wake_ups.map_err(LabError::work("measuring wake-ups"))?;
    let stolen = before.stolen_percent(ProcessorTime::now()) / 100.0;
    let processors = cpus.iter().count() as f64;
    let stolen = Monotonic::now().since(begun).mul_f64(stolen * processors);
    let late = wake_ups.cpus.iter().map(|cpu| cpu.late.max_us() * 1e3);
    Ok((result, late.sum::<f64>() as Time + nanos(stolen)))
}

/// Describes a server with a lane for each priority, and an object for each task.
fn server_spec(tasks: &[Task], lock_memory: bool, first: ServantSpec) -> ServerSpec {
    let levels = levels_of(tasks);
    let level = |task: &Task| {
        let level = levels.binary_search(&task.priority).unwrap_or_default();
        LOWEST + level as i16 * STEP
    };
    let objects = tasks.iter().enumerate().map(|(index, task)| ObjectSpec {
        name: object_name(index),
        pool: Some((0, Model::Declared(level(task)))),
        servant: if index == 0 { first } else { ServantSpec::Work },
    });
    ServerSpec {
        options: real_time_options(lock_memory),
        pools: vec![PoolSpec::lanes(lanes_of(tasks, 1))],
        objects: objects.collect(),
        trace_marker: None,
    }
}

/// Returns the priorities of tasks, in rising order.
fn levels_of(tasks: &[Task]) -> Vec<u32> {
    let levels: BTreeSet<_> = tasks.iter().map(|task| task.priority).collect();
    levels.into_iter().collect()
}

/// Returns a lane for each priority, with so many threads.
fn lanes_of(tasks: &[Task], threads: u32) -> Vec<(i16, u32)> {
    let levels = 0..levels_of(tasks).len();
    let lanes = levels.map(|level| (LOWEST + level as i16 * STEP, threads));
    lanes.collect()
}

fn micros(time: Duration) -> String {
    time.as_micros().to_string()
}

fn object_name(task: usize) -> String {
    format!("task-{task}")
}

/// The CORBA priority of the lowest lane, and the distance of the others: more than one native
/// priority.
const LOWEST: i16 = 15_000;
const STEP: i16 = 1_000;
/// The time in which the threads of client and probe begin to wait for the first release.
pub(super) const LEAD: Duration = Duration::from_millis(150);
/// The time from one call of the calibration to the next.
pub(super) const CALIBRATION_PERIOD: Duration = Duration::from_millis(3);
const CALIBRATION_COST: Duration = Duration::from_micros(200);
/// The time that a run may take in addition to twice its length.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
