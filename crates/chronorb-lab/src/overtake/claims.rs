//! The aims of the experiment: calls of high priority overtake all others.

use super::case::{CallSeries, OvertakeCase, OvertakeLoad, OvertakePool, OvertakeTrial, Strategy};
use super::outcome::{OvertakeFigure, OvertakeOutcome};
use crate::Claim;
use crate::units;

/// Returns all claims.
pub(super) fn of(outcome: &OvertakeOutcome) -> Vec<Claim> {
    let mut claims = Vec::new();
    for strategy in Strategy::ALL {
        let trial = |case, series| OvertakeTrial::new(strategy, case, series);
        for case in [SATURATED, FULL] {
            claims.extend(CallSeries::ALL.map(|series| overtakes(outcome, trial(case, series))));
        }
        claims.push(borrows(outcome, trial(BORROWING, CallSeries::Periodic)));
        claims.push(waits_for_its_own(
            outcome,
            trial(EXHAUSTED, CallSeries::Periodic),
        ));
    }
    claims
}

pub(super) const SATURATED: OvertakeCase =
    OvertakeCase::new(OvertakePool::Lanes, OvertakeLoad::Saturated);
pub(super) const IDLE: OvertakeCase = SATURATED.under(OvertakeLoad::Idle);
pub(super) const AWAKE: OvertakeCase = SATURATED.under(OvertakeLoad::Awake);
pub(super) const FULL: OvertakeCase =
    OvertakeCase::new(OvertakePool::Buffering, OvertakeLoad::Full);
pub(super) const BORROWING: OvertakeCase =
    OvertakeCase::new(OvertakePool::Borrowing, OvertakeLoad::Exhausted);
pub(super) const EXHAUSTED: OvertakeCase =
    OvertakeCase::new(OvertakePool::Lanes, OvertakeLoad::ExhaustedSaturated);
pub(super) const NO_LANES: OvertakeCase =
    OvertakeCase::new(OvertakePool::NoLanes, OvertakeLoad::Saturated);

/// Calls of the high lane take at most twice the time that they take on an idle machine.
fn overtakes(outcome: &OvertakeOutcome, trial: OvertakeTrial) -> Claim {
    let is_full = trial.case.load == OvertakeLoad::Full;
    let while_what = if is_full {
        "the lower lanes are saturated, their buffers full and more is refused"
    } else {
        "the lower lanes are saturated by endless work"
    };
    let claim = format!(
        "{}, {} calls: p99 within {WITHIN} of idle while {while_what}",
        trial.strategy.title(),
        trial.series.name(),
    );
    let ratio = outcome.ratio(trial, OvertakeLoad::Idle);
    let measured = loaded(outcome, trial).zip(ratio).map(|(figure, ratio)| {
        let refused = is_full.then(|| units::count(figure.refused_requests));
        let refused = refused.map_or_else(String::new, |count| format!(", {count} refused"));
        let measured = format!(
            "{}, {} when idle, {} when idle and awake (processors {:.0} % busy{refused})",
            units::time(figure.latency.p99_us),
            p99(outcome, trial.under(OvertakeLoad::Idle)),
            p99(outcome, trial.under(OvertakeLoad::Awake)),
            figure.cpu_busy_percent,
        );
        (ratio, measured)
    });
    Claim::aim(claim).by_ratio(measured, |ratio| ratio <= WITHIN)
}

/// With borrowing, calls of an exhausted high lane do not wait for its slow calls.
fn borrows(outcome: &OvertakeOutcome, trial: OvertakeTrial) -> Claim {
    let claim = format!(
        "{}, borrowing: calls go on at once while the high lane is exhausted and lower threads are \
         free, with a p99 within {WITHIN} of an idle machine kept awake",
        trial.strategy.title(),
    );
    let ratio = outcome.ratio(trial, OvertakeLoad::Awake);
    let measured = outcome.figure(trial).zip(ratio).map(|(figure, ratio)| {
        let measured = format!(
            "{}, {} when idle and awake, the longest call {}",
            units::time(figure.latency.p99_us),
            p99(outcome, trial.under(OvertakeLoad::Awake)),
            units::time(figure.latency.max_us),
        );
        (ratio, measured)
    });
    Claim::aim(claim).by_ratio(measured, |ratio| ratio <= WITHIN)
}

/// Without borrowing, calls of an exhausted high lane wait for the work of this lane alone.
fn waits_for_its_own(outcome: &OvertakeOutcome, trial: OvertakeTrial) -> Claim {
    let claim = format!(
        "{}, no borrowing: in an exhausted high lane a call waits for the work of its own lane \
         alone while the lower lanes are saturated",
        trial.strategy.title(),
    );
    let work_us = outcome.plan.work_before().as_secs_f64() * 1e6;
    // A call, and each call before it, takes the time of an idle call besides its work.
    let calls = f64::from(outcome.plan.slow_callers) + 1.0;
    let idle = outcome.figure(trial.under(OvertakeLoad::Idle));
    let measured = idle.zip(loaded(outcome, trial)).map(|(idle, loaded)| {
        let bound = work_us + calls * idle.latency.p99_us;
        let measured = format!(
            "{}, at most {}: {} for the work of {} slow calls, and the idle p99 for each of \
             {calls} calls; the longest call {} (processors {:.0} % busy)",
            units::time(loaded.latency.p99_us),
            units::time(bound),
            units::time(work_us),
            outcome.plan.slow_callers,
            units::time(loaded.latency.max_us),
            loaded.cpu_busy_percent,
        );
        (loaded.latency.p99_us / bound, measured)
    });
    Claim::aim(claim).by_ratio(measured, |ratio| ratio <= 1.0)
}

/// Returns the p99 of a trial in words.
pub(super) fn p99(outcome: &OvertakeOutcome, trial: OvertakeTrial) -> String {
    let p99 = outcome.p99(trial).map(units::time);
    p99.unwrap_or_else(|| "not measured".to_owned())
}

/// Returns the figure of a trial, if the load was as heavy as its case demands.
fn loaded(outcome: &OvertakeOutcome, trial: OvertakeTrial) -> Option<OvertakeFigure> {
    let load = trial.case.load;
    let figure = outcome.figure(trial)?;
    let is_busy = !load.saturates() || figure.cpu_busy_percent >= BUSY_PERCENT;
    let is_full = load != OvertakeLoad::Full || figure.refused_requests > 0;
    (is_busy && is_full).then_some(figure)
}

/// The greatest factor between the loaded p99 and the idle one.
const WITHIN: f64 = 2.0;
/// The share of time for which saturated processors are busy.
const BUSY_PERCENT: f64 = 97.0;

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::super::{OvertakePlan, OvertakeRow};
    use super::*;
    use crate::Verdict;
    use crate::environment::Environment;
    use crate::experiment::Findings;
    use crate::stats::Record;

    /// An outcome of which all claims hold: calls take 100 µs, in an exhausted lane 6 ms, and
    /// without lanes as long as the load lasts.
    pub(in super::super) fn outcome() -> OvertakeOutcome {
        let mut rows = Vec::new();
        let mut pooled = crate::report::PooledRecords::default();
        for strategy in Strategy::ALL {
            for case in OvertakeCase::ALL {
                for series in CallSeries::ALL {
                    let us = match case {
                        EXHAUSTED => 6_000,
                        NO_LANES => 2_000_000,
                        _ => 100,
                    };
                    let trial = OvertakeTrial::new(strategy, case, series);
                    for round in 1..=3 {
                        let mut calls = Record::new();
                        for call in 0..10 {
                            let latency = Duration::from_micros(us + u64::from(round));
                            calls.add(call * Duration::from_millis(10), latency);
                        }
                        pooled.add(trial, &calls);
                        rows.push(OvertakeRow {
                            trial,
                            round,
                            latency: calls.summary(),
                            cpu_busy_percent: 100.0,
                            cpu_stolen_percent: 0.0,
                            refused_requests: u64::from(case.load == OvertakeLoad::Full),
                            middle_longest_stop_us: case.load.saturates().then_some(400),
                        });
                    }
                }
            }
        }
        OvertakeOutcome {
            plan: OvertakePlan::full(),
            environment: Environment::example(),
            real_time: true,
            memory_locked: true,
            rows,
            pooled,
        }
    }

    fn verdicts(outcome: &OvertakeOutcome) -> Vec<Verdict> {
        let claims = outcome.claims();
        claims.into_iter().map(|claim| claim.verdict()).collect()
    }

    fn change(
        outcome: &mut OvertakeOutcome,
        case: OvertakeCase,
        change: impl Fn(&mut OvertakeRow),
    ) {
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
            let expected = if loaded {
                Verdict::Pass
            } else {
                Verdict::NotMeasured
            };
            assert_eq!(claim.verdict(), expected, "{claim:?}");
        }
    }

    #[test]
    fn waiting_for_more_than_the_lanes_own_work_is_said() {
        let mut outcome = outcome();
        change(&mut outcome, EXHAUSTED, |row| row.latency.p99_us = 6_500.0);
        let missed = |outcome: &OvertakeOutcome| {
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
