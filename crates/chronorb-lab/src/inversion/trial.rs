//! One trial: a server, a client with all its threads, and what their calls took.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use chronorb::rtcorba::Priority;
use chronorb_rt::{Deadline, Monotonic, sleep_until};
use chronorb_testnet::{Host, Network};

use super::architecture::{Architecture, Make, Pool};
use super::client::CLIENT;
use super::order::{ClientOrder, HIGH, LOW, Measured, Serving, Start, fifo, orb_options};
use super::plan::{Periods, Place};
use crate::bench::{Cpus, Model, ObjectSpec, PoolSpec, Programs, SERVER, ServantSpec, ServerSpec};
use crate::environment::ProcessorTime;
use crate::error::LabError;
use crate::process::{Child, ProcessError, Ready};
use crate::stats::Record;
use crate::usage;

/// What is tried.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    pub(crate) architecture: Architecture,
    /// As errors say it.
    pub(crate) name: String,
    pub(crate) low_clients: u32,
    pub(crate) length: Duration,
    pub(crate) place: Place,
    pub(crate) periods: Periods,
    pub(crate) calls: u64,
    pub(crate) work: Duration,
    /// The same in steps.
    pub(crate) steps: u32,
    /// The server's threads for each servant.
    pub(crate) threads: u32,
    /// More options of the server's ORB.
    pub(crate) options: Vec<String>,
}

/// Where trials are made, all alike.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) cpus: Cpus,
    /// Two hosts for client and server, where they are not to share the loopback device.
    pub(crate) network: Option<Network>,
    pub(crate) lock_memory: bool,
    /// Whether threads may have real-time priorities.
    pub(crate) real_time: bool,
    /// Where omniORB's programs are.
    pub(crate) omniorb: Option<Programs>,
}

/// What came of a trial.
#[derive(Debug)]
pub(crate) struct Measurement {
    pub(crate) high: Calls,
    pub(crate) low: Calls,
    /// How many hundredths of one processor the processes took.
    pub(crate) server_cpu_percent: f64,
    pub(crate) client_cpu_percent: f64,
    /// How many hundredths of all processors a hypervisor gave to others.
    pub(crate) stolen_percent: f64,
}

/// The calls of one class.
#[derive(Debug)]
pub(crate) struct Calls {
    /// From when each was due.
    pub(crate) from_due: Record,
    /// From when it was made.
    pub(crate) from_call: Record,
}

impl Trial {
    /// Returns the server: two servants, one of high and one of low priority.
    fn server(&self, pool: Pool, host: &str, lock_memory: bool) -> ServerSpec {
        let mut options = orb_options(self.architecture.name(), lock_memory);
        options.extend(["-ORBListenEndpoints".to_owned(), format!("iiop://{host}:0")]);
        options.extend_from_slice(&self.options);
        let object = |(name, priority): (&str, Priority)| ObjectSpec {
            name: name.to_owned(),
            pool: Some((0, Model::Declared(priority.value()))),
            servant: ServantSpec::Power { steps: self.steps },
        };
        ServerSpec {
            options,
            pools: vec![match pool {
                Pool::Lanes => PoolSpec::lanes([LOW, HIGH].map(|of| (of.value(), self.threads))),
                Pool::Shared => PoolSpec::Shared {
                    priority: HIGH.value(),
                    threads: SERVANTS * self.threads,
                },
            }],
            objects: [("high", HIGH), ("low", LOW)].map(object).to_vec(),
        }
    }
}

impl Site {
    /// Makes one trial; calls `tick` now and then.
    pub(crate) fn run(&self, trial: &Trial, tick: impl FnMut()) -> Result<Measurement, LabError> {
        let up = Deadline::after(START_UP);
        let named = |source| LabError::Trial {
            trial: trial.name.clone(),
            source,
        };
        let mut server = self.start_server(trial).map_err(named)?;
        let serving: Serving = server.hear(up).map_err(named)?;
        let mut client = self.start_client(trial, serving).map_err(named)?;
        let Ready {} = client.hear(up).map_err(named)?;
        let placement = trial.place.placement();
        self.cpus.place(placement, client.id(), server.id())?;
        let measurement = observe(trial, &mut client, &mut server, tick).map_err(named)?;
        let down = Deadline::after(START_UP);
        client.stop(down).map_err(named)?;
        server.stop(down).map_err(named)?;
        Ok(measurement)
    }

    fn start_server(&self, trial: &Trial) -> Result<Child, ProcessError> {
        let host = self.host();
        match trial.architecture.description().make {
            Make::Chronorb(pool) => {
                let spec = trial.server(pool, &host, self.lock_memory);
                self.on(Host::B, || Child::launch("server", SERVER, &spec))
            }
            Make::OmniOrb { .. } => {
                let mut command = Command::new(self.omniorb(|of| &of.server));
                command.args(["--work-ns", &trial.work.as_nanos().to_string()]);
                if self.real_time {
                    command.args(["--fifo", &fifo(HIGH).to_string()]);
                }
                self.lock(&mut command);
                command.args(["-ORBendPoint", &format!("giop:tcp:{host}:")]);
                self.on(Host::B, || Child::run("omniORB server", &mut command))
            }
        }
    }

    fn start_client(&self, trial: &Trial, serving: Serving) -> Result<Child, ProcessError> {
        match trial.architecture.description().make {
            Make::Chronorb(_) => {
                let order = ClientOrder {
                    architecture: trial.architecture.name().to_owned(),
                    lock_memory: self.lock_memory,
                    serving,
                    low_clients: trial.low_clients,
                };
                self.on(Host::A, || Child::launch("client", CLIENT, &order))
            }
            Make::OmniOrb { is_tuned } => {
                let mut command = Command::new(self.omniorb(|of| &of.client));
                command.args([&serving.high, &serving.low, &trial.low_clients.to_string()]);
                if self.real_time {
                    command.args(["--high-fifo", &fifo(HIGH).to_string()]);
                    command.args(["--low-fifo", &fifo(LOW).to_string()]);
                }
                self.lock(&mut command);
                if is_tuned {
                    let threads = (trial.low_clients + 1).to_string();
                    command.args(["-ORBmaxGIOPConnectionPerServer", &threads]);
                }
                self.on(Host::A, || Child::run("omniORB client", &mut command))
            }
        }
    }

    /// Starts a process beside the client or the server.
    fn on<T>(&self, host: Host, start: impl FnOnce() -> T) -> T {
        match &self.network {
            Some(network) => network.host(host).enter(start),
            None => start(),
        }
    }

    /// Where servers listen.
    fn host(&self) -> String {
        let hosts = self.network.as_ref();
        hosts.map_or_else(
            || "127.0.0.1".to_owned(),
            |network| network.host(Host::B).addresses().v4.to_string(),
        )
    }

    /// A program of omniORB, where that takes part.
    fn omniorb(&self, program: impl Fn(&Programs) -> &PathBuf) -> &OsStr {
        let programs = self.omniorb.as_ref();
        programs.map_or_else(|| OsStr::new(""), |programs| program(programs).as_os_str())
    }

    fn lock(&self, command: &mut Command) {
        if self.lock_memory {
            command.arg("--lock");
        }
    }
}

/// Lets the client call, and looks at both processes at the beginning and at the end of that.
fn observe(
    trial: &Trial,
    client: &mut Child,
    server: &mut Child,
    mut tick: impl FnMut(),
) -> Result<Measurement, ProcessError> {
    let begin = Monotonic::now() + LEAD;
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    client.tell(&Start {
        start_ns: begin.as_nanos(),
        length_ns: nanos(trial.length),
        high_period_ns: nanos(trial.periods.high),
        low_period_ns: nanos(trial.periods.low),
        calls: trial.calls,
    })?;
    let processes = [client.id(), server.id()];
    let look = |instant| {
        sleep_until(instant);
        let computed = processes.map(usage::computed);
        (Monotonic::now(), computed, ProcessorTime::now())
    };
    let before = look(begin);
    let end = begin + trial.length;
    while Monotonic::now() + TICK < end {
        sleep_until(Monotonic::now() + TICK);
        tick();
        client.check()?;
        server.check()?;
    }
    let after = look(end);
    let Measured { high, low } = client.hear(Deadline::after(trial.length + WIND_DOWN))?;
    let wall = after.0.since(before.0);
    let percent = |index: usize| {
        let computed = after.1[index].saturating_sub(before.1[index]);
        rounded(computed.as_secs_f64() / wall.as_secs_f64().max(1e-9) * 100.0)
    };
    Ok(Measurement {
        high: Calls::of(&high),
        low: Calls::of(&low),
        client_cpu_percent: percent(0),
        server_cpu_percent: percent(1),
        stolen_percent: before.2.stolen_percent(after.2),
    })
}

impl Calls {
    /// Of two times for each call.
    fn of(times: &[u64]) -> Self {
        let record = |first: usize| {
            let mut record = Record::new();
            for time in times.iter().skip(first).step_by(2) {
                // When it was is of no interest here.
                record.add(Duration::ZERO, Duration::from_nanos(*time));
            }
            record
        };
        Self {
            from_due: record(0),
            from_call: record(1),
        }
    }
}

fn rounded(percent: f64) -> f64 {
    (percent * 10.0).round() / 10.0
}

/// How long processes may take to start, clients to connect, and both to end.
const START_UP: Duration = Duration::from_secs(30);
/// From the last thread's connection to the start: long enough for all threads to prepare, on a busy machine too.
const LEAD: Duration = Duration::from_millis(500);
/// How long late calls may take, beside as long again as all of them should.
const WIND_DOWN: Duration = Duration::from_secs(60);
const TICK: Duration = Duration::from_millis(200);
/// The servants of a server.
const SERVANTS: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_two_times_each() {
        let calls = Calls::of(&[5_000, 3_000, 9_000, 4_000]);
        assert_eq!(calls.from_due.summary().max_us, 9.0);
        assert_eq!(calls.from_call.summary().max_us, 4.0);
        assert_eq!(calls.from_call.calls(), 2);
    }
}
