//! The aims of chronorb: the work and memory of a service are in proportion to the octets of its
//! clients, other clients are served, and nothing goes on for ever.

use super::super::outcome::HostileOutcome;
use super::attack::{AttackedService, ServiceAttack};
use super::row::{MEMORY_CONSTANT, ServiceRow, work_factor};
use crate::Claim;
use crate::report::largest;
use crate::units;

/// Returns the claims of each service.
pub(in super::super) fn of(outcome: &HostileOutcome) -> Vec<Claim> {
    let services = AttackedService::ALL.into_iter();
    let claims = services.flat_map(|service| {
        let attacks = outcome.plan.services.attacks.iter().copied();
        let trials: Vec<_> = attacks
            .filter(|attack| attack.service() == service)
            .filter_map(|attack| AttackRows::of(outcome, attack))
            .collect();
        [
            judge(
                service,
                &format!(
                    "memory grows at most to {MOST_MEMORY} times the octets of the attacker, and \
                     {}",
                    units::bytes(MEMORY_CONSTANT as f64)
                ),
                &trials,
                |rows| largest(rows.each(ServiceRow::memory_factor)),
                MOST_MEMORY,
            ),
            judge(
                service,
                &format!("twice the octets take at most {MOST_WORK} times the processor time"),
                &trials,
                |rows| work_factor(rows.once, rows.twice),
                MOST_WORK,
            ),
            judge(
                service,
                &format!(
                    "the p99 of another client's call is at most {MOST_LATENCY} times that alone"
                ),
                &trials,
                |rows| largest(rows.each(ServiceRow::p99_factor)),
                MOST_LATENCY,
            ),
            ends(service, outcome, &trials),
        ]
    });
    claims.collect()
}

/// The two rows of an attack.
struct AttackRows<'a> {
    attack: ServiceAttack,
    once: &'a ServiceRow,
    twice: &'a ServiceRow,
}

impl<'a> AttackRows<'a> {
    fn of(outcome: &'a HostileOutcome, attack: ServiceAttack) -> Option<Self> {
        Some(Self {
            attack,
            once: outcome.service_row(attack, 1)?,
            twice: outcome.service_row(attack, 2)?,
        })
    }

    fn each<T>(&self, figure: impl Fn(&ServiceRow) -> T) -> impl Iterator<Item = T> {
        [self.once, self.twice].map(figure).into_iter()
    }
}

/// Judges a claim by the largest factor of all attacks, and names those beyond it.
fn judge(
    service: AttackedService,
    claim: &str,
    trials: &[AttackRows<'_>],
    factor: impl Fn(&AttackRows<'_>) -> f64,
    most: f64,
) -> Claim {
    let mut factors: Vec<_> = trials.iter().map(|rows| (factor(rows), rows)).collect();
    factors.sort_by(|first, second| second.0.total_cmp(&first.0));
    let measured = factors.first().map(|(worst, _)| {
        let beyond = factors.iter().filter(|(factor, _)| *factor > most).count();
        let named = factors.iter().take(beyond.max(1));
        let named = named.map(|(factor, rows)| format!("{} {factor:.2}", rows.attack.title()));
        (*worst, named.collect::<Vec<_>>().join(", "))
    });
    Claim::aim(format!("{}: {claim}", service.command())).by_ratio(measured, |worst| worst <= most)
}

/// Judges whether the service lives, answers all calls of the other client, and comes to rest.
fn ends(service: AttackedService, outcome: &HostileOutcome, trials: &[AttackRows<'_>]) -> Claim {
    let rest = units::setting(outcome.plan.services.rest);
    let claim = format!(
        "{}: it lives, no call of another client fails, and it rests within {rest} after the \
         attacker has gone",
        service.command()
    );
    let failures = trials.iter().filter_map(|rows| {
        let of = rows.attack.title();
        let failed = largest(rows.each(|row| row.failed_calls_percent));
        if let Some(death) = outcome.service_death(rows.attack) {
            Some(format!("{of} ended it: {}", death.status))
        } else if rows.each(|row| row.rested_percent).any(|of| of < 100.0) {
            Some(format!("{of}: it did not rest"))
        } else {
            (failed > 0.0).then(|| format!("{of}: {failed:.1} % of calls failed"))
        }
    });
    let failures: Vec<_> = failures.collect();
    let longest = largest(trials.iter().flat_map(|rows| rows.each(|row| row.rest_ms)));
    let words = if failures.is_empty() {
        format!(
            "it rested after {} at the latest",
            units::time(longest * 1e3)
        )
    } else {
        failures.join(", ")
    };
    Claim::aim(claim).holds((!trials.is_empty()).then_some((failures.is_empty(), words)))
}

/// The most memory for each octet.
const MOST_MEMORY: f64 = 4.0;
/// The most processor time for twice the octets.
const MOST_WORK: f64 = 2.5;
/// The most latency beside an attack.
const MOST_LATENCY: f64 = 10.0;

#[cfg(test)]
pub(in super::super) mod tests {
    use std::time::Duration;

    use super::super::super::claims::tests::outcome;
    use super::*;
    use crate::Verdict;
    use crate::stats::Record;

    /// A change of the figures of an attack.
    type Change = fn(&mut ServiceRow);

    /// Figures by which everything holds.
    pub(in super::super::super) fn rows() -> Vec<ServiceRow> {
        let both = ServiceAttack::ALL.into_iter();
        let both = both.flat_map(|attack| [(attack, 1), (attack, 2)]);
        both.map(|(attack, amount)| {
            let mut record = Record::new();
            record.add(Duration::ZERO, Duration::from_micros(300));
            ServiceRow {
                service: attack.service(),
                attack,
                amount,
                latency: record.summary(),
                alone_calls: 100,
                alone_p99_us: 100.0,
                failed_calls_percent: 0.0,
                sent_octets: u64::from(amount) << 20,
                resident_octets: 10 << 20,
                resident_most_octets: 20 << 20,
                cpu_ms: 100.0 * f64::from(amount),
                attack_ms: 1_000.0,
                rest_ms: 200.0,
                rested_percent: 100.0,
                survived_percent: 100.0,
            }
        })
        .collect()
    }

    /// Returns the claims that are missed after a change of the row of an attack by twice the
    /// octets.
    fn missed(attack: ServiceAttack, change: impl Fn(&mut ServiceRow)) -> Vec<Claim> {
        let mut outcome = outcome();
        let rows = &mut outcome.service_rows;
        let row = rows
            .iter_mut()
            .find(|row| row.attack == attack && row.amount == 2);
        change(row.unwrap());
        let mut claims = of(&outcome);
        claims.retain(|claim| claim.verdict() == Verdict::Missed);
        claims
    }

    #[test]
    fn each_claim_is_missed_by_its_figure_alone() {
        let attack = ServiceAttack::ManyMasks;
        let cases: [(&str, Change); 5] = [
            ("memory", |row| row.resident_most_octets = 27 << 20),
            ("twice", |row| row.cpu_ms = 251.0),
            ("p99", |row| row.latency.p99_us = 1_001.0),
            ("rests", |row| row.rested_percent = 0.0),
            ("no call", |row| row.failed_calls_percent = 0.1),
        ];
        for (word, change) in cases {
            let claims = missed(attack, change);
            let [claim] = &claims[..] else {
                panic!("{word}: {claims:#?}");
            };
            assert!(claim.claim.contains(word), "{claim:?}");
            assert!(claim.claim.contains("events serve"), "{claim:?}");
            assert!(claim.measured.contains("many masks"), "{claim:?}");
        }
        assert!(missed(attack, |_| {}).is_empty());
    }

    #[test]
    fn work_counts_for_the_octets_that_were_sent() {
        // The attacker was refused after half as many octets more.
        let attack = ServiceAttack::Bindings;
        let change = |row: &mut ServiceRow, cpu_ms| {
            row.sent_octets = 3 << 19;
            row.cpu_ms = cpu_ms;
        };
        assert!(missed(attack, |row| change(row, 185.0)).is_empty());
        assert_eq!(missed(attack, |row| change(row, 190.0)).len(), 1);
    }
}
