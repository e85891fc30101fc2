//! `chronorb lab os`: the ORB and the operating system.
//!
//! The papers held the ORB and varied the operating system. This experiment holds the ORB and
//! varies the scheduling of one Linux: its classes, the competing load, and whether memory is
//! locked and threads are pinned. Further parts measure the throttling of real-time threads, the
//! cost of a context switch and their number for a request, the processor time that the ORB leaves,
//! and four clients of four priorities and rates.
//!
//! The processes run the same program with the hidden command
//! [`CHILD_COMMAND`](crate::CHILD_COMMAND). Beside their orders they exchange lines of JSON with
//! it:
//!
//! | child | says | hears |
//! |---|---|---|
//! | server | the reference of its object | the end of its input: shut down |
//! | client | that it is connected, then the calls of each measurement | the start of each measurement and the pace of each thread; at last, to end |
//! | load | that it is on | the end of its input: end |
//! | scavengers | that they are ready, then their counts | the start of each measurement; at last, to end |
//! | two threads that take turns, and one that computes | a row of figures | |

mod calls;
mod case;
mod claims;
mod class;
mod fleet;
mod hold;
mod kernel;
mod load;
mod outcome;
mod parts;
mod plan;
mod published;
mod report;
mod scavenger;
mod switch;
mod threads;

use std::time::Duration;

use chronorb_rt::{MemoryLock, Rights};
use serde::{Deserialize, Serialize};

use crate::bench::{Cpus, Placement};
use crate::environment::Environment;
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::process;
use crate::watch::Watch;

pub use case::OsCase;
pub use class::SchedulingClass;
pub use kernel::KernelSettings;
pub use load::CompetingLoad;
pub use outcome::{
    ClassRefusal, ClassRow, ClientPriority, CpuOwner, OsOutcome, RateMode, RateRow, RequestRow,
    ScavengerRow, SwitchRow, ThrottlingRow,
};
pub use plan::OsPlan;
pub use switch::Switching;

/// The part of a process that this experiment starts.
pub(crate) const PART: &str = "os";

/// The order of a child, as its argument.
#[derive(Debug, Deserialize, Serialize)]
enum OsPart {
    Server(fleet::Members),
    /// A client, the reference that it calls, and the process of its server.
    Client(fleet::Members, String, u32),
    Load(CompetingLoad),
    Hold(hold::HoldOrder),
    /// The CPUs of two scavengers.
    Scavenger([usize; 2]),
    Switch(switch::SwitchOrder),
}

/// The experiment on the operating system.
///
/// The program that runs it passes [`CHILD_COMMAND`](crate::CHILD_COMMAND) to
/// [`child_main`](crate::child_main).
#[derive(Clone, Copy, Debug)]
pub struct OperatingSystem;

impl Experiment for OperatingSystem {
    const NAME: &'static str = "os";
    const TITLE: &'static str = "The ORB and the operating system";

    type Plan = OsPlan;
    type Findings = OsOutcome;

    fn full() -> OsPlan {
        OsPlan {
            rounds: 3,
            case: Duration::from_secs(2),
            low_clients: 4,
            high_period: Duration::from_millis(2),
            low_period: Duration::from_millis(4),
            work: Duration::from_micros(20),
            hold: Duration::from_millis(2500),
            turns: 20_000,
            clients: vec![1, 2, 5, 10, 20, 35, 50],
            counting: Duration::from_millis(300),
            call_rates_hz: vec![500, 1_000, 2_000, 4_000, 8_000],
            scavenging: Duration::from_millis(500),
            scavenging_rounds: 4,
            at_paper_rates: Duration::from_secs(15),
            at_scaled_rates: Duration::from_secs(10),
            scaled_work: Duration::from_millis(1),
        }
    }

    fn short() -> OsPlan {
        OsPlan {
            rounds: 1,
            case: Duration::from_millis(800),
            turns: 5_000,
            clients: vec![1, 5, 20, 50],
            counting: Duration::from_millis(200),
            call_rates_hz: vec![1_000, 4_000],
            scavenging: Duration::from_millis(400),
            scavenging_rounds: 2,
            at_paper_rates: Duration::from_secs(3),
            at_scaled_rates: Duration::from_secs(2),
            ..Self::full()
        }
    }

    fn measure(plan: &OsPlan) -> Result<OsOutcome, LabError> {
        let environment = Environment::probe();
        let run = OsRun::new(plan)?;
        let mut outcome = OsOutcome {
            plan: plan.clone(),
            environment,
            kernel: KernelSettings::probe(),
            classes: calls::by_class(&run)?,
            throttling: run.with_fifo(hold::measure)?,
            switches: run.with_fifo(switch::measure)?,
            requests: run.with_fifo(calls::switches)?,
            scavengers: run.with_fifo(scavenger::measure)?,
            rates: calls::at_four_rates(&run)?,
            refused: run.refused,
        };
        outcome.environment.finish();
        Ok(outcome)
    }
}

/// Runs a child of this experiment until its parent has all its figures.
///
/// # Errors
/// [`LabError::Process`] if the order cannot be read, [`LabError::Work`] if the ORB or the system
/// fails.
pub(crate) fn part_main(order: &str) -> Result<(), LabError> {
    match process::order(order)? {
        OsPart::Server(members) => members.serve(),
        OsPart::Client(members, reference, server) => members.call(&reference, server),
        OsPart::Load(load) => load::make(load),
        OsPart::Hold(order) => hold::hold(&order),
        OsPart::Scavenger(cpus) => scavenger::scavenge(cpus),
        OsPart::Switch(order) => switch::take_turns(&order),
    }
}

/// A run of the experiment: its plan, and the possibilities of the machine.
struct OsRun<'a> {
    plan: &'a OsPlan,
    refused: Vec<ClassRefusal>,
    /// The cases with permitted classes.
    cases: Vec<OsCase>,
    cpus: Cpus,
    lock_memory: bool,
    watch: Watch,
}

impl<'a> OsRun<'a> {
    fn new(plan: &'a OsPlan) -> Result<Self, LabError> {
        let classes = SchedulingClass::ALL.into_iter();
        let refused: Vec<_> = classes.filter_map(ClassRefusal::of).collect();
        let cpus = Cpus::of_this_process()?;
        let lock_memory = Rights::probe().memory_lock == MemoryLock::Unlimited;
        let mut cases = OsCase::all(cpus.are_several(), lock_memory);
        cases.retain(|case| refused.iter().all(|of| of.class != case.class));
        Ok(Self {
            plan,
            refused,
            cpus,
            lock_memory,
            watch: Watch::start(OperatingSystem::TITLE, length(plan, cases.len())),
            cases,
        })
    }

    /// Whether this process may use a class.
    fn permits(&self, class: SchedulingClass) -> bool {
        self.refused.iter().all(|refusal| refusal.class != class)
    }

    /// Measures what needs priorities that the kernel respects, if they are permitted.
    fn with_fifo<R>(
        &self,
        measure: fn(&Self) -> Result<Vec<R>, LabError>,
    ) -> Result<Vec<R>, LabError> {
        if self.permits(SchedulingClass::Fifo) {
            measure(self)
        } else {
            Ok(Vec::new())
        }
    }

    /// Returns the case of the parts that need such priorities.
    fn fifo(&self, placement: Placement) -> OsCase {
        let (class, load) = (SchedulingClass::Fifo, CompetingLoad::Idle);
        OsCase::new(class, load, placement, self.lock_memory)
    }

    /// Returns the CPUs of client and server if they are placed on different ones.
    fn ends(&self) -> [usize; 2] {
        let first = self.cpus.iter().next();
        [first, self.cpus.iter().last()].map(Option::unwrap_or_default)
    }
}

/// Returns about the length of a run with so many cases.
fn length(plan: &OsPlan, cases: usize) -> Duration {
    let cases = cases as u32 * plan.rounds;
    let counts = plan.clients.len() as u32 * 2;
    let fleets = cases + counts + 5;
    let scavenging = plan.scavenging_rounds * plan.call_rates_hz.len() as u32 * 3;
    plan.case * cases
        + plan.hold * 2
        + plan.counting * counts
        + plan.scavenging * scavenging
        + (plan.at_paper_rates + plan.at_scaled_rates) * 2
        + AROUND * fleets
}

/// Rounds a figure to three decimals.
fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// The time that it takes to start and to stop a server and its clients.
const AROUND: Duration = Duration::from_millis(250);
