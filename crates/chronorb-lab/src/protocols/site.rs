//! The servers and clients of a protocol, and of those beside it.

use std::fmt::Display;
use std::path::Path;

use serde::Serialize;

use super::plan::Plan;
use super::protocol::{Protocol, unused_path};
use super::system::System;
use super::trial::{Cell, Trial};
use crate::bench::{Fleet, OmniOrb, RawServing, Sizes, Waits, try_out};
use crate::error::LabError;

/// One that takes no part, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Missing {
    /// By which protocol.
    pub protocol: Protocol,
    /// Who.
    pub system: System,
    /// Why, and what to do about it as far as that is known.
    pub why: String,
}

/// What all sites have in common.
pub(super) struct Means<'a> {
    pub(super) plan: &'a Plan,
    pub(super) omniorb: &'a OmniOrb,
    /// Where the certificates for TLS are, or why there are none.
    pub(super) certificates: Result<&'a Path, &'a str>,
    /// What the protocol carries, and how many octets GIOP has in each.
    pub(super) sizes: &'a [(Trial, Sizes)],
    /// Why there is no GIOPlite, if there is none.
    pub(super) no_giop_lite: Option<&'a str>,
    /// Why there are no groups, if there are none.
    pub(super) no_groups: Option<&'a str>,
}

/// All servers and clients of a protocol.
pub(super) struct Site {
    protocol: Protocol,
    teams: Vec<Team>,
}

/// A server, and the clients of its trials.
struct Team {
    system: System,
    waits: Waits,
    fleet: Fleet,
    clients: Vec<(Trial, usize)>,
}

impl Site {
    /// Starts whoever can take part; tells who cannot.
    pub(super) fn open(
        protocol: Protocol,
        means: &Means<'_>,
    ) -> Result<(Self, Vec<Missing>), LabError> {
        let mut site = Self {
            protocol,
            teams: Vec::new(),
        };
        let mut missing = Vec::new();
        let mut miss = |system, why: &dyn Display| {
            let why = why.to_string();
            missing.push(Missing {
                protocol,
                system,
                why,
            });
        };
        let certificates = match (protocol, means.certificates) {
            (_, Ok(path)) => path,
            (Protocol::Ssliop, Err(why)) => {
                miss(System::Raw, &why);
                return Ok((site, missing));
            }
            (_, Err(_)) => Path::new(""),
        };
        if let (Protocol::Miop, Some(why)) = (protocol, means.no_groups) {
            miss(System::Giop, &why);
            return Ok((site, missing));
        }
        if let Err(why) = site.add_raw(certificates, means) {
            site.teams.clear();
            miss(System::Raw, &why);
            return Ok((site, missing));
        }
        for system in [System::Giop, System::GiopLite] {
            let is_lite = system == System::GiopLite;
            if is_lite && !protocol.has_giop_lite() {
                continue;
            }
            if let (true, Some(why)) = (is_lite, means.no_giop_lite) {
                miss(system, &why);
                continue;
            }
            let settings = || protocol.settings(certificates, is_lite);
            if let Err(why) = try_out(&settings()) {
                miss(system, &why);
                break;
            }
            for &waits in &means.plan.waits {
                let fleet = Fleet::orb_by(&settings(), waits, means.plan.scheduled)?;
                site.add(system, waits, fleet, means)?;
            }
        }
        // Its programs make calls.
        let has_calls = protocol.carries(Trial::Call(0));
        if has_calls && means.plan.waits.contains(&Waits::Block) {
            site.add_omniorb(means)?;
        }
        Ok((site, missing))
    }

    fn add_raw(&mut self, certificates: &Path, means: &Means<'_>) -> Result<(), LabError> {
        let medium = self.protocol.medium(certificates);
        for &waits in &means.plan.waits {
            let how = RawServing::Threads(waits);
            let (mut served, scheduled) = (Vec::new(), means.plan.scheduled);
            for (trial, sizes) in means.sizes {
                let operation = trial.operation();
                // Those that send the same go to the same server.
                if served.contains(&operation) || !trial.waits(waits) {
                    continue;
                }
                served.push(operation);
                let fleet = Fleet::raw_by(&medium, how, operation, *sizes, scheduled)?;
                let mut team = Team::of(System::Raw, waits, fleet);
                let alike = means.sizes.iter().map(|(trial, _)| *trial);
                let mut alike = alike.filter(|other| other.operation() == operation);
                alike.try_for_each(|trial| team.add(trial))?;
                self.teams.push(team);
            }
        }
        Ok(())
    }

    fn add_omniorb(&mut self, means: &Means<'_>) -> Result<(), LabError> {
        let scheduled = means.plan.scheduled;
        if let Some(fleet) = Fleet::omniorb(means.omniorb, scheduled)? {
            self.add(System::OmniOrbTcp, Waits::Block, fleet, means)?;
        }
        if self.protocol == Protocol::Uiop {
            let endpoint = format!("giop:unix:{}", unused_path());
            let fleet = Fleet::omniorb_at(means.omniorb, Some(&endpoint), scheduled)?;
            if let Some(fleet) = fleet {
                self.add(System::OmniOrbUnix, Waits::Block, fleet, means)?;
            }
        }
        Ok(())
    }

    /// Adds one that does all that the protocol carries; omniORB's programs always wait for answers.
    fn add(
        &mut self,
        system: System,
        waits: Waits,
        fleet: Fleet,
        means: &Means<'_>,
    ) -> Result<(), LabError> {
        let mut team = Team::of(system, waits, fleet);
        for (trial, _) in means.sizes {
            if system.is_own() || !trial.is_oneway() {
                team.add(*trial)?;
            }
        }
        self.teams.push(team);
        Ok(())
    }

    /// Those who have a turn in this cell, and their clients; nobody always follows the same one.
    pub(super) fn in_turn(
        &mut self,
        cell: Cell,
        round: u32,
    ) -> impl Iterator<Item = (System, &mut Fleet, usize)> {
        let mut taking_part: Vec<_> = self
            .teams
            .iter_mut()
            .filter(|team| team.waits == cell.waits)
            .filter_map(|team| {
                let mut clients = team.clients.iter();
                let (_, client) = clients.find(|(trial, _)| *trial == cell.trial)?;
                Some((team.system, &mut team.fleet, *client))
            })
            .collect();
        let others = taking_part.len().max(1);
        taking_part.rotate_left(round as usize % others);
        taking_part.into_iter()
    }

    /// Ends all processes.
    pub(super) fn close(self) -> Result<(), LabError> {
        self.teams
            .into_iter()
            .try_for_each(|team| team.fleet.stop())
    }
}

impl Team {
    const fn of(system: System, waits: Waits, fleet: Fleet) -> Self {
        Self {
            system,
            waits,
            fleet,
            clients: Vec::new(),
        }
    }

    fn add(&mut self, trial: Trial) -> Result<(), LabError> {
        if !trial.waits(self.waits) {
            return Ok(());
        }
        let client = self.fleet.add_client(trial.operation(), trial.clients())?;
        self.clients.push((trial, client));
        Ok(())
    }
}
