//! How soon the kernel gives the CPU to an urgent thread.

use super::Examined;
use crate::doctor::finding::{Judgement, boot_with};
use crate::doctor::machine::{Machine, Unreadable};
use crate::environment::marked;

/// Whether the kernel is built for real time.
pub(super) fn real_time(machine: &Machine) -> Examined {
    if is_real_time(machine)? {
        return Ok(Judgement::good("PREEMPT_RT"));
    }
    Ok(Judgement::missing(
        format!("not PREEMPT_RT, but {:?}", version(machine)?),
        "boot a kernel that is built with PREEMPT_RT (in Linux since 6.12):\n  \
         apt install linux-image-rt-amd64        # Debian\n  \
         pro enable realtime-kernel              # Ubuntu\n  \
         dnf install kernel-rt                   # Red Hat",
    ))
}

/// Where threads that are in the kernel can be preempted.
pub(super) fn model(machine: &Machine) -> Examined {
    if is_real_time(machine)? {
        return Ok(Judgement::good(
            "everywhere but in a few places (PREEMPT_RT)",
        ));
    }
    let version = version(machine)?;
    let unreadable = match machine.read(MODELS) {
        Ok(text) => {
            let judged = marked(&text, ['(', ')']).and_then(|model| judge(model, "in use"));
            return judged.ok_or_else(|| Unreadable::rubbish(MODELS, &text));
        }
        Err(unreadable) => unreadable,
    };
    if !version.contains("PREEMPT_DYNAMIC") {
        let judged = match version.contains("PREEMPT") {
            true => judge("full", "built in"),
            false => judge("none", "or voluntary, built in"),
        };
        return judged.ok_or_else(|| Unreadable::rubbish(VERSION, &version));
    }
    let booted = machine.boot_option("preempt").ok().flatten();
    if let Some(judgement) = booted.and_then(|model| judge(&model, "by the boot option")) {
        return Ok(judgement);
    }
    let built = built_in(machine).and_then(|model| judge(model, "by the kernel's configuration"));
    Ok(built.unwrap_or_else(|| {
        Judgement::unknown(
            format!("PREEMPT_DYNAMIC, and which model is in use is not told: {unreadable}"),
            format!(
                "as root, where debugfs can be mounted; else the kernel's configuration tells \
                 what it starts with:\n  \
                 mount -t debugfs none /sys/kernel/debug\n  cat {MODELS}\n  \
                 zgrep PREEMPT /proc/config.gz"
            ),
        )
    }))
}

fn judge(model: &str, origin: &str) -> Option<Judgement> {
    let remedy = || {
        format!(
            "where the kernel is PREEMPT_DYNAMIC, switch at once:\n  \
             echo full > {MODELS}\n{}",
            boot_with("preempt=full")
        )
    };
    let found = format!("{model} ({origin})");
    match model {
        "full" | "lazy" => Some(Judgement::good(found)),
        "none" => Some(Judgement::costs(found, remedy())),
        "voluntary" => Some(Judgement::costs(found, remedy()).costing(
            "an urgent thread waits until the kernel comes to one of the points where it lets \
             go: hundreds of µs, at times ms",
        )),
        _ => None,
    }
}

fn is_real_time(machine: &Machine) -> Result<bool, Unreadable> {
    let version = version(machine);
    if version
        .as_ref()
        .is_ok_and(|text| text.contains("PREEMPT_RT"))
    {
        return Ok(true);
    }
    match machine.read(REAL_TIME) {
        Ok(text) if text == "1" => Ok(true),
        Ok(text) if text != "0" => Err(Unreadable::rubbish(REAL_TIME, &text)),
        Err(unreadable) if !unreadable.is_absent() => Err(unreadable),
        Ok(_) | Err(_) => version.map(|_| false),
    }
}

/// How the kernel was built, as `uname -v` says it: `#1 SMP PREEMPT_DYNAMIC …`.
fn version(machine: &Machine) -> Result<String, Unreadable> {
    let version = machine.read(VERSION)?;
    match version.starts_with('#') {
        true => Ok(version),
        false => Err(Unreadable::rubbish(VERSION, &version)),
    }
}

/// The model that the kernel was configured with, where its configuration is kept.
fn built_in(machine: &Machine) -> Option<&'static str> {
    let release = machine.read("/proc/sys/kernel/osrelease").ok()?;
    let configuration = machine.read(&format!("/boot/config-{release}")).ok()?;
    let models = [
        ("CONFIG_PREEMPT_NONE=y", "none"),
        ("CONFIG_PREEMPT_VOLUNTARY=y", "voluntary"),
        ("CONFIG_PREEMPT_LAZY=y", "lazy"),
        ("CONFIG_PREEMPT=y", "full"),
    ];
    let has = |wanted| configuration.lines().any(|line| line == wanted);
    models
        .into_iter()
        .find(|(line, _)| has(*line))
        .map(|(_, model)| model)
}

const VERSION: &str = "/proc/sys/kernel/version";
const REAL_TIME: &str = "/sys/kernel/realtime";
const MODELS: &str = "/sys/kernel/debug/sched/preempt";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{CannotBeTold, CostsLatency, Good, Missing};
    use crate::doctor::fixture::{UNREADABLE, assert_verdicts, finding};

    const DYNAMIC: (&str, &str) = (VERSION, "#1 SMP PREEMPT_DYNAMIC Thu");

    #[test]
    fn a_real_time_kernel_is_known_by_its_version_or_its_file() {
        assert_verdicts(
            "preempt-rt",
            &[],
            VERSION,
            &[
                ("#1 SMP PREEMPT_RT Thu", Good),
                ("#1 SMP PREEMPT_DYNAMIC Thu", Missing),
                ("#1 SMP", Missing),
                (UNREADABLE, CannotBeTold),
                ("banana", CannotBeTold),
            ],
        );
        assert_verdicts(
            "preempt-rt",
            &[DYNAMIC],
            REAL_TIME,
            &[
                ("1", Good),
                ("0", Missing),
                (UNREADABLE, CannotBeTold),
                ("banana", CannotBeTold),
            ],
        );
    }

    #[test]
    fn the_schedulers_own_word_on_the_model_counts() {
        assert_verdicts(
            "preemption",
            &[DYNAMIC, ("/proc/cmdline", "preempt=none")],
            MODELS,
            &[
                ("none voluntary (full) lazy", Good),
                ("none voluntary full (lazy)", Good),
                ("none (voluntary) full lazy", CostsLatency),
                ("(none) voluntary full lazy", CostsLatency),
                ("(banana)", CannotBeTold),
                ("none voluntary full", CannotBeTold),
            ],
        );
    }

    #[test]
    fn without_it_the_command_line_and_the_configuration_are_asked() {
        let config = "/boot/config-6.1.0";
        let release = ("/proc/sys/kernel/osrelease", "6.1.0");
        assert_verdicts(
            "preemption",
            &[DYNAMIC, release, (config, "CONFIG_PREEMPT_VOLUNTARY=y\n")],
            "/proc/cmdline",
            &[
                ("quiet preempt=full", Good),
                ("quiet preempt=none", CostsLatency),
                // Then the configuration counts.
                ("quiet preempt=banana", CostsLatency),
                (UNREADABLE, CostsLatency),
            ],
        );
        assert_verdicts(
            "preemption",
            &[DYNAMIC, release],
            config,
            &[
                ("# CONFIG_PREEMPT_NONE is not set\nCONFIG_PREEMPT=y\n", Good),
                ("CONFIG_PREEMPT_NONE=y\n", CostsLatency),
                ("CONFIG_BANANA=y", CannotBeTold),
                (UNREADABLE, CannotBeTold),
            ],
        );
    }

    #[test]
    fn a_kernel_that_cannot_switch_says_it_in_its_version() {
        assert_verdicts(
            "preemption",
            &[],
            VERSION,
            &[
                ("#1 SMP PREEMPT_RT Thu", Good),
                ("#1 SMP PREEMPT Thu", Good),
                ("#1 SMP Debian 6.1", CostsLatency),
                (UNREADABLE, CannotBeTold),
                ("banana", CannotBeTold),
            ],
        );
    }

    #[test]
    fn what_could_not_be_read_is_named() {
        let finding = finding("preemption", &[DYNAMIC, (MODELS, UNREADABLE)]);
        assert_eq!(finding.verdict, CannotBeTold);
        assert!(finding.found.contains(MODELS), "{}", finding.found);
    }
}
