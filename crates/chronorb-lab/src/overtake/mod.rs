//! `chronorb lab overtake`: calls of high priority while all lower lanes are saturated.
//!
//! [`Overtake`] runs a server for each strategy of thread pools (Leader/Followers, and
//! Half-Sync/Half-Async), each with pools with lanes, with request buffering, with borrowing and
//! without lanes. For each case it starts clients: one of high priority, whose calls are measured,
//! and others that keep the lower lanes busy with endless work, or the high lane with slow calls.
//! All cases take turns in each round, so that each is compared with the idle machine of the same
//! minute.
//!
//! The servers and the clients are those of the `bench` module. The clients of the load report its
//! effect after each span.

mod case;
mod claims;
mod fleet;
mod outcome;
mod plan;
mod report;

use crate::error::LabError;
use crate::experiment::{Experiment, may_lock_memory, observed};
use crate::report::PooledRecords;
use crate::watch::Watch;

pub use case::{CallSeries, OvertakeCase, OvertakeLoad, OvertakePool, OvertakeTrial, Strategy};
pub use outcome::{OvertakeOutcome, OvertakeRow};
pub use plan::OvertakePlan;

/// The experiment on overtaking of lower lanes.
///
/// The program that runs it hands [`CHILD_COMMAND`](crate::CHILD_COMMAND) on to
/// [`child_main`](crate::child_main).
#[derive(Debug)]
pub struct Overtake;

impl Experiment for Overtake {
    const NAME: &'static str = "overtake";
    const TITLE: &'static str = "Calls of high priority while all else is saturated";

    type Plan = OvertakePlan;
    type Findings = OvertakeOutcome;

    fn full() -> OvertakePlan {
        OvertakePlan::full()
    }

    fn short() -> OvertakePlan {
        OvertakePlan::short()
    }

    fn measure(plan: &OvertakePlan) -> Result<OvertakeOutcome, LabError> {
        let memory_locked = may_lock_memory();
        let (mut real_time, mut pooled) = (true, PooledRecords::default());
        let cases = Strategy::ALL.len() * OvertakeCase::ALL.len();
        let measure = || {
            let mut rows = Vec::new();
            let fleet = fleet::OvertakeFleet::start(plan, memory_locked)?;
            let length = plan.case_length() * (plan.rounds * cases as u32);
            let watch = Watch::start("calls that overtake", length);
            for round in 1..=plan.rounds {
                watch.begin(&format!("round {round} of {}", plan.rounds));
                for index in 0..cases {
                    // No case always follows the same one.
                    let index = (index + round as usize) % cases;
                    let strategy = Strategy::ALL[index % Strategy::ALL.len()];
                    let case = OvertakeCase::ALL[index / Strategy::ALL.len()];
                    for series in fleet.run(strategy, case, round, &watch)? {
                        real_time &= series.real_time;
                        pooled.add(series.row.trial, &series.calls);
                        rows.push(series.row);
                    }
                }
            }
            drop(watch);
            fleet.stop()?;
            Ok(rows)
        };
        let (environment, rows) = observed(measure)?;
        Ok(OvertakeOutcome {
            plan: plan.clone(),
            environment,
            real_time,
            memory_locked,
            rows,
            pooled,
        })
    }
}
