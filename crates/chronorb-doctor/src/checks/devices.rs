//! The CPUs that serve devices.

use super::cpus::{isolated, online};
use crate::check::{ReadStates, one};
use crate::machine::{Machine, Unreadable};

/// Reads which interrupts may be served where urgent threads run.
pub(super) fn affinity(machine: &Machine) -> ReadStates {
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
pub(super) fn balancer(machine: &Machine) -> ReadStates {
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

const INTERRUPTS: &str = "/proc/irq";
/// The number of interrupts that are named.
const SHOWN: usize = 8;
