//! The experiment `failover`, run for real with next to nothing.

use chronorb_lab::failover::{Failover, FailoverCase, FailoverPlan};
use chronorb_lab::{Experiment, Findings, Verdict};

use crate::harness;

fn every_case_is_executed_as_told() {
    let outcome = Failover::measure(&FailoverPlan::tiny()).expect("it can be measured");
    let cases: Vec<_> = outcome.rows.iter().map(|row| row.case).collect();
    assert_eq!(cases, FailoverCase::ALL);
    for row in &outcome.rows {
        assert_eq!(row.trials, 1, "{row:?}");
        let threads = u64::from(outcome.plan.threads);
        assert_eq!(row.recovery.calls + row.left_early, threads, "{row:?}");
        assert!(row.all_calls >= threads * u64::from(outcome.plan.calls_after));
        assert_eq!(row.violations, 0, "{row:?}");
    }
    let claims = outcome.claims();
    assert_eq!(claims.len(), 5);
    for claim in &claims[..3] {
        assert_eq!(claim.verdict(), Verdict::Pass, "{claim:?}");
    }
    let figures = outcome.figures();
    assert_eq!(figures["experiment"], "failover");
    let row = &figures["rows"][0];
    for name in ["policy", "plug"] {
        assert!(row[name].is_string(), "{name}: {row}");
    }
    for name in ["trials", "p99_us", "max_us", "all_calls", "violations"] {
        assert!(row[name].is_number(), "{name}: {row}");
    }
    assert_eq!(outcome.html().matches("<svg").count(), 1);
}

fn an_unwritable_report_is_refused() {
    harness::an_unwritable_report_is_refused::<Failover>(FailoverPlan::tiny());
}

pub(crate) const TESTS: &[harness::Test] = &[
    (
        "every_case_is_executed_as_told",
        every_case_is_executed_as_told,
    ),
    (
        "an_unwritable_report_is_refused",
        an_unwritable_report_is_refused,
    ),
];
