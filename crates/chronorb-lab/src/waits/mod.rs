//! `chronorb lab waits`: the costs of the ways in which a server's thread can wait for a request.
//!
//! [`WaitsExperiment`] runs a server on raw sockets, and a client that calls it: a request of 60
//! octets, a reply of 28. The server's thread waits by each [`WaitMethod`] in turn: in `recv`, in
//! epoll sets of every kind, by busy-polling, and in io_uring. The figures show the gain that is
//! possible for the reactor of a lane, and its cost beside a thread that waits on one connection
//! alone.
//!
//! The server is a process of this program, started with the hidden command
//! [`CHILD_COMMAND`](crate::CHILD_COMMAND). The parent is the client. By lines of JSON it orders
//! each trial; the server accepts a connection, and reports when the connection was closed.

mod case;
mod claims;
mod client;
mod outcome;
mod plan;
mod report;
mod server;
mod ways;

use chronorb_rt::Rights;

use crate::bench::Cpus;
use crate::error::LabError;
use crate::experiment::{Experiment, may_lock_memory, observed};
use crate::progress::Progress;

pub use case::{Processors, Setting, WaitMethod, WaitsClass};
pub use outcome::{WaitsOutcome, WaitsRow};
pub use plan::WaitsPlan;
pub use server::IoUring;
pub(crate) use server::{SERVER, server_main};

/// The experiment on waits for requests.
///
/// The program that runs it hands [`CHILD_COMMAND`](crate::CHILD_COMMAND) on to
/// [`child_main`](crate::child_main).
#[derive(Debug)]
pub struct WaitsExperiment;

impl Experiment for WaitsExperiment {
    const NAME: &'static str = "waits";
    const TITLE: &'static str = "Ways to wait for a request";

    type Plan = WaitsPlan;
    type Findings = WaitsOutcome;

    fn full() -> WaitsPlan {
        WaitsPlan::of(11, 5_000, 500, 1_000)
    }

    fn short() -> WaitsPlan {
        WaitsPlan::of(7, 500, 50, 1_000)
    }

    fn measure(plan: &WaitsPlan) -> Result<WaitsOutcome, LabError> {
        let processors: Vec<usize> = Cpus::of_this_process()?.iter().collect();
        let priority = Rights::probe().max_fifo.map(|max| max.min(PRIORITY));
        let settings = plan.settings(processors.len(), priority.is_some());
        let pair = [processors[0], *processors.get(1).unwrap_or(&processors[0])];
        let mut fleet = client::WaitsFleet::start(plan, may_lock_memory(), pair, priority)?;
        let may_ring = matches!(fleet.io_uring, IoUring::Permitted(_));
        let (environment, rows) = observed(|| {
            let mut rows = Vec::new();
            let progress = Progress::start("waiting, rounds", plan.rounds.into());
            for round in 1..=plan.rounds {
                for &setting in &settings {
                    let mut ways: Vec<WaitMethod> = setting.ways().collect();
                    ways.retain(|way| may_ring || !way.is_ring());
                    // The order rotates, so that no way is always measured after the same one.
                    let count = ways.len();
                    ways.rotate_left(round as usize % count);
                    for way in ways {
                        rows.push(WaitsRow {
                            setting,
                            way,
                            round,
                            latency: fleet.run(setting, way, plan)?.summary(),
                        });
                    }
                }
                progress.advance(1);
            }
            Ok(rows)
        })?;
        let io_uring = fleet.io_uring.clone();
        fleet.stop()?;
        Ok(WaitsOutcome {
            plan: plan.clone(),
            environment,
            io_uring,
            processors: processors.len(),
            rows,
        })
    }
}

/// The priority of `SCHED_FIFO`: above all ordinary threads, below those of the kernel.
const PRIORITY: u8 = 10;
