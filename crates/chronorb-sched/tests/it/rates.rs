//! Admission of operations with several rates.

use chronorb_sched::*;

/// Returns an operation of this cost with these periods.
fn operation(cost: Time, periods: &[Time], criticality: u8) -> Vec<Task> {
    let each = periods.iter();
    each.map(|period| Task::new(cost, *period).with_criticality(criticality, 0))
        .collect()
}

#[test]
fn lowest_rates_come_first_and_criticality_decides_then() {
    // At the lowest rates they use 0.1, 0.2 and 0.3.
    let operations = [
        operation(10, &[50, 100, 25], 0),
        operation(20, &[100, 50], 1),
        operation(30, &[100], 2),
    ];
    let admitted = |limit: u128| admit_rates(&operations, limit * BILLION / 100).unwrap();
    // The period of 100 is the second one of the first operation.
    // There is room for the second operation, and not for the most critical one.
    assert_eq!(admitted(29), [None, Some(0), None]);
    assert_eq!(admitted(50), [None, Some(0), Some(0)]);
    assert_eq!(admitted(60), [Some(1), Some(0), Some(0)]);
    assert_eq!(admitted(70), [Some(0), Some(0), Some(0)]);
    assert_eq!(admitted(80), [Some(1), Some(1), Some(0)]);
    assert_eq!(admitted(100), [Some(0), Some(1), Some(0)]);
    assert_eq!(admitted(110), [Some(2), Some(1), Some(0)]);
}

#[test]
fn operations_without_rates_get_none() {
    assert_eq!(
        admit_rates(&[Vec::new(), operation(1, &[2], 0)], BILLION),
        Ok(vec![None, Some(0)])
    );
    let zero = [Vec::new(), operation(0, &[2], 0)];
    assert_eq!(
        admit_rates(&zero, BILLION),
        Err(AnalysisError::ZeroCost { task: 1 })
    );
}
