//! The CPUs: their number, speed, sleep and isolation.

use std::collections::BTreeMap;

use crate::check::{ReadStates, one};
use crate::cpu_list::CpuList;
use crate::environment::ProcessorTime;
use crate::machine::{Machine, Unreadable, is_among, value_of};

/// Reads the numbers of CPUs that are online, and that this process may use.
pub(super) fn number(machine: &Machine) -> ReadStates {
    let (online, allowed) = (online(machine)?, machine.allowed_cpus()?);
    let state = match (online.len(), allowed.len()) {
        (_, 2..) => "several",
        (0 | 1, _) => "one",
        _ => "one of several",
    };
    one(state, [&online.len(), &allowed.len(), &allowed, &online])
}

/// Reads whether the kernel runs as a guest.
pub(super) fn virtual_machine(machine: &Machine) -> ReadStates {
    if let Ok(kind) = machine.read("/sys/hypervisor/type") {
        return one("guest", [&format!("/sys/hypervisor/type: {kind}")]);
    }
    if let Ok(kind) = machine.read("/proc/device-tree/hypervisor/compatible") {
        let kind = kind.trim_end_matches('\0');
        return one("guest", [&format!("device tree: {kind}")]);
    }
    let information = machine.read("/proc/cpuinfo")?;
    match value_of(&information, "flags") {
        Some(flags) if flags.split_whitespace().any(|flag| flag == "hypervisor") => {
            one("guest", [&"the CPU has the flag hypervisor"])
        }
        Some(_) => one("hardware", []),
        None => one("untold", []),
    }
}

/// Reads the share of the processors' time that the host took.
pub(super) fn stolen_time(machine: &Machine) -> ReadStates {
    let path = "/proc/stat";
    let text = machine.read(path)?;
    let percent = ProcessorTime::parse(&text).stolen_since_start();
    let percent = percent.ok_or_else(|| Unreadable::rubbish(path, &text))?;
    let state = if percent < UNNOTABLE_PERCENT {
        "none"
    } else {
        "taken"
    };
    one(state, [&format!("{percent:.2}")])
}

/// Reads the isolated CPUs.
pub(super) fn isolated_cpus(machine: &Machine) -> ReadStates {
    let isolated = isolated(machine)?;
    if !isolated.is_empty() {
        return one("some", [&isolated]);
    }
    unisolated(machine)
}

/// Reads which isolated CPUs have the tick.
pub(super) fn tick(machine: &Machine) -> ReadStates {
    freed(machine, &machine.cpus(NOHZ_FULL)?)
}

/// Reads which isolated CPUs run deferred work of the kernel.
pub(super) fn callbacks(machine: &Machine) -> ReadStates {
    let listed = match machine.boot_option("rcu_nocbs")?.as_deref() {
        None => CpuList::default(),
        Some("all") => online(machine)?,
        Some(text) => {
            CpuList::parse(text).ok_or_else(|| Unreadable::rubbish("/proc/cmdline", text))?
        }
    };
    // nohz_full implies rcu_nocbs.
    let tickless = machine.cpus(NOHZ_FULL).unwrap_or_default();
    freed(machine, &listed.with(&tickless))
}

/// Returns the CPUs that are isolated, since the boot or by a partition of control groups.
pub(super) fn isolated(machine: &Machine) -> Result<CpuList, Unreadable> {
    let booted = machine.cpus("/sys/devices/system/cpu/isolated")?;
    let partitions = machine.cpus("/sys/fs/cgroup/cpuset.cpus.isolated");
    Ok(booted.with(&partitions.unwrap_or_default()))
}

/// Returns the CPUs that are online.
pub(super) fn online(machine: &Machine) -> Result<CpuList, Unreadable> {
    machine.cpus("/sys/devices/system/cpu/online")
}

/// Returns the state of a machine without isolated CPUs: those that might be are all but the first.
fn unisolated(machine: &Machine) -> ReadStates {
    let candidates: CpuList = online(machine)?.iter().skip(1).collect();
    let is_single = candidates.is_empty();
    one(if is_single { "impossible" } else { "none" }, [&candidates])
}

/// Compares the CPUs that are free of a kind of kernel work with the isolated ones.
fn freed(machine: &Machine, free: &CpuList) -> ReadStates {
    let isolated = isolated(machine)?;
    let left = isolated.without(free);
    if !free.is_empty() && left.is_empty() {
        return one("freed", [free]);
    }
    if !isolated.is_empty() {
        return one("part", [&isolated.with(free), &left]);
    }
    unisolated(machine)
}

/// Reads the frequency governors.
pub(super) fn governors(machine: &Machine) -> ReadStates {
    let mut governors = BTreeMap::<String, CpuList>::new();
    for cpu in cpu_folders(machine)?.iter() {
        let path = format!("{CPUS}/cpu{cpu}/cpufreq/scaling_governor");
        match machine.read(&path) {
            Ok(governor) if is_among(GOVERNORS, &governor) => {
                governors.entry(governor).or_default().insert(cpu);
            }
            Ok(other) => return Err(Unreadable::rubbish(&path, &other)),
            Err(unreadable) if unreadable.absent().is_some() => {}
            Err(unreadable) => return Err(unreadable),
        }
    }
    let state = match governors.len() {
        0 => "untold",
        1 if governors.contains_key("performance") => "performance",
        _ => "other",
    };
    let found = governors.iter();
    let found: Vec<_> = found
        .map(|(name, cpus)| format!("{name} (CPUs {cpus})"))
        .collect();
    one(state, [&found.join(", ")])
}

/// Reads the deepest idle state of any CPU.
pub(super) fn idle_states(machine: &Machine) -> ReadStates {
    let mut deepest: Option<(u64, String)> = None;
    for cpu in cpu_folders(machine)?.iter() {
        let folder = format!("{CPUS}/cpu{cpu}/cpuidle");
        let states = match machine.list(&folder) {
            Err(unreadable) if unreadable.absent().is_some() => continue,
            states => states?,
        };
        for state in states.iter().filter(|name| name.starts_with("state")) {
            let disabled: u64 = machine.value(&format!("{folder}/{state}/disable"))?;
            let latency: u64 = machine.value(&format!("{folder}/{state}/latency"))?;
            let latency = if disabled == 0 { latency } else { 0 };
            if deepest.as_ref().is_none_or(|(most, _)| latency > *most) {
                let name = machine.read(&format!("{folder}/{state}/name"));
                deepest = Some((latency, name.unwrap_or_else(|_| state.clone())));
            }
        }
    }
    let Some((latency, name)) = deepest else {
        let polls = machine.boot_option("idle")?.as_deref() == Some("poll");
        return one(if polls { "polling" } else { "untold" }, []);
    };
    let is_shallow = latency <= SHALLOW_US;
    let state = if is_shallow { "shallow" } else { "deep" };
    one(state, [&format!("{name:?}"), &latency])
}

/// Returns the CPUs that have a folder.
fn cpu_folders(machine: &Machine) -> Result<CpuList, Unreadable> {
    let names = machine.list(CPUS)?;
    let numbers = names
        .iter()
        .filter_map(|name| name.strip_prefix("cpu")?.parse().ok());
    Ok(numbers.collect())
}

const CPUS: &str = "/sys/devices/system/cpu";
const NOHZ_FULL: &str = "/sys/devices/system/cpu/nohz_full";
const GOVERNORS: &str = "conservative ondemand performance powersave schedutil userspace";
/// The exit latency that does not count beside a wake-up. The remedy of deep states has it too.
const SHALLOW_US: u64 = 10;

/// Stolen time in hundredths that no percentile shows.
const UNNOTABLE_PERCENT: f64 = 0.05;
