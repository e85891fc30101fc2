//! The parts without an ORB: throttling, and the cost of a context switch.

use std::time::Duration;

use chronorb_rt::{MemoryLock, Rights};

use super::fleet::ask;
use super::order::{Held, HoldOrder, Part, SwitchOrder, Switched};
use super::outcome::{SwitchRow, ThrottlingRow};
use super::plan::Plan;
use super::switch::Switching;
use crate::bench::Cpus;
use crate::error::LabError;
use crate::watch::Watch;

/// What the kernel takes from a real-time thread that computes without end, alone and while somebody waits.
pub(super) fn throttling(plan: &Plan, watch: &Watch) -> Result<Vec<ThrottlingRow>, LabError> {
    let cpu = cpus()?.last().copied().unwrap_or_default();
    [false, true]
        .into_iter()
        .map(|contended| {
            watch.begin("throttling");
            let order = HoldOrder {
                cpu,
                length: plan.hold,
                contended,
            };
            let name = "thread that computes without end";
            let held: Held = ask(name, &Part::Hold(order), plan.hold)?;
            Ok(ThrottlingRow {
                contended,
                length_s: plan.hold.as_secs_f64(),
                longest_gap_us: held.longest_gap_us,
                gaps_of_a_ms: held.gaps_of_a_ms,
                lost_percent: held.lost_percent,
                given_percent: held.given_percent,
            })
        })
        .collect()
}

/// What a context switch costs, on one processor by all means, and on two where there are two.
pub(super) fn switches(plan: &Plan, watch: &Watch) -> Result<Vec<SwitchRow>, LabError> {
    let cpus = cpus()?;
    let first = cpus.first().copied().unwrap_or_default();
    let last = cpus.last().copied().unwrap_or_default();
    let mut trials: Vec<_> = Switching::ALL
        .into_iter()
        .map(|switching| (switching, [last, last]))
        .collect();
    if cpus.len() > 1 {
        trials.push((Switching::SuspendResume, [first, last]));
    }
    let lock_memory = Rights::probe().memory_lock == MemoryLock::Unlimited;
    trials
        .into_iter()
        .map(|(switching, cpus)| {
            watch.begin("context switches");
            let order = SwitchOrder {
                switching,
                cpus,
                lock_memory,
                rounds: plan.turns,
            };
            let patience = A_TURN * plan.turns;
            let switched: Switched = ask("two threads", &Part::Switch(order), patience)?;
            let latency = switched.switches.summary();
            // Each turn is two switches.
            let expected = f64::from(plan.turns) * 2.0;
            Ok(SwitchRow {
                switching,
                cpus: if cpus[0] == cpus[1] { 1 } else { 2 },
                turns: latency.calls,
                mean_us: latency.mean_us,
                deviation_us: latency.jitter_us,
                p50_us: latency.p50_us,
                p99_us: latency.p99_us,
                max_us: latency.max_us,
                counted_by_expected: (switched.counted as f64 / expected * 1e3).round() / 1e3,
            })
        })
        .collect()
}

fn cpus() -> Result<Vec<usize>, LabError> {
    let cpus = Cpus::of_this_process()?;
    Ok(cpus.iter().collect())
}

/// Far more than a turn takes.
const A_TURN: Duration = Duration::from_millis(1);
