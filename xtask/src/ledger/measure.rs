//! Times that the kernel keeps.

use std::fs;
use std::time::Duration;

/// Returns the user and system time of this process and of all its children that have ended.
pub(super) fn processor_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in parentheses, may contain spaces.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let times = fields.split_whitespace().skip(11).take(4);
    ticks(times.filter_map(|time| time.parse::<u64>().ok()).sum())
}

/// The times of all processors since the machine started.
pub(super) struct MachineTimes {
    busy: Duration,
    stolen: Duration,
}

impl MachineTimes {
    pub(super) fn now() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let first = stat.lines().next().unwrap_or_default();
        let times: Vec<u64> = first
            .split_whitespace()
            .filter_map(|time| time.parse().ok())
            .collect();
        let field = |index: usize| times.get(index).copied().unwrap_or(0);
        // user, nice, system, idle, iowait, irq, softirq, steal
        Self {
            busy: ticks([0, 1, 2, 5, 6].into_iter().map(field).sum()),
            stolen: ticks(field(7)),
        }
    }

    /// Returns the seconds that were stolen within the last `elapsed`, and the number of processors
    /// that were busy on average.
    pub(super) fn since(&self, elapsed: Duration) -> (f64, f64) {
        let now = Self::now();
        let stolen = now.stolen.saturating_sub(self.stolen);
        let busy = now.busy.saturating_sub(self.busy);
        (
            stolen.as_secs_f64(),
            busy.as_secs_f64() / elapsed.as_secs_f64(),
        )
    }
}

/// Converts the clock ticks of `/proc`, which are hundredths of a second on Linux.
fn ticks(ticks: u64) -> Duration {
    Duration::from_millis(ticks * 10)
}
