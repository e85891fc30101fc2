//! The servers and clients of a protocol.

use std::path::Path;

use serde::Serialize;

use super::cell::{Cell, Workload};
use super::plan::ProtocolsPlan;
use super::protocol::{Protocol, unused_path};
use super::system::ProtocolSystem;
use crate::bench::{Fleet, OmniOrb, RawServerMode, Sizes, Waits, try_out};
use crate::error::LabError;

/// A system that could not be measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MissingSystem {
    /// The protocol.
    pub protocol: Protocol,
    /// The system.
    pub system: ProtocolSystem,
    /// The reason, and the remedy if it is known.
    pub why: String,
}

/// The conditions of all sites.
pub(super) struct Conditions<'a> {
    pub(super) plan: &'a ProtocolsPlan,
    pub(super) omniorb: &'a OmniOrb,
    /// The directory of the certificates for TLS, or the reason why there are none.
    pub(super) certificates: Result<&'a Path, &'a str>,
    /// The workloads of the protocol, with the octets that GIOP has.
    pub(super) sizes: &'a [(Workload, Sizes)],
    /// The reason why there is no GIOPlite, if so.
    pub(super) no_giop_lite: Option<&'a str>,
    /// The reason why there are no groups, if so.
    pub(super) no_groups: Option<&'a str>,
}

/// All servers and clients of a protocol.
pub(super) struct ProtocolSite {
    pub(super) protocol: Protocol,
    pub(super) teams: Vec<Team>,
    pub(super) missing: Vec<MissingSystem>,
}

/// A server, and the clients of its workloads.
pub(super) struct Team {
    pub(super) system: ProtocolSystem,
    waits: Waits,
    pub(super) fleet: Fleet,
    clients: Vec<(Workload, usize)>,
}

impl Team {
    /// Returns the client that makes the calls of a cell, if there is one.
    pub(super) fn client(&self, cell: Cell) -> Option<usize> {
        let mut clients = self.clients.iter();
        let client = clients.find(|(workload, _)| *workload == cell.workload);
        client
            .filter(|_| self.waits == cell.waits)
            .map(|(_, client)| *client)
    }
}

impl ProtocolSite {
    /// Starts all systems that can be measured by a protocol, and notes the others.
    pub(super) fn open(protocol: Protocol, of: &Conditions<'_>) -> Result<Self, LabError> {
        let mut site = Self {
            protocol,
            teams: Vec::new(),
            missing: Vec::new(),
        };
        let certificates = of.certificates.unwrap_or_else(|_| Path::new(""));
        let refusal = match protocol {
            Protocol::Ssliop => of.certificates.err().map(|why| (ProtocolSystem::Raw, why)),
            Protocol::Miop => of.no_groups.map(|why| (ProtocolSystem::Giop, why)),
            _ => None,
        };
        if let Some((system, why)) = refusal {
            site.miss(system, why);
            return Ok(site);
        }
        if let Err(why) = site.add_raw(certificates, of) {
            site.teams.clear();
            site.miss(ProtocolSystem::Raw, why);
            return Ok(site);
        }
        for system in [ProtocolSystem::Giop, ProtocolSystem::GiopLite] {
            let is_lite = system == ProtocolSystem::GiopLite;
            if is_lite && !protocol.has_giop_lite() {
                continue;
            }
            if let Some(why) = of.no_giop_lite.filter(|_| is_lite) {
                site.miss(system, why);
                continue;
            }
            let settings = || protocol.settings(certificates, is_lite);
            if let Err(why) = try_out(&settings()) {
                site.miss(system, why);
                break;
            }
            for &waits in &of.plan.waits {
                let fleet = Fleet::orb_by(&settings(), waits, of.plan.scheduled)?;
                site.add((system, waits), fleet, of, |_| true)?;
            }
        }
        if protocol.carries(Workload::Call(0)) && of.plan.waits.contains(&Waits::Block) {
            site.add_omniorb(of)?;
        }
        Ok(site)
    }

    fn miss(&mut self, system: ProtocolSystem, why: impl ToString) {
        self.missing.push(MissingSystem {
            protocol: self.protocol,
            system,
            why: why.to_string(),
        });
    }

    fn add_raw(&mut self, certificates: &Path, of: &Conditions<'_>) -> Result<(), LabError> {
        let medium = self.protocol.medium(certificates);
        for &waits in &of.plan.waits {
            let mut served = Vec::new();
            for (workload, sizes) in of.sizes {
                let operation = workload.operation();
                // Workloads with the same operation share a server.
                if served.contains(&operation) || !workload.permits(waits) {
                    continue;
                }
                served.push(operation);
                let (how, scheduled) = (RawServerMode::Threads(waits), of.plan.scheduled);
                let fleet = Fleet::raw_by(&medium, how, operation, *sizes, scheduled)?;
                let team = (ProtocolSystem::Raw, waits);
                self.add(team, fleet, of, |other| other.operation() == operation)?;
            }
        }
        Ok(())
    }

    fn add_omniorb(&mut self, of: &Conditions<'_>) -> Result<(), LabError> {
        let unix = format!("giop:unix:{}", unused_path());
        let by_unix = (ProtocolSystem::OmniOrbUnix, Some(unix.as_str()));
        let by_unix = (self.protocol == Protocol::Uiop).then_some(by_unix);
        let endpoints = [(ProtocolSystem::OmniOrbTcp, None)];
        for (system, endpoint) in endpoints.into_iter().chain(by_unix) {
            let fleet = Fleet::omniorb_at(of.omniorb, endpoint, of.plan.scheduled)?;
            if let Some(fleet) = fleet {
                // Its programs only make calls.
                self.add((system, Waits::Block), fleet, of, |of| !of.is_oneway())?;
            }
        }
        Ok(())
    }

    /// Adds a system with those workloads of the protocol.
    fn add(
        &mut self,
        (system, waits): (ProtocolSystem, Waits),
        mut fleet: Fleet,
        of: &Conditions<'_>,
        carries: impl Fn(Workload) -> bool,
    ) -> Result<(), LabError> {
        let workloads = of.sizes.iter().map(|(workload, _)| *workload);
        let clients = workloads
            .filter(|workload| workload.permits(waits) && carries(*workload))
            .map(|of| Ok((of, fleet.add_client(of.operation(), of.clients())?)))
            .collect::<Result<_, LabError>>()?;
        self.teams.push(Team {
            system,
            waits,
            fleet,
            clients,
        });
        Ok(())
    }

    /// Ends all processes.
    pub(super) fn close(self) -> Result<(), LabError> {
        let mut teams = self.teams.into_iter();
        teams.try_for_each(|team| team.fleet.stop())
    }
}
