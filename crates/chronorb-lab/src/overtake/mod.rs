//! `chronorb lab overtake`: calls of high priority while all lower lanes are saturated.
//!
//! [`measure`] runs a server for each strategy of thread pools (Leader/Followers, and
//! Half-Sync/Half-Async), each with pools with lanes, with request buffering, with borrowing and
//! without lanes; and clients: one of high priority, whose calls are measured, and others that keep the
//! lower lanes busy with endless work, the high lane with slow calls, or the processors awake. All
//! cases take turns in each round, so that each is compared with the idle machine of the same
//! minute.
//!
//! The processes are this very program, called with the hidden commands [`SERVER_COMMAND`] and
//! [`CLIENT_COMMAND`]. Beside their orders they exchange lines of JSON with it:
//!
//! | child | says | hears |
//! |---|---|---|
//! | server | the references of its objects | the end of its input: shut down |
//! | client | for each case, that it is connected, then what it measured | for each case, whom to call, then when to start; at last, to end |

mod case;
mod claims;
mod client;
mod company;
mod endless;
mod error;
mod load;
mod order;
mod outcome;
mod page;
mod plan;
mod plot;
mod server;
mod table;

use std::io::{self, Write};
use std::path::PathBuf;

use chronorb_rt::{MemoryLock, Monotonic, Rights};

use crate::environment::{Environment, ProcessorTime};
use crate::progress::Progress;
use crate::report::{check_writable, write_page};
use crate::stats::Record;

pub use case::{Case, Load, Pool, Series, Strategy, Trial};
pub use claims::Claim;
pub use client::client_main;
pub use error::OvertakeError;
pub use outcome::{Figures, Outcome, Row};
pub use page::html;
pub use plan::Plan;
pub use server::server_main;
pub use table::text;

/// The hidden command that [`measure`] uses for a server; its argument goes to [`server_main`].
pub const SERVER_COMMAND: &str = "overtake-server";
/// The hidden command that [`measure`] uses for a client; its argument goes to [`client_main`].
pub const CLIENT_COMMAND: &str = "overtake-client";

/// What `chronorb lab overtake` was asked to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// Print one JSON object instead of the table.
    pub json: bool,
    /// Where the HTML report goes.
    pub report: PathBuf,
    /// What is run.
    pub plan: Plan,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            json: false,
            report: PathBuf::from("chronorb-overtake.html"),
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
/// See [`OvertakeError`]. All processes that were started have ended when this returns.
pub fn run(options: &Options) -> Result<(), OvertakeError> {
    check_writable(&options.report)?;
    let outcome = measure(&options.plan)?;
    write_page(&html(&outcome)?, &options.report)?;
    print(options, &outcome).map_err(OvertakeError::Output)
}

/// Measures by a plan.
///
/// The program that calls this has to hand its arguments to [`server_main`] and [`client_main`]
/// where the first of them is [`SERVER_COMMAND`] or [`CLIENT_COMMAND`].
///
/// # Errors
///
/// See [`OvertakeError`].
pub fn measure(plan: &Plan) -> Result<Outcome, OvertakeError> {
    let mut environment = Environment::probe();
    let memory_locked = Rights::probe().memory_lock == MemoryLock::Unlimited;
    let before = ProcessorTime::now();
    let mut company = company::Company::start(plan, memory_locked)?;
    let mut rows = Vec::new();
    let mut pooled: Vec<(Trial, Record)> = Vec::new();
    let mut real_time = true;

    let cases = Strategy::ALL.len() * Case::ALL.len();
    let begun = Monotonic::now();
    let length = (plan.case_length() + PREPARATION) * (plan.rounds * cases as u32);
    let progress = Progress::start_timed("calls that overtake", length);
    for round in 1..=plan.rounds {
        progress.show(Monotonic::now().since(begun));
        progress.say(&format!("round {round} of {}", plan.rounds));
        for index in 0..cases {
            // No case always follows the same one.
            let index = (index + round as usize) % cases;
            let strategy = Strategy::ALL[index % Strategy::ALL.len()];
            let case = Case::ALL[index / Strategy::ALL.len()];
            let tick = || progress.show(Monotonic::now().since(begun));
            let outcome = company.run(strategy, case, tick)?;
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
    drop(progress);
    company.stop()?;
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

/// What a case takes before it begins, about.
const PREPARATION: std::time::Duration = std::time::Duration::from_millis(80);
