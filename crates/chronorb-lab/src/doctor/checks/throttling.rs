//! What the kernel takes from real-time threads for the others.

use super::Examined;
use crate::doctor::finding::Judgement;
use crate::doctor::machine::{Machine, Unreadable};

/// How much of each period real-time threads may run.
pub(super) fn budget(machine: &Machine) -> Examined {
    let runtime: i64 = machine.value(RUNTIME)?;
    if runtime < 0 {
        return Ok(Judgement::good(
            "off: real-time threads may run without end",
        ));
    }
    let period: i64 = machine.value(PERIOD)?;
    if period <= 0 {
        return Err(Unreadable::rubbish(PERIOD, &period.to_string()));
    }
    let found = format!("real-time threads may run {runtime} µs of each {period} µs");
    if runtime >= period {
        return Ok(Judgement::good(found));
    }
    Ok(Judgement::costs(
        found,
        "give work that computes without end priority 0. Where no thread does, lift it; then one \
         that does stops its CPU for good:\n  \
         sysctl -w kernel.sched_rt_runtime_us=-1",
    ))
}

/// What ordinary threads get of a CPU that real-time threads keep busy.
pub(super) fn fair_server(machine: &Machine) -> Examined {
    let release = machine.read(RELEASE)?;
    let version = version(&release).ok_or_else(|| Unreadable::rubbish(RELEASE, &release))?;
    if version < (6, 12) {
        return Ok(Judgement::good(format!("Linux {release} has none")));
    }
    let mut most = 0.0_f64;
    let cpus = machine.list(SERVERS)?;
    for cpu in &cpus {
        let ns = |name| machine.value::<u64>(&format!("{SERVERS}/{cpu}/{name}"));
        let (runtime, period) = (ns("runtime")?, ns("period")?);
        most = most.max(runtime as f64 / period.max(1) as f64);
    }
    if cpus.is_empty() {
        return Err(Unreadable::rubbish(SERVERS, ""));
    }
    if most == 0.0 {
        return Ok(Judgement::good("off"));
    }
    Ok(Judgement::costs(
        format!("ordinary threads get up to {:.1} % of a CPU", most * 100.0),
        "give work that computes without end priority 0. Where no thread does, switch it off:\n  \
         for f in /sys/kernel/debug/sched/fair_server/*/runtime; do echo 0 >$f; done",
    ))
}

/// Major and minor number of a release such as `6.12.3-amd64`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(['.', '-']);
    let mut number = || numbers.next()?.parse().ok();
    Some((number()?, number()?))
}

const RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
const PERIOD: &str = "/proc/sys/kernel/sched_rt_period_us";
const RELEASE: &str = "/proc/sys/kernel/osrelease";
const SERVERS: &str = "/sys/kernel/debug/sched/fair_server";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{CannotBeTold, CostsLatency, Good};
    use crate::doctor::fixture::{UNREADABLE, assert_verdicts, finding};

    #[test]
    fn real_time_threads_may_run_always_or_for_a_part_of_the_time() {
        assert_verdicts(
            "rt-throttling",
            &[(PERIOD, "1000000")],
            RUNTIME,
            &[
                ("-1", Good),
                ("1000000", Good),
                ("950000", CostsLatency),
                ("0", CostsLatency),
                (UNREADABLE, CannotBeTold),
                ("banana", CannotBeTold),
            ],
        );
        assert_verdicts(
            "rt-throttling",
            &[(RUNTIME, "950000")],
            PERIOD,
            &[
                ("950000", Good),
                ("0", CannotBeTold),
                (UNREADABLE, CannotBeTold),
                ("", CannotBeTold),
            ],
        );
    }

    #[test]
    fn the_fair_server_is_told_by_a_file_for_each_cpu() {
        let period = (
            "/sys/kernel/debug/sched/fair_server/cpu0/period",
            "1000000000",
        );
        assert_verdicts(
            "fair-server",
            &[(RELEASE, "6.12.1-amd64"), period],
            "/sys/kernel/debug/sched/fair_server/cpu0/runtime",
            &[
                ("0", Good),
                ("50000000", CostsLatency),
                (UNREADABLE, CannotBeTold),
                ("banana", CannotBeTold),
            ],
        );
    }

    #[test]
    fn old_kernels_have_no_fair_server() {
        assert_verdicts(
            "fair-server",
            &[],
            RELEASE,
            &[
                ("6.11.99", Good),
                ("5.15.0-generic", Good),
                ("6.12.0", CannotBeTold),
                ("10.0-rc1", CannotBeTold),
                ("banana", CannotBeTold),
                (UNREADABLE, CannotBeTold),
            ],
        );
        let found = finding("fair-server", &[(RELEASE, "6.18.1")]).found;
        assert!(found.contains(SERVERS), "{found}");
    }
}
