//! The machine on which figures were measured, as far as it bears on them.

use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::checks::CHECKS;
use crate::machine::Machine;

pub use crate::machine::value_of;

/// The properties of a machine that bear on latencies measured on it.
///
/// A property that the machine does not tell is `unknown`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Environment {
    /// The version of chronorb.
    pub chronorb: String,
    /// The optimisation of the build: figures of a build that is not optimised tell little.
    pub build: String,
    /// The time of the measurement in UTC: `2026-02-03T04:05:06Z`.
    pub date: String,
    /// The release of the kernel.
    pub kernel: String,
    /// The preemption model of the kernel.
    pub preemption: String,
    /// The model of the processor.
    pub cpu: String,
    /// The number of CPUs that this process may use.
    pub cpus: usize,
    /// The load averages of the last 1, 5 and 15 minutes, before the measurement.
    pub load_average: [f64; 3],
    /// The share of each period that the kernel leaves to real-time threads.
    pub real_time_throttling: String,
    /// The highest `SCHED_FIFO` priority that this process may use, if it has such a right.
    pub max_fifo_priority: Option<u8>,
    /// The scheduling of the thread that measures or begins the measurement. An experiment has its
    /// own rules for its threads.
    pub scheduling: String,
    /// The amount of memory that this process may lock.
    pub memory_lock: String,
    /// The CPUs that the kernel keeps free of other threads.
    pub isolated_cpus: String,
    /// The frequency governors of the CPUs.
    pub cpu_frequency: String,
    /// The share of the processors' time that the hypervisor gave to other guests, in hundredths,
    /// for each phase of the measurement; 0 without a hypervisor.
    pub stolen_percent: Vec<f64>,
    /// The ticks of the processors when the machine was probed.
    #[serde(skip)]
    start: ProcessorTime,
}

impl Environment {
    /// Describes this machine and the rights of this process.
    #[must_use]
    pub fn probe() -> Self {
        Self::of(&Machine::this())
    }

    /// Notes the share of the time since the probe that the hypervisor gave to other guests.
    pub fn finish(&mut self) {
        self.stolen_percent = vec![self.start.stolen_percent(ProcessorTime::now())];
    }

    pub(crate) fn of(machine: &Machine) -> Self {
        let read = |path| machine.read(path).ok();
        let found = |id| {
            let check = CHECKS.iter().find(|check| check.id == id);
            or_unknown(check.map(|check| check.run(machine).found))
        };
        let cpu = read("/proc/cpuinfo");
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let optimised = if cfg!(debug_assertions) {
            "not optimised"
        } else {
            "optimised"
        };
        Self {
            chronorb: env!("CARGO_PKG_VERSION").to_owned(),
            build: optimised.to_owned(),
            date: utc(since_1970.map_or(0, |since| since.as_secs())),
            kernel: or_unknown(read("/proc/sys/kernel/osrelease")),
            preemption: found("preemption"),
            cpu: or_unknown(cpu.and_then(|text| value_of(&text, "model name").map(str::to_owned))),
            cpus: thread::available_parallelism().map_or(1, usize::from),
            load_average: load_average(&read("/proc/loadavg").unwrap_or_default()),
            real_time_throttling: found("rt-throttling"),
            max_fifo_priority: machine.rights.max_fifo,
            scheduling: chronorb_rt::current().map_or_else(
                |_| "a policy of another kind".to_owned(),
                |scheduling| scheduling.to_string(),
            ),
            memory_lock: found("memory-lock"),
            isolated_cpus: found("isolated-cpus"),
            cpu_frequency: found("cpu-frequency"),
            stolen_percent: Vec::new(),
            start: ProcessorTime::now(),
        }
    }

    /// Returns a machine for tests of reports, the same everywhere.
    #[must_use]
    pub fn example() -> Self {
        let text = str::to_owned;
        Self {
            chronorb: text("0.1.0"),
            build: text("optimised"),
            date: utc(0),
            kernel: text("6.12.0"),
            preemption: text("PREEMPT_RT"),
            cpu: text("Example"),
            cpus: 4,
            load_average: [0.0; 3],
            real_time_throttling: text("real-time threads may run 950000 µs of each 1000000 µs"),
            max_fifo_priority: Some(99),
            scheduling: text("SCHED_OTHER"),
            memory_lock: text("unlimited"),
            isolated_cpus: text("none"),
            cpu_frequency: text("performance"),
            stolen_percent: Vec::new(),
            start: ProcessorTime::default(),
        }
    }

    /// Returns a caveat where a hypervisor disturbed the measurement notably.
    #[must_use]
    pub fn stolen_caveat(&self) -> Option<String> {
        match self.stolen_percent[..] {
            [stolen] if stolen >= NOTABLE_PERCENT => Some(format!(
                "This is a virtual machine, and its host took the processors away for \
                 {stolen:.1} % of the time: no thread in here runs then, whatever its priority."
            )),
            _ => None,
        }
    }

    /// Returns the rows of a table: name and value.
    #[must_use]
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let [one, five, fifteen] = self.load_average;
        let stolen = match self.stolen_percent[..] {
            [without, with] => {
                format!("{without:.1} % of the time without priorities, {with:.1} % with them")
            }
            [all] => format!("{all:.1} % of the time"),
            _ => "unknown".to_owned(),
        };
        vec![
            ("chronorb", format!("{}, {}", self.chronorb, self.build)),
            ("Date", self.date.clone()),
            ("Kernel", format!("Linux {}", self.kernel)),
            ("Preemption", self.preemption.clone()),
            ("Processor", format!("{} × {}", self.cpus, self.cpu)),
            (
                "Load before",
                format!("{one:.2} (1 min), {five:.2} (5 min), {fifteen:.2} (15 min)"),
            ),
            ("Real-time throttling", self.real_time_throttling.clone()),
            (
                "Real-time priorities",
                self.max_fifo_priority.map_or_else(
                    || "not permitted".to_owned(),
                    |max| format!("SCHED_FIFO 1 to {max}"),
                ),
            ),
            ("Scheduling of this process", self.scheduling.clone()),
            ("Memory lock", self.memory_lock.clone()),
            ("Isolated CPUs", self.isolated_cpus.clone()),
            ("CPU frequency", self.cpu_frequency.clone()),
            ("Stolen by the hypervisor", stolen),
        ]
    }
}

/// The ticks that the processors have spent since the machine started.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ProcessorTime {
    all: u64,
    idle: u64,
    stolen: u64,
}

impl ProcessorTime {
    /// Reads the ticks until now.
    #[must_use]
    pub fn now() -> Self {
        Self::parse(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// Returns the hundredths of the time from `self` to `later` that were stolen.
    #[must_use]
    pub fn stolen_percent(self, later: Self) -> f64 {
        let all = later.all.saturating_sub(self.all).max(1);
        let stolen = later.stolen.saturating_sub(self.stolen);
        (stolen as f64 / all as f64 * 1e4).round() / 1e2
    }

    /// Returns the hundredths of the time since the start that were stolen; `None` without ticks.
    pub(crate) fn stolen_since_start(self) -> Option<f64> {
        (self.all > 0).then(|| Self::default().stolen_percent(self))
    }

    /// Returns the hundredths of the time from `self` to `later` in which the processors were busy,
    /// for this machine or for others.
    #[must_use]
    pub fn busy_percent(self, later: Self) -> f64 {
        let all = later.all.saturating_sub(self.all).max(1);
        let idle = later.idle.saturating_sub(self.idle).min(all);
        ((all - idle) as f64 / all as f64 * 1e4).round() / 1e2
    }

    /// Parses the first line of `/proc/stat`, proc(5): `cpu`, then eight kinds of time, the fourth
    /// and fifth of them idle and the last stolen, then parts of the first two.
    pub(crate) fn parse(text: &str) -> Self {
        let line = text.lines().next().unwrap_or_default();
        let ticks = line.split_whitespace().skip(1).take(8);
        let ticks: Vec<u64> = ticks.map_while(|word| word.parse().ok()).collect();
        Self {
            all: ticks.iter().sum(),
            idle: ticks.iter().skip(3).take(2).sum(),
            stolen: ticks.get(7).copied().unwrap_or(0),
        }
    }
}

fn load_average(text: &str) -> [f64; 3] {
    let mut averages = text
        .split_whitespace()
        .map(|word| word.parse().unwrap_or(0.0));
    std::array::from_fn(|_| averages.next().unwrap_or(0.0))
}

/// Formats seconds since 1970 as an ISO 8601 date and time.
fn utc(seconds: u64) -> String {
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    // Years begin in March here, so that the day of a leap year is the last: an era of 400 of them
    // has 146 097 days, and the months from March on have 153 days in five.
    let day = seconds / 86_400 + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

fn or_unknown(text: Option<String>) -> String {
    text.unwrap_or_else(|| "unknown".to_owned())
}

/// Stolen time that may show in the 99th percentile.
const NOTABLE_PERCENT: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Fixture;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(utc(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(utc(4_107_542_400), "2100-03-01T00:00:00Z");
        assert_eq!(utc(1_767_225_599), "2025-12-31T23:59:59Z");
    }

    #[test]
    fn load_averages_are_read_even_when_they_are_strange() {
        assert_eq!(load_average("0.02 0.13 x 1/91 6960"), [0.02, 0.13, 0.0]);
        assert_eq!(load_average(""), [0.0; 3]);
    }

    #[test]
    fn stolen_time_is_a_share_of_all_time() {
        let before = ProcessorTime::parse("cpu  100 0 50 800 10 0 5 35 99 99\ncpu0 1 2 3\n");
        assert_eq!((before.all, before.idle, before.stolen), (1000, 810, 35));
        let after = ProcessorTime::parse("cpu  200 0 50 1675 10 0 5 60 99 99\n");
        assert_eq!(before.stolen_percent(after), 2.5);
        assert_eq!(before.stolen_percent(before), 0.0);
        assert_eq!(before.busy_percent(after), 12.5);
        assert_eq!(ProcessorTime::parse(""), ProcessorTime::default());
    }

    #[test]
    fn a_machine_is_described_by_its_files() {
        let environment = Environment::of(&Fixture::tuned().machine);
        assert_eq!(environment.kernel, "6.12.1-rt");
        assert_eq!(
            environment.preemption,
            "everywhere but in a few places (PREEMPT_RT)"
        );
        assert_eq!(
            environment.memory_lock,
            "all memory may be locked, as tried"
        );
        assert!(
            environment
                .real_time_throttling
                .contains("real-time threads may run")
        );
        assert_eq!(environment.isolated_cpus, "CPUs 2-3");
        assert_eq!(environment.cpu_frequency, "performance (CPUs 0)");
        let rows = environment.rows();
        assert!(rows.iter().all(|(_, value)| !value.is_empty()));
        assert!(Environment::probe().cpus >= 1);
    }
}
