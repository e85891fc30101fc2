//! `chronorb lab waits`: what ways for a server's thread to wait for the next request cost.
//!
//! [`Waits`] runs a server on raw sockets, and a client that calls it: a request of 60 octets, a
//! reply of 28. The server's thread waits by each [`Way`] in turn: in `recv`, in epoll sets of every
//! kind, by spinning, and in io_uring. So it shows what the reactor of a lane can gain, and what it
//! pays beside a thread that waits on one connection alone.
//!
//! The server is this very program, called with the hidden command
//! [`CHILD_COMMAND`](crate::CHILD_COMMAND). Beside its
//! order it exchanges lines of JSON with its parent, which is the client: for each trial it hears how
//! to serve, accepts a connection, and says when it was closed.

mod case;
mod claims;
mod client;
mod order;
mod outcome;
mod plan;
mod report;
mod server;
mod ways;

use chronorb_rt::{MemoryLock, Rights};

use crate::bench::Cpus;
use crate::environment::{Environment, ProcessorTime};
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::progress::Progress;

pub use case::{Class, Processors, Setting, Trial, Way};
pub use order::IoUring;
pub use outcome::{Outcome, Row};
pub use plan::Plan;
pub(crate) use server::{SERVER, server_main};

/// The experiment.
///
/// The program that runs it hands [`CHILD_COMMAND`](crate::CHILD_COMMAND) on to
/// [`child_main`](crate::child_main).
#[derive(Debug)]
pub struct Waits;

impl Experiment for Waits {
    const NAME: &'static str = "waits";
    const TITLE: &'static str = "Ways to wait for a request";

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
        let processors: Vec<usize> = Cpus::of_this_process()?.iter().collect();
        let priority = rights.max_fifo.map(|max| max.min(PRIORITY));
        let lock_memory = rights.memory_lock == MemoryLock::Unlimited;
        let settings = plan.settings(processors.len(), priority.is_some());
        let pair = [processors[0], *processors.get(1).unwrap_or(&processors[0])];
        let mut fleet = client::WaitsFleet::start(plan, lock_memory, pair, priority)?;
        let may_ring = matches!(fleet.io_uring, IoUring::Permitted(_));

        let before = ProcessorTime::now();
        let mut rows = Vec::new();
        let progress = Progress::start("waiting, rounds", plan.rounds.into());
        for round in 1..=plan.rounds {
            for setting in &settings {
                let mut ways: Vec<Way> = setting.ways().collect();
                ways.retain(|way| may_ring || !way.is_ring());
                // No way always follows the same one at the same time.
                let count = ways.len();
                ways.rotate_left(round as usize % count);
                for way in ways {
                    let trial = Trial {
                        setting: *setting,
                        way,
                    };
                    let latency = fleet.run(trial, plan)?.summary();
                    rows.push(Row {
                        trial,
                        round,
                        latency,
                    });
                }
            }
            progress.advance(1);
        }
        drop(progress);
        let io_uring = fleet.io_uring.clone();
        fleet.stop()?;
        environment.stolen_percent = vec![before.stolen_percent(ProcessorTime::now())];
        Ok(Outcome {
            plan: plan.clone(),
            environment,
            io_uring,
            processors: processors.len(),
            rows,
        })
    }
}

/// Of `SCHED_FIFO`: above all ordinary threads, below those of the kernel.
const PRIORITY: u8 = 10;
