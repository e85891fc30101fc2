//! `chronorb lab thread-pools`: Leader/Followers against Half-Sync/Half-Async, and the rules of
//! thread pools.
//!
//! A client of several threads, which call again as soon as they are answered, has a server serve
//! 100,000 requests: by each strategy, with one to six threads, and with five amounts of work for
//! each request. The paper on thread pools compares the times for that. Then the experiment tries
//! the paper's statements about thread pools of Real-time CORBA (module `semantics`): buffers,
//! borrowing, threads on demand, and priorities.
//!
//! Servers and clients are those of the `bench` module.

mod claims;
mod fleet;
mod outcome;
mod plan;
mod report;
mod semantics;

use chronorb_rt::Rights;

use crate::bench::Cpus;
use crate::error::LabError;
use crate::experiment::{Experiment, may_lock_memory, observed};
use crate::progress::Progress;
use crate::watch::Watch;
use crate::work::Speed;
use fleet::{StrategyFleet, Terms};

pub use crate::inversion::CpuPlacement as Place;
pub use crate::overtake::Strategy;
pub use outcome::{PoolRow, PoolTrial, ThreadPoolsOutcome};
pub use plan::{PoolCell, ThreadPoolsPlan, Threads};
pub use semantics::{Observation, Promise};

/// The experiment on thread pools.
///
/// The program that runs it passes [`CHILD_COMMAND`](crate::CHILD_COMMAND) to
/// [`child_main`](crate::child_main).
#[derive(Clone, Copy, Debug)]
pub struct ThreadPools;

impl Experiment for ThreadPools {
    const NAME: &'static str = "thread-pools";
    const TITLE: &'static str = "Leader/Followers and Half-Sync/Half-Async";

    type Plan = ThreadPoolsPlan;
    type Findings = ThreadPoolsOutcome;

    fn full() -> ThreadPoolsPlan {
        ThreadPoolsPlan::full()
    }

    fn short() -> ThreadPoolsPlan {
        ThreadPoolsPlan::short()
    }

    fn measure(plan: &ThreadPoolsPlan) -> Result<ThreadPoolsOutcome, LabError> {
        let terms = Terms {
            lock_memory: may_lock_memory(),
            real_time: plan.real_time && Rights::probe().max_fifo.is_some(),
        };
        let (environment, (observations, trials)) =
            observed(|| Ok((observe()?, compare(plan, terms)?)))?;
        Ok(ThreadPoolsOutcome {
            plan: plan.clone(),
            environment,
            memory_locked: terms.lock_memory,
            real_time: terms.real_time,
            trials,
            observations,
        })
    }
}

/// Tries all rules of thread pools with both strategies.
fn observe() -> Result<Vec<Observation>, LabError> {
    let progress = Progress::start("what pools promise", Strategy::ALL.len() as u64);
    let mut observations = Vec::new();
    for strategy in Strategy::ALL {
        observations.extend(semantics::observe(strategy)?);
        progress.advance(1);
    }
    Ok(observations)
}

/// Measures every cell in every round, with one strategy right after the other.
fn compare(plan: &ThreadPoolsPlan, terms: Terms) -> Result<Vec<PoolTrial>, LabError> {
    let cpus = Cpus::of_this_process()?;
    let speed = Speed::measure();
    let watch = Watch::start("strategies of thread pools", plan.length());
    let mut trials = Vec::new();
    for round in 1..=plan.rounds {
        for &threads in &plan.threads {
            watch.begin(&format!("round {round}, threads {threads}"));
            let start = |strategy| StrategyFleet::start(strategy, plan, threads, &cpus, terms);
            let [first, second] = Strategy::ALL.map(start);
            let mut fleets = [first?, second?];
            let cells = plan.cells().filter(|cell| cell.threads == threads);
            for (index, cell) in cells.enumerate() {
                let is_work = cell.work_us > 0;
                let steps = if is_work { speed.steps(cell.work()) } else { 0 };
                // The strategies take turns at being first.
                let is_second = (round as usize + index) % 2;
                for turn in [is_second, 1 - is_second] {
                    trials.push(fleets[turn].run(cell, steps, round)?);
                    watch.tick();
                }
            }
            fleets.into_iter().try_for_each(StrategyFleet::stop)?;
        }
    }
    Ok(trials)
}
