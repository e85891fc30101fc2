//! Throttling: the time that the kernel takes from a real-time thread that computes without a
//! break.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chronorb_rt::{Monotonic, Scheduling};
use serde::{Deserialize, Serialize};

use super::class::HIGH;
use super::fleet::ask;
use super::outcome::ThrottlingRow;
use super::{OsPart, OsRun, threads};
use crate::error::LabError;
use crate::process;
use crate::usage::thread_time;
use crate::work;

/// A real-time thread that computes for `length`.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct HoldOrder {
    cpu: usize,
    length: Duration,
    /// Whether an ordinary thread computes on the same CPU.
    contended: bool,
}

/// Measures the thread alone, and beside an ordinary thread.
pub(super) fn measure(run: &OsRun<'_>) -> Result<Vec<ThrottlingRow>, LabError> {
    let rows = [false, true].into_iter().map(|contended| {
        run.watch.begin("throttling");
        let length = run.plan.hold;
        let part = OsPart::Hold(HoldOrder {
            cpu: run.ends()[1],
            length,
            contended,
        });
        ask("thread that computes without a break", &part, length)
    });
    rows.collect()
}

/// Runs the threads, and tells the parent the figures.
pub(super) fn hold(order: &HoldOrder) -> Result<(), LabError> {
    let (cpu, length, contended) = (order.cpu, order.length, order.contended);
    let is_over = Arc::new(AtomicBool::new(false));
    let mut ordinary = None;
    if contended {
        let is_over = Arc::clone(&is_over);
        let compute = move || compute_while(|_, _| !is_over.load(Ordering::Relaxed));
        ordinary = Some(threads::start("ordinary", Scheduling::OTHER, cpu, compute)?);
    }
    let urgent = threads::start("urgent", Scheduling::fifo(HIGH), cpu, move || {
        let (mut longest, mut gaps) = (Duration::ZERO, 0);
        let times = compute_while(|passed, gap| {
            longest = longest.max(gap);
            gaps += u64::from(gap >= LONG);
            passed < length
        });
        (longest, gaps, times)
    });
    let (longest, gaps_of_a_ms, times) = threads::join(urgent?);
    is_over.store(true, Ordering::Relaxed);
    let given_percent = ordinary.map_or(0.0, |thread| percent(threads::join(thread)));
    process::tell(&ThrottlingRow {
        contended,
        length_s: length.as_secs_f64(),
        longest_gap_us: longest.as_secs_f64() * 1e6,
        gaps_of_a_ms,
        lost_percent: 100.0 - percent(times),
        given_percent,
    })?;
    Ok(())
}

/// Computes while `goes_on` holds, which gets the time since the beginning and since its last
/// call. Returns the processor time of the thread, and the time that has passed.
fn compute_while(mut goes_on: impl FnMut(Duration, Duration) -> bool) -> (Duration, Duration) {
    let cpu_before = thread_time();
    let begin = Monotonic::now();
    let mut seen = begin;
    loop {
        work::cube(7, STEPS);
        let now = Monotonic::now();
        let passed = now.since(begin);
        if !goes_on(passed, now.since(seen)) {
            return (thread_time().saturating_sub(cpu_before), passed);
        }
        seen = now;
    }
}

fn percent((part, whole): (Duration, Duration)) -> f64 {
    let share = part.as_secs_f64() / whole.as_secs_f64().max(1e-9);
    (share * 1e4).round() / 1e2
}

/// The work between two readings of the clock: some µs.
const STEPS: u32 = 1_000;
/// The shortest gap that is counted: longer than an interrupt.
const LONG: Duration = Duration::from_millis(1);
