//! An operation that exceeds its budget, and what becomes of the others.

use std::time::Duration;

use chronorb_orb::schedule::OverrunPolicy;
use chronorb_sched::Task;
use serde::Serialize;

use super::SchedulingPlan;
use super::fleet::LaneFleet;
use crate::error::LabError;
use crate::watch::Watch;

/// The jobs of a task in one frame.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OverrunRow {
    /// The treatment of overruns; `off` for none.
    pub policy: String,
    /// The number of the frame, from 1.
    pub round: u32,
    /// The task.
    pub task: String,
    /// Whether the first job of the task exceeds its budget.
    pub overruns: bool,
    /// Jobs that were released.
    pub jobs: u64,
    /// Jobs that missed their deadlines.
    pub missed: u64,
    /// Jobs among them that were late by more than the disturbance.
    pub unexplained: u64,
    /// Jobs that the server refused.
    pub skipped: u64,
    /// The longest response.
    pub worst_ns: u64,
    /// The time for which a thread of the highest priority was kept from its processor in this
    /// frame, and the time that the hypervisor took.
    pub disturbance_ns: u64,
}

/// Runs frames with each policy. Returns whether all threads were real-time.
pub(super) fn measure(
    plan: &SchedulingPlan,
    lock_memory: bool,
    watch: &Watch,
    rows: &mut Vec<OverrunRow>,
) -> Result<bool, LabError> {
    let mut real_time = true;
    let tasks = TASKS.map(|(_, cost, period, deadline, priority)| {
        let [cost, period, deadline] = [cost, period, deadline].map(|ms| ms * 1_000_000);
        Task::new(cost, period)
            .with_deadline(deadline)
            .with_priority(priority)
    });
    for policy in policies() {
        watch.begin(&format!("overruns, policy {policy}"));
        let mut fleet = LaneFleet::start_with_overruns(&tasks, lock_memory, policy)?;
        for round in 1..=plan.overruns {
            watch.tick();
            let run = fleet.run_with_overrun(FRAME, OVERRUN)?;
            real_time &= run.real_time;
            for (index, (task, jobs)) in tasks.iter().zip(&run.tasks).enumerate() {
                let done = || jobs.iter().filter(|job| !job.refused);
                let later = |than: u64| done().filter(|job| job.response_ns > than).count() as u64;
                rows.push(OverrunRow {
                    policy: policy.to_owned(),
                    round,
                    task: TASKS[index].0.to_owned(),
                    overruns: index == 0,
                    jobs: jobs.len() as u64,
                    missed: later(task.deadline),
                    unexplained: later(task.deadline.saturating_add(run.disturbance)),
                    skipped: (jobs.len() - done().count()) as u64,
                    worst_ns: done().map(|job| job.response_ns).max().unwrap_or(0),
                    disturbance_ns: run.disturbance,
                });
            }
            // With as long a rest, the frames stay below the limit of real-time throttling.
            chronorb_rt::sleep_until(chronorb_rt::Monotonic::now() + FRAME);
        }
        fleet.stop()?;
    }
    Ok(real_time)
}

/// Returns the policies that are compared.
pub(super) fn policies() -> impl Iterator<Item = &'static str> {
    let all = OverrunPolicy::ALL.map(OverrunPolicy::name);
    ["off"]
        .into_iter()
        .chain(all.into_iter().filter(|policy| *policy != "log"))
}

/// The name of a task, its cost, period and deadline in ms, and its priority. Each is longer than a
/// few of the kernel's ticks, at which budgets are enforced.
const TASKS: [(&str, u64, u64, u64, u32); 3] = [
    ("overrunning", 20, 100, 100, 3),
    ("short deadline", 20, 100, 70, 2),
    (LONG_DEADLINE, 210, 400, 400, 1),
];
/// The task that the following jobs of an overrun would delay too long.
pub(super) const LONG_DEADLINE: &str = "long deadline";
/// The processor time of the job that overruns.
const OVERRUN: Duration = Duration::from_millis(60);
/// The length of a frame: one job of the longest period.
pub(super) const FRAME: Duration = Duration::from_millis(400);
