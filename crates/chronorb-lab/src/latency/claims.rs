//! The aims of the experiment.

use super::outcome::{LatencyOutcome, LatencyRow, p50};
use super::system::LatencySystem;
use crate::Claim;
use crate::bench::Placement;
use crate::stats::median;
use crate::units;

/// Returns all claims.
pub(super) fn of(outcome: &LatencyOutcome) -> Vec<Claim> {
    let mut claims = Vec::new();
    if outcome.plan.waits.block {
        let places = Placement::ALL.into_iter();
        claims.extend(places.map(|place| near_raw(outcome, LatencySystem::Chronorb, place)));
    }
    if outcome.plan.waits.spin {
        let spinning = LatencySystem::ChronorbSpinning;
        claims.push(near_raw(outcome, spinning, Placement::AcrossCpus));
    }
    if outcome.plan.waits.block {
        for place in Placement::ALL {
            claims.extend(QUANTILES.map(|quantile| below_omniorb(outcome, place, quantile)));
        }
    }
    if outcome.plan.connections > 0 {
        let quantiles = QUANTILES.into_iter().take(2);
        claims.extend(quantiles.map(|quantile| unaffected_by_idle(outcome, quantile)));
    }
    claims
}

type Quantile = (&'static str, fn(&LatencyRow) -> f64);

const QUANTILES: [Quantile; 3] = [
    ("p50", p50),
    ("p99", |row| row.latency.p99_us),
    ("p99.9", |row| row.latency.p999_us),
];

/// The ORB takes hardly longer than the sockets below it.
fn near_raw(outcome: &LatencyOutcome, system: LatencySystem, placement: Placement) -> Claim {
    let limit = if system.spins() { SPINNING } else { BLOCKING };
    let raw = system.raw();
    let claim = format!(
        "{}, {}: p50 at most {limit:.2} of {}",
        system.name(),
        placement.name(),
        raw.name(),
    );
    let measured = compare(outcome, [system, raw], placement, p50);
    Claim::aim(claim).by_ratio(measured, |ratio| ratio <= limit)
}

/// The ORB is faster than the fastest other ORB.
fn below_omniorb(
    outcome: &LatencyOutcome,
    placement: Placement,
    (quantile, of): Quantile,
) -> Claim {
    let systems = [LatencySystem::Chronorb, LatencySystem::OmniOrb];
    let claim = format!(
        "{}, {}: {quantile} below that of omniORB",
        systems[0].name(),
        placement.name(),
    );
    let measured = compare(outcome, systems, placement, of);
    Claim::aim(claim).by_ratio(measured, |ratio| ratio < 1.0)
}

/// Idle connections do not delay busy ones.
fn unaffected_by_idle(outcome: &LatencyOutcome, (name, of): Quantile) -> Claim {
    let claim = format!(
        "{name} with {} idle connections at most {IDLE} of that without",
        units::count(outcome.plan.connections.into()),
    );
    // Fewer connections than planned say nothing about so many.
    let idle = outcome.idle.as_ref();
    let idle = idle.filter(|idle| idle.connections == idle.wanted);
    let measured = idle.and_then(|idle| {
        let figure = |rows: &[LatencyRow]| median(rows.iter().map(of)).map(units::time);
        let (with, without) = (figure(&idle.among_idle)?, figure(&idle.alone)?);
        Some((idle.ratio(of)?, format!("{with}, {without} without")))
    });
    Claim::aim(claim).by_ratio(measured, |ratio| ratio <= IDLE)
}

/// Returns the ratio of two systems in the same rounds, with both figures in words.
fn compare(
    outcome: &LatencyOutcome,
    [system, to]: [LatencySystem; 2],
    placement: Placement,
    of: fn(&LatencyRow) -> f64,
) -> Option<(f64, String)> {
    let ratio = outcome.ratio(system, to, placement, of)?;
    let figure = |system| {
        let rows = outcome.rounds(system, placement);
        median(rows.into_iter().map(of)).map(units::time)
    };
    let text = format!("{}, {} on {}", figure(system)?, figure(to)?, to.name());
    Some((ratio, text))
}

/// The limits of the median by that of raw TCP.
const BLOCKING: f64 = 1.10;
const SPINNING: f64 = 1.15;
/// The limit of the latency with idle connections by that without.
const IDLE: f64 = 1.1;

#[cfg(test)]
pub(super) mod tests {
    use super::super::Latency;
    use super::super::idle::IdleConnections;
    use super::*;
    use crate::Verdict;
    use crate::bench::{BatchTimes, CallScheduling, OmniOrb, Sizes};
    use crate::environment::Environment;
    use crate::experiment::{Experiment, Findings};
    use crate::report::PooledRecords;
    use crate::stats::Record;

    /// Returns figures that meet all claims.
    pub(in super::super) fn outcome() -> LatencyOutcome {
        let mut rows = Vec::new();
        let mut pooled = PooledRecords::default();
        for system in LatencySystem::ALL {
            for placement in Placement::ALL {
                if system.spins() && placement != Placement::AcrossCpus {
                    continue;
                }
                let us = match system {
                    LatencySystem::RawBlocking => 10_000,
                    LatencySystem::Chronorb => 10_800,
                    LatencySystem::OmniOrb => 12_000,
                    LatencySystem::RawSpinning => 5_000,
                    LatencySystem::ChronorbSpinning => 5_700,
                };
                for round in 1..=3 {
                    let calls = (0..1000).map(|n| us + n % 7 * 10).collect();
                    let trial = (system, placement);
                    let (row, record) = row(trial, round, calls);
                    rows.push(row);
                    if round == 1 {
                        pooled.add(trial, &record);
                    }
                }
            }
        }
        let calls = vec![9_000; 100];
        let some = vec![row((LatencySystem::Chronorb, Placement::SameCpu), 1, calls).0];
        LatencyOutcome {
            plan: Latency::full(),
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
                scheduled: CallScheduling::Fifo,
                alone: some.clone(),
                among_idle: some,
                resident_before: 10_000_000,
                resident_with: 30_000_000,
            }),
        }
    }

    fn row(
        trial: (LatencySystem, Placement),
        round: u32,
        latencies_ns: Vec<u64>,
    ) -> (LatencyRow, Record) {
        let batch = BatchTimes {
            elapsed_ns: 0,
            latencies_ns,
        };
        let record = batch.record();
        (LatencyRow::of(trial, round, &record), record)
    }

    #[test]
    fn claims_that_hold_pass() {
        let claims = outcome().claims();
        assert_eq!(claims.len(), 3 + 1 + 9 + 2);
        for claim in claims {
            assert_eq!(claim.verdict(), Verdict::Pass, "{claim:?}");
        }
    }

    #[test]
    fn each_claim_depends_on_its_system() {
        let missed = |system, us: f64| {
            let mut outcome = outcome();
            let rows = outcome.rows.iter_mut();
            rows.filter(|row| row.system == system)
                .for_each(|row| row.latency.p50_us = us);
            let claims = outcome.claims().into_iter();
            let missed = claims.filter(|claim| claim.verdict() == Verdict::Missed);
            missed.map(|claim| claim.claim).collect::<Vec<_>>()
        };
        assert_eq!(missed(LatencySystem::Chronorb, 11.2).len(), 3);
        assert_eq!(
            missed(LatencySystem::Chronorb, 12.5).len(),
            6,
            "and beyond omniORB"
        );
        assert_eq!(
            missed(LatencySystem::ChronorbSpinning, 6.0),
            ["chronorb, spinning, across CPUs: p50 at most 1.15 of raw TCP, spinning"]
        );
    }

    #[test]
    fn claims_without_figures_are_not_measured() {
        let mut outcome = outcome();
        outcome
            .rows
            .retain(|row| row.system != LatencySystem::OmniOrb);
        outcome.idle.as_mut().unwrap().connections = 100;
        let claims = outcome.claims().into_iter();
        let unmeasured = claims.filter(|claim| claim.verdict() == Verdict::NotMeasured);
        assert_eq!(unmeasured.count(), 9 + 2);
    }
}
