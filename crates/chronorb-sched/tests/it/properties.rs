//! Properties of random task sets.

use std::cmp::Ordering;

use chronorb_sched::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::ranked_tasks;

const PREEMPTIVE: Preemption = Preemption::Preemptive;

/// Returns tasks whose hyperperiod is at most 240, the most urgent one first.
pub(crate) fn tasks() -> impl Strategy<Value = Vec<Task>> {
    let period = select(vec![4_u64, 5, 6, 8, 10, 12, 15, 16, 20, 24, 30, 40, 48, 60]);
    let task = (period, 1..8_u64, 1..100_u64).prop_map(|(period, cost, deadline)| {
        let cost = cost.min(period);
        let deadline = cost + (period - cost) * deadline / 99;
        Task::new(cost, period).with_deadline(deadline)
    });
    vec(task, 1..6).prop_map(ranked_tasks)
}

/// Returns tasks with jitter, blocking and deadlines beyond the period.
pub(crate) fn delayed_tasks() -> impl Strategy<Value = Vec<Task>> {
    let delays = vec((0..20_u64, 0..8_u64, 0..20_u64), 6);
    (tasks(), delays).prop_map(|(mut tasks, delays)| {
        for (task, (jitter, blocking, later)) in tasks.iter_mut().zip(delays) {
            task.jitter = jitter;
            task.blocking = blocking;
            task.deadline += later;
        }
        tasks
    })
}

/// Returns the tasks with deadlines at their periods, in rate-monotonic order.
fn by_rate(mut tasks: Vec<Task>) -> Vec<Task> {
    for task in &mut tasks {
        task.deadline = task.period;
    }
    assign_rate_monotonic(&mut tasks);
    tasks
}

fn fits(tasks: &[Task]) -> Result<bool, AnalysisError> {
    is_schedulable(tasks, PREEMPTIVE)
}

fn times(tasks: &[Task]) -> Vec<Response> {
    responses(tasks, PREEMPTIVE).unwrap()
}

fn no_delay(_: usize, _: u64) -> Time {
    0
}

fn missed(result: &SimulationResult) -> u64 {
    result.tasks.iter().map(|it| it.missed).sum()
}

pub(crate) fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn each_test_admits_what_a_simpler_one_admits(tasks in tasks()) {
        let tasks = by_rate(tasks);
        if passes_liu_layland_bound(&tasks) {
            prop_assert!(passes_hyperbolic_bound(&tasks));
        }
        if passes_hyperbolic_bound(&tasks) || passes_harmonic_bound(&tasks) {
            prop_assert!(fits(&tasks).unwrap());
        }
    }

    #[test]
    fn deadlines_admit_what_priorities_admit(tasks in tasks()) {
        if fits(&tasks).unwrap() {
            prop_assert!(test_demand(&tasks, DeadlineBlocking::None).unwrap().schedulable);
        }
    }

    #[test]
    fn responses_grow_with_each_value(
        tasks in delayed_tasks(),
        changed in 0..6_usize,
        by in 1..5_u64,
    ) {
        let before = times(&tasks);
        let changed = changed % tasks.len();
        let grow = |change: &dyn Fn(&mut Task)| {
            let mut tasks = tasks.clone();
            change(&mut tasks[changed]);
            let after = times(&tasks);
            before.iter().zip(after).all(|(before, after)| *before <= after)
        };
        prop_assert!(grow(&|task| task.cost += by));
        prop_assert!(grow(&|task| task.jitter += by));
        prop_assert!(grow(&|task| task.blocking += by));
        prop_assert!(grow(&|task| task.period = task.period.saturating_sub(by).max(1)));
    }

    #[test]
    fn the_optimal_assignment_succeeds_where_others_do(tasks in delayed_tasks()) {
        let mut by_rate = tasks.clone();
        assign_rate_monotonic(&mut by_rate);
        let mut by_deadline = tasks.clone();
        assign_deadline_monotonic(&mut by_deadline);
        let mut optimal = tasks;
        let failed = assign_optimal(&mut optimal, PREEMPTIVE).unwrap();
        prop_assert_eq!(failed == 0, failed == 0 && fits(&optimal).unwrap());
        for other in [by_rate, by_deadline] {
            prop_assert!(failed == 0 || !fits(&other).unwrap());
        }
    }

    #[test]
    fn a_synchronous_start_shows_the_worst_responses(tasks in tasks()) {
        let simulated = simulate(&tasks, &Simulation::new(480), no_delay).unwrap();
        for (response, shown) in times(&tasks).into_iter().zip(simulated.tasks) {
            if let Response::Bounded(time) = response {
                prop_assert_eq!(time, shown.worst_response);
            }
        }
    }

    #[test]
    fn no_simulation_is_later_than_the_analysis(
        tasks in delayed_tasks(),
        offsets in vec(0..30_u64, 6),
        seed: u64,
        preemptive: bool,
    ) {
        let mut tasks = tasks;
        for (task, offset) in tasks.iter_mut().zip(offsets) {
            task.offset = offset;
            task.blocking = 0;
        }
        let preemption = if preemptive { PREEMPTIVE } else { Preemption::NonPreemptive };
        let rules = Simulation {
            preemption: preemption.into(),
            ..Simulation::new(1000)
        };
        let mut random = fastrand::Rng::with_seed(seed);
        let simulated = simulate(&tasks, &rules, |_, _| random.u64(0..20)).unwrap();
        let analysed = responses(&tasks, preemption).unwrap();
        for (response, shown) in analysed.into_iter().zip(simulated.tasks) {
            prop_assert!(Response::Bounded(shown.worst_response) <= response);
        }
    }

    #[test]
    fn demand_is_exact(tasks in tasks()) {
        let schedulable = test_demand(&tasks, DeadlineBlocking::None).unwrap().schedulable;
        if compare_to_processor(&tasks) == Ordering::Greater {
            prop_assert!(!schedulable);
            return Ok(());
        }
        for discipline in [Discipline::EarliestDeadline, Discipline::LeastLaxity] {
            let rules = Simulation {
                discipline,
                quantum: 1,
                ..Simulation::new(300)
            };
            let simulated = simulate(&tasks, &rules, no_delay).unwrap();
            prop_assert_eq!(schedulable, missed(&simulated) == 0);
        }
    }

    #[test]
    fn demand_is_safe_with_jitter_and_without_preemption(
        tasks in delayed_tasks(),
        offsets in vec(0..30_u64, 6),
        seed: u64,
        preemptive: bool,
    ) {
        let mut tasks = tasks;
        for (task, offset) in tasks.iter_mut().zip(offsets) {
            task.offset = offset;
        }
        let (blocking, preemption) = if preemptive {
            (DeadlineBlocking::None, JobPreemption::Always)
        } else {
            (DeadlineBlocking::NonPreemptive, JobPreemption::Never)
        };
        if test_demand(&tasks, blocking).unwrap().schedulable {
            let rules = Simulation {
                discipline: Discipline::EarliestDeadline,
                preemption,
                ..Simulation::new(1000)
            };
            let mut random = fastrand::Rng::with_seed(seed);
            let simulated = simulate(&tasks, &rules, |_, _| random.u64(0..20)).unwrap();
            prop_assert_eq!(missed(&simulated), 0);
        }
    }

    #[test]
    fn guaranteed_tasks_meet_their_deadlines(
        tasks in tasks(),
        criticalities in vec(0..3_u8, 6),
        offsets in vec(0..30_u64, 6),
        run_to_completion: bool,
    ) {
        let mut tasks = tasks;
        for ((task, criticality), offset) in tasks.iter_mut().zip(criticalities).zip(offsets) {
            task.criticality = criticality;
            task.offset = offset;
        }
        let levels = dispatch_levels(&tasks, LevelStrategy::MaximumUrgency).unwrap();
        let verdicts = guaranteed(&tasks, &levels, run_to_completion).unwrap();
        let rules = Simulation {
            discipline: Discipline::MaximumUrgency,
            preemption: if run_to_completion {
                JobPreemption::BetweenLevels
            } else {
                JobPreemption::Always
            },
            quantum: 1,
            ..Simulation::new(600)
        };
        let simulated = simulate(&tasks, &rules, no_delay).unwrap();
        for (verdict, shown) in verdicts.into_iter().zip(simulated.tasks) {
            prop_assert!(!verdict || shown.missed == 0);
        }
    }

    #[test]
    fn the_critical_set_does_not_notice_the_rest(
        critical in tasks(),
        rest in tasks(),
        other in tasks(),
    ) {
        let mark = |task: &Task, criticality| task.with_criticality(criticality, 0);
        let rules = Simulation {
            discipline: Discipline::MaximumUrgency,
            quantum: 1,
            ..Simulation::new(300)
        };
        let run = |rest: &[Task]| {
            let mut all: Vec<_> = critical.iter().map(|task| mark(task, 1)).collect();
            all.extend(rest.iter().map(|task| mark(task, 0)));
            let simulated = simulate(&all, &rules, no_delay).unwrap();
            simulated.tasks[..critical.len()].to_vec()
        };
        prop_assert_eq!(run(&rest), run(&other));
    }

    #[test]
    fn bands_are_as_few_as_possible(tasks in tasks()) {
        let bands = assign_bands(&tasks, PREEMPTIVE).unwrap();
        prop_assert_eq!(bands.is_some(), fits(&tasks).unwrap());
        let Some(bands) = bands else {
            return Ok(());
        };
        let with = |bands: &[u32]| {
            let tasks = tasks.iter().zip(bands);
            let banded: Vec<_> = tasks.map(|(task, band)| task.with_priority(*band)).collect();
            fits(&banded).unwrap()
        };
        prop_assert!(with(&bands));
        // A band for each task is no band.
        let own: Vec<_> = (0..tasks.len() as u32).rev().collect();
        prop_assert!(with(&own));
        // Each bit is a border between neighbours.
        let count = bands.iter().max().unwrap() + 1;
        for borders in 0_u32..1 << (tasks.len() - 1) {
            if borders.count_ones() + 1 < count {
                let bands: Vec<_> = (0..tasks.len())
                    .map(|task| 9 - (borders & ((1 << task) - 1)).count_ones())
                    .collect();
                prop_assert!(!with(&bands), "{:?} are fewer", bands);
            }
        }
    }

    #[test]
    fn transactions_of_one_step_are_tasks(tasks in delayed_tasks()) {
        let set: Vec<_> = tasks
            .iter()
            .map(|task| {
                let mut step = Step::new(0, task.cost, task.priority);
                step.blocking = task.blocking;
                let mut transaction = Transaction::new(task.period, vec![step]);
                transaction.deadline = task.deadline;
                transaction.jitter = task.jitter;
                transaction
            })
            .collect();
        let analysis = analyse_transactions(&[Resource::default()], &set).unwrap();
        let expected: Vec<_> = times(&tasks).into_iter().map(|it| vec![it]).collect();
        prop_assert_eq!(analysis.responses, expected);
        prop_assert_eq!(analysis.schedulable, fits(&tasks).unwrap());
    }

    #[test]
    fn the_breakdown_factor_is_the_greatest(tasks in tasks()) {
        let factor = breakdown_factor(&tasks, fits).unwrap();
        prop_assert!(factor > 0);
        prop_assert!(fits(&scaled(&tasks, factor).unwrap()).unwrap());
        prop_assert!(!fits(&scaled(&tasks, factor + 1).unwrap()).unwrap());
        prop_assert_eq!(fits(&tasks).unwrap(), factor >= MILLION);
    }

    #[test]
    fn a_ceiling_blocks_no_more_than_inheritance(
        tasks in tasks(),
        sections in vec((0..6_usize, 0..3_usize, 1..9_u64), 0..10),
    ) {
        let sections: Vec<_> = sections
            .into_iter()
            .map(|(task, lock, length)| Section { task: task % tasks.len(), lock, length })
            .collect();
        let with = |protocol| {
            let mut tasks = tasks.clone();
            assign_blocking(&mut tasks, &sections, protocol).unwrap();
            tasks
        };
        let (ceiling, inheritance) = (with(LockProtocol::Ceiling), with(LockProtocol::Inheritance));
        for (one, several) in ceiling.iter().zip(inheritance) {
            prop_assert!(one.blocking <= several.blocking);
        }
        prop_assert_eq!(ceiling.last().unwrap().blocking, 0, "nothing is less urgent");
    }
}
