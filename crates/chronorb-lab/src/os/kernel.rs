//! The settings of the kernel that bear on scheduling.

use std::fs;

use serde::Serialize;

/// Settings of the kernel, which are read and never changed. A setting that cannot be read is
/// `unknown`.
#[derive(Clone, Debug, Serialize)]
pub struct KernelSettings {
    /// The CPUs that the scheduler leaves alone (`isolcpus=`, or an isolated partition of control
    /// groups).
    pub isolated_cpus: String,
    /// The CPUs without the periodic tick (`nohz_full=`).
    pub tickless_cpus: String,
    /// The time that real-time threads may take in each period, in µs; -1 is all of it.
    pub sched_rt_runtime_us: Option<i64>,
    /// The length of that period in µs.
    pub sched_rt_period_us: Option<i64>,
    /// The time slice of `SCHED_RR` in ms.
    pub sched_rr_timeslice_ms: Option<i64>,
}

impl KernelSettings {
    /// Reads the settings of this machine.
    pub(super) fn probe() -> Self {
        let number = |path| read(path)?.parse().ok();
        Self {
            isolated_cpus: list(read("/sys/devices/system/cpu/isolated")),
            tickless_cpus: list(read("/sys/devices/system/cpu/nohz_full")),
            sched_rt_runtime_us: number("/proc/sys/kernel/sched_rt_runtime_us"),
            sched_rt_period_us: number("/proc/sys/kernel/sched_rt_period_us"),
            sched_rr_timeslice_ms: number("/proc/sys/kernel/sched_rr_timeslice_ms"),
        }
    }

    /// Returns the settings as rows of a table: name and value.
    pub(super) fn rows(&self) -> [(&'static str, String); 5] {
        let value = |number: Option<i64>, unit| {
            number.map_or_else(|| "unknown".to_owned(), |n| format!("{n} {unit}"))
        };
        [
            ("Isolated CPUs", self.isolated_cpus.clone()),
            ("CPUs without a tick", self.tickless_cpus.clone()),
            ("sched_rt_runtime_us", value(self.sched_rt_runtime_us, "µs")),
            ("sched_rt_period_us", value(self.sched_rt_period_us, "µs")),
            (
                "sched_rr_timeslice_ms",
                value(self.sched_rr_timeslice_ms, "ms"),
            ),
        ]
    }
}

/// Returns a list of CPUs in words, from the form of the kernel.
fn list(text: Option<String>) -> String {
    match text.as_deref() {
        None => "unknown".to_owned(),
        Some("" | "(null)") => "none".to_owned(),
        Some(list) => list.to_owned(),
    }
}

fn read(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_is_known() {
        let texts = [None, Some(""), Some("(null)"), Some("1-3")];
        let lists = texts.map(|text| list(text.map(str::to_owned)));
        assert_eq!(lists, ["unknown", "none", "none", "1-3"]);
    }
}
