//! The CPUs: their number, speed, sleep and isolation.

use std::collections::BTreeMap;

use crate::check::{Check, Reading, boot_with, costs, good, missing, one, told, unknown};
use crate::cpu_list::CpuList;
use crate::machine::{Machine, Unreadable, value_of};

pub(super) static NUMBER: Check = Check {
    id: "cpus",
    title: "CPUs",
    cost: "urgent threads share their CPU with all others: each interrupt and each section of the \
           kernel that cannot be preempted delays them",
    look: "ask:\n  nproc --all; taskset -cp $$",
    read: |machine| {
        let (online, allowed) = (online(machine)?, machine.allowed_cpus()?);
        let state = match (online.len(), allowed.len()) {
            (_, 2..) => "several",
            (0 | 1, _) => "one",
            _ => "one of several",
        };
        one(state, [&online.len(), &allowed.len(), &allowed, &online])
    },
    rules: &[
        good("several", ALLOWED),
        costs("one", ALLOWED, "give the machine a second CPU"),
        costs(
            "one of several",
            ALLOWED,
            "let the process use more of them:\n  taskset -c {3} PROGRAM",
        ),
    ],
};

pub(super) static SHARED_CORES: Check = Check {
    id: "smt",
    title: "Shared cores",
    cost: "a thread runs at about half the speed while the other thread of its core is busy, and \
           shares its caches",
    look: "ask:\n  lscpu --extended",
    read: |machine| told(machine, "/sys/devices/system/cpu/smt/active"),
    rules: &[
        good("0", "each CPU has a core of its own"),
        costs(
            "1",
            "two CPUs or more share a core",
            concat!(
                "switch it off, or leave the siblings of urgent CPUs idle:\n  \
                 echo off > /sys/devices/system/cpu/smt/control\n",
                boot_with!("nosmt")
            ),
        ),
    ],
};

pub(super) static VIRTUAL_MACHINE: Check = Check {
    id: "virtual-machine",
    title: "Virtual machine",
    cost: "the host may take a CPU away at any time: ms; interrupts and idling go through the \
           hypervisor: tens of µs",
    look: "ask:\n  systemd-detect-virt",
    read: |machine| {
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
    },
    rules: &[
        good("hardware", "the CPU does not have the flag hypervisor"),
        costs(
            "guest",
            "the kernel runs as a guest ({0})",
            "on the host: give each virtual CPU a CPU of its own (pinned, isolated), at a \
             real-time priority; or run on the hardware",
        ),
        unknown(
            "untold",
            "/proc/cpuinfo has no flags that would show it",
            "ask:\n  systemd-detect-virt",
        ),
    ],
};

pub(super) static ISOLATED: Check = Check {
    id: "isolated-cpus",
    title: "Isolated CPUs",
    cost: "other threads, and work of the kernel on their behalf, run on the CPUs of urgent \
           threads and leave cold caches: tens to hundreds of µs",
    look: "read the kernel's command line:\n  grep -o 'isolcpus=[^ ]*' /proc/cmdline",
    read: |machine| {
        let isolated = isolated(machine)?;
        if !isolated.is_empty() {
            return one("some", [&isolated]);
        }
        let candidates = candidates(machine)?;
        let state = if candidates.is_empty() {
            "impossible"
        } else {
            "none"
        };
        one(state, [&candidates])
    },
    rules: &[
        good("some", "CPUs {0}"),
        costs(
            "none",
            "none",
            concat!(
                boot_with!("isolcpus=managed_irq,domain,{0}"),
                "\nThen pin the urgent threads to them."
            ),
        ),
        costs(
            "impossible",
            "none",
            "give the machine a second CPU: one has to remain for all other work",
        ),
    ],
};

pub(super) static TICK: Check = Check {
    id: "nohz-full",
    title: "Tick",
    cost: "the kernel interrupts a busy CPU 100 to 1000 times a second, for some µs",
    look: "read the kernel's command line:\n  grep -o 'nohz_full=[^ ]*' /proc/cmdline",
    read: |machine| freed(machine, &machine.cpus(NOHZ_FULL)?),
    rules: &[
        missing(
            NOHZ_FULL,
            "the kernel is built without NO_HZ_FULL ({0})",
            "boot a kernel with CONFIG_NO_HZ_FULL=y",
        ),
        good("freed", FREED),
        costs("none", NOT_FREED, boot_with!("nohz_full={0}")),
        costs("part", PARTLY_FREED, boot_with!("nohz_full={0}")),
        costs("impossible", NOT_FREED, SECOND_CPU),
    ],
};

pub(super) static CALLBACKS: Check = Check {
    id: "rcu-nocbs",
    title: "RCU callbacks",
    cost: "deferred work of the kernel runs on the CPUs of urgent threads: tens of µs",
    look: "read the kernel's command line:\n  grep -o 'rcu_nocbs=[^ ]*' /proc/cmdline",
    read: |machine| {
        let listed = match machine.boot_option("rcu_nocbs")?.as_deref() {
            None => CpuList::default(),
            Some("all") => online(machine)?,
            Some(text) => {
                CpuList::parse(text).ok_or_else(|| Unreadable::rubbish("/proc/cmdline", text))?
            }
        };
        // nohz_full implies rcu_nocbs.
        freed(
            machine,
            &listed.with(&machine.cpus(NOHZ_FULL).unwrap_or_default()),
        )
    },
    rules: &[
        good("freed", FREED),
        costs("none", NOT_FREED, boot_with!("rcu_nocbs={0}")),
        costs("part", PARTLY_FREED, boot_with!("rcu_nocbs={0}")),
        costs("impossible", NOT_FREED, SECOND_CPU),
    ],
};

pub(super) static FREQUENCY: Check = Check {
    id: "cpu-frequency",
    title: "CPU frequency",
    cost: "a CPU that was idle is slow until the governor raises its frequency: the same work \
           takes several times as long, for ms",
    look: "ask:\n  cpupower frequency-info",
    read: governors,
    rules: &[
        good("performance", "{0}"),
        costs(
            "other",
            "{0}",
            "keep the frequency up:\n  cpupower frequency-set -g performance",
        ),
        unknown(
            "untold",
            "no CPU shows a governor: the hypervisor or the firmware decides",
            "set the host's governor, or the firmware's profile, to performance; to watch the \
             frequency:\n  turbostat --interval 1",
        ),
    ],
};

pub(super) static IDLE_STATES: Check = Check {
    id: "idle-states",
    title: "Idle states",
    cost: "an idle CPU first has to leave its idle state when work comes: hundreds of µs from deep \
           ones",
    look: "ask:\n  cpupower idle-info",
    read: idle_states,
    rules: &[
        good("polling", "none: the kernel polls (idle=poll)"),
        good("shallow", "the deepest in use is {0}, left in {1} µs"),
        costs(
            "deep",
            "the deepest in use is {0}, left in {1} µs by the kernel's account",
            concat!(
                "forbid the deep ones now:\n  cpupower idle-set -D 10\n",
                boot_with!("processor.max_cstate=1 intel_idle.max_cstate=1")
            ),
        ),
        unknown(
            "untold",
            "no CPU shows its idle states: the hypervisor or the firmware decides",
            "on the host or in the firmware, forbid deep idle states (C-states); or let the kernel \
             poll, which heats the CPU and takes time from its sibling:\n  idle=poll",
        ),
    ],
};

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

/// Returns the CPUs that might be isolated: all but the first.
fn candidates(machine: &Machine) -> Result<CpuList, Unreadable> {
    Ok(online(machine)?.iter().skip(1).collect())
}

/// Compares the CPUs that are free of a kind of kernel work with the isolated ones.
fn freed(machine: &Machine, free: &CpuList) -> Reading {
    let isolated = isolated(machine)?;
    let left = isolated.without(free);
    if !free.is_empty() && left.is_empty() {
        return one("freed", [free]);
    }
    if !isolated.is_empty() {
        return one("part", [&isolated.with(free), &left]);
    }
    let candidates = candidates(machine)?;
    let state = if candidates.is_empty() {
        "impossible"
    } else {
        "none"
    };
    one(state, [&candidates])
}

/// Reads the frequency governors.
fn governors(machine: &Machine) -> Reading {
    let mut governors = BTreeMap::<String, CpuList>::new();
    for cpu in cpu_folders(machine)?.iter() {
        let path = format!("{CPUS}/cpu{cpu}/cpufreq/scaling_governor");
        match machine.read(&path) {
            Ok(governor) if GOVERNORS.contains(&governor.as_str()) => {
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
    let found = governors
        .iter()
        .map(|(name, cpus)| format!("{name} (CPUs {cpus})"));
    one(state, [&found.collect::<Vec<_>>().join(", ")])
}

/// Reads the deepest idle state of any CPU.
fn idle_states(machine: &Machine) -> Reading {
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
    let state = if latency <= SHALLOW_US {
        "shallow"
    } else {
        "deep"
    };
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

const ALLOWED: &str = "{0} online, of which this process may use {1} (CPUs {2})";
const FREED: &str = "CPUs {0} are free of it";
const PARTLY_FREED: &str = "the isolated CPUs {1} are not free of it";
const NOT_FREED: &str = "no CPU is free of it";
const SECOND_CPU: &str = "give the machine a second CPU: one has to do this work";
const CPUS: &str = "/sys/devices/system/cpu";
const NOHZ_FULL: &str = "/sys/devices/system/cpu/nohz_full";
const GOVERNORS: [&str; 6] = [
    "conservative",
    "ondemand",
    "performance",
    "powersave",
    "schedutil",
    "userspace",
];
/// The exit latency that does not count beside a wake-up. The remedy of deep states has it too.
const SHALLOW_US: u64 = 10;
