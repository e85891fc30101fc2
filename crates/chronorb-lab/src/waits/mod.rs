//! `chronorb lab waits`: what ways for a server's thread to wait for the next request cost.
//!
//! [`measure`] runs a server on raw sockets, and a client that calls it: a request of 60 octets, a
//! reply of 28. The server's thread waits by each [`Way`] in turn: in `recv`, in epoll sets of every
//! kind, by spinning, and in io_uring. So it shows what the reactor of a lane can gain, and what it
//! pays beside a thread that waits on one connection alone.
//!
//! The server is this very program, called with the hidden command [`SERVER_COMMAND`]. Beside its
//! order it exchanges lines of JSON with its parent, which is the client: for each trial it hears how
//! to serve, accepts a connection, and says when it was closed.

mod case;
mod claims;
mod client;
mod descriptors;
mod error;
mod order;
mod outcome;
mod page;
mod plan;
mod plot;
mod server;
mod table;
mod ways;

use std::io::{self, Write};
use std::path::PathBuf;

use chronorb_rt::{MemoryLock, Rights};
use rustix::thread::{CpuSet, sched_getaffinity};

use crate::environment::{Environment, ProcessorTime};
use crate::progress::Progress;
use crate::report::{check_writable, write_page};

pub use case::{Class, Processors, Setting, Trial, Way};
pub use claims::Claim;
pub use error::WaitsError;
pub use order::IoUring;
pub use outcome::{Figures, Outcome, Row};
pub use page::html;
pub use plan::Plan;
pub use server::server_main;
pub use table::text;

/// The hidden command that [`measure`] uses for the server; its argument goes to [`server_main`].
pub const SERVER_COMMAND: &str = "waits-server";

/// What `chronorb lab waits` was asked to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// Print one JSON object instead of the tables.
    pub json: bool,
    /// Where the HTML report goes.
    pub report: PathBuf,
    /// What is measured.
    pub plan: Plan,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            json: false,
            report: PathBuf::from("chronorb-waits.html"),
            plan: Plan::full(),
        }
    }
}

/// Measures, prints the outcome on standard output and writes the report.
///
/// Progress goes to standard error. With [`Options::json`], standard output gets exactly one JSON
/// object. A claim that was missed is no failure: it is said.
///
/// # Errors
///
/// See [`WaitsError`]. The server has ended when this returns.
pub fn run(options: &Options) -> Result<(), WaitsError> {
    check_writable(&options.report)?;
    let outcome = measure(&options.plan)?;
    write_page(&html(&outcome)?, &options.report)?;
    print(options, &outcome).map_err(WaitsError::Output)
}

/// Measures by a plan.
///
/// The program that calls this has to hand its arguments to [`server_main`] where the first of them
/// is [`SERVER_COMMAND`].
///
/// # Errors
///
/// See [`WaitsError`].
pub fn measure(plan: &Plan) -> Result<Outcome, WaitsError> {
    let mut environment = Environment::probe();
    let rights = Rights::probe();
    let processors = processors().map_err(WaitsError::work("finding the processors"))?;
    let priority = rights.max_fifo.map(|max| max.min(PRIORITY));
    let lock_memory = rights.memory_lock == MemoryLock::Unlimited;
    let settings = plan.settings(processors.len(), priority.is_some());
    let pair = [processors[0], *processors.get(1).unwrap_or(&processors[0])];
    let mut company = client::Company::start(plan, lock_memory, pair, priority)?;
    let may_ring = matches!(company.io_uring, IoUring::Permitted(_));

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
                let latency = company.run(trial, plan)?.summary();
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
    let io_uring = company.io_uring.clone();
    company.stop()?;
    environment.stolen_percent = vec![before.stolen_percent(ProcessorTime::now())];
    Ok(Outcome {
        plan: plan.clone(),
        environment,
        io_uring,
        processors: processors.len(),
        rows,
    })
}

/// Those that the process may use; at least one.
fn processors() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    let all = (0..CpuSet::MAX_CPU).filter(|processor| set.is_set(*processor));
    Ok(all.collect())
}

fn print(options: &Options, outcome: &Outcome) -> io::Result<()> {
    let path = options.report.canonicalize();
    let path = path.as_ref().unwrap_or(&options.report).display();
    let mut out = io::stdout().lock();
    if options.json {
        for caveat in outcome.caveats() {
            eprintln!("{caveat}");
        }
        serde_json::to_writer(&mut out, &outcome.figures())?;
        writeln!(out)?;
        eprintln!("Report with plots: {path}");
    } else {
        writeln!(out, "{}", text(outcome))?;
        writeln!(out, "Report with plots: {path}")?;
    }
    out.flush()
}

/// Of `SCHED_FIFO`: above all ordinary threads, below those of the kernel.
const PRIORITY: u8 = 10;
