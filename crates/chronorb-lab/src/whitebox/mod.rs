//! `chronorb lab whitebox`: what a call costs inside, counted and not timed.
//!
//! The papers looked into ORBs by counting the lock operations for each request, and found dozens to
//! hundreds of them. [`measure`] counts the same of this ORB, and with it heap allocations, system
//! calls by name, context switches, page faults and octets copied, on client and server apart. Some
//! kinds of calls have a [`Budget`], which is kept or broken: a count has no noise to hide behind.
//!
//! The processes are this very program, called with the hidden command [`PART_COMMAND`]. Each case is
//! run twice with processes of its own: once they count for themselves, and once their system calls
//! are traced, which changes everything else. They exchange lines of JSON with this program:
//!
//! | child | says | hears |
//! |---|---|---|
//! | server | the reference of its object | the end of its input: shut down |
//! | client | that it is connected, then what it counted | to begin |

mod budget;
mod case;
mod claims;
mod client;
mod counts;
mod error;
mod ledger;
mod order;
mod outcome;
mod page;
mod plot;
mod published;
mod server;
mod table;
mod trial;

use std::io::{self, Write};
use std::path::PathBuf;

use crate::environment::Environment;
use crate::process;
use crate::progress::Progress;
use crate::report::{check_writable, write_page};
use crate::verdict::Verdict;

pub use budget::{Allowed, Budget, KernelUse};
pub use case::{CASES, Case, Kind, Place};
pub use claims::Claim;
pub use counts::Counts;
pub use error::WhiteboxError;
pub use outcome::{Figures, Outcome, Row, Side, SystemCall};
pub use page::html;
pub use published::{PUBLISHED, Published};
pub use table::text;
use trial::Traced;

/// The hidden command that [`measure`] uses for its processes; its argument goes to [`part_main`].
pub const PART_COMMAND: &str = "whitebox-part";

/// What `chronorb lab whitebox` was asked to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// Print one JSON object instead of the tables.
    pub json: bool,
    /// Where the HTML report goes.
    pub report: PathBuf,
    /// Fail where a budget is broken.
    pub check: bool,
    /// What is run.
    pub plan: Plan,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            json: false,
            report: PathBuf::from("chronorb-whitebox.html"),
            check: false,
            plan: Plan::default(),
        }
    }
}

/// How much is counted of each case.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The calls of one run.
    pub calls: u32,
}

impl Default for Plan {
    fn default() -> Self {
        Self { calls: 1_000 }
    }
}

/// Measures, prints the outcome on standard output and writes the report.
///
/// Progress goes to standard error. With [`Options::json`], standard output gets exactly one JSON
/// object. A broken budget is said, and is a failure only with [`Options::check`].
///
/// # Errors
///
/// See [`WhiteboxError`]. All processes that were started have ended when this returns.
pub fn run(options: &Options) -> Result<(), WhiteboxError> {
    check_writable(&options.report)?;
    let outcome = measure(options.plan)?;
    write_page(&html(&outcome)?, &options.report)?;
    print(options, &outcome).map_err(WhiteboxError::Output)?;
    judge(options, &outcome)
}

/// Measures all [`CASES`].
///
/// The program that calls this has to hand its argument to [`part_main`] where its first one is
/// [`PART_COMMAND`], and its allocator has to be [`chronorb_rt::CountingAllocator`].
///
/// # Errors
///
/// See [`WhiteboxError`].
pub fn measure(plan: Plan) -> Result<Outcome, WhiteboxError> {
    check_allocator()?;
    let environment = Environment::probe();
    let mut rows = Vec::new();
    let mut untraced = None;
    let progress = Progress::start("calls that are counted", 2 * CASES.len() as u64);
    for case in &CASES {
        let counted = trial::count(case, plan)?;
        progress.advance(1);
        let (of_client, of_server) = match untraced {
            // What is refused once is refused always.
            Some(_) => (None, None),
            None => match trial::trace(case, plan)? {
                Traced::Calls { client, server } => (Some(client), server),
                Traced::Refused(reason) => {
                    untraced = Some(reason);
                    (None, None)
                }
            },
        };
        progress.advance(1);
        rows.push(Row::new(
            case,
            Side::Client,
            plan,
            counted.client,
            of_client,
        ));
        if let Some(server) = counted.server {
            rows.push(Row::new(case, Side::Server, plan, server, of_server));
        }
    }
    Ok(Outcome {
        plan,
        environment,
        rows,
        untraced,
    })
}

/// Does the part of a server or of a client, until its parent has heard all.
///
/// `order` is the argument of [`PART_COMMAND`], made by [`measure`].
///
/// # Errors
///
/// [`WhiteboxError::Process`] when the order cannot be read, [`WhiteboxError::Work`] when the ORB
/// fails.
pub fn part_main(order: &str) -> Result<(), WhiteboxError> {
    check_allocator()?;
    match process::order(order)? {
        order::Part::Server(order) => server::serve(&order),
        order::Part::Client(order) => client::call(&order),
    }
}

/// Counts of a program whose allocator does not count would always be zero.
fn check_allocator() -> Result<(), WhiteboxError> {
    let before = chronorb_rt::allocations();
    drop(std::hint::black_box(Box::new(0_u8)));
    match chronorb_rt::allocations() == before {
        true => Err(WhiteboxError::Allocator),
        false => Ok(()),
    }
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

/// Whether the outcome is one to fail for.
fn judge(options: &Options, outcome: &Outcome) -> Result<(), WhiteboxError> {
    let missed = outcome
        .claims()
        .iter()
        .filter(|claim| claim.verdict == Verdict::Missed)
        .count();
    match missed {
        0 => Ok(()),
        _ if !options.check => Ok(()),
        missed => Err(WhiteboxError::Budget { missed }),
    }
}

#[cfg(test)]
mod tests {
    use super::claims::tests::outcome;
    use super::*;

    #[test]
    fn a_broken_budget_is_a_failure_where_it_is_checked() {
        let mut outcome = outcome();
        let checked = Options {
            check: true,
            ..Options::default()
        };
        assert!(judge(&checked, &outcome).is_ok());
        outcome.rows[0].counts.lock_operations = 1;
        let error = judge(&checked, &outcome).unwrap_err();
        assert!(error.to_string().contains("1 of"), "{error}");
        assert!(judge(&Options::default(), &outcome).is_ok());
    }
}
