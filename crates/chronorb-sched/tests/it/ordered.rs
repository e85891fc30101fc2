//! Levels that are served by the earliest deadline without preemption, among fixed priorities.

use chronorb_sched::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::transactions::resources;

/// A task of one level: (cost, period, deadline).
fn level(tasks: &[(Time, Time, Time)]) -> Vec<Transaction> {
    let each = tasks.iter().map(|(cost, period, deadline)| {
        let step = Step::new(0, *cost, 1).ordered_by(*deadline);
        let mut transaction = Transaction::new(*period, vec![step]);
        transaction.deadline = *deadline;
        transaction
    });
    each.collect()
}

fn times(analysis: &HolisticAnalysis) -> Vec<Option<Time>> {
    let each = analysis.responses.iter().flatten();
    each.map(|it| it.time()).collect()
}

/// The lane of experiment X13, in microseconds: utilisation 0.95, one thread.
fn x13(first: Time) -> Vec<Transaction> {
    level(&[
        (400, 4_000, first),
        (800, 8_000, 4_500),
        (1_500, 12_000, 9_000),
        (2_000, 16_000, 16_000),
        (2_500, 25_000, 25_000),
        (2_400, 12_000, 36_000),
        (1_600, 8_000, 48_000),
    ])
}

#[test]
fn a_lane_by_deadline_fits_where_one_of_any_order_does_not() {
    let cpus = [Resource::default()];
    let analysed = |set: &[Transaction]| analyse_sequences(&cpus, set).unwrap();
    let by_deadline = analysed(&x13(2_900));
    assert!(by_deadline.schedulable);
    // The longest other job, and its own.
    assert_eq!(times(&by_deadline)[0], Some(2_900));
    assert!(!analysed(&x13(2_899)).schedulable);

    let mut any_order = x13(2_900);
    for it in &mut any_order {
        it.steps[0].order = None;
    }
    assert!(!analysed(&any_order).schedulable);
    // One step without a deadline makes it a level of any order.
    let mut mixed = x13(2_900);
    mixed[6].steps[0].order = None;
    assert_eq!(analysed(&mixed), analysed(&any_order));

    let offsets = vec![0, 150, 350, 500, 900, 1_300, 1_900];
    let rules = SystemSimulation {
        offsets,
        ..SystemSimulation::new(10_000_000)
    };
    let missed = |set: &[Transaction]| -> u64 {
        let result = simulate_transactions(&cpus, set, &rules).unwrap();
        result.steps.iter().flatten().map(|it| it.missed).sum()
    };
    assert_eq!(missed(&x13(2_900)), 0);
    let some = missed(&x13(2_600));
    assert!((1..100).contains(&some), "{some}");
}

#[test]
fn more_urgent_levels_preempt_a_lane_by_deadline() {
    let mut set = level(&[(2, 20, 10), (5, 40, 40)]);
    set.push(Transaction::new(10, vec![Step::new(0, 3, 2)]));
    let cpus = [Resource::default()];
    let analysis = analyse_sequences(&cpus, &set).unwrap();
    // The longest job of the lane that has begun, its own, and 3 of the more urgent level.
    let expected = [Some(10), Some(10), Some(3)];
    assert_eq!(times(&analysis), expected);
    let rules = SystemSimulation {
        // The second one begins just before the others arrive.
        offsets: vec![1, 0, 1],
        record: true,
        ..SystemSimulation::new(40)
    };
    let result = simulate_transactions(&cpus, &set, &rules).unwrap();
    let first: Vec<_> = result
        .slices
        .iter()
        .map(|it| (it.transaction, it.start, it.end))
        .collect();
    assert_eq!(first[..4], [(1, 0, 1), (2, 1, 4), (1, 4, 8), (0, 8, 10)]);
}

/// A job for a simulation step by step: (arrival, release, deadline, cost, priority).
#[derive(Clone, Copy)]
struct Job {
    task: usize,
    arrival: Time,
    release: Time,
    deadline: Time,
    left: Time,
    priority: u32,
    has_begun: bool,
}

/// Runs jobs unit by unit on one processor: jobs of one priority to completion by deadline, and
/// others preempt. Returns the longest response of each task.
fn run(mut jobs: Vec<Job>, tasks: usize) -> Vec<Time> {
    let mut worst = vec![0; tasks];
    let mut now = 0;
    while !jobs.is_empty() {
        let ready = jobs.iter().enumerate().filter(|(_, it)| it.release <= now);
        let chosen = ready.min_by_key(|(_, it)| {
            (
                u32::MAX - it.priority,
                !it.has_begun,
                it.deadline,
                it.task,
                it.arrival,
            )
        });
        now += 1;
        let Some((chosen, _)) = chosen else {
            continue;
        };
        let job = &mut jobs[chosen];
        job.has_begun = true;
        job.left -= 1;
        if job.left == 0 {
            let ended = jobs.swap_remove(chosen);
            worst[ended.task] = worst[ended.task].max(now - ended.arrival);
        }
    }
    worst
}

/// Transactions on the resources of case T15, with levels in an order on both processors.
fn ordered_transactions() -> impl Strategy<Value = Vec<Transaction>> {
    let step = (0..3_usize, 1..6_u64, 1..4_u32, 1..120_u64);
    let period = select(vec![20_u64, 30, 40, 60, 80, 120]);
    let transaction = (period, vec(step, 1..4), 5..150_u64);
    let transaction = transaction.prop_map(|(period, steps, deadline)| {
        let each = steps.into_iter().map(|(resource, cost, priority, order)| {
            Step::new(resource, cost, priority).ordered_by(order)
        });
        let mut it = Transaction::new(period, each.collect());
        it.deadline = deadline;
        it
    });
    vec(transaction, 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_lane_alone_has_the_responses_of_its_deadlines(
        tasks in vec((1..8_u64, 0..4_usize, 10..90_u64), 2..6),
    ) {
        let periods = [20, 30, 40, 60];
        let tasks: Vec<_> = tasks.iter().map(|it| (it.0, periods[it.1], it.2)).collect();
        let plain: Vec<_> = (tasks.iter())
            .map(|it| Task::new(it.0, it.1).with_deadline(it.2))
            .collect();
        let by_deadline = deadline_responses(&plain, DeadlineBlocking::NonPreemptive).unwrap();
        let any_order = responses(&plain, Preemption::Preemptive).unwrap();
        let analysis = analyse_transactions(&[Resource::default()], &level(&tasks)).unwrap();
        let is_below = utilisation(&plain) < BILLION;
        for (i, response) in analysis.responses.concat().into_iter().enumerate() {
            let expected = by_deadline[i].min(any_order[i]);
            prop_assert!(!is_below || response == expected, "{:?} {:?}", response, expected);
        }
    }

    #[test]
    fn simulated_lanes_stay_below_their_analysis(
        set in ordered_transactions(),
        offsets in vec(0..60_u64, 6),
    ) {
        let analysis = analyse_sequences(&resources(), &set).unwrap();
        let rules = SystemSimulation { offsets, ..SystemSimulation::new(2_000) };
        let result = simulate_transactions(&resources(), &set, &rules).unwrap();
        for (responses, counts) in analysis.responses.iter().zip(&result.steps) {
            for (response, counts) in responses.iter().zip(counts) {
                let simulated = Response::Bounded(counts.worst_response);
                prop_assert!(simulated <= *response, "{:?} {:?}", simulated, response);
            }
        }
        let late = first_late_step(&resources(), &set).unwrap();
        prop_assert_eq!(late.is_none(), analysis.schedulable);
    }

    #[test]
    fn lanes_stay_below_with_late_releases_and_deadlines_from_the_release(
        tasks in vec((1..6_u64, 0..4_usize, 3..70_u64, 0..25_u64, 1..3_u32), 2..6),
        seed: u64,
    ) {
        let periods = [20, 30, 40, 60];
        let set: Vec<_> = tasks
            .iter()
            .map(|(cost, period, deadline, jitter, priority)| {
                let step = Step::new(0, *cost, *priority).ordered_by(*deadline);
                let mut it = Transaction::new(periods[*period], vec![step]);
                it.jitter = *jitter;
                it
            })
            .collect();
        let analysis = analyse_transactions(&[Resource::default()], &set).unwrap();
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..8 {
            let mut jobs = Vec::new();
            for (task, it) in set.iter().enumerate() {
                let mut arrival = random.u64(0..30);
                // Jobs of one task keep their order.
                let (mut release, mut deadline) = (0, 0);
                while arrival < 400 {
                    let late = if random.bool() { random.u64(0..=it.jitter) } else { it.jitter };
                    let late = if arrival > 120 { 0 } else { late };
                    let step = it.steps[0];
                    let order = step.order.unwrap();
                    release = release.max(arrival + late);
                    deadline = deadline.max(arrival + order + random.u64(0..=late));
                    jobs.push(Job {
                        task,
                        arrival,
                        release,
                        deadline,
                        left: step.cost,
                        priority: step.priority,
                        has_begun: false,
                    });
                    arrival += it.period;
                }
            }
            for (simulated, response) in run(jobs, set.len()).into_iter().zip(times(&analysis)) {
                prop_assert!(response.is_none_or(|it| simulated <= it), "{simulated} {response:?}");
            }
        }
    }
}
