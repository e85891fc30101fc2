//! A real-time thread that computes without end: what the kernel's throttling takes from it.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chronorb_rt::{Monotonic, Scheduling, ThreadBuilder};
use rustix::time::{ClockId, clock_gettime};

use super::class::HIGH;
use super::order::{Held, HoldOrder};
use crate::error::LabError;
use crate::process;
use crate::work;

/// Computes for its time, and tells how long it was kept from it.
pub(super) fn hold(order: &HoldOrder) -> Result<(), LabError> {
    let is_over = Arc::new(AtomicBool::new(false));
    let failed = LabError::work("starting a thread that computes");
    let ordinary = match order.contended {
        true => {
            let is_over = Arc::clone(&is_over);
            let ordinary = ThreadBuilder::new("ordinary")
                .scheduling(Scheduling::OTHER)
                .affinity(&[order.cpu])
                .spawn(move || compute_until(&is_over));
            Some(ordinary.map_err(&failed)?)
        }
        false => None,
    };
    let length = order.length;
    let urgent = ThreadBuilder::new("urgent")
        .scheduling(Scheduling::fifo(HIGH))
        .affinity(&[order.cpu])
        .spawn(move || compute_for(length))
        .map_err(&failed)?;
    let mut held = urgent.join().unwrap_or_else(|panic| resume_unwind(panic));
    is_over.store(true, Ordering::Relaxed);
    if let Some(ordinary) = ordinary {
        let (at_end, cpu) = ordinary.join().unwrap_or_else(|panic| resume_unwind(panic));
        held.given_percent = percent(cpu, at_end);
    }
    process::tell(&held)?;
    Ok(())
}

/// Computes, and looks at the clock again and again.
fn compute_for(length: Duration) -> Held {
    let begun = Monotonic::now();
    let cpu_before = cpu_time();
    let until = begun + length;
    let (mut longest, mut gaps) = (Duration::ZERO, 0);
    let mut seen = begun;
    while seen < until {
        work::cube(7, STEPS);
        let now = Monotonic::now();
        let gap = now.since(seen);
        longest = longest.max(gap);
        gaps += u64::from(gap >= LONG);
        seen = now;
    }
    let used = cpu_time().saturating_sub(cpu_before);
    Held {
        longest_gap_us: longest.as_secs_f64() * 1e6,
        gaps_of_a_ms: gaps,
        lost_percent: 100.0 - percent(used, seen.since(begun)),
        given_percent: 0.0,
    }
}

/// Computes until it is told; returns how long that was, and how much processor time it had.
fn compute_until(is_over: &AtomicBool) -> (Duration, Duration) {
    let begun = Monotonic::now();
    while !is_over.load(Ordering::Relaxed) {
        work::cube(7, STEPS);
    }
    (Monotonic::now().since(begun), cpu_time())
}

/// The processor time that the calling thread has had.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

fn percent(part: Duration, whole: Duration) -> f64 {
    let share = part.as_secs_f64() / whole.as_secs_f64().max(1e-9);
    (share * 1e4).round() / 1e2
}

/// Work between two looks at the clock: some µs.
const STEPS: u32 = 1_000;
/// A gap that is no interrupt.
const LONG: Duration = Duration::from_millis(1);
