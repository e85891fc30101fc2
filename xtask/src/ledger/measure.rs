//! Times that the kernel keeps.

use std::fs;
use std::time::Duration;

use crate::run;

/// The times of all processors since the machine started.
pub(super) struct MachineTimes {
    busy_seconds: f64,
    stolen_seconds: f64,
}

impl MachineTimes {
    pub(super) fn now() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let first = stat.lines().next().unwrap_or_default();
        let times: Vec<u64> = first
            .split_whitespace()
            .filter_map(|time| time.parse().ok())
            .collect();
        let field = |index: usize| times.get(index).copied().unwrap_or(0) as f64 / run::TICKS;
        // user, nice, system, idle, iowait, irq, softirq, steal
        Self {
            busy_seconds: [0, 1, 2, 5, 6].into_iter().map(field).sum(),
            stolen_seconds: field(7),
        }
    }

    /// Returns the seconds that were stolen within the last `elapsed`, and the number of processors
    /// that were busy on average.
    pub(super) fn since(&self, elapsed: Duration) -> (f64, f64) {
        let now = Self::now();
        let busy = now.busy_seconds - self.busy_seconds;
        (
            now.stolen_seconds - self.stolen_seconds,
            busy / elapsed.as_secs_f64(),
        )
    }
}
