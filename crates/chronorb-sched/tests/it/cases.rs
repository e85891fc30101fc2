//! Worked cases of analysis. Each list of tasks has the most urgent one first.

use std::cmp::Ordering;

use chronorb_sched::*;

use crate::{bounded, ranked, ranked_by_deadline, ranked_tasks};

const PREEMPTIVE: Preemption = Preemption::Preemptive;

fn fits(tasks: &[Task]) -> Result<bool, AnalysisError> {
    is_schedulable(tasks, PREEMPTIVE)
}

fn meets(tasks: &[Task], task: usize) -> Result<bool, AnalysisError> {
    Ok(responses(tasks, PREEMPTIVE)?[task].meets(tasks[task].deadline))
}

fn times(tasks: &[Task]) -> Vec<Response> {
    responses(tasks, PREEMPTIVE).unwrap()
}

#[test]
fn t1_all_tests_pass() {
    let tasks = ranked(&[(10, 50), (15, 100), (20, 200), (100, 1000)]);
    assert_eq!(utilisation(&tasks), 550_000_000);
    assert_eq!(liu_layland_bound(4) / 100_000, 7568);
    assert!(passes_liu_layland_bound(&tasks));
    assert!(passes_hyperbolic_bound(&tasks));
    assert_eq!(times(&tasks), bounded([10, 25, 45, 190]));
    assert_eq!(breakdown_factor(&tasks, fits), Ok(1_818_181));
    assert_eq!(bottleneck(&tasks, meets), Ok(Some((3, 1_818_181))));
    // Half units, because the first answer is 32.5.
    let halves = ranked(&[(20, 100), (30, 200), (40, 400), (200, 2000)]);
    let greatest = [0, 1, 2, 3].map(|task| greatest_cost(&halves, task, fits).unwrap());
    assert_eq!(greatest, [65, 120, 220, 1100]);
}

#[test]
fn t2_the_hyperbolic_bound_holds_exactly_where_that_of_liu_and_layland_fails() {
    let tasks = ranked(&[(5, 10), (5, 15)]);
    assert_eq!(utilisation(&tasks), 833_333_334);
    assert_eq!(liu_layland_bound(2), 828_427_124);
    assert!(!passes_liu_layland_bound(&tasks));
    assert!(passes_hyperbolic_bound(&tasks));
    assert!(!passes_hyperbolic_bound(&ranked(&[
        (5_000_000_001, 10_000_000_000),
        (5, 15)
    ])));
    assert_eq!(times(&tasks), bounded([5, 10]));
}

#[test]
fn t3_response_times_fit_where_both_bounds_fail() {
    let tasks = ranked(&[(40, 100), (40, 150), (100, 350)]);
    assert_eq!(utilisation(&tasks) / 100_000, 9523);
    assert!(!passes_liu_layland_bound(&tasks));
    assert!(!passes_hyperbolic_bound(&tasks));
    assert_eq!(times(&tasks), bounded([40, 80, 300]));
    assert_eq!(breakdown_factor(&tasks, fits), Ok(MILLION));
    assert_eq!(bottleneck(&tasks, meets), Ok(Some((2, MILLION))));
}

#[test]
fn t4_deadlines_fit_where_rates_do_not() {
    let tasks = ranked(&[(2, 5), (4, 7)]);
    assert_eq!(times(&tasks), bounded([2, 8]));
    assert_eq!(fits(&tasks), Ok(false));
    let test = test_demand(&tasks, DeadlineBlocking::None).unwrap();
    let expected = DemandTest {
        schedulable: true,
        limit: 7,
        checks: 1,
        deadline: 5,
        demand: 2,
    };
    assert_eq!(test, expected);
}

#[test]
fn t5_a_harmonic_set_fills_the_processor() {
    let tasks = ranked(&[(20, 50), (30, 100), (60, 200)]);
    assert_eq!(compare_to_processor(&tasks), Ordering::Equal);
    assert!(passes_harmonic_bound(&tasks));
    assert_eq!(times(&tasks), bounded([20, 50, 200]));
    assert_eq!(fits(&tasks), Ok(true));
}

#[test]
fn t7_inheritance_adds_blocks_and_a_ceiling_has_one() {
    let mut tasks = ranked(&[(5, 30), (8, 50), (12, 80), (15, 150)]);
    assert_eq!(times(&tasks), bounded([5, 13, 25, 45]));
    let section = |task, lock, length| Section { task, lock, length };
    let (r, s) = (7, 4);
    let sections = [
        section(0, r, 1),
        section(2, r, 2),
        section(3, r, 6),
        section(1, s, 3),
        section(2, s, 4),
        section(3, s, 5),
    ];
    let blocking = |tasks: &[Task]| tasks.iter().map(|task| task.blocking).collect::<Vec<_>>();
    assign_blocking(&mut tasks, &sections, LockProtocol::Ceiling).unwrap();
    assert_eq!(blocking(&tasks), [6, 6, 6, 0]);
    assert_eq!(times(&tasks), bounded([11, 19, 36, 45]));
    assign_blocking(&mut tasks, &sections, LockProtocol::Inheritance).unwrap();
    assert_eq!(blocking(&tasks), [6, 10, 6, 0]);
    assert_eq!(times(&tasks), bounded([11, 23, 36, 45]));
}

#[test]
fn t8_jitter_brings_jobs_closer_together() {
    let mut tasks = ranked(&[(10, 50), (20, 100), (40, 200)]);
    assert_eq!(times(&tasks), bounded([10, 30, 80]));
    tasks[0].jitter = 45;
    tasks[1].jitter = 20;
    assert_eq!(times(&tasks), bounded([55, 60, 120]));
    assert_eq!(fits(&tasks), Ok(false));
}

#[test]
fn t9_a_later_job_is_the_worst_one() {
    let tasks = ranked_by_deadline(&[(26, 70, 70), (62, 100, 120)]);
    assert_eq!(times(&tasks), bounded([26, 118]));
    assert_eq!(fits(&tasks), Ok(true));
    // The busy period has seven jobs of the second task.
    let rules = Simulation {
        record: true,
        ..Simulation::new(694)
    };
    let simulated = simulate(&tasks, &rules, |_, _| 0).unwrap();
    let ends = |job| {
        let mut slices = simulated.slices.iter();
        slices
            .rfind(|slice| slice.task == 1 && slice.job == job)
            .unwrap()
            .end
    };
    let responses: Vec<_> = (0..7).map(|job| ends(job) - 100 * job).collect();
    assert_eq!(responses, [114, 102, 116, 104, 118, 106, 94]);
}

#[test]
fn t10_deadline_order_fits_where_rate_order_does_not() {
    let set = [(3, 20, 5), (3, 15, 7), (4, 10, 10), (3, 20, 20)];
    let mut tasks = ranked_by_deadline(&set);
    assign_deadline_monotonic(&mut tasks);
    assert_eq!(times(&tasks), bounded([3, 6, 10, 20]));
    assert_eq!(utilisation(&tasks), 900_000_000);
    assert_eq!(breakdown_factor(&tasks, fits), Ok(MILLION));
    assign_rate_monotonic(&mut tasks);
    assert_eq!(times(&tasks), bounded([10, 7, 4, 20]));
    assert_eq!(fits(&tasks), Ok(false));
    assert_eq!(assign_optimal(&mut tasks, PREEMPTIVE), Ok(0));
    assert_eq!(fits(&tasks), Ok(true));
}

#[test]
fn t11_the_second_message_is_late_and_not_the_first() {
    let set = [(100, 250, 250), (100, 350, 325), (100, 350, 325)];
    let tasks = ranked_by_deadline(&set);
    let times = responses(&tasks, Preemption::NonPreemptive).unwrap();
    assert_eq!(times, bounded([200, 300, 350]));
    assert_eq!(is_schedulable(&tasks, Preemption::NonPreemptive), Ok(false));
}

#[test]
fn t12_demand_decides_for_deadlines_before_the_period() {
    let a = ranked_by_deadline(&[(3, 10, 6), (4, 14, 9), (5, 22, 18), (6, 40, 32)]);
    assert_eq!(utilisation(&a) / 100_000, 9629);
    let test = test_demand(&a, DeadlineBlocking::None).unwrap();
    let expected = DemandTest {
        schedulable: true,
        limit: 40,
        checks: 6,
        deadline: 7,
        demand: 3,
    };
    assert_eq!(test, expected);
    let steps = [(37, 35), (35, 28), (28, 22), (22, 15), (15, 7), (7, 3)];
    for (time, work) in steps {
        assert_eq!(demand(&a, time), Ok(work), "at {time}");
    }
    assert_eq!(times(&a), bounded([3, 7, 19, 40]));
    let b = ranked_by_deadline(&[(3, 10, 5), (4, 14, 8), (5, 22, 11), (6, 40, 32)]);
    let test = test_demand(&b, DeadlineBlocking::None).unwrap();
    let result = (test.schedulable, test.checks, test.deadline, test.demand);
    assert_eq!(result, (false, 1, 36, 40));
    let rules = Simulation {
        discipline: Discipline::EarliestDeadline,
        ..Simulation::new(3080)
    };
    let simulated = simulate(&a, &rules, |_, _| 0).unwrap();
    let worst: Vec<_> = simulated.tasks.iter().map(|it| it.worst_response).collect();
    assert_eq!(worst, [6, 8, 18, 30]);
    assert!(simulated.tasks.iter().all(|it| it.missed == 0));
}

#[test]
fn t13_deadlines_and_laxity_use_the_whole_processor() {
    let tasks = ranked(&[(20, 50), (30, 70), (18, 105)]);
    assert_eq!(compare_to_processor(&tasks), Ordering::Equal);
    assert!(
        test_demand(&tasks, DeadlineBlocking::None)
            .unwrap()
            .schedulable
    );
    assert_eq!(times(&tasks)[2], Response::Bounded(196));
    let run = |discipline| {
        let rules = Simulation {
            discipline,
            quantum: 1,
            ..Simulation::new(1050)
        };
        simulate(&tasks, &rules, |_, _| 0).unwrap().tasks
    };
    let jobs = |counts: &[JobCounts]| {
        let each = counts.iter().map(|it| (it.met, it.missed));
        each.collect::<Vec<_>>()
    };
    let by_deadline = run(Discipline::EarliestDeadline);
    assert_eq!(jobs(&by_deadline), [(21, 0), (15, 0), (10, 0)]);
    let worst: Vec<_> = by_deadline.iter().map(|it| it.worst_response).collect();
    assert_eq!(worst, [44, 60, 105]);
    assert_eq!(
        jobs(&run(Discipline::LeastLaxity)),
        [(21, 0), (15, 0), (10, 0)]
    );
    assert_eq!(jobs(&run(Discipline::FixedPriority))[2], (1, 9));
}

#[test]
fn t15_transactions_over_two_processors_and_a_link() {
    let cpu = Resource::default();
    let link = Resource {
        preemption: Preemption::NonPreemptive,
        blocking: 1,
    };
    // Priorities are doubled, because some are halves.
    let step = |resource, cost, priority| Step::new(resource, cost, priority);
    let (a, b, n) = (0, 1, 2);
    let set = [
        Transaction::new(
            50,
            vec![
                step(a, 4, 80),
                step(n, 2, 80),
                step(b, 8, 80),
                step(n, 2, 81),
                step(a, 3, 82),
            ],
        ),
        Transaction::new(
            100,
            vec![
                step(a, 10, 60),
                step(n, 3, 60),
                step(b, 15, 60),
                step(n, 3, 61),
                step(a, 5, 62),
            ],
        ),
        Transaction::new(30, vec![step(b, 6, 100)]),
        Transaction::new(200, vec![step(a, 20, 20)]),
    ];
    let analysis = analyse_transactions(&[cpu, cpu, link], &set).unwrap();
    assert!(analysis.schedulable);
    let expected = [
        bounded([7, 14, 28, 33, 36]),
        bounded([25, 36, 65, 75, 87]),
        bounded([6]),
        bounded([50]),
    ];
    assert_eq!(analysis.responses, expected);
    assert_eq!(analysis.rounds, 9);
}

#[test]
fn t15b_transactions_over_two_processors() {
    let cpus = [Resource::default(); 2];
    let chain = |period, first: (u64, u32), second: (u64, u32)| {
        let first = Step::new(0, first.0, first.1);
        Transaction::new(period, vec![first, Step::new(1, second.0, second.1)])
    };
    let set = [
        chain(20, (3, 3), (4, 2)),
        chain(40, (6, 2), (5, 3)),
        chain(80, (12, 1), (20, 1)),
    ];
    let analysis = analyse_transactions(&cpus, &set).unwrap();
    let expected = [bounded([3, 12]), bounded([9, 14]), bounded([24, 66])];
    assert_eq!(analysis.responses, expected);
    assert_eq!(analysis.rounds, 2);
}

const TWELVE: [(u64, u64); 12] = [
    (2, 20),
    (2, 25),
    (3, 40),
    (4, 50),
    (5, 80),
    (5, 100),
    (8, 125),
    (10, 200),
    (10, 250),
    (20, 400),
    (25, 500),
    (50, 1000),
];

/// Returns the twelve tasks in bands of these sizes, the most urgent one first.
fn in_bands(sizes: &[usize]) -> Vec<Task> {
    let bands = sizes.iter().enumerate();
    let priorities = bands.flat_map(|(band, size)| vec![100 - band as u32; *size]);
    let tasks = TWELVE.iter().zip(priorities);
    tasks
        .map(|((cost, period), priority)| Task::new(*cost, *period).with_priority(priority))
        .collect()
}

/// Returns all ways to divide a number into this many parts.
fn divisions(number: usize, parts: usize) -> Vec<Vec<usize>> {
    if parts == 1 {
        return vec![vec![number]];
    }
    let firsts = 1..=number - (parts - 1);
    let each = firsts.flat_map(|first| {
        let rest = divisions(number - first, parts - 1).into_iter();
        rest.map(move |rest| [vec![first], rest].concat())
    });
    each.collect()
}

#[test]
fn t16_twelve_tasks_need_three_levels() {
    let own = in_bands(&[1; 12]);
    assert_eq!(utilisation(&own), 751_500_000);
    let expected = [2, 4, 7, 11, 16, 23, 33, 48, 66, 98, 159, 296];
    assert_eq!(times(&own), bounded(expected));
    let ways = |levels| {
        let all = divisions(12, levels).into_iter();
        all.filter(|sizes| fits(&in_bands(sizes)).unwrap())
            .collect::<Vec<_>>()
    };
    let counts = [1, 2, 3, 4].map(|levels| ways(levels).len());
    assert_eq!(counts, [0, 0, 3, 47]);
    assert_eq!(ways(3)[0], [4, 5, 3]);
    let three = times(&in_bands(&[4, 5, 3]));
    let expected = bounded([11, 11, 11, 11, 66, 66, 66, 66, 66, 296, 296, 296]);
    assert_eq!(three, expected);
    let thirds = times(&in_bands(&[4, 4, 4]));
    assert_eq!(thirds[8], Response::Bounded(286));
    let quarters = times(&in_bands(&[3; 4]));
    let expected = [7, 23, 66, 296].map(Response::Bounded);
    assert_eq!([0, 3, 6, 9].map(|task| quarters[task]), expected);

    let bands = assign_bands(&own, PREEMPTIVE).unwrap().unwrap();
    assert_eq!(bands.iter().max(), Some(&2));
    let mut banded = own;
    for (task, band) in banded.iter_mut().zip(bands) {
        task.priority = band;
    }
    assert_eq!(fits(&banded), Ok(true));
}

#[test]
fn t17_overhead_of_each_job() {
    // Microseconds.
    let set = ranked(&[(100, 1000), (250, 2000), (500, 4000), (1000, 8000)]);
    let with = |delta: u64| {
        let tasks = set
            .iter()
            .map(|task| task.with_overhead(2 * delta).unwrap());
        times(&tasks.collect::<Vec<_>>())
    };
    assert_eq!(with(10), bounded([120, 390, 910, 2440]));
    assert_eq!(with(50), bounded([200, 550, 1350, 3000]));
    assert_eq!(with(100), bounded([300, 750, 1750, 4000]));
    assert_eq!(with(120), bounded([340, 830, 1910, 7400]));
}

#[test]
fn t18_a_deferrable_server_uses_two_budgets_back_to_back() {
    let with = |kind| {
        let server = Server {
            kind,
            budget: 2,
            period: 10,
        };
        let mut tasks = ranked(&[(6, 15), (5, 20), (6, 60)]);
        tasks.insert(0, server.task(u32::MAX));
        times(&tasks)[1..].to_vec()
    };
    assert_eq!(with(ServerKind::Sporadic), bounded([8, 15, 57]));
    assert_eq!(with(ServerKind::Polling), bounded([8, 15, 57]));
    assert_eq!(with(ServerKind::Deferrable), bounded([10, 25, 59]));
}

#[test]
fn t20_overdue_work_has_the_least_laxity() {
    let now = 1000;
    let mut jobs = [1100, 1001, 1000, 999, 900].map(|deadline| laxity(deadline, now, 0));
    jobs.sort_unstable();
    assert_eq!(jobs, [-100, -1, 0, 1, 100]);
}

#[test]
fn t21_arrivals_of_several_callers() {
    let callers = [50, 100, 200].map(|period| Caller { period, calls: 1 });
    let load = |arrivals: Arrivals| share(3 * arrivals.count, arrivals.frame);
    let any = merge_arrivals(&callers, Merge::Disjunction).unwrap();
    assert_eq!((any.frame, any.count, any.period), (200, 7, 50));
    assert_eq!(load(any), 105_000_000);
    let all = merge_arrivals(&callers, Merge::Conjunction).unwrap();
    assert_eq!((all.frame, all.count, all.period), (200, 1, 200));
    assert_eq!(load(all), 15_000_000);
}

#[test]
fn t22_the_order_by_deadline_fails_with_jitter() {
    let x = Task::new(3, 12).with_deadline(6);
    let y = Task::new(3, 12).with_deadline(7).with_jitter(3);
    let mut tasks = ranked_tasks([x, y]);
    assert_eq!(times(&tasks), bounded([3, 9]));
    assert_eq!(assign_optimal(&mut tasks, PREEMPTIVE), Ok(0));
    assert_eq!(times(&tasks), bounded([6, 6]));
}

#[test]
fn t23_the_assignment_of_tao() {
    let (low, high) = ((0, 4), (4, 0));
    let mut tasks = Vec::new();
    for period in [50, 100, 200, 1000] {
        for (criticality, importance) in [low, high] {
            tasks.push(Task::new(18, period).with_criticality(criticality, importance));
        }
    }
    let assign = |strategy| {
        let levels = dispatch_levels(&tasks, strategy).unwrap();
        let places = subpriorities(&tasks, &levels).unwrap().into_iter();
        let places = places.map(|it| it.map(|it| (it.level, it.dynamic, it.fixed)).unwrap());
        (levels.len(), places.collect::<Vec<_>>())
    };
    let (levels, places) = assign(LevelStrategy::RateMonotonic);
    assert_eq!(levels, 4);
    let expected = (0..4).flat_map(|level| [(level, 0, 1), (level, 0, 0)]);
    assert_eq!(places, expected.collect::<Vec<_>>());
    let (levels, places) = assign(LevelStrategy::MaximumUrgency);
    assert_eq!(levels, 2);
    let expected = (0..4).rev().flat_map(|it| [(1, it, it), (0, it, it)]);
    assert_eq!(places, expected.collect::<Vec<_>>());
    for strategy in [LevelStrategy::EarliestDeadline, LevelStrategy::LeastLaxity] {
        let (levels, places) = assign(strategy);
        assert_eq!(levels, 1);
        let expected = (0..4)
            .rev()
            .flat_map(|it| [(0, it, 2 * it + 1), (0, it, 2 * it)]);
        assert_eq!(places, expected.collect::<Vec<_>>());
    }
    // The four critical tasks use 0.648, and those below are beyond the processor.
    let levels = dispatch_levels(&tasks, LevelStrategy::MaximumUrgency).unwrap();
    let verdicts = guaranteed(&tasks, &levels, false).unwrap();
    assert_eq!(verdicts, [false, true].repeat(4));
    let critical = critical_set(&tasks).unwrap();
    assert_eq!(critical[..4], [1, 3, 5, 7]);
}

#[test]
fn importance_precedes_the_rate_in_levels_of_maximum_urgency() {
    let tasks = [
        Task::new(1, 10).with_criticality(1, 1),
        Task::new(1, 100).with_criticality(1, 4),
    ];
    let fixed = |strategy| {
        let levels = dispatch_levels(&tasks, strategy).unwrap();
        let places = subpriorities(&tasks, &levels).unwrap().into_iter();
        places.map(|it| it.unwrap().fixed).collect::<Vec<_>>()
    };
    assert_eq!(fixed(LevelStrategy::MaximumUrgency), [0, 1]);
    let of_critical_set = LevelStrategy::MaximumUrgencyOfCriticalSet;
    assert_eq!(fixed(of_critical_set), [1, 0]);
}

#[test]
fn t24_a_critical_set_over_two_levels_proves_nothing() {
    let tasks = [
        Task::new(50, 100).with_criticality(4, 0),
        Task::new(2, 10).with_criticality(3, 0),
    ];
    let verdicts = |strategy| {
        let levels = dispatch_levels(&tasks, strategy).unwrap();
        guaranteed(&tasks, &levels, false).unwrap()
    };
    assert_eq!(verdicts(LevelStrategy::MaximumUrgency), [true, false]);
    assert_eq!(
        verdicts(LevelStrategy::MaximumUrgencyOfCriticalSet),
        [true, true]
    );
    let ordered = ranked_tasks(tasks);
    assert_eq!(times(&ordered)[1], Response::Bounded(52));
    let run = |discipline| {
        let rules = Simulation {
            discipline,
            quantum: 1,
            ..Simulation::new(1000)
        };
        simulate(&tasks, &rules, |_, _| 0).unwrap().tasks
    };
    let laxity = run(Discipline::LeastLaxity);
    assert!(laxity.iter().all(|it| it.missed == 0));
    assert_eq!(
        [laxity[0].worst_response, laxity[1].worst_response],
        [64, 2]
    );
    assert!(run(Discipline::MaximumUrgency)[1].missed > 0);
}

#[test]
fn a_lock_delays_earlier_deadlines() {
    // The lock of the last task blocks both others, as one of them uses it.
    let tasks = ranked(&[(2, 10), (3, 15), (8, 40)]);
    let section = |task, length| Section {
        task,
        lock: 0,
        length,
    };
    let test = |length| {
        let sections = [section(0, 1), section(2, length)];
        let test = test_demand(&tasks, DeadlineBlocking::Sections(&sections));
        test.unwrap().schedulable
    };
    assert!(test(8));
    assert!(!test(9), "2 of the first and 9 of the last exceed 10");
}

#[test]
fn bad_input_is_an_error() {
    let zero = [Task::new(1, 10), Task::new(0, 10)];
    let error = AnalysisError::ZeroCost { task: 1 };
    assert_eq!(responses(&zero, PREEMPTIVE), Err(error));
    let zero = [Task::new(1, 0)];
    let error = AnalysisError::ZeroPeriod { task: 0 };
    assert_eq!(test_demand(&zero, DeadlineBlocking::None), Err(error));
    let zero = [Task::new(1, 10).with_deadline(0)];
    let error = AnalysisError::ZeroDeadline { task: 0 };
    assert_eq!(fits(&zero), Err(error));
    let huge = ranked(&[(u64::MAX / 2, u64::MAX), (u64::MAX / 2, u64::MAX)]);
    assert_eq!(
        responses(&huge, PREEMPTIVE).map(|it| it.len()),
        Ok(2),
        "the responses are below 64 bits"
    );
    let huge = [Task::new(u64::MAX - 1, u64::MAX).with_jitter(u64::MAX)];
    assert_eq!(responses(&huge, PREEMPTIVE), Err(AnalysisError::TooLarge));
    assert_eq!(scaled(&huge, MILLION), Err(AnalysisError::TooLarge));
    let section = Section {
        task: 1,
        lock: 0,
        length: 1,
    };
    let error = AnalysisError::NoSuchIndex {
        what: "task",
        index: 1,
    };
    let mut one = [Task::new(1, 10)];
    let blocking = assign_blocking(&mut one, &[section], LockProtocol::Ceiling);
    assert_eq!(blocking, Err(error));
    let chain = [Transaction::new(10, vec![Step::new(2, 1, 1)])];
    let error = AnalysisError::NoSuchIndex {
        what: "resource",
        index: 2,
    };
    assert_eq!(analyse_transactions(&[], &chain), Err(error));
    let mut rules = Simulation::new(10);
    rules.processors = 0;
    assert!(simulate(&one, &rules, |_, _| 0).is_err());
}

#[test]
fn a_computation_without_end_is_refused() {
    let tasks = ranked(&[(1, 2), (1, u64::MAX / 8), (u64::MAX / 8, u64::MAX / 2)]);
    assert!(responses(&tasks, PREEMPTIVE).is_ok());
    // The second task gets one unit in each period of the first, for a hundred million periods.
    let tasks = ranked(&[(999_999_999, 1_000_000_000), (100_000_000, u64::MAX / 2)]);
    assert_eq!(
        responses(&tasks, PREEMPTIVE),
        Err(AnalysisError::TooComplex)
    );
    let rules = Simulation::new(u64::MAX);
    let simulated = simulate(&[Task::new(1, 2)], &rules, |_, _| 0);
    assert_eq!(simulated, Err(AnalysisError::TooComplex));
}

#[test]
fn a_full_processor_with_jitter_has_bounded_responses() {
    let tasks = ranked_tasks([Task::new(5, 10), Task::new(10, 20).with_jitter(5)]);
    assert_eq!(compare_to_processor(&tasks), Ordering::Equal);
    assert_eq!(times(&tasks), bounded([5, 25]));
    let over = ranked(&[(5, 10), (11, 20)]);
    assert_eq!(times(&over), [Response::Bounded(5), Response::Unbounded]);
}

/// The load is 0.99991, and the first job of the second task already decides.
#[test]
fn a_late_job_decides_however_long_the_busy_period_is() {
    let tasks = [
        (5, 23, 55, 0, 4),
        (2, 19, 31, 18, 1),
        (1, 29, 39, 0, 3),
        (12, 24, 43, 15, 2),
        (2, 14, 17, 0, 5),
    ];
    let tasks = tasks.map(|(cost, period, deadline, jitter, priority)| {
        Task::new(cost, period)
            .with_deadline(deadline)
            .with_jitter(jitter)
            .with_priority(priority)
    });
    assert_eq!(fits(&tasks), Ok(false));
}

/// Without jitter and blocking, and with deadlines of at least the periods, the load decides.
#[test]
fn the_load_decides_by_deadline() {
    let tasks = [(4, 87), (5, 37), (1, 35), (14, 67)].map(|(cost, period)| Task::new(cost, period));
    let factor = breakdown_factor(&tasks, |tasks| {
        Ok(test_demand(tasks, DeadlineBlocking::None)?.schedulable)
    });
    // 1/U = 2.3886…
    assert_eq!(factor.map(|factor| factor / 100), Ok(23_886));
}
