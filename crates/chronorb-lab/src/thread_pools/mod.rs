//! `chronorb lab thread-pools`: Leader/Followers against Half-Sync/Half-Async, and what thread pools promise.
//!
//! A client of several threads, which leave it no rest, has a server serve 100,000 requests: by each strategy, with
//! one to six threads, and with five amounts of work for each request. How long that takes is what the paper on
//! thread pools compares. Then the experiment tries what the paper says of thread pools of Real-time CORBA (module
//! `semantics`): buffers, borrowing, threads on demand, and priorities.
//!
//! The processes are this very program, called with the hidden command
//! [`CHILD_COMMAND`](crate::CHILD_COMMAND).
//! Beside their orders they exchange lines of JSON with it:
//!
//! | child | says | hears |
//! |---|---|---|
//! | server | the reference of its object | the end of its input: shut down |
//! | client | that it is connected; then for each batch that it has warmed up, and what it took | each batch, and to go on; at last, to end |

mod case;
mod claims;
mod client;
mod fleet;
mod outcome;
mod plan;
mod report;
mod semantics;

use chronorb_rt::{MemoryLock, Rights};

use crate::bench::Cpus;
use crate::environment::{Environment, ProcessorTime};
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::progress::Progress;
use crate::watch::Watch;
use crate::work::Speed;
use client::{Batch, Terms};

pub use crate::inversion::CpuPlacement as Place;
pub use crate::overtake::Strategy;
pub use case::{Cell, Threads};
pub(crate) use client::{CLIENT, client_main};
pub use outcome::{Outcome, Row, Trial};
pub use plan::Plan;
pub use semantics::{Observation, Promise};

/// Leader/Followers against Half-Sync/Half-Async, and what thread pools promise.
///
/// The program that runs it hands [`CHILD_COMMAND`](crate::CHILD_COMMAND) on to
/// [`child_main`](crate::child_main).
#[derive(Clone, Copy, Debug)]
pub struct ThreadPools;

impl Experiment for ThreadPools {
    const NAME: &'static str = "thread-pools";
    const TITLE: &'static str = "Leader/Followers and Half-Sync/Half-Async";

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
        let rights = Rights::probe();
        let terms = Terms {
            lock_memory: rights.memory_lock == MemoryLock::Unlimited,
            real_time: plan.real_time && rights.max_fifo.is_some(),
        };
        let before = ProcessorTime::now();
        let observations = observe()?;
        let trials = compare(plan, terms)?;
        environment.stolen_percent = vec![before.stolen_percent(ProcessorTime::now())];
        Ok(Outcome {
            plan: plan.clone(),
            environment,
            memory_locked: terms.lock_memory,
            real_time: terms.real_time,
            trials,
            observations,
        })
    }
}

/// Tries all that is promised, by both strategies.
fn observe() -> Result<Vec<Observation>, LabError> {
    let progress = Progress::start("what pools promise", Strategy::ALL.len() as u64);
    let mut observations = Vec::new();
    for strategy in Strategy::ALL {
        observations.extend(semantics::observe(strategy)?);
        progress.advance(1);
    }
    Ok(observations)
}

/// Measures every cell in every round, the two strategies one right after the other.
fn compare(plan: &Plan, terms: Terms) -> Result<Vec<Trial>, LabError> {
    let cpus = Cpus::of_this_process()?;
    let speed = Speed::measure();
    let watch = Watch::start("strategies of thread pools", plan.length());
    let mut trials = Vec::new();
    for round in 1..=plan.rounds {
        for &threads in &plan.threads {
            watch.begin(&format!("round {round}, threads {threads}"));
            let mut fleet = fleet::StrategyFleet::start(plan, threads, &cpus, terms)?;
            let cells = plan.cells().filter(|cell| cell.threads == threads);
            for (index, cell) in cells.enumerate() {
                let batch = Batch {
                    warm_up: plan.warm_up,
                    requests: plan.requests,
                    steps: match cell.work_us {
                        0 => 0,
                        _ => speed.steps(cell.work()),
                    },
                };
                let mut strategies = Strategy::ALL;
                // None is always the first.
                strategies.rotate_left((round as usize + index) % 2);
                for strategy in strategies {
                    trials.push(fleet.run(strategy, batch, cell, round)?);
                    watch.tick();
                }
            }
            fleet.stop()?;
        }
    }
    Ok(trials)
}
