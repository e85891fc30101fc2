//! Response times under earliest deadline first.

use std::cmp::Ordering;

use chronorb_sched::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::properties::{config, delayed_tasks, tasks};
use crate::{bounded, ranked, ranked_by_deadline};

const NONE: DeadlineBlocking<'static> = DeadlineBlocking::None;

fn times(tasks: &[Task]) -> Vec<Response> {
    deadline_responses(tasks, NONE).unwrap()
}

fn all_on_time(tasks: &[Task], blocking: DeadlineBlocking<'_>) -> bool {
    let times = deadline_responses(tasks, blocking).unwrap();
    times
        .iter()
        .zip(tasks)
        .all(|(time, task)| time.meets(task.deadline))
}

#[test]
fn one_task_takes_its_execution_time_after_its_jitter() {
    let task = Task::new(3, 10);
    assert_eq!(times(&[task]), bounded([3]));
    assert_eq!(times(&[task.with_jitter(4)]), bounded([7]));
    let whole = deadline_responses(&[task], DeadlineBlocking::NonPreemptive).unwrap();
    assert_eq!(whole, bounded([3]));
    // Three jobs that come together end one after another.
    assert_eq!(times(&[task.with_jitter(25)]), bounded([28]));
    assert_eq!(deadline_responses(&[], NONE), Ok(Vec::new()));
}

#[test]
fn t4_both_tasks_are_on_time() {
    assert_eq!(times(&ranked(&[(2, 5), (4, 7)])), bounded([4, 6]));
}

#[test]
fn t12_the_worst_responses_are_not_at_a_synchronous_start() {
    let a = ranked_by_deadline(&[(3, 10, 6), (4, 14, 9), (5, 22, 18), (6, 40, 32)]);
    let times = times(&a);
    assert!(all_on_time(&a, NONE));
    // From a synchronous start the responses are 6, 8, 18 and 30.
    assert_eq!(times, bounded([6, 9, 18, 32]));
    assert_eq!(shown_at_any_offset(&a, 1, 3300), 9);
    assert_eq!(shown_at_any_offset(&a, 3, 3300), 32);
    let b = ranked_by_deadline(&[(3, 10, 5), (4, 14, 8), (5, 22, 11), (6, 40, 32)]);
    assert!(!all_on_time(&b, NONE));
}

#[test]
fn t13_a_full_processor_has_bounded_responses() {
    let tasks = ranked(&[(20, 50), (30, 70), (18, 105)]);
    assert_eq!(compare_to_processor(&tasks), Ordering::Equal);
    assert_eq!(times(&tasks), bounded([50, 70, 105]));
    let over = ranked(&[(20, 50), (30, 70), (19, 105)]);
    assert_eq!(times(&over), [Response::Unbounded; 3]);
}

#[test]
fn a_job_that_is_not_preempted_delays_earlier_deadlines() {
    let tasks = ranked(&[(2, 10), (3, 15), (6, 40)]);
    assert_eq!(times(&tasks), bounded([2, 5, 13]));
    let whole = deadline_responses(&tasks, DeadlineBlocking::NonPreemptive).unwrap();
    assert_eq!(whole[0], Response::Bounded(8));
    // The lock of the last task blocks both others, as one of them uses it.
    let section = |task, length| Section {
        task,
        lock: 0,
        length,
    };
    let sections = [section(0, 1), section(2, 4)];
    let locked = deadline_responses(&tasks, DeadlineBlocking::Sections(&sections)).unwrap();
    assert_eq!(locked[0], Response::Bounded(6));
}

#[test]
fn the_ceiling_of_a_lock_blocks_tasks_between() {
    // The second task uses no lock, and its jitter brings its deadline before that of the first.
    let tasks = [
        Task::new(1, 40).with_deadline(20),
        Task::new(1, 40).with_deadline(22).with_jitter(15),
        Task::new(9, 80),
    ];
    let section = |task, length| Section {
        task,
        lock: 0,
        length,
    };
    let sections = [section(0, 1), section(2, 9)];
    let test = test_demand(&tasks, DeadlineBlocking::Sections(&sections)).unwrap();
    assert!(!test.schedulable, "9 and 1 exceed 22 - 15");
    assert!(!all_on_time(&tasks, DeadlineBlocking::Sections(&sections)));
}

#[test]
fn jobs_can_be_released_after_their_deadlines() {
    let tasks = ranked_by_deadline(&[(2, 4, 2), (1, 4, 1)]);
    let late = [tasks[0].with_jitter(8), tasks[1].with_jitter(14)];
    let whole = DeadlineBlocking::NonPreemptive;
    let simulated = simulate(
        &late,
        &Simulation {
            discipline: Discipline::EarliestDeadline,
            preemption: JobPreemption::Never,
            ..Simulation::new(1000)
        },
        |task, job| if job == 0 { [8, 14][task] } else { 0 },
    );
    let analysed = deadline_responses(&late, whole).unwrap();
    for (counts, response) in simulated.unwrap().tasks.iter().zip(analysed) {
        assert!(Response::Bounded(counts.worst_response) <= response);
    }
    assert!(!test_demand(&late, whole).unwrap().schedulable);
}

/// Returns the worst response of a task in simulations where all others arrive at once, and the
/// task at any time. Of equal deadlines its own is last.
fn shown_at_any_offset(tasks: &[Task], which: usize, window: Time) -> Time {
    let mut tasks = tasks.to_vec();
    for (i, task) in tasks.iter_mut().enumerate() {
        task.importance = u8::from(i != which);
    }
    let rules = Simulation {
        discipline: Discipline::EarliestDeadline,
        running_first: false,
        ..Simulation::new(window)
    };
    let mut worst = 0;
    for offset in 0..tasks[which].period {
        tasks[which].offset = offset;
        let shown = simulate(&tasks, &rules, |_, _| 0).unwrap();
        worst = worst.max(shown.tasks[which].worst_response);
    }
    worst
}

/// Returns up to three tasks with short periods.
fn short_tasks() -> impl Strategy<Value = Vec<Task>> {
    let period = select(vec![3_u64, 4, 5, 6, 8]);
    let task = (period, 1..4_u64, 1..12_u64).prop_map(|(period, cost, deadline)| {
        Task::new(cost.min(period), period).with_deadline(deadline)
    });
    vec(task, 1..4)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn responses_meet_deadlines_where_the_demand_fits(
        tasks in tasks(),
        delayed in delayed_tasks(),
        sections in vec((0..6_usize, 0..3_usize, 1..9_u64), 0..6),
    ) {
        for tasks in [tasks, delayed] {
            let fits = |blocking| test_demand(&tasks, blocking).unwrap().schedulable;
            prop_assert_eq!(fits(NONE), all_on_time(&tasks, NONE));
            let section = |(task, lock, length): &(usize, usize, Time)| {
                let task = *task % tasks.len();
                Section { task, lock: *lock, length: (*length).min(tasks[task].cost) }
            };
            let sections: Vec<_> = sections.iter().map(section).collect();
            let locks = DeadlineBlocking::Sections(&sections);
            prop_assert_eq!(fits(locks), all_on_time(&tasks, locks));
            let whole = DeadlineBlocking::NonPreemptive;
            prop_assert!(!fits(whole) || all_on_time(&tasks, whole));
        }
    }

    #[test]
    fn no_simulation_by_deadline_is_later_than_the_analysis(
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
            (NONE, JobPreemption::Always)
        } else {
            (DeadlineBlocking::NonPreemptive, JobPreemption::Never)
        };
        let rules = Simulation {
            discipline: Discipline::EarliestDeadline,
            preemption,
            ..Simulation::new(1000)
        };
        let mut random = fastrand::Rng::with_seed(seed);
        let simulated = simulate(&tasks, &rules, |_, _| random.u64(0..20)).unwrap();
        let analysed = deadline_responses(&tasks, blocking).unwrap();
        for (response, shown) in analysed.into_iter().zip(simulated.tasks) {
            prop_assert!(Response::Bounded(shown.worst_response) <= response);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..config() })]

    #[test]
    fn some_arrivals_show_the_worst_response(tasks in short_tasks(), which in 0..3_usize) {
        let which = which % tasks.len();
        if compare_to_processor(&tasks) == Ordering::Greater {
            return Ok(());
        }
        let expected = deadline_responses(&tasks, NONE).unwrap()[which];
        let worst = shown_at_any_offset(&tasks, which, 260);
        prop_assert_eq!(Response::Bounded(worst), expected);
    }
}
