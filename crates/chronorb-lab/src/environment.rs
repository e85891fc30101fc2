//! The machine on which figures were measured, as far as it bears on them.

use std::fs;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use chronorb_rt::{MemoryLock, Rights};
use serde::Serialize;

use crate::doctor;

/// What one must know of a machine to judge latencies measured on it.
///
/// Whatever cannot be found out is said to be `unknown`.
#[derive(Clone, Debug, Serialize)]
pub struct Environment {
    /// The version of chronorb.
    pub chronorb: String,
    /// How it was built: figures of a build that is not optimised tell little.
    pub build: String,
    /// When it was measured, in UTC: `2026-02-03T04:05:06Z`.
    pub date: String,
    /// The release of the kernel.
    pub kernel: String,
    /// How far the kernel can be preempted.
    pub preemption: String,
    /// The model of the processor.
    pub cpu: String,
    /// The number of CPUs that this process may use.
    pub cpus: usize,
    /// The load averages of the last 1, 5 and 15 minutes, before the measurement.
    pub load_average: [f64; 3],
    /// How much of each period real-time threads may take, as the kernel sets it.
    pub real_time_throttling: String,
    /// The highest `SCHED_FIFO` priority that this process may use; nothing when it has no such right.
    pub max_fifo_priority: Option<u8>,
    /// How the thread that measures or begins the measurement is scheduled; an experiment's own threads are scheduled
    /// as it says.
    pub scheduling: String,
    /// How much memory this process may lock.
    pub memory_lock: String,
    /// The CPUs that the kernel keeps free for those who ask for them.
    pub isolated_cpus: String,
    /// Who decides how fast the CPUs run.
    pub cpu_frequency: String,
    /// How many hundredths of the processors' time the hypervisor gave to others, in each phase of
    /// the measurement; 0 on a machine that is none's guest.
    pub stolen_percent: Vec<f64>,
}

impl Environment {
    /// Looks at this machine and the rights of this process.
    #[must_use]
    pub fn probe() -> Self {
        let rights = Rights::probe();
        let [isolated_cpus, cpu_frequency] = doctor::look_at(["isolated-cpus", "cpu-frequency"]);
        let build = read("/proc/sys/kernel/version");
        Self {
            chronorb: env!("CARGO_PKG_VERSION").to_owned(),
            build: match cfg!(debug_assertions) {
                true => "not optimised".to_owned(),
                false => "optimised".to_owned(),
            },
            date: utc(SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_secs())),
            kernel: or_unknown(read("/proc/sys/kernel/osrelease")),
            preemption: preemption(
                build.as_deref().unwrap_or_default(),
                read("/sys/kernel/realtime").as_deref() == Some("1"),
                read("/sys/kernel/debug/sched/preempt").as_deref(),
            ),
            cpu: or_unknown(
                read("/proc/cpuinfo")
                    .and_then(|text| value_of(&text, "model name").map(str::to_owned)),
            ),
            cpus: thread::available_parallelism().map_or(1, usize::from),
            load_average: load_average(&read("/proc/loadavg").unwrap_or_default()),
            real_time_throttling: throttling(
                read("/proc/sys/kernel/sched_rt_runtime_us").and_then(|text| text.parse().ok()),
                read("/proc/sys/kernel/sched_rt_period_us").and_then(|text| text.parse().ok()),
            ),
            max_fifo_priority: rights.max_fifo,
            scheduling: chronorb_rt::current().map_or_else(
                |_| "a policy of another kind".to_owned(),
                |scheduling| scheduling.to_string(),
            ),
            memory_lock: memory_lock(rights.memory_lock),
            isolated_cpus,
            cpu_frequency,
            stolen_percent: Vec::new(),
        }
    }

    /// A machine for tests, the same everywhere.
    #[cfg(test)]
    pub(crate) fn example() -> Self {
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
            real_time_throttling: throttling(Some(950_000), Some(1_000_000)),
            max_fifo_priority: Some(99),
            scheduling: text("SCHED_OTHER"),
            memory_lock: text("unlimited"),
            isolated_cpus: text("none"),
            cpu_frequency: text("performance"),
            stolen_percent: Vec::new(),
        }
    }

    /// That a hypervisor disturbed the measurement, where it did so notably.
    pub(crate) fn stolen_caveat(&self) -> Option<String> {
        match self.stolen_percent[..] {
            [stolen] if stolen >= NOTABLE_PERCENT => Some(format!(
                "This is a virtual machine, and its host took the processors away for {stolen:.1} % of \
                 the time: no thread in here runs then, whatever its priority."
            )),
            _ => None,
        }
    }

    /// The rows of a table: name and value.
    pub(crate) fn rows(&self) -> Vec<(&'static str, String)> {
        let [one, five, fifteen] = self.load_average;
        let stolen = match self.stolen_percent[..] {
            [without, with] => {
                format!(
                    "{without:.1} % of the time without priorities, {with:.1} % with priorities"
                )
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

/// What the processors have done since the machine started, in ticks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ProcessorTime {
    all: u64,
    idle: u64,
    stolen: u64,
}

impl ProcessorTime {
    /// Until now.
    pub(crate) fn now() -> Self {
        Self::parse(&read("/proc/stat").unwrap_or_default())
    }

    /// How many hundredths of the time from `self` to `later` were stolen.
    pub(crate) fn stolen_percent(self, later: Self) -> f64 {
        let all = later.all.saturating_sub(self.all).max(1);
        let stolen = later.stolen.saturating_sub(self.stolen);
        (stolen as f64 / all as f64 * 1e4).round() / 1e2
    }

    /// How many hundredths of the time from `self` to `later` the processors were at work, here or
    /// for others.
    pub(crate) fn busy_percent(self, later: Self) -> f64 {
        let all = later.all.saturating_sub(self.all).max(1);
        let idle = later.idle.saturating_sub(self.idle).min(all);
        ((all - idle) as f64 / all as f64 * 1e4).round() / 1e2
    }

    /// The first line of `/proc/stat`, proc(5): `cpu`, then eight kinds of time, the fourth and
    /// fifth of them idle and the last stolen, then parts of the first two.
    fn parse(text: &str) -> Self {
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

/// Names the preemption model, from `uname -v`, `/sys/kernel/realtime` and, where it can be read,
/// the scheduler's own word, which marks the model in use with parentheses.
fn preemption(build: &str, real_time: bool, models: Option<&str>) -> String {
    if real_time || build.contains("PREEMPT_RT") {
        return "PREEMPT_RT".to_owned();
    }
    match (models.and_then(|text| marked(text, ['(', ')'])), build) {
        (Some(model), _) => format!("PREEMPT_DYNAMIC, in use: {model}"),
        (None, build) if build.contains("PREEMPT_DYNAMIC") => {
            "PREEMPT_DYNAMIC, model in use unknown; no PREEMPT_RT".to_owned()
        }
        (None, build) if build.contains("PREEMPT") => "PREEMPT; no PREEMPT_RT".to_owned(),
        (None, "") => "unknown".to_owned(),
        (None, _) => "none or voluntary; no PREEMPT_RT".to_owned(),
    }
}

/// The one of several words that stands between these marks, by which the kernel says that it is in
/// use.
pub(crate) fn marked(words: &str, [begin, end]: [char; 2]) -> Option<&str> {
    words
        .split_whitespace()
        .find_map(|word| word.strip_prefix(begin)?.strip_suffix(end))
}

/// `sched_rt_runtime_us` and `sched_rt_period_us` in words.
fn throttling(runtime_us: Option<i64>, period_us: Option<i64>) -> String {
    match (runtime_us, period_us) {
        (Some(runtime), _) if runtime < 0 => "off".to_owned(),
        (Some(runtime), Some(period)) => {
            format!("real-time threads may run {runtime} µs of each {period} µs")
        }
        _ => "unknown".to_owned(),
    }
}

fn memory_lock(right: MemoryLock) -> String {
    match right {
        MemoryLock::Unlimited => "unlimited".to_owned(),
        MemoryLock::Limited(bytes) => format!("up to {} KiB", bytes / 1024),
        MemoryLock::None => "not permitted".to_owned(),
    }
}

/// The value of the first line `name : value`.
pub(crate) fn value_of<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim())
}

fn load_average(text: &str) -> [f64; 3] {
    let mut averages = text
        .split_whitespace()
        .map(|word| word.parse().unwrap_or(0.0));
    std::array::from_fn(|_| averages.next().unwrap_or(0.0))
}

/// Seconds since 1970 as an ISO 8601 date and time.
fn utc(seconds: u64) -> String {
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let mut year = 1970;
    let mut day = seconds / 86_400;
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    loop {
        let days = if is_leap(year) { 366 } else { 365 };
        if day < days {
            break;
        }
        day -= days;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    format!(
        "{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z",
        day + 1
    )
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path)
        .ok()
        .map(|text| text.trim().to_owned())
}

fn or_unknown(text: Option<String>) -> String {
    text.unwrap_or_else(|| "unknown".to_owned())
}

/// Stolen time that may show in the 99th percentile.
const NOTABLE_PERCENT: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preemption_models_are_told_apart() {
        let dynamic = "#1 SMP PREEMPT_DYNAMIC @0";
        assert_eq!(
            preemption("#1 SMP PREEMPT_RT Thu", false, None),
            "PREEMPT_RT"
        );
        assert_eq!(preemption("#1 SMP", true, None), "PREEMPT_RT");
        assert_eq!(
            preemption(dynamic, false, Some("none voluntary (full) lazy")),
            "PREEMPT_DYNAMIC, in use: full"
        );
        assert!(preemption(dynamic, false, None).contains("unknown"));
        assert!(preemption("#1 SMP PREEMPT x", false, None).starts_with("PREEMPT;"));
        assert!(preemption("#1 SMP Debian", false, None).starts_with("none"));
        assert_eq!(preemption("", false, None), "unknown");
    }

    #[test]
    fn throttling_in_words() {
        assert_eq!(throttling(Some(-1), Some(1_000_000)), "off");
        assert_eq!(
            throttling(Some(950_000), Some(1_000_000)),
            "real-time threads may run 950000 µs of each 1000000 µs"
        );
        assert_eq!(throttling(None, None), "unknown");
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(utc(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(utc(4_107_542_400), "2100-03-01T00:00:00Z");
        assert_eq!(utc(1_767_225_599), "2025-12-31T23:59:59Z");
    }

    #[test]
    fn texts_of_the_kernel_are_read_even_when_they_are_strange() {
        let cpuinfo = "processor\t: 0\nmodel name\t: A: fast one\nmodel name\t: other\n";
        assert_eq!(value_of(cpuinfo, "model name"), Some("A: fast one"));
        assert_eq!(value_of("", "model name"), None);
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
        assert_eq!(
            ProcessorTime::parse(""),
            ProcessorTime {
                all: 0,
                idle: 0,
                stolen: 0
            }
        );
    }

    #[test]
    fn this_machine_can_be_described() {
        let environment = Environment::probe();
        assert!(environment.cpus >= 1);
        let checked = [&environment.isolated_cpus, &environment.cpu_frequency];
        assert!(
            checked.iter().all(|found| *found != "unknown"),
            "both are checks of the doctor"
        );
        assert!(
            environment
                .rows()
                .iter()
                .all(|(_, value)| !value.is_empty())
        );
    }
}
