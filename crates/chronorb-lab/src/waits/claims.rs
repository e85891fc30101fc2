//! What should be true of the figures, and what is asked of them.

use super::case::{Processors, Setting, Way};
use super::outcome::{Outcome, P50, P99, Quantile, Ratio, places};
use crate::Claim;

/// All claims.
pub(super) fn of(outcome: &Outcome) -> Vec<Claim> {
    let mut claims = Vec::new();
    for place in places() {
        claims.push(near_blocking(outcome, place, Way::EdgeTriggered, EDGE));
    }
    for place in places() {
        claims.push(idle_is_free(outcome, place));
    }
    for place in places() {
        claims.push(near_blocking(outcome, place, Way::HotConnection, HOT));
    }
    for place in places().filter(|place| place.processors == Processors::Two) {
        claims.push(spinning_pays(outcome, place));
        claims.push(set_is_enough(outcome, place));
    }
    for place in places() {
        claims.push(ring_wins(outcome, place, P50, "median"));
        claims.push(ring_wins(outcome, place, P99, "tail (p99)"));
    }
    claims
}

/// A way costs little more than blocking.
fn near_blocking(outcome: &Outcome, place: Setting, way: Way, limit: f64) -> Claim {
    let claim = format!(
        "{}: {}: p50 at most {limit} of blocking recv",
        place.place(),
        way.name()
    );
    judge(claim, outcome.by_blocking(place, way), |ratio| {
        ratio <= limit
    })
}

/// A set does not become slower by connections on which nothing happens.
fn idle_is_free(outcome: &Outcome, place: Setting) -> Claim {
    let most = place.with_idle(outcome.plan.most_idle());
    let way = Way::EdgeTriggered;
    let claim = format!(
        "{}: {} idle connections cost an edge-triggered set at most {:.0} % of p50",
        place.place(),
        most.idle,
        (IDLE - 1.0) * 100.0
    );
    let ratio = outcome.ratio((most, way), (place, way), P50);
    judge(claim, ratio, |ratio| ratio <= IDLE)
}

/// Whoever does not sleep is not woken.
fn spinning_pays(outcome: &Outcome, place: Setting) -> Claim {
    let claim = format!(
        "{}: a thread that spins in recv answers earlier than one that blocks",
        place.place()
    );
    judge(
        claim,
        outcome.by_blocking(place, Way::SpinReceive),
        |ratio| ratio < 1.0,
    )
}

/// A lane that spins can as well look at all its connections.
fn set_is_enough(outcome: &Outcome, place: Setting) -> Claim {
    let claim = format!(
        "{}: spinning on the set alone: p50 at most {SET} of spinning in recv",
        place.place()
    );
    let ratio = outcome.ratio((place, Way::SpinSet), (place, Way::SpinReceive), P50);
    judge(claim, ratio, |ratio| ratio <= SET)
}

/// The best way by io_uring is better than the present one by more than the noise.
fn ring_wins(outcome: &Outcome, place: Setting, of: Quantile, name: &str) -> Claim {
    let claim = format!(
        "{}: io_uring beats edge-triggered epoll in the {name} by more than the noise",
        place.place()
    );
    let ways = Way::ALL.into_iter().filter(|way| way.is_ring());
    let best = ways
        .filter_map(|way| {
            let ratio = outcome.ratio((place, way), (place, Way::EdgeTriggered), of)?;
            Some((way, ratio))
        })
        .min_by(|(_, one), (_, other)| one.median.total_cmp(&other.median));
    let told = best.map(|(way, ratio)| {
        format!(
            "{}, the best of them: {}, below 1 in {:.0} % of the rounds",
            way.name(),
            told(ratio),
            ratio.below_one * 100.0,
        )
    });
    let ratio = best.map(|(_, ratio)| ratio);
    // The best of several is soon the best of a few rounds by chance.
    if let Some(ratio) = ratio.filter(|ratio| ratio.rounds < LEAST_ROUNDS) {
        let mut claim = Claim::aim(claim);
        claim.ratio = Some((ratio.median * 1e3).round() / 1e3);
        claim.measured = format!("too few rounds; {}", told.unwrap_or_default());
        return claim;
    }
    let often = ratio.is_some_and(|ratio| ratio.below_one >= MOST_ROUNDS);
    let measured = ratio.map(|ratio| ratio.median).zip(told);
    Claim::aim(claim).by_ratio(measured, |ratio| ratio <= WIN && often)
}

fn judge(claim: String, ratio: Option<Ratio>, holds: impl FnOnce(f64) -> bool) -> Claim {
    let measured = ratio.map(|ratio| (ratio.median, told(ratio)));
    Claim::aim(claim).by_ratio(measured, holds)
}

fn told(ratio: Ratio) -> String {
    format!(
        "{:.2} ({:.2} to {:.2} over the rounds)",
        ratio.median, ratio.least, ratio.greatest
    )
}

const EDGE: f64 = 1.1;
const HOT: f64 = 1.05;
const SET: f64 = 1.1;
const IDLE: f64 = 1.05;
/// What is less is not worth another way to wait.
const WIN: f64 = 0.97;
const LEAST_ROUNDS: usize = 7;
/// The share of the rounds in which the winner has to be better.
const MOST_ROUNDS: f64 = 0.9;

#[cfg(test)]
pub(super) mod tests {
    use super::super::case::{Class, Trial};
    use super::super::order::IoUring;
    use super::super::outcome::Row;
    use super::super::plan::Plan;
    use super::*;
    use crate::Verdict;
    use crate::environment::Environment;
    use crate::experiment::Findings;
    use crate::stats::Summary;

    /// One of which everything holds that is claimed, and in which io_uring wins.
    pub(in super::super) fn outcome() -> Outcome {
        let plan = Plan::full();
        let mut rows = Vec::new();
        for round in 1..=plan.rounds {
            for setting in plan.settings(2, true) {
                for way in setting.ways() {
                    let us = match way {
                        Way::Blocking => 10.0,
                        Way::EdgeTriggered | Way::HotConnection => 10.4,
                        way if way.spins() => 6.0,
                        way if way.is_ring() => 9.0,
                        _ => 13.0,
                    } + f64::from(round) / 100.0;
                    rows.push(Row {
                        trial: Trial { setting, way },
                        round,
                        latency: Summary {
                            calls: 5_000,
                            p50_us: us,
                            p99_us: 2.0 * us,
                            p999_us: 3.0 * us,
                            max_us: 100.0 * us,
                            mean_us: us,
                            jitter_us: 1.0,
                        },
                    });
                }
            }
        }
        let mut environment = Environment::probe();
        environment.load_average = [0.0; 3];
        environment.max_fifo_priority = Some(99);
        Outcome {
            plan,
            environment,
            io_uring: IoUring::Permitted("deferred".to_owned()),
            processors: 2,
            rows,
        }
    }

    fn claim(outcome: &Outcome, part: &str) -> Claim {
        let mut claims = outcome.claims().into_iter();
        let found = claims.find(|claim| claim.claim.starts_with(part));
        found.expect("there is such a claim")
    }

    fn change(outcome: &mut Outcome, way: Way, rounds: u32, factor: f64) {
        let rows = outcome.rows.iter_mut();
        for row in rows.filter(|row| row.trial.way == way && row.round <= rounds) {
            row.latency.p50_us *= factor;
        }
    }

    #[test]
    fn what_holds_passes() {
        let claims = outcome().claims();
        assert_eq!(claims.len(), 4 + 4 + 4 + 4 + 8);
        for claim in claims {
            assert_eq!(claim.verdict(), Verdict::Pass, "{claim:?}");
            assert!(claim.ratio.is_some());
        }
    }

    #[test]
    fn an_edge_that_costs_too_much_is_said() {
        let mut outcome = outcome();
        change(&mut outcome, Way::EdgeTriggered, 11, 1.2);
        let claim = claim(&outcome, "one CPU: epoll, edge-triggered");
        assert_eq!(claim.verdict(), Verdict::Missed);
        assert!(claim.measured.starts_with("1.25 ("), "{}", claim.measured);
    }

    #[test]
    fn a_gain_within_the_noise_is_none() {
        let mut outcome = outcome();
        // Better on the whole, but not always.
        for way in Way::ALL.into_iter().filter(|way| way.is_ring()) {
            change(&mut outcome, way, 3, 1.3);
        }
        let median = claim(&outcome, "two CPUs: io_uring beats");
        assert_eq!(median.verdict(), Verdict::Missed);
        assert!(median.ratio.is_some_and(|ratio| ratio < WIN), "{median:?}");
        assert!(median.measured.contains("below 1 in 73 %"), "{median:?}");
    }

    #[test]
    fn few_rounds_say_nothing_of_io_uring() {
        let mut outcome = outcome();
        outcome.rows.retain(|row| row.round < 7);
        let claim = claim(&outcome, "two CPUs: io_uring beats");
        assert_eq!(claim.verdict(), Verdict::NotMeasured);
        assert!(claim.measured.starts_with("too few rounds; io_uring, "));
        assert!(claim.ratio.is_some());
    }

    #[test]
    fn idle_connections_that_cost_are_said() {
        let mut outcome = outcome();
        let rows = outcome.rows.iter_mut();
        for row in rows.filter(|row| row.trial.setting.idle > 0) {
            row.latency.p50_us *= 1.06;
        }
        let claim = claim(&outcome, "one CPU, FIFO: 1000 idle connections");
        assert_eq!(claim.verdict(), Verdict::Missed);
    }

    #[test]
    fn nothing_is_claimed_of_what_was_not_measured() {
        let mut outcome = outcome();
        outcome.io_uring = IoUring::Refused("no".to_owned());
        outcome.rows.retain(|row| {
            let trial = row.trial;
            !trial.way.is_ring() && trial.setting.class == Class::Ordinary
        });
        for claim in outcome.claims() {
            let expected = match claim.claim.contains("FIFO") || claim.claim.contains("io_uring") {
                true => Verdict::NotMeasured,
                false => Verdict::Pass,
            };
            assert_eq!(claim.verdict(), expected, "{claim:?}");
        }
    }

    #[test]
    fn figures_for_programs_have_the_documented_shape() {
        let outcome = outcome();
        let figures = outcome.figures();
        assert_eq!(figures["experiment"], "waits");
        assert_eq!(figures["io_uring"]["permitted"], "deferred");
        let row = &figures["rows"][1];
        assert_eq!(row["processors"], "one");
        assert_eq!(row["class"], "ordinary");
        assert_eq!(row["idle"], 0);
        assert_eq!(row["way"], "level-triggered");
        assert_eq!(row["round"], 1);
        assert_eq!(row["p50_us"], 13.01);
        assert_eq!(figures["claims"][0]["verdict"], "PASS");
        assert!(figures["claims"][0]["ratio"].is_number());
        assert_eq!(figures["plan"]["rounds"], 11);
    }
}
