//! Schedule files with the files that they include, and lock files.

use chronorb_sched::{Response, SystemSimulation, simulate_transactions};
use chronorb_schedule::{
    Assignment, LockFile, Margin, MeasuredCost, Schedule, SimulationError, SimulationRun,
};

/// The greatest number of operations of which the schedule is analysed.
const OPERATIONS: usize = 8;
/// The greatest number of steps, likewise. Calls can make many of few operations.
const STEPS: usize = 24;

/// Reads `data` as a schedule file, and as a lock file. A NUL ends the schedule; the text after it
/// is that of every file that it includes.
///
/// Each schedule that is read gets an assignment. Its lock file is written and read again, no
/// simulated job of its steps takes longer than analysed, and learnt execution times are found in
/// the file.
pub fn schedule_file(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    if let Ok(lock) = LockFile::parse("fuzz.rt.lock", text) {
        check_lock(&lock);
    }
    let (text, included) = text.split_once('\0').unwrap_or((text, ""));
    let Ok(schedule) = parse(text, included) else {
        return;
    };
    learn(&schedule, text, included);
    if schedule.operations.len() > OPERATIONS {
        return;
    }
    let same = vec![1; schedule.operations.len()];
    let Ok(sets) = schedule.to_task_sets(&same) else {
        return;
    };
    let steps = sets.transactions.iter().map(|it| it.works.len());
    if steps.sum::<usize>() > STEPS {
        return;
    }
    if let Ok(assignment) = schedule.assign() {
        check_assignment(&schedule, &assignment);
    }
}

fn parse(text: &str, included: &str) -> Result<Schedule, ()> {
    let mut read = |_: &str| match included {
        "" => Err("there is no file".to_owned()),
        text => Ok(text.to_owned()),
    };
    Schedule::parse("fuzz.toml", text, &mut read).map_err(|errors| {
        assert!(!errors.to_string().is_empty(), "a mistake is told");
    })
}

fn check_lock(lock: &LockFile) {
    let again = LockFile::parse("fuzz.rt.lock", &lock.to_string());
    assert_eq!(
        again.as_ref().ok(),
        Some(lock),
        "a lock file changed on its way"
    );
}

fn check_assignment(schedule: &Schedule, assignment: &Assignment) {
    check_lock(&assignment.lock_file(schedule));
    let analysis = &assignment.analysis;
    let fits = assignment.task_sets.fits();
    assert!(fits.is_err() || fits.is_ok_and(|fits| fits == analysis.feasible));
    let on_time = analysis.transactions.iter().all(|it| it.on_time);
    assert_eq!(on_time, analysis.feasible);
    let ranks = assignment.band_ranks();
    if let Ok(factor) = schedule.greatest_factor(&ranks) {
        let _ = schedule.bottleneck(&ranks, factor);
        let _ = schedule.responses_at(&ranks, factor);
    }
    simulate(schedule, assignment);
    execute(schedule, assignment);
}

/// Simulates the schedule as the ORB executes it.
fn execute(schedule: &Schedule, assignment: &Assignment) {
    let numbers = assignment.numbers(schedule);
    let periods = schedule.operations.iter().filter_map(|it| it.period);
    let window = periods.min().unwrap_or(1_000_000).saturating_mul(20);
    for run in [
        SimulationRun::synchronous(schedule, window),
        SimulationRun::random(1, window),
    ] {
        match schedule.simulate(&numbers, &run) {
            Ok(outcome) => {
                // Nothing ends after the window.
                let works = outcome.activities.iter();
                assert!(
                    works
                        .flat_map(|it| &it.works)
                        .all(|it| it.longest <= window)
                );
            }
            Err(error) => assert_eq!(
                error,
                SimulationError::TooLong,
                "the assignment has no cycle"
            ),
        }
    }
}

/// Simulates all work from a common start, with locks.
fn simulate(schedule: &Schedule, assignment: &Assignment) {
    let sets = &assignment.task_sets;
    let transactions = sets.analysed_transactions();
    let periods = || transactions.iter().map(|it| it.period);
    let window = periods().min().unwrap_or(0).saturating_mul(20);
    let rules = SystemSimulation {
        sections: sets.sections(schedule),
        protocol: schedule.rules.locks,
        ..SystemSimulation::new(window.min(periods().max().unwrap_or(0).saturating_mul(2)))
    };
    let resources = sets.analysed_resources();
    let Ok(shown) = simulate_transactions(&resources, &transactions, &rules) else {
        return;
    };
    for (result, counts) in assignment.analysis.transactions.iter().zip(&shown.steps) {
        for (response, counts) in result.steps.iter().zip(counts) {
            assert!(
                Response::Bounded(counts.worst_response) <= *response,
                "a job of a simulation takes {} of {response:?}",
                counts.worst_response
            );
        }
    }
}

/// Writes an execution time for each operation into the file, and reads that.
fn learn(schedule: &Schedule, text: &str, included: &str) {
    let costs = (0..schedule.operations.len()).map(|operation| MeasuredCost {
        operation,
        worst: 1_500,
        executions: 100,
    });
    let costs: Vec<_> = costs.collect();
    let Ok(learnt) = schedule.learn("fuzz.toml", text, &costs, Margin(100)) else {
        return;
    };
    // Locks may be held for longer than what was learnt.
    if let Ok(again) = parse(&learnt, included) {
        assert!(again.operations.iter().all(|it| it.cost == 3_000));
    }
}
