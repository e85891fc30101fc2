//! The experiment `endurance`, run for real with next to nothing.

use chronorb_lab::endurance::{Endurance, EnduranceLoad, EndurancePlan};
use chronorb_lab::{Experiment, Findings};

use crate::harness;

fn every_load_goes_on_without_a_failure() {
    let outcome = Endurance::measure(&EndurancePlan::tiny()).expect("it can be measured");
    let loads: Vec<_> = outcome.rows.iter().map(|row| row.load).collect();
    assert_eq!(loads, EnduranceLoad::ALL);
    for row in &outcome.rows {
        assert!(row.calls > 0, "{row:?}");
        let failures = [row.unexplained, row.wrong, row.hung, row.lost, row.disorder];
        assert_eq!(failures, [0; 5], "{row:?}: {:?}", outcome.words);
    }
    assert!(outcome.deaths.is_empty(), "{:?}", outcome.deaths);
    assert!(outcome.kills + outcome.stops > 0);
    assert!(outcome.memory.iter().all(|sample| sample.octets > 100_000));

    let figures = outcome.figures();
    assert_eq!(figures["experiment"], "endurance");
    assert_eq!(figures["rows"][0]["load"], "urgent-calls");
    assert!(figures["memory"][0]["octets"].is_number());
    assert!(outcome.html().contains("<svg"));
}

fn an_unwritable_report_is_refused() {
    harness::an_unwritable_report_is_refused::<Endurance>(EndurancePlan::tiny());
}

pub(crate) const TESTS: &[harness::Test] = &[
    (
        "every_load_goes_on_without_a_failure",
        every_load_goes_on_without_a_failure,
    ),
    (
        "an_unwritable_report_is_refused",
        an_unwritable_report_is_refused,
    ),
];
