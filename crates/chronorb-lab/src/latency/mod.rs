//! `chronorb lab latency`: what a call takes, beside raw sockets and omniORB.
//!
//! [`Latency`] makes the same call by turns on raw TCP, on chronorb and on omniORB where that is
//! installed: an octet, and its cube as the answer. Raw TCP moves exactly as many octets as the
//! messages of chronorb have. All clients and servers are pinned and scheduled alike, and in each
//! round everyone makes a batch of calls, so that each figure has its match of the same moment. Then
//! it sees what many idle connections of the server cost, in time and in memory.

mod claims;
mod idle;
mod outcome;
mod plan;
mod report;
mod system;

use std::time::Duration;

use crate::bench::{
    Cpus, Fleet, OmniOrb, Operation, Placement, RawServing, Sizes, Waits, check_permitted, tap,
};
use crate::environment::{Environment, ProcessorTime};
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::progress::Progress;
use crate::stats::Record;

pub use idle::IdleConnections;
pub use outcome::{Outcome, Row};
pub use plan::Plan;
pub use system::{System, WaitSet};

/// The experiment.
///
/// The program that runs it hands [`CHILD_COMMAND`](crate::CHILD_COMMAND) on to
/// [`child_main`](crate::child_main).
#[derive(Debug)]
pub struct Latency;

impl Experiment for Latency {
    const NAME: &'static str = "latency";
    const TITLE: &'static str = "What a call takes, beside raw sockets and omniORB";

    type Plan = Plan;
    type Findings = Outcome;

    fn full() -> Plan {
        Plan::full()
    }

    fn short() -> Plan {
        Plan::short()
    }

    fn measure(plan: &Plan) -> Result<Outcome, LabError> {
        check_permitted(plan.scheduled)?;
        let cpus = Cpus::of_this_process()?;
        let mut environment = Environment::probe();
        let before = ProcessorTime::now();
        let omniorb = match plan.waits.block {
            true => OmniOrb::find(),
            false => OmniOrb::without("it blocks, and only what spins was asked for.".to_owned()),
        };
        let tapped = tap(&[Operation::Cube])?.swap_remove(0);

        let mut systems = Vec::new();
        for system in System::ALL {
            if plan.waits.includes(system)
                && (!system.spins() || cpus.are_several())
                && let Some(mut fleet) = fleet(system, plan, tapped.sizes, &omniorb)?
            {
                fleet.add_client(Operation::Cube, 1)?;
                systems.push((system, fleet));
            }
        }
        let (rows, pooled) = rounds(plan, &cpus, &mut systems)?;
        for (_, fleet) in systems {
            fleet.stop()?;
        }
        let idle = match plan.connections {
            0 => None,
            _ => Some(idle::measure(plan, &cpus, &tapped.request)?),
        };
        environment.stolen_percent = vec![before.stolen_percent(ProcessorTime::now())];
        Ok(Outcome {
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

/// A server of this system; nothing where it is not installed.
fn fleet(
    system: System,
    plan: &Plan,
    sizes: Sizes,
    omniorb: &OmniOrb,
) -> Result<Option<Fleet>, LabError> {
    let raw = |waits| {
        let how = RawServing::Threads(waits);
        Fleet::raw(how, Operation::Cube, sizes, plan.scheduled).map(Some)
    };
    match system {
        System::RawBlocking => raw(Waits::Block),
        System::RawSpinning => raw(Waits::Spin),
        System::Chronorb => Fleet::orb(Waits::Block, plan.scheduled).map(Some),
        System::ChronorbSpinning => Fleet::orb(Waits::Spin, plan.scheduled).map(Some),
        System::OmniOrb => Fleet::omniorb(omniorb, plan.scheduled),
    }
}

type Pooled = Vec<((System, Placement), Record)>;

/// Has all systems make their calls, by turns, in all places.
fn rounds(
    plan: &Plan,
    cpus: &Cpus,
    systems: &mut [(System, Fleet)],
) -> Result<(Vec<Row>, Pooled), LabError> {
    let mut rows = Vec::new();
    let mut pooled: Pooled = Vec::new();
    let places: Vec<Placement> = Placement::ALL
        .into_iter()
        .filter(|place| *place != Placement::AcrossCpus || cpus.are_several())
        .collect();
    let steps = u64::from(plan.rounds) * places.len() as u64;
    let progress = Progress::start("calls on all systems, by turns", steps);
    for round in 1..=plan.rounds {
        for placement in &places {
            let count = systems.len();
            for index in 0..count {
                // Nobody always follows the same one.
                let (system, fleet) = &mut systems[(index + round as usize) % count];
                if system.spins() && *placement != Placement::AcrossCpus {
                    continue;
                }
                let took = fleet.run(0, (cpus, *placement), plan.warm_up, plan.calls)?;
                let (row, record) = outcome::row(*system, *placement, round, &took.latencies_ns);
                rows.push(row);
                let key = (*system, *placement);
                match pooled.iter_mut().find(|(of, _)| *of == key) {
                    Some((_, all)) => all.merge(&record),
                    None => pooled.push((key, record)),
                }
            }
            progress.advance(1);
        }
    }
    Ok((rows, pooled))
}

/// The calls of a batch, one after the other.
fn record(latencies_ns: &[u64]) -> Record {
    let mut record = Record::new();
    let mut at = Duration::ZERO;
    for latency in latencies_ns {
        let latency = Duration::from_nanos(*latency);
        record.add(at, latency);
        at += latency;
    }
    record
}
