//! Resources with many steps, whose sums of work are made in advance.

use chronorb_sched::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::properties::config;
use crate::transactions::{resources, transactions};

/// Returns many tasks with jitter, blocking and any order of priorities. Some sets need more than
/// a processor.
fn many_tasks() -> impl Strategy<Value = Vec<Task>> {
    let period = select(vec![1_000_u64, 1_500, 2_000, 3_700, 5_000, 12_000]);
    let delays = (0..900_u64, 0..40_u64, any::<bool>());
    let task = (period, 1..30_u64, 0..40_u32, delays);
    vec(task, 50..120).prop_map(|tasks| {
        let tasks = tasks.into_iter();
        let each = tasks.map(|(period, cost, priority, (jitter, blocking, is_delayed))| {
            let jitter = if is_delayed { jitter } else { 0 };
            Task::new(cost, period)
                .with_priority(priority)
                .with_jitter(jitter)
                .with_blocking(blocking)
        });
        each.collect()
    })
}

/// Returns one transaction of one step for each task.
fn one_step(task: &Task) -> Transaction {
    let mut step = Step::new(0, task.cost, task.priority);
    step.blocking = task.blocking;
    let mut transaction = Transaction::new(task.period, vec![step]);
    transaction.jitter = task.jitter;
    transaction
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn many_transactions_of_one_step_are_tasks(
        tasks in many_tasks(),
        preemption in select(vec![Preemption::Preemptive, Preemption::NonPreemptive]),
    ) {
        let set: Vec<_> = tasks.iter().map(one_step).collect();
        let resource = Resource { preemption, blocking: 0 };
        // The search of the tasks adds up loads.
        let expected = responses(&tasks, preemption).unwrap();
        for analyse in [analyse_transactions, analyse_sequences] {
            let analysis = analyse(&[resource], &set).unwrap();
            prop_assert_eq!(analysis.responses.concat(), expected.clone());
        }
        let late = first_late_step(&[resource], &set).unwrap();
        let mut all = tasks.iter().zip(&expected);
        prop_assert_eq!(late.is_none(), all.all(|(task, time)| time.meets(task.deadline)));
    }

    /// Steps of one priority that end within their period delay others as one step does.
    #[test]
    fn a_divided_step_delays_as_a_whole_one(
        set in transactions(),
        others in vec((0..2_usize, 1..4_u64, 2..10_u32), 1..4),
    ) {
        const PARTS: u64 = 50;
        const PERIOD: Time = 7_000;
        // The times of the set are multiplied, so that there is a time for each part.
        let longer = |it: &Transaction| {
            let mut longer = it.clone();
            longer.period *= PARTS;
            longer.deadline *= PARTS;
            for step in &mut longer.steps {
                step.cost *= PARTS;
            }
            longer
        };
        let set: Vec<_> = set.iter().map(longer).collect();
        let other = |(resource, cost, priority): &(usize, u64, u32), parts: u64| {
            Transaction::new(PERIOD, vec![Step::new(*resource, cost * parts, *priority)])
        };
        let wholes = others.iter().map(|it| other(it, PARTS));
        let parts = others.iter().flat_map(|it| vec![other(it, 1); PARTS as usize]);
        let whole: Vec<_> = set.iter().cloned().chain(wholes).collect();
        let divided: Vec<_> = set.iter().cloned().chain(parts).collect();
        for analyse in [analyse_transactions, analyse_sequences] {
            let whole = analyse(&resources(), &whole).unwrap();
            if !whole.schedulable {
                return Ok(());
            }
            let divided = analyse(&resources(), &divided).unwrap();
            prop_assert!(divided.schedulable);
            let (own, others) = divided.responses.split_at(set.len());
            prop_assert_eq!(own, &whole.responses[..set.len()]);
            for (parts, whole) in others.chunks(PARTS as usize).zip(&whole.responses[set.len()..]) {
                prop_assert!(parts.iter().all(|it| it == whole));
            }
        }
        prop_assert_eq!(first_late_step(&resources(), &divided).unwrap(), None);
    }
}
