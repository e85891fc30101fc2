//! Which CPUs serve devices.

use super::Examined;
use super::isolation::isolated;
use crate::doctor::cpu_list::CpuList;
use crate::doctor::finding::Judgement;
use crate::doctor::machine::{Machine, Unreadable};

/// Interrupts that may be served where urgent threads run.
pub(super) fn affinity(machine: &Machine) -> Examined {
    let isolated = isolated(machine)?;
    let mut all = 0;
    let mut there = Vec::new();
    let mut unreadable = None;
    for interrupt in machine.list(INTERRUPTS)? {
        if interrupt.parse::<u32>().is_err() {
            continue;
        }
        all += 1;
        match machine.cpus(&format!("{INTERRUPTS}/{interrupt}/smp_affinity_list")) {
            Ok(cpus) if isolated.is_empty() || cpus.meets(&isolated) => there.push(interrupt),
            Ok(_) => {}
            Err(error) => unreadable = Some(error),
        }
    }
    if all == 0 {
        return Err(Unreadable::rubbish(INTERRUPTS, ""));
    }
    if there.is_empty() {
        return match unreadable {
            Some(error) => Err(error),
            None => Ok(Judgement::good(format!(
                "none of {all} may be served on the isolated CPUs {isolated}"
            ))),
        };
    }
    let found = match isolated.is_empty() {
        true => format!(
            "no CPU is isolated, so that {} of {all} may come where urgent threads run",
            there.len()
        ),
        false => format!(
            "{} of {all} may be served on the isolated CPUs {isolated}: {}",
            there.len(),
            some(&there)
        ),
    };
    let home = home(machine, &isolated)?;
    Ok(Judgement::costs(
        found,
        format!(
            "keep them on the other CPUs; some drivers do not let theirs be moved:\n  \
             for i in /proc/irq/[0-9]*; do echo {home} > $i/smp_affinity_list; done\n\
             For those to come, on the kernel's command line:\n  irqaffinity={home}"
        ),
    ))
}

/// Whether somebody moves interrupts.
pub(super) fn balancer(machine: &Machine) -> Examined {
    // The kernel's own threads are seen only where all processes are.
    let kthreadd = machine.read("/proc/2/comm")?;
    if kthreadd != "kthreadd" {
        return Ok(Judgement::unknown(
            format!("process 2 is {kthreadd:?}, not the kernel's: those of the machine are hidden"),
            "look outside of the container:\n  pgrep irqbalance",
        ));
    }
    for process in machine.list("/proc")? {
        let is_process = process.parse::<u32>().is_ok();
        // A process may end meanwhile.
        let name = is_process.then(|| machine.read(&format!("/proc/{process}/comm")));
        if name.is_some_and(|name| name.is_ok_and(|name| name == "irqbalance")) {
            return Ok(Judgement::costs(
                format!("irqbalance runs (process {process})"),
                "stop it and set the interrupts' CPUs by hand:\n  \
                 systemctl disable --now irqbalance",
            ));
        }
    }
    Ok(Judgement::good("irqbalance does not run"))
}

/// Where interrupts should go: the CPUs that are not isolated, or the first.
fn home(machine: &Machine, isolated: &CpuList) -> Result<CpuList, Unreadable> {
    let online = machine.cpus("/sys/devices/system/cpu/online")?;
    Ok(match isolated.is_empty() {
        true => online.iter().take(1).collect(),
        false => online.without(isolated),
    })
}

/// The first of many names.
fn some(names: &[String]) -> String {
    let mut text = names[..names.len().min(SHOWN)].join(", ");
    if names.len() > SHOWN {
        text.push_str(", …");
    }
    text
}

const INTERRUPTS: &str = "/proc/irq";
const SHOWN: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{CannotBeTold, CostsLatency, Good};
    use crate::doctor::fixture::{UNREADABLE, assert_verdicts, finding};

    const ONLINE: (&str, &str) = ("/sys/devices/system/cpu/online", "0-3");
    const ISOLATED: &str = "/sys/devices/system/cpu/isolated";

    #[test]
    fn interrupts_stay_away_from_isolated_cpus_or_cost() {
        assert_verdicts(
            "interrupt-affinity",
            &[
                ONLINE,
                (ISOLATED, "2-3"),
                ("/proc/irq/24/smp_affinity_list", "0"),
                ("/proc/irq/default_smp_affinity", "f"),
            ],
            "/proc/irq/25/smp_affinity_list",
            &[
                ("0-1", Good),
                ("3", CostsLatency),
                ("0-3", CostsLatency),
                ("banana", CannotBeTold),
                (UNREADABLE, CannotBeTold),
            ],
        );
    }

    #[test]
    fn without_isolated_cpus_interrupts_come_everywhere() {
        let interrupt = ("/proc/irq/24/smp_affinity_list", "0");
        let finding = finding("interrupt-affinity", &[ONLINE, (ISOLATED, ""), interrupt]);
        assert_eq!(finding.verdict, CostsLatency);
        assert!(finding.remedy.unwrap().contains("irqaffinity=0"));
    }

    #[test]
    fn a_machine_that_shows_no_interrupts_does_not_tell() {
        for files in [
            &[ONLINE, (ISOLATED, "")][..],
            &[ONLINE, (ISOLATED, ""), ("/proc/irq", UNREADABLE)],
            &[ONLINE, ("/proc/irq/24/smp_affinity_list", "0")],
        ] {
            let finding = finding("interrupt-affinity", files);
            assert_eq!(finding.verdict, CannotBeTold, "{finding:?}");
        }
    }

    #[test]
    fn many_interrupts_are_not_all_named() {
        let names: Vec<_> = (0..20).map(|n| n.to_string()).collect();
        assert_eq!(some(&names), "0, 1, 2, 3, 4, 5, 6, 7, …");
    }

    #[test]
    fn the_balancer_is_found_among_all_processes() {
        assert_verdicts(
            "irqbalance",
            &[
                ("/proc/2/comm", "kthreadd"),
                ("/proc/cpuinfo", "irqbalance"),
            ],
            "/proc/700/comm",
            &[
                ("bash", Good),
                ("irqbalance\n", CostsLatency),
                (UNREADABLE, Good),
            ],
        );
    }

    #[test]
    fn in_a_container_the_balancer_cannot_be_seen() {
        assert_verdicts(
            "irqbalance",
            &[("/proc/1/comm", "sh")],
            "/proc/2/comm",
            &[("bash", CannotBeTold), (UNREADABLE, CannotBeTold)],
        );
        assert_eq!(finding("irqbalance", &[]).verdict, CannotBeTold);
    }
}
