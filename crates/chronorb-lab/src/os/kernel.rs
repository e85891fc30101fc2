//! What the kernel is set to, as far as it bears on who runs when.

use std::fs;

use serde::Serialize;

/// Settings that are looked at, and never changed. What cannot be read is `unknown`.
#[derive(Clone, Debug, Serialize)]
pub struct Kernel {
    /// CPUs that the scheduler leaves alone (`isolcpus=`, or an isolated partition of control groups).
    pub isolated_cpus: String,
    /// CPUs without the periodic tick (`nohz_full=`).
    pub tickless_cpus: String,
    /// How much of each period real-time threads may take, in µs; -1 is all of it.
    pub sched_rt_runtime_us: Option<i64>,
    /// That period.
    pub sched_rt_period_us: Option<i64>,
    /// How long `SCHED_RR` threads of a priority run by turns.
    pub sched_rr_timeslice_ms: Option<i64>,
}

impl Kernel {
    /// Looks at this machine.
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

    /// The rows of a table: name and value.
    pub(super) fn rows(&self) -> Vec<(&'static str, String)> {
        let number = |number: Option<i64>, unit| {
            number.map_or_else(|| "unknown".to_owned(), |n| format!("{n} {unit}"))
        };
        vec![
            ("Isolated CPUs", self.isolated_cpus.clone()),
            ("CPUs without a tick", self.tickless_cpus.clone()),
            (
                "sched_rt_runtime_us",
                number(self.sched_rt_runtime_us, "µs"),
            ),
            ("sched_rt_period_us", number(self.sched_rt_period_us, "µs")),
            (
                "sched_rr_timeslice_ms",
                number(self.sched_rr_timeslice_ms, "ms"),
            ),
        ]
    }
}

/// A list of CPUs, as the kernel writes it.
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
    fn an_empty_list_is_no_unknown_one() {
        let texts = [None, Some(""), Some("(null)"), Some("1-3")];
        let lists = texts.map(|text| list(text.map(str::to_owned)));
        assert_eq!(lists, ["unknown", "none", "none", "1-3"]);
    }
}
