//! What should be true of the figures, and whether it is.

use super::case::{Case, Load, Pool, Series, Strategy, Trial};
use super::outcome::{Figure, Outcome, trial};
use crate::Claim;
use crate::units;

/// All claims.
pub(super) fn of(outcome: &Outcome) -> Vec<Claim> {
    let mut claims = Vec::new();
    for strategy in Strategy::ALL {
        for case in [SATURATED, FULL] {
            for series in Series::ALL {
                claims.push(overtakes(outcome, strategy, case, series));
            }
        }
        claims.push(borrows(outcome, strategy));
        claims.push(waits_for_its_own(outcome, strategy));
    }
    claims
}

pub(super) const SATURATED: Case = Case::new(Pool::Lanes, Load::Saturated);
pub(super) const FULL: Case = Case::new(Pool::Buffering, Load::Full);
pub(super) const BORROWING: Case = Case::new(Pool::Borrowing, Load::Exhausted);
pub(super) const EXHAUSTED: Case = Case::new(Pool::Lanes, Load::ExhaustedSaturated);
pub(super) const NO_LANES: Case = Case::new(Pool::NoLanes, Load::Saturated);

/// Calls of the high lane take no longer than twice what they take when nothing else is done.
fn overtakes(outcome: &Outcome, strategy: Strategy, case: Case, series: Series) -> Claim {
    let trial = trial(strategy, case, series);
    let while_what = match case.load {
        Load::Full => "the lower lanes are saturated, their buffers full and more is refused",
        _ => "the lower lanes are saturated by endless work",
    };
    let claim = format!(
        "{}, {} calls: p99 within {WITHIN} of idle while {while_what}",
        strategy.title(),
        series.name(),
    );
    let ratio = outcome.ratio(trial, Load::Idle);
    let loaded = outcome.figure(trial).zip(ratio);
    let loaded = loaded.filter(|(figure, _)| was_loaded(case, figure));
    let measured = loaded.map(|(figure, ratio)| {
        let refused = match case.load {
            Load::Full => format!(", {} refused", units::count(figure.refused_requests)),
            _ => String::new(),
        };
        let measured = format!(
            "{}, {} when idle, {} when idle and awake (processors {:.0} % busy{refused})",
            units::time(figure.p99_us),
            p99(outcome, trial.under(Load::Idle)),
            p99(outcome, trial.under(Load::Awake)),
            figure.cpu_busy_percent,
        );
        (ratio, measured)
    });
    Claim::aim(claim).by_ratio(measured, |ratio| ratio <= WITHIN)
}

/// With borrowing, calls of an exhausted high lane take no longer than twice what they take when it
/// is not exhausted: they do not wait for its slow calls.
fn borrows(outcome: &Outcome, strategy: Strategy) -> Claim {
    let trial = trial(strategy, BORROWING, Series::Periodic);
    let claim = format!(
        "{}, borrowing: calls go on at once while the high lane is exhausted and lower threads are \
         free, with a p99 within {WITHIN} of an idle machine kept awake",
        strategy.title(),
    );
    let figures = outcome.figure(trial).zip(outcome.ratio(trial, Load::Awake));
    let measured = figures.map(|(figure, ratio)| {
        let measured = format!(
            "{}, {} when idle and awake, the longest call {}",
            units::time(figure.p99_us),
            p99(outcome, trial.under(Load::Awake)),
            units::time(figure.max_us),
        );
        (ratio, measured)
    });
    Claim::aim(claim).by_ratio(measured, |ratio| ratio <= WITHIN)
}

/// Without borrowing, calls of an exhausted high lane wait for the work of this lane alone.
fn waits_for_its_own(outcome: &Outcome, strategy: Strategy) -> Claim {
    let trial = trial(strategy, EXHAUSTED, Series::Periodic);
    let work_us = micros(outcome.plan.work_before());
    let claim = format!(
        "{}, no borrowing: in an exhausted high lane a call waits for the work of its own lane alone \
         while the lower lanes are saturated",
        strategy.title(),
    );
    // Each of the calls that it waits for, and it itself, takes what a call takes besides its work.
    let calls = f64::from(outcome.plan.slow_callers) + 1.0;
    let figures = outcome
        .figure(trial.under(Load::Idle))
        .zip(outcome.figure(trial));
    let figures = figures.filter(|(_, loaded)| was_loaded(EXHAUSTED, loaded));
    let measured = figures.map(|(idle, loaded)| {
        let bound = work_us + calls * idle.p99_us;
        let measured = format!(
            "{}, at most {}: {} for the work of {} slow calls, and the idle p99 for each of {calls} \
             calls; the longest call {} (processors {:.0} % busy)",
            units::time(loaded.p99_us),
            units::time(bound),
            units::time(work_us),
            outcome.plan.slow_callers,
            units::time(loaded.max_us),
            loaded.cpu_busy_percent,
        );
        (loaded.p99_us / bound, measured)
    });
    Claim::aim(claim).by_ratio(measured, |ratio| ratio <= 1.0)
}

fn p99(outcome: &Outcome, trial: Trial) -> String {
    let figure = outcome.figure(trial);
    figure.map_or_else(|| "unknown".to_owned(), |f| units::time(f.p99_us))
}

/// Whether the load was what it is said to be, so that the figures tell something.
fn was_loaded(case: Case, figure: &Figure) -> bool {
    let busy = !case.load.saturates() || figure.cpu_busy_percent >= BUSY_PERCENT;
    let full = case.load != Load::Full || figure.refused_requests > 0;
    busy && full
}

fn micros(duration: std::time::Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// A loaded p99 by the idle one.
const WITHIN: f64 = 2.0;
/// Processors that are saturated have no time left.
const BUSY_PERCENT: f64 = 97.0;

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::super::{Plan, Row};
    use super::*;
    use crate::Verdict;
    use crate::environment::Environment;
    use crate::experiment::Findings;
    use crate::stats::Record;

    /// One of which everything holds that is claimed: calls take 100 µs, in an exhausted lane 6 ms,
    /// and without lanes as long as the load lasts.
    pub(in super::super) fn outcome() -> Outcome {
        let mut rows = Vec::new();
        let mut pooled = Vec::new();
        for strategy in Strategy::ALL {
            for case in Case::ALL {
                for series in Series::ALL {
                    let us = match case {
                        EXHAUSTED => 6_000,
                        NO_LANES => 2_000_000,
                        _ => 100,
                    };
                    let trial = trial(strategy, case, series);
                    let mut all = Record::new();
                    for round in 1..=3 {
                        let mut calls = Record::new();
                        for call in 0..10 {
                            let latency = Duration::from_micros(us + u64::from(round));
                            calls.add(call * Duration::from_millis(10), latency);
                        }
                        all.merge(&calls);
                        rows.push(Row {
                            trial,
                            round,
                            latency: calls.summary(),
                            cpu_busy_percent: 100.0,
                            cpu_stolen_percent: 0.0,
                            refused_requests: u64::from(case.load == Load::Full),
                            middle_longest_stop_us: case.load.saturates().then_some(400),
                        });
                    }
                    pooled.push((trial, all));
                }
            }
        }
        Outcome {
            plan: Plan::full(),
            environment: Environment::example(),
            real_time: true,
            memory_locked: true,
            rows,
            pooled,
        }
    }

    fn verdicts(outcome: &Outcome) -> Vec<Verdict> {
        let claims = outcome.claims();
        claims.into_iter().map(|claim| claim.verdict()).collect()
    }

    fn change(outcome: &mut Outcome, case: Case, change: impl Fn(&mut Row)) {
        let rows = outcome.rows.iter_mut();
        rows.filter(|row| row.trial.case == case).for_each(change);
    }

    #[test]
    fn what_holds_passes() {
        assert_eq!(verdicts(&outcome()), [Verdict::Pass; 12]);
    }

    #[test]
    fn calls_that_do_not_overtake_are_said() {
        let mut outcome = outcome();
        change(&mut outcome, SATURATED, |row| row.latency.p99_us = 210.0);
        let claim = &outcome.claims()[0];
        assert_eq!(claim.verdict(), Verdict::Missed);
        assert_eq!(claim.ratio, Some(2.059));
        let measured =
            "210 µs, 102 µs when idle, 102 µs when idle and awake (processors 100 % busy)";
        assert_eq!(claim.measured, measured);
    }

    #[test]
    fn one_round_that_was_disturbed_decides_nothing() {
        let mut outcome = outcome();
        change(&mut outcome, SATURATED, |row| {
            if row.round == 2 {
                row.latency.p99_us = 9_000.0;
            }
        });
        assert_eq!(verdicts(&outcome), [Verdict::Pass; 12]);
    }

    #[test]
    fn nothing_is_claimed_where_the_load_was_none() {
        let mut outcome = outcome();
        change(&mut outcome, SATURATED, |row| row.cpu_busy_percent = 80.0);
        change(&mut outcome, FULL, |row| row.refused_requests = 0);
        for claim in outcome.claims() {
            let loaded = claim.claim.contains("exhausted");
            let expected = match loaded {
                true => Verdict::Pass,
                false => Verdict::NotMeasured,
            };
            assert_eq!(claim.verdict(), expected, "{claim:?}");
        }
    }

    #[test]
    fn waiting_for_more_than_the_lanes_own_work_is_said() {
        let mut outcome = outcome();
        change(&mut outcome, EXHAUSTED, |row| row.latency.p99_us = 6_500.0);
        let missed = |outcome: &Outcome| {
            let verdicts = verdicts(outcome).into_iter();
            verdicts
                .filter(|verdict| *verdict == Verdict::Missed)
                .count()
        };
        assert_eq!(missed(&outcome), Strategy::ALL.len());
        change(&mut outcome, EXHAUSTED, |row| row.latency.p99_us = 6_300.0);
        assert_eq!(missed(&outcome), 0);
    }

    #[test]
    fn slow_calls_that_are_waited_for_in_spite_of_borrowing_are_said() {
        let mut outcome = outcome();
        change(&mut outcome, BORROWING, |row| row.latency.p99_us = 2_000.0);
        let claims = outcome.claims();
        let borrowing = claims
            .iter()
            .filter(|claim| claim.claim.contains(", borrowing:"));
        assert!(borrowing.clone().count() > 0);
        assert!(
            borrowing
                .clone()
                .all(|claim| claim.verdict() == Verdict::Missed)
        );
    }
}
