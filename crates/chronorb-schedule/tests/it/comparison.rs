//! Random files, analysed and simulated: no simulated response is above the analysed one.
//!
//! `CHRONORB_SCHEDULE_FILES` is the number of files, of which each test has an equal part, and
//! `CHRONORB_SCHEDULE_SEED` is the first seed.

use std::env;

use chronorb_schedule::{
    Assignment, Numbers, Schedule, SimulationRun, StepWork, Time, Work, readable_time,
};

use crate::generated::{FileSpec, Parts};
use crate::parse;

/// The files of all tests together, without the environment.
const FILES: u64 = 2_000;
/// The tests that compare files.
const TESTS: u64 = 10;
/// The random runs of each file, beside two with chosen arrivals.
const RUNS: u64 = 4;
/// The random runs of a file that is reduced.
const MANY_RUNS: u64 = 60;

/// A simulated response above the analysed one.
struct Excess {
    run: String,
    activity: String,
    work: Work,
    simulated: Time,
    analysed: Time,
}

/// Returns a number of the environment.
fn number(name: &str, usual: u64) -> u64 {
    let text = env::var(name).ok();
    text.map_or(usual, |text| text.parse().expect("a number"))
}

/// Compares the files of all seeds.
fn compare(parts: Parts, numbers: impl Fn(&Schedule, &Assignment) -> Numbers) {
    let first = number("CHRONORB_SCHEDULE_SEED", 0);
    let files = number("CHRONORB_SCHEDULE_FILES", FILES).div_ceil(TESTS);
    let (mut fitting, mut above) = (0, Vec::new());
    for seed in first..first + files {
        let (fits, excess) = examine(&FileSpec::random(seed, parts), seed, RUNS, &numbers);
        fitting += u64::from(fits);
        if excess.is_some() {
            above.push(seed);
        }
    }
    assert!(fitting * 10 >= files, "only {fitting} of {files} files fit");
    let Some(seed) = above.first().copied() else {
        return;
    };
    let file = FileSpec::random(seed, parts);
    let file = file.reduced(|it| examine(it, seed, MANY_RUNS, &numbers).1.is_some());
    let excess = examine(&file, seed, MANY_RUNS, &numbers).1;
    let excess = excess.expect("the reduced file has it, too");
    panic!(
        "{} of {files} files are simulated above their analysis; seeds {:?}\n\
         seed {seed}, reduced: {} / {:?} takes {} in {}, and {} is analysed:\n{}",
        above.len(),
        &above[..above.len().min(20)],
        excess.activity,
        excess.work,
        readable_time(excess.simulated),
        excess.run,
        readable_time(excess.analysed),
        file.text(),
    );
}

/// Whether a file fits, and a response above the analysed one. Bounds of files that do not fit
/// hold as well, if late jobs go on.
fn examine(
    file: &FileSpec,
    seed: u64,
    runs: u64,
    numbers: &impl Fn(&Schedule, &Assignment) -> Numbers,
) -> (bool, Option<Excess>) {
    // A reduced file can be none that is read, and one that cannot be analysed is not compared.
    let Ok(schedule) = parse(&file.text()) else {
        return (false, None);
    };
    let assignment = schedule.assign();
    let Ok(assignment) = assignment else {
        return (false, None);
    };
    let fits = assignment.analysis.feasible;
    let numbers = numbers(&schedule, &assignment);
    let periods = schedule.operations.iter().filter_map(|it| it.period);
    let window = 4 * periods.max().unwrap_or(0);
    let mut all = vec![
        SimulationRun::synchronous(&schedule, window),
        staggered(&schedule, &numbers, window),
    ];
    let random = (0..runs).map(|run| SimulationRun::random(seed * MANY_RUNS + run, window));
    all.extend(random);
    let excess = all.iter().find_map(|run| {
        let outcome = schedule.simulate(&numbers, run).expect("it is simulated");
        let transactions = assignment.task_sets.transactions.iter();
        let analysed = transactions.zip(&assignment.analysis.transactions);
        outcome
            .activities
            .iter()
            .zip(analysed)
            .find_map(|(activity, (named, result))| {
                assert_eq!(activity.name, named.name);
                activity.works.iter().find_map(|it| {
                    let steps = named.works.iter().zip(&result.steps);
                    let own = steps.filter(|(step, _)| is_of(**step, it.work));
                    // Without a bound there is nothing to exceed.
                    let analysed = own.map(|(_, response)| response.time());
                    let analysed = analysed.collect::<Option<Vec<_>>>()?.into_iter().max()?;
                    (it.longest > analysed).then(|| Excess {
                        run: format!("{run:?}"),
                        activity: activity.name.clone(),
                        work: it.work,
                        simulated: it.longest,
                        analysed,
                    })
                })
            })
    });
    (fits, excess)
}

/// Returns a run in which less urgent activities arrive just before more urgent ones.
fn staggered(schedule: &Schedule, numbers: &Numbers, window: Time) -> SimulationRun {
    let overhead = schedule
        .nodes
        .iter()
        .map(|node| node.overhead)
        .max()
        .unwrap_or(0);
    let clients = schedule.operations.iter().enumerate();
    let clients = clients.filter(|(_, it)| it.period.is_some());
    let priorities: Vec<_> = clients.map(|(it, _)| numbers.priorities[it]).collect();
    let rank = |of: &u32| priorities.iter().filter(|it| *it < of).count() as Time;
    SimulationRun {
        first: priorities
            .iter()
            .map(|it| rank(it) * (overhead + 1))
            .collect(),
        outside: Some(overhead + 1),
        ..SimulationRun::synchronous(schedule, window)
    }
}

/// Whether a step of the analysis is part of a work.
fn is_of(step: StepWork, work: Work) -> bool {
    match work {
        Work::Execution { operation } => step == StepWork::Execution { operation },
        Work::Request { operation } => step == StepWork::Request { operation },
        Work::Reply { operation } => step == StepWork::Reply { operation },
        Work::Message { .. } => step == StepWork::Message,
    }
}

/// Files without the parts that can be in them.
pub(crate) const PLAIN: Parts = Parts {
    oneways: false,
    declared_lanes: false,
    many_callers: false,
    late_deadlines: false,
    locks: false,
    shared_locks: false,
    links: false,
};

/// Without one-way calls, locks and links, and with enough threads, the analysis has no part that
/// only a simulation of threads and frames could show wrong. So this proves the simulator.
#[test]
fn two_way_calls_with_enough_threads_stay_within_the_analysis() {
    compare(PLAIN, |schedule, assignment| {
        let mut numbers = assignment.numbers(schedule);
        for lane in &mut numbers.lanes {
            lane.threads = 64;
        }
        numbers
    });
}

#[test]
fn assigned_threads_stay_within_the_analysis() {
    let parts = Parts {
        many_callers: true,
        ..PLAIN
    };
    compare(parts, |schedule, assignment| assignment.numbers(schedule));
}

#[test]
fn late_deadlines_stay_within_the_analysis() {
    let parts = Parts {
        late_deadlines: true,
        ..PLAIN
    };
    compare(parts, |schedule, assignment| assignment.numbers(schedule));
}

#[test]
fn oneway_calls_stay_within_the_analysis() {
    let parts = Parts {
        oneways: true,
        ..PLAIN
    };
    compare(parts, |schedule, assignment| assignment.numbers(schedule));
}

#[test]
fn declared_lanes_stay_within_the_analysis() {
    let parts = Parts {
        declared_lanes: true,
        many_callers: true,
        ..PLAIN
    };
    compare(parts, |schedule, assignment| assignment.numbers(schedule));
}

#[test]
fn locks_stay_within_the_analysis() {
    let parts = Parts {
        locks: true,
        ..PLAIN
    };
    compare(parts, |schedule, assignment| assignment.numbers(schedule));
}

#[test]
fn messages_stay_within_the_analysis() {
    let parts = Parts {
        links: true,
        ..PLAIN
    };
    compare(parts, |schedule, assignment| assignment.numbers(schedule));
}

#[test]
fn locks_of_several_processors_stay_within_the_analysis() {
    let parts = Parts {
        shared_locks: true,
        ..PLAIN
    };
    compare(parts, |schedule, assignment| assignment.numbers(schedule));
}

#[test]
fn all_parts_together_with_locks_of_several_processors_stay_within_the_analysis() {
    let parts = Parts {
        oneways: true,
        declared_lanes: true,
        many_callers: true,
        late_deadlines: true,
        locks: true,
        shared_locks: true,
        links: true,
    };
    compare(parts, |schedule, assignment| assignment.numbers(schedule));
}

#[test]
fn all_parts_together_stay_within_the_analysis() {
    let parts = Parts {
        oneways: true,
        declared_lanes: true,
        many_callers: true,
        late_deadlines: true,
        locks: true,
        links: true,
        ..PLAIN
    };
    compare(parts, |schedule, assignment| assignment.numbers(schedule));
}
