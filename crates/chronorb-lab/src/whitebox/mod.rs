//! `chronorb lab whitebox`: what a call costs inside.
//!
//! The papers looked into ORBs by counting the lock operations for each request, and found dozens to
//! hundreds of them. [`Whitebox`] counts the same of this ORB, and with it heap allocations, system
//! calls by name, context switches, page faults and octets copied, on client and server apart. Some
//! kinds of calls have a [`Budget`], which is kept or broken: a count has no noise to hide behind. A second part has
//! ten clients call at a time, as the papers did, by the architecture of client and server, and there it is also found
//! out what processor time is spent on.
//!
//! The processes are this very program, called with the hidden command
//! [`CHILD_COMMAND`](crate::CHILD_COMMAND). Each case of the first part is
//! run twice with processes of its own: once they count for themselves, and once their system calls
//! are traced, which changes everything else. They exchange lines of JSON with this program:
//!
//! | child | says | hears |
//! |---|---|---|
//! | server | the reference of its object, or of both | the end of its input: shut down |
//! | client | that it is connected, then what it counted | to begin |

mod architectures;
mod budget;
mod case;
mod claims;
mod client;
mod counts;
mod ledger;
mod order;
mod outcome;
mod published;
mod report;
mod server;
mod trial;

use serde::Serialize;

use crate::environment::{Environment, ProcessorTime};
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::process;
use crate::progress::Progress;

pub use architectures::{
    ArchitectureRow, CLIENTS, CONFIGURATIONS, Configuration, Pool, Shares, Use,
};
pub use budget::{Allowed, BrokenBudgets, Budget, KernelUse};
pub use case::{CASES, Case, Kind, Place};
pub use counts::Counts;
pub use outcome::{Outcome, Row, Side, SystemCall};
pub use published::{PUBLISHED, Published};
use trial::Traced;

/// The part of a process that this experiment starts.
pub(crate) const PART: &str = "whitebox";

/// The experiment.
///
/// The program that runs it hands [`CHILD_COMMAND`](crate::CHILD_COMMAND) on to
/// [`child_main`](crate::child_main).
#[derive(Debug)]
pub struct Whitebox;

/// How much is counted of each case.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Plan {
    /// The calls of one run.
    pub calls: u32,
    /// The calls of each of ten clients, by architecture.
    pub calls_of_each: u32,
}

impl Plan {
    /// All of it, in less than a minute; with as many calls by ten clients as in the papers' experiment.
    #[must_use]
    pub const fn full() -> Self {
        Self {
            calls: 1_000,
            calls_of_each: 4_000,
        }
    }

    /// The same in less: a count needs no great number.
    #[must_use]
    pub const fn short() -> Self {
        Self {
            calls: 300,
            calls_of_each: 500,
        }
    }

    /// The calls of each of ten clients whose system calls are traced, which takes long.
    pub(crate) fn traced_of_each(self) -> u32 {
        self.calls_of_each.min(250)
    }
}

impl Experiment for Whitebox {
    const NAME: &'static str = "whitebox";
    const TITLE: &'static str = "What a call does inside";

    type Plan = Plan;
    type Findings = Outcome;

    fn full() -> Plan {
        Plan::full()
    }

    fn short() -> Plan {
        Plan::short()
    }

    /// Measures all [`CASES`], and calls of ten clients by all architectures ([`CONFIGURATIONS`]).
    fn measure(plan: &Plan) -> Result<Outcome, LabError> {
        check_allocator()?;
        let plan = *plan;
        let mut environment = Environment::probe();
        let before = ProcessorTime::now();
        let mut rows = Vec::new();
        let mut untraced = None;
        let runs = 2 * CASES.len() as u64 + architectures::RUNS * CONFIGURATIONS.len() as u64;
        let progress = Progress::start("runs that are counted", runs);
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
        let architectures = architectures::measure(plan, &mut untraced, &progress)?;
        environment.stolen_percent = vec![before.stolen_percent(ProcessorTime::now())];
        Ok(Outcome {
            plan,
            environment,
            rows,
            architectures,
            untraced,
        })
    }
}

/// Does the part of a server or of a client, until its parent has heard all.
///
/// # Errors
///
/// [`LabError::Process`] when the order cannot be read, [`LabError::Work`] when the ORB
/// fails.
pub(crate) fn part_main(order: &str) -> Result<(), LabError> {
    let part = process::order(order)?;
    check_allocator()?;
    match part {
        order::Part::Server(order) => server::serve(&order),
        order::Part::Client(order) => client::call(&order),
        order::Part::ServerOfMany(order) => architectures::serve(&order),
        order::Part::ManyClients(order) => architectures::call(&order),
    }
}

/// Counts of a program whose allocator does not count would always be zero.
fn check_allocator() -> Result<(), LabError> {
    let before = chronorb_rt::allocations();
    drop(std::hint::black_box(Box::new(0_u8)));
    match chronorb_rt::allocations() == before {
        true => Err(LabError::Request(
            "allocations are not counted: chronorb_rt::CountingAllocator is not the program's \
             global allocator"
                .to_owned(),
        )),
        false => Ok(()),
    }
}
