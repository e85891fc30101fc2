//! `chronorb lab failover`: calls whose server dies under load.
//!
//! [`Failover`] runs a server, a backup and a client whose threads call the server back to back, by
//! a reference to both. At a random moment the server is killed (`SIGKILL`) or stopped (`SIGSTOP`),
//! which looks like a host that has vanished. Servers record the number of each call that they
//! execute in a file, which outlives them. After each trial these records are compared with the
//! results of the calls: each call must have been executed exactly as often as its policy and its
//! result say. Measured is the time from the death to the first reply of the backup, in each
//! thread.
//!
//! A stopped server continues at the end of its trial, and executes the requests that it had
//! received, before the records are read.
//!
//! The processes are this very program, called with the hidden command
//! [`CHILD_COMMAND`](crate::CHILD_COMMAND). They exchange lines of JSON:
//!
//! | child | sends | receives |
//! |---|---|---|
//! | server | its reference | the end of its input: shut down |
//! | client | that its threads call, then their calls | the trials; at last, to end |

mod claims;
mod client;
mod order;
mod outcome;
mod plan;
mod report;
mod server;
mod trial;

use crate::error::LabError;
use crate::experiment::{Experiment, observed};
use crate::process;
use crate::watch::Watch;

pub use outcome::{FailoverOutcome, FailoverRow};
pub use plan::{FailoverCase, FailoverPlan, Plug, Semantics};

use order::FailoverOrder;

/// The part of a process that this experiment starts.
pub(crate) const PART: &str = "failover";

/// The experiment on servers that die.
///
/// The program that runs it hands [`CHILD_COMMAND`](crate::CHILD_COMMAND) on to
/// [`child_main`](crate::child_main).
#[derive(Debug)]
pub struct Failover;

impl Experiment for Failover {
    const NAME: &'static str = "failover";
    const TITLE: &'static str = "Calls whose server dies under load";

    type Plan = FailoverPlan;
    type Findings = FailoverOutcome;

    fn full() -> FailoverPlan {
        FailoverPlan::full()
    }

    fn short() -> FailoverPlan {
        FailoverPlan::short()
    }

    fn measure(plan: &FailoverPlan) -> Result<FailoverOutcome, LabError> {
        let measure = || {
            let watch = Watch::start("deaths of servers", plan.length());
            let mut fleet = trial::FailoverFleet::start(plan)?;
            for number in 0..plan.trials {
                watch.begin(&format!("trial {} of {}", number + 1, plan.trials));
                fleet.run(number)?;
            }
            drop(watch);
            fleet.stop()
        };
        let (environment, figures) = observed(measure)?;
        Ok(FailoverOutcome::new(plan, environment, figures))
    }
}

/// Runs a server or the client.
///
/// # Errors
///
/// [`LabError::Process`] when the order cannot be read, [`LabError::Work`] when the ORB or the
/// system fails.
pub(crate) fn part_main(order: &str) -> Result<(), LabError> {
    match process::order(order)? {
        FailoverOrder::Server(order) => server::serve(&order),
        FailoverOrder::Client(plan) => client::call(&plan),
    }
}
