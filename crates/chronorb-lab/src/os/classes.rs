//! The ORB under each scheduling class and load.

use super::OsRun;
use super::case::OsCase;
use super::fleet::{Members, OsCourse, OsFleet, soon};
use super::outcome::{ClassRow, ClientPriority};
use crate::bench::Pace;
use crate::error::LabError;
use crate::stats::{Record, median};
use crate::work::Speed;

/// Measures all cases of the permitted classes in turn, round after round.
pub(super) fn measure(run: &OsRun<'_>) -> Result<Vec<ClassRow>, LabError> {
    let plan = run.plan;
    let cases = &run.cases;
    let steps = Speed::measure().steps(plan.work);
    let mut courses: Vec<Vec<OsCourse>> = cases.iter().map(|_| Vec::new()).collect();
    for round in 0..plan.rounds as usize {
        let rounds = plan.rounds;
        let what = format!("scheduling classes, round {} of {rounds}", round + 1);
        run.watch.begin(&what);
        for index in 0..cases.len() {
            // The predecessor of a case differs from round to round.
            let index = (index + round * 5) % cases.len();
            let mut fleet = OsFleet::start(Members::high_and_low(cases[index], plan.low_clients))?;
            let mut paces = vec![Pace::CallEvery(plan.low_period); plan.low_clients as usize + 1];
            paces[0] = Pace::CallEvery(plan.high_period);
            courses[index].push(fleet.run(soon(), &paces, plan.case, steps)?);
            fleet.stop()?;
            run.watch.tick();
        }
    }
    let rows = cases
        .iter()
        .zip(&courses)
        .flat_map(|(case, courses)| rows(*case, courses));
    Ok(rows.collect())
}

/// Returns the figures of the rounds of a case, for both kinds of clients.
fn rows(case: OsCase, courses: &[OsCourse]) -> [ClassRow; 2] {
    let middle = |of: &dyn Fn(&OsCourse) -> f64| median(courses.iter().map(of)).unwrap_or_default();
    [ClientPriority::High, ClientPriority::Low].map(|client| {
        let calls = |course: &OsCourse| {
            let (high, low) = course.measured.calls.split_at(1);
            match client {
                ClientPriority::High => merged(high.iter().cloned()),
                ClientPriority::Low => merged(low.iter().cloned()),
            }
        };
        ClassRow {
            case,
            client,
            latency: merged(courses.iter().map(calls)).summary(),
            p99_of_rounds_us: middle(&|course| calls(course).summary().p99_us),
            cpu_busy_percent: middle(&|course| course.busy_percent),
            cpu_stolen_percent: middle(&|course| course.stolen_percent),
        }
    })
}

fn merged(records: impl Iterator<Item = Record>) -> Record {
    records.fold(Record::new(), |mut all, record| {
        all.merge(&record);
        all
    })
}
