//! One attack: a victim, a client and an attacker.

use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic, sleep_until};

use super::PART;
use super::attack::Attack;
use super::order::{AttackCalls, AttackTraffic, HostileOrder, PhaseRun, Target};
use super::outcome::{Death, HostileOutcome, HostileRow};
use super::plan::AttackPhase;
use crate::error::LabError;
use crate::process::{Child, ProcessError, Ready};
use crate::usage::{computed, resident};
use crate::watch::Watch;

/// Attacks a new victim, and adds the figures to the outcome. The victim may end; a failure of
/// another process is an error.
pub(super) fn run(
    outcome: &mut HostileOutcome,
    attack: Attack,
    watch: &Watch,
) -> Result<(), LabError> {
    let plan = &outcome.plan;
    let (mut victim, target): (_, Target) = Child::start("victim", PART, &HostileOrder::Victim)?;
    let order = HostileOrder::Client(target.clone(), plan.clone());
    let (mut client, Ready {}) = Child::start("client", PART, &order)?;
    let order = HostileOrder::Attacker(target, plan.clone(), attack);
    let (mut attacker, Ready {}) = Child::start("attacker", PART, &order)?;

    let mut death = None;
    for phase in AttackPhase::ALL {
        let is_during = phase == AttackPhase::During;
        let length = plan.length(phase);
        let start = Monotonic::now() + LEAD;
        let run = PhaseRun {
            at_ns: start.as_nanos(),
            length,
        };
        let computed_before = computed(victim.id());
        client.tell(&Some(run))?;
        if is_during {
            attacker.tell(&run)?;
        }
        let mut most = 0;
        let end = start + length;
        while Monotonic::now() < end {
            sleep_until(end.min(Monotonic::now() + TICK));
            most = most.max(resident(victim.id()));
            watch.tick();
        }
        // The last call and the last new client may each take as long as their timeout.
        let patience = Deadline::after(plan.timeout * 4 + WIND_DOWN);
        let AttackCalls { calls, newcomers } = client.hear(patience)?;
        let computed = computed(victim.id()).saturating_sub(computed_before);
        let resident = resident(victim.id());
        let sent = if is_during {
            attacker.hear(patience)?
        } else {
            AttackTraffic::default()
        };
        if death.is_none() {
            death = victim.check().err().map(|error| Death::of(attack, error));
        }
        outcome.rows.push(HostileRow {
            attack,
            phase,
            latency: calls.answered.summary(),
            failed_calls_percent: calls.failed_percent(),
            newcomers: newcomers.answered.calls(),
            failed_newcomers_percent: newcomers.failed_percent(),
            newcomer_max_us: newcomers.answered.max_us(),
            sent_octets: sent.octets,
            connections: sent.connections,
            refused_connections: sent.refused,
            resident_octets: resident,
            resident_most_octets: most.max(resident),
            cpu_percent: computed.as_secs_f64() / length.as_secs_f64() * 100.0,
            survived_percent: if death.is_none() { 100.0 } else { 0.0 },
        });
    }
    let end = Deadline::after(WIND_DOWN);
    client.dismiss(end)?;
    attacker.finish(end)?;
    // The victim may still be busy, so it is not waited for: dropping it ends it.
    drop(victim);
    outcome.deaths.extend(death);
    Ok(())
}

impl<A> Death<A> {
    pub(super) fn of(attack: A, error: ProcessError) -> Self {
        let (status, errors) = match error {
            ProcessError::Ended { status, errors, .. } => (status.to_string(), errors),
            other => (other.to_string(), String::new()),
        };
        let words = errors.lines().find(|line| !line.trim().is_empty());
        Self {
            attack,
            status,
            last_words: words.unwrap_or_default().to_owned(),
        }
    }
}

/// The time from the order to the beginning of a phase.
const LEAD: Duration = Duration::from_millis(20);
/// The time within which processes answer and end, beside that of calls.
const WIND_DOWN: Duration = Duration::from_secs(30);
const TICK: Duration = Duration::from_millis(20);
