//! A server of one of several systems, and its clients.

use std::process::Command;
use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic, sleep_until};

use super::omniorb::{OmniOrb, Programs};
use super::order::{
    Arrivals, Batch, BatchTimes, ClientKind, ClientOrder, Exchange, Medium, Operation, OrbCalling,
    OrbServing, RawCalling, RawServing, Report, ServerKind, ServerOrder, Serving, Sizes, Waits,
};
use super::place::{Cpus, Placement, Scheduled};
use super::raw::SPIN;
use super::server::LOOPBACK;
use super::{SYSTEM_CLIENT, SYSTEM_SERVER};
use crate::error::LabError;
use crate::process::{Child, Ready};

/// A server and its clients, in processes of their own.
pub(crate) struct Fleet {
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
    Orb(Waits, Vec<String>),
    OmniOrb(Programs),
    Raw(Medium, Waits, Exchange),
}

/// How an ORB is set up, beyond how it waits.
#[derive(Clone, Debug)]
pub(crate) struct OrbSettings {
    /// Where the server listens, as `-ORBListenEndpoints` has it.
    pub(crate) endpoints: String,
    /// Other options of the server.
    pub(crate) server: Vec<String>,
    /// Options of the client.
    pub(crate) client: Vec<String>,
    /// The group by which messages go that have no answer, as a URL; without it they go to the object.
    pub(crate) group: Option<String>,
}

impl OrbSettings {
    /// No other options.
    pub(crate) const fn of(endpoints: String) -> Self {
        Self {
            endpoints,
            server: Vec::new(),
            client: Vec::new(),
            group: None,
        }
    }
}

impl Fleet {
    /// A server of chronorb.
    pub(crate) fn orb(waits: Waits, scheduled: Scheduled) -> Result<Self, LabError> {
        let settings = OrbSettings::of(LOOPBACK.to_owned());
        Self::orb_by(&settings, waits, scheduled)
    }

    /// The same with settings.
    pub(crate) fn orb_by(
        settings: &OrbSettings,
        waits: Waits,
        scheduled: Scheduled,
    ) -> Result<Self, LabError> {
        Self::start_orb(settings, waits, scheduled, MAX_CONNECTIONS)
    }

    /// The same at an address, for many connections.
    pub(crate) fn orb_at(
        address: &str,
        waits: Waits,
        scheduled: Scheduled,
        max_connections: u32,
    ) -> Result<Self, LabError> {
        let settings = OrbSettings::of(format!("iiop://{address}"));
        Self::start_orb(&settings, waits, scheduled, max_connections)
    }

    fn start_orb(
        settings: &OrbSettings,
        waits: Waits,
        scheduled: Scheduled,
        max_connections: u32,
    ) -> Result<Self, LabError> {
        let kind = ServerKind::Orb(OrbServing {
            endpoints: settings.endpoints.clone(),
            options: settings.server.clone(),
            group: settings.group.clone(),
            waits,
            max_connections,
        });
        let system = System::Orb(waits, settings.client.clone());
        Self::start("chronorb server", kind, system, scheduled)
    }

    /// A server with nothing but TCP sockets.
    pub(crate) fn raw(
        how: RawServing,
        operation: Operation,
        sizes: Sizes,
        scheduled: Scheduled,
    ) -> Result<Self, LabError> {
        Self::raw_by(&Medium::Tcp, how, operation, sizes, scheduled)
    }

    /// A server with nothing but a medium.
    pub(crate) fn raw_by(
        medium: &Medium,
        how: RawServing,
        operation: Operation,
        sizes: Sizes,
        scheduled: Scheduled,
    ) -> Result<Self, LabError> {
        let exchange = Exchange { operation, sizes };
        let waits = match how {
            RawServing::Threads(waits) => waits,
            RawServing::Epoll { .. } => Waits::Block,
        };
        let kind = ServerKind::Raw {
            medium: medium.clone(),
            how,
            exchange,
        };
        let system = System::Raw(medium.clone(), waits, exchange);
        Self::start("raw server", kind, system, scheduled)
    }

    /// A server of omniORB, where its programs are.
    pub(crate) fn omniorb(
        omniorb: &OmniOrb,
        scheduled: Scheduled,
    ) -> Result<Option<Self>, LabError> {
        Self::omniorb_at(omniorb, None, scheduled)
    }

    /// The same at an endpoint of its own kind, for example `giop:unix:/path`, and not on TCP.
    pub(crate) fn omniorb_at(
        omniorb: &OmniOrb,
        endpoint: Option<&str>,
        scheduled: Scheduled,
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
    ) -> Result<Self, LabError> {
        let order = ServerOrder { kind, scheduled };
        let (child, serving) = Child::start(name, SYSTEM_SERVER, &order)?;
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
    ) -> Result<usize, LabError> {
        let client = self.server.client(operation, threads)?;
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
    ) -> Result<BatchTimes, LabError> {
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

    /// Has a client with so many threads send messages that have no answer, in their place. Returns what sending took,
    /// and what has come of those that count.
    pub(crate) fn run_oneway(
        &mut self,
        (client, threads): (usize, u32),
        place: (&Cpus, Placement),
        warm_up: u32,
        messages: u32,
    ) -> Result<(BatchTimes, Arrivals), LabError> {
        let took = self.run(client, place, warm_up, messages)?;
        let arrivals = self.server.arrivals(messages * threads)?;
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
    /// What comes of so many messages: until all are there, or no further one comes.
    fn arrivals(&mut self, sent: u32) -> Result<Arrivals, LabError> {
        let mut arrivals = self.report()?;
        let mut silent = Monotonic::now();
        while arrivals.count() < sent && Monotonic::now().since(silent) < ARRIVAL {
            sleep_until(Monotonic::now() + ARRIVAL / 10);
            let more = self.report()?;
            if more.count() > 0 {
                silent = Monotonic::now();
            }
            arrivals.merge(more);
        }
        Ok(arrivals)
    }

    /// What has come since it was asked last.
    fn report(&mut self) -> Result<Arrivals, LabError> {
        self.child.tell(&Report {})?;
        Ok(self.child.hear(Deadline::after(BATCH))?)
    }

    fn client(&self, operation: Operation, threads: u32) -> Result<Child, LabError> {
        let place = self.serving.of(operation).to_owned();
        let (name, kind) = match &self.system {
            System::OmniOrb(programs) => {
                let (operation, octets) = match operation {
                    Operation::Cube => ("cube", 0),
                    Operation::Octets(octets) => ("octets", octets),
                    Operation::Doubles(octets) => ("doubles", octets),
                    Operation::Structs(octets) => ("structs", octets),
                    Operation::Oneway(_) | Operation::Flood => {
                        return Err(LabError::work("calling omniORB")(
                            "its programs have nothing without an answer",
                        ));
                    }
                };
                let mut command = Command::new(&programs.client);
                command.args([&place, operation, &octets.to_string(), &threads.to_string()]);
                let command = scheduling(&mut command, self.scheduled);
                let mut client = Child::run("omniORB client", command)?;
                let Ready {} = client.hear(Deadline::after(START_UP))?;
                return Ok(client);
            }
            System::Orb(waits, options) => (
                "chronorb client",
                ClientKind::Orb(OrbCalling {
                    reference: place,
                    options: options.clone(),
                    waits: *waits,
                    operation,
                }),
            ),
            System::Raw(medium, waits, exchange) => (
                "raw client",
                ClientKind::Raw(RawCalling {
                    medium: medium.clone(),
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
        let (client, Ready {}) = Child::start(name, SYSTEM_CLIENT, &order)?;
        Ok(client)
    }
}

impl System {
    const fn spins(&self) -> bool {
        matches!(
            self,
            Self::Orb(Waits::Spin, _) | Self::Raw(_, Waits::Spin, _)
        )
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
/// The time that a program of omniORB may take to start and to connect.
const START_UP: Duration = Duration::from_secs(30);
/// How long a batch may take.
const BATCH: Duration = Duration::from_secs(300);
/// Longer than a message is under way: what has not come after that is lost.
const ARRIVAL: Duration = Duration::from_millis(20);
/// How long processes may take to end.
const WIND_DOWN: Duration = Duration::from_secs(20);
