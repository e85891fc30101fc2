//! What should be true of the figures, and whether it is.

use super::outcome::{Outcome, Row, summary};
use super::system::System;
use crate::Claim;
use crate::bench::Placement;
use crate::stats::median;
use crate::units;

/// All claims.
pub(super) fn of(outcome: &Outcome) -> Vec<Claim> {
    let mut claims = Vec::new();
    let places = || Placement::ALL.into_iter();
    if outcome.plan.waits.block {
        claims.extend(places().map(|place| near_raw(outcome, System::Chronorb, place, BLOCKING)));
    }
    if outcome.plan.waits.spin {
        let across = Placement::AcrossCpus;
        claims.push(near_raw(
            outcome,
            System::ChronorbSpinning,
            across,
            SPINNING,
        ));
    }
    if outcome.plan.waits.block {
        for place in places() {
            claims.extend(QUANTILES.map(|quantile| below_omniorb(outcome, place, quantile)));
        }
    }
    if outcome.plan.connections > 0 {
        let quantiles = QUANTILES.into_iter().take(2);
        claims.extend(quantiles.map(|quantile| no_matter_how_many(outcome, quantile)));
    }
    claims
}

type Quantile = (&'static str, fn(&Row) -> f64);

const QUANTILES: [Quantile; 3] = [
    ("p50", |row| row.latency.p50_us),
    ("p99", |row| row.latency.p99_us),
    ("p99.9", |row| row.latency.p999_us),
];

/// The ORB takes hardly longer than the sockets that it stands on.
fn near_raw(outcome: &Outcome, system: System, placement: Placement, limit: f64) -> Claim {
    let raw = system.raw();
    let claim = format!(
        "{}, {}: p50 at most {limit:.2} of {}",
        system.name(),
        placement.name(),
        raw.name(),
    );
    let measured = compare(outcome, system, raw, placement, QUANTILES[0]);
    Claim::aim(claim).by_ratio(measured, |ratio| ratio <= limit)
}

/// It is quicker than the quickest of the others.
fn below_omniorb(outcome: &Outcome, placement: Placement, quantile: Quantile) -> Claim {
    let claim = format!(
        "{}, {}: {} below that of omniORB",
        System::Chronorb.name(),
        placement.name(),
        quantile.0,
    );
    let measured = compare(
        outcome,
        System::Chronorb,
        System::OmniOrb,
        placement,
        quantile,
    );
    Claim::aim(claim).by_ratio(measured, |ratio| ratio < 1.0)
}

/// Idle connections do not delay those that are busy.
fn no_matter_how_many(outcome: &Outcome, (name, of): Quantile) -> Claim {
    let claim = format!(
        "{name} with {} idle connections at most {IDLE} of that without",
        units::count(outcome.plan.connections.into()),
    );
    // Fewer than were asked for tell nothing of so many.
    let idle = outcome.idle.as_ref();
    let idle = idle.filter(|idle| idle.connections == idle.wanted);
    let measured = idle.and_then(|idle| {
        let figure = |rows: &[Row]| {
            let rows: Vec<&Row> = rows.iter().collect();
            median(rows.into_iter().map(of)).map(units::time)
        };
        let (with, without) = (figure(&idle.among_idle)?, figure(&idle.alone)?);
        Some((idle.ratio(of)?, format!("{with}, {without} without")))
    });
    Claim::aim(claim).by_ratio(measured, |ratio| ratio <= IDLE)
}

/// One system by another, in the same rounds, with both figures in words.
fn compare(
    outcome: &Outcome,
    system: System,
    to: System,
    placement: Placement,
    (_, of): Quantile,
) -> Option<(f64, String)> {
    let ratio = outcome.ratio(system, to, placement, of)?;
    let figure = |system| {
        let rows = outcome.rounds(system, placement);
        // Where there are rows there is a figure.
        summary(&rows)?;
        median(rows.into_iter().map(of)).map(units::time)
    };
    let text = format!("{}, {} on {}", figure(system)?, figure(to)?, to.name());
    Some((ratio, text))
}

/// p50 by that of raw TCP.
const BLOCKING: f64 = 1.10;
const SPINNING: f64 = 1.15;
/// Latency with idle connections by that without.
const IDLE: f64 = 1.1;

#[cfg(test)]
pub(super) mod tests {
    use super::super::Plan;
    use super::super::idle::IdleConnections;
    use super::super::outcome::row;
    use super::*;
    use crate::Verdict;
    use crate::bench::{OmniOrb, Scheduled, Sizes};
    use crate::environment::Environment;
    use crate::experiment::Findings;

    /// One of which everything holds that is claimed.
    pub(in super::super) fn outcome() -> Outcome {
        let mut rows = Vec::new();
        let mut pooled = Vec::new();
        for system in System::ALL {
            for placement in Placement::ALL {
                if system.spins() && placement != Placement::AcrossCpus {
                    continue;
                }
                let us = match system {
                    System::RawBlocking => 10_000,
                    System::Chronorb => 10_800,
                    System::OmniOrb => 12_000,
                    System::RawSpinning => 5_000,
                    System::ChronorbSpinning => 5_700,
                };
                for round in 1..=3 {
                    let calls: Vec<u64> = (0..1000).map(|n| us + n % 7 * 10).collect();
                    let (row, record) = row(system, placement, round, &calls);
                    rows.push(row);
                    if round == 1 {
                        pooled.push(((system, placement), record));
                    }
                }
            }
        }
        let calls = vec![9_000; 100];
        let some = vec![row(System::Chronorb, Placement::SameCpu, 1, &calls).0];
        Outcome {
            plan: Plan::full(),
            environment: Environment::example(),
            messages: Sizes {
                request: 60,
                reply: 28,
            },
            omniorb: OmniOrb {
                version: Some("4.2.5".to_owned()),
                missing: String::new(),
                programs: None,
            },
            rows,
            pooled,
            idle: Some(IdleConnections {
                wanted: 10_000,
                connections: 10_000,
                fewer_because: String::new(),
                scheduled: Scheduled::Fifo,
                alone: some.clone(),
                among_idle: some,
                resident_before: 10_000_000,
                resident_with: 30_000_000,
            }),
        }
    }

    #[test]
    fn what_holds_passes() {
        let claims = outcome().claims();
        assert_eq!(claims.len(), 3 + 1 + 9 + 2);
        for claim in claims {
            assert_eq!(claim.verdict(), Verdict::Pass, "{claim:?}");
        }
    }

    #[test]
    fn each_claim_is_missed_by_what_it_is_about() {
        let missed = |system, us: f64| {
            let mut outcome = outcome();
            let rows = outcome.rows.iter_mut();
            rows.filter(|row| row.system == system)
                .for_each(|row| row.latency.p50_us = us);
            let claims = outcome.claims().into_iter();
            let missed = claims.filter(|claim| claim.verdict() == Verdict::Missed);
            missed.map(|claim| claim.claim).collect::<Vec<_>>()
        };
        assert_eq!(missed(System::Chronorb, 11.2).len(), 3);
        assert_eq!(
            missed(System::Chronorb, 12.5).len(),
            6,
            "and beyond omniORB"
        );
        assert_eq!(
            missed(System::ChronorbSpinning, 6.0),
            ["chronorb, spinning, across CPUs: p50 at most 1.15 of raw TCP, spinning"]
        );
    }

    #[test]
    fn what_took_no_part_is_not_measured() {
        let mut outcome = outcome();
        outcome.rows.retain(|row| row.system != System::OmniOrb);
        outcome.idle.as_mut().unwrap().connections = 100;
        let claims = outcome.claims().into_iter();
        let unmeasured = claims.filter(|claim| claim.verdict() == Verdict::NotMeasured);
        assert_eq!(unmeasured.count(), 9 + 2);
    }
}
