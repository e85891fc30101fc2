//! Transactions that are late: every response is a bound, or unbounded.

use chronorb_sched::*;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::bounded;
use crate::properties::config;
use crate::transactions::{resources, transactions};

fn one(cost: Time, period: Time, priority: u32) -> Transaction {
    Transaction::new(period, vec![Step::new(0, cost, priority)])
}

#[test]
fn a_late_task_delays_others_by_a_bound() {
    // Case T4, and two tasks below it.
    let set = [one(2, 5, 4), one(4, 7, 3), one(1, 100, 2), one(1, 200, 1)];
    let cpu = [Resource::default()];
    assert_eq!(first_late_step(&cpu, &set), Ok(Some((1, 0))));
    let analysis = analyse_sequences(&cpu, &set).unwrap();
    assert!(!analysis.schedulable);
    let tasks = set
        .clone()
        .map(|it| Task::new(it.steps[0].cost, it.period).with_priority(it.steps[0].priority));
    let expected = responses(&tasks, Preemption::Preemptive).unwrap();
    assert_eq!(analysis.responses.concat(), expected);
    assert_eq!(expected[..2], bounded([2, 8]));
    let rules = SystemSimulation::new(7000);
    let shown = simulate_transactions(&cpu, &set, &rules).unwrap();
    for (shown, response) in shown.steps.iter().zip(expected) {
        assert_eq!(Response::Bounded(shown[0].worst_response), response);
    }
}

#[test]
fn what_depends_on_an_overloaded_processor_is_unbounded() {
    let cpus = [Resource::default(), Resource::default()];
    let set = [
        one(6, 10, 3),
        // Beyond the processor together with the first; its second step delays the next one.
        Transaction::new(10, vec![Step::new(0, 5, 2), Step::new(1, 1, 2)]),
        Transaction::new(100, vec![Step::new(1, 5, 1)]),
        Transaction::new(50, vec![Step::new(1, 5, 3)]),
    ];
    for analysis in [
        analyse_sequences(&cpus, &set),
        analyse_transactions(&cpus, &set),
    ] {
        let analysis = analysis.unwrap();
        assert!(!analysis.schedulable);
        assert_eq!(analysis.responses[0], bounded([6]));
        assert_eq!(analysis.responses[1], [Response::Unbounded; 2]);
        assert_eq!(analysis.responses[2], [Response::Unbounded]);
        assert_eq!(analysis.responses[3], bounded([5]));
    }
}

#[test]
fn transactions_that_delay_each_other_more_and_more_are_unbounded() {
    // Each processor is used by 0.95, but the first step of each transaction is less urgent than
    // the second one of the other, whose jitter it makes.
    let cpus = [Resource::default(), Resource::default()];
    let chain = |first: usize| {
        Transaction::new(
            20,
            vec![Step::new(first, 8, 1), Step::new(1 - first, 11, 2)],
        )
    };
    let alone = one(1, 40, 3);
    let set = [chain(0), chain(1), alone];
    let analysis = analyse_sequences(&cpus, &set).unwrap();
    assert!(!analysis.schedulable);
    assert_eq!(analysis.responses[0], [Response::Unbounded; 2]);
    assert_eq!(analysis.responses[1], [Response::Unbounded; 2]);
    assert_eq!(analysis.responses[2], bounded([1]));
}

#[test]
fn a_deadline_beyond_the_period_leaves_other_transactions_shorter() {
    let cpus = [Resource::default(), Resource::default()];
    let call = || vec![Step::new(0, 4, 1), Step::new(1, 8, 1), Step::new(0, 3, 1)];
    let mut patient = Transaction::new(50, call());
    patient.deadline = 80;
    let analysis = analyse_sequences(&cpus, &[patient]).unwrap();
    assert_eq!(analysis.responses[0], bounded([4, 12, 15]));
    // Jobs that overlap count in full.
    let mut slow = Transaction::new(10, call());
    slow.deadline = 100;
    let (plain, sequences) = (
        analyse_transactions(&cpus, &[slow.clone()]).unwrap(),
        analyse_sequences(&cpus, &[slow.clone()]).unwrap(),
    );
    assert_eq!(plain.responses, sequences.responses);
    let rules = SystemSimulation::new(1000);
    let shown = simulate_transactions(&cpus, &[slow], &rules).unwrap();
    for (counts, response) in shown.steps[0].iter().zip(&sequences.responses[0]) {
        assert!(Response::Bounded(counts.worst_response) <= *response);
    }
}

#[test]
fn what_exceeds_64_bits_is_unbounded_once_a_step_is_late() {
    let cpus = [Resource::default(), Resource::default()];
    let huge = Time::MAX / 4;
    let set = [
        Transaction::new(huge, vec![Step::new(0, huge, 2), Step::new(1, huge - 1, 2)]),
        one(1, huge, 1),
        Transaction::new(huge, vec![Step::new(1, 1, 3)]),
    ];
    let analysis = analyse_sequences(&cpus, &set).unwrap();
    assert!(!analysis.schedulable);
    assert_eq!(analysis.responses[1], [Response::Unbounded]);
    assert_eq!(analysis.responses[2], bounded([1]));
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_late_job_takes_longer_than_its_bound(
        set in transactions(),
        offsets in vec(0..60_u64, 4),
        patience in vec(1..4_u64, 4),
        factor in 1..5_u64,
    ) {
        let mut set = set;
        for (transaction, patience) in set.iter_mut().zip(patience) {
            transaction.deadline = transaction.period * patience / 2;
            for step in &mut transaction.steps {
                step.cost *= factor;
            }
        }
        let rules = SystemSimulation { offsets, ..SystemSimulation::new(2000) };
        let shown = simulate_transactions(&resources(), &set, &rules).unwrap();
        let plain = analyse_transactions(&resources(), &set).unwrap();
        let sequences = analyse_sequences(&resources(), &set).unwrap();
        let late = first_late_step(&resources(), &set).unwrap();
        prop_assert_eq!(late.is_none(), sequences.schedulable);
        for (analysis, shorter) in [(&plain, &sequences), (&sequences, &sequences)] {
            let all = analysis.responses.iter().zip(&shorter.responses).zip(&shown.steps);
            for ((responses, shorter), counts) in all {
                for ((response, shorter), counts) in responses.iter().zip(shorter).zip(counts) {
                    prop_assert!(Response::Bounded(counts.worst_response) <= *response);
                    prop_assert!(shorter <= response);
                }
            }
        }
    }
}
