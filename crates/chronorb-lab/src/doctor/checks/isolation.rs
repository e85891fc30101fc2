//! CPUs that the kernel keeps free for those who ask for them.

use super::Examined;
use crate::doctor::cpu_list::CpuList;
use crate::doctor::finding::{Judgement, boot_with};
use crate::doctor::machine::{Machine, Unreadable};

/// CPUs without other threads.
pub(super) fn isolated_cpus(machine: &Machine) -> Examined {
    let isolated = isolated(machine)?;
    if !isolated.is_empty() {
        return Ok(Judgement::good(format!("CPUs {isolated}")));
    }
    let remedy = match candidates(machine)? {
        list if list.is_empty() => {
            "give the machine a second CPU: one has to stay for all the rest".to_owned()
        }
        list => format!(
            "{}\nThen pin the urgent threads to them.",
            boot_with(&format!("isolcpus=managed_irq,domain,{list}"))
        ),
    };
    Ok(Judgement::costs("none", remedy))
}

/// CPUs without the periodic tick.
pub(super) fn nohz_full(machine: &Machine) -> Examined {
    let list = match machine.cpus(NOHZ_FULL) {
        Ok(list) => list,
        Err(unreadable) if unreadable.is_absent() => {
            return Ok(Judgement::missing(
                format!("the kernel is built without NO_HZ_FULL ({unreadable})"),
                "boot a kernel with CONFIG_NO_HZ_FULL=y",
            ));
        }
        Err(unreadable) => return Err(unreadable),
    };
    judge(machine, &list, "nohz_full")
}

/// CPUs that do not run other CPUs' or their own deferred work of the kernel (RCU).
pub(super) fn rcu_nocbs(machine: &Machine) -> Examined {
    let value = machine.boot_option("rcu_nocbs")?;
    let listed = match value.as_deref() {
        None => CpuList::default(),
        Some("all") => machine.cpus(ONLINE)?,
        Some(text) => {
            CpuList::parse(text).ok_or_else(|| Unreadable::rubbish("/proc/cmdline", text))?
        }
    };
    // The one implies the other.
    let without_tick = machine.cpus(NOHZ_FULL).unwrap_or_default();
    judge(machine, &listed.with(&without_tick), "rcu_nocbs")
}

/// The CPUs that are isolated, since the boot or by a partition of control groups.
pub(super) fn isolated(machine: &Machine) -> Result<CpuList, Unreadable> {
    let booted = machine.cpus(ISOLATED)?;
    let partitions = machine.cpus("/sys/fs/cgroup/cpuset.cpus.isolated");
    Ok(booted.with(&partitions.unwrap_or_default()))
}

fn judge(machine: &Machine, list: &CpuList, option: &str) -> Examined {
    let isolated = isolated(machine)?;
    let left = isolated.without(list);
    if !list.is_empty() && left.is_empty() {
        return Ok(Judgement::good(format!("CPUs {list} are free of it")));
    }
    let (found, wanted) = match isolated.is_empty() {
        true => ("no CPU is free of it".to_owned(), candidates(machine)?),
        false => (
            format!("the isolated CPUs {left} are not free of it"),
            isolated.with(list),
        ),
    };
    let remedy = match wanted.is_empty() {
        true => "give the machine a second CPU: one has to do this work".to_owned(),
        false => boot_with(&format!("{option}={wanted}")),
    };
    Ok(Judgement::costs(found, remedy))
}

/// The CPUs that might be isolated: all but the first.
fn candidates(machine: &Machine) -> Result<CpuList, Unreadable> {
    Ok(machine.cpus(ONLINE)?.iter().skip(1).collect())
}

const ISOLATED: &str = "/sys/devices/system/cpu/isolated";
const NOHZ_FULL: &str = "/sys/devices/system/cpu/nohz_full";
const ONLINE: &str = "/sys/devices/system/cpu/online";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{CannotBeTold, CostsLatency, Good, Missing};
    use crate::doctor::fixture::{UNREADABLE, assert_verdicts, finding};

    const FOUR: (&str, &str) = (ONLINE, "0-3");

    #[test]
    fn cpus_are_isolated_or_the_option_for_it_is_named() {
        assert_verdicts(
            "isolated-cpus",
            &[FOUR],
            ISOLATED,
            &[
                ("2-3\n", Good),
                ("\n", CostsLatency),
                ("banana", CannotBeTold),
                (UNREADABLE, CannotBeTold),
            ],
        );
        let remedy = finding("isolated-cpus", &[FOUR, (ISOLATED, "")]).remedy;
        assert!(remedy.unwrap().contains("isolcpus=managed_irq,domain,1-3"));
        let remedy = finding("isolated-cpus", &[(ONLINE, "0"), (ISOLATED, "")]).remedy;
        assert!(remedy.unwrap().contains("second CPU"));
    }

    #[test]
    fn a_partition_of_control_groups_isolates_too() {
        let partition = ("/sys/fs/cgroup/cpuset.cpus.isolated", "3");
        let finding = finding("isolated-cpus", &[FOUR, (ISOLATED, ""), partition]);
        assert_eq!((finding.verdict, &*finding.found), (Good, "CPUs 3"));
    }

    #[test]
    fn the_tick_is_off_on_isolated_cpus_or_costs() {
        assert_verdicts(
            "nohz-full",
            &[FOUR, (ISOLATED, "2-3")],
            NOHZ_FULL,
            &[
                ("2-3", Good),
                ("1-3", Good),
                ("3", CostsLatency),
                ("(null)", CostsLatency),
                ("", CostsLatency),
                ("banana", CannotBeTold),
                (UNREADABLE, CannotBeTold),
            ],
        );
        let finding = finding("nohz-full", &[FOUR, (ISOLATED, "")]);
        assert_eq!(finding.verdict, Missing, "{finding:?}");
    }

    #[test]
    fn callbacks_are_moved_by_either_option() {
        assert_verdicts(
            "rcu-nocbs",
            &[FOUR, (ISOLATED, "2-3")],
            "/proc/cmdline",
            &[
                ("quiet rcu_nocbs=2-3", Good),
                ("rcu_nocbs=all", Good),
                ("rcu_nocbs=2", CostsLatency),
                ("quiet", CostsLatency),
                ("rcu_nocbs=banana", CannotBeTold),
                (UNREADABLE, CannotBeTold),
            ],
        );
        let implied = [
            FOUR,
            (ISOLATED, "2-3"),
            (NOHZ_FULL, "2-3"),
            ("/proc/cmdline", "quiet"),
        ];
        assert_eq!(finding("rcu-nocbs", &implied).verdict, Good);
    }

    #[test]
    fn on_one_cpu_none_of_it_can_be_had() {
        let one = [
            (ONLINE, "0"),
            (ISOLATED, ""),
            (NOHZ_FULL, ""),
            ("/proc/cmdline", ""),
        ];
        for id in ["nohz-full", "rcu-nocbs"] {
            let remedy = finding(id, &one).remedy.unwrap();
            assert!(remedy.contains("second CPU"), "{remedy}");
        }
    }
}
