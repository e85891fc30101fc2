//! The CPUs that serve devices.

use super::cpus::{isolated, online};
use crate::check::{Check, Reading, costs, good, one, unknown};
use crate::machine::{Machine, Unreadable};

pub(super) static AFFINITY: Check = Check {
    id: "interrupt-affinity",
    title: "Interrupts",
    cost: "an interrupt of a device stops the thread that runs there: some to tens of µs each",
    look: "as root:\n  grep . /proc/irq/*/smp_affinity_list",
    read: affinity,
    rules: &[
        good(
            "elsewhere",
            "none of {1} may be served on the isolated CPUs {2}",
        ),
        costs(
            "anywhere",
            "no CPU is isolated, so that {0} of {1} may come where urgent threads run",
            MOVE_INTERRUPTS,
        ),
        costs(
            "isolated",
            "{0} of {1} may be served on the isolated CPUs {2}: {4}",
            MOVE_INTERRUPTS,
        ),
    ],
};

pub(super) static BALANCER: Check = Check {
    id: "irqbalance",
    title: "irqbalance",
    cost: "interrupts are moved by load, also to the CPUs of urgent threads that are not isolated: \
           some to tens of µs each",
    look: "ask:\n  pgrep irqbalance",
    read: balancer,
    rules: &[
        good("absent", "irqbalance does not run"),
        costs(
            "running",
            "irqbalance runs (process {0})",
            "stop it and set the interrupts' CPUs by hand:\n  systemctl disable --now irqbalance",
        ),
        unknown(
            "hidden",
            "process 2 is {0}, not the kernel's: the machine's processes are hidden",
            "look outside of the container:\n  pgrep irqbalance",
        ),
    ],
};

/// Reads which interrupts may be served where urgent threads run.
fn affinity(machine: &Machine) -> Reading {
    let isolated = isolated(machine)?;
    let interrupts = machine.list(INTERRUPTS)?;
    let interrupts = interrupts.iter().filter(|name| name.parse::<u32>().is_ok());
    let (mut all, mut there, mut unreadable) = (0, Vec::new(), None);
    for interrupt in interrupts {
        all += 1;
        match machine.cpus(&format!("{INTERRUPTS}/{interrupt}/smp_affinity_list")) {
            Ok(cpus) if isolated.is_empty() || cpus.meets(&isolated) => {
                there.push(interrupt.as_str());
            }
            Ok(_) => {}
            Err(error) => unreadable = Some(error),
        }
    }
    if all == 0 {
        return Err(Unreadable::rubbish(INTERRUPTS, ""));
    }
    if there.is_empty()
        && let Some(error) = unreadable
    {
        return Err(error);
    }
    let (state, home) = match (there.is_empty(), isolated.is_empty()) {
        (true, _) => ("elsewhere", isolated.clone()),
        (false, true) => ("anywhere", online(machine)?.iter().take(1).collect()),
        (false, false) => ("isolated", online(machine)?.without(&isolated)),
    };
    let more = if there.len() > SHOWN { ", …" } else { "" };
    let names = there[..there.len().min(SHOWN)].join(", ") + more;
    one(state, [&there.len(), &all, &isolated, &home, &names])
}

/// Looks for the process that moves interrupts.
fn balancer(machine: &Machine) -> Reading {
    // The kernel's threads are visible only where all processes are.
    let kthreadd = machine.read("/proc/2/comm")?;
    if kthreadd != "kthreadd" {
        return one("hidden", [&format!("{kthreadd:?}")]);
    }
    let processes = machine.list("/proc")?;
    // A process may end meanwhile.
    let is_balancer = |process: &&String| {
        process.parse::<u32>().is_ok()
            && machine.read(&format!("/proc/{process}/comm")).as_deref() == Ok("irqbalance")
    };
    let found = processes.iter().find(is_balancer);
    found.map_or_else(|| one("absent", []), |process| one("running", [process]))
}

const MOVE_INTERRUPTS: &str = "keep them on the other CPUs; some drivers do not let theirs be moved:\n  \
     for i in /proc/irq/[0-9]*; do echo {3} > $i/smp_affinity_list; done\n\
     For later ones, on the kernel's command line:\n  irqaffinity={3}";
const INTERRUPTS: &str = "/proc/irq";
/// The number of interrupts that are named.
const SHOWN: usize = 8;
