//! `chronorb lab protocols`: what an ORB adds to what a protocol stands on, and what GIOPlite spares.
//!
//! [`Protocols`] makes the same calls by every protocol of the ORB, with GIOP and with GIOPlite, and beside each the
//! same octets by what the protocol stands on, with nothing above it: sockets, shared memory, TLS. omniORB makes them
//! over TCP, and over Unix-domain sockets, where it is installed. In each of many short rounds everyone has a turn, so
//! that each figure has its match of the same moment. What cannot take part is left out, and said.

mod claims;
mod outcome;
mod plan;
mod protocol;
mod report;
mod site;
mod system;
mod trial;

#[cfg(test)]
mod tests;

use std::path::Path;

use crate::bench::{
    Certificates, Cpus, Fleet, OmniOrb, Placement, check_permitted, tap, tap_group, tap_with,
};
use crate::environment::{Environment, ProcessorTime};
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::progress::Progress;
use crate::stats::Record;

pub use outcome::{Flood, Messages, Outcome, Rate, Row};
pub use plan::Plan;
pub use protocol::{Protocol, UnknownProtocol};
pub use site::Missing;
pub use system::System;
pub use trial::{Cell, Trial};

use site::{Means, Site};

/// The experiment.
///
/// The program that runs it hands [`CHILD_COMMAND`](crate::CHILD_COMMAND) on to
/// [`child_main`](crate::child_main).
#[derive(Debug)]
pub struct Protocols;

impl Experiment for Protocols {
    const NAME: &'static str = "protocols";
    const TITLE: &'static str = "What an ORB adds to what a protocol stands on";

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
        let environment = Environment::probe();
        let before = ProcessorTime::now();
        let by_stream = Protocol::Iiop.trials();
        let operations: Vec<_> = by_stream.iter().map(|trial| trial.operation()).collect();
        let giop = tap(&operations)?;
        let lite = tap_with(&operations, &protocol::giop_lite()).map_err(|why| why.to_string());
        let lite_heard = lite.as_deref().unwrap_or_default();
        let mut messages = outcome::messages(&by_stream, &giop, lite_heard);
        let no_giop_lite = match &lite {
            Err(why) => Some(why.as_str()),
            Ok(_) if messages.iter().any(Messages::is_shorter) => None,
            Ok(_) => Some("it was asked for, and not spoken"),
        };
        let no_groups = match plan.protocols.contains(&Protocol::Miop) {
            true => add_groups(&mut messages).err().map(|why| why.to_string()),
            false => None,
        };
        let certificates = Certificates::make();
        let mut outcome = Outcome {
            plan: plan.clone(),
            environment,
            omniorb: OmniOrb::find(),
            missing: Vec::new(),
            messages,
            rows: Vec::new(),
            rates: Vec::new(),
            floods: Vec::new(),
            pooled: Vec::new(),
        };
        for &protocol in &plan.protocols {
            let omniorb = outcome.omniorb.clone();
            let sizes = outcome.sizes(protocol);
            let means = Means {
                plan,
                omniorb: &omniorb,
                certificates: certificates
                    .as_ref()
                    .map(Certificates::directory)
                    .map_err(String::as_str),
                sizes: &sizes,
                no_giop_lite,
                no_groups: no_groups.as_deref(),
            };
            let (site, missing) = Site::open(protocol, &means)?;
            outcome.missing.extend(missing);
            rounds(protocol, site, &cpus, &mut outcome)?;
        }
        let stolen = before.stolen_percent(ProcessorTime::now());
        outcome.environment.stolen_percent = vec![stolen];
        Ok(outcome)
    }
}

/// Finds out how many octets messages to a group have.
fn add_groups(messages: &mut Vec<Messages>) -> Result<(), LabError> {
    let trials = Protocol::Miop.trials();
    let operations: Vec<_> = trials.iter().map(|trial| trial.operation()).collect();
    let settings = Protocol::Miop.settings(Path::new(""), false);
    let heard = tap_group(&operations, &settings)?;
    messages.extend(outcome::messages_to_group(&trials, &heard));
    Ok(())
}

/// Has everyone at a site make their calls, by turns.
fn rounds(
    protocol: Protocol,
    mut site: Site,
    cpus: &Cpus,
    outcome: &mut Outcome,
) -> Result<(), LabError> {
    let plan = outcome.plan.clone();
    let several = cpus.are_several();
    let cells: Vec<Cell> = Cell::all(&plan)
        .into_iter()
        .filter(|cell| protocol.carries(cell.trial))
        .filter(|cell| several || cell.placement != Placement::AcrossCpus)
        .collect();
    let steps = u64::from(plan.rounds) * cells.len() as u64;
    let progress = Progress::start(&format!("turns by {}", protocol.scheme()), steps);
    for round in 1..=plan.rounds {
        for &cell in &cells {
            for (system, fleet, client) in site.in_turn(cell, round) {
                let turn = Turn {
                    protocol,
                    system,
                    cell,
                    round,
                };
                turn.take(fleet, client, cpus, outcome)?;
            }
            progress.advance(1);
        }
    }
    site.close()
}

/// Who does what in which round.
#[derive(Clone, Copy, Debug)]
struct Turn {
    protocol: Protocol,
    system: System,
    cell: Cell,
    round: u32,
}

impl Turn {
    fn take(
        self,
        fleet: &mut Fleet,
        client: usize,
        cpus: &Cpus,
        outcome: &mut Outcome,
    ) -> Result<(), LabError> {
        let place = (cpus, self.cell.placement);
        let (trial, plan) = (self.cell.trial, &outcome.plan);
        let clients = trial.clients();
        let calls = (plan.calls(trial) / clients).max(1);
        let warm_up = (calls / plan.warm_up_part.max(1)).max(1);
        match trial {
            Trial::Clients(_) => {
                let took = fleet.run(client, place, warm_up, calls)?;
                outcome.add_rate(self, calls * clients, took.elapsed_ns);
            }
            Trial::Call(_) => {
                let took = fleet.run(client, place, warm_up, calls)?;
                outcome.add_row(self, calls, &took.latencies_ns);
            }
            Trial::Oneway(_) => {
                let (_, came) = fleet.run_oneway((client, clients), place, warm_up, calls)?;
                outcome.add_row(self, calls, &came.latencies_ns);
            }
            Trial::Flood(_) => {
                let (took, came) = fleet.run_oneway((client, clients), place, warm_up, calls)?;
                outcome.add_flood(self, calls * clients, took.elapsed_ns, &came);
            }
        }
        Ok(())
    }
}

/// The calls of a batch, one after the other.
fn record(latencies_ns: &[u64]) -> Record {
    let mut record = Record::new();
    let mut at = std::time::Duration::ZERO;
    for latency in latencies_ns {
        let latency = std::time::Duration::from_nanos(*latency);
        record.add(at, latency);
        at += latency;
    }
    record
}
