//! One attack on a service: a victim, another client and an attacker.

use std::fs;
use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic, sleep_until};

use super::super::PART;
use super::super::order::{AttackTraffic, Attempts, HostileOrder, Target};
use super::super::outcome::{Death, HostileOutcome};
use super::attack::ServiceAttack;
use super::row::ServiceRow;
use crate::error::LabError;
use crate::process::{Begin, Child, Ready};
use crate::usage::{computed, resident, resident_peak};
use crate::watch::Watch;

/// Attacks new victims by some octets and by twice as many, and adds the figures to the outcome.
/// The victim may end; a failure of another process is an error.
pub(in super::super) fn run(
    outcome: &mut HostileOutcome,
    attack: ServiceAttack,
    watch: &Watch,
) -> Result<(), LabError> {
    for amount in [1, 2] {
        watch.begin(attack.title());
        let trial = run_once(outcome, attack, amount);
        trial.map_err(|error| error.in_trial(attack.name()))?;
    }
    Ok(())
}

fn run_once(
    outcome: &mut HostileOutcome,
    attack: ServiceAttack,
    amount: u32,
) -> Result<(), LabError> {
    let plan = outcome.plan.services.clone();
    let service = attack.service();
    let order = HostileOrder::Service(service);
    let (mut victim, target): (_, Target) = Child::start("victim", PART, &order)?;
    let order = HostileOrder::OtherClient(service, target.clone(), plan.clone());
    let (mut client, Ready {}) = Child::start("client", PART, &order)?;
    let order = HostileOrder::Assailant(target, plan.clone(), attack, amount);
    let (mut attacker, Ready {}) = Child::start("attacker", PART, &order)?;
    // A call may be under way that takes as long as its timeout.
    let patience = || Deadline::after(plan.longest + plan.hold + plan.timeout + WIND_DOWN);
    let clock = || (Monotonic::now(), computed(victim.id()));

    let (start, before) = clock();
    client.tell(&Some(Begin {}))?;
    sleep_until(start + plan.alone);
    client.tell(&Begin {})?;
    let alone: Attempts = client.hear(patience())?;
    let (end, after) = clock();
    let calls_cpu = after.saturating_sub(before).as_secs_f64() / end.since(start).as_secs_f64();

    let resident_octets = resident(victim.id());
    // Without this the peak is that since the start of the victim, which is greater.
    let _ = fs::write(format!("/proc/{}/clear_refs", victim.id()), RESET_PEAK);
    let (start, before) = clock();
    client.tell(&Some(Begin {}))?;
    attacker.tell(&Begin {})?;
    let sent: AttackTraffic = attacker.hear(patience())?;
    client.tell(&Begin {})?;
    let beside: Attempts = client.hear(patience())?;
    let attacked = Monotonic::now().since(start);
    attacker.stop(patience())?;
    let (rested, rest) = come_to_rest(victim.id(), plan.rest);
    let cpu = computed(victim.id()).saturating_sub(before).as_secs_f64();
    let resident_most_octets = resident_peak(victim.id()).max(resident_octets);

    client.tell(&Some(Begin {}))?;
    sleep_until(Monotonic::now() + plan.alone / 4);
    client.tell(&Begin {})?;
    let later: Attempts = client.hear(patience())?;
    let death = victim.check().err();
    let failed = beside.failed + later.failed;
    let calls = failed + beside.answered.calls() + later.answered.calls();
    outcome.service_rows.push(ServiceRow {
        service,
        attack,
        amount,
        latency: beside.answered.summary(),
        alone_calls: alone.answered.calls(),
        alone_p99_us: alone.answered.summary().p99_us,
        failed_calls_percent: failed as f64 / calls.max(1) as f64 * 100.0,
        sent_octets: sent.octets,
        resident_octets,
        resident_most_octets,
        cpu_ms: (cpu - calls_cpu * attacked.as_secs_f64()).max(0.0) * 1e3,
        attack_ms: attacked.as_secs_f64() * 1e3,
        rest_ms: rest.as_secs_f64() * 1e3,
        rested_percent: if rested { 100.0 } else { 0.0 },
        survived_percent: if death.is_none() { 100.0 } else { 0.0 },
    });
    outcome.service_deaths.extend(
        death
            .filter(|_| outcome.service_death(attack).is_none())
            .map(|error| Death::of(attack, error)),
    );
    client.dismiss(Deadline::after(WIND_DOWN))?;
    // The victim may still be busy, so it is not waited for: dropping it ends it.
    drop(victim);
    Ok(())
}

/// Waits until a process takes at most one tick of processor time in a window, and returns whether
/// it did so in time, and the time until then.
fn come_to_rest(process: u32, longest: Duration) -> (bool, Duration) {
    let start = Monotonic::now();
    let mut seen = computed(process);
    loop {
        let window = Monotonic::now();
        sleep_until(window + WINDOW);
        let now = computed(process);
        if now.saturating_sub(seen) <= TICK {
            return (true, window.since(start));
        }
        seen = now;
        let passed = Monotonic::now().since(start);
        if passed >= longest {
            return (false, passed);
        }
    }
}

/// The time within which processes answer and end, beside that of calls.
const WIND_DOWN: Duration = Duration::from_secs(30);
/// The time in which a process at rest takes at most a tick.
const WINDOW: Duration = Duration::from_millis(200);
/// The precision of the processor time of proc(5).
const TICK: Duration = Duration::from_millis(10);
/// The order to forget the peak of resident memory, proc(5).
const RESET_PEAK: &str = "5";
