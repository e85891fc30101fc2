//! Four clients of four priorities and rates, on one processor.

use std::time::Duration;

use super::class::Class;
use super::fleet::{Members, OsFleet};
use super::load::Load;
use super::outcome::{Mode, RateRow};
use super::plan::{PAPER_RATES_HZ, Plan, SCALE};
use crate::bench::{Pace, Placement};
use crate::error::LabError;
use crate::watch::Watch;
use crate::work::Speed;

/// Measures them in both modes under the classes that may be used, of time sharing and of priorities.
pub(super) fn measure(
    plan: &Plan,
    classes: &[Class],
    lock_memory: bool,
    watch: &Watch,
) -> Result<Vec<RateRow>, LabError> {
    let mut rows = Vec::new();
    let speed = Speed::measure();
    for class in [Class::Other, Class::Fifo] {
        if !classes.contains(&class) {
            continue;
        }
        for mode in [Mode::Paper, Mode::Scaled] {
            watch.begin("four rates");
            let (load, scale, work, length) = match mode {
                Mode::Paper => (Load::Idle, 1, plan.work, plan.at_paper_rates),
                Mode::Scaled => (Load::Hogs, SCALE, plan.scaled_work, plan.at_scaled_rates),
            };
            let rates = PAPER_RATES_HZ.map(|rate| rate * scale);
            let mut fleet = OsFleet::start(&Members {
                class,
                lock_memory,
                placement: Placement::SameCpu,
                load,
                lanes: PRIORITIES.map(|priority| (priority, 1)).to_vec(),
                callers: PRIORITIES.to_vec(),
            })?;
            let paces = rates.map(|rate| Pace::CallEvery(Duration::from_secs(1) / rate));
            let course = fleet.run(&paces, length, speed.steps(work), |_| Ok(()))?;
            fleet.stop()?;
            let clients = course.measured.calls.iter().zip(PRIORITIES).zip(rates);
            rows.extend(
                (1..)
                    .zip(clients)
                    .map(|(client, ((calls, priority), rate_hz))| RateRow {
                        class,
                        mode,
                        client,
                        priority,
                        rate_hz,
                        latency: calls.summary(),
                    }),
            );
        }
    }
    Ok(rows)
}

/// The most urgent first.
const PRIORITIES: [u8; 4] = [70, 60, 50, 40];
