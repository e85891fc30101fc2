//! Overload by discipline: eight operations of 18 ms at 20, 10, 5 and 1 Hz, which ask for 1.296
//! processors.

use std::collections::BTreeMap;
use std::time::Duration;

use chronorb_sched::{
    AnalysisError, Discipline, JobCounts, JobPreemption, Simulation, SimulationResult, Task, Time,
    simulate,
};
use serde::Serialize;

use super::SchedulingPlan;
use super::fleet::{CallCosts, LaneFleet, LaneRun};
use super::sets::{TaskSet, overload, overload_by_criticality, overload_of_two_levels};
use crate::error::LabError;
use crate::named::by_name;
use crate::watch::Watch;

/// The order in which jobs are dispatched.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DispatchOrder {
    /// Fixed priorities by rate, then importance.
    RateMonotonic,
    /// Earliest deadline first.
    EarliestDeadline,
    /// Least laxity first.
    LeastLaxity,
    /// Criticality, then least laxity.
    MaximumUrgency,
    /// Fixed priorities by criticality, then rate.
    CriticalityFirst,
}

by_name!(DispatchOrder);

impl DispatchOrder {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::RateMonotonic,
        Self::EarliestDeadline,
        Self::LeastLaxity,
        Self::MaximumUrgency,
        Self::CriticalityFirst,
    ];

    /// The orders that lanes with fixed priorities can have.
    pub(super) const FIXED: [Self; 2] = [Self::RateMonotonic, Self::CriticalityFirst];

    /// The orders of frames on lanes: the fixed ones, and that of two lanes by criticality, in each
    /// of which the least laxity is first.
    pub(super) const ON_LANES: [Self; 3] = [
        Self::RateMonotonic,
        Self::CriticalityFirst,
        Self::MaximumUrgency,
    ];

    /// Returns the name in reports.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::RateMonotonic => "RMS",
            Self::EarliestDeadline => "EDF",
            Self::LeastLaxity => "MLF",
            Self::MaximumUrgency => "MUF",
            Self::CriticalityFirst => "criticality, then rate",
        }
    }

    const fn discipline(self) -> Discipline {
        match self {
            Self::RateMonotonic | Self::CriticalityFirst => Discipline::FixedPriority,
            Self::EarliestDeadline => Discipline::EarliestDeadline,
            Self::LeastLaxity => Discipline::LeastLaxity,
            Self::MaximumUrgency => Discipline::MaximumUrgency,
        }
    }

    fn set(self) -> TaskSet {
        match self {
            Self::CriticalityFirst => overload_by_criticality(),
            Self::MaximumUrgency => overload_of_two_levels(),
            _ => overload(),
        }
    }
}

/// The source of a figure.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureSource {
    /// The simulator, in virtual time.
    Simulated,
    /// Lanes of an ORB.
    Measured,
}

/// The jobs of one operation in one frame.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OverloadRow {
    /// The order of dispatch.
    pub order: DispatchOrder,
    /// The source.
    pub source: FigureSource,
    /// The number of the frame, from 1; 0 in a simulation.
    pub round: u32,
    /// The operation.
    pub task: String,
    /// Whether the operation is critical.
    pub critical: bool,
    /// Jobs that met their deadlines.
    pub met: u64,
    /// Jobs that missed their deadlines.
    pub missed: u64,
    /// The longest response, by the deadline of the operation.
    pub worst_by_deadline: f64,
}

/// A frame on lanes beside its simulation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FrameRow {
    /// The order of dispatch.
    pub order: DispatchOrder,
    /// The number of the frame, from 1.
    pub round: u32,
    /// Whether each operation met and missed as many deadlines as in the simulation.
    pub equal: bool,
    /// The time for which a thread of the highest priority was kept from its processor, and the
    /// time that the hypervisor took.
    pub disturbance_ns: u64,
    /// The least time between a simulated end and its deadline.
    pub margin_ns: u64,
}

/// The share of deadlines that are missed at a load, by the simulator.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LoadRow {
    /// The order of dispatch.
    pub order: DispatchOrder,
    /// The load, in hundredths of a processor.
    pub load: u64,
    /// The share of missed deadlines of critical operations.
    pub critical_missed_percent: f64,
    /// The share of missed deadlines of other operations.
    pub other_missed_percent: f64,
}

/// The figures of the part.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OverloadFigures {
    /// The operations of each frame.
    pub tasks: Vec<OverloadRow>,
    /// The frames on lanes.
    pub frames: Vec<FrameRow>,
    /// The simulations by load.
    pub loads: Vec<LoadRow>,
    /// The processor time of a call beside its computing, which simulations of lanes include.
    pub call_cost_ns: u64,
}

impl OverloadFigures {
    /// Returns the rows of operations of one order and source.
    pub(super) fn of(
        &self,
        order: DispatchOrder,
        source: FigureSource,
    ) -> impl Iterator<Item = &OverloadRow> {
        let rows = self.tasks.iter();
        rows.filter(move |row| row.order == order && row.source == source)
    }

    /// Returns the jobs of critical operations, or of the others, that met and missed their
    /// deadlines in the simulation.
    pub(super) fn simulated(&self, order: DispatchOrder, critical: bool) -> (u64, u64) {
        let rows = self.of(order, FigureSource::Simulated);
        let rows = rows.filter(|row| row.critical == critical);
        rows.fold((0, 0), |(met, missed), row| {
            (met + row.met, missed + row.missed)
        })
    }
}

/// Simulates one frame in all orders, and the loads.
pub(super) fn simulated() -> Result<OverloadFigures, LabError> {
    let mut figures = OverloadFigures::default();
    for order in DispatchOrder::ALL {
        let set = order.set();
        let tasks = set.plain();
        let counts = frame(&tasks, order, false).map_err(simulating())?.tasks;
        figures.tasks.extend(rows(&set, order, &counts));
        for load in LOADS.step_by(LOAD_STEP) {
            let loaded = tasks.iter().map(|task| {
                let mut task = *task;
                task.cost = task.cost * load * 10 / FULL_LOAD;
                task
            });
            let loaded: Vec<_> = loaded.collect();
            let counts = frame(&loaded, order, false).map_err(simulating())?.tasks;
            figures.loads.push(LoadRow {
                order,
                load,
                critical_missed_percent: missed(&tasks, &counts, true),
                other_missed_percent: missed(&tasks, &counts, false),
            });
        }
    }
    Ok(figures)
}

/// Runs frames on lanes. Returns whether all threads were real-time.
pub(super) fn measure(
    plan: &SchedulingPlan,
    lock_memory: bool,
    watch: &Watch,
    figures: &mut OverloadFigures,
) -> Result<bool, LabError> {
    let mut real_time = true;
    for order in DispatchOrder::ON_LANES {
        watch.begin(&format!("overload on lanes, {}", order.title()));
        let set = shortened(order.set());
        let tasks = set.plain();
        let mut fleet = match order {
            DispatchOrder::MaximumUrgency => LaneFleet::start_in_order(&tasks, lock_memory, "muf")?,
            _ => LaneFleet::start(&tasks, lock_memory)?,
        };
        let costs = fleet.calibrate(plan.calibration)?;
        figures.call_cost_ns = figures.call_cost_ns.max(costs.processor);
        let expected = ExpectedFrame::of(&tasks, order, costs).map_err(simulating())?;
        for round in 1..=plan.frames {
            watch.tick();
            let run = fleet.run(FRAME, &vec![0; tasks.len()])?;
            real_time &= run.real_time;
            let counts: Vec<_> = tasks.iter().zip(&run.tasks).map(counted).collect();
            figures
                .frames
                .push(expected.compare(order, round, &counts, &run));
            let rows = rows(&set, order, &counts).map(|row| OverloadRow {
                source: FigureSource::Measured,
                round,
                ..row
            });
            figures.tasks.extend(rows);
            // With as long a rest, the frames stay below the limit of real-time throttling.
            chronorb_rt::sleep_until(chronorb_rt::Monotonic::now() + FRAME);
        }
        fleet.stop()?;
    }
    Ok(real_time)
}

/// The simulation of a frame on lanes.
struct ExpectedFrame {
    counts: Vec<JobCounts>,
    margin: Time,
}

impl ExpectedFrame {
    fn of(tasks: &[Task], order: DispatchOrder, costs: CallCosts) -> Result<Self, AnalysisError> {
        let tasks = tasks.iter().map(|task| task.with_overhead(costs.processor));
        let tasks: Vec<_> = tasks.collect::<Result<_, _>>()?;
        let result = match order {
            DispatchOrder::MaximumUrgency => {
                // A request is not interrupted for another one of its lane.
                let rules = Simulation {
                    preemption: JobPreemption::BetweenLevels,
                    ..rules(&tasks, order, true)
                };
                simulate(&tasks, &rules, |_, _| 0)?
            }
            _ => frame(&tasks, order, true)?,
        };
        Ok(Self {
            margin: margin(&tasks, order, &result),
            counts: result.tasks,
        })
    }

    fn compare(
        &self,
        order: DispatchOrder,
        round: u32,
        counts: &[JobCounts],
        run: &LaneRun,
    ) -> FrameRow {
        let jobs = |of: &JobCounts| (of.met, of.missed);
        let expected = self.counts.iter().map(jobs);
        FrameRow {
            order,
            round,
            equal: counts.iter().map(jobs).eq(expected),
            disturbance_ns: run.disturbance,
            margin_ns: self.margin,
        }
    }
}

/// Simulates one frame: twenty of the shortest periods.
fn frame(
    tasks: &[Task],
    order: DispatchOrder,
    record: bool,
) -> Result<SimulationResult, AnalysisError> {
    simulate(tasks, &rules(tasks, order, record), |_, _| 0)
}

/// Returns the rules of a frame.
fn rules(tasks: &[Task], order: DispatchOrder, record: bool) -> Simulation {
    let shortest = tasks.iter().map(|task| task.period).min().unwrap_or(1);
    Simulation {
        discipline: order.discipline(),
        quantum: shortest / 50,
        record,
        ..Simulation::new(shortest * 20)
    }
}

/// Returns the least time between the end of a job and its deadline; under MUF, of a critical one.
fn margin(tasks: &[Task], order: DispatchOrder, result: &SimulationResult) -> Time {
    let counts =
        |task: usize| order != DispatchOrder::MaximumUrgency || tasks[task].criticality > 0;
    let mut jobs: BTreeMap<(usize, u64), (Time, Time)> = BTreeMap::new();
    for slice in &result.slices {
        let (computed, end) = jobs.entry((slice.task, slice.job)).or_default();
        *computed += slice.end - slice.start;
        *end = slice.end;
    }
    let ended = jobs
        .into_iter()
        .filter(|((task, _), (computed, _))| counts(*task) && *computed == tasks[*task].cost);
    let distances = ended.map(|((task, job), (_, end))| {
        let task = &tasks[task];
        end.abs_diff(job * task.period + task.deadline)
    });
    distances.min().unwrap_or(0)
}

/// Counts the measured jobs of a task by their deadline.
fn counted((task, jobs): (&Task, &Vec<super::client::JobTime>)) -> JobCounts {
    let responses = || jobs.iter().map(|job| job.response_ns);
    let missed = responses()
        .filter(|response| *response > task.deadline)
        .count() as u64;
    JobCounts {
        met: jobs.len() as u64 - missed,
        missed,
        worst_response: responses().max().unwrap_or(0),
    }
}

fn rows(
    set: &TaskSet,
    order: DispatchOrder,
    counts: &[JobCounts],
) -> impl Iterator<Item = OverloadRow> {
    let tasks = set.tasks.iter().zip(counts);
    tasks.map(move |((name, task), counts)| {
        let worst = counts.worst_response as f64 / task.deadline as f64;
        OverloadRow {
            order,
            source: FigureSource::Simulated,
            round: 0,
            task: name.clone(),
            critical: task.criticality > 0,
            met: counts.met,
            missed: counts.missed,
            worst_by_deadline: (worst * 1e3).round() / 1e3,
        }
    })
}

fn missed(tasks: &[Task], counts: &[JobCounts], critical: bool) -> f64 {
    let of = tasks.iter().zip(counts);
    let of = of.filter(|(task, _)| (task.criticality > 0) == critical);
    let (missed, all) = of.fold((0, 0), |(missed, all), (_, of)| {
        (missed + of.missed, all + of.met + of.missed)
    });
    (missed as f64 / all.max(1) as f64 * 1e3).round() / 10.0
}

/// Returns the set at a tenth of its times. A frame then takes 100 ms instead of a second, and
/// real-time throttling, which limits the share of a second, does not stop it.
fn shortened(mut set: TaskSet) -> TaskSet {
    for (_, task) in &mut set.tasks {
        (task.cost, task.period, task.deadline) =
            (task.cost / 10, task.period / 10, task.deadline / 10);
    }
    set
}

fn simulating() -> impl Fn(AnalysisError) -> LabError {
    LabError::work("simulating the overload")
}

/// The length of a frame on lanes.
pub(super) const FRAME: Duration = Duration::from_millis(100);
/// The loads of the simulations, in hundredths of a processor.
const LOADS: std::ops::RangeInclusive<u64> = 50..=150;
const LOAD_STEP: usize = 5;
/// The load of the set in thousandths of a processor.
const FULL_LOAD: u64 = 1296;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simulation_has_the_published_counts() {
        let figures = simulated().unwrap();
        let counts = DispatchOrder::ALL
            .map(|order| [true, false].map(|critical| figures.simulated(order, critical)));
        let expected = [
            [(20, 16), (30, 6)],
            [(3, 33), (7, 29)],
            [(2, 34), (2, 34)],
            [(36, 0), (0, 36)],
            [(36, 0), (0, 36)],
        ];
        assert_eq!(counts, expected);
    }

    #[test]
    fn ends_on_lanes_are_far_from_their_deadlines() {
        for order in DispatchOrder::FIXED {
            let tasks = shortened(order.set()).plain();
            let expected = ExpectedFrame::of(&tasks, order, CallCosts::default()).unwrap();
            assert!(expected.margin >= 400_000, "{order}: {}", expected.margin);
        }
    }

    #[test]
    fn muf_on_lanes_keeps_critical_deadlines_without_interrupting_requests() {
        let set = shortened(DispatchOrder::MaximumUrgency.set());
        let tasks = set.plain();
        let order = DispatchOrder::MaximumUrgency;
        let expected = ExpectedFrame::of(&tasks, order, CallCosts::default()).unwrap();
        let critical = tasks.iter().zip(&expected.counts);
        let critical = critical.filter(|(task, _)| task.criticality > 0);
        let sums = critical.fold((0, 0), |(met, missed), (_, counts)| {
            (met + counts.met, missed + counts.missed)
        });
        assert_eq!(sums, (36, 0));
        assert!(expected.margin >= 400_000, "{}", expected.margin);
    }

    #[test]
    fn load_comes_from_the_longer_jobs() {
        let figures = simulated().unwrap();
        let row = |order, load| {
            let mut rows = figures.loads.iter();
            *rows
                .find(|row| row.order == order && row.load == load)
                .unwrap()
        };
        for order in DispatchOrder::ALL {
            let half = row(order, 50);
            assert_eq!(
                [half.critical_missed_percent, half.other_missed_percent],
                [0.0; 2]
            );
        }
        assert_eq!(
            row(DispatchOrder::EarliestDeadline, 100).critical_missed_percent,
            0.0
        );
        assert!(row(DispatchOrder::EarliestDeadline, 150).critical_missed_percent > 90.0);
        assert_eq!(
            row(DispatchOrder::MaximumUrgency, 150).critical_missed_percent,
            0.0
        );
    }
}
