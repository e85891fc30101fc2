//! `chronorb lab whitebox`: the costs of a call inside.
//!
//! The papers counted the lock operations of ORBs for each request, and found dozens to hundreds.
//! [`Whitebox`] counts those of this ORB, and with them heap allocations, system calls by name,
//! context switches, page faults and octets copied, on client and server apart. Some kinds of
//! calls have a [`Budget`], which they keep or break: a count has no noise. In a second part ten
//! clients call at a time, as in the papers, by the architecture of client and server; it also
//! shows the activities that take the processor time.
//!
//! Client and server are processes of this program, started with the hidden command
//! [`CHILD_COMMAND`](crate::CHILD_COMMAND). Each case runs twice with processes of its own: once
//! they count for themselves, and once their system calls are traced, which would disturb the
//! counts. They exchange lines of JSON with the parent:
//!
//! | child | reports | waits for |
//! |---|---|---|
//! | server | the references of its objects | the end of its input: shut down |
//! | client | that it is connected, then the costs of both sides | the order to begin |

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

pub use architectures::{CLIENTS, CONFIGURATIONS, Configuration, ServerPool};
pub use budget::{BrokenBudgets, Budget, KernelBudget, KernelUse};
pub use case::{CASES, CallKind, ObjectPlace, WhiteboxCase};
pub use counts::Counts;
pub use outcome::{
    ArchitectureCosts, CaseCosts, SideCosts, Subject, WhiteboxOutcome, WhiteboxSide,
};
pub use published::{PUBLISHED, PublishedLocks};

use order::{PartOrder, Pass, SubjectName};
use trial::{CallsByName, KernelTrace, WhiteboxTrial};

/// The part of a process that this experiment starts.
pub(crate) const PART: &str = "whitebox";

/// The experiment on operations within a call.
///
/// The program that runs it hands [`CHILD_COMMAND`](crate::CHILD_COMMAND) on to
/// [`child_main`](crate::child_main).
#[derive(Debug)]
pub struct Whitebox;

/// The numbers of calls.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct WhiteboxPlan {
    /// The calls of one run of a case.
    pub calls: u32,
    /// The calls of each of ten clients, by architecture.
    pub calls_of_each: u32,
}

impl WhiteboxPlan {
    /// The calls of each of ten clients whose system calls are traced, which takes long.
    pub(crate) fn traced_of_each(self) -> u32 {
        self.calls_of_each.min(250)
    }
}

impl Experiment for Whitebox {
    const NAME: &'static str = "whitebox";
    const TITLE: &'static str = "What a call does inside";

    type Plan = WhiteboxPlan;
    type Findings = WhiteboxOutcome;

    fn full() -> WhiteboxPlan {
        WhiteboxPlan {
            calls: 1_000,
            calls_of_each: 4_000,
        }
    }

    fn short() -> WhiteboxPlan {
        WhiteboxPlan {
            calls: 300,
            calls_of_each: 500,
        }
    }

    /// Measures all [`CASES`], and calls of ten clients by all architectures ([`CONFIGURATIONS`]).
    fn measure(plan: &WhiteboxPlan) -> Result<WhiteboxOutcome, LabError> {
        check_allocator()?;
        let mut environment = Environment::probe();
        let before = ProcessorTime::now();
        let mut tracing = KernelTrace::default();
        let runs = 2 * CASES.len() + 3 * CONFIGURATIONS.len();
        let progress = Progress::start("runs that are counted", runs as u64);
        let mut rows = Vec::new();
        for case in CASES {
            rows.extend(measure(case, *plan, &mut tracing)?);
            progress.advance(2);
        }
        let mut by_architecture = Vec::new();
        for configuration in CONFIGURATIONS {
            by_architecture.extend(configuration.measure(*plan, &mut tracing)?);
            progress.advance(3);
        }
        environment.stolen_percent = vec![before.stolen_percent(ProcessorTime::now())];
        Ok(WhiteboxOutcome {
            plan: *plan,
            environment,
            rows,
            architectures: by_architecture,
            untraced: tracing.refusal,
        })
    }
}

/// Counts and traces the calls of a case.
fn measure(
    case: WhiteboxCase,
    plan: WhiteboxPlan,
    tracing: &mut KernelTrace,
) -> Result<impl Iterator<Item = CaseCosts>, LabError> {
    let trial = WhiteboxTrial {
        subject: SubjectName::Case(case.name.to_owned()),
        has_server: case.has_server(),
        clients: 1,
    };
    let costs = trial.count(Pass::Counts, plan.calls)?;
    let each = u64::from(plan.calls);
    // Acknowledgements are read from and written to a file, which the ORB never is.
    let acknowledgements = match case.kind {
        CallKind::Oneway => {
            ["read", "write"].map(|name| CallsByName::from([(name.to_owned(), (each, each))]))
        }
        _ => Default::default(),
    };
    let system_calls = tracing.trace(&trial, plan.calls, &acknowledgements)?;
    Ok(SideCosts::of_sides(case, [each; 2], costs, system_calls))
}

/// Runs the part of a server or of a client, until the parent has heard its result.
///
/// # Errors
///
/// [`LabError::Process`] when the order cannot be read, [`LabError::Work`] when the ORB fails.
pub(crate) fn part_main(order: &str) -> Result<(), LabError> {
    let PartOrder {
        subject,
        pass,
        client,
    } = process::order(order)?;
    check_allocator()?;
    let unknown = |name: &str| LabError::Request(format!("there is no subject {name:?}"));
    match subject {
        SubjectName::Case(name) => {
            let case = CASES.iter().find(|case| case.name == name);
            let case = case.ok_or_else(|| unknown(&name))?;
            match client {
                None => server::serve(case, pass),
                Some(part) => client::call(case, pass, &part),
            }
        }
        SubjectName::Architecture(name) => {
            let configuration = CONFIGURATIONS.iter().find(|of| of.name() == name);
            let configuration = configuration.ok_or_else(|| unknown(&name))?;
            match client {
                None => configuration.serve(pass),
                Some(part) => architectures::call(configuration, pass, &part),
            }
        }
    }
}

/// Checks that the allocator counts; otherwise all counts of allocations would be zero.
fn check_allocator() -> Result<(), LabError> {
    let before = chronorb_rt::allocations();
    drop(std::hint::black_box(Box::new(0_u8)));
    if chronorb_rt::allocations() == before {
        return Err(LabError::Request(
            "allocations are not counted: chronorb_rt::CountingAllocator is not the program's \
             global allocator"
                .to_owned(),
        ));
    }
    Ok(())
}
