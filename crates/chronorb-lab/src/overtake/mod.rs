//! `chronorb lab overtake`: calls of high priority while all lower lanes are saturated.
//!
//! [`Overtake`] runs a server for each strategy of thread pools (Leader/Followers, and
//! Half-Sync/Half-Async), each with pools with lanes, with request buffering, with borrowing and
//! without lanes; and clients: one of high priority, whose calls are measured, and others that keep the
//! lower lanes busy with endless work, the high lane with slow calls, or the processors awake. All
//! cases take turns in each round, so that each is compared with the idle machine of the same
//! minute.
//!
//! The processes are this very program, called with the hidden command
//! [`CHILD_COMMAND`](crate::CHILD_COMMAND). Beside their orders they exchange lines of JSON with
//! it:
//!
//! | child | says | hears |
//! |---|---|---|
//! | server | the references of its objects | the end of its input: shut down |
//! | client | for each case, that it is connected, then what it measured | for each case, whom to call, then when to start; at last, to end |

mod case;
mod claims;
mod client;
mod fleet;
mod outcome;
mod plan;
mod report;

use chronorb_rt::{MemoryLock, Rights};

use crate::environment::{Environment, ProcessorTime};
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::stats::Record;
use crate::watch::Watch;

pub use case::{Case, Load, Pool, Series, Strategy, Trial};
pub(crate) use client::{CLIENT, client_main};
pub use outcome::{Outcome, Row};
pub use plan::Plan;

/// The experiment.
///
/// The program that runs it hands [`CHILD_COMMAND`](crate::CHILD_COMMAND) on to
/// [`child_main`](crate::child_main).
#[derive(Debug)]
pub struct Overtake;

impl Experiment for Overtake {
    const NAME: &'static str = "overtake";
    const TITLE: &'static str = "Calls of high priority while all else is saturated";

    type Plan = Plan;
    type Findings = Outcome;

    fn full() -> Plan {
        Plan::full()
    }

    fn short() -> Plan {
        Plan::short()
    }

    fn measure(plan: &Plan) -> Result<Outcome, LabError> {
        let mut environment = Environment::probe();
        let memory_locked = Rights::probe().memory_lock == MemoryLock::Unlimited;
        let before = ProcessorTime::now();
        let mut fleet = fleet::OvertakeFleet::start(plan, memory_locked)?;
        let mut rows = Vec::new();
        let mut pooled: Vec<(Trial, Record)> = Vec::new();
        let mut real_time = true;

        let cases = Strategy::ALL.len() * Case::ALL.len();
        let length = (plan.case_length() + PREPARATION) * (plan.rounds * cases as u32);
        let watch = Watch::start("calls that overtake", length);
        for round in 1..=plan.rounds {
            watch.begin(&format!("round {round} of {}", plan.rounds));
            for index in 0..cases {
                // No case always follows the same one.
                let index = (index + round as usize) % cases;
                let strategy = Strategy::ALL[index % Strategy::ALL.len()];
                let case = Case::ALL[index / Strategy::ALL.len()];
                let outcome = fleet.run(strategy, case, &watch)?;
                real_time &= outcome.real_time;
                for (series, span) in Series::ALL.into_iter().zip(outcome.spans) {
                    let trial = outcome::trial(strategy, case, series);
                    rows.push(Row {
                        trial,
                        round,
                        latency: span.calls.summary(),
                        cpu_busy_percent: span.busy_percent,
                        cpu_stolen_percent: span.stolen_percent,
                        refused_requests: span.refused,
                        middle_longest_stop_us: span.middle_longest_stop_us,
                    });
                    match pooled.iter_mut().find(|(of, _)| *of == trial) {
                        Some((_, record)) => record.merge(&span.calls),
                        None => pooled.push((trial, span.calls)),
                    }
                }
            }
        }
        drop(watch);
        fleet.stop()?;
        environment.stolen_percent = vec![before.stolen_percent(ProcessorTime::now())];
        Ok(Outcome {
            plan: plan.clone(),
            environment,
            real_time,
            memory_locked,
            rows,
            pooled,
        })
    }
}

/// What a case takes before it begins, about.
const PREPARATION: std::time::Duration = std::time::Duration::from_millis(80);
