//! The kernel's scheduling, clocks and timers.

use crate::check::{Check, Reading, State, boot_with, costs, good, missing, one, unknown};
use crate::machine::{Machine, Unreadable, marked};

pub(super) static PREEMPTION: Check = Check {
    id: "preemption",
    title: "Preemption",
    cost: "an urgent thread waits until a system call of another thread ends, or a tick comes: ms, \
           at times tens of them",
    look: "ask:\n  uname -v",
    read: preemption_model,
    rules: &[
        good("PREEMPT_RT", "everywhere but in a few places (PREEMPT_RT)"),
        good("full|lazy", "{0} ({1})"),
        costs("none", "{0} ({1})", PREEMPT_FULLY),
        costs("voluntary", "{0} ({1})", PREEMPT_FULLY).costing(
            "an urgent thread waits until the kernel reaches its next preemption point: hundreds \
             of µs, at times ms",
        ),
        unknown(
            "untold",
            "PREEMPT_DYNAMIC, and the model in use is not shown: {0}",
            "as root, where debugfs can be mounted; else the kernel's configuration has the model \
             that it starts with:\n  \
             mount -t debugfs none /sys/kernel/debug\n  \
             cat /sys/kernel/debug/sched/preempt\n  \
             zgrep PREEMPT /proc/config.gz",
        ),
    ],
};

pub(super) static REAL_TIME: Check = Check {
    id: "preempt-rt",
    title: "Real-time kernel",
    cost: "interrupt handlers, and parts of the kernel that hold a spin lock, are not preempted: \
           hundreds of µs, under load ms",
    look: "ask:\n  uname -v",
    read: |machine| {
        if is_real_time(machine)? {
            return one("PREEMPT_RT", []);
        }
        one("other", [&format!("{:?}", version(machine)?)])
    },
    rules: &[
        good("PREEMPT_RT", "PREEMPT_RT"),
        missing(
            "other",
            "not PREEMPT_RT, but {0}",
            "boot a kernel that is built with PREEMPT_RT (in Linux since 6.12):\n  \
             apt install linux-image-rt-amd64        # Debian\n  \
             pro enable realtime-kernel              # Ubuntu\n  \
             dnf install kernel-rt                   # Red Hat",
        ),
    ],
};

pub(super) static THROTTLING: Check = Check {
    id: "rt-throttling",
    title: "Throttling",
    cost: "real-time threads that have used up the budget of a CPU are stopped for the rest of the \
           period, by default 50 ms; on Linux 6.12 and newer only with RT_GROUP_SCHED",
    look: "ask:\n  sysctl kernel.sched_rt_runtime_us kernel.sched_rt_period_us",
    read: |machine| {
        let runtime: i64 = machine.value("/proc/sys/kernel/sched_rt_runtime_us")?;
        if runtime < 0 {
            return one("off", []);
        }
        let period: i64 = machine.value(PERIOD)?;
        if period <= 0 {
            return Err(Unreadable::rubbish(PERIOD, &period.to_string()));
        }
        let state = if runtime >= period { "all" } else { "part" };
        one(state, [&runtime, &period])
    },
    rules: &[
        good("off", "off: real-time threads may run without end"),
        good("all", "real-time threads may run {0} µs of each {1} µs"),
        costs(
            "part",
            "real-time threads may run {0} µs of each {1} µs",
            "give work that computes without end priority 0. Where no thread does so, lift the \
             bound; a thread that does so later stops its CPU for good:\n  \
             sysctl -w kernel.sched_rt_runtime_us=-1",
        ),
    ],
};

pub(super) static FAIR_SERVER: Check = Check {
    id: "fair-server",
    title: "Fair server",
    cost: "on a CPU that real-time threads keep busy, ordinary threads run first for a while, by \
           default 50 ms of each second",
    look: "as root:\n  \
           mount -t debugfs none /sys/kernel/debug\n  \
           grep . /sys/kernel/debug/sched/fair_server/*/*",
    read: fair_server,
    rules: &[
        good("old", "Linux {0} has none"),
        good("off", "off"),
        costs(
            "on",
            "ordinary threads get up to {0} % of a CPU",
            "give work that computes without end priority 0. Where no thread does so, switch it \
             off:\n  \
             for f in /sys/kernel/debug/sched/fair_server/*/runtime; do echo 0 >$f; done",
        ),
    ],
};

pub(super) static TIMER_RESOLUTION: Check = Check {
    id: "timer-resolution",
    title: "Timer resolution",
    cost: "a sleep ends at a tick: up to 10 ms late",
    look: "look for the resolution of each clock, as root:\n  grep resolution /proc/timer_list",
    read: |machine| {
        let step = machine.timer_resolution;
        // Without high-resolution timers the step is a tick, never below 100 µs.
        let state = if step.as_micros() < 1 { "fine" } else { "tick" };
        one(state, [&step.as_nanos()])
    },
    rules: &[
        good("fine", "{0} ns (clock_getres)"),
        missing(
            "tick",
            "{0} ns (clock_getres)",
            "boot a kernel with CONFIG_HIGH_RES_TIMERS=y, without these options:\n  \
             highres=off nohz=off",
        ),
    ],
};

pub(super) static CLOCK_SOURCE: Check = Check {
    id: "clock-source",
    title: "Clock source",
    cost: "each reading of the time is a system call that reads a slow device: a µs or more",
    look: "read:\n  cat /sys/devices/system/clocksource/clocksource0/current_clocksource",
    read: clock_source,
    rules: &[
        good(
            "tsc|kvm-clock|arch_sys_counter|hyperv_clocksource_tsc_page|timebase|riscv_clocksource",
            "{0}, read without a system call",
        ),
        costs(
            "slow beside tsc",
            "{0}",
            "switch:\n  \
             echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource",
        ),
        costs(
            "hpet|acpi_pm|jiffies|xen|pit|refined-jiffies",
            "{0}",
            concat!(
                "if the kernel's log says why it does not trust the TSC, and it is wrong, ",
                boot_with!("tsc=reliable")
            ),
        ),
    ],
};

pub(super) static TIMER_SLACK: Check = Check {
    id: "timer-slack",
    title: "Timer slack",
    cost: "sleeps of ordinary threads end up to this much later",
    look: "read:\n  cat /proc/self/timerslack_ns",
    read: |machine| {
        let ns: u64 = machine.value("/proc/self/timerslack_ns")?;
        let state = match machine.rights.max_fifo {
            _ if ns <= 1_000 => "small",
            Some(_) => "avoidable",
            None => "large",
        };
        one(state, [&(ns as f64 / 1e3)])
    },
    rules: &[
        good("small", "{0} µs"),
        good(
            "avoidable",
            "{0} µs, for ordinary threads; none for real-time ones",
        ),
        costs(
            "large",
            "{0} µs, and real-time threads, which have none, are not permitted",
            "grant real-time priorities; or have the program call prctl(PR_SET_TIMERSLACK, 1), or \
             set the slack of a running one:\n  \
             echo 1 > /proc/PID/timerslack_ns",
        ),
    ],
};

/// Reads which preemption model the kernel uses.
fn preemption_model(machine: &Machine) -> Reading {
    if is_real_time(machine)? {
        return one("PREEMPT_RT", []);
    }
    let version = version(machine)?;
    let unreadable = match machine.read(MODELS) {
        Ok(text) => {
            let model = marked(&text, ['(', ')']);
            let model = model.filter(|model| CONFIGURED.iter().any(|(_, known)| known == model));
            let model = model.ok_or_else(|| Unreadable::rubbish(MODELS, &text))?;
            return one(model, [&model, &"in use"]);
        }
        Err(unreadable) => unreadable,
    };
    if !version.contains("PREEMPT_DYNAMIC") {
        return if version.contains("PREEMPT") {
            one("full", [&"full", &"built in"])
        } else {
            one("none", [&"none", &"or voluntary, built in"])
        };
    }
    let booted = machine.boot_option("preempt").ok().flatten();
    let mut models = CONFIGURED.iter().map(|(_, model)| *model);
    if let Some(model) = models.find(|model| Some(*model) == booted.as_deref()) {
        return one(model, [&model, &"by the boot option"]);
    }
    configured_model(machine).map_or_else(
        || one("untold", [&unreadable]),
        |model| one(model, [&model, &"by the kernel's configuration"]),
    )
}

fn is_real_time(machine: &Machine) -> Result<bool, Unreadable> {
    let version = version(machine);
    let named = version.as_ref().map(|text| text.contains("PREEMPT_RT"));
    if named == Ok(true) {
        return Ok(true);
    }
    match machine.read(REAL_TIME_FILE) {
        Ok(text) if text == "1" => Ok(true),
        Ok(text) if text != "0" => Err(Unreadable::rubbish(REAL_TIME_FILE, &text)),
        Err(unreadable) if unreadable.absent().is_none() => Err(unreadable),
        Ok(_) | Err(_) => version.map(|_| false),
    }
}

/// Reads how the kernel was built, as `uname -v` shows it: `#1 SMP PREEMPT_DYNAMIC …`.
fn version(machine: &Machine) -> Result<String, Unreadable> {
    let version = machine.read(VERSION)?;
    if version.starts_with('#') {
        return Ok(version);
    }
    Err(Unreadable::rubbish(VERSION, &version))
}

/// Reads the model of the kernel's configuration, where that is kept.
fn configured_model(machine: &Machine) -> Option<&'static str> {
    let release = machine.read(RELEASE).ok()?;
    let configuration = machine.read(&format!("/boot/config-{release}")).ok()?;
    let has = |wanted| configuration.lines().any(|line| line == wanted);
    let model = CONFIGURED.iter().find(|(line, _)| has(*line));
    model.map(|(_, model)| *model)
}

/// Reads the share of ordinary threads on a CPU that real-time threads keep busy.
fn fair_server(machine: &Machine) -> Reading {
    let release = machine.read(RELEASE)?;
    let mut numbers = release.split(['.', '-']).map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
        return Err(Unreadable::rubbish(RELEASE, &release));
    };
    if (major, minor) < (6, 12) {
        return one("old", [&release]);
    }
    let mut most = None;
    for cpu in machine.list(SERVERS)? {
        let ns = |name| machine.value::<u64>(&format!("{SERVERS}/{cpu}/{name}"));
        let share = ns("runtime")? as f64 / ns("period")?.max(1) as f64;
        most = Some(share.max(most.unwrap_or(0.0)));
    }
    let most: f64 = most.ok_or_else(|| Unreadable::rubbish(SERVERS, ""))?;
    let state = if most == 0.0 { "off" } else { "on" };
    one(state, [&format!("{:.1}", most * 100.0)])
}

fn clock_source(machine: &Machine) -> Reading {
    let source = machine.read(&format!("{CLOCKS}/current_clocksource"))?;
    let available = machine.read(&format!("{CLOCKS}/available_clocksource"));
    let has_tsc = available.is_ok_and(|names| names.split_whitespace().any(|name| name == "tsc"));
    if has_tsc && SLOW_CLOCKS.contains(&source.as_str()) {
        return one("slow beside tsc", [&source]);
    }
    Ok(vec![State::told(
        &format!("{CLOCKS}/current_clocksource"),
        &source,
    )])
}

const PREEMPT_FULLY: &str = concat!(
    "where the kernel is PREEMPT_DYNAMIC, switch at once:\n  \
     echo full > /sys/kernel/debug/sched/preempt\n",
    boot_with!("preempt=full")
);
/// The models, each with the line of the kernel's configuration that makes it the first.
const CONFIGURED: [(&str, &str); 4] = [
    ("CONFIG_PREEMPT_NONE=y", "none"),
    ("CONFIG_PREEMPT_VOLUNTARY=y", "voluntary"),
    ("CONFIG_PREEMPT_LAZY=y", "lazy"),
    ("CONFIG_PREEMPT=y", "full"),
];
const SLOW_CLOCKS: [&str; 6] = [
    "hpet",
    "acpi_pm",
    "jiffies",
    "xen",
    "pit",
    "refined-jiffies",
];
const VERSION: &str = "/proc/sys/kernel/version";
const RELEASE: &str = "/proc/sys/kernel/osrelease";
const REAL_TIME_FILE: &str = "/sys/kernel/realtime";
const MODELS: &str = "/sys/kernel/debug/sched/preempt";
const SERVERS: &str = "/sys/kernel/debug/sched/fair_server";
const PERIOD: &str = "/proc/sys/kernel/sched_rt_period_us";
const CLOCKS: &str = "/sys/devices/system/clocksource/clocksource0";
