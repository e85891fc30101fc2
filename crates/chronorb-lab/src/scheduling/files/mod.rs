//! Schedule files: analysed, simulated, and run by the ORB as their assignment says.

mod cases;
mod fleet;
mod node;
mod report;

use serde::Serialize;

use self::cases::{CostedResponses, FILES, FileCase, PieceCosts, ScheduleFile};
use self::fleet::{ScheduleFleet, ScheduleRun};
use super::SchedulingPlan;
use crate::error::LabError;
use crate::watch::Watch;

pub(crate) use self::node::{SCHEDULE_NODE, schedule_node_main};
pub(super) use self::report::{chart, claims, finding, notes, tables};

/// An operation of a schedule file in one run, beside its analysis and simulation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileRow {
    /// The file and its threads.
    pub file: String,
    /// The number of the run, from 1.
    pub round: u32,
    /// The operation.
    pub operation: String,
    /// Whether it is the operation by which the variants of the file are compared.
    pub watched: bool,
    /// The deadline from the release of the job.
    pub deadline_ns: u64,
    /// The worst response by the analysis of the file; nothing if it has no bound.
    pub analysed_ns: Option<u64>,
    /// The longest response of the simulator in all phasings of the file.
    pub simulated_ns: u64,
    /// The time that is added to each piece of an execution: the cost of a call.
    pub overhead_ns: u64,
    /// The millionths by which executions take longer: for interrupts, and to measure wake-ups.
    pub dilation_ppm: u64,
    /// The analysed response with the overhead and the longer executions.
    pub analysed_with_overhead_ns: Option<u64>,
    /// The simulated response with the overhead and the longer executions.
    pub simulated_with_overhead_ns: u64,
    /// The longest response of the ORB in this run.
    pub measured_ns: u64,
    /// The jobs that the ORB executed.
    pub jobs: u64,
    /// The jobs that ended after their deadlines.
    pub missed: u64,
    /// The time for which a thread of the highest priority was kept from its processor in this
    /// run, and the time that the hypervisor took.
    pub disturbance_ns: u64,
}

impl FileRow {
    /// Whether the longest response exceeds a bound.
    fn exceeds(&self, bound: Option<u64>) -> bool {
        bound.is_some_and(|bound| self.measured_ns > bound)
    }

    /// Whether the longest response exceeds a bound by more than the disturbance.
    fn exceeds_unexplained(&self, bound: Option<u64>) -> bool {
        self.exceeds(bound.map(|bound| bound.saturating_add(self.disturbance_ns)))
    }
}

/// Analyses, simulates and runs all files. Returns whether all threads were real-time.
pub(super) fn measure(
    plan: &SchedulingPlan,
    lock_memory: bool,
    watch: &Watch,
    rows: &mut Vec<FileRow>,
) -> Result<bool, LabError> {
    let mut real_time = true;
    let dilation = fleet::measure_dilation(plan.run)?;
    for case in FILES.iter().flat_map(ScheduleFile::cases) {
        let case = case?;
        watch.begin(&format!("the schedule file {}", case.title()));
        let mut fleet = ScheduleFleet::start(&case, lock_memory)?;
        let costs = PieceCosts {
            overhead: fleet.calibrate(plan.calibration)?,
            dilation,
        };
        let costed = case.with_costs(costs)?;
        for round in 1..=plan.rounds {
            watch.tick();
            let run = fleet.run(plan.run, case.phasing(round - 1))?;
            real_time &= run.real_time;
            rows.extend(rows_of(&case, costs, &costed, round, &run));
        }
        fleet.stop()?;
    }
    Ok(real_time)
}

fn rows_of(
    case: &FileCase,
    costs: PieceCosts,
    costed: &CostedResponses,
    round: u32,
    run: &ScheduleRun,
) -> Vec<FileRow> {
    let operations = run.operations.iter().enumerate();
    let rows = operations.map(|(index, times)| FileRow {
        file: case.title(),
        round,
        operation: times.name.clone(),
        watched: times.name == case.file.watched,
        deadline_ns: case.deadline(index),
        analysed_ns: case.analysed[index],
        simulated_ns: case.simulated[index],
        overhead_ns: costs.overhead,
        dilation_ppm: costs.dilation,
        analysed_with_overhead_ns: costed.analysed[index],
        simulated_with_overhead_ns: costed.simulated[index],
        measured_ns: times.longest_ns,
        jobs: times.jobs,
        missed: times.missed,
        disturbance_ns: run.disturbance,
    });
    rows.collect()
}

/// The number of variants of all files.
pub(super) fn count() -> u32 {
    FILES.iter().map(ScheduleFile::variants).sum()
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::LazyLock;

    use super::node::OperationTimes;
    use super::*;

    /// Returns runs that take as long as the simulation.
    pub(in super::super) fn rows() -> Vec<FileRow> {
        ROWS.clone()
    }

    /// They are simulated once for all tests.
    static ROWS: LazyLock<Vec<FileRow>> = LazyLock::new(|| {
        let rows = cases::tests::cases().iter().flat_map(|case| {
            let costed = case.with_costs(COSTS).unwrap();
            let operations = case.schedule.operations.iter().enumerate();
            let operations = operations.map(|(index, it)| OperationTimes {
                name: it.name.clone(),
                jobs: 10,
                missed: if costed.simulated[index] > case.deadline(index) {
                    10
                } else {
                    0
                },
                longest_ns: costed.simulated[index],
            });
            let run = ScheduleRun {
                real_time: true,
                operations: operations.collect(),
                disturbance: 90_000,
            };
            rows_of(case, COSTS, &costed, 1, &run)
        });
        rows.collect()
    });

    const COSTS: PieceCosts = PieceCosts {
        overhead: 60_000,
        dilation: 10_000,
    };
}
