//! Deadlines over two calls: a client, a relay and a server, whose clocks may be apart.

use std::time::Duration;

use chronorb_report::{Axis, Chart, Mark, Series, Table, Unit, units};
use chronorb_sched::{Task, Time};
use serde::Serialize;

use super::SchedulingPlan;
use super::fleet::{HopOptions, LaneFleet, LaneRun};
use super::one_lane::{self, OFFSETS_US, US};
use super::outcome::SchedulingOutcome;
use crate::Claim;
use crate::error::LabError;
use crate::watch::Watch;

/// The jobs of a frame whose calls go through a relay, or to the server directly.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HopRow {
    /// The lanes of relay and server.
    pub lanes: String,
    /// The clocks, and what is stated of them.
    pub clocks: String,
    /// The number of the frame, from 1.
    pub round: u32,
    /// Jobs that were released.
    pub jobs: u64,
    /// Jobs that missed their deadlines.
    pub missed: u64,
    /// The jobs among them whose calls went through the relay.
    pub missed_over_relay: u64,
    /// Jobs that miss their deadlines in the simulation of the frame; `None` for several lanes.
    pub simulated: Option<u64>,
    /// The time for which a thread of the highest priority was kept from its processor in this
    /// frame, and the time that the hypervisor took.
    pub disturbance_ns: u64,
}

/// Lanes and clocks that are compared.
struct HopTrial {
    lanes: &'static str,
    order: &'static str,
    /// Whether urgent tasks have a lane of their own.
    are_split: bool,
    clocks: &'static str,
    /// Whether the clock of the relay is ahead.
    are_apart: bool,
    /// Whether the greatest error of each clock is stated, so that absolute deadlines travel too.
    is_stated: bool,
}

impl HopTrial {
    const fn of(lanes: &'static str, order: &'static str, are_split: bool) -> Self {
        Self {
            lanes,
            order,
            are_split,
            clocks: ALIKE,
            are_apart: false,
            is_stated: false,
        }
    }

    const fn apart(clocks: &'static str, is_stated: bool) -> Self {
        Self {
            clocks,
            are_apart: true,
            is_stated,
            ..Self::of(BY_DEADLINE, ORDERED, false)
        }
    }

    fn tasks(&self) -> Vec<Task> {
        let mut tasks = one_lane::tasks(one_lane::DEADLINES_US[0]);
        if self.are_split {
            for task in &mut tasks[..RELAYED] {
                *task = task.with_priority(2);
            }
        }
        tasks
    }

    fn options(&self) -> HopOptions {
        let stated = self.is_stated.then_some(APART);
        HopOptions {
            order: self.order,
            relayed: RELAYED,
            relay_ahead: if self.are_apart {
                APART
            } else {
                Duration::ZERO
            },
            clock_error: stated,
        }
    }

    fn row(&self, tasks: &[Task], round: u32, run: &LaneRun) -> HopRow {
        let missed = tasks.iter().zip(&run.tasks).map(|(task, jobs)| {
            let late = jobs.iter().filter(|job| job.response_ns > task.deadline);
            late.count() as u64
        });
        let missed: Vec<_> = missed.collect();
        let window = one_lane::FRAME.as_nanos() as Time;
        HopRow {
            lanes: self.lanes.to_owned(),
            clocks: self.clocks.to_owned(),
            round,
            jobs: run.tasks.iter().map(|jobs| jobs.len() as u64).sum(),
            missed: missed.iter().sum(),
            missed_over_relay: missed[..RELAYED].iter().sum(),
            simulated: (!self.are_split).then(|| one_lane::simulated(tasks, self.order, window).1),
            disturbance_ns: run.disturbance,
        }
    }
}

/// Runs frames of all trials. Returns whether all threads were real-time.
pub(super) fn measure(
    plan: &SchedulingPlan,
    lock_memory: bool,
    watch: &Watch,
    rows: &mut Vec<HopRow>,
) -> Result<bool, LabError> {
    let mut real_time = true;
    for trial in TRIALS {
        watch.begin(&format!(
            "over two calls, {}, {}",
            trial.lanes, trial.clocks
        ));
        let tasks = trial.tasks();
        let mut fleet = LaneFleet::start_over_hops(&tasks, lock_memory, &trial.options())?;
        // A job takes as long as in the simulation, with the processor time of its call.
        let costs = fleet.calibrate(plan.calibration)?;
        fleet.include_call(costs);
        for round in 1..=plan.one_lane {
            watch.tick();
            let run = fleet.run(one_lane::FRAME, &OFFSETS_US.map(|offset| offset * US))?;
            real_time &= run.real_time;
            rows.push(trial.row(&tasks, round, &run));
            // With as long a rest, the frames stay below the limit of real-time throttling.
            chronorb_rt::sleep_until(chronorb_rt::Monotonic::now() + one_lane::FRAME);
        }
        fleet.stop()?;
    }
    Ok(real_time)
}

/// The jobs and the missed deadlines of a trial, all and over the relay.
fn sums(rows: &[HopRow], trial: &HopTrial) -> [u64; 3] {
    let is_of = |row: &&HopRow| row.lanes == trial.lanes && row.clocks == trial.clocks;
    rows.iter()
        .filter(is_of)
        .fold([0; 3], |[jobs, missed, over_relay], row| {
            [
                jobs + row.jobs,
                missed + row.missed,
                over_relay + row.missed_over_relay,
            ]
        })
}

/// By deadline at most a tenth as many deadlines are missed, whatever the clocks show.
pub(super) fn claims(outcome: &SchedulingOutcome) -> impl Iterator<Item = Claim> {
    let one_lane = TRIALS.iter().filter(|trial| trial.lanes == BY_DEADLINE);
    one_lane.map(|trial| {
        let claim = format!(
            "Over two calls at a load of 0.95, clocks {}: in the order of deadlines at most a \
             tenth as many are missed as in the order of arrival",
            trial.clocks
        );
        let [_, fifo, _] = sums(&outcome.hops, &TRIALS[0]);
        let [jobs, ordered, _] = sums(&outcome.hops, trial);
        let measured = format!(
            "{} and {} of {} jobs",
            units::count(ordered),
            units::count(fifo),
            units::count(jobs),
        );
        let holds = fifo > 0 && ordered * 10 <= fifo;
        Claim::aim(claim).holds(outcome.real_time.then_some((holds, measured)))
    })
}

pub(super) fn finding(rows: &[HopRow]) -> String {
    let [jobs, fifo, _] = sums(rows, &TRIALS[0]);
    let apart = sums(rows, &TRIALS[TRIALS.len() - 1])[1];
    format!(
        "over two calls {} of {} deadlines are missed in the order of arrival, {} in that of \
         deadlines with clocks 10 ms apart",
        units::count(fifo),
        units::count(jobs),
        units::count(apart),
    )
}

fn title(trial: &HopTrial) -> String {
    if trial.are_apart {
        format!("{}, clocks {}", trial.lanes, trial.clocks)
    } else {
        trial.lanes.to_owned()
    }
}

/// Returns the shares of missed deadlines by trial.
pub(super) fn chart(rows: &[HopRow]) -> Chart {
    let caption = "Missed deadlines by the lanes of relay and server.";
    let shares = TRIALS.map(|trial| {
        let [jobs, missed, _] = sums(rows, &trial);
        (jobs > 0).then(|| missed as f64 / jobs as f64 * 100.0)
    });
    let trials = Axis::groups("lanes and clocks", TRIALS.map(|trial| title(&trial)));
    let missed = Axis::linear("missed deadlines", Unit::Percent);
    let series = Series::of_groups(Mark::Bars, "missed", shares);
    Chart::new(caption, trials, missed).series([series])
}

pub(super) fn table(rows: &[HopRow]) -> Table {
    let lines = TRIALS.map(|trial| {
        let of = rows
            .iter()
            .filter(|row| row.lanes == trial.lanes && row.clocks == trial.clocks);
        let simulated: Option<u64> = of.map(|row| row.simulated).sum();
        let mut cells = sums(rows, &trial).map(units::count).to_vec();
        cells.push(simulated.map_or_else(|| "–".to_owned(), units::count));
        (title(&trial), cells)
    });
    let columns = ["jobs", "missed", "over the relay", "simulated missed"];
    Table::new("Deadlines over two calls", columns, lines)
}

/// The note on the part.
pub(super) const NOTE: &str = "Over two calls: the tasks of the part on one lane. The three most \
     frequent ones call a relay, whose servant calls the server; the others call the server. The \
     relay has the processor of the client. With priorities, the three have a lane of their own, \
     above the other. The clock of the relay is 10 ms ahead of both others where clocks are apart. \
     With stated errors of 10 ms requests carry an absolute deadline beside the relative one.";

/// The tasks whose calls go through the relay: the first ones.
const RELAYED: usize = 3;
/// The time by which clocks are apart, and the greatest error that is stated.
const APART: Duration = Duration::from_millis(10);
const ALIKE: &str = "alike";
const BY_DEADLINE: &str = "deadline";
const ARRIVAL: &str = "fifo";
const ORDERED: &str = "deadline";
const TRIALS: [HopTrial; 6] = [
    HopTrial::of("fifo", ARRIVAL, false),
    HopTrial::of("priorities", ARRIVAL, true),
    HopTrial::of(BY_DEADLINE, ORDERED, false),
    HopTrial::of("priorities and deadline", ORDERED, true),
    HopTrial::apart("10 ms apart", false),
    HopTrial::apart("10 ms apart with stated errors", true),
];
/// The number of trials.
pub(super) const COUNT: u32 = TRIALS.len() as u32;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Frames that were run as they are simulated.
    pub(in super::super) fn rows() -> Vec<HopRow> {
        let rows = TRIALS.map(|trial| {
            let window = one_lane::FRAME.as_nanos() as Time;
            let (jobs, missed) = one_lane::simulated(&trial.tasks(), trial.order, window);
            HopRow {
                lanes: trial.lanes.to_owned(),
                clocks: trial.clocks.to_owned(),
                round: 1,
                jobs,
                missed,
                missed_over_relay: missed,
                simulated: (!trial.are_split).then_some(missed),
                disturbance_ns: 90_000,
            }
        });
        rows.to_vec()
    }
}
