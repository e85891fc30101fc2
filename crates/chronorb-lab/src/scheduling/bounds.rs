//! Response times: analysed, simulated, and measured on lanes.

use chronorb_sched::{
    AnalysisError, JobCounts, Preemption, Response, Simulation, Task, Time, responses, simulate,
};
use fastrand::Rng;
use serde::Serialize;

use super::SchedulingPlan;
use super::client::JobTime;
use super::fleet::{CallCosts, LaneFleet};
use super::sets::{TaskSet, analysed, nanos};
use crate::error::LabError;
use crate::named::by_name;
use crate::watch::Watch;

/// The times of the first releases of all tasks.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FirstRelease {
    /// All at once, which is the worst case.
    Together,
    /// At random.
    Random,
}

by_name!(FirstRelease);

impl FirstRelease {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Together, Self::Random];

    fn offsets(self, tasks: &[Task], random: &mut Rng) -> Vec<Time> {
        let offsets = tasks.iter().map(|task| match self {
            Self::Together => 0,
            Self::Random => random.u64(0..task.period),
        });
        offsets.collect()
    }
}

/// The jobs of a task in one run, beside its analysis and simulation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BoundRow {
    /// The task set.
    pub set: String,
    /// The first releases.
    pub release: FirstRelease,
    /// The number of the run, from 1.
    pub round: u32,
    /// The task.
    pub task: String,
    /// The deadline.
    pub deadline_ns: u64,
    /// The worst-case response time by the analysis; nothing if it has no bound.
    pub analysed_ns: Option<u64>,
    /// The longest response of the simulator.
    pub simulated_ns: u64,
    /// The longest response on a lane.
    pub measured_ns: u64,
    /// The measured jobs.
    pub jobs: u64,
    /// The jobs that took longer than analysed.
    pub above: u64,
    /// The jobs among them that exceed the analysis by more than the disturbance, but by less than
    /// that and the time by which their client called them late.
    pub called_late: u64,
    /// The jobs that exceed the analysis by more than both.
    pub unexplained: u64,
    /// The longest time by which the client called a job late.
    pub longest_late_ns: u64,
    /// The time for which a thread of the highest priority was kept from its processor in this
    /// run, and the time that the hypervisor took.
    pub disturbance_ns: u64,
}

/// The costs of a call, which the analysis of a set includes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SetCosts {
    /// The task set.
    pub set: String,
    /// The jitter of releases.
    pub latency_ns: u64,
    /// The processor time of a job beside its computing.
    pub processor_ns: u64,
}

/// The figures of the part.
#[derive(Clone, Debug, Default, Serialize)]
pub struct BoundFigures {
    /// The tasks of each run.
    pub tasks: Vec<BoundRow>,
    /// The costs of a call, by task set.
    pub costs: Vec<SetCosts>,
}

/// Analyses, simulates and runs all sets. Returns whether all threads were real-time.
pub(super) fn measure(
    plan: &SchedulingPlan,
    lock_memory: bool,
    watch: &Watch,
    figures: &mut BoundFigures,
) -> Result<bool, LabError> {
    let mut real_time = true;
    let mut random = Rng::with_seed(SEED);
    for set in analysed() {
        watch.begin(&format!("response times, {}", set.name));
        let tasks = set.plain();
        let mut fleet = LaneFleet::start(&tasks, lock_memory)?;
        let costs = fleet.calibrate(plan.calibration)?;
        figures.costs.push(SetCosts {
            set: set.name.to_owned(),
            latency_ns: costs.latency,
            processor_ns: costs.processor,
        });
        let model = SetModel::of(&tasks, costs).map_err(analysing())?;
        for round in 1..=plan.rounds {
            for release in FirstRelease::ALL {
                watch.tick();
                let offsets = release.offsets(&tasks, &mut random);
                let window = nanos(plan.run);
                let simulated = model.simulate(&offsets, window, &mut random);
                let simulated = simulated.map_err(analysing())?;
                let run = fleet.run(plan.run, &offsets)?;
                real_time &= run.real_time;
                let row = Comparison {
                    release,
                    round,
                    disturbance: run.disturbance,
                };
                figures
                    .tasks
                    .extend(row.rows(&set, &model, &simulated, &run.tasks));
            }
        }
        fleet.stop()?;
    }
    Ok(real_time)
}

/// A set as it runs on lanes, and its analysis.
struct SetModel {
    /// The tasks with the costs of a call, and at last the thread that measures wake-ups.
    tasks: Vec<Task>,
    responses: Vec<Response>,
}

impl SetModel {
    fn of(tasks: &[Task], costs: CallCosts) -> Result<Self, AnalysisError> {
        // A job preempts another one, which is resumed at its end.
        let overhead = costs.processor.saturating_mul(2);
        let with_costs = tasks.iter().map(|task| {
            let task = task.with_overhead(overhead)?;
            Ok(task.with_jitter(costs.latency))
        });
        let mut tasks: Vec<_> = with_costs.collect::<Result<_, AnalysisError>>()?;
        let probe = Task::new(costs.processor.max(1), PROBE_PERIOD);
        tasks.push(probe.with_priority(u32::MAX));
        let responses = responses(&tasks, Preemption::Preemptive)?;
        Ok(Self { tasks, responses })
    }

    fn simulate(
        &self,
        offsets: &[Time],
        window: Time,
        random: &mut Rng,
    ) -> Result<Vec<JobCounts>, AnalysisError> {
        let mut tasks = self.tasks.clone();
        for (task, offset) in tasks.iter_mut().zip(offsets) {
            task.offset = *offset;
        }
        let delay = |task: usize, _| random.u64(0..=self.tasks[task].jitter);
        Ok(simulate(&tasks, &Simulation::new(window), delay)?.tasks)
    }
}

/// The circumstances of a run.
struct Comparison {
    release: FirstRelease,
    round: u32,
    disturbance: Time,
}

impl Comparison {
    fn rows(
        &self,
        set: &TaskSet,
        model: &SetModel,
        simulated: &[JobCounts],
        measured: &[Vec<JobTime>],
    ) -> Vec<BoundRow> {
        let tasks = set
            .tasks
            .iter()
            .zip(&model.responses)
            .zip(simulated)
            .zip(measured);
        let rows = tasks.map(|((((name, task), response), simulated), jobs)| {
            let times = || jobs.iter().map(|job| job.response_ns);
            let excess = response.time().map(|bound| {
                let excess = jobs.iter().filter_map(move |job| {
                    let excess = job.response_ns.checked_sub(bound)?;
                    (excess > 0).then_some((excess, job.called_late_ns))
                });
                excess.collect::<Vec<_>>()
            });
            let excess = excess.unwrap_or_default();
            let disturbed = |(excess, _): &&(u64, u64)| *excess <= self.disturbance;
            let is_explained =
                |(excess, late): &&(u64, u64)| *excess <= self.disturbance.saturating_add(*late);
            let explained = excess.iter().filter(is_explained).count();
            let called_late = explained - excess.iter().filter(disturbed).count();
            BoundRow {
                set: set.name.to_owned(),
                release: self.release,
                round: self.round,
                task: name.clone(),
                deadline_ns: task.deadline,
                analysed_ns: response.time(),
                simulated_ns: simulated.worst_response,
                measured_ns: times().max().unwrap_or(0),
                jobs: jobs.len() as u64,
                above: excess.len() as u64,
                called_late: called_late as u64,
                unexplained: (excess.len() - explained) as u64,
                longest_late_ns: jobs.iter().map(|job| job.called_late_ns).max().unwrap_or(0),
                disturbance_ns: self.disturbance,
            }
        });
        rows.collect()
    }
}

fn analysing() -> impl Fn(AnalysisError) -> LabError {
    LabError::work("analysing a task set")
}

/// The period of the thread that measures wake-ups.
const PROBE_PERIOD: Time = 1_000_000;
/// Random releases are the same in each run of the experiment.
const SEED: u64 = 0x7363_6865;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Figures of runs that are as long as the simulation.
    pub(in super::super) fn figures() -> BoundFigures {
        let mut figures = BoundFigures::default();
        let mut random = Rng::with_seed(SEED);
        let costs = CallCosts {
            latency: 100_000,
            processor: 20_000,
        };
        for set in analysed() {
            let tasks = set.plain();
            let model = SetModel::of(&tasks, costs).unwrap();
            figures.costs.push(SetCosts {
                set: set.name.to_owned(),
                latency_ns: costs.latency,
                processor_ns: costs.processor,
            });
            for release in FirstRelease::ALL {
                let offsets = release.offsets(&tasks, &mut random);
                let simulated = model
                    .simulate(&offsets, 1_000_000_000, &mut random)
                    .unwrap();
                let jobs = simulated.iter().map(|of| {
                    vec![JobTime {
                        response_ns: of.worst_response,
                        called_late_ns: 0,
                        refused: false,
                    }]
                });
                let jobs: Vec<_> = jobs.collect();
                let run = Comparison {
                    release,
                    round: 1,
                    disturbance: 80_000,
                };
                figures
                    .tasks
                    .extend(run.rows(&set, &model, &simulated, &jobs));
            }
        }
        figures
    }

    #[test]
    fn no_simulation_exceeds_the_analysis() {
        let mut random = Rng::with_seed(1);
        for set in analysed() {
            let tasks = set.plain();
            let costs = CallCosts {
                latency: 200_000,
                processor: 20_000,
            };
            let model = SetModel::of(&tasks, costs).unwrap();
            for _ in 0..20 {
                for release in FirstRelease::ALL {
                    let offsets = release.offsets(&tasks, &mut random);
                    let times = model.simulate(&offsets, 500_000_000, &mut random).unwrap();
                    for (simulated, response) in times.iter().zip(&model.responses) {
                        assert!(response.meets(u64::MAX), "{}", set.name);
                        assert!(Some(simulated.worst_response) <= response.time());
                    }
                }
            }
        }
    }

    #[test]
    fn a_job_above_its_bound_is_explained_by_a_disturbance_or_a_late_call() {
        let [set, ..] = analysed();
        let model = SetModel::of(&set.plain(), CallCosts::default()).unwrap();
        let bound = model.responses[0].time().unwrap();
        let jobs = [(0, 0), (500, 0), (5_000, 4_399), (5_000, 4_400)];
        let jobs = jobs.map(|(excess, called_late_ns)| JobTime {
            response_ns: bound + excess,
            called_late_ns,
            refused: false,
        });
        let comparison = Comparison {
            release: FirstRelease::Together,
            round: 1,
            disturbance: 600,
        };
        let rows = comparison.rows(&set, &model, &[JobCounts::default()], &[jobs.to_vec()]);
        let row = &rows[0];
        assert_eq!((row.jobs, row.above), (4, 3));
        assert_eq!((row.called_late, row.unexplained), (1, 1));
        assert_eq!(row.longest_late_ns, 4_400);
        assert_eq!(row.measured_ns, bound + 5_000);
    }
}
