//! `chronorb lab protocols`: the costs that an ORB adds to the channel below a protocol, and the
//! savings of GIOPlite.
//!
//! [`Protocols`] makes the same calls by every protocol of the ORB, with GIOP and with GIOPlite,
//! and beside each moves the same octets by the raw channel below it: sockets, shared memory, TLS.
//! omniORB makes them over TCP and over Unix-domain sockets, where it is installed. In each of many
//! short rounds every system has a turn, so that figures are compared that were measured at nearly
//! the same time. A system that cannot be measured is left out, with the reason.

mod cell;
mod claims;
mod outcome;
mod plan;
mod protocol;
mod report;
mod site;
mod system;

#[cfg(test)]
mod tests;

use std::path::Path;

use crate::bench::{
    Certificates, Cpus, Fleet, OmniOrb, check_permitted, take_turns, tap, tap_group, tap_with,
};
use crate::environment::{Environment, ProcessorTime};
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::report::PooledRecords;

pub use cell::{Cell, Workload};
pub use outcome::{
    Contender, ContenderTurn, FloodTurn, LatencyTurn, ProtocolsOutcome, RateTurn, WireSizes,
};
pub use plan::ProtocolsPlan;
pub use protocol::Protocol;
pub use site::MissingSystem;
pub use system::ProtocolSystem;

use outcome::Disturbance;
use site::{Conditions, ProtocolSite};

/// The experiment on protocols.
///
/// The program that runs it hands [`CHILD_COMMAND`](crate::CHILD_COMMAND) on to
/// [`child_main`](crate::child_main).
#[derive(Debug)]
pub struct Protocols;

impl Experiment for Protocols {
    const NAME: &'static str = "protocols";
    const TITLE: &'static str = "What an ORB adds to what a protocol stands on";

    type Plan = ProtocolsPlan;
    type Findings = ProtocolsOutcome;

    fn full() -> ProtocolsPlan {
        ProtocolsPlan::of(40, 500)
    }

    fn short() -> ProtocolsPlan {
        ProtocolsPlan::of(5, 200)
    }

    fn measure(plan: &ProtocolsPlan) -> Result<ProtocolsOutcome, LabError> {
        check_permitted(plan.scheduled)?;
        let cpus = Cpus::of_this_process()?;
        let (mut messages, no_giop_lite) = stream_sizes()?;
        let group = plan.protocols.contains(&Protocol::Miop).then(group_sizes);
        let group = group.transpose().map_err(|why| why.to_string());
        messages.extend(group.iter().flatten().flatten());
        let certificates = Certificates::make();
        let directory = certificates.as_ref().map(Certificates::directory);
        let mut outcome = ProtocolsOutcome {
            plan: plan.clone(),
            environment: Environment::probe(),
            omniorb: OmniOrb::find(),
            missing: Vec::new(),
            messages,
            rows: Vec::new(),
            rates: Vec::new(),
            floods: Vec::new(),
            pooled: PooledRecords::default(),
        };
        for &protocol in &plan.protocols {
            let conditions = Conditions {
                plan,
                omniorb: &outcome.omniorb,
                certificates: directory.map_err(String::as_str),
                sizes: &outcome.sizes(protocol),
                no_giop_lite: no_giop_lite.as_deref(),
                no_groups: group.as_ref().err().map(String::as_str),
            };
            let mut site = ProtocolSite::open(protocol, &conditions)?;
            outcome.missing.append(&mut site.missing);
            outcome.take_turns(site, &cpus)?;
        }
        outcome.environment.finish();
        Ok(outcome)
    }
}

/// Measures the octets of calls and messages on a stream. Returns the reason why there is no
/// GIOPlite, too, if so.
fn stream_sizes() -> Result<(Vec<WireSizes>, Option<String>), LabError> {
    let (workloads, operations) = Protocol::Iiop.workloads_and_operations();
    let giop = tap(&operations)?.into_iter();
    let lite = tap_with(&operations, &protocol::giop_lite());
    let mut lite_sizes = lite.iter().flatten();
    let sizes = workloads.into_iter().zip(giop);
    let sizes = sizes.map(|(workload, giop)| WireSizes {
        workload,
        packets: None,
        giop: giop.sizes,
        giop_lite: lite_sizes.next().map(|tapped| tapped.sizes),
    });
    let sizes: Vec<_> = sizes.collect();
    let is_shorter = sizes.iter().any(|of| of.spared() > Some(0));
    let no_giop_lite = match lite {
        Err(why) => Some(why.to_string()),
        Ok(_) => (!is_shorter).then(|| "it was asked for, and not spoken".to_owned()),
    };
    Ok((sizes, no_giop_lite))
}

/// Measures the octets and packets of messages to a group.
fn group_sizes() -> Result<Vec<WireSizes>, LabError> {
    let (workloads, operations) = Protocol::Miop.workloads_and_operations();
    let settings = Protocol::Miop.settings(Path::new(""), false);
    let sizes = tap_group(&operations, &settings)?;
    let sizes = workloads.into_iter().zip(sizes);
    let sizes = sizes.map(|(workload, (giop, packets))| WireSizes {
        workload,
        packets: Some(packets),
        giop,
        giop_lite: None,
    });
    Ok(sizes.collect())
}

impl ProtocolsOutcome {
    /// Has all systems of a site make their calls in turns.
    fn take_turns(&mut self, mut site: ProtocolSite, cpus: &Cpus) -> Result<(), LabError> {
        let protocol = site.protocol;
        let cells = cpus.possible(Cell::all(&self.plan), |cell| cell.placement);
        let cells: Vec<_> = (cells.into_iter())
            .filter(|cell| protocol.carries(cell.workload))
            .collect();
        let (title, rounds) = (format!("turns by {}", protocol.scheme()), self.plan.rounds);
        take_turns(
            &title,
            rounds,
            &cells,
            &mut site.teams,
            |round, cell, team| {
                let Some(client) = team.client(cell) else {
                    return Ok(());
                };
                let contender = Contender::giop(protocol, cell).with(team.system);
                let turn = ContenderTurn { contender, round };
                self.take_turn(turn, &mut team.fleet, client, cpus)
            },
        )?;
        site.close()
    }

    fn take_turn(
        &mut self,
        turn: ContenderTurn,
        fleet: &mut Fleet,
        client: usize,
        cpus: &Cpus,
    ) -> Result<(), LabError> {
        let Cell {
            workload,
            placement,
            ..
        } = turn.contender.cell;
        let place = (cpus, placement);
        let clients = workload.clients();
        let calls = (self.plan.calls(workload) / clients).max(1);
        let warm_up = (calls / self.plan.warm_up_part.max(1)).max(1);
        let switches = |fleet: &Fleet| -> u64 {
            let usages = fleet.usage(client);
            usages.iter().map(|usage| usage.switches).sum()
        };
        let before = (switches(fleet), ProcessorTime::now());
        let (took, arrivals) = if workload.is_oneway() {
            let (took, came) = fleet.run_oneway((client, clients), place, warm_up, calls)?;
            (took, Some(came))
        } else {
            (fleet.run(client, place, warm_up, calls)?, None)
        };
        if clients == 1 {
            let came = arrivals.map_or(took.latencies_ns, |came| came.latencies_ns);
            let disturbance = Disturbance {
                switches: switches(fleet).saturating_sub(before.0),
                stolen_percent: before.1.stolen_percent(ProcessorTime::now()),
            };
            self.add_latencies(turn, calls, &came, disturbance);
        } else {
            self.add_rate(turn, calls * clients, took.elapsed_ns, arrivals);
        }
        Ok(())
    }
}
