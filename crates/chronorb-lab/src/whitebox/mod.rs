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

use crate::error::LabError;
use crate::experiment::{Experiment, observed};
use crate::process;
use crate::progress::Progress;

pub use budget::{BrokenBudgets, Budget, KernelBudget, KernelUse};
pub use case::{ARCHITECTURES, CASES, CLIENTS, CallKind, ObjectPlace, WhiteboxCase};
pub use counts::Counts;
pub use outcome::{SideCosts, WhiteboxOutcome, WhiteboxSide};
pub use published::{PUBLISHED, PublishedLocks};

use order::{PartOrder, Pass};
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

    /// Measures all [`CASES`], and calls of ten clients by all [`ARCHITECTURES`].
    fn measure(plan: &WhiteboxPlan) -> Result<WhiteboxOutcome, LabError> {
        check_allocator()?;
        let mut tracing = KernelTrace::default();
        let runs = 2 * CASES.len() + 3 * ARCHITECTURES.len();
        let (environment, [rows, architectures]) = observed(|| {
            let progress = Progress::start("runs that are counted", runs as u64);
            let mut rows = [Vec::new(), Vec::new()];
            for (number, case) in all_cases().enumerate() {
                let is_of_ten = usize::from(case.is_of_ten());
                let trial = WhiteboxTrial { number, case };
                rows[is_of_ten].extend(measure(&trial, *plan, &mut tracing)?);
                progress.advance(2 + is_of_ten as u64);
            }
            Ok(rows)
        })?;
        Ok(WhiteboxOutcome {
            plan: *plan,
            environment,
            rows,
            architectures,
            untraced: tracing.refusal,
        })
    }
}

fn all_cases() -> impl Iterator<Item = WhiteboxCase> {
    CASES.into_iter().chain(ARCHITECTURES)
}

/// Counts and traces the calls of a case; those of ten clients are timed, too.
fn measure(
    trial: &WhiteboxTrial,
    plan: WhiteboxPlan,
    tracing: &mut KernelTrace,
) -> Result<impl Iterator<Item = SideCosts> + use<>, LabError> {
    let case = trial.case;
    let [calls, traced] = if case.is_of_ten() {
        [plan.calls_of_each, plan.traced_of_each()]
    } else {
        [plan.calls; 2]
    };
    let mut costs = trial.count(Pass::Counts, calls)?;
    if case.is_of_ten() {
        let timed = trial.count(Pass::Times, calls)?;
        for (costs, timed) in costs.iter_mut().flatten().zip(timed.iter().flatten()) {
            costs.times = timed.times;
        }
    }
    let call = |name: &str, count| CallsByName::from([(name.to_owned(), (count, count))]);
    let beside = match case.kind {
        // Acknowledgements are read from and written to a file, which the ORB never is.
        CallKind::Oneway => ["read", "write"].map(|name| call(name, calls.into())),
        // Each thread that calls is told to begin, and reports its end, by an octet.
        CallKind::OfTen => {
            let mut signals = call("read", CLIENTS.into());
            signals.append(&mut call("write", CLIENTS.into()));
            [signals, CallsByName::new()]
        }
        _ => Default::default(),
    };
    let system_calls = tracing.trace(trial, traced, &beside)?;
    let all = [calls, traced].map(|each| u64::from(trial.clients()) * u64::from(each));
    Ok(SideCosts::of_sides(case, all, costs, system_calls))
}

/// Runs the part of a server or of a client, until the parent has heard its result.
///
/// # Errors
///
/// [`LabError::Process`] when the order cannot be read, [`LabError::Work`] when the ORB fails.
pub(crate) fn part_main(order: &str) -> Result<(), LabError> {
    let PartOrder { case, pass, client } = process::order(order)?;
    check_allocator()?;
    let known = all_cases().nth(case);
    let case = known.ok_or_else(|| LabError::Request(format!("there is no case {case}")))?;
    match client {
        None => server::serve(&case, pass),
        Some(part) if case.is_of_ten() => architectures::call(&case, pass, &part),
        Some(part) => client::call(&case, pass, &part),
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
