//! The processes, and what is done to them.

use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;
use std::{fs, io};

use chronorb_rt::{Deadline, Monotonic, sleep_until};
use rustix::process::{Pid, Signal, kill_process};

use super::PART;
use super::order::{
    CallException, ClientOrder, EnduranceOrder, EnduranceReport, EnduranceServer, FailureKind,
};
use super::outcome::{EnduranceOutcome, EnduranceRow, MemorySample};
use super::plan::{EnduranceLoad, EndurancePlan, RECOVERY, ServerKind};
use crate::environment::Environment;
use crate::error::LabError;
use crate::process::{Child, Ready};
use crate::usage::resident;
use crate::watch::Watch;

/// Runs the load, and judges what the clients have reported.
pub(super) fn run(plan: &EndurancePlan) -> Result<EnduranceOutcome, LabError> {
    let mut fleet = EnduranceFleet::start(plan)?;
    let watch = Watch::start("the load", plan.length);
    watch.begin("calls, names and events");
    fleet.run(&watch)?;
    drop(watch);
    fleet.end()
}

/// A server or a client.
struct FleetProcess {
    role: Role,
    child: Child,
    /// The time at which it goes on, if it is stopped.
    stopped: Option<Monotonic>,
    /// The times in which it was disturbed, in nanoseconds.
    disturbed: Vec<(u64, u64)>,
}

/// The part of a process in the load.
enum Role {
    Server(EnduranceServer),
    Client(ClientOrder, ClientRecord),
}

/// The reports of a client, over all its processes.
#[derive(Default)]
struct ClientRecord {
    calls: u64,
    exceptions: Vec<CallException>,
    failures: Vec<(FailureKind, String)>,
}

/// All processes.
struct EnduranceFleet {
    plan: EndurancePlan,
    processes: Vec<FleetProcess>,
    folder: StoreFolder,
    dice: fastrand::Rng,
    outcome: EnduranceOutcome,
}

/// The folder of the store, which is removed in the end.
struct StoreFolder(PathBuf);

impl StoreFolder {
    fn make() -> Result<Self, LabError> {
        let (process, time) = (std::process::id(), Monotonic::now().as_nanos());
        let folder = std::env::temp_dir().join(format!("chronorb-endurance-{process}-{time}"));
        fs::create_dir(&folder).map_err(LabError::work("making a folder for names"))?;
        Ok(Self(folder))
    }
}

impl Drop for StoreFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl FleetProcess {
    fn start(role: Role) -> Result<Self, LabError> {
        let child = role.start()?;
        Ok(Self {
            role,
            child,
            stopped: None,
            disturbed: Vec::new(),
        })
    }

    /// Takes the reports that have arrived.
    fn hear(&mut self) -> Result<(), LabError> {
        while let Some(report) = self.child.poll::<EnduranceReport>()? {
            self.take(report);
        }
        Ok(())
    }

    fn take(&mut self, report: EnduranceReport) {
        if let Role::Client(order, record) = &mut self.role {
            record.calls += report.calls;
            record.exceptions.extend(report.exceptions);
            record.failures.extend(report.failures);
            if !report.acknowledged.is_empty() {
                order.acknowledged = report.acknowledged;
            }
        }
    }

    /// Notes that the process, and the channel where it is its consumer, is disturbed from a time
    /// until it has recovered.
    fn disturb(&mut self, from: Monotonic) {
        let end = Monotonic::now() + RECOVERY;
        self.disturbed.push((from.as_nanos(), end.as_nanos()));
    }

    fn server(&self) -> Option<ServerKind> {
        match &self.role {
            Role::Server(order) => Some(order.kind),
            Role::Client(..) => None,
        }
    }

    fn load(&self) -> Option<EnduranceLoad> {
        match &self.role {
            Role::Server(_) => None,
            Role::Client(order, _) => Some(order.load),
        }
    }
}

impl Role {
    fn start(&self) -> Result<Child, LabError> {
        match self {
            Self::Server(order) => {
                let name = order.kind.name();
                let order = EnduranceOrder::Server(order.clone());
                let (child, _port): (_, u16) = Child::start(name, PART, &order)?;
                Ok(child)
            }
            Self::Client(order, _) => {
                let name = format!("client {} of {}", order.number, order.load.title());
                let order = EnduranceOrder::Client(order.clone());
                let (child, Ready {}) = Child::start(name, PART, &order)?;
                Ok(child)
            }
        }
    }
}

impl EnduranceFleet {
    fn start(plan: &EndurancePlan) -> Result<Self, LabError> {
        let folder = StoreFolder::make()?;
        let mut processes = Vec::new();
        for kind in ServerKind::ALL {
            let order = EnduranceServer {
                kind,
                port: free_port().map_err(LabError::work("choosing a port"))?,
                store: folder.0.join("names"),
            };
            processes.push(FleetProcess::start(Role::Server(order))?);
        }
        let mut clients = Vec::new();
        for load in EnduranceLoad::ALL {
            let port = processes.iter().find_map(|process| match &process.role {
                Role::Server(order) if order.kind == load.server() => Some(order.port),
                _ => None,
            });
            let port = port.unwrap_or_default();
            let name = load.server().name();
            for number in 0..plan.clients {
                let order = ClientOrder {
                    load,
                    number,
                    reference: format!("corbaloc:iiop:1.2@127.0.0.1:{port}/{name}"),
                    plan: plan.clone(),
                    acknowledged: Vec::new(),
                };
                let role = Role::Client(order, ClientRecord::default());
                clients.push(FleetProcess::start(role)?);
            }
        }
        processes.extend(clients);
        Ok(Self {
            plan: plan.clone(),
            processes,
            folder,
            dice: fastrand::Rng::with_seed(plan.seed),
            outcome: EnduranceOutcome {
                plan: plan.clone(),
                environment: Environment::probe(),
                rows: Vec::new(),
                memory: Vec::new(),
                kills: 0,
                stops: 0,
                deaths: Vec::new(),
                words: Vec::new(),
            },
        })
    }

    fn run(&mut self, watch: &Watch) -> Result<(), LabError> {
        let start = Monotonic::now();
        let (mut signal, mut sample) = (start + self.pause(), start);
        while Monotonic::now().since(start) < self.plan.length {
            sleep_until(Monotonic::now() + TICK);
            let now = Monotonic::now();
            watch.tick();
            for at in 0..self.processes.len() {
                self.processes[at].hear()?;
                self.look_after(at)?;
            }
            if now >= sample {
                sample = now + SAMPLE;
                let all = self.processes.iter();
                let servers = all.filter(|process| process.server().is_some());
                self.outcome.memory.push(MemorySample {
                    at_s: now.since(start).as_secs_f64(),
                    octets: servers.map(|server| resident(server.child.id())).sum(),
                });
            }
            if now >= signal {
                self.signal()?;
                signal = Monotonic::now() + self.pause();
            }
        }
        Ok(())
    }

    /// Lets a stopped process go on in time, and starts one again that has ended by itself.
    fn look_after(&mut self, at: usize) -> Result<(), LabError> {
        let process = &mut self.processes[at];
        if let Some((from, until)) = process.stopped.zip(process.disturbed.last().copied()) {
            if Monotonic::now() >= from {
                send(&process.child, Signal::CONT)?;
                process.stopped = None;
                let end = (Monotonic::now() + RECOVERY).as_nanos();
                process.disturbed.pop();
                process.disturbed.push((until.0, end));
            }
            return Ok(());
        }
        if let Err(error) = process.child.check() {
            self.outcome.deaths.push(error.to_string());
            self.start_again(at)?;
        }
        Ok(())
    }

    /// Kills or stops a process.
    fn signal(&mut self) -> Result<(), LabError> {
        let at = self.dice.usize(..self.processes.len());
        let kills = self.dice.u32(..=self.plan.stops_for_a_kill) == 0;
        let longest = u64::try_from(self.plan.longest_stop.as_millis()).unwrap_or(u64::MAX);
        let length = Duration::from_millis(self.dice.u64(1..=longest.max(1)));
        let process = &mut self.processes[at];
        if process.stopped.is_some() {
            return Ok(());
        }
        if kills {
            self.outcome.kills += 1;
            return self.start_again(at);
        }
        self.outcome.stops += 1;
        let now = Monotonic::now();
        send(&process.child, Signal::STOP)?;
        process.stopped = Some(now + length);
        process.disturbed.push((now.as_nanos(), u64::MAX));
        Ok(())
    }

    /// Kills a process, and starts it again.
    fn start_again(&mut self, at: usize) -> Result<(), LabError> {
        let process = &mut self.processes[at];
        let from = Monotonic::now();
        process.child.kill_now();
        // What it has reported before counts.
        while let Ok(Some(report)) = process.child.poll::<EnduranceReport>() {
            process.take(report);
        }
        process.child = process.role.start()?;
        process.disturb(from);
        Ok(())
    }

    /// Has all clients end, and judges what they have reported.
    fn end(mut self) -> Result<EnduranceOutcome, LabError> {
        for process in &mut self.processes {
            if process.stopped.take().is_some() {
                send(&process.child, Signal::CONT)?;
                let from = process.disturbed.pop().map_or(0, |disturbed| disturbed.0);
                process.disturb(Monotonic::from_nanos(from));
            }
        }
        for process in &mut self.processes {
            if process.load().is_some() {
                process.child.tell(&())?;
            }
        }
        let Self {
            processes,
            mut outcome,
            folder,
            plan,
            ..
        } = self;
        let mut servers = Vec::new();
        let mut clients = Vec::new();
        for process in processes {
            if process.load().is_some() {
                clients.push(process);
            } else {
                servers.push(process);
            }
        }
        let mut ended = Vec::new();
        for mut client in clients {
            // The last report comes with the end.
            let limit = Deadline::after(plan.timeout * 64 + WIND_DOWN);
            match client.child.hear_until_end::<EnduranceReport>(limit) {
                Ok(reports) => reports.into_iter().for_each(|report| client.take(report)),
                Err(error) => outcome.deaths.push(error.to_string()),
            }
            ended.push(client);
        }
        outcome.rows = EnduranceLoad::ALL
            .map(|load| judge(load, &ended, &servers, &mut outcome.words))
            .into();
        for server in servers {
            server.child.stop(Deadline::after(WIND_DOWN))?;
        }
        drop(folder);
        Ok(outcome)
    }

    fn pause(&mut self) -> Duration {
        let (shortest, longest) = self.plan.pause;
        shortest + (longest - shortest).mul_f64(self.dice.f64())
    }
}

/// Adds up what the clients of a load have reported.
fn judge(
    load: EnduranceLoad,
    clients: &[FleetProcess],
    servers: &[FleetProcess],
    words: &mut Vec<String>,
) -> EnduranceRow {
    let mut row = EnduranceRow::new(load);
    let server = servers.iter();
    let server = server.filter(|server| server.server() == Some(load.server()));
    let mut disturbed: Vec<_> = server.flat_map(|server| server.disturbed.clone()).collect();
    if load == EnduranceLoad::Events {
        // A consumer that is stopped delays the channel.
        let consumers = clients.iter().filter(|client| client.load() == Some(load));
        disturbed.extend(consumers.flat_map(|client| client.disturbed.clone()));
    }
    for client in clients.iter().filter(|client| client.load() == Some(load)) {
        let Role::Client(_, record) = &client.role else {
            continue;
        };
        row.calls += record.calls;
        for exception in &record.exceptions {
            let of = disturbed.iter().chain(&client.disturbed);
            if is_explained(exception, of) {
                row.explained += 1;
            } else {
                row.unexplained += 1;
                words.push(exception.words.clone());
            }
        }
        for (kind, failure) in &record.failures {
            row.count(*kind);
            words.push(failure.clone());
        }
    }
    words.truncate(MOST_WORDS);
    row
}

/// Whether a call was under way during a disturbance.
fn is_explained<'a>(
    exception: &CallException,
    mut disturbed: impl Iterator<Item = &'a (u64, u64)>,
) -> bool {
    disturbed.any(|(from, until)| exception.start_ns <= *until && exception.end_ns >= *from)
}

/// Returns a port at which no process listens. Outgoing connections have none of these, so that it
/// stays free while its server is dead.
fn free_port() -> io::Result<u16> {
    let mut dice = fastrand::Rng::with_seed(Monotonic::now().as_nanos());
    let mut ports = (0..1_000).map(|_| dice.u16(10_000..30_000));
    // The next one is of a lane.
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let free = ports.find(|port| (*port..port + 2).all(is_free));
    free.ok_or_else(|| io::ErrorKind::AddrInUse.into())
}

fn send(child: &Child, signal: Signal) -> Result<(), LabError> {
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let id = id.ok_or_else(|| LabError::work("a signal")("it has no process id"))?;
    kill_process(id, signal).map_err(LabError::work("a signal"))
}

/// The time between two looks at the processes.
const TICK: Duration = Duration::from_millis(20);
/// The time between two samples of memory.
const SAMPLE: Duration = Duration::from_millis(250);
/// The time within which processes answer and end, beside that of calls.
const WIND_DOWN: Duration = Duration::from_secs(30);
/// The failures whose words are kept.
const MOST_WORDS: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disturbance_explains_the_calls_that_it_meets() {
        let call = |start_ns, end_ns| CallException {
            start_ns,
            end_ns,
            words: String::new(),
        };
        let disturbed = [(10, 20)];
        let explains = |start, end| is_explained(&call(start, end), disturbed.iter());
        assert!(explains(5, 10) && explains(12, 13) && explains(20, 30) && explains(5, 30));
        assert!(!explains(1, 9) && !explains(21, 30));
    }
}
