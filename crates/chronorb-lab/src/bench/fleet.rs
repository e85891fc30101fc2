//! A server of one of several systems, and its clients.

use std::process::Command;
use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic, sleep_until};

use super::omniorb::{OmniOrb, Programs};
use super::order::{
    Arrivals, BatchOrder, BatchTimes, Exchange, Medium, ObjectAddresses, Operation, OrbSettings,
    RawServerMode, Report, Sizes, System, SystemClientOrder, SystemServerOrder, Waits,
};
use super::place::{CallScheduling, Cpus, Placement};
use super::raw::SPIN;
use super::server::LOOPBACK;
use super::{SYSTEM_CLIENT, SYSTEM_SERVER};
use crate::error::LabError;
use crate::process::{Child, Ready};
use crate::usage::{self, ProcessUsage};

/// A server and its clients, in processes of their own.
pub(crate) struct Fleet {
    server: Server,
    clients: Vec<Child>,
}

/// A running server.
struct Server {
    child: Child,
    serving: ObjectAddresses,
    system: FleetSystem,
    scheduled: CallScheduling,
}

/// The system of a server, with the settings of its clients.
enum FleetSystem {
    Own(System),
    OmniOrb(Programs),
}

impl Fleet {
    /// Starts a server of chronorb on the loopback.
    pub(crate) fn orb(waits: Waits, scheduled: CallScheduling) -> Result<Self, LabError> {
        let settings = OrbSettings::of(LOOPBACK.to_owned());
        Self::orb_by(&settings, waits, scheduled)
    }

    /// Starts a server of chronorb with settings.
    pub(crate) fn orb_by(
        settings: &OrbSettings,
        waits: Waits,
        scheduled: CallScheduling,
    ) -> Result<Self, LabError> {
        let settings = settings.clone();
        let system = System::Orb { settings, waits };
        Self::start("chronorb server", system, scheduled)
    }

    /// Starts a raw server of TCP sockets.
    pub(crate) fn raw(
        how: RawServerMode,
        operation: Operation,
        sizes: Sizes,
        scheduled: CallScheduling,
    ) -> Result<Self, LabError> {
        Self::raw_by(&Medium::Tcp, how, operation, sizes, scheduled)
    }

    /// Starts a raw server of TCP sockets, whose clients receive replies into memory apart from
    /// that of their requests.
    pub(crate) fn raw_apart(
        operation: Operation,
        sizes: Sizes,
        scheduled: CallScheduling,
    ) -> Result<Self, LabError> {
        let exchange = Exchange {
            operation,
            sizes,
            apart: true,
        };
        let how = RawServerMode::Threads(Waits::Block);
        let medium = Medium::Tcp;
        let system = System::Raw {
            medium,
            how,
            exchange,
        };
        Self::start("raw server", system, scheduled)
    }

    /// Starts a raw server of a medium.
    pub(crate) fn raw_by(
        medium: &Medium,
        how: RawServerMode,
        operation: Operation,
        sizes: Sizes,
        scheduled: CallScheduling,
    ) -> Result<Self, LabError> {
        let system = System::Raw {
            medium: medium.clone(),
            how,
            exchange: Exchange {
                operation,
                sizes,
                apart: false,
            },
        };
        Self::start("raw server", system, scheduled)
    }

    /// Starts a server of omniORB, if that is installed.
    pub(crate) fn omniorb(
        omniorb: &OmniOrb,
        scheduled: CallScheduling,
    ) -> Result<Option<Self>, LabError> {
        Self::omniorb_at(omniorb, None, scheduled)
    }

    /// Starts a server of omniORB, if that is installed, at an endpoint in its notation, as
    /// `giop:unix:/path`.
    pub(crate) fn omniorb_at(
        omniorb: &OmniOrb,
        endpoint: Option<&str>,
        scheduled: CallScheduling,
    ) -> Result<Option<Self>, LabError> {
        let Some(programs) = omniorb.contest() else {
            return Ok(None);
        };
        let mut command = Command::new(&programs.server);
        if let Some(endpoint) = endpoint {
            command.args(["-ORBendPoint", endpoint]);
        }
        let mut child = Child::run("omniORB server", scheduling(&mut command, scheduled))?;
        let serving = child.hear(Deadline::after(START_UP))?;
        Ok(Some(Self {
            server: Server {
                child,
                serving,
                system: FleetSystem::OmniOrb(programs),
                scheduled,
            },
            clients: Vec::new(),
        }))
    }

    fn start(name: &str, system: System, scheduled: CallScheduling) -> Result<Self, LabError> {
        let order = SystemServerOrder { system, scheduled };
        let (child, serving) = Child::start(name, SYSTEM_SERVER, &order)?;
        Ok(Self {
            server: Server {
                child,
                serving,
                system: FleetSystem::Own(order.system),
                scheduled,
            },
            clients: Vec::new(),
        })
    }

    /// Returns the process of the server.
    pub(crate) fn server(&self) -> u32 {
        self.server.child.id()
    }

    /// Returns the processor time and the context switches of the server and of a client so far.
    pub(crate) fn usage(&self, client: usize) -> [ProcessUsage; 2] {
        [self.server(), self.clients[client].id()].map(usage::of)
    }

    /// Adds a client that makes such calls with several threads. Returns its number.
    pub(crate) fn add_client(
        &mut self,
        operation: Operation,
        threads: u32,
    ) -> Result<usize, LabError> {
        let client = self.server.client(operation, threads)?;
        self.clients.push(client);
        Ok(self.clients.len() - 1)
    }

    /// Has a client make calls in a place.
    pub(crate) fn run(
        &mut self,
        client: usize,
        (cpus, placement): (&Cpus, Placement),
        warm_up: u32,
        calls: u32,
    ) -> Result<BatchTimes, LabError> {
        let server = self.server();
        let client = &mut self.clients[client];
        cpus.place(placement, client.id(), server)?;
        client.tell(&Some(BatchOrder { warm_up, calls }))?;
        let took = client.hear(Deadline::after(BATCH))?;
        if self.server.system.spins() {
            // A spinning thread goes on for a while, and would disturb the next batch.
            sleep_until(Monotonic::now() + SPIN + SPIN / 4);
        }
        Ok(took)
    }

    /// Has a client with so many threads send oneway messages in a place. Returns the times of
    /// sending, and the messages that arrived.
    pub(crate) fn run_oneway(
        &mut self,
        (client, threads): (usize, u32),
        place: (&Cpus, Placement),
        warm_up: u32,
        messages: u32,
    ) -> Result<(BatchTimes, Arrivals), LabError> {
        let start = Monotonic::now();
        // Messages of the batch before may have arrived since its end.
        self.server.report(start)?;
        let took = self.run(client, place, warm_up, messages)?;
        let arrivals = self.server.arrivals(start, messages * threads)?;
        Ok((took, arrivals))
    }

    /// Ends all processes.
    pub(crate) fn stop(self) -> Result<(), LabError> {
        let end = Deadline::after(WIND_DOWN);
        for client in self.clients {
            client.dismiss(end)?;
        }
        Ok(self.server.child.stop(end)?)
    }
}

impl Server {
    /// Waits until so many messages of a batch have arrived, or no further one arrives.
    fn arrivals(&mut self, batch: Monotonic, sent: u32) -> Result<Arrivals, LabError> {
        let mut arrivals = self.report(batch)?;
        let mut silent = Monotonic::now();
        while arrivals.count() < sent && Monotonic::now().since(silent) < ARRIVAL {
            sleep_until(Monotonic::now() + ARRIVAL / 10);
            let more = self.report(batch)?;
            if more.count() > 0 {
                silent = Monotonic::now();
            }
            arrivals.merge(more);
        }
        Ok(arrivals)
    }

    /// Returns the messages that arrived since the last report. From then on the server counts only
    /// messages of this batch.
    fn report(&mut self, batch: Monotonic) -> Result<Arrivals, LabError> {
        let batch_ns = batch.as_nanos();
        self.child.tell(&Report { batch_ns })?;
        Ok(self.child.hear(Deadline::after(BATCH))?)
    }

    fn client(&self, operation: Operation, threads: u32) -> Result<Child, LabError> {
        let address = self.serving.of(operation).to_owned();
        let programs = match &self.system {
            FleetSystem::OmniOrb(programs) => programs,
            FleetSystem::Own(system) => {
                let name = match system {
                    System::Orb { .. } => "chronorb client",
                    System::Raw { .. } => "raw client",
                };
                let order = SystemClientOrder {
                    system: system.clone(),
                    address,
                    operation,
                    threads,
                    scheduled: self.scheduled,
                };
                let (client, Ready {}) = Child::start(name, SYSTEM_CLIENT, &order)?;
                return Ok(client);
            }
        };
        let (operation, octets) = match (operation, operation.data()) {
            (_, Some(data)) => data,
            (Operation::Cube, _) => ("cube", 0),
            _ => {
                return Err(LabError::work("calling omniORB")(
                    "its programs have no oneway messages",
                ));
            }
        };
        let mut command = Command::new(&programs.client);
        command.args([
            &address,
            operation,
            &octets.to_string(),
            &threads.to_string(),
        ]);
        let command = scheduling(&mut command, self.scheduled);
        let mut client = Child::run("omniORB client", command)?;
        let Ready {} = client.hear(Deadline::after(START_UP))?;
        Ok(client)
    }
}

impl FleetSystem {
    fn spins(&self) -> bool {
        matches!(self, Self::Own(system) if system.waits() == Waits::Spin)
    }
}

/// Adds the scheduling to the arguments of a program of omniORB.
fn scheduling(command: &mut Command, scheduled: CallScheduling) -> &mut Command {
    match scheduled.priority() {
        Some(priority) => command.args(["--fifo", &priority.to_string()]),
        None => command,
    }
}

/// The time that a program of omniORB may take to start and to connect.
const START_UP: Duration = Duration::from_secs(30);
/// The time that a batch may take.
const BATCH: Duration = Duration::from_secs(300);
/// The time without an arrival after which the missing messages count as lost.
const ARRIVAL: Duration = Duration::from_millis(20);
/// The time that processes may take to end.
const WIND_DOWN: Duration = Duration::from_secs(20);
