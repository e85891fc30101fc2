//! The claims about the figures.

use super::case::{Processors, Setting, WaitMethod};
use super::outcome::{P50, P99, Quantile, RoundRatio, WaitsOutcome};
use crate::Claim;

/// Judges all claims.
pub(super) fn of(outcome: &WaitsOutcome) -> Vec<Claim> {
    let near_blocking = |way: WaitMethod, limit| {
        Setting::places().map(move |place| {
            let name = way.name();
            let claim = format!("{name}: p50 at most {limit} of blocking recv");
            let ratio = outcome.by_blocking(place, way);
            judge(place, &claim, ratio, |ratio| ratio <= limit)
        })
    };
    let on_two = Setting::places().filter(|place| place.processors == Processors::Two);
    near_blocking(WaitMethod::EdgeTriggered, EDGE)
        .chain(Setting::places().map(|place| idle_is_free(outcome, place)))
        .chain(near_blocking(WaitMethod::HotConnection, HOT))
        .chain(on_two.flat_map(|place| spinning(outcome, place)))
        .chain(Setting::places().flat_map(|place| {
            [(P50, "median"), (P99, "tail (p99)")]
                .map(|(of, name)| ring_wins(outcome, place, of, name))
        }))
        .collect()
}

/// Judges whether idle connections make a set slower.
fn idle_is_free(outcome: &WaitsOutcome, place: Setting) -> Claim {
    let most = place.with_idle(outcome.plan.most_idle());
    let way = WaitMethod::EdgeTriggered;
    let claim = format!(
        "{} idle connections cost an edge-triggered set at most {:.0} % of p50",
        most.idle,
        (IDLE - 1.0) * 100.0
    );
    let ratio = outcome.ratio((most, way), (place, way), P50);
    judge(place, &claim, ratio, |ratio| ratio <= IDLE)
}

/// Judges whether spinning pays, and whether a thread can as well spin on all its connections.
fn spinning(outcome: &WaitsOutcome, place: Setting) -> [Claim; 2] {
    let pays = "a thread that spins in recv answers earlier than one that blocks";
    let by_blocking = outcome.by_blocking(place, WaitMethod::SpinReceive);
    let set = format!("spinning on the set alone: p50 at most {SET} of spinning in recv");
    let by_receive = outcome.ratio(
        (place, WaitMethod::SpinSet),
        (place, WaitMethod::SpinReceive),
        P50,
    );
    [
        judge(place, pays, by_blocking, |ratio| ratio < 1.0),
        judge(place, &set, by_receive, |ratio| ratio <= SET),
    ]
}

/// Judges whether the best way in io_uring beats the present one by more than the noise.
fn ring_wins(outcome: &WaitsOutcome, place: Setting, of: Quantile, name: &str) -> Claim {
    let mut claim = Claim::aim(format!(
        "{}: io_uring beats edge-triggered epoll in the {name} by more than the noise",
        place.place()
    ));
    let ways = WaitMethod::ALL.into_iter().filter(|way| way.is_ring());
    let ratios = ways.filter_map(|way| {
        let ratio = outcome.ratio((place, way), (place, WaitMethod::EdgeTriggered), of)?;
        Some((way, ratio))
    });
    let best = ratios.min_by(|(_, one), (_, other)| one.median.total_cmp(&other.median));
    let Some((way, ratio)) = best else {
        return claim;
    };
    let measured = format!(
        "{}, the best of them: {}, below 1 in {:.0} % of the rounds",
        way.name(),
        words(ratio),
        ratio.below_one * 100.0,
    );
    // The best of several ways can be the best of a few rounds by chance.
    if ratio.rounds < LEAST_ROUNDS {
        claim.ratio = Some((ratio.median * 1e3).round() / 1e3);
        claim.measured = format!("too few rounds; {measured}");
        return claim;
    }
    let wins = |median| median <= WIN && ratio.below_one >= MOST_ROUNDS;
    claim.by_ratio(Some((ratio.median, measured)), wins)
}

fn judge(
    place: Setting,
    claim: &str,
    ratio: Option<RoundRatio>,
    holds: impl FnOnce(f64) -> bool,
) -> Claim {
    let claim = Claim::aim(format!("{}: {claim}", place.place()));
    claim.by_ratio(ratio.map(|ratio| (ratio.median, words(ratio))), holds)
}

fn words(ratio: RoundRatio) -> String {
    format!(
        "{:.2} ({:.2} to {:.2} over the rounds)",
        ratio.median, ratio.least, ratio.greatest
    )
}

const EDGE: f64 = 1.1;
const HOT: f64 = 1.05;
const SET: f64 = 1.1;
const IDLE: f64 = 1.05;
/// A smaller gain is not worth another way to wait.
const WIN: f64 = 0.97;
const LEAST_ROUNDS: usize = 7;
/// The share of the rounds in which the winner has to be better.
const MOST_ROUNDS: f64 = 0.9;

#[cfg(test)]
pub(super) mod tests {
    use super::super::WaitsExperiment;
    use super::super::case::WaitsClass;
    use super::super::outcome::WaitsRow;
    use super::super::server::IoUring;
    use super::*;
    use crate::Verdict;
    use crate::environment::Environment;
    use crate::experiment::{Experiment, Findings};
    use crate::stats::Summary;

    /// An outcome that makes all claims true, with io_uring as the winner.
    pub(in super::super) fn outcome() -> WaitsOutcome {
        let plan = WaitsExperiment::full();
        let mut rows = Vec::new();
        for round in 1..=plan.rounds {
            for setting in plan.settings(2, true) {
                for way in setting.ways() {
                    let us = match way {
                        WaitMethod::Blocking => 10.0,
                        WaitMethod::EdgeTriggered | WaitMethod::HotConnection => 10.4,
                        way if way.spins() => 6.0,
                        way if way.is_ring() => 9.0,
                        _ => 13.0,
                    } + f64::from(round) / 100.0;
                    rows.push(WaitsRow {
                        setting,
                        way,
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
        WaitsOutcome {
            plan,
            environment,
            io_uring: IoUring::Permitted("deferred".to_owned()),
            processors: 2,
            rows,
        }
    }

    fn claim(outcome: &WaitsOutcome, part: &str) -> Claim {
        let mut claims = outcome.claims().into_iter();
        let found = claims.find(|claim| claim.claim.starts_with(part));
        found.expect("there is such a claim")
    }

    fn change(outcome: &mut WaitsOutcome, way: WaitMethod, rounds: u32, factor: f64) {
        let rows = outcome.rows.iter_mut();
        for row in rows.filter(|row| row.way == way && row.round <= rounds) {
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
        change(&mut outcome, WaitMethod::EdgeTriggered, 11, 1.2);
        let claim = claim(&outcome, "one CPU: epoll, edge-triggered");
        assert_eq!(claim.verdict(), Verdict::Missed);
        assert!(claim.measured.starts_with("1.25 ("), "{}", claim.measured);
    }

    #[test]
    fn a_gain_within_the_noise_is_none() {
        let mut outcome = outcome();
        // Better on the whole, but not always.
        for way in WaitMethod::ALL.into_iter().filter(|way| way.is_ring()) {
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
        for row in rows.filter(|row| row.setting.idle > 0) {
            row.latency.p50_us *= 1.06;
        }
        let claim = claim(&outcome, "one CPU, FIFO: 1000 idle connections");
        assert_eq!(claim.verdict(), Verdict::Missed);
    }

    #[test]
    fn nothing_is_claimed_of_what_was_not_measured() {
        let mut outcome = outcome();
        outcome.io_uring = IoUring::Refused("no".to_owned());
        outcome
            .rows
            .retain(|row| !row.way.is_ring() && row.setting.class == WaitsClass::Ordinary);
        for claim in outcome.claims() {
            let is_missing = claim.claim.contains("FIFO") || claim.claim.contains("io_uring");
            let expected = if is_missing {
                Verdict::NotMeasured
            } else {
                Verdict::Pass
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
