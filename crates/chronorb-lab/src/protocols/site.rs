//! The servers and clients of a protocol, and of those beside it.

use std::fmt::Display;
use std::path::Path;

use serde::Serialize;

use super::plan::Plan;
use super::protocol::{Protocol, unused_path};
use super::system::System;
use super::trial::{Cell, Trial};
use crate::contest::{Company, ContestError, OmniOrb, RawServing, Sizes, Waits, try_out};

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
    /// How many octets GIOP has in each trial.
    pub(super) sizes: &'a [(Trial, Sizes)],
    /// Why there is no GIOPlite, if there is none.
    pub(super) no_giop_lite: Option<&'a str>,
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
    company: Company,
    clients: Vec<(Trial, usize)>,
}

impl Site {
    /// Starts whoever can take part; tells who cannot.
    pub(super) fn open(
        protocol: Protocol,
        means: &Means<'_>,
    ) -> Result<(Self, Vec<Missing>), ContestError> {
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
        if let Err(why) = site.add_raw(certificates, means) {
            site.teams.clear();
            miss(System::Raw, &why);
            return Ok((site, missing));
        }
        if protocol == Protocol::Miop {
            miss(System::Giop, &NO_GROUPS);
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
                let company = Company::orb_by(&settings(), waits, means.plan.scheduled)?;
                site.add(system, waits, company, means)?;
            }
        }
        if means.plan.waits.contains(&Waits::Block) {
            site.add_omniorb(means)?;
        }
        Ok((site, missing))
    }

    fn add_raw(&mut self, certificates: &Path, means: &Means<'_>) -> Result<(), ContestError> {
        let medium = self.protocol.medium(certificates);
        for &waits in &means.plan.waits {
            let how = RawServing::Threads(waits);
            for (trial, sizes) in means.sizes {
                // Those of several clients go to the server of one.
                if trial.clients() > 1 || !self.protocol.carries(*trial) {
                    continue;
                }
                let scheduled = means.plan.scheduled;
                let operation = trial.operation();
                let company = Company::raw_by(&medium, how, operation, *sizes, scheduled)?;
                let mut team = Team::of(System::Raw, waits, company);
                let mut alike = means.sizes.iter().map(|(trial, _)| *trial);
                alike.try_for_each(|other| match other.operation() == operation {
                    true => team.add(other),
                    false => Ok(()),
                })?;
                self.teams.push(team);
            }
        }
        Ok(())
    }

    fn add_omniorb(&mut self, means: &Means<'_>) -> Result<(), ContestError> {
        let scheduled = means.plan.scheduled;
        if let Some(company) = Company::omniorb(means.omniorb, scheduled)? {
            self.add(System::OmniOrbTcp, Waits::Block, company, means)?;
        }
        if self.protocol == Protocol::Uiop {
            let endpoint = format!("giop:unix:{}", unused_path());
            let company = Company::omniorb_at(means.omniorb, Some(&endpoint), scheduled)?;
            if let Some(company) = company {
                self.add(System::OmniOrbUnix, Waits::Block, company, means)?;
            }
        }
        Ok(())
    }

    /// Adds one that does all that the protocol carries; omniORB's programs always wait for answers.
    fn add(
        &mut self,
        system: System,
        waits: Waits,
        company: Company,
        means: &Means<'_>,
    ) -> Result<(), ContestError> {
        let mut team = Team::of(system, waits, company);
        for (trial, _) in means.sizes {
            let can = self.protocol.carries(*trial);
            if can && (system.is_own() || *trial != Trial::Oneway) {
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
    ) -> impl Iterator<Item = (System, &mut Company, usize)> {
        let mut taking_part: Vec<_> = self
            .teams
            .iter_mut()
            .filter(|team| team.waits == cell.waits)
            .filter_map(|team| {
                let mut clients = team.clients.iter();
                let (_, client) = clients.find(|(trial, _)| *trial == cell.trial)?;
                Some((team.system, &mut team.company, *client))
            })
            .collect();
        let others = taking_part.len().max(1);
        taking_part.rotate_left(round as usize % others);
        taking_part.into_iter()
    }

    /// Ends all processes.
    pub(super) fn close(self) -> Result<(), ContestError> {
        self.teams
            .into_iter()
            .try_for_each(|team| team.company.stop())
    }
}

/// Why the ORB is not called by multicast here.
const NO_GROUPS: &str =
    "a group is called by a reference of its own kind, which this experiment does not make yet";

impl Team {
    const fn of(system: System, waits: Waits, company: Company) -> Self {
        Self {
            system,
            waits,
            company,
            clients: Vec::new(),
        }
    }

    fn add(&mut self, trial: Trial) -> Result<(), ContestError> {
        // Several clients never spin.
        if trial.clients() > 1 && self.waits == Waits::Spin {
            return Ok(());
        }
        let client = self
            .company
            .add_client(trial.operation(), trial.clients())?;
        self.clients.push((trial, client));
        Ok(())
    }
}
