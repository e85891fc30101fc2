//! `chronorb lab throughput`: how many calls, and how much data, in a second.
//!
//! [`Throughput`] lets one, four and sixteen clients at a time call chronorb, omniORB where that is
//! installed, and a raw server with epoll sets; then it sends data there and back: octets, doubles
//! and small structs. Raw TCP moves exactly as many octets as the messages of chronorb have. In each
//! round everyone has a turn, so that each figure has its match of the same moment.

mod claims;
mod outcome;
mod plan;
mod report;
mod trial;

use crate::bench::{
    Cpus, Fleet, OmniOrb, Operation, Placement, RawServing, Scheduled, Tapped, Waits, tap,
};
use crate::environment::{Environment, ProcessorTime};
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::progress::Progress;

pub use outcome::{Messages, Outcome, Row};
pub use plan::Plan;
pub use trial::{System, Trial};

/// The experiment.
///
/// The program that runs it hands [`CHILD_COMMAND`](crate::CHILD_COMMAND) on to
/// [`child_main`](crate::child_main).
#[derive(Debug)]
pub struct Throughput;

impl Experiment for Throughput {
    const NAME: &'static str = "throughput";
    const TITLE: &'static str = "How many calls, and how much data, in a second";

    type Plan = Plan;
    type Findings = Outcome;

    fn full() -> Plan {
        Plan::full()
    }

    fn short() -> Plan {
        Plan::short()
    }

    fn measure(plan: &Plan) -> Result<Outcome, LabError> {
        let cpus = Cpus::of_this_process()?;
        let mut environment = Environment::probe();
        let before = ProcessorTime::now();
        let omniorb = OmniOrb::find();
        let trials = Trial::ALL;
        let tapped = tap(&trials.map(Trial::operation))?;
        let messages: Vec<Messages> = trials
            .into_iter()
            .zip(&tapped)
            .map(|(trial, tapped)| Messages {
                trial,
                octets: tapped.sizes,
            })
            .collect();

        let mut teams = teams(&omniorb, &trials, &tapped)?;
        let rows = rounds(plan, &cpus, &mut teams)?;
        for team in teams {
            team.fleet.stop()?;
        }
        environment.stolen_percent = vec![before.stolen_percent(ProcessorTime::now())];
        Ok(Outcome {
            plan: plan.clone(),
            environment,
            messages,
            omniorb,
            rows,
        })
    }
}

/// A server, and the clients of its trials.
struct Team {
    system: System,
    fleet: Fleet,
    clients: Vec<(Trial, usize)>,
}

impl Team {
    fn new(
        system: System,
        mut fleet: Fleet,
        trials: impl IntoIterator<Item = Trial>,
    ) -> Result<Self, LabError> {
        let clients = trials
            .into_iter()
            .map(|trial| {
                let client = fleet.add_client(trial.operation(), trial.clients())?;
                Ok((trial, client))
            })
            .collect::<Result<_, LabError>>()?;
        Ok(Self {
            system,
            fleet,
            clients,
        })
    }

    fn client(&self, trial: Trial) -> Option<usize> {
        let mut clients = self.clients.iter();
        clients.find(|(of, _)| *of == trial).map(|(_, at)| *at)
    }
}

/// Starts all servers and clients.
fn teams(omniorb: &OmniOrb, trials: &[Trial], tapped: &[Tapped]) -> Result<Vec<Team>, LabError> {
    let scheduled = Scheduled::Other;
    let trials = || trials.iter().copied();
    let orb = Fleet::orb(Waits::Block, scheduled)?;
    let mut teams = vec![Team::new(System::Chronorb, orb, trials())?];
    if let Some(fleet) = Fleet::omniorb(omniorb, scheduled)? {
        teams.push(Team::new(System::OmniOrb, fleet, trials())?);
    }
    let raw = |how, operation: Operation| {
        let sizes = trials()
            .zip(tapped)
            .find(|(of, _)| of.operation() == operation);
        let (_, Tapped { sizes, .. }) = sizes.expect("all operations were listened to");
        Fleet::raw(how, operation, *sizes, scheduled)
    };
    for (system, threads) in [
        (System::EpollOne, 1),
        (System::EpollMany, trial::lane_threads()),
    ] {
        let fleet = raw(RawServing::Epoll { threads }, Operation::Cube)?;
        let trials = trials().filter(|trial| trial.operation() == Operation::Cube);
        teams.push(Team::new(system, fleet, trials)?);
    }
    for trial in trials().filter(|trial| trial.operation() != Operation::Cube) {
        let fleet = raw(RawServing::Threads(Waits::Block), trial.operation())?;
        teams.push(Team::new(System::RawTcp, fleet, [trial])?);
    }
    Ok(teams)
}

/// Has everyone make their calls, by turns.
fn rounds(plan: &Plan, cpus: &Cpus, teams: &mut [Team]) -> Result<Vec<Row>, LabError> {
    let mut rows = Vec::new();
    let places: Vec<(Trial, Placement)> = Trial::ALL
        .into_iter()
        .flat_map(|trial| trial.placements().iter().map(move |place| (trial, *place)))
        .filter(|(_, place)| *place != Placement::AcrossCpus || cpus.are_several())
        .collect();
    let steps = u64::from(plan.rounds) * places.len() as u64;
    let progress = Progress::start("calls and data on all systems, by turns", steps);
    for round in 1..=plan.rounds {
        for (trial, placement) in &places {
            let count = teams.len();
            for index in 0..count {
                // Nobody always follows the same one.
                let team = &mut teams[(index + round as usize) % count];
                let Some(client) = team.client(*trial) else {
                    continue;
                };
                let calls = (plan.calls(*trial) / trial.clients()).max(1);
                let warm_up = calls / plan.warm_up_part;
                let place = (cpus, *placement);
                let took = team.fleet.run(client, place, warm_up, calls)?;
                rows.push(Row::new(
                    *trial,
                    team.system,
                    *placement,
                    round,
                    calls * trial.clients(),
                    took.elapsed_ns,
                ));
            }
            progress.advance(1);
        }
    }
    Ok(rows)
}
