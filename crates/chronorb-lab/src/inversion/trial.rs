//! One trial: a server, and a client with all its threads.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use chronorb::rtcorba::Priority;
use chronorb_rt::{Deadline, Monotonic, sleep_until};
use chronorb_testnet::{Host, Network};

use super::InversionRun;
use super::architecture::{Architecture, Make, ServantPool};
use super::bulk::{BULK, BulkLoad, BulkSender, LEAST};
use super::client::{
    CLIENT, CallSchedule, CallTimes, HIGH, InversionClient, LOW, ServantReferences, fifo,
    orb_options,
};
use super::outcome::ClientClass;
use super::plan::{Mode, Periods};
use crate::bench::{Cpus, Model, ObjectSpec, PoolSpec, Programs, SERVER, ServantSpec, ServerSpec};
use crate::environment::ProcessorTime;
use crate::error::LabError;
use crate::process::{Child, ProcessError, Ready};
use crate::stats::Record;
use crate::usage;

/// A trial: an architecture, its clients, and their calls.
#[derive(Clone, Debug)]
pub(crate) struct InversionTrial {
    pub(crate) architecture: Architecture,
    pub(crate) mode: Mode,
    /// The name in errors.
    pub(crate) name: String,
    pub(crate) low_clients: u32,
    pub(crate) periods: Periods,
    pub(crate) length: Duration,
    /// The number of calls of each client, or 0 for as many as are due.
    pub(crate) calls: u64,
    /// More options of the server's ORB.
    pub(crate) options: Vec<String>,
    /// Bulk data beside the calls.
    pub(crate) bulk: Option<BulkLoad>,
    /// The file into which the server's threads write the stages of requests.
    pub(crate) trace_marker: Option<PathBuf>,
}

/// The machine, the network and the rights that all trials have.
#[derive(Debug)]
pub(crate) struct InversionSite {
    pub(crate) cpus: Cpus,
    /// Two hosts for client and server, unless they share the loopback device.
    pub(crate) network: Option<Network>,
    pub(crate) lock_memory: bool,
    /// Whether threads may have real-time priorities.
    pub(crate) real_time: bool,
    /// The programs of omniORB, where it is installed.
    pub(crate) omniorb: Option<Programs>,
}

/// The figures of a trial.
#[derive(Debug)]
pub(crate) struct Measurement {
    pub(crate) high: ClassCalls,
    pub(crate) low: ClassCalls,
    /// The time of the server's process, as a share of one processor.
    pub(crate) server_cpu_percent: f64,
    /// The time of the client's process, as a share of one processor.
    pub(crate) client_cpu_percent: f64,
    /// The share of all processors that a hypervisor gave to other machines.
    pub(crate) stolen_percent: f64,
    /// The rate of bulk data; none without them.
    pub(crate) bulk_octets_per_s: Option<f64>,
    /// The share of the server's processor in use, if a thread that keeps it awake is observed.
    pub(crate) busy_percent: Option<f64>,
}

/// The calls of one class.
#[derive(Debug)]
pub(crate) struct ClassCalls {
    /// The latencies from when each was due.
    pub(crate) from_due: Record,
    /// The latencies from when it was made.
    pub(crate) from_call: Record,
}

impl Measurement {
    /// Returns the calls of a class.
    pub(crate) const fn calls(&self, class: ClientClass) -> &ClassCalls {
        match class {
            ClientClass::High => &self.high,
            ClientClass::Low => &self.low,
        }
    }
}

impl InversionRun<'_> {
    /// Makes one trial.
    pub(crate) fn try_one(&self, trial: &InversionTrial) -> Result<Measurement, LabError> {
        self.watch.begin(&trial.name);
        let measured = self.start(trial);
        measured.map_err(|error| error.in_trial(&trial.name))
    }

    fn start(&self, trial: &InversionTrial) -> Result<Measurement, LabError> {
        let up = Deadline::after(START_UP);
        let mut server = self.start_server(trial)?;
        let serving: ServantReferences = server.hear(up)?;
        let bulk_reference = serving.bulk.clone();
        let mut client = self.start_client(trial, serving)?;
        let Ready {} = client.hear(up)?;
        let placement = self.plan.place_in(trial.mode).placement();
        self.site.cpus.place(placement, client.id(), server.id())?;
        let bulk = trial.bulk.filter(|bulk| bulk.sends);
        let mut bulk = bulk.map(|_| self.start_bulk(bulk_reference)).transpose()?;
        let measurement = self.observe(trial, &mut client, &mut server, bulk.as_mut())?;
        let down = Deadline::after(START_UP);
        if let Some(bulk) = bulk {
            bulk.stop(down)?;
        }
        client.stop(down)?;
        server.stop(down)?;
        Ok(measurement)
    }

    fn start_server(&self, trial: &InversionTrial) -> Result<Child, ProcessError> {
        let site = self.site;
        let host = site.network.as_ref().map_or_else(
            || "127.0.0.1".to_owned(),
            |network| network.host(Host::B).addresses().v4.to_string(),
        );
        match trial.architecture.description().make {
            Make::Chronorb(pool) => {
                let spec = self.server(trial, pool, &host);
                site.on(Host::B, || Child::launch("server", SERVER, &spec))
            }
            Make::OmniOrb { .. } => {
                let mut command = Command::new(site.omniorb(|of| &of.server));
                let work = self.work(trial.mode);
                command.args(["--work-ns", &work.as_nanos().to_string()]);
                if site.real_time {
                    command.args(["--fifo", &fifo(HIGH).to_string()]);
                }
                command.args(site.lock_memory.then_some("--lock"));
                command.args(["-ORBendPoint", &format!("giop:tcp:{host}:")]);
                site.on(Host::B, || Child::run("omniORB server", &mut command))
            }
        }
    }

    fn start_client(
        &self,
        trial: &InversionTrial,
        serving: ServantReferences,
    ) -> Result<Child, ProcessError> {
        let (site, low_clients) = (self.site, trial.low_clients);
        match trial.architecture.description().make {
            Make::Chronorb(_) => {
                let order = InversionClient {
                    architecture: trial.architecture.to_string(),
                    lock_memory: site.lock_memory,
                    serving,
                    low_clients,
                };
                site.on(Host::A, || Child::launch("client", CLIENT, &order))
            }
            Make::OmniOrb { is_tuned } => {
                let mut command = Command::new(site.omniorb(|of| &of.client));
                command.args([&serving.high, &serving.low, &low_clients.to_string()]);
                if site.real_time {
                    command.args(["--high-fifo", &fifo(HIGH).to_string()]);
                    command.args(["--low-fifo", &fifo(LOW).to_string()]);
                }
                command.args(site.lock_memory.then_some("--lock"));
                if is_tuned {
                    let threads = (low_clients + 1).to_string();
                    command.args(["-ORBmaxGIOPConnectionPerServer", &threads]);
                }
                site.on(Host::A, || Child::run("omniORB client", &mut command))
            }
        }
    }

    /// Starts the sender of bulk data, which begins to send when it is told to.
    fn start_bulk(&self, reference: Option<String>) -> Result<Child, LabError> {
        let order = BulkSender {
            reference: reference.unwrap_or_default(),
        };
        let (bulk, Ready {}) = self.site.on(Host::A, || {
            Child::start("sender of bulk data", BULK, &order)
        })?;
        let cpus = &self.site.cpus;
        cpus.pin(bulk.id(), cpus.iter().next().unwrap_or_default())?;
        Ok(bulk)
    }

    /// Returns the server: two servants, one of high and one of low priority, and one for bulk data
    /// if there are some.
    fn server(&self, trial: &InversionTrial, pool: ServantPool, host: &str) -> ServerSpec {
        let architecture = trial.architecture.to_string();
        let mut options = orb_options(&architecture, self.site.lock_memory);
        options.extend(["-ORBListenEndpoints".to_owned(), format!("iiop://{host}:0")]);
        options.extend_from_slice(&trial.options);
        let works = trial.mode.settings().works;
        let steps = if works { self.steps } else { 0 };
        let object = |(name, priority): (&str, Priority)| ObjectSpec {
            name: name.to_owned(),
            pool: Some((0, Model::Declared(priority.value()))),
            servant: ServantSpec::Power { steps },
        };
        let threads = self.plan.threads;
        let mut lanes = [LOW, HIGH].map(|of| (of.value(), threads)).to_vec();
        let mut objects = [("high", HIGH), ("low", LOW)].map(object).to_vec();
        if let Some(BulkLoad { steps, .. }) = trial.bulk {
            lanes.insert(0, (LEAST.value(), threads));
            objects.push(ObjectSpec {
                name: "bulk".to_owned(),
                pool: Some((0, Model::Declared(LEAST.value()))),
                servant: ServantSpec::Sink { steps },
            });
        }
        let pool = match pool {
            ServantPool::Lanes => PoolSpec::lanes(lanes),
            ServantPool::Shared => PoolSpec::Shared {
                priority: HIGH.value(),
                threads: SERVANTS * threads,
            },
        };
        ServerSpec {
            options,
            pools: vec![pool],
            objects,
            trace_marker: trial.trace_marker.clone(),
        }
    }
}

impl InversionSite {
    /// Starts a process on the host of the client or of the server.
    fn on<T>(&self, host: Host, start: impl FnOnce() -> T) -> T {
        match &self.network {
            Some(network) => network.host(host).enter(start),
            None => start(),
        }
    }

    /// Returns a program of omniORB, which takes part only where it is installed.
    fn omniorb(&self, program: impl Fn(&Programs) -> &PathBuf) -> &OsStr {
        let programs = self.omniorb.as_ref();
        programs.map_or_else(|| OsStr::new(""), |of| program(of).as_os_str())
    }
}

impl InversionRun<'_> {
    /// Lets the client call, and measures the processor time of both processes meanwhile.
    fn observe(
        &self,
        trial: &InversionTrial,
        client: &mut Child,
        server: &mut Child,
        mut bulk: Option<&mut Child>,
    ) -> Result<Measurement, ProcessError> {
        let begin = Monotonic::now() + self.plan.lead;
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let schedule = CallSchedule {
            start_ns: begin.as_nanos(),
            length_ns: nanos(trial.length),
            high_period_ns: nanos(trial.periods.high),
            low_period_ns: nanos(trial.periods.low),
            calls: trial.calls,
        };
        client.tell(&schedule)?;
        if let Some(bulk) = &mut bulk {
            bulk.tell(&schedule)?;
        }
        let processes = [client.id(), server.id()];
        let usage_at = |instant| {
            sleep_until(instant);
            let computed = processes.map(usage::computed);
            let idle = self.awake.and_then(|(awake, cpu)| awake.unwanted(cpu));
            (Monotonic::now(), computed, ProcessorTime::now(), idle)
        };
        let before = usage_at(begin);
        let end = begin + trial.length;
        while Monotonic::now() + TICK < end {
            sleep_until(Monotonic::now() + TICK);
            self.watch.tick();
            client.check()?;
            server.check()?;
        }
        let after = usage_at(end);
        let late = Deadline::after(trial.length + WIND_DOWN);
        let times: CallTimes = client.hear(late)?;
        let octets: Option<u64> = bulk.map(|bulk| bulk.hear(late)).transpose()?;
        let wall = after.0.since(before.0).as_secs_f64().max(1e-9);
        let percent = |index: usize| {
            let computed = after.1[index].saturating_sub(before.1[index]);
            (computed.as_secs_f64() / wall * 1_000.0).round() / 10.0
        };
        let idle = before.3.zip(after.3);
        let busy = idle.map(|(before, after)| 1.0 - (after - before).as_secs_f64() / wall);
        Ok(Measurement {
            high: ClassCalls::of(&times.high),
            low: ClassCalls::of(&times.low),
            client_cpu_percent: percent(0),
            server_cpu_percent: percent(1),
            stolen_percent: before.2.stolen_percent(after.2),
            bulk_octets_per_s: octets.map(|octets| octets as f64 / trial.length.as_secs_f64()),
            busy_percent: busy.map(|busy| busy * 100.0),
        })
    }
}

impl ClassCalls {
    /// Reads two times for each call.
    fn of(times: &[u64]) -> Self {
        let record = |first: usize| {
            let mut record = Record::new();
            for time in times.iter().skip(first).step_by(2) {
                // The times of day of the calls are not used.
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

/// The time that processes may take to start, to connect, and to end.
const START_UP: Duration = Duration::from_secs(30);
/// The time that late calls may take, beside as long again as all of them should.
const WIND_DOWN: Duration = Duration::from_secs(60);
const TICK: Duration = Duration::from_millis(200);
/// The servants of a server.
const SERVANTS: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_two_times_each() {
        let calls = ClassCalls::of(&[5_000, 3_000, 9_000, 4_000]);
        assert_eq!(calls.from_due.summary().max_us, 9.0);
        assert_eq!(calls.from_call.summary().max_us, 4.0);
        assert_eq!(calls.from_call.calls(), 2);
    }
}
