//! What should be true of the figures, and whether it is.

use super::outcome::Outcome;
use super::report;
use super::trial::{System, Trial};
use crate::Claim;
use crate::bench::{Operation, Placement};

/// All claims.
pub(super) fn of(outcome: &Outcome) -> Vec<Claim> {
    let mut claims = Vec::new();
    for trial in Trial::ALL {
        for placement in trial.placements() {
            let claim = |to, least| at_least(outcome, trial, *placement, to, least);
            match trial {
                Trial::Clients(_) => claims.extend([
                    claim(System::EpollOne, EPOLL),
                    claim(System::EpollMany, EPOLL),
                ]),
                Trial::Data(Operation::Octets(_)) => claims.push(claim(System::RawTcp, OCTETS)),
                Trial::Data(_) => {}
            }
            claims.push(claim(System::OmniOrb, 1.0));
        }
    }
    claims
}

/// The ORB does at least so much of what another does.
fn at_least(
    outcome: &Outcome,
    trial: Trial,
    placement: Placement,
    to: System,
    least: f64,
) -> Claim {
    let how_much = match to {
        System::OmniOrb => "at least that of omniORB".to_owned(),
        _ => format!("at least {least} of {}", to.name()),
    };
    let claim = format!(
        "{}, {}: throughput {how_much}",
        trial.name(),
        placement.name()
    );
    let measured = || {
        let ratio = outcome.ratio(trial, placement, System::Chronorb, to)?;
        let rate = |system| {
            let rate = outcome.rate(trial, placement, system)?;
            Some(report::rate(trial, rate))
        };
        let text = format!(
            "{}, {} on {}",
            rate(System::Chronorb)?,
            rate(to)?,
            to.name()
        );
        Some((ratio, text))
    };
    Claim::aim(claim).by_ratio(measured(), |ratio| ratio >= least)
}

const EPOLL: f64 = 0.9;
const OCTETS: f64 = 0.8;

#[cfg(test)]
pub(super) mod tests {
    use super::super::{Messages, Plan, Row};
    use super::*;
    use crate::Verdict;
    use crate::bench::{OmniOrb, Sizes};
    use crate::environment::Environment;
    use crate::experiment::Findings;

    /// One of which everything holds that is claimed.
    pub(in super::super) fn outcome() -> Outcome {
        let mut rows = Vec::new();
        for trial in Trial::ALL {
            for placement in trial.placements() {
                for system in System::ALL {
                    let is_of_calls = matches!(trial, Trial::Clients(_));
                    let calls = match system {
                        System::Chronorb => 95,
                        System::OmniOrb => 80,
                        System::EpollOne | System::EpollMany if is_of_calls => 100,
                        System::RawTcp if !is_of_calls => 110,
                        _ => continue,
                    };
                    for round in 1..=3 {
                        let row = Row::new(
                            trial,
                            system,
                            *placement,
                            round,
                            calls * round,
                            u64::from(round) * 1_000_000,
                        );
                        rows.push(row);
                    }
                }
            }
        }
        Outcome {
            plan: Plan::full(),
            environment: Environment::example(),
            messages: vec![Messages {
                trial: Trial::Clients(1),
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
    fn what_holds_passes() {
        let claims = outcome().claims();
        assert_eq!(claims.len(), 6 * 3 + 2 * 2 + 4);
        for claim in claims {
            assert_eq!(claim.verdict(), Verdict::Pass, "{claim:?}");
        }
    }

    #[test]
    fn who_is_slower_than_that_has_missed_it() {
        let mut outcome = outcome();
        for row in &mut outcome.rows {
            if row.system == System::Chronorb {
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
    fn without_omniorb_nothing_is_said_of_it() {
        let mut outcome = outcome();
        outcome.rows.retain(|row| row.system != System::OmniOrb);
        let claims = outcome.claims().into_iter();
        let unmeasured = claims.filter(|claim| claim.verdict() == Verdict::NotMeasured);
        assert_eq!(unmeasured.count(), 6 + 6);
    }
}
