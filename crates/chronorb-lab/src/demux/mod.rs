//! `chronorb lab demux`: what finding the target of a request costs, stage by stage.
//!
//! The papers give 2 µs to reading a request's header, 2 to finding its POA, 3 to finding its
//! servant and 2 to finding its operation, and compare strategies for each. [`measure`] does the
//! same with this ORB: every stage, alone and all together, for one entry and for many, by each
//! strategy that can be configured. It runs in one process, without a socket; what it times is
//! what a thread of a lane calls.

mod cache;
mod claims;
mod error;
mod operations;
mod outcome;
mod page;
mod plan;
mod plot;
mod population;
mod probe;
mod scale;
mod schedule;
mod sequence;
mod setup;
mod table;

use std::io::{self, Write};
use std::path::PathBuf;

use crate::environment::{Environment, ProcessorTime};
use crate::report::{check_writable, write_page};

pub use crate::verdict::Verdict;
pub use cache::Caches;
pub use claims::Claim;
pub use error::DemuxError;
pub use outcome::{Figures, Outcome, Row, Stage};
pub use page::html;
pub use plan::Plan;
pub use scale::{Many, MemoryUse, Scale};
pub use table::text;

/// What `chronorb lab demux` was asked to do.
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
            report: PathBuf::from("chronorb-demux.html"),
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
/// See [`DemuxError`].
pub fn run(options: &Options) -> Result<(), DemuxError> {
    check_writable(&options.report)?;
    let outcome = measure(&options.plan)?;
    write_page(&html(&outcome)?, &options.report)?;
    print(options, &outcome).map_err(DemuxError::Output)
}

/// Measures by a plan.
///
/// Octets for each object and POA are counted where the program's allocator is
/// [`chronorb_rt::CountingAllocator`].
///
/// # Errors
///
/// See [`DemuxError`].
pub fn measure(plan: &Plan) -> Result<Outcome, DemuxError> {
    let mut environment = Environment::probe();
    let before = ProcessorTime::now();
    // First, so that what the other experiment leaves behind is not counted.
    let scale = scale::measure(plan)?;
    let (rows, hot, operation_octets) = schedule::measure(plan)?;
    environment.stolen_percent = vec![before.stolen_percent(ProcessorTime::now())];
    Ok(Outcome {
        plan: plan.clone(),
        caches: Caches::probe(),
        environment,
        rows,
        hot,
        scale,
        operation_octets,
    })
}

fn print(options: &Options, outcome: &Outcome) -> io::Result<()> {
    let path = options.report.canonicalize();
    let path = path.as_ref().unwrap_or(&options.report).display();
    let mut out = io::stdout().lock();
    if options.json {
        serde_json::to_writer(&mut out, &outcome.figures())?;
        writeln!(out)?;
        eprintln!("Report with plots: {path}");
    } else {
        writeln!(out, "{}", text(outcome))?;
        writeln!(out, "Report with plots: {path}")?;
    }
    out.flush()
}
