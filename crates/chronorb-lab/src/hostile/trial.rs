//! One attack: a victim, a client and an attacker, and what becomes of them.

use chronorb_rt::{Deadline, Monotonic, sleep_until};
use std::time::Duration;

use super::PART;
use super::attack::Attack;
use super::order::{Measured, Part, Run, Sent, Target};
use super::outcome::{Death, Row};
use super::plan::{Phase, Plan};
use crate::error::LabError;
use crate::process::{Child, ProcessError, Ready};
use crate::usage::{computed, resident};
use crate::watch::Watch;

/// The figures of one attack.
pub(super) struct Found {
    pub(super) rows: Vec<Row>,
    /// The end of the victim, if it ended.
    pub(super) death: Option<Death>,
}

/// Attacks a new victim. That the victim ends is no failure; all other processes are to do their work.
pub(super) fn run(plan: &Plan, attack: Attack, watch: &Watch) -> Result<Found, LabError> {
    let (mut victim, target): (_, Target) = Child::start("victim", PART, &Part::Victim)?;
    let part = Part::Client(target.clone(), plan.clone());
    let (mut client, Ready {}) = Child::start("client", PART, &part)?;
    let part = Part::Attacker(target, plan.clone(), attack);
    let (mut attacker, Ready {}) = Child::start("attacker", PART, &part)?;

    let mut found = Found {
        rows: Vec::new(),
        death: None,
    };
    for phase in Phase::ALL {
        let length = plan.length(phase);
        let start = Monotonic::now() + LEAD;
        let run = Run {
            at_ns: start.as_nanos(),
            length,
        };
        let computed_before = computed(victim.id());
        client.tell(&Some(run))?;
        if phase == Phase::During {
            attacker.tell(&run)?;
        }
        let mut most = 0;
        let end = start + length;
        while Monotonic::now() < end {
            sleep_until(end.min(Monotonic::now() + TICK));
            most = most.max(resident(victim.id()));
            watch.tick();
        }
        // The last call and the last new client may each take as long as they are given.
        let patience = Deadline::after(plan.timeout * 4 + WIND_DOWN);
        let measured: Measured = client.hear(patience)?;
        let computed = computed(victim.id()).saturating_sub(computed_before);
        let resident = resident(victim.id());
        let sent = match phase {
            Phase::During => attacker.hear(patience)?,
            Phase::Before | Phase::After => Sent::default(),
        };
        if found.death.is_none()
            && let Err(error) = victim.check()
        {
            found.death = Some(Death::of(attack, error));
        }
        found.rows.push(Row {
            attack,
            phase,
            latency: measured.calls.summary(),
            failed_calls_percent: percent(measured.failed, measured.calls.calls()),
            newcomers: measured.newcomers.calls(),
            failed_newcomers_percent: percent(
                measured.failed_newcomers,
                measured.newcomers.calls(),
            ),
            newcomer_max_us: measured.newcomers.max_us(),
            sent_octets: sent.octets,
            connections: sent.connections,
            refused_connections: sent.refused,
            resident_octets: resident,
            resident_most_octets: most.max(resident),
            cpu_percent: computed.as_secs_f64() / length.as_secs_f64() * 100.0,
            survived_percent: if found.death.is_none() { 100.0 } else { 0.0 },
        });
    }
    let end = Deadline::after(WIND_DOWN);
    client.dismiss(end)?;
    attacker.finish(end)?;
    // What it is still at is not waited for: dropping it ends it.
    drop(victim);
    Ok(found)
}

/// A part of a whole that is given by the rest of it.
fn percent(part: u64, rest: u64) -> f64 {
    match part + rest {
        0 => 0.0,
        whole => part as f64 / whole as f64 * 100.0,
    }
}

impl Death {
    fn of(attack: Attack, error: ProcessError) -> Self {
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

/// From the order to the beginning of a phase.
const LEAD: Duration = Duration::from_millis(20);
/// The time within which processes answer and end, beside that of calls.
const WIND_DOWN: Duration = Duration::from_secs(30);
const TICK: Duration = Duration::from_millis(20);
