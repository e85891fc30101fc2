//! What CPUs do to save energy.

use std::collections::BTreeMap;

use super::Examined;
use crate::doctor::cpu_list::CpuList;
use crate::doctor::finding::{Judgement, boot_with};
use crate::doctor::machine::{Machine, Unreadable};

/// Who decides how fast the CPUs run.
pub(super) fn governor(machine: &Machine) -> Examined {
    let mut governors = BTreeMap::<String, CpuList>::new();
    for cpu in cpus(machine)? {
        let path = format!("{CPUS}/cpu{cpu}/cpufreq/scaling_governor");
        match machine.read(&path) {
            Ok(governor) if GOVERNORS.contains(&governor.as_str()) => {
                governors.entry(governor).or_default().insert(cpu);
            }
            Ok(other) => return Err(Unreadable::rubbish(&path, &other)),
            Err(unreadable) if unreadable.is_absent() => {}
            Err(unreadable) => return Err(unreadable),
        }
    }
    if governors.is_empty() {
        return Ok(Judgement::unknown(
            "no CPU shows a governor: the hypervisor or the firmware decides",
            "set the host's governor, or the firmware's profile, to performance; to watch the \
             frequency:\n  turbostat --interval 1",
        ));
    }
    let found = governors
        .iter()
        .map(|(governor, cpus)| format!("{governor} (CPUs {cpus})"))
        .collect::<Vec<_>>()
        .join(", ");
    if governors.keys().all(|governor| governor == "performance") {
        return Ok(Judgement::good(found));
    }
    Ok(Judgement::costs(
        found,
        "keep the frequency up:\n  cpupower frequency-set -g performance",
    ))
}

/// How deep idle CPUs sleep.
pub(super) fn idle_states(machine: &Machine) -> Examined {
    let mut deepest: Option<(u64, String)> = None;
    for cpu in cpus(machine)? {
        let folder = format!("{CPUS}/cpu{cpu}/cpuidle");
        let states = match machine.list(&folder) {
            Ok(names) => names,
            Err(unreadable) if unreadable.is_absent() => continue,
            Err(unreadable) => return Err(unreadable),
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
    match deepest {
        None if machine.boot_option("idle")?.as_deref() == Some("poll") => {
            Ok(Judgement::good("none: the kernel polls (idle=poll)"))
        }
        None => Ok(Judgement::unknown(
            "no CPU shows its idle states: the hypervisor or the firmware decides",
            "on the host or in the firmware, forbid deep idle states (C-states); or let the kernel \
             poll, which heats and takes the CPU's time from its sibling:\n  idle=poll",
        )),
        Some((latency, name)) if latency <= SHALLOW_US => Ok(Judgement::good(format!(
            "the deepest in use is {name:?}, left in {latency} µs"
        ))),
        Some((latency, name)) => Ok(Judgement::costs(
            format!("the deepest in use is {name:?}, left in {latency} µs, as the kernel says"),
            format!(
                "forbid the deep ones now:\n  cpupower idle-set -D {SHALLOW_US}\n{}",
                boot_with("processor.max_cstate=1 intel_idle.max_cstate=1")
            ),
        )),
    }
}

/// The CPUs that have a folder.
fn cpus(machine: &Machine) -> Result<Vec<usize>, Unreadable> {
    let names = machine.list(CPUS)?;
    let mut cpus: Vec<usize> = names
        .iter()
        .filter_map(|name| name.strip_prefix("cpu")?.parse().ok())
        .collect();
    cpus.sort_unstable();
    Ok(cpus)
}

const CPUS: &str = "/sys/devices/system/cpu";
const GOVERNORS: [&str; 6] = [
    "conservative",
    "ondemand",
    "performance",
    "powersave",
    "schedutil",
    "userspace",
];
/// A state that is left this soon is not felt beside a wake-up.
const SHALLOW_US: u64 = 10;

#[cfg(test)]
mod tests {
    use crate::doctor::finding::Verdict::{CannotBeTold, CostsLatency, Good};
    use crate::doctor::fixture::{UNREADABLE, assert_verdicts, finding};

    #[test]
    fn every_cpu_has_to_run_at_full_speed() {
        let first = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
        let second = "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor";
        assert_verdicts(
            "cpu-frequency",
            &[(first, "performance\n")],
            second,
            &[
                ("performance\n", Good),
                ("powersave", CostsLatency),
                ("banana", CannotBeTold),
                (UNREADABLE, CannotBeTold),
            ],
        );
        let found = finding(
            "cpu-frequency",
            &[(first, "schedutil"), (second, "schedutil")],
        );
        assert_eq!(found.found, "schedutil (CPUs 0-1)");
    }

    #[test]
    fn a_machine_without_governors_or_idle_states_does_not_tell() {
        let hidden = [
            ("/sys/devices/system/cpu/cpu0/online", "1"),
            ("/proc/cmdline", "quiet"),
        ];
        for id in ["cpu-frequency", "idle-states"] {
            for files in [&hidden[..], &[]] {
                let finding = finding(id, files);
                assert_eq!(finding.verdict, CannotBeTold, "{finding:?}");
            }
        }
        let polls = [hidden[0], ("/proc/cmdline", "idle=poll")];
        assert_eq!(finding("idle-states", &polls).verdict, Good);
    }

    #[test]
    fn a_deep_state_costs_unless_it_is_disabled() {
        let state = "/sys/devices/system/cpu/cpu0/cpuidle/state2";
        let path = |name: &str| format!("{state}/{name}");
        let (latency, disable, name) = (path("latency"), path("disable"), path("name"));
        assert_verdicts(
            "idle-states",
            &[(&disable, "0"), (&name, "C6")],
            &latency,
            &[
                ("2", Good),
                ("133", CostsLatency),
                ("banana", CannotBeTold),
                (UNREADABLE, CannotBeTold),
            ],
        );
        assert_verdicts(
            "idle-states",
            &[(&latency, "133"), (&name, UNREADABLE)],
            &disable,
            &[
                ("1", Good),
                ("0", CostsLatency),
                ("banana", CannotBeTold),
                (UNREADABLE, CannotBeTold),
            ],
        );
    }
}
