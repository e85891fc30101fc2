//! The aims of the experiment.

use super::outcome::ThroughputOutcome;
use super::report;
use super::trial::{ThroughputSystem, ThroughputTrial};
use crate::Claim;
use crate::bench::{Operation, Placement};

/// Returns all claims.
pub(super) fn of(outcome: &ThroughputOutcome) -> Vec<Claim> {
    let claims = ThroughputTrial::in_places().flat_map(|of| {
        let raw = match of.0 {
            ThroughputTrial::Clients(_) => &[
                (ThroughputSystem::EpollOne, EPOLL),
                (ThroughputSystem::EpollMany, EPOLL),
            ][..],
            ThroughputTrial::Data(Operation::Octets(_)) => &[(ThroughputSystem::RawTcp, OCTETS)],
            ThroughputTrial::Data(_) => &[],
        };
        let systems = raw.iter().chain(&[(ThroughputSystem::OmniOrb, 1.0)]);
        systems.map(move |(to, least)| at_least(outcome, of, *to, *least))
    });
    claims.collect()
}

/// The ORB has at least so much of the throughput of another system.
fn at_least(
    outcome: &ThroughputOutcome,
    of: (ThroughputTrial, Placement),
    to: ThroughputSystem,
    least: f64,
) -> Claim {
    let how_much = match to {
        ThroughputSystem::OmniOrb => "at least that of omniORB".to_owned(),
        _ => format!("at least {least} of {}", to.name()),
    };
    let (trial, placement) = of;
    let claim = format!(
        "{}, {}: throughput {how_much}",
        trial.name(),
        placement.name()
    );
    let systems = [ThroughputSystem::Chronorb, to];
    let rate = |system| Some(report::rate(trial, outcome.rate(of, system)?));
    let measured = || {
        let (own, others) = (rate(systems[0])?, rate(to)?);
        let words = format!("{own}, {others} on {}", to.name());
        Some((outcome.ratio(of, systems)?, words))
    };
    Claim::aim(claim).by_ratio(measured(), |ratio| ratio >= least)
}

const EPOLL: f64 = 0.9;
const OCTETS: f64 = 0.95;

#[cfg(test)]
pub(super) mod tests {
    use super::super::{Throughput, ThroughputRow, TrialMessages};
    use super::*;
    use crate::Verdict;
    use crate::bench::{OmniOrb, Sizes};
    use crate::environment::Environment;
    use crate::experiment::{Experiment, Findings};

    /// Returns figures that meet all claims.
    pub(in super::super) fn outcome() -> ThroughputOutcome {
        let mut rows = Vec::new();
        for trial in ThroughputTrial::ALL {
            for placement in trial.placements() {
                for system in ThroughputSystem::ALL {
                    let is_of_calls = matches!(trial, ThroughputTrial::Clients(_));
                    let calls = match system {
                        ThroughputSystem::Chronorb => 95,
                        ThroughputSystem::OmniOrb => 80,
                        ThroughputSystem::EpollOne | ThroughputSystem::EpollMany if is_of_calls => {
                            100
                        }
                        ThroughputSystem::RawTcp if !is_of_calls => 98,
                        ThroughputSystem::RawTcpApart if trial.octets() == 1 << 20 => 96,
                        _ => continue,
                    };
                    for round in 1..=3 {
                        let row = ThroughputRow::of(
                            (trial, *placement),
                            system,
                            round,
                            calls * round,
                            u64::from(round) * 1_000_000,
                        );
                        rows.push(row);
                    }
                }
            }
        }
        ThroughputOutcome {
            plan: Throughput::full(),
            environment: Environment::example(),
            messages: vec![TrialMessages {
                trial: ThroughputTrial::Clients(1),
                octets: Sizes {
                    request: 60,
                    reply: 28,
                },
            }],
            omniorb: OmniOrb {
                version: Some("4.2.5".to_owned()),
                missing: String::new(),
                programs: None,
            },
            rows,
        }
    }

    #[test]
    fn claims_that_hold_pass() {
        let claims = outcome().claims();
        assert_eq!(claims.len(), 6 * 3 + 2 * 2 + 2 * 6);
        for claim in claims {
            assert_eq!(claim.verdict(), Verdict::Pass, "{claim:?}");
        }
    }

    #[test]
    fn a_slower_orb_misses_its_aims() {
        let mut outcome = outcome();
        for row in &mut outcome.rows {
            if row.system == ThroughputSystem::Chronorb {
                row.calls_per_s *= 0.9;
            }
        }
        let claims = outcome.claims().into_iter();
        let missed = claims.filter(|claim| claim.verdict() == Verdict::Missed);
        let missed: Vec<_> = missed.map(|claim| claim.claim).collect();
        assert_eq!(missed.len(), 6 * 2 + 2, "{missed:?}");
        assert!(
            missed[1].starts_with("1 client, same CPU: throughput at least 0.9 of raw epoll, ")
        );
    }

    #[test]
    fn claims_without_omniorb_are_not_measured() {
        let mut outcome = outcome();
        outcome
            .rows
            .retain(|row| row.system != ThroughputSystem::OmniOrb);
        let claims = outcome.claims().into_iter();
        let unmeasured = claims.filter(|claim| claim.verdict() == Verdict::NotMeasured);
        assert_eq!(unmeasured.count(), 6 + 14);
    }
}
