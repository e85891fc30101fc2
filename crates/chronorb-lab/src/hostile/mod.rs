//! `chronorb lab hostile`: what other clients notice while a server is attacked.
//!
//! [`Hostile`] runs for each [`Attack`] a server with the default settings, a legitimate client and an
//! attacker. The client's calls, and new clients that come meanwhile, are measured alone, beside the
//! attack and alone again; of the server, its memory, its processor time, and whether it lives. A
//! server that an attack ends is a finding: the next attack has a new one.
//!
//! The processes are this very program, called with the hidden command
//! [`CHILD_COMMAND`](crate::CHILD_COMMAND). Beside their
//! orders they exchange lines of JSON with it:
//!
//! | child | says | hears |
//! |---|---|---|
//! | server | where its object is | the end of its input: shut down |
//! | client | that it is ready, then for each phase what it measured | for each phase when to call; at last, to end |
//! | attacker | that it is ready, then what it sent | when to attack |
//!
//! The messages of the attacks are octets of `messages`: no ORB sends such.

mod attack;
mod attacker;
mod claims;
mod client;
mod messages;
mod order;
mod outcome;
mod plan;
mod report;
mod trial;
mod victim;

use crate::environment::{Environment, ProcessorTime};
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::process;
use crate::watch::Watch;

pub use attack::Attack;
pub use outcome::{Death, Outcome, Row};
pub use plan::{Phase, Plan};

/// The part of a process that this experiment starts.
pub(crate) const PART: &str = "hostile";

/// The experiment.
///
/// The program that runs it hands [`CHILD_COMMAND`](crate::CHILD_COMMAND) on to
/// [`child_main`](crate::child_main).
#[derive(Debug)]
pub struct Hostile;

impl Experiment for Hostile {
    const NAME: &'static str = "hostile";
    const TITLE: &'static str = "What other clients notice while a server is attacked";

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
        let watch = Watch::start("attacks", plan.total());
        let (mut rows, mut deaths) = (Vec::new(), Vec::new());
        for attack in &plan.attacks {
            watch.begin(attack.title());
            let found = trial::run(plan, *attack, &watch)?;
            rows.extend(found.rows);
            deaths.extend(found.death);
        }
        drop(watch);
        environment.stolen_percent = vec![before.stolen_percent(ProcessorTime::now())];
        Ok(Outcome {
            plan: plan.clone(),
            environment,
            rows,
            deaths,
        })
    }
}

/// Does the part of a server, a client or an attacker.
///
/// # Errors
///
/// [`LabError::Process`] when the order cannot be read, [`LabError::Work`] when the ORB or the
/// system fails.
pub(crate) fn part_main(order: &str) -> Result<(), LabError> {
    match process::order(order)? {
        order::Part::Victim => victim::serve(),
        order::Part::Client(target, plan) => client::call(&target, &plan),
        order::Part::Attacker(target, plan, attack) => attacker::attack(&target, &plan, attack),
    }
}
