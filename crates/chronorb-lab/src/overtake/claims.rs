//! What should be true of the figures, and whether it is.

use serde::Serialize;

use super::case::{Case, Load, Pool, Series, Strategy};
use super::outcome::{Figure, Outcome, trial};
use crate::units;
use crate::verdict::Verdict;

/// Something that should be true, held against the figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// What should be true.
    pub claim: String,
    /// Where it comes from.
    pub paper: &'static str,
    /// What is to be met.
    pub published: String,
    /// The figures that say whether it is.
    pub measured: String,
    /// The first of them by what they are compared with: p99 by that of the idle machine, or by the
    /// work. 1 is as good as nothing else to do, or no more than the work.
    pub ratio: Option<f64>,
    /// Whether it is true.
    pub verdict: Verdict,
}

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
    let figures = outcome.figure(trial.idle()).zip(outcome.figure(trial));
    let figures = figures.filter(|(_, loaded)| was_loaded(case, loaded));
    let (measured, ratio) = match figures {
        Some((idle, loaded)) => {
            let refused = match case.load {
                Load::Full => format!(", {} refused", units::count(loaded.refused_requests)),
                _ => String::new(),
            };
            let measured = format!(
                "{} idle, {} loaded (processors {:.0} % busy{refused})",
                units::time(idle.p99_us),
                units::time(loaded.p99_us),
                loaded.cpu_busy_percent,
            );
            (measured, Some(loaded.p99_us / idle.p99_us))
        }
        None => Default::default(),
    };
    Claim {
        claim,
        paper: LANES,
        published: format!("at most {WITHIN} times the idle p99"),
        measured,
        ratio: ratio.map(rounded),
        verdict: judge(ratio, WITHIN),
    }
}

/// With borrowing, calls of an exhausted high lane do not wait for its slow calls.
fn borrows(outcome: &Outcome, strategy: Strategy) -> Claim {
    let trial = trial(strategy, BORROWING, Series::Periodic);
    let slow_us = micros(outcome.plan.slow_work);
    let claim = format!(
        "{}, borrowing: calls go on at once while the high lane is exhausted and lower threads are \
         free",
        strategy.title(),
    );
    let figures = outcome.figure(trial.idle()).zip(outcome.figure(trial));
    let ratio = figures.map(|(_, loaded)| loaded.p99_us / slow_us);
    Claim {
        claim,
        paper: BORROW,
        published: format!(
            "p99 below a fifth of one slow call's {}",
            units::time(slow_us)
        ),
        measured: figures.map_or_else(String::new, |(idle, loaded)| {
            format!(
                "{}, idle {}",
                units::time(loaded.p99_us),
                units::time(idle.p99_us)
            )
        }),
        ratio: ratio.map(rounded),
        verdict: judge(ratio, AT_ONCE),
    }
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
    let figures = outcome.figure(trial.idle()).zip(outcome.figure(trial));
    let figures = figures.filter(|(_, loaded)| was_loaded(EXHAUSTED, loaded));
    let bound = figures.map(|(idle, _)| work_us + calls * idle.p99_us);
    let ratio = figures.map(|(_, loaded)| loaded.p99_us / work_us);
    let verdict = match figures.zip(bound) {
        Some(((_, loaded), bound)) => Verdict::of(loaded.p99_us <= bound),
        None => Verdict::NotMeasured,
    };
    Claim {
        claim,
        paper: LANES,
        published: format!(
            "p99 at most the {} of {} slow calls, and for each of {calls} calls the idle p99{}",
            units::time(work_us),
            outcome.plan.slow_callers,
            bound.map_or_else(String::new, |bound| format!(
                ", {} in all",
                units::time(bound)
            )),
        ),
        measured: figures.map_or_else(String::new, |(_, loaded)| {
            format!(
                "{}, the longest call {} (processors {:.0} % busy)",
                units::time(loaded.p99_us),
                units::time(loaded.max_us),
                loaded.cpu_busy_percent,
            )
        }),
        ratio: ratio.map(rounded),
        verdict,
    }
}

/// Whether the load was what it is said to be, so that the figures tell something.
fn was_loaded(case: Case, figure: &Figure) -> bool {
    let busy = !case.load.saturates() || figure.cpu_busy_percent >= BUSY_PERCENT;
    let full = case.load != Load::Full || figure.refused_requests > 0;
    busy && full
}

fn judge(ratio: Option<f64>, limit: f64) -> Verdict {
    ratio.map_or(Verdict::NotMeasured, |ratio| Verdict::of(ratio <= limit))
}

fn rounded(ratio: f64) -> f64 {
    (ratio * 1e3).round() / 1e3
}

fn micros(duration: std::time::Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// A loaded p99 by the idle one.
const WITHIN: f64 = 2.0;
/// A p99 by the length of one slow call.
const AT_ONCE: f64 = 0.2;
/// Processors that are saturated have no time left.
const BUSY_PERCENT: f64 = 97.0;
const LANES: &str = "Real-time CORBA 1.2, 5.8: thread pools with lanes";
const BORROW: &str = "Real-time CORBA 1.2, 5.8: thread borrowing";
