//! Four clients of four priorities and rates, on one CPU.

use std::time::Duration;

use super::OsRun;
use super::case::OsCase;
use super::class::SchedulingClass;
use super::fleet::{Members, OsFleet, soon};
use super::load::CompetingLoad;
use super::outcome::{RateMode, RateRow};
use super::plan::{PAPER_RATES_HZ, SCALE};
use crate::bench::{Pace, Placement};
use crate::error::LabError;
use crate::work::Speed;

/// Measures the four clients in both modes, with time sharing and with priorities, as far as both
/// are permitted.
pub(super) fn measure(run: &OsRun<'_>) -> Result<Vec<RateRow>, LabError> {
    let plan = run.plan;
    let speed = Speed::measure();
    let classes = [SchedulingClass::Other, SchedulingClass::Fifo];
    let mut rows = Vec::new();
    for class in classes
        .into_iter()
        .filter(|class| run.classes.contains(class))
    {
        for mode in RateMode::ALL {
            run.watch.begin("four rates");
            let (load, scale, work, length) = match mode {
                RateMode::Paper => (CompetingLoad::Idle, 1, plan.work, plan.at_paper_rates),
                RateMode::Scaled => {
                    let work = plan.scaled_work;
                    (CompetingLoad::Hogs, SCALE, work, plan.at_scaled_rates)
                }
            };
            let case = OsCase::new(class, load, Placement::SameCpu, run.lock_memory);
            let rates = PAPER_RATES_HZ.map(|rate| rate * scale);
            let paces = rates.map(|rate| Pace::CallEvery(Duration::from_secs(1) / rate));
            let mut fleet = OsFleet::start(Members::one_each(case, &PRIORITIES))?;
            let course = fleet.run(soon(), &paces, length, speed.steps(work))?;
            fleet.stop()?;
            for (index, calls) in course.measured.calls.iter().enumerate() {
                rows.push(RateRow {
                    class,
                    mode,
                    client: index as u32 + 1,
                    priority: PRIORITIES[index],
                    rate_hz: rates[index],
                    latency: calls.summary(),
                });
            }
        }
    }
    Ok(rows)
}

/// The priorities of the clients, the most urgent first.
const PRIORITIES: [u8; 4] = [70, 60, 50, 40];
