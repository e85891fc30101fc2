//! E13 loaded with packets: calls beside bulk data that keep the server's processor busy.

use std::time::Duration;

use chronorb_net::Offloads;
use chronorb_testnet::INTERFACE;
use serde::{Deserialize, Serialize};

use super::calls::{CallSite, Io};
use super::class::{PacketClass, Processing};
use super::outcome::RioOutcome;
use super::site::RioMachine;
use crate::awake::Awake;
use crate::error::LabError;
use crate::inversion::{
    Architecture, BulkLoad, ClientClass, InversionRun, InversionTrial, Mode, Periods,
};
use crate::stats::Summary;
use crate::watch::Watch;
use crate::work::Speed;

/// The load beside the calls.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// The calls alone.
    Quiet,
    /// Bulk data, as much as the server takes.
    Bulk,
}

/// The calls of one class of clients in one turn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PacketRow {
    /// The input and output below the server's ORB.
    pub io: Io,
    /// The load beside the calls.
    pub load: Load,
    /// The round, from 0.
    pub round: u32,
    /// The number of low-priority clients.
    pub low_clients: u32,
    /// The class of the calls.
    pub class: ClientClass,
    /// The latencies from when each call was due.
    #[serde(flatten)]
    pub latency: Summary,
    /// The rate of bulk data.
    pub bulk_octets_per_s: Option<f64>,
    /// The share of the server's CPU in use.
    pub busy_percent: Option<f64>,
}

/// Makes the calls of all rounds. The outcome gets their rows, and the reasons for calls that could
/// not be made.
pub(super) fn measure(
    outcome: &mut RioOutcome,
    machine: &RioMachine,
    awake: &Awake,
    watch: &Watch,
) -> Result<(), LabError> {
    let site = CallSite::build(machine, outcome.plan.bulk_rate)?;
    let server = site.server()?;
    let plan = outcome.plan.calls.clone();
    let [_, cpu] = machine.ends();
    let mut run = InversionRun::begin(&plan, &site.site, watch);
    run.awake = Some((awake, cpu));
    let steps = Speed::measure().steps(outcome.plan.bulk_work);

    let bulk = PacketClass::of_flow("bulk", Processing::Arrival, None);
    let lanes = [
        bulk,
        server.low(Processing::Arrival),
        server.high(Processing::Arrival),
    ];
    for round in 0..outcome.plan.rounds {
        for (load, low_clients) in outcome.plan.packet_cases() {
            for io in Io::ALL {
                if outcome.missing.iter().any(|(missing, _)| *missing == io) {
                    continue;
                }
                // A veth receives in NAPI, which can have threads, only if it merges packets.
                let merges = io == Io::KernelDriver;
                let merging = || Offloads::set_generic_receive(INTERFACE, merges);
                let merging = server.host.enter(merging);
                merging.map_err(LabError::work("setting the offloads of the server"))?;
                let kept = match server.keep_plan(io, &lanes) {
                    Ok(kept) => kept,
                    Err(why) => {
                        outcome.missing.push((io, why));
                        continue;
                    }
                };
                let threads = kept.as_ref().map(|(plan, _)| plan.threads());
                for thread in threads.into_iter().flatten() {
                    machine.cpus.pin(thread.process, cpu)?;
                }
                let threads = threads.map(<[_]>::len);
                outcome.receiving_threads = outcome.receiving_threads.max(threads);
                let name = format!("e13-packets, {}", io.title());
                let trial = InversionTrial {
                    length: outcome.plan.packet_length,
                    options: server.options(io, &lanes, kept.as_ref().map(|(_, file)| file)),
                    bulk: Some(BulkLoad {
                        steps,
                        sends: load == Load::Bulk,
                    }),
                    ..run.trial(
                        Architecture::RealTime,
                        Mode::Short,
                        low_clients,
                        PERIODS,
                        &name,
                    )
                };
                let measured = run.try_one(&trial);
                server.host.enter(|| drop(kept));
                let measured = measured?;
                let rows = ClientClass::ALL.map(|class| PacketRow {
                    io,
                    load,
                    round,
                    low_clients,
                    class,
                    latency: measured.calls(class).from_due.summary(),
                    bulk_octets_per_s: measured.bulk_octets_per_s,
                    busy_percent: measured.busy_percent,
                });
                let rows = rows.into_iter().filter(|row| row.latency.calls > 0);
                outcome.packets.extend(rows);
            }
        }
    }
    Ok(())
}

/// Returns the approximate duration of a turn.
pub(super) fn length_of_turn(calls: Duration) -> Duration {
    calls + AROUND
}

/// The periods of the clients: the paper's of low priority. Those of high priority call more often,
/// for a mean and a jitter of enough calls.
const PERIODS: Periods = Periods {
    high: Duration::from_millis(5),
    low: Duration::from_millis(100),
};
const AROUND: Duration = Duration::from_millis(1_500);
