//! The aims of the experiment: calls end as their policies say, and soon.

use super::outcome::FailoverOutcome;
use super::plan::{Plug, Semantics};
use crate::Claim;
use crate::units;

/// Returns all claims.
pub(super) fn of(outcome: &FailoverOutcome) -> Vec<Claim> {
    let executions = Semantics::ALL.map(|policy| executed_as_told(outcome, policy));
    let times = Plug::ALL.map(|plug| in_time(outcome, plug));
    executions.into_iter().chain(times).collect()
}

/// Each call is executed as often as its policy and its result say.
fn executed_as_told(outcome: &FailoverOutcome, policy: Semantics) -> Claim {
    let rule = match policy {
        Semantics::OrbDefault | Semantics::BestEffort => {
            "an answered call was executed once, one completed NO not at all, one completed MAYBE \
             at most once"
        }
        Semantics::AtLeastOnce => {
            "an answered call was executed at least once, and at most once by each server, one \
             completed NO not at all"
        }
    };
    let claim = format!("{}: {rule}", policy.title());
    let rows: Vec<_> = outcome.of(policy).collect();
    let sum = |of: fn(&super::FailoverRow) -> u64| rows.iter().map(|row| of(row)).sum::<u64>();
    let measured = (!rows.is_empty()).then(|| {
        let violations = sum(|row| row.violations);
        let words = format!(
            "{} of {} calls were not, in {} deaths; {} raised NO, {} MAYBE, {} were executed twice",
            units::count(violations),
            units::count(sum(|row| row.all_calls)),
            units::count(sum(|row| row.trials)),
            units::count(sum(|row| row.not_executed)),
            units::count(sum(|row| row.uncertain)),
            units::count(sum(|row| row.executed_twice)),
        );
        (violations == 0, words)
    });
    Claim::aim(claim).holds(measured)
}

/// The next reply comes within the bound of the heartbeats and one call.
fn in_time(outcome: &FailoverOutcome, plug: Plug) -> Claim {
    let claim = format!(
        "From the death of a server that is {} to the next reply: p99 at most the bound of the \
         heartbeats and one call",
        plug.title()
    );
    let bound = outcome.bound_us();
    let measured = outcome.recovery(plug).map(|record| {
        let p99 = record.quantile_us(0.99);
        let words = format!(
            "{}, the longest {}; the bound is {}",
            units::time(p99),
            units::time(record.max_us()),
            units::time(bound)
        );
        (p99 / bound, words)
    });
    Claim::aim(claim).by_ratio(measured, |ratio| ratio <= 1.0)
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::HashMap;
    use std::time::Duration;

    use chronorb_rt::Monotonic;

    use super::super::order::{Completion, FailedCall, ThreadCalls};
    use super::super::outcome::CaseFigures;
    use super::super::plan::{FailoverCase, FailoverPlan};
    use super::*;
    use crate::Verdict;
    use crate::environment::Environment;
    use crate::stats::Record;

    /// The death of all servers.
    const DIED: Monotonic = Monotonic::from_nanos(1_000_000_000);

    /// A thread with two calls: one is answered, and one was not executed.
    fn thread(moved: Duration) -> ThreadCalls {
        let mut answered = Record::new();
        answered.add(Duration::ZERO, Duration::from_micros(100));
        ThreadCalls {
            first_call: 7,
            calls: 2,
            failures: vec![FailedCall {
                call: 8,
                completed: Completion::No,
                exception: "TRANSIENT".to_owned(),
            }],
            answered,
            moved_ns: (DIED + moved).as_nanos(),
        }
    }

    /// Figures of which all claims hold, if the first call is executed this often.
    fn executed(times: u32, moved: Duration) -> FailoverOutcome {
        let figures = FailoverCase::ALL.map(|case| {
            let mut figures = CaseFigures::new(case);
            let mut executions = HashMap::from([(7, times)]);
            figures.add(DIED, &thread(moved), &mut executions);
            assert!(executions.is_empty(), "all are known");
            figures.trials = 1;
            figures
        });
        let environment = Environment::example();
        FailoverOutcome::new(&FailoverPlan::full(), environment, figures.into())
    }

    pub(in super::super) fn outcome() -> FailoverOutcome {
        executed(1, Duration::from_millis(50))
    }

    fn verdicts(outcome: &FailoverOutcome) -> Vec<Verdict> {
        let claims = of(outcome).into_iter();
        claims.map(|claim| claim.verdict()).collect()
    }

    #[test]
    fn correct_figures_meet_all_aims() {
        assert_eq!(verdicts(&outcome()), [Verdict::Pass; 5]);
    }

    #[test]
    fn a_call_that_was_lost_or_executed_twice_is_a_missed_aim() {
        use Verdict::{Missed, Pass};
        let soon = Duration::from_millis(1);
        let lost = [Missed, Missed, Missed, Pass, Pass];
        assert_eq!(verdicts(&executed(0, soon)), lost);
        // Only one policy permits that.
        let twice = [Missed, Missed, Pass, Pass, Pass];
        assert_eq!(verdicts(&executed(2, soon)), twice);
        assert_eq!(verdicts(&executed(3, soon)), lost);
    }

    #[test]
    fn a_late_reply_is_a_missed_aim() {
        use Verdict::{Missed, Pass};
        let late = executed(1, Duration::from_millis(56));
        assert_eq!(verdicts(&late), [Pass, Pass, Pass, Missed, Missed]);
    }

    #[test]
    fn nothing_is_claimed_without_a_death() {
        let none = FailoverOutcome::new(
            &FailoverPlan::full(),
            Environment::example(),
            FailoverCase::ALL.map(CaseFigures::new).into(),
        );
        assert_eq!(verdicts(&none), [Verdict::NotMeasured; 5]);
    }
}
