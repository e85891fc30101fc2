//! Clocks and timers.

use super::Examined;
use crate::doctor::finding::{Judgement, boot_with};
use crate::doctor::machine::{Machine, Unreadable};

/// What the kernel reads the time from.
pub(super) fn source(machine: &Machine) -> Examined {
    let source = machine.read(SOURCE)?;
    match source.as_str() {
        "tsc"
        | "kvm-clock"
        | "arch_sys_counter"
        | "hyperv_clocksource_tsc_page"
        | "timebase"
        | "riscv_clocksource" => Ok(Judgement::good(format!(
            "{source}, read without a system call"
        ))),
        "hpet" | "acpi_pm" | "jiffies" | "xen" | "pit" | "refined-jiffies" => {
            let available = machine.read(AVAILABLE).unwrap_or_default();
            let has_tsc = available.split_whitespace().any(|name| name == "tsc");
            let remedy = match has_tsc {
                true => format!("switch:\n  echo tsc > {SOURCE}"),
                false => format!(
                    "if the kernel's log says why it does not trust the TSC, and it is wrong, {}",
                    boot_with("tsc=reliable")
                ),
            };
            Ok(Judgement::costs(source, remedy))
        }
        other => Err(Unreadable::rubbish(SOURCE, other)),
    }
}

/// How exactly timers run out.
pub(super) fn resolution(machine: &Machine) -> Examined {
    let step = machine.timer_resolution;
    let found = format!("{} ns (clock_getres)", step.as_nanos());
    // Without high-resolution timers the step is a tick, never below 100 µs.
    if step.as_micros() < 1 {
        return Ok(Judgement::good(found));
    }
    Ok(Judgement::missing(
        found,
        "boot a kernel with CONFIG_HIGH_RES_TIMERS=y, without these options:\n  \
         highres=off nohz=off",
    ))
}

/// How much later than asked for a sleep may end.
pub(super) fn slack(machine: &Machine) -> Examined {
    let ns: u64 = machine.value("/proc/self/timerslack_ns")?;
    let us = ns as f64 / 1e3;
    if ns <= 1_000 {
        return Ok(Judgement::good(format!("{us} µs")));
    }
    if machine.rights.max_fifo.is_some() {
        return Ok(Judgement::good(format!(
            "{us} µs, for ordinary threads; none for real-time ones"
        )));
    }
    Ok(Judgement::costs(
        format!("{us} µs, and real-time threads, which have none, are not permitted"),
        "grant real-time priorities; or have the program call prctl(PR_SET_TIMERSLACK, 1), or set \
         that of one that runs:\n  \
         echo 1 > /proc/PID/timerslack_ns",
    ))
}

const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const AVAILABLE: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::doctor::finding::Verdict::{CannotBeTold, CostsLatency, Good, Missing};
    use crate::doctor::fixture::{Fixture, UNREADABLE, assert_verdicts, finding};

    #[test]
    fn clock_sources_are_fast_or_slow_or_not_known() {
        assert_verdicts(
            "clock-source",
            &[],
            SOURCE,
            &[
                ("tsc\n", Good),
                ("kvm-clock", Good),
                ("hpet", CostsLatency),
                ("acpi_pm", CostsLatency),
                ("banana", CannotBeTold),
                ("", CannotBeTold),
                (UNREADABLE, CannotBeTold),
            ],
        );
    }

    #[test]
    fn the_way_back_to_the_tsc_depends_on_whether_it_is_offered() {
        let remedy = |available| {
            let files = [(SOURCE, "hpet"), (AVAILABLE, available)];
            finding("clock-source", &files).remedy.unwrap()
        };
        assert!(remedy("tsc hpet").contains("echo tsc >"));
        assert!(remedy("hpet acpi_pm").contains("tsc=reliable"));
        assert!(remedy(UNREADABLE).contains("tsc=reliable"));
    }

    #[test]
    fn timers_run_out_by_the_nanosecond_or_by_the_tick() {
        let mut fixture = Fixture::new(&[]);
        assert_eq!(fixture.finding("timer-resolution").verdict, Good);
        fixture.machine.timer_resolution = Duration::from_millis(4);
        assert_eq!(fixture.finding("timer-resolution").verdict, Missing);
    }

    #[test]
    fn slack_matters_only_without_real_time() {
        for (max_fifo, verdict) in [(Some(99), Good), (None, CostsLatency)] {
            let mut fixture = Fixture::new(&[("/proc/self/timerslack_ns", "50000")]);
            fixture.machine.rights.max_fifo = max_fifo;
            assert_eq!(fixture.finding("timer-slack").verdict, verdict);
        }
        assert_verdicts(
            "timer-slack",
            &[],
            "/proc/self/timerslack_ns",
            &[
                ("1", Good),
                ("banana", CannotBeTold),
                ("-5", CannotBeTold),
                (UNREADABLE, CannotBeTold),
            ],
        );
    }
}
