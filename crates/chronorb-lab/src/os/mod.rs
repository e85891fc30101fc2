//! `chronorb lab os`: the ORB and the operating system.
//!
//! The papers held the ORB and varied the operating system. Here the ORB is held and the scheduling of one Linux is
//! varied: its classes, what competes, whether memory is locked and threads are pinned. Beside that stand what its
//! throttling takes, what a context switch costs and how many a request has, what the ORB leaves of a processor, and
//! whether four clients of four priorities and rates are served in their order.
//!
//! The processes are this very program, called with the hidden command
//! [`CHILD_COMMAND`](crate::CHILD_COMMAND). Beside their orders they
//! exchange lines of JSON with it:
//!
//! | child | says | hears |
//! |---|---|---|
//! | server | the reference of its object | the end of its input: shut down |
//! | client | that it is connected, then what came of each measurement | for each measurement, when it begins and what each thread does; at last, to end |
//! | load | that it is on | the end of its input: end |
//! | scavengers | that they are ready, then how far they counted | for each measurement, when it begins; at last, to end |
//! | two threads that take turns, and one that computes | what came of it | |

mod alone;
mod case;
mod claims;
mod class;
mod classes;
mod fleet;
mod hold;
mod kernel;
mod load;
mod order;
mod outcome;
mod overhead;
mod plan;
mod published;
mod rates;
mod report;
mod requests;
mod scavenger;
mod switch;

use std::time::Duration;

use chronorb_rt::{MemoryLock, Rights};

use crate::environment::{Environment, ProcessorTime};
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::process;
use crate::watch::Watch;

pub use case::Case;
pub use class::Class;
pub use kernel::Kernel;
pub use load::Load;
pub use outcome::{
    ClassRow, Client, Mode, Outcome, RateRow, RequestRow, ScavengerRow, Side, SwitchRow,
    ThrottlingRow,
};
pub use plan::Plan;
pub use switch::Switching;

/// The part of a process that this experiment starts.
pub(crate) const PART: &str = "os";

/// The experiment.
///
/// The program that runs it hands [`CHILD_COMMAND`](crate::CHILD_COMMAND) on to
/// [`child_main`](crate::child_main).
#[derive(Clone, Copy, Debug)]
pub struct OperatingSystem;

impl Experiment for OperatingSystem {
    const NAME: &'static str = "os";
    const TITLE: &'static str = "the ORB and the operating system";

    type Plan = Plan;
    type Findings = Outcome;

    fn full() -> Plan {
        Plan::full()
    }

    fn short() -> Plan {
        Plan::short()
    }

    fn measure(plan: &Plan) -> Result<Outcome, LabError> {
        let mut environment = Environment::probe();
        let before = ProcessorTime::now();
        let refused: Vec<_> = Class::ALL
            .into_iter()
            .filter_map(|class| Some((class, class.refusal()?)))
            .collect();
        let is_refused = |class: &Class| refused.iter().any(|(of, _)| of == class);
        let classes: Vec<_> = Class::ALL.into_iter().filter(|c| !is_refused(c)).collect();
        let lock_memory = Rights::probe().memory_lock == MemoryLock::Unlimited;
        let watch = Watch::start(Self::TITLE, length(plan, &classes)?);

        let rows = classes::measure(plan, &classes, &watch)?;
        // What is to be seen here needs priorities that the kernel keeps.
        let fifo = classes.contains(&Class::Fifo);
        let (mut throttling, mut switches) = (Vec::new(), Vec::new());
        let (mut requests, mut scavengers) = (Vec::new(), Vec::new());
        if fifo {
            throttling = alone::throttling(plan, &watch)?;
            switches = alone::switches(plan, &watch)?;
            requests = requests::measure(plan, Class::Fifo, lock_memory, &watch)?;
            scavengers = overhead::measure(plan, Class::Fifo, lock_memory, &watch)?;
        }
        let rates = rates::measure(plan, &classes, lock_memory, &watch)?;
        drop(watch);
        environment.stolen_percent = vec![before.stolen_percent(ProcessorTime::now())];
        Ok(Outcome {
            plan: plan.clone(),
            environment,
            kernel: Kernel::probe(),
            refused,
            classes: rows,
            throttling,
            switches,
            requests,
            scavengers,
            rates,
        })
    }
}

/// Does the part of a server, a client or another child, until its parent has heard all.
///
/// # Errors
///
/// [`LabError::Process`] when the order cannot be read, [`LabError::Work`] when the ORB or the system fails.
pub(crate) fn part_main(order: &str) -> Result<(), LabError> {
    match process::order(order)? {
        order::Part::Server(class, lanes, spec) => fleet::serve(class, &lanes, &spec),
        order::Part::Client(class, spec) => fleet::call(class, &spec),
        order::Part::Load(load) => load::make(load),
        order::Part::Hold(order) => hold::hold(&order),
        order::Part::Scavenger(order) => scavenger::scavenge(&order),
        order::Part::Switch(order) => switch::measure(&order),
    }
}

/// What a plan takes, about.
fn length(plan: &Plan, classes: &[Class]) -> Result<Duration, LabError> {
    let cases = classes::cases()?;
    let cases = cases.iter().filter(|case| classes.contains(&case.class));
    let cases = cases.count() as u32 * plan.rounds;
    let fleets = cases + plan.clients.len() as u32 * 2 + 5;
    let scavenging = plan.scavenging_rounds * plan.call_rates_hz.len() as u32 * 3;
    Ok(plan.case * cases
        + plan.hold * 2
        + plan.counting * (plan.clients.len() as u32 * 2)
        + plan.scavenging * scavenging
        + (plan.at_paper_rates + plan.at_scaled_rates) * 2
        + AROUND * fleets)
}

/// What it takes to start and to stop a server and its clients.
const AROUND: Duration = Duration::from_millis(250);
