//! The kernel's scheduling, clocks and timers.

use crate::check::{ReadStates, State, one};
use crate::machine::{Machine, Unreadable, is_among, marked};

/// Reads whether the kernel is built for real time.
pub(super) fn real_time(machine: &Machine) -> ReadStates {
    if is_real_time(machine)? {
        return one("PREEMPT_RT", []);
    }
    one("other", [&format!("{:?}", version(machine)?)])
}

/// Reads the share of each period that real-time threads may use.
pub(super) fn throttling(machine: &Machine) -> ReadStates {
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
}

/// Reads the resolution of timers.
pub(super) fn timer_resolution(machine: &Machine) -> ReadStates {
    let step = machine.timer_resolution;
    // Without high-resolution timers the step is a tick, never below 100 µs.
    let state = if step.as_micros() < 1 { "fine" } else { "tick" };
    one(state, [&step.as_nanos()])
}

/// Reads the slack of sleeps.
pub(super) fn timer_slack(machine: &Machine) -> ReadStates {
    let ns: u64 = machine.value("/proc/self/timerslack_ns")?;
    let state = match machine.rights.max_fifo {
        _ if ns <= 1_000 => "small",
        Some(_) => "avoidable",
        None => "large",
    };
    one(state, [&(ns as f64 / 1e3)])
}

/// Reads which preemption model the kernel uses.
pub(super) fn preemption_model(machine: &Machine) -> ReadStates {
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
pub(super) fn fair_server(machine: &Machine) -> ReadStates {
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

pub(super) fn clock_source(machine: &Machine) -> ReadStates {
    let current = format!("{CLOCKS}/current_clocksource");
    let source = machine.read(&current)?;
    let available = machine.read(&format!("{CLOCKS}/available_clocksource"));
    let has_tsc = available.is_ok_and(|names| is_among(&names, "tsc"));
    if has_tsc && is_among(SLOW_CLOCKS, &source) {
        return one("slow beside tsc", [&source]);
    }
    Ok(vec![State::told(&current, &source)])
}

/// The models, each with the line of the kernel's configuration that makes it the first.
const CONFIGURED: [(&str, &str); 4] = [
    ("CONFIG_PREEMPT_NONE=y", "none"),
    ("CONFIG_PREEMPT_VOLUNTARY=y", "voluntary"),
    ("CONFIG_PREEMPT_LAZY=y", "lazy"),
    ("CONFIG_PREEMPT=y", "full"),
];
const SLOW_CLOCKS: &str = "hpet acpi_pm jiffies xen pit refined-jiffies";
const VERSION: &str = "/proc/sys/kernel/version";
const RELEASE: &str = "/proc/sys/kernel/osrelease";
const REAL_TIME_FILE: &str = "/sys/kernel/realtime";
const MODELS: &str = "/sys/kernel/debug/sched/preempt";
const SERVERS: &str = "/sys/kernel/debug/sched/fair_server";
const PERIOD: &str = "/proc/sys/kernel/sched_rt_period_us";
const CLOCKS: &str = "/sys/devices/system/clocksource/clocksource0";
