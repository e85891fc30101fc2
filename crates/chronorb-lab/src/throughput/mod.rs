//! `chronorb lab throughput`: the number of calls and the amount of data in a second.
//!
//! [`Throughput`] has one, four and sixteen clients at a time call chronorb, omniORB if it is
//! installed, and a raw server with epoll sets. Then a client sends data there and back: octets,
//! doubles and small structs. Raw TCP moves exactly as many octets as the messages of chronorb
//! have. Every system has a turn in each round, so each figure has its match of the same moment.

mod claims;
mod outcome;
mod plan;
mod report;
mod trial;

use crate::bench::{
    CallScheduling, Cpus, Fleet, OmniOrb, Operation, RawServerMode, TapResult, Waits, take_turns,
    tap,
};
use crate::environment::Environment;
use crate::error::LabError;
use crate::experiment::Experiment;

pub use outcome::{ThroughputOutcome, ThroughputRow, TrialMessages};
pub use plan::ThroughputPlan;
pub use trial::{ThroughputSystem, ThroughputTrial};

/// The experiment on throughput.
///
/// The program that runs it passes [`CHILD_COMMAND`](crate::CHILD_COMMAND) to
/// [`child_main`](crate::child_main).
#[derive(Debug)]
pub struct Throughput;

impl Experiment for Throughput {
    const NAME: &'static str = "throughput";
    const TITLE: &'static str = "How many calls, and how much data, in a second";

    type Plan = ThroughputPlan;
    type Findings = ThroughputOutcome;

    fn full() -> ThroughputPlan {
        ThroughputPlan::of(15, 24_000, 128)
    }

    fn short() -> ThroughputPlan {
        ThroughputPlan::of(3, 4_000, 16)
    }

    fn measure(plan: &ThroughputPlan) -> Result<ThroughputOutcome, LabError> {
        let cpus = Cpus::of_this_process()?;
        let mut environment = Environment::probe();
        let omniorb = OmniOrb::find();
        let trials = ThroughputTrial::ALL;
        let tapped = tap(&trials.map(ThroughputTrial::operation))?;
        let messages = trials.into_iter().zip(&tapped);
        let messages = messages.map(|(trial, tapped)| TrialMessages {
            trial,
            octets: tapped.sizes,
        });

        let mut servers = start(&omniorb, &tapped)?;
        let mut rows = Vec::new();
        let places = cpus.possible(ThroughputTrial::in_places(), |(_, place)| *place);
        take_turns(
            "calls and data on all systems, by turns",
            plan.rounds,
            &places,
            &mut servers,
            |round, (trial, placement), server| {
                let Some(client) = server.trials.iter().position(|of| *of == trial) else {
                    return Ok(());
                };
                let calls = (plan.calls(trial) / trial.clients()).max(1);
                let (place, warm_up) = ((&cpus, placement), calls / plan.warm_up_part);
                let batch = server.fleet.run(client, place, warm_up, calls)?;
                let (all, took_ns) = (calls * trial.clients(), batch.elapsed_ns);
                let of = (trial, placement);
                rows.push(ThroughputRow::of(of, server.system, round, all, took_ns));
                Ok(())
            },
        )?;
        for server in servers {
            server.fleet.stop()?;
        }
        environment.finish();
        Ok(ThroughputOutcome {
            plan: plan.clone(),
            environment,
            messages: messages.collect(),
            omniorb,
            rows,
        })
    }
}

/// A server, and the trials that it serves: the trial at an index is that of the client with this
/// number.
struct TrialServer {
    system: ThroughputSystem,
    fleet: Fleet,
    trials: Vec<ThroughputTrial>,
}

/// Starts all servers and clients.
fn start(omniorb: &OmniOrb, tapped: &[TapResult]) -> Result<Vec<TrialServer>, LabError> {
    let scheduled = CallScheduling::Other;
    let (calls, data): (Vec<_>, Vec<_>) = ThroughputTrial::ALL
        .into_iter()
        .partition(|trial| trial.operation() == Operation::Cube);
    let sizes_of = |operation: Operation| {
        let mut sizes = ThroughputTrial::ALL.into_iter().zip(tapped);
        let sizes = sizes.find(|(of, _)| of.operation() == operation);
        let (_, TapResult { sizes, .. }) = sizes.expect("all operations were tapped");
        *sizes
    };
    let raw = |how, operation| Fleet::raw(how, operation, sizes_of(operation), scheduled);
    let all = ThroughputTrial::ALL.to_vec();
    let orb = Fleet::orb(Waits::Block, scheduled)?;
    let mut fleets = vec![(ThroughputSystem::Chronorb, orb, all.clone())];
    if let Some(fleet) = Fleet::omniorb(omniorb, scheduled)? {
        fleets.push((ThroughputSystem::OmniOrb, fleet, all));
    }
    for (system, threads) in [
        (ThroughputSystem::EpollOne, 1),
        (ThroughputSystem::EpollMany, trial::EPOLL_THREADS),
    ] {
        let fleet = raw(RawServerMode::Epoll { threads }, Operation::Cube)?;
        fleets.push((system, fleet, calls.clone()));
    }
    for trial in data {
        let fleet = raw(RawServerMode::Threads(Waits::Block), trial.operation())?;
        fleets.push((ThroughputSystem::RawTcp, fleet, vec![trial]));
        if matches!(trial.operation(), Operation::Octets(_)) {
            let fleet =
                Fleet::raw_apart(trial.operation(), sizes_of(trial.operation()), scheduled)?;
            fleets.push((ThroughputSystem::RawTcpApart, fleet, vec![trial]));
        }
    }
    let servers = fleets.into_iter().map(|(system, mut fleet, trials)| {
        for trial in &trials {
            fleet.add_client(trial.operation(), trial.clients())?;
        }
        Ok(TrialServer {
            system,
            fleet,
            trials,
        })
    });
    servers.collect()
}
