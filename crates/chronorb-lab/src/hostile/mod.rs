//! `chronorb lab hostile`: the effects of attacks on a server on its other clients.
//!
//! [`Hostile`] runs for each [`Attack`] a server with the default settings, a legitimate client and
//! an attacker. The client's calls, and new clients that come meanwhile, are measured alone, beside
//! the attack and alone again; of the server, its memory, its processor time, and its survival. The
//! end of a server is a finding: the next attack has a new one. The servers of names, events and
//! scheduling are attacked likewise, each [`ServiceAttack`] by some octets and by twice as many.
//!
//! The processes are this very program, called with the hidden command
//! [`CHILD_COMMAND`](crate::CHILD_COMMAND). They exchange lines of JSON:
//!
//! | child | sends | receives |
//! |---|---|---|
//! | server | the reference of its object | the end of its input: shut down |
//! | client | that it is ready, then the calls of each phase | when to call in each phase; at last, to end |
//! | attacker | that it is ready, then its traffic | when to attack |
//!
//! The module `messages` makes the octets of the attacks, which no ORB sends.

mod attack;
mod attacker;
mod claims;
mod client;
mod messages;
mod order;
mod outcome;
mod plan;
mod report;
mod services;
mod trial;
mod victim;

use std::time::Duration;

use crate::environment::Environment;
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::process;
use crate::watch::Watch;

pub use attack::Attack;
pub use outcome::{Death, HostileOutcome, HostileRow};
pub use plan::{AttackPhase, HostilePlan};
pub use services::{AttackedService, ServiceAttack, ServicePlan, ServiceRow};

use order::HostileOrder;

/// The part of a process that this experiment starts.
pub(crate) const PART: &str = "hostile";

/// The experiment on hostile peers.
///
/// The program that runs it hands [`CHILD_COMMAND`](crate::CHILD_COMMAND) on to
/// [`child_main`](crate::child_main).
#[derive(Debug)]
pub struct Hostile;

impl Experiment for Hostile {
    const NAME: &'static str = "hostile";
    const TITLE: &'static str = "What other clients notice while a server is attacked";

    type Plan = HostilePlan;
    type Findings = HostileOutcome;

    fn full() -> HostilePlan {
        HostilePlan {
            attacks: Attack::ALL.to_vec(),
            before: Duration::from_secs(3),
            during: Duration::from_secs(8),
            after: Duration::from_secs(4),
            period: Duration::from_millis(5),
            newcomer_period: Duration::from_millis(100),
            timeout: Duration::from_secs(1),
            newcomer_octets: 128 * 1024,
            divisor: 1,
            services: ServicePlan::full(),
        }
    }

    fn short() -> HostilePlan {
        HostilePlan {
            before: Duration::from_millis(600),
            during: Duration::from_millis(1_500),
            after: Duration::from_millis(600),
            services: ServicePlan::short(),
            ..Self::full()
        }
    }

    fn measure(plan: &HostilePlan) -> Result<HostileOutcome, LabError> {
        let mut outcome = HostileOutcome {
            plan: plan.clone(),
            environment: Environment::probe(),
            rows: Vec::new(),
            deaths: Vec::new(),
            service_rows: Vec::new(),
            service_deaths: Vec::new(),
        };
        let watch = Watch::start("attacks", plan.total());
        for attack in &plan.attacks {
            watch.begin(attack.title());
            trial::run(&mut outcome, *attack, &watch)?;
        }
        for attack in &plan.services.attacks {
            services::run(&mut outcome, *attack, &watch)?;
        }
        drop(watch);
        outcome.environment.finish();
        Ok(outcome)
    }
}

/// Runs a server, a client or an attacker.
///
/// # Errors
///
/// [`LabError::Process`] when the order cannot be read, [`LabError::Work`] when the ORB or the
/// system fails.
pub(crate) fn part_main(order: &str) -> Result<(), LabError> {
    match process::order(order)? {
        HostileOrder::Victim => victim::serve(),
        HostileOrder::Client(target, plan) => client::call(&target, &plan),
        HostileOrder::Attacker(target, plan, attack) => attacker::attack(&target, &plan, attack),
        HostileOrder::Service(service) => services::serve(service),
        HostileOrder::OtherClient(service, target, plan) => services::call(service, &target, &plan),
        HostileOrder::Assailant(target, plan, attack, amount) => {
            services::attack(&target, &plan, attack, amount)
        }
    }
}
