//! `chronorb lab latency`: the time of a call, beside raw sockets and omniORB.
//!
//! [`Latency`] makes the same call by turns on raw TCP, on chronorb, and on omniORB if it is
//! installed: an octet, and its cube as the answer. Raw TCP moves exactly as many octets as the
//! messages of chronorb have. All clients and servers are pinned and scheduled alike. Every system
//! makes a batch of calls in each round, so each figure has its match of the same moment. A second
//! part measures the cost of many idle connections in time and memory.

mod claims;
mod idle;
mod outcome;
mod plan;
mod report;
mod system;

use crate::bench::{
    Cpus, Fleet, OmniOrb, Operation, Placement, RawServerMode, Sizes, check_permitted, take_turns,
    tap,
};
use crate::environment::Environment;
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::report::PooledRecords;

pub use idle::IdleConnections;
pub use outcome::{LatencyOutcome, LatencyRow};
pub use plan::LatencyPlan;
pub use system::{LatencySystem, WaitSet};

/// The experiment on latency.
///
/// The program that runs it passes [`CHILD_COMMAND`](crate::CHILD_COMMAND) to
/// [`child_main`](crate::child_main).
#[derive(Debug)]
pub struct Latency;

impl Experiment for Latency {
    const NAME: &'static str = "latency";
    const TITLE: &'static str = "What a call takes, beside raw sockets and omniORB";

    type Plan = LatencyPlan;
    type Findings = LatencyOutcome;

    fn full() -> LatencyPlan {
        LatencyPlan::of(25, 4_000, 400, 10_000)
    }

    fn short() -> LatencyPlan {
        LatencyPlan::of(5, 1_000, 200, 1_000)
    }

    fn measure(plan: &LatencyPlan) -> Result<LatencyOutcome, LabError> {
        check_permitted(plan.scheduled)?;
        let cpus = Cpus::of_this_process()?;
        let mut environment = Environment::probe();
        let omniorb = if plan.waits.block {
            OmniOrb::find()
        } else {
            OmniOrb::without("it blocks, and only what spins was asked for.".to_owned())
        };
        let tapped = tap(&[Operation::Cube])?.swap_remove(0);
        let mut systems = Vec::new();
        for system in LatencySystem::ALL {
            if plan.waits.includes(system.waits())
                && (!system.spins() || cpus.are_several())
                && let Some(mut fleet) = fleet(system, plan, tapped.sizes, &omniorb)?
            {
                fleet.add_client(Operation::Cube, 1)?;
                systems.push((system, fleet));
            }
        }
        let (mut rows, mut pooled) = (Vec::new(), PooledRecords::default());
        let places = cpus.possible(Placement::ALL, |place| *place);
        take_turns(
            "calls on all systems, by turns",
            plan.rounds,
            &places,
            &mut systems,
            |round, placement, (system, fleet)| {
                if system.spins() && placement != Placement::AcrossCpus {
                    return Ok(());
                }
                let batch = fleet.run(0, (&cpus, placement), plan.warm_up, plan.calls)?;
                let record = batch.record();
                pooled.add((*system, placement), &record);
                rows.push(LatencyRow::of((*system, placement), round, &record));
                Ok(())
            },
        )?;
        for (_, fleet) in systems {
            fleet.stop()?;
        }
        let idle = (plan.connections > 0).then(|| idle::measure(plan, &cpus, &tapped.request));
        let idle = idle.transpose()?;
        environment.finish();
        Ok(LatencyOutcome {
            plan: plan.clone(),
            environment,
            messages: tapped.sizes,
            omniorb,
            rows,
            pooled,
            idle,
        })
    }
}

/// Starts a server of a system. Returns nothing if the system is not installed.
fn fleet(
    system: LatencySystem,
    plan: &LatencyPlan,
    sizes: Sizes,
    omniorb: &OmniOrb,
) -> Result<Option<Fleet>, LabError> {
    match system {
        LatencySystem::RawBlocking | LatencySystem::RawSpinning => {
            let how = RawServerMode::Threads(system.waits());
            Fleet::raw(how, Operation::Cube, sizes, plan.scheduled).map(Some)
        }
        LatencySystem::Chronorb | LatencySystem::ChronorbSpinning => {
            Fleet::orb(system.waits(), plan.scheduled).map(Some)
        }
        LatencySystem::OmniOrb => Fleet::omniorb(omniorb, plan.scheduled),
    }
}
