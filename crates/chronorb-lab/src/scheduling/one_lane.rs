//! One lane at a load of 0.95, whose requests have deadlines of many lengths: in the order of
//! arrival, and in the order of deadlines.

use std::time::Duration;

use chronorb_report::{Axis, Chart, Mark, Series, Table, Unit, units};
use chronorb_sched::{Task, Time};
use serde::Serialize;

use super::SchedulingPlan;
use super::fleet::{LaneFleet, LaneRun};
use super::outcome::SchedulingOutcome;
use crate::Claim;
use crate::error::LabError;
use crate::watch::Watch;

/// The jobs of a frame on one lane.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OneLaneRow {
    /// The deadline of the most frequent task.
    pub deadline_us: u64,
    /// The order of the lane, as `-ORBLaneOrder` names it.
    pub order: String,
    /// The number of the frame, from 1.
    pub round: u32,
    /// Jobs that were released.
    pub jobs: u64,
    /// Jobs that missed their deadlines.
    pub missed: u64,
    /// Jobs that miss their deadlines in the simulation of the frame.
    pub simulated: u64,
    /// The time for which a thread of the highest priority was kept from its processor in this
    /// frame, and the time that the hypervisor took.
    pub disturbance_ns: u64,
}

/// Runs frames in both orders. Returns whether all threads were real-time.
pub(super) fn measure(
    plan: &SchedulingPlan,
    lock_memory: bool,
    watch: &Watch,
    rows: &mut Vec<OneLaneRow>,
) -> Result<bool, LabError> {
    let mut real_time = true;
    for deadline_us in DEADLINES_US {
        watch.begin(&format!("one lane, deadline {deadline_us} µs"));
        let tasks = tasks(deadline_us);
        for order in ORDERS {
            let mut fleet = LaneFleet::start_in_order(&tasks, lock_memory, order)?;
            // A job takes as long as in the simulation, with the processor time of its call.
            let costs = fleet.calibrate(plan.calibration)?;
            fleet.include_call(costs);
            for round in 1..=plan.one_lane {
                watch.tick();
                let run = fleet.run(FRAME, &OFFSETS_US.map(|offset| offset * US))?;
                real_time &= run.real_time;
                rows.push(row(&tasks, order, round, &run));
                // With as long a rest, the frames stay below the limit of real-time throttling.
                chronorb_rt::sleep_until(chronorb_rt::Monotonic::now() + FRAME);
            }
            fleet.stop()?;
        }
    }
    Ok(real_time)
}

fn row(tasks: &[Task], order: &str, round: u32, run: &LaneRun) -> OneLaneRow {
    let jobs = tasks.iter().zip(&run.tasks);
    let missed = jobs.map(|(task, jobs)| {
        let late = jobs.iter().filter(|job| job.response_ns > task.deadline);
        late.count() as u64
    });
    OneLaneRow {
        deadline_us: tasks[0].deadline / US,
        order: order.to_owned(),
        round,
        jobs: run.tasks.iter().map(|jobs| jobs.len() as u64).sum(),
        missed: missed.sum(),
        simulated: simulated(tasks, order, FRAME.as_nanos() as Time).1,
        disturbance_ns: run.disturbance,
    }
}

/// Returns the jobs that are released within a window, and those that miss their deadlines, where
/// no job is interrupted.
pub(super) fn simulated(tasks: &[Task], order: &str, window: Time) -> (u64, u64) {
    let released = tasks.iter().enumerate().flat_map(|(index, task)| {
        let first = OFFSETS_US[index] * US;
        let releases = (first..window).step_by(task.period as usize);
        releases.map(move |release| (release, release + task.deadline, index, task.cost))
    });
    let mut released: Vec<_> = released.collect();
    released.sort_unstable_by_key(|(release, _, index, _)| (*release, *index));
    let jobs = released.len() as u64;
    let (mut now, mut missed) = (0, 0);
    let mut waiting: Vec<(Time, Time, usize, Time)> = Vec::new();
    let mut released = released.into_iter().peekable();
    loop {
        while let Some(job) = released.next_if(|(release, ..)| *release <= now) {
            waiting.push(job);
        }
        let by_deadline = order == BY_DEADLINE;
        let first = waiting.iter().enumerate().min_by_key(|(at, job)| {
            let due = if by_deadline { job.1 } else { 0 };
            (due, *at)
        });
        match first.map(|(at, _)| at) {
            Some(at) => {
                let (_, due, _, cost) = waiting.remove(at);
                now += cost;
                missed += u64::from(now > due);
            }
            None => match released.peek() {
                Some((release, ..)) => now = *release,
                None => return (jobs, missed),
            },
        }
    }
}

/// Returns the tasks, with this deadline of the first one.
pub(super) fn tasks(deadline_us: u64) -> Vec<Task> {
    let tasks = TASKS_US.into_iter().enumerate();
    let tasks = tasks.map(|(index, (cost, period, deadline))| {
        let deadline = if index == 0 { deadline_us } else { deadline };
        let task = Task::new(cost * US, period * US);
        task.with_deadline(deadline * US).with_priority(1)
    });
    tasks.collect()
}

/// The sums of jobs, missed deadlines, and simulated ones of a deadline and an order.
fn sums(rows: &[OneLaneRow], deadline_us: u64, order: &str) -> [u64; 3] {
    let of = rows
        .iter()
        .filter(|row| row.deadline_us == deadline_us && row.order == order);
    of.fold([0; 3], |[jobs, missed, simulated], row| {
        [
            jobs + row.jobs,
            missed + row.missed,
            simulated + row.simulated,
        ]
    })
}

/// In the order of deadlines at most a tenth as many deadlines are missed.
pub(super) fn claims(outcome: &SchedulingOutcome) -> impl Iterator<Item = Claim> {
    DEADLINES_US.into_iter().map(|deadline_us| {
        let claim = format!(
            "One lane at a load of 0.95, shortest deadline {deadline_us} µs: in the order of \
             deadlines at most a tenth as many are missed as in the order of arrival"
        );
        let [_, fifo, fifo_simulated] = sums(&outcome.one_lane, deadline_us, FIFO);
        let [jobs, ordered, simulated] = sums(&outcome.one_lane, deadline_us, BY_DEADLINE);
        let measured = format!(
            "{} and {} of {} jobs; simulated {} and {}",
            units::count(ordered),
            units::count(fifo),
            units::count(jobs),
            units::count(simulated),
            units::count(fifo_simulated),
        );
        let holds = fifo > 0 && ordered * 10 <= fifo;
        Claim::aim(claim).holds(outcome.real_time.then_some((holds, measured)))
    })
}

pub(super) fn finding(rows: &[OneLaneRow]) -> String {
    let [first, _] = DEADLINES_US;
    let [_, fifo, _] = sums(rows, first, FIFO);
    let [jobs, ordered, _] = sums(rows, first, BY_DEADLINE);
    format!(
        "one lane at a load of 0.95 misses {} of {} deadlines in the order of arrival, {} in that \
         of deadlines",
        units::count(fifo),
        units::count(jobs),
        units::count(ordered),
    )
}

/// Returns the shares of missed deadlines, measured and simulated.
pub(super) fn chart(rows: &[OneLaneRow]) -> Chart {
    let caption = "Missed deadlines of all tasks on one lane, by the deadline of the most frequent \
                   one: a bar is measured, a ring is simulated.";
    let share = |order, of: fn([u64; 3]) -> u64| {
        let shares = DEADLINES_US.map(|deadline_us| {
            let sums = sums(rows, deadline_us, order);
            (sums[0] > 0).then(|| of(sums) as f64 / sums[0] as f64 * 100.0)
        });
        shares.to_vec()
    };
    let series = ORDERS.into_iter().flat_map(|order| {
        [
            Series::of_groups(Mark::Bars, order, share(order, |[_, missed, _]| missed)),
            Series::of_groups(Mark::Rings, "", share(order, |[_, _, simulated]| simulated)),
        ]
    });
    let series: Vec<_> = series.collect();
    let deadlines = DEADLINES_US.map(|deadline_us| units::time(deadline_us as f64));
    let deadlines = Axis::groups("deadline of the most frequent task", deadlines);
    let missed = Axis::linear("missed deadlines", Unit::Percent);
    Chart::new(caption, deadlines, missed).series(series)
}

pub(super) fn table(rows: &[OneLaneRow]) -> Table {
    let lines = DEADLINES_US.into_iter().flat_map(|deadline_us| {
        ORDERS.map(|order| {
            let cells = sums(rows, deadline_us, order).map(units::count).to_vec();
            let deadline = units::time(deadline_us as f64);
            (format!("{order}, deadline {deadline}"), cells)
        })
    });
    let lines: Vec<_> = lines.collect();
    Table::new("One lane by order", ["jobs", "missed", "simulated"], lines)
}

/// The note on the part.
pub(super) const NOTE: &str = "One lane: seven tasks of one priority, with one thread; 0.4 ms \
     every 4 ms is the most frequent one. Each call carries its deadline in either order. Frames \
     of 200 ms are simulated alike, without interruption. The time that a job computes is less by \
     the processor time of a call.";

/// The length of a frame.
pub(super) const FRAME: Duration = Duration::from_millis(200);
const FIFO: &str = "fifo";
const BY_DEADLINE: &str = "deadline";
pub(super) const ORDERS: [&str; 2] = [FIFO, BY_DEADLINE];
/// The deadlines of the first task.
pub(super) const DEADLINES_US: [u64; 2] = [2_900, 2_600];
/// Execution time, period and deadline of each task; the first deadline is another one.
const TASKS_US: [(u64, u64, u64); 7] = [
    (400, 4_000, 0),
    (800, 8_000, 4_500),
    (1_500, 12_000, 9_000),
    (2_000, 16_000, 16_000),
    (2_500, 25_000, 25_000),
    (2_400, 12_000, 36_000),
    (1_600, 8_000, 48_000),
];
/// The first releases of the tasks.
pub(super) const OFFSETS_US: [u64; 7] = [0, 150, 350, 500, 900, 1_300, 1_900];
/// A microsecond.
pub(super) const US: Time = 1_000;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Frames that were run as they are simulated.
    pub(in super::super) fn rows() -> Vec<OneLaneRow> {
        let frames = DEADLINES_US.into_iter().flat_map(|deadline_us| {
            ORDERS.map(|order| {
                let window = FRAME.as_nanos() as Time;
                let (jobs, missed) = simulated(&tasks(deadline_us), order, window);
                OneLaneRow {
                    deadline_us,
                    order: order.to_owned(),
                    round: 1,
                    jobs,
                    missed,
                    simulated: missed,
                    disturbance_ns: 90_000,
                }
            })
        });
        frames.collect()
    }

    #[test]
    fn a_hundred_seconds_have_the_known_counts() {
        let window = 100_000_000 * US;
        let counts = |deadline_us, order| simulated(&tasks(deadline_us), order, window);
        let (jobs, missed) = counts(2_900, FIFO);
        assert_eq!(jobs, 76_918);
        // The known counts leave out the jobs whose deadlines lie beyond the window.
        assert!(missed.abs_diff(11_428) <= 2, "{missed}");
        assert_eq!(counts(2_900, BY_DEADLINE), (76_918, 0));
        let (_, missed) = counts(2_600, BY_DEADLINE);
        assert!(missed.abs_diff(583) <= 2, "{missed}");
    }
}
