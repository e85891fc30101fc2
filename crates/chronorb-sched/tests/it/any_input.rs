//! Any input: every analysis ends without panic, and no arithmetic overflows.

use chronorb_sched::*;

/// Returns a time of any size: small, in the usual range of nanoseconds, or any.
fn any_time(random: &mut fastrand::Rng) -> Time {
    match random.u8(0..10) {
        0..6 => random.u64(0..20),
        6..9 => random.u64(1..1_000_000_000),
        _ => random.u64(..) >> random.u32(0..64),
    }
}

/// Returns a set of tasks with critical sections. Some of them refer to no task.
fn any_tasks(random: &mut fastrand::Rng) -> (Vec<Task>, Vec<Section>) {
    let tasks = (0..random.usize(0..5)).map(|_| {
        Task::new(any_time(random), any_time(random))
            .with_deadline(any_time(random))
            .with_jitter(any_time(random))
            .with_blocking(any_time(random))
            .with_priority(random.u32(0..5))
            .with_criticality(random.u8(0..3), random.u8(0..3))
            .with_offset(any_time(random))
    });
    let tasks = tasks.collect();
    let sections = (0..random.usize(0..4)).map(|_| Section {
        task: random.usize(0..5),
        lock: random.usize(0..3),
        length: any_time(random),
    });
    (tasks, sections.collect())
}

fn any_step(random: &mut fastrand::Rng, number: usize) -> Step {
    // Sometimes there is no such resource.
    let resource = usize::from(random.u8(..32)) / 15;
    let mut step = Step::new(resource, any_time(random).max(1), random.u32(0..5));
    step.blocking = any_time(random) * u64::from(random.u8(..4) == 0);
    step.least = any_time(random);
    step.deadline = random.bool().then(|| any_time(random).max(1));
    step.after = (number > 1 && random.bool()).then(|| random.usize(0..=number));
    step
}

/// Returns transactions with critical sections. Some refer to no resource, step or transaction.
fn any_transactions(random: &mut fastrand::Rng) -> (Vec<Transaction>, Vec<StepSection>) {
    let transactions = (0..random.usize(0..4)).map(|_| {
        let steps = (0..random.usize(0..5)).map(|number| any_step(random, number));
        let steps = steps.collect();
        let mut transaction = Transaction::new(any_time(random), steps);
        transaction.deadline = any_time(random).max(1);
        transaction.jitter = any_time(random) * u64::from(random.u8(..4) == 0);
        transaction
    });
    let transactions = transactions.collect();
    let sections = (0..random.usize(0..4)).map(|_| StepSection {
        transaction: random.usize(0..4),
        step: random.usize(0..4),
        lock: random.usize(..),
        start: any_time(random),
        length: any_time(random),
    });
    (transactions, sections.collect())
}

fn analyse_tasks(random: &mut fastrand::Rng) {
    let (mut tasks, sections) = any_tasks(random);
    let _ = (utilisation(&tasks), compare_to_processor(&tasks));
    let _ = passes_liu_layland_bound(&tasks);
    let _ = passes_hyperbolic_bound(&tasks);
    let _ = passes_harmonic_bound(&tasks);
    for blocking in [
        DeadlineBlocking::None,
        DeadlineBlocking::NonPreemptive,
        DeadlineBlocking::Sections(&sections),
    ] {
        let _ = test_demand(&tasks, blocking);
        let _ = deadline_responses(&tasks, blocking);
    }
    let _ = demand(&tasks, any_time(random));
    for run_to_completion in [false, true] {
        for strategy in [
            LevelStrategy::RateMonotonic,
            LevelStrategy::EarliestDeadline,
            LevelStrategy::LeastLaxity,
            LevelStrategy::MaximumUrgency,
            LevelStrategy::MaximumUrgencyOfCriticalSet,
            LevelStrategy::RateMonotonicLaxity,
        ] {
            if let Ok(levels) = dispatch_levels(&tasks, strategy) {
                let _ = subpriorities(&tasks, &levels);
                let _ = guaranteed(&tasks, &levels, run_to_completion);
            }
        }
    }
    for protocol in [LockProtocol::Inheritance, LockProtocol::Ceiling] {
        let _ = assign_blocking(&mut tasks, &sections, protocol);
    }
    assign_rate_monotonic(&mut tasks);
    assign_deadline_monotonic(&mut tasks);
    for preemption in [Preemption::Preemptive, Preemption::NonPreemptive] {
        let _ = responses(&tasks, preemption);
        let _ = assign_bands(&tasks, preemption);
        let _ = assign_optimal(&mut tasks, preemption);
    }
    let callers: Vec<_> = tasks
        .iter()
        .map(|task| Caller {
            period: task.period,
            calls: task.cost,
        })
        .collect();
    let _ = merge_arrivals(&callers, Merge::Disjunction);
    let _ = merge_arrivals(&callers, Merge::Conjunction);
    let limit = u128::from(any_time(random));
    let _ = admit_rates(&[tasks.clone(), tasks.clone(), Vec::new()], limit);
    let rules = Simulation {
        discipline: match random.u8(0..4) {
            0 => Discipline::FixedPriority,
            1 => Discipline::EarliestDeadline,
            2 => Discipline::LeastLaxity,
            _ => Discipline::MaximumUrgency,
        },
        late: if random.bool() {
            LateJobs::Abort
        } else {
            LateJobs::GoOn
        },
        processors: random.usize(0..3),
        quantum: any_time(random),
        record: true,
        ..Simulation::new(any_time(random).min(1_000))
    };
    let _ = simulate(&tasks, &rules, |_, _| random.u64(..));
    // One in sixteen, because a search analyses a set many times.
    if random.u8(..16) == 0 {
        let test = |tasks: &[Task]| is_schedulable(tasks, Preemption::Preemptive);
        let _ = breakdown_factor(&tasks, test);
        let _ = greatest_cost(&tasks, 0, test);
    }
}

fn analyse_transactions_of(random: &mut fastrand::Rng) {
    let (mut transactions, sections) = any_transactions(random);
    let resources =
        [Preemption::Preemptive, Preemption::NonPreemptive].map(|preemption| Resource {
            preemption,
            blocking: random.u64(0..3),
        });
    let plain = analyse_transactions(&resources, &transactions);
    let sequences = analyse_sequences(&resources, &transactions);
    let late = first_late_step(&resources, &transactions);
    if let (Ok(plain), Ok(sequences), Ok(late)) = (plain, sequences, late) {
        assert!(sequences.schedulable || !plain.schedulable);
        assert_eq!(sequences.schedulable, late.is_none());
    }
    for protocol in [LockProtocol::Inheritance, LockProtocol::Ceiling] {
        let rules = SystemSimulation {
            offsets: vec![any_time(random).min(100)],
            sections: if random.bool() {
                sections.clone()
            } else {
                Vec::new()
            },
            protocol,
            record: true,
            ..SystemSimulation::new(any_time(random).min(1_000))
        };
        let _ = simulate_transactions(&resources, &transactions, &rules);
    }
    if random.u8(..16) == 0 {
        let _ = assign_transactions(&resources, &mut transactions);
    }
}

/// `CHRONORB_SCHED_SETS` is the number of sets of tasks, and of sets of transactions.
#[test]
fn any_input_is_analysed_without_panic() {
    let sets = std::env::var("CHRONORB_SCHED_SETS");
    let sets = sets.map_or(1_000, |sets| {
        sets.parse().expect("CHRONORB_SCHED_SETS is a number")
    });
    let mut random = fastrand::Rng::with_seed(27);
    for _ in 0..sets {
        analyse_tasks(&mut random);
        analyse_transactions_of(&mut random);
    }
}
