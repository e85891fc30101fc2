//! A server and a client of it, whatever system they are of.

use std::process::Command;
use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic, sleep_until};

use super::error::ContestError;
use super::omniorb::{OmniOrb, Programs};
use super::order::{
    Batch, ClientKind, ClientOrder, Exchange, Operation, OrbCalling, OrbServing, RawCalling,
    RawServing, Ready, ServerKind, ServerOrder, Serving, Sizes, Took, Waits,
};
use super::place::{Cpus, Placement, Scheduled};
use super::raw::SPIN;
use super::{CLIENT_COMMAND, SERVER_COMMAND};
use crate::process::Child;

/// A server and its clients, in processes of their own.
pub(crate) struct Company {
    server: Server,
    clients: Vec<Child>,
}

/// A server that runs.
struct Server {
    child: Child,
    serving: Serving,
    system: System,
    scheduled: Scheduled,
}

/// Which system, and what its clients have to know of it.
enum System {
    Orb(Waits),
    OmniOrb(Programs),
    Raw(Waits, Exchange),
}

impl Company {
    /// A server of chronorb.
    pub(crate) fn orb(waits: Waits, scheduled: Scheduled) -> Result<Self, ContestError> {
        Self::orb_at("127.0.0.1:0", waits, scheduled, MAX_CONNECTIONS)
    }

    /// The same at an address, for many connections.
    pub(crate) fn orb_at(
        address: &str,
        waits: Waits,
        scheduled: Scheduled,
        max_connections: u32,
    ) -> Result<Self, ContestError> {
        let kind = ServerKind::Orb(OrbServing {
            address: address.to_owned(),
            waits,
            max_connections,
        });
        Self::start("chronorb server", kind, System::Orb(waits), scheduled)
    }

    /// A server with nothing but sockets.
    pub(crate) fn raw(
        how: RawServing,
        operation: Operation,
        sizes: Sizes,
        scheduled: Scheduled,
    ) -> Result<Self, ContestError> {
        let exchange = Exchange { operation, sizes };
        let waits = match how {
            RawServing::Threads(waits) => waits,
            RawServing::Epoll { .. } => Waits::Block,
        };
        let kind = ServerKind::Raw { how, exchange };
        Self::start("raw server", kind, System::Raw(waits, exchange), scheduled)
    }

    /// A server of omniORB, where its programs are.
    pub(crate) fn omniorb(
        omniorb: &OmniOrb,
        scheduled: Scheduled,
    ) -> Result<Option<Self>, ContestError> {
        let Some(programs) = omniorb.contest() else {
            return Ok(None);
        };
        let mut command = Command::new(&programs.server);
        let mut child = Child::run("omniORB server", scheduling(&mut command, scheduled))?;
        let serving = child.hear(Deadline::after(START_UP))?;
        Ok(Some(Self {
            server: Server {
                child,
                serving,
                system: System::OmniOrb(programs),
                scheduled,
            },
            clients: Vec::new(),
        }))
    }

    fn start(
        name: &str,
        kind: ServerKind,
        system: System,
        scheduled: Scheduled,
    ) -> Result<Self, ContestError> {
        let order = ServerOrder { kind, scheduled };
        let mut child = Child::start(name, SERVER_COMMAND, &order)?;
        let serving = child.hear(Deadline::after(START_UP))?;
        Ok(Self {
            server: Server {
                child,
                serving,
                system,
                scheduled,
            },
            clients: Vec::new(),
        })
    }

    /// The process of the server.
    pub(crate) fn server(&self) -> u32 {
        self.server.child.id()
    }

    /// Adds a client that makes such calls with `threads` threads. Returns its number.
    pub(crate) fn add_client(
        &mut self,
        operation: Operation,
        threads: u32,
    ) -> Result<usize, ContestError> {
        let mut client = self.server.client(operation, threads)?;
        let Ready {} = client.hear(Deadline::after(START_UP))?;
        self.clients.push(client);
        Ok(self.clients.len() - 1)
    }

    /// Has a client make calls, in their place.
    pub(crate) fn run(
        &mut self,
        client: usize,
        (cpus, placement): (&Cpus, Placement),
        warm_up: u32,
        calls: u32,
    ) -> Result<Took, ContestError> {
        let server = self.server();
        let client = &mut self.clients[client];
        cpus.place(placement, client.id(), server)?;
        client.tell(&Some(Batch { warm_up, calls }))?;
        let took = client.hear(Deadline::after(BATCH))?;
        if self.server.system.spins() {
            // Who spins goes on for a while, and would take a processor from the next.
            sleep_until(Monotonic::now() + SPIN + SPIN / 4);
        }
        Ok(took)
    }

    /// Ends all processes.
    pub(crate) fn stop(self) -> Result<(), ContestError> {
        let end = Deadline::after(WIND_DOWN);
        for mut client in self.clients {
            client.tell(&None::<Batch>)?;
            client.finish(end)?;
        }
        Ok(self.server.child.stop(end)?)
    }
}

impl Server {
    fn client(&self, operation: Operation, threads: u32) -> Result<Child, ContestError> {
        let place = self.serving.of(operation).to_owned();
        let (name, kind) = match &self.system {
            System::OmniOrb(programs) => {
                let (operation, octets) = match operation {
                    Operation::Cube => ("cube", 0),
                    Operation::Octets(octets) => ("octets", octets),
                    Operation::Doubles(octets) => ("doubles", octets),
                    Operation::Structs(octets) => ("structs", octets),
                };
                let mut command = Command::new(&programs.client);
                command.args([&place, operation, &octets.to_string(), &threads.to_string()]);
                let command = scheduling(&mut command, self.scheduled);
                return Ok(Child::run("omniORB client", command)?);
            }
            System::Orb(waits) => (
                "chronorb client",
                ClientKind::Orb(OrbCalling {
                    reference: place,
                    waits: *waits,
                    operation,
                }),
            ),
            System::Raw(waits, exchange) => (
                "raw client",
                ClientKind::Raw(RawCalling {
                    address: place,
                    waits: *waits,
                    exchange: *exchange,
                }),
            ),
        };
        let order = ClientOrder {
            kind,
            threads,
            scheduled: self.scheduled,
        };
        Ok(Child::start(name, CLIENT_COMMAND, &order)?)
    }
}

impl System {
    const fn spins(&self) -> bool {
        matches!(self, Self::Orb(Waits::Spin) | Self::Raw(Waits::Spin, _))
    }
}

/// What omniORB's programs are told of scheduling.
fn scheduling(command: &mut Command, scheduled: Scheduled) -> &mut Command {
    match scheduled.priority() {
        Some(priority) => command.args(["--fifo", &priority.to_string()]),
        None => command,
    }
}

/// More than there are clients.
const MAX_CONNECTIONS: u32 = 1024;
/// How long a process may take to start and to connect.
const START_UP: Duration = Duration::from_secs(30);
/// How long a batch may take.
const BATCH: Duration = Duration::from_secs(300);
/// How long processes may take to end.
const WIND_DOWN: Duration = Duration::from_secs(20);
