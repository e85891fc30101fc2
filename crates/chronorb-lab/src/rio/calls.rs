//! E13: calls of the ORB, with and without RIO below it.

use serde::{Deserialize, Serialize};

use super::class::{Class, FEW, Processing};
use super::echoes::PORT;
use super::error::RioError;
use super::outcome::CallRow;
use super::site::Machine;
use super::{LINK_MTU, LINK_RATE};
use crate::inversion::{self, Architecture, Measurement, Mode, Run, Series, Site, Trial};
use crate::watch::Watch;

/// What is below the server's ORB.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Io {
    /// The kernel, as it comes.
    Kernel,
    /// RIO: a class for each lane.
    Rio,
}

impl Io {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Kernel, Self::Rio];

    /// In words.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Rio => "RIO",
        }
    }
}

/// What was found, and what could not be measured, with the reason.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) rows: Vec<CallRow>,
    pub(super) missing: Vec<(Io, String)>,
}

/// Makes all calls of a plan, those that are compared after each other.
pub(super) fn measure(
    plan: &inversion::Plan,
    machine: &Machine,
    watch: &Watch,
) -> Result<Found, RioError> {
    let network = machine.network(LINK_RATE, LINK_MTU)?;
    let lanes = lanes(machine, &network);
    let site = Site {
        cpus: machine.cpus.clone(),
        network: Some(network),
        lock_memory: machine.lock_memory,
        real_time: machine.real_time,
        omniorb: None,
    };
    let run = Run::begin(plan, &site, watch);
    let mut rows = Vec::new();
    for series in &plan.series {
        let Series { mode, length, .. } = *series;
        let periods = match mode.periods() {
            Some(periods) => periods,
            None => run.calibrate(mode)?.periods(),
        };
        for low_clients in series.low_clients.iter().copied() {
            for io in Io::ALL {
                let name = format!("e13, {}, {mode}", io.title());
                let trial = Trial {
                    length,
                    calls: series.calls,
                    options: match io {
                        Io::Kernel => Vec::new(),
                        Io::Rio => lanes.clone(),
                    },
                    ..run.trial(Architecture::RealTime, mode, low_clients, periods, &name)
                };
                let measured = run.try_one(&trial)?;
                rows.extend(rows_of(io, mode, low_clients, &measured));
            }
        }
    }
    Ok(Found {
        rows,
        missing: Vec::new(),
    })
}

/// The options of a server whose lanes have a class each: that of high priority processes its packets on arrival, that
/// of low priority in an ordinary thread.
fn lanes(machine: &Machine, network: &chronorb_rio::network::Network) -> Vec<String> {
    let place = machine.place(network);
    let low = Class {
        name: "low",
        processing: Processing::Demand,
        fifo: None,
        connections: MANY,
        buffer: Some(BUFFER),
    };
    let high = Class {
        name: "high",
        processing: Processing::Arrival,
        fifo: machine.fifo(URGENT),
        connections: FEW,
        buffer: Some(BUFFER),
    };
    let lanes = [low, high].into_iter().zip(0..);
    lanes
        .flat_map(|(class, lane)| {
            let endpoint = class.endpoint(&place, PORT + lane);
            [
                "-ORBLaneListenEndpoints".to_owned(),
                format!("1:{lane} {endpoint}"),
            ]
        })
        .collect()
}

/// A row for each class of clients that called.
fn rows_of(io: Io, mode: Mode, low_clients: u32, measured: &Measurement) -> Vec<CallRow> {
    let classes = inversion::Class::ALL.into_iter();
    let rows = classes.map(|class| {
        let calls = match class {
            inversion::Class::High => &measured.high,
            inversion::Class::Low => &measured.low,
        };
        CallRow {
            io,
            mode,
            low_clients,
            class,
            latency: calls.from_due.summary(),
            server_cpu_percent: measured.server_cpu_percent,
        }
    });
    rows.filter(|row| row.latency.calls > 0).collect()
}

/// The `SCHED_FIFO` priority of what is processed for calls of high priority, where no thread does so that has one of
/// its own.
const URGENT: u8 = 74;
/// One for each low-priority client.
const MANY: u32 = 64;
/// Octets for each connection: requests are small.
const BUFFER: u32 = 8_192;
