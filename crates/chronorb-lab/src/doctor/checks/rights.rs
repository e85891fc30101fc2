//! What this process may do.

use chronorb_rt::{MemoryLock, Missing, PriorityRefusal};

use super::Examined;
use crate::doctor::finding::Judgement;
use crate::doctor::machine::{Machine, Unreadable};

/// Real-time priorities, found by trying.
pub(super) fn priorities(machine: &Machine) -> Examined {
    let granted = match machine.rights.max_fifo {
        Some(max) => format!("SCHED_FIFO 1 to {max} granted"),
        None => "SCHED_FIFO refused".to_owned(),
    };
    let found = format!("{granted}, as tried ({})", reasons(machine));
    // The ORB leaves 99 to the kernel.
    if machine.rights.max_fifo.is_some_and(|max| max >= 98) {
        return Ok(Judgement::good(found));
    }
    let mut rights = machine.rights;
    rights.memory_lock = MemoryLock::Unlimited;
    Ok(Judgement::missing(found, remedy(&rights.missing())))
}

/// The budget of the control group, where the kernel has `RT_GROUP_SCHED`.
pub(super) fn group_budget(machine: &Machine) -> Examined {
    let remedy = "give the group a share, after those above it, or run in the root group:\n  \
                  echo 900000 > /sys/fs/cgroup/cpu/GROUP/cpu.rt_runtime_us\n  \
                  docker run --cpu-rt-runtime=900000 …";
    if let Some(folder) = cpu_group(machine)? {
        let path = format!("{folder}/cpu.rt_runtime_us");
        return match machine.value::<i64>(&path) {
            Ok(0) => Ok(Judgement::missing(format!("{path} is 0"), remedy)),
            Ok(-1) => Ok(Judgement::good(format!("without bound ({path} is -1)"))),
            Ok(runtime) if runtime > 0 => {
                let period: i64 = machine.value(&format!("{folder}/cpu.rt_period_us"))?;
                // The kernel's own bound for all is another check.
                Ok(Judgement::good(format!(
                    "{runtime} µs of each {period} µs for this group"
                )))
            }
            Ok(other) => Err(Unreadable::rubbish(&path, &other.to_string())),
            Err(unreadable) if unreadable.is_absent() => Ok(Judgement::good(
                "no budget is needed: the kernel does not divide real time among groups",
            )),
            Err(unreadable) => Err(unreadable),
        };
    }
    match (machine.rights.max_fifo, machine.rights.refusal) {
        (Some(_), _) => Ok(Judgement::good(
            "none shown, and a thread of this group was granted real time",
        )),
        (None, Some(PriorityRefusal::ControlGroup)) => Ok(Judgement::missing(
            "the right is there, and real time is refused to a thread of this group",
            remedy,
        )),
        (None, _) => Ok(Judgement::unknown(
            "no group shows a budget, and without the right it cannot be tried",
            "grant the right first (real-time priorities), then look again",
        )),
    }
}

/// How much memory may be locked, found by trying.
pub(super) fn memory_lock(machine: &Machine) -> Examined {
    let found = match machine.rights.memory_lock {
        MemoryLock::Unlimited => return Ok(Judgement::good("all memory may be locked, as tried")),
        MemoryLock::Limited(octets) => format!("only {} KiB may be locked", octets >> 10),
        MemoryLock::None => "no memory may be locked".to_owned(),
    };
    let mut rights = machine.rights;
    (rights.max_fifo, rights.refusal) = (Some(99), None);
    Ok(Judgement::missing(found, remedy(&rights.missing())))
}

fn remedy(missing: &[Missing]) -> String {
    missing.iter().map(|right| right.remedy).collect()
}

/// What the rights stem from, as far as it can be read.
fn reasons(machine: &Machine) -> String {
    let status = machine.read("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    let capability = match effective.map(|sets| sets & CAP_SYS_NICE != 0) {
        Some(true) => "with CAP_SYS_NICE",
        Some(false) => "without CAP_SYS_NICE",
        None => "CAP_SYS_NICE unknown",
    };
    let limits = machine.read("/proc/self/limits").unwrap_or_default();
    let limit = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max realtime priority"))
        .and_then(|text| text.split_whitespace().next());
    format!("{capability}, RTPRIO limit {}", limit.unwrap_or("unknown"))
}

/// The folder of this process's group in the hierarchy of the controller `cpu`, version 1, which
/// alone has budgets; nothing where it is not mounted.
fn cpu_group(machine: &Machine) -> Result<Option<String>, Unreadable> {
    let mounts = machine.read("/proc/self/mounts")?;
    let mount = mounts.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (folder, kind, options) = (words.next()?, words.next()?, words.next()?);
        let is_cpu = kind == "cgroup" && options.split(',').any(|option| option == "cpu");
        is_cpu.then_some(folder)
    });
    let Some(mount) = mount else {
        return Ok(None);
    };
    let groups = machine.read("/proc/self/cgroup")?;
    let group = groups.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let is_cpu = controllers.split(',').any(|controller| controller == "cpu");
        is_cpu.then_some(path.trim_end_matches('/'))
    });
    let group = group.ok_or_else(|| Unreadable::rubbish("/proc/self/cgroup", &groups))?;
    let folder = format!("{mount}{group}");
    // Within a container the group is the mount itself, whatever its path outside.
    Ok(Some(match machine.exists(&folder) {
        true => folder,
        false => mount.to_owned(),
    }))
}

const CAP_SYS_NICE: u64 = 1 << 23;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{self, CannotBeTold, Good, Missing};
    use crate::doctor::fixture::{Fixture, UNREADABLE, assert_verdicts};

    fn with_rights(max_fifo: Option<u8>, refusal: Option<PriorityRefusal>) -> Fixture {
        let mut fixture = Fixture::new(&[]);
        fixture.machine.rights.max_fifo = max_fifo;
        fixture.machine.rights.refusal = refusal;
        fixture
    }

    #[test]
    fn priorities_that_the_orb_uses_must_be_granted() {
        let refusal = Some(PriorityRefusal::NoRight);
        for (max, verdict) in [(Some(99), Good), (Some(98), Good), (Some(10), Missing)] {
            let finding = with_rights(max, refusal).finding("rt-priorities");
            assert_eq!(finding.verdict, verdict, "{finding:?}");
        }
        let finding = with_rights(None, refusal).finding("rt-priorities");
        assert_eq!(finding.verdict, Missing);
        assert!(finding.remedy.unwrap().contains("CAP_SYS_NICE"));
    }

    #[test]
    fn the_reasons_of_a_grant_are_told_where_they_can_be_read() {
        let fixture = with_rights(Some(99), None);
        let found = |fixture: &Fixture| fixture.finding("rt-priorities").found;
        assert!(found(&fixture).contains("CAP_SYS_NICE unknown, RTPRIO limit unknown"));
        fixture.add(&[
            ("/proc/self/status", "Name:\tx\nCapEff:\t0000000000800000\n"),
            (
                "/proc/self/limits",
                "Limit   Soft Limit   Hard Limit   Units\nMax realtime priority     17     99\n",
            ),
        ]);
        assert!(found(&fixture).contains("with CAP_SYS_NICE, RTPRIO limit 17"));
        fixture.add(&[("/proc/self/status", "CapEff:\tbanana\n")]);
        assert!(found(&fixture).contains("CAP_SYS_NICE unknown"));
    }

    #[test]
    fn memory_may_be_locked_or_not() {
        for (lock, verdict) in [
            (MemoryLock::Unlimited, Good),
            (MemoryLock::Limited(8 << 20), Missing),
            (MemoryLock::None, Missing),
        ] {
            let mut fixture = Fixture::new(&[]);
            fixture.machine.rights.memory_lock = lock;
            let finding = fixture.finding("memory-lock");
            assert_eq!(finding.verdict, verdict, "{finding:?}");
        }
    }

    const MOUNTS: (&str, &str) = (
        "/proc/self/mounts",
        "cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu,cpuacct 0 0\n",
    );
    const BUDGET: &str = "/sys/fs/cgroup/cpu/lab/cpu.rt_runtime_us";

    #[test]
    fn a_group_has_a_budget_or_needs_none() {
        let period = ("/sys/fs/cgroup/cpu/lab/cpu.rt_period_us", "1000000");
        let group = ("/proc/self/cgroup", "7:pids:/\n1:cpuacct,cpu:/lab\n0::/\n");
        assert_verdicts(
            "rt-group-budget",
            &[MOUNTS, group, period],
            BUDGET,
            &[
                ("950000", Good),
                ("-1", Good),
                ("0", Missing),
                ("-7", CannotBeTold),
                ("banana", CannotBeTold),
                (UNREADABLE, CannotBeTold),
            ],
        );
        let fixture = Fixture::new(&[MOUNTS, group, period]);
        assert_eq!(fixture.finding("rt-group-budget").verdict, Good);
    }

    #[test]
    fn in_a_container_the_group_is_the_mount() {
        let group = ("/proc/self/cgroup", "1:cpu:/docker/1234\n");
        let budget = ("/sys/fs/cgroup/cpu/cpu.rt_runtime_us", "0");
        let finding = Fixture::new(&[MOUNTS, group, budget]).finding("rt-group-budget");
        assert_eq!(finding.verdict, Missing, "{finding:?}");
    }

    #[test]
    fn without_that_hierarchy_trying_tells() {
        let verdict = |max, refusal| -> Verdict {
            let fixture = with_rights(max, refusal);
            fixture.add(&[("/proc/self/mounts", "none /sys/fs/cgroup cgroup2 rw 0 0\n")]);
            fixture.finding("rt-group-budget").verdict
        };
        assert_eq!(verdict(Some(99), None), Good);
        assert_eq!(verdict(None, Some(PriorityRefusal::ControlGroup)), Missing);
        assert_eq!(verdict(None, Some(PriorityRefusal::NoRight)), CannotBeTold);
    }

    #[test]
    fn groups_that_cannot_be_read_are_said_to_be_so() {
        for (mounts, groups) in [(UNREADABLE, ""), (MOUNTS.1, UNREADABLE), (MOUNTS.1, "x:y")] {
            let files = [("/proc/self/mounts", mounts), ("/proc/self/cgroup", groups)];
            let finding = Fixture::new(&files).finding("rt-group-budget");
            assert_eq!(finding.verdict, CannotBeTold, "{finding:?}");
        }
    }
}
