//! The aim of chronorb: only the attacker notices an attack.

use super::attack::Attack;
use super::outcome::HostileOutcome;
use super::plan::AttackPhase;
use super::services;
use crate::Claim;
use crate::units;

/// Returns all claims: one for each attack on an ORB, and those of each service.
pub(super) fn of(outcome: &HostileOutcome) -> Vec<Claim> {
    let attacks = outcome.plan.attacks.iter();
    let claims = attacks.map(|attack| {
        let claim = format!(
            "{}: the server lives, and no call and no new client fails",
            attack.title()
        );
        let withstood = outcome.is_withstood(*attack);
        let measured = withstood.map(|withstood| (withstood, words(outcome, *attack)));
        Claim::aim(claim).holds(measured)
    });
    claims.chain(services::claims_of(outcome)).collect()
}

/// Returns the effects of an attack in words.
fn words(outcome: &HostileOutcome, attack: Attack) -> String {
    if let Some(death) = outcome.death(attack) {
        let ended = format!("the server ended: {}", death.status);
        return match death.last_words.trim() {
            "" => ended,
            words => format!("{ended}; it wrote: {words}"),
        };
    }
    let [before, during, after] = AttackPhase::ALL.map(|phase| {
        let Some(row) = outcome.row(attack, phase) else {
            return Default::default();
        };
        let failed = format!(
            "{:.0} % of calls and {:.0} % of new clients failed",
            row.failed_calls_percent, row.failed_newcomers_percent
        );
        (failed, units::time(row.latency.p99_us))
    });
    format!(
        "during it {}, after it {}; p99 {} before and {} during it",
        during.0, after.0, before.1, during.1,
    )
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::super::Hostile;
    use super::super::outcome::Death;
    use super::super::outcome::HostileRow;
    use super::*;
    use crate::Verdict;
    use crate::environment::Environment;
    use crate::experiment::Experiment;
    use crate::experiment::Findings;
    use crate::stats::Record;

    /// An outcome in which one attack ends the server, and all others have no effect.
    pub(in super::super) fn outcome() -> HostileOutcome {
        let plan = Hostile::full();
        let mut rows = Vec::new();
        for attack in plan.attacks.iter().copied() {
            for phase in AttackPhase::ALL {
                let is_dead = attack == Attack::OwnAlias && phase != AttackPhase::Before;
                let mut record = Record::new();
                if !is_dead {
                    record.add(Duration::ZERO, Duration::from_micros(100));
                }
                let is_during = phase == AttackPhase::During;
                rows.push(HostileRow {
                    attack,
                    phase,
                    latency: record.summary(),
                    failed_calls_percent: if is_dead { 100.0 } else { 0.0 },
                    newcomers: 10,
                    failed_newcomers_percent: if is_dead { 100.0 } else { 0.0 },
                    newcomer_max_us: 500.0,
                    sent_octets: if is_during { 108 } else { 0 },
                    connections: u64::from(is_during),
                    refused_connections: 0,
                    resident_octets: 10 << 20,
                    resident_most_octets: 20 << 20,
                    cpu_percent: 3.0,
                    survived_percent: if is_dead { 0.0 } else { 100.0 },
                });
            }
        }
        HostileOutcome {
            plan,
            environment: Environment::example(),
            rows,
            deaths: vec![Death {
                attack: Attack::OwnAlias,
                status: "signal: 6 (SIGABRT)".to_owned(),
                last_words: "a thread has overflowed its stack".to_owned(),
            }],
            service_rows: services::rows(),
            service_deaths: Vec::new(),
        }
    }

    #[test]
    fn what_is_withstood_passes_and_what_ends_the_server_is_said() {
        for (attack, claim) in Attack::ALL.into_iter().zip(outcome().claims()) {
            let expected = Verdict::of(attack != Attack::OwnAlias);
            assert_eq!(claim.verdict(), expected, "{claim:?}");
            if attack == Attack::OwnAlias {
                assert!(claim.measured.contains("SIGABRT"), "{claim:?}");
                assert!(claim.measured.contains("overflowed"), "{claim:?}");
            }
        }
    }

    #[test]
    fn one_new_client_that_fails_is_too_many() {
        let mut outcome = outcome();
        let of = |row: &&mut HostileRow| {
            row.attack == Attack::HalfHeaders && row.phase == AttackPhase::After
        };
        let row = outcome.rows.iter_mut().find(of).unwrap();
        row.failed_newcomers_percent = 2.5;
        assert_eq!(outcome.claims()[1].verdict(), Verdict::Missed);
    }

    #[test]
    fn nothing_is_claimed_of_what_was_not_tried() {
        let mut outcome = outcome();
        outcome.rows.clear();
        outcome.service_rows.clear();
        let mut claims = outcome.claims().into_iter();
        assert!(claims.all(|claim| claim.verdict() == Verdict::NotMeasured));
    }
}
