//! `chronorb lab endurance`: a mixed load whose processes are killed and stopped at random.
//!
//! [`Endurance`] runs a server with two lanes, a name server with a store, and an event channel.
//! Clients call at two priorities and asynchronously, bind and resolve names, and push and take
//! events. A seeded generator kills (`SIGKILL`) or stops (`SIGSTOP`, then `SIGCONT`) servers and
//! clients. What was killed starts again, servers at the same port.
//!
//! These are failures:
//!
//! * an answer that is wrong;
//! * a call that takes longer than its timeout and `plan::GRACE`, less the time for which
//!   its client was stopped;
//! * an exception of a call during which neither its server nor its client was disturbed;
//! * a process that ends without being killed;
//! * a name that was acknowledged and is lost, or has an older value;
//! * an event that arrives twice or before an earlier one.
//!
//! A process is disturbed from its signal until `plan::RECOVERY` after it goes on or
//! has started again. A stop that is longer than the timeout of a call therefore excuses its
//! `TIMEOUT`. A stopped client that takes events disturbs the channel, too, because its connection
//! delays the others' for as long as a push may take. A lost event is no failure.
//!
//! The processes are this very program, called with the hidden command
//! [`CHILD_COMMAND`](crate::CHILD_COMMAND). They exchange lines of JSON:
//!
//! | child | sends | receives |
//! |---|---|---|
//! | server | its reference | the end of its input: shut down |
//! | client | that it is ready, and from time to time what it did | at last, to end |

mod client;
mod events;
mod fleet;
mod log;
mod names;
mod order;
mod outcome;
mod plan;
mod report;
mod server;

use crate::error::LabError;
use crate::experiment::{Experiment, observed};
use crate::process;

pub use outcome::{EnduranceOutcome, EnduranceRow, MemorySample};
pub use plan::{EnduranceLoad, EndurancePlan};

use order::EnduranceOrder;

/// The part of a process that this experiment starts.
pub(crate) const PART: &str = "endurance";

/// The experiment on endurance.
///
/// The program that runs it hands [`CHILD_COMMAND`](crate::CHILD_COMMAND) on to
/// [`child_main`](crate::child_main).
#[derive(Debug)]
pub struct Endurance;

impl Experiment for Endurance {
    const NAME: &'static str = "endurance";
    const TITLE: &'static str = "A mixed load whose processes are killed and stopped";

    type Plan = EndurancePlan;
    type Findings = EnduranceOutcome;

    fn full() -> EndurancePlan {
        EndurancePlan::full()
    }

    fn short() -> EndurancePlan {
        EndurancePlan::short()
    }

    fn measure(plan: &EndurancePlan) -> Result<EnduranceOutcome, LabError> {
        let (environment, mut outcome) = observed(|| fleet::run(plan))?;
        outcome.environment = environment;
        Ok(outcome)
    }
}

/// Runs a server or a client.
///
/// # Errors
///
/// [`LabError::Process`] when the order cannot be read, [`LabError::Work`] when the ORB or the
/// system fails.
pub(crate) fn part_main(order: &str) -> Result<(), LabError> {
    match process::order(order)? {
        EnduranceOrder::Server(order) => server::serve(&order),
        EnduranceOrder::Client(order) => client::run(&order),
    }
}
