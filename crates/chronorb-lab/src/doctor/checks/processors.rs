//! The CPUs themselves.

use super::Examined;
use crate::doctor::finding::{Judgement, boot_with};
use crate::doctor::machine::{Machine, Unreadable};
use crate::environment::value_of;

/// How many there are.
pub(super) fn number(machine: &Machine) -> Examined {
    let online = machine.cpus("/sys/devices/system/cpu/online")?;
    let allowed = machine.allowed_cpus()?;
    let found = format!(
        "{} online, of which this process may use {} (CPUs {allowed})",
        online.len(),
        allowed.len()
    );
    if allowed.len() > 1 {
        return Ok(Judgement::good(found));
    }
    Ok(Judgement::costs(
        found,
        match online.len() {
            0 | 1 => "give the machine a second CPU".to_owned(),
            _ => format!("let the process use more of them:\n  taskset -c {online} PROGRAM"),
        },
    ))
}

/// Whether two CPUs share one core.
pub(super) fn siblings(machine: &Machine) -> Examined {
    match machine.read(SMT)?.as_str() {
        "0" => Ok(Judgement::good("each CPU has a core of its own")),
        "1" => Ok(Judgement::costs(
            "two CPUs or more share a core",
            format!(
                "switch it off, or leave the siblings of urgent CPUs idle:\n  \
                 echo off > /sys/devices/system/cpu/smt/control\n{}",
                boot_with("nosmt")
            ),
        )),
        other => Err(Unreadable::rubbish(SMT, other)),
    }
}

/// Whether somebody else may take the CPUs away.
pub(super) fn virtual_machine(machine: &Machine) -> Examined {
    let guest = |origin: &str| {
        Judgement::costs(
            format!("the kernel runs as a guest ({origin})"),
            "on the host: give each virtual CPU a CPU of its own (pinned, isolated), at a \
             real-time priority; or run on the hardware",
        )
    };
    if let Ok(kind) = machine.read("/sys/hypervisor/type") {
        return Ok(guest(&format!("/sys/hypervisor/type: {kind}")));
    }
    if let Ok(kind) = machine.read("/proc/device-tree/hypervisor/compatible") {
        let kind = kind.trim_end_matches('\0');
        return Ok(guest(&format!("device tree: {kind}")));
    }
    let info = machine.read(INFORMATION)?;
    match value_of(&info, "flags") {
        Some(flags) if flags.split_whitespace().any(|flag| flag == "hypervisor") => {
            Ok(guest("the CPU has the flag hypervisor"))
        }
        Some(_) => Ok(Judgement::good("the CPU does not have the flag hypervisor")),
        None => Ok(Judgement::unknown(
            format!("{INFORMATION} has no flags that would say it"),
            "ask:\n  systemd-detect-virt",
        )),
    }
}

const SMT: &str = "/sys/devices/system/cpu/smt/active";
const INFORMATION: &str = "/proc/cpuinfo";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{CannotBeTold, CostsLatency, Good};
    use crate::doctor::fixture::{UNREADABLE, assert_verdicts, finding};

    #[test]
    fn urgent_threads_want_a_cpu_beside_the_others() {
        let allowed = ("/proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-1\n");
        assert_verdicts(
            "cpus",
            &[("/sys/devices/system/cpu/online", "0-3")],
            "/proc/self/status",
            &[
                (allowed.1, Good),
                ("Cpus_allowed_list:\t2\n", CostsLatency),
                ("Cpus_allowed_list:\tbanana\n", CannotBeTold),
                ("banana", CannotBeTold),
                (UNREADABLE, CannotBeTold),
            ],
        );
        assert_verdicts(
            "cpus",
            &[allowed],
            "/sys/devices/system/cpu/online",
            &[
                ("0-1", Good),
                ("banana", CannotBeTold),
                (UNREADABLE, CannotBeTold),
            ],
        );
    }

    #[test]
    fn cores_are_shared_or_not() {
        assert_verdicts(
            "smt",
            &[],
            SMT,
            &[
                ("0", Good),
                ("1", CostsLatency),
                ("banana", CannotBeTold),
                (UNREADABLE, CannotBeTold),
            ],
        );
    }

    #[test]
    fn a_guest_is_known_by_what_its_hypervisor_shows() {
        assert_verdicts(
            "virtual-machine",
            &[],
            INFORMATION,
            &[
                ("flags\t\t: fpu vme", Good),
                ("flags\t\t: fpu hypervisor lahf_lm", CostsLatency),
                ("Features\t: fp asimd", CannotBeTold),
                ("banana", CannotBeTold),
                (UNREADABLE, CannotBeTold),
            ],
        );
        for path in [
            "/sys/hypervisor/type",
            "/proc/device-tree/hypervisor/compatible",
        ] {
            let finding = finding("virtual-machine", &[(path, "xen")]);
            assert_eq!(finding.verdict, CostsLatency, "{finding:?}");
        }
    }
}
