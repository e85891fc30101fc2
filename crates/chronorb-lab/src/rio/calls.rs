//! E13: calls of the ORB, with and without RIO below it.

use std::fs::File;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::process;

use chronorb_net::Undo;
use chronorb_rio::kernel::{EnforcedPlan, Ways};
use chronorb_testnet::{Host, TestHost};
use rustix::fs::{self, MemfdFlags};
use serde::{Deserialize, Serialize};

use super::class::{PacketClass, Processing, RioHost};
use super::echoes::PORT;
use super::outcome::{CallRow, RioOutcome};
use super::site::RioMachine;
use super::{LINK_MTU, LINK_RATE};
use crate::error::LabError;
use crate::inversion::{Architecture, ClientClass, InversionRun, InversionSite, InversionTrial};
use crate::watch::Watch;

/// The input and output below the server's ORB.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Io {
    /// The kernel with its defaults.
    Kernel,
    /// The kernel driver of RIO. Its kernel keeps a plan: a share of the interface for each lane,
    /// and urgent threads that take packets in, if the interface has some.
    KernelDriver,
    /// RIO with a class for each lane.
    Rio,
}

impl Io {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Kernel, Self::KernelDriver, Self::Rio];

    /// The name in reports.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::KernelDriver => "kernel, with a plan",
            Self::Rio => "RIO",
        }
    }
}

/// Makes all calls of the plan, those that are compared after each other. The outcome gets their
/// rows, and the reasons for calls that could not be made.
pub(super) fn measure(
    outcome: &mut RioOutcome,
    machine: &RioMachine,
    watch: &Watch,
) -> Result<(), LabError> {
    let site = CallSite::build(machine, LINK_RATE)?;
    let server = site.server()?;
    let plan = outcome.plan.calls.clone();
    let run = InversionRun::begin(&plan, &site.site, watch);
    for series in &plan.series {
        let mode = series.mode;
        let periods = match mode.periods() {
            Some(periods) => periods,
            None => run.calibrate(mode)?.periods(),
        };
        for low_clients in series.low_clients.iter().copied() {
            for io in Io::ALL {
                if outcome.missing.iter().any(|(missing, _)| *missing == io) {
                    continue;
                }
                let lanes = [
                    server.low(Processing::Demand),
                    server.high(Processing::Arrival),
                ];
                let kept = match server.keep_plan(io, &lanes) {
                    Ok(kept) => kept,
                    Err(why) => {
                        outcome.missing.push((io, why));
                        continue;
                    }
                };
                let name = format!("e13, {}, {mode}", io.title());
                let trial = InversionTrial {
                    length: series.length,
                    calls: series.calls,
                    options: server.options(io, &lanes, kept.as_ref().map(|(_, file)| file)),
                    ..run.trial(Architecture::RealTime, mode, low_clients, periods, &name)
                };
                let measured = run.try_one(&trial);
                server.host.enter(|| drop(kept));
                let measured = measured?;
                let rows = ClientClass::ALL.map(|class| CallRow {
                    io,
                    mode,
                    low_clients,
                    class,
                    latency: measured.calls(class).from_due.summary(),
                    server_cpu_percent: measured.server_cpu_percent,
                });
                let rows = rows.into_iter().filter(|row| row.latency.calls > 0);
                outcome.calls.extend(rows);
            }
        }
    }
    Ok(())
}

/// The network of calls.
#[derive(Debug)]
pub(super) struct CallSite {
    pub(super) site: InversionSite,
    address: RioHost,
    /// The priority of the processing of urgent packets.
    fifo: Option<u8>,
}

/// The host of the server.
#[derive(Debug)]
pub(super) struct ServerHost<'a> {
    pub(super) host: &'a TestHost,
    address: &'a RioHost,
    fifo: Option<u8>,
}

impl CallSite {
    /// Builds the network, whose switch forwards at this rate in bit/s.
    pub(super) fn build(machine: &RioMachine, rate: u64) -> Result<Self, LabError> {
        let network = machine.network(rate, LINK_MTU)?;
        Ok(Self {
            address: machine.host(&network),
            fifo: machine.fifo(URGENT),
            site: InversionSite {
                cpus: machine.cpus.clone(),
                network: Some(network),
                lock_memory: machine.lock_memory,
                real_time: machine.real_time,
                omniorb: None,
            },
        })
    }

    /// Returns the host of the server.
    pub(super) fn server(&self) -> Result<ServerHost<'_>, LabError> {
        let network = self.site.network.as_ref();
        let network = network.ok_or_else(|| LabError::work("finding the server")("no network"))?;
        Ok(ServerHost {
            host: network.host(Host::B),
            address: &self.address,
            fifo: self.fifo,
        })
    }
}

impl ServerHost<'_> {
    /// Returns the class of the lane of high priority.
    pub(super) fn high(&self, processing: Processing) -> PacketClass {
        PacketClass {
            buffer: Some(BUFFER),
            ..PacketClass::of_flow(HIGH, processing, self.fifo)
        }
    }

    /// Returns the class of the lane of low priority.
    pub(super) fn low(&self, processing: Processing) -> PacketClass {
        PacketClass {
            connections: MANY,
            buffer: Some(BUFFER),
            ..PacketClass::of_flow("low", processing, None)
        }
    }

    /// Has the kernel of the host keep a plan for these lanes, the least urgent first, if the trial
    /// needs one, until the result is dropped there. The file has the plan for the server.
    pub(super) fn keep_plan(
        &self,
        io: Io,
        lanes: &[PacketClass],
    ) -> Result<Option<(EnforcedPlan, File)>, String> {
        if io != Io::KernelDriver {
            return Ok(None);
        }
        let mut text = PLAN
            .replace("INTERFACE", &self.address.interface)
            .replace("RATE", &LINK_RATE.to_string());
        for (class, lane) in lanes.iter().zip(0..) {
            let urgent = if class.name == HIGH { OF_HIGH } else { "" };
            text.push_str(&format!(
                "[[class]]\nname = \"{}\"\nconnections = {}\nport = {}\n{urgent}\n",
                class.name,
                class.connections,
                KERNEL_PORT + lane,
            ));
        }
        let plan = chronorb_rio::plan::Plan::parse(&text, &|_| None);
        let plan = plan.map_err(|error| error.to_string())?;
        // The network ends with this process, so there is nothing to undo later.
        let untold = &mut |_: &Undo| Ok(());
        let keep = || EnforcedPlan::keep(&plan.interface, &plan.classes, Ways::Out, untold);
        let kept = self.host.enter(keep).map_err(|error| error.to_string())?;
        let file = memory_file(&text).map_err(|error| error.to_string())?;
        Ok(Some((kept, file)))
    }

    /// Returns the options of a server's ORB with these lanes, the least urgent first.
    pub(super) fn options(
        &self,
        io: Io,
        lanes: &[PacketClass],
        plan: Option<&File>,
    ) -> Vec<String> {
        let endpoints = lanes.iter().zip(0..).filter_map(|(class, lane)| {
            let endpoint = match io {
                Io::Kernel => return None,
                Io::KernelDriver => {
                    let at = SocketAddr::new(self.address.address, KERNEL_PORT + lane);
                    format!("riop://{at}/driver=kernel&class={}", class.name)
                }
                Io::Rio => class.endpoint(self.address, PORT + lane),
            };
            let option = "-ORBLaneListenEndpoints".to_owned();
            Some([option, format!("1:{lane} {endpoint}")])
        });
        let plan = plan.map(|file| {
            let path = format!("/proc/{}/fd/{}", process::id(), file.as_raw_fd());
            ["-ORBRioPlan".to_owned(), path]
        });
        endpoints.chain(plan).flatten().collect()
    }
}

/// Writes a file in memory, of which nothing is left however this process ends.
fn memory_file(text: &str) -> io::Result<File> {
    let mut file = File::from(fs::memfd_create("plan", MemfdFlags::CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    Ok(file)
}

/// The `SCHED_FIFO` priority of packet processing for calls of high priority, unless a thread of
/// the ORB does it.
const URGENT: u8 = 74;
/// The beginning of the plan for the kernel.
const PLAN: &str = r#"
[interface]
name = "INTERFACE"
rate = "RATE bit"
driver = "kernel"

"#;
/// The reservation of the class of high priority in it.
const OF_HIGH: &str = r#"native = 74
processing = "arrival"
period = "10 ms"
budget = 40"#;
/// The name of that class.
const HIGH: &str = "high";
/// The port of the least urgent lane; the others have the next ones.
const KERNEL_PORT: u16 = 7_101;
/// The connections of the low-priority clients.
const MANY: u32 = 64;
/// Octets of a connection's buffer; requests are small.
const BUFFER: u32 = 8_192;
