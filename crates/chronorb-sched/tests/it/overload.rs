//! Worked cases of the simulator: overload, levels, and several processors.

use chronorb_sched::*;

fn run(tasks: &[Task], rules: &Simulation) -> Vec<JobCounts> {
    simulate(tasks, rules, |_, _| 0).unwrap().tasks
}

/// Returns the tasks of four rates, the low and the high one of each rate after another.
fn four_rates() -> Vec<Task> {
    let mut tasks = Vec::new();
    for period in [50, 100, 200, 1000] {
        tasks.push(Task::new(18, period).with_criticality(0, 4));
        tasks.push(Task::new(18, period).with_criticality(4, 0));
    }
    assign_rate_monotonic(&mut tasks);
    tasks
}

fn rules(discipline: Discipline, late: LateJobs) -> Simulation {
    Simulation {
        discipline,
        late,
        quantum: 1,
        ..Simulation::new(1000)
    }
}

/// Returns the jobs that met and missed their deadlines: high ones, then low ones.
fn high_and_low(counts: &[JobCounts]) -> [(u64, u64); 2] {
    let sum = |first: usize| {
        let each = counts.iter().skip(first).step_by(2);
        each.fold((0, 0), |(met, missed), it| {
            (met + it.met, missed + it.missed)
        })
    };
    [sum(1), sum(0)]
}

#[test]
fn t6_overload_by_discipline() {
    let tasks = four_rates();
    assert_eq!(utilisation(&tasks), 1_296_000_000);
    let go_on = |discipline| run(&tasks, &rules(discipline, LateJobs::GoOn));
    let fixed = go_on(Discipline::FixedPriority);
    assert_eq!(high_and_low(&fixed), [(20, 16), (30, 6)]);
    let deadline = go_on(Discipline::EarliestDeadline);
    assert_eq!(high_and_low(&deadline), [(3, 33), (7, 29)]);
    let laxity = go_on(Discipline::LeastLaxity);
    assert_eq!(high_and_low(&laxity), [(2, 34), (2, 34)]);
    let urgency = go_on(Discipline::MaximumUrgency);
    assert_eq!(high_and_low(&urgency), [(36, 0), (0, 36)]);
    let high = urgency.iter().skip(1).step_by(2);
    let worst: Vec<_> = high.map(|it| it.worst_response).collect();
    assert_eq!(worst, [18, 36, 72, 90]);
}

#[test]
fn t6_overload_with_late_jobs_aborted() {
    let tasks = four_rates();
    let abort = |discipline| run(&tasks, &rules(discipline, LateJobs::Abort));
    let deadline = abort(Discipline::EarliestDeadline);
    assert_eq!(high_and_low(&deadline), [(15, 21), (35, 1)]);
    let fixed = abort(Discipline::FixedPriority);
    assert_eq!(high_and_low(&fixed), [(20, 16), (30, 6)]);
    let urgency = abort(Discipline::MaximumUrgency);
    assert_eq!(high_and_low(&urgency), [(36, 0), (0, 36)]);
    let rules = Simulation {
        preemption: JobPreemption::BetweenLevels,
        ..rules(Discipline::MaximumUrgency, LateJobs::Abort)
    };
    assert_eq!(high_and_low(&run(&tasks, &rules)), [(36, 0), (9, 27)]);
}

#[test]
fn t14_a_level_needs_preemption_within_itself() {
    let tasks = [
        Task::new(2, 10).with_criticality(4, 0).with_offset(1),
        Task::new(12, 30).with_criticality(4, 0),
    ];
    let mut rules = Simulation {
        window: 300,
        ..rules(Discipline::MaximumUrgency, LateJobs::GoOn)
    };
    let preemptive = run(&tasks, &rules);
    assert!(preemptive.iter().all(|it| it.missed == 0));
    let worst = |counts: &[JobCounts]| [counts[0].worst_response, counts[1].worst_response];
    assert_eq!(worst(&preemptive), [2, 16]);
    // A window of 301 has the thirty jobs of the first task.
    rules.window = 301;
    rules.preemption = JobPreemption::BetweenLevels;
    let to_completion = run(&tasks, &rules);
    assert_eq!((to_completion[0].met, to_completion[0].missed), (20, 10));
    assert_eq!(to_completion[1].missed, 0);
    assert_eq!(worst(&to_completion), [13, 12]);

    let levels = dispatch_levels(&tasks, LevelStrategy::MaximumUrgency).unwrap();
    assert_eq!(guaranteed(&tasks, &levels, false), Ok(vec![true; 2]));
    assert_eq!(guaranteed(&tasks, &levels, true), Ok(vec![false; 2]));
}

#[test]
fn t19_deadlines_on_two_processors() {
    let tasks = [Task::new(2, 10), Task::new(2, 10), Task::new(10, 11)];
    assert_eq!(utilisation(&tasks) / 1_000_000, 1309);
    let rules = Simulation {
        discipline: Discipline::EarliestDeadline,
        processors: 2,
        running_first: false,
        record: true,
        ..Simulation::new(110)
    };
    let simulated = simulate(&tasks, &rules, |_, _| 0).unwrap();
    let jobs: Vec<_> = simulated
        .tasks
        .iter()
        .map(|it| (it.met, it.missed))
        .collect();
    assert_eq!(jobs, [(11, 0), (11, 0), (8, 2)]);
    let end = |job| {
        let mut slices = simulated.slices.iter();
        slices
            .rfind(|it| it.task == 2 && it.job == job)
            .unwrap()
            .end
    };
    assert_eq!(end(0), 12);
    assert_eq!(end(9), 110, "the window ends before the job");
}

#[test]
fn x13_one_lane_by_arrival_and_by_deadline() {
    let set = |deadline| {
        [
            (400, 4000, deadline, 0),
            (800, 8000, 4500, 150),
            (1500, 12000, 9000, 350),
            (2000, 16000, 16000, 500),
            (2500, 25000, 25000, 900),
            (2400, 12000, 36000, 1300),
            (1600, 8000, 48000, 1900),
        ]
        .map(|(cost, period, deadline, offset)| {
            Task::new(cost, period)
                .with_deadline(deadline)
                .with_offset(offset)
        })
    };
    let missed = |tasks: &[Task], discipline| {
        let rules = Simulation {
            discipline,
            preemption: JobPreemption::Never,
            ..Simulation::new(100_000_000)
        };
        let counts = run(tasks, &rules);
        let missed: Vec<_> = counts.iter().map(|it| it.missed).collect();
        missed
    };
    let first_come = missed(&set(2900), Discipline::FixedPriority);
    assert_eq!(first_come[..2], [9925, 1503]);
    assert_eq!(first_come.iter().sum::<u64>(), 11428);
    let by_deadline = missed(&set(2900), Discipline::EarliestDeadline);
    assert_eq!(by_deadline, [0; 7]);
    let by_deadline = missed(&set(2600), Discipline::EarliestDeadline);
    assert_eq!(by_deadline, [583, 0, 0, 0, 0, 0, 0]);
}
