//! E13: calls of the ORB, with and without RIO below it.

use std::fs::File;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::process;

use chronorb_net::Undo;
use chronorb_rio::kernel::{EnforcedPlan, Ways};
use chronorb_testnet::{Host, TestHost};
use rustix::fs::{self, MemfdFlags};
use serde::{Deserialize, Serialize};

use super::class::{Class, FEW, Place, Processing};
use super::echoes::PORT;
use super::outcome::CallRow;
use super::site::Machine;
use super::{LINK_MTU, LINK_RATE};
use crate::error::LabError;
use crate::inversion::{self, Architecture, Measurement, Mode, Run, Series, Site, Trial};
use crate::watch::Watch;

/// What is below the server's ORB.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Io {
    /// The kernel, as it comes.
    Kernel,
    /// The kernel driver of RIO, whose kernel keeps a plan: a share of the interface for each lane, and urgent threads that
    /// take packets in, where the interface has some.
    KernelDriver,
    /// RIO: a class for each lane.
    Rio,
}

impl Io {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Kernel, Self::KernelDriver, Self::Rio];

    /// In words.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::KernelDriver => "kernel, with a plan",
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
) -> Result<Found, LabError> {
    let site = Site {
        cpus: machine.cpus.clone(),
        network: Some(machine.network(LINK_RATE, LINK_MTU)?),
        lock_memory: machine.lock_memory,
        real_time: machine.real_time,
        omniorb: None,
    };
    let server = Server::of(&site, machine)?;
    let run = Run::begin(plan, &site, watch);
    let mut found = Found {
        rows: Vec::new(),
        missing: Vec::new(),
    };
    for series in &plan.series {
        let Series { mode, length, .. } = *series;
        let periods = match mode.periods() {
            Some(periods) => periods,
            None => run.calibrate(mode)?.periods(),
        };
        for low_clients in series.low_clients.iter().copied() {
            for io in Io::ALL {
                if found.missing.iter().any(|(missing, _)| *missing == io) {
                    continue;
                }
                let prepared = match server.prepare(io) {
                    Ok(prepared) => prepared,
                    Err(why) => {
                        found.missing.push((io, why));
                        continue;
                    }
                };
                let name = format!("e13, {}, {mode}", io.title());
                let trial = Trial {
                    length,
                    calls: series.calls,
                    options: server.options(io, machine, prepared.as_ref()),
                    ..run.trial(Architecture::RealTime, mode, low_clients, periods, &name)
                };
                let measured = run.try_one(&trial);
                server
                    .host
                    .enter(|| drop(prepared.map(|prepared| prepared.kept)));
                found
                    .rows
                    .extend(rows_of(io, mode, low_clients, &measured?));
            }
        }
    }
    Ok(found)
}

/// The host of the server.
struct Server<'a> {
    host: &'a TestHost,
    place: Place,
}

impl<'a> Server<'a> {
    fn of(site: &'a Site, machine: &Machine) -> Result<Self, LabError> {
        let network = site.network.as_ref();
        let network = network.ok_or_else(|| LabError::work("finding the server")("no network"))?;
        Ok(Self {
            host: network.host(Host::B),
            place: machine.place(network),
        })
    }

    /// Sets the host up for the server of a trial, until what this returns is dropped there.
    fn prepare(&self, io: Io) -> Result<Option<Prepared>, String> {
        if io != Io::KernelDriver {
            return Ok(None);
        }
        let text = PLAN
            .replace("INTERFACE", &self.place.interface)
            .replace("HIGH", &(KERNEL_PORT + 1).to_string())
            .replace("LOW", &KERNEL_PORT.to_string())
            .replace("RATE", &LINK_RATE.to_string())
            .replace("MANY", &MANY.to_string());
        let plan = chronorb_rio::plan::Plan::parse(&text, &|_| None);
        let plan = plan.map_err(|error| error.to_string())?;
        // Whatever becomes of this process, the network ends with it.
        let untold = &mut |_: &Undo| Ok(());
        let keep = || EnforcedPlan::keep(&plan.interface, &plan.classes, Ways::Out, untold);
        let kept = self.host.enter(keep).map_err(|error| error.to_string())?;
        // In memory, so that nothing of it is left however this process ends.
        let file = fs::memfd_create("plan", MemfdFlags::CLOEXEC);
        let file = file.map_err(|error| error.to_string())?;
        let mut file = File::from(file);
        let written = file.write_all(text.as_bytes());
        written.map_err(|error| error.to_string())?;
        Ok(Some(Prepared { kept, file }))
    }

    /// The options of a server's ORB. With RIO, the lane of high priority processes its packets on arrival, and that of low
    /// priority in an ordinary thread.
    fn options(&self, io: Io, machine: &Machine, prepared: Option<&Prepared>) -> Vec<String> {
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
        let endpoint = |class: Class, lane: u16| match io {
            Io::Kernel => None,
            Io::KernelDriver => {
                let at = SocketAddr::new(self.place.host, KERNEL_PORT + lane);
                Some(format!("riop://{at}/driver=kernel&class={}", class.name))
            }
            Io::Rio => Some(class.endpoint(&self.place, PORT + lane)),
        };
        let endpoints = lanes.filter_map(|(class, lane)| {
            let at = format!("1:{lane} {}", endpoint(class, lane)?);
            Some(["-ORBLaneListenEndpoints".to_owned(), at])
        });
        let plan = prepared.map(|prepared| ["-ORBRioPlan".to_owned(), prepared.path()]);
        endpoints.chain(plan).flatten().collect()
    }
}

/// A host whose kernel keeps a plan.
struct Prepared {
    kept: EnforcedPlan,
    /// What it keeps, for the server.
    file: File,
}

impl Prepared {
    /// Where others find the plan.
    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", process::id(), self.file.as_raw_fd())
    }
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
/// What the kernel is to keep: LOW and HIGH are the ports of the lanes.
const PLAN: &str = r#"
[interface]
name = "INTERFACE"
rate = "RATE bit"
driver = "kernel"

[[class]]
name = "high"
native = 74
processing = "arrival"
period = "10 ms"
budget = 40
port = HIGH

[[class]]
name = "low"
connections = MANY
port = LOW
"#;
/// Where the lane of low priority listens then, and that of high priority at the next one.
const KERNEL_PORT: u16 = 7_101;
/// One for each low-priority client.
const MANY: u32 = 64;
/// Octets for each connection: requests are small.
const BUFFER: u32 = 8_192;
