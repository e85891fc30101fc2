//! Calls under each scheduling class and load, their context switches, and calls at four rates.

use std::time::Duration;

use super::case::OsCase;
use super::class::SchedulingClass;
use super::fleet::{Members, OsCourse, OsFleet, soon};
use super::load::CompetingLoad;
use super::outcome::{ClassRow, ClientPriority, RateMode, RateRow, RequestRow};
use super::plan::{PAPER_RATES_HZ, SCALE};
use super::{OsRun, thousandths};
use crate::bench::{Pace, Placement};
use crate::error::LabError;
use crate::stats::{Record, median};
use crate::work::Speed;

/// Measures all cases of the permitted classes in turn, round after round.
pub(super) fn by_class(run: &OsRun<'_>) -> Result<Vec<ClassRow>, LabError> {
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
            let calls = [high, low][client as usize].iter();
            merged(calls.cloned())
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

/// Counts context switches by the number of clients: one of high priority, the others of low.
pub(super) fn switches(run: &OsRun<'_>) -> Result<Vec<RequestRow>, LabError> {
    let mut placements = vec![Placement::SameCpu];
    placements.extend(run.cpus.are_several().then_some(Placement::AcrossCpus));
    let mut rows = Vec::new();
    for placement in placements {
        for &clients in &run.plan.clients {
            run.watch.begin("context switches of requests");
            let case = run.fifo(placement);
            let mut fleet = OsFleet::start(Members::high_and_low(case, clients - 1))?;
            let paces = vec![Pace::BackToBack; clients as usize];
            let measured = fleet.run(soon(), &paces, run.plan.counting, 1)?.measured;
            fleet.stop()?;
            let requests: u64 = measured.calls.iter().map(Record::calls).sum();
            let each = |switches: u64| thousandths(switches as f64 / requests.max(1) as f64);
            rows.push(RequestRow {
                placement,
                clients,
                requests,
                client_switches_per_request: each(measured.client_switches),
                server_switches_per_request: each(measured.server_switches),
            });
        }
    }
    Ok(rows)
}

/// Measures the four clients in both modes, with time sharing and with priorities, as far as both
/// are permitted.
pub(super) fn at_four_rates(run: &OsRun<'_>) -> Result<Vec<RateRow>, LabError> {
    let plan = run.plan;
    let speed = Speed::measure();
    let mut rows = Vec::new();
    let classes = [SchedulingClass::Other, SchedulingClass::Fifo].into_iter();
    for class in classes.filter(|class| run.permits(*class)) {
        for mode in RateMode::ALL {
            run.watch.begin("four rates");
            let (load, scale, work, length) = match mode {
                RateMode::Paper => (CompetingLoad::Idle, 1, plan.work, plan.at_paper_rates),
                RateMode::Scaled => {
                    let work = plan.scaled_work;
                    (CompetingLoad::Hogs, SCALE, work, plan.at_scaled_rates)
                }
            };
            let case = OsCase::new(class, load, Placement::SameCpu, run.lock_memory);
            let rates = PAPER_RATES_HZ.map(|rate| rate * scale);
            let paces = rates.map(|rate| Pace::CallEvery(Duration::from_secs(1) / rate));
            let mut fleet = OsFleet::start(Members::one_each(case, &PRIORITIES))?;
            let course = fleet.run(soon(), &paces, length, speed.steps(work))?;
            fleet.stop()?;
            for (index, calls) in course.measured.calls.iter().enumerate() {
                rows.push(RateRow {
                    class,
                    mode,
                    client: index as u32 + 1,
                    priority: PRIORITIES[index],
                    rate_hz: rates[index],
                    latency: calls.summary(),
                });
            }
        }
    }
    Ok(rows)
}

/// The priorities of the clients, the most urgent first.
const PRIORITIES: [u8; 4] = [70, 60, 50, 40];
