//! Transactions: analysed, and simulated with locks.

use chronorb_sched::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// The processors A and B and the link N of case T15.
pub(crate) fn resources() -> [Resource; 3] {
    let link = Resource {
        preemption: Preemption::NonPreemptive,
        blocking: 1,
    };
    [Resource::default(), Resource::default(), link]
}

/// The transactions of case T15, with priorities doubled.
fn t15() -> [Transaction; 4] {
    let [a, b, n] = [0, 1, 2];
    [
        Transaction::new(
            50,
            vec![
                Step::new(a, 4, 80),
                Step::new(n, 2, 80),
                Step::new(b, 8, 80),
                Step::new(n, 2, 81),
                Step::new(a, 3, 82),
            ],
        ),
        Transaction::new(
            100,
            vec![
                Step::new(a, 10, 60),
                Step::new(n, 3, 60),
                Step::new(b, 15, 60),
                Step::new(n, 3, 61),
                Step::new(a, 5, 62),
            ],
        ),
        Transaction::new(30, vec![Step::new(b, 6, 100)]),
        Transaction::new(200, vec![Step::new(a, 20, 20)]),
    ]
}

/// Returns the longest response of each transaction.
fn ends(analysis: &HolisticAnalysis) -> Vec<Time> {
    let last = |it: &Vec<Response>| it.iter().filter_map(|it| it.time()).max();
    analysis.responses.iter().filter_map(last).collect()
}

fn simulated(result: &SystemResult) -> Vec<Time> {
    let worst = |it: &Vec<JobCounts>| it.iter().map(|it| it.worst_response).max();
    result.steps.iter().filter_map(worst).collect()
}

#[test]
fn t15_is_shorter_where_steps_follow_each_other() {
    let plain = analyse_transactions(&resources(), &t15()).unwrap();
    assert_eq!(ends(&plain), [36, 87, 6, 50]);
    let sequences = analyse_sequences(&resources(), &t15()).unwrap();
    assert!(sequences.schedulable);
    assert_eq!(sequences.responses[0][0], Response::Bounded(4));
    assert!(
        ends(&sequences)
            .iter()
            .zip(ends(&plain))
            .all(|(a, b)| *a <= b)
    );
    let result = simulate_transactions(&resources(), &t15(), &SystemSimulation::new(6000)).unwrap();
    let (simulated, analysed) = (simulated(&result), ends(&sequences));
    assert!(
        simulated.iter().zip(&analysed).all(|(a, b)| a <= b),
        "{simulated:?} {analysed:?}"
    );
    assert!(result.steps.iter().flatten().all(|it| it.missed == 0));
}

#[test]
fn a_least_time_is_no_jitter() {
    let cpus = [Resource::default(), Resource::default()];
    // The second step comes always at 5, so that it delays the other task once, and not twice.
    let chain = |least| {
        let first = Step::new(0, 5, 1).with_least(least);
        Transaction::new(10, vec![first, Step::new(1, 2, 2)])
    };
    let other = Transaction::new(10, vec![Step::new(1, 7, 1)]);
    let analysed = |least| {
        let set = [chain(least), other.clone()];
        analyse_sequences(&cpus, &set).unwrap()
    };
    assert!(!analysed(0).schedulable);
    let exact = analysed(5);
    assert!(exact.schedulable);
    assert_eq!(ends(&exact), [7, 9]);
}

/// Fixed priorities with deferred preemption: Bril, Lukkien and Verhaegh 2009. Jobs of 6 in parts
/// of 4 and 2 are delayed by each more urgent job that is released before the last part begins.
#[test]
fn more_urgent_work_begins_between_two_parts() {
    let link = [Resource {
        preemption: Preemption::NonPreemptive,
        blocking: 0,
    }];
    let urgent = Transaction::new(7, vec![Step::new(0, 2, 2)]);
    let long = Step::new(0, 6, 1);
    let ends_of = |long| {
        let set = [urgent.clone(), Transaction::new(50, vec![long])];
        ends(&analyse_transactions(&link, &set).unwrap())
    };
    assert_eq!(ends_of(long), [8, 8]);
    let parts = Parts {
        longest: 4,
        last: 2,
    };
    assert_eq!(ends_of(long.in_parts(parts)), [6, 8]);
    let parts = Parts {
        longest: 3,
        last: 1,
    };
    assert_eq!(ends_of(long.in_parts(parts)), [5, 10]);
}

#[test]
fn a_branch_has_a_deadline_of_its_own() {
    let cpus = [Resource::default()];
    let steps = vec![
        Step::new(0, 1, 3),
        Step::new(0, 5, 1).with_deadline(9),
        Step::new(0, 1, 2).after(0),
    ];
    let mut transaction = Transaction::new(10, steps);
    transaction.deadline = 3;
    let analysis = analyse_sequences(&cpus, &[transaction.clone()]).unwrap();
    assert!(analysis.schedulable);
    assert_eq!(analysis.responses[0], [1, 7, 2].map(Response::Bounded));
    let result = simulate_transactions(&cpus, &[transaction], &SystemSimulation::new(100)).unwrap();
    let worst: Vec<_> = result.steps[0].iter().map(|it| it.worst_response).collect();
    assert_eq!(worst, [1, 7, 2]);
}

/// The tasks of case T7 with their sections, from the most urgent one down.
fn t7() -> (Vec<Transaction>, Vec<StepSection>) {
    let tasks = [(5, 30, 4), (8, 50, 3), (12, 80, 2), (15, 150, 1)];
    let tasks = tasks.map(|(cost, period, priority)| {
        Transaction::new(period, vec![Step::new(0, cost, priority)])
    });
    let section = |transaction, lock, start, length| StepSection {
        transaction,
        step: 0,
        lock,
        start,
        length,
    };
    let sections = vec![
        section(0, 0, 1, 1),
        section(1, 1, 1, 3),
        section(2, 0, 1, 2),
        section(2, 1, 4, 4),
        section(3, 0, 1, 6),
        section(3, 1, 8, 5),
    ];
    (tasks.to_vec(), sections)
}

/// Simulates T7 from these arrivals.
fn run_t7(protocol: LockProtocol, offsets: [Time; 4]) -> Vec<Time> {
    let (tasks, sections) = t7();
    let rules = SystemSimulation {
        offsets: offsets.to_vec(),
        sections,
        protocol,
        ..SystemSimulation::new(2400)
    };
    simulated(&simulate_transactions(&[Resource::default()], &tasks, &rules).unwrap())
}

#[test]
fn t7_holds_in_the_simulation_from_any_arrivals() {
    let mut random = fastrand::Rng::with_seed(7);
    let bounds = [
        (LockProtocol::Ceiling, [11, 19, 36, 45]),
        (LockProtocol::Inheritance, [11, 23, 36, 45]),
    ];
    for (protocol, bounds) in bounds {
        let mut worst = [0; 4];
        for _ in 0..300 {
            let offsets = [(); 4].map(|()| random.u64(0..40));
            for (worst, time) in worst.iter_mut().zip(run_t7(protocol, offsets)) {
                *worst = time.max(*worst);
            }
        }
        assert!(
            worst.iter().zip(bounds).all(|(a, b)| *a <= b),
            "{protocol:?} {worst:?}"
        );
        // A lock delays the most urgent task, and by no more than its longest section.
        assert!(worst[0] > 5, "{worst:?}");
    }
}

#[test]
fn inheritance_blocks_twice_where_a_ceiling_blocks_once() {
    // The least urgent task holds lock 1, then the middle one lock 0; then the most urgent one
    // comes, which takes both.
    let tasks = [(6, 100, 3), (6, 100, 2), (6, 100, 1)];
    let tasks = tasks.map(|(cost, period, priority)| {
        Transaction::new(period, vec![Step::new(0, cost, priority)])
    });
    let section = |transaction, lock, start, length| StepSection {
        transaction,
        step: 0,
        lock,
        start,
        length,
    };
    let sections = vec![
        section(0, 0, 1, 1),
        section(0, 1, 3, 1),
        section(1, 0, 1, 5),
        section(2, 1, 1, 5),
    ];
    let run = |protocol| {
        let rules = SystemSimulation {
            offsets: vec![4, 2, 0],
            sections: sections.clone(),
            protocol,
            record: true,
            ..SystemSimulation::new(90)
        };
        simulate_transactions(&[Resource::default()], &tasks, &rules).unwrap()
    };
    let inheritance = run(LockProtocol::Inheritance);
    let ceiling = run(LockProtocol::Ceiling);
    assert_eq!(simulated(&inheritance)[0], 14);
    assert_eq!(simulated(&ceiling)[0], 8);
    // Each processor runs one step at a time, and all of each step.
    for result in [inheritance, ceiling] {
        assert!(
            result
                .slices
                .windows(2)
                .all(|two| two[0].end <= two[1].start)
        );
        assert_eq!(
            result
                .slices
                .iter()
                .map(|it| it.end - it.start)
                .sum::<Time>(),
            18
        );
    }
}

#[test]
fn bad_transactions_are_errors() {
    let cpus = [Resource::default()];
    let good = Transaction::new(10, vec![Step::new(0, 1, 1)]);
    let rules = SystemSimulation::new(100);
    let run = |transaction: Transaction, rules: &SystemSimulation| {
        simulate_transactions(&cpus, &[transaction], rules).unwrap_err()
    };
    let broken = Transaction::new(0, vec![Step::new(0, 1, 1)]);
    assert_eq!(run(broken, &rules), AnalysisError::ZeroPeriod { task: 0 });
    let broken = Transaction::new(10, vec![Step::new(0, 0, 1)]);
    assert_eq!(run(broken, &rules), AnalysisError::ZeroCost { task: 0 });
    for broken in [
        Transaction::new(10, vec![Step::new(3, 1, 1)]),
        Transaction::new(10, vec![Step::new(0, 1, 1), Step::new(0, 1, 1).after(1)]),
    ] {
        let error = run(broken.clone(), &rules);
        assert!(
            matches!(error, AnalysisError::NoSuchIndex { .. }),
            "{error}"
        );
        let error = analyse_transactions(&cpus, &[broken]).unwrap_err();
        assert!(
            matches!(error, AnalysisError::NoSuchIndex { .. }),
            "{error}"
        );
    }
    for (start, length, second) in [(0, 2, 5), (1, 0, 5), (0, 1, 0)] {
        let section = |start| StepSection {
            transaction: 0,
            step: 0,
            lock: 9,
            start,
            length,
        };
        let rules = SystemSimulation {
            sections: vec![section(start), section(second)],
            ..rules.clone()
        };
        let error = run(good.clone(), &rules);
        assert!(
            matches!(error, AnalysisError::NoSuchIndex { .. }),
            "{error}"
        );
    }
    let fast = Transaction::new(2, vec![Step::new(0, 1, 1)]);
    assert_eq!(
        run(fast, &SystemSimulation::new(Time::MAX)),
        AnalysisError::TooComplex
    );
}

/// Returns transactions over two processors and a link, some of them with branches. Messages are
/// sent in parts.
pub(crate) fn transactions() -> impl Strategy<Value = Vec<Transaction>> {
    let step = (0..3_usize, 1..5_u64, 1..8_u32, any::<bool>());
    let period = select(vec![20_u64, 30, 40, 60, 80, 120]);
    let transaction =
        (period, vec(step, 1..5)).prop_map(|(period, steps)| {
            let steps = steps.into_iter().enumerate().map(
                |(number, (resource, cost, priority, branch))| {
                    let mut step = Step::new(resource, cost, priority);
                    if resource == 2 {
                        let longest = u64::from(priority % 3) + 1;
                        let last = (cost - 1) % longest + 1;
                        step = step.in_parts(Parts { longest, last });
                    }
                    if branch && number > 1 {
                        step.after(number - 2)
                    } else {
                        step
                    }
                },
            );
            Transaction::new(period, steps.collect())
        });
    vec(transaction, 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sequences_are_between_the_simulation_and_the_plain_analysis(
        set in transactions(),
        offsets in vec(0..60_u64, 4),
    ) {
        let plain = analyse_transactions(&resources(), &set).unwrap();
        let sequences = analyse_sequences(&resources(), &set).unwrap();
        prop_assert!(sequences.schedulable || !plain.schedulable);
        if sequences.schedulable {
            let rules = SystemSimulation { offsets, ..SystemSimulation::new(2000) };
            let result = simulate_transactions(&resources(), &set, &rules).unwrap();
            for (steps, counts) in sequences.responses.iter().zip(&result.steps) {
                for (response, counts) in steps.iter().zip(counts) {
                    prop_assert!(Response::Bounded(counts.worst_response) <= *response);
                    prop_assert_eq!(counts.missed, 0);
                }
            }
        }
        if plain.schedulable {
            let both = sequences.responses.iter().flatten().zip(plain.responses.iter().flatten());
            for (sequence, plain) in both {
                prop_assert!(sequence <= plain);
            }
        }
    }

    #[test]
    fn one_step_is_a_task(costs in vec((1..6_u64, 1..6_u32), 1..6)) {
        let set: Vec<_> = costs.iter().enumerate().map(|(i, (cost, priority))| {
            let period = [20, 30, 40, 60, 80][i % 5];
            Transaction::new(period, vec![Step::new(0, *cost, *priority)])
        }).collect();
        let tasks: Vec<_> = set.iter().map(|it| {
            Task::new(it.steps[0].cost, it.period).with_priority(it.steps[0].priority)
        }).collect();
        let analysis = analyse_sequences(&[Resource::default()], &set).unwrap();
        let expected = responses(&tasks, Preemption::Preemptive).unwrap();
        if analysis.schedulable {
            prop_assert_eq!(analysis.responses.concat(), expected);
        }
        // The synchronous start is the worst one, and both simulators agree.
        let rules = SystemSimulation::new(480);
        let system = simulate_transactions(&[Resource::default()], &set, &rules);
        let single = simulate(&tasks, &Simulation::new(480), |_, _| 0).unwrap();
        let worst: Vec<_> = single.tasks.iter().map(|it| it.worst_response).collect();
        prop_assert_eq!(simulated(&system.unwrap()), worst);
    }
}
