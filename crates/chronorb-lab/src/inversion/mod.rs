//! `chronorb lab inversion`: how the architecture of an ORB inverts priorities.
//!
//! One client process has a thread of high priority and up to fifty of low priority, which call two servants of one
//! server process at fixed times. [`Inversion`] runs both anew for each architecture ([`Architecture`]), mode
//! ([`Mode`]) and number of low-priority clients, and tells what the calls of each class took: the experiment of figures
//! 7 and 8 of "Alleviating Priority Inversion and Non-determinism in Real-time CORBA ORB Core Architectures" by Schmidt,
//! Mungee, Flores-Gaitan and Gokhale (RTAS 1998), with rates and work that keep a server of today busy.
//!
//! The processes are this very program, called with the hidden command
//! [`CHILD_COMMAND`](crate::CHILD_COMMAND), or
//! programs of omniORB. They exchange lines of JSON with it:
//!
//! | child | says | hears |
//! |---|---|---|
//! | server | the references of its objects | the end of its input: shut down |
//! | client | that all its threads are connected, then what each call took | when to call; at last, the end of its input |

mod architecture;
mod calls;
mod claims;
mod client;
mod order;
mod outcome;
mod plan;
mod report;
mod trial;

use std::time::Duration;

use chronorb_rt::{MemoryLock, Rights};
use chronorb_testnet::{Layout, Network};

use crate::awake::Awake;
use crate::bench::{Cpus, OmniOrb, Scheduled, check_permitted};
use crate::environment::{Environment, ProcessorTime};
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::watch::Watch;
use crate::work::Speed;

pub use architecture::Architecture;
pub(crate) use client::{CLIENT, client_main};
pub use outcome::{Calibration, Class, Outcome, Row};
pub use plan::{Mode, Place, Plan, Series};

use plan::MOST_CLIENTS;
pub(crate) use plan::Periods;
pub(crate) use trial::{Measurement, Site, Trial};

/// The experiment.
///
/// The program that runs it hands [`CHILD_COMMAND`](crate::CHILD_COMMAND) on to
/// [`child_main`](crate::child_main).
#[derive(Clone, Copy, Debug)]
pub struct Inversion;

impl Experiment for Inversion {
    const NAME: &'static str = "inversion";
    const TITLE: &'static str = "Priority inversion by the architecture of the ORB";
    type Plan = Plan;
    type Findings = Outcome;

    fn full() -> Plan {
        Plan::full()
    }

    fn short() -> Plan {
        Plan::short()
    }

    fn measure(plan: &Plan) -> Result<Outcome, LabError> {
        let mut environment = Environment::probe();
        let cpus = Cpus::of_this_process()?;
        let one_cpu = !cpus.are_several();
        let omniorb = match plan.architectures.iter().any(|of| of.is_of_omniorb()) {
            true => OmniOrb::find(),
            false => OmniOrb::without("it was not asked for".to_owned()),
        };
        let site = Site {
            cpus,
            network: plan
                .namespaces
                .then(|| Network::build(&Layout::default()))
                .transpose()
                .map_err(|source| LabError::Network {
                    source,
                    hint: "; without --namespaces all runs over the loopback device",
                })?,
            lock_memory: Rights::probe().memory_lock == MemoryLock::Unlimited,
            real_time: check_permitted(Scheduled::Fifo).is_ok(),
            omniorb: omniorb.inversion(),
        };
        let before = ProcessorTime::now();
        let awake = plan
            .awake
            .then(|| Awake::on(site.cpus.iter()))
            .transpose()
            .map_err(LabError::work("keeping processors awake"))?;
        let architectures = plan.taking_part(&site);
        let watch = Watch::start(Self::TITLE, plan.length_of(&architectures));
        let run = Run::begin(plan, &site, &watch);
        let (rows, calibrations) = run.series(&architectures)?;
        drop(watch);
        drop(awake);
        environment.stolen_percent = vec![before.stolen_percent(ProcessorTime::now())];
        Ok(Outcome {
            plan: plan.clone(),
            environment,
            real_time: site.real_time,
            memory_locked: site.lock_memory,
            one_cpu,
            omniorb,
            calibrations,
            rows,
        })
    }
}

/// The course of an experiment that makes trials.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    plan: &'a Plan,
    site: &'a Site,
    watch: &'a Watch,
    /// What a call computes, in steps.
    steps: u32,
}

impl<'a> Run<'a> {
    pub(crate) fn begin(plan: &'a Plan, site: &'a Site, watch: &'a Watch) -> Self {
        Self {
            plan,
            site,
            watch,
            steps: Speed::measure().steps(plan.work),
        }
    }

    /// Finds the rates of a mode for which they depend on the machine: how often fifty low-priority clients call when
    /// they keep a processor as busy as wanted, with the real-time architecture. Where client and server have one each
    /// it is the busier one; otherwise both take of the same.
    pub(crate) fn calibrate(&self, mode: Mode) -> Result<Calibration, LabError> {
        let saturated = Periods {
            high: Duration::from_millis(5),
            low: Duration::ZERO,
        };
        let trial = Trial {
            length: self.plan.calibration,
            ..self.trial(
                Architecture::RealTime,
                mode,
                MOST_CLIENTS,
                saturated,
                "calibration",
            )
        };
        let measured = self.try_one(&trial)?;
        let length = trial.length.as_secs_f64();
        let calls = measured.high.from_due.calls() + measured.low.from_due.calls();
        let each =
            |percent: f64| Duration::from_secs_f64(percent / 100.0 * length / calls.max(1) as f64);
        let server = each(measured.server_cpu_percent);
        let client = each(measured.client_cpu_percent);
        let request = match trial.place {
            Place::Apart => server.max(client),
            Place::Together | Place::Free => server + client,
        };
        let periods = self.plan.loaded_periods(request);
        Ok(Calibration {
            mode,
            server_cpu_us_per_request: micros(server),
            client_cpu_us_per_request: micros(client),
            requests_per_s: (calls as f64 / length).round(),
            high_period_us: micros(periods.high),
            low_period_us: micros(periods.low),
        })
    }

    /// All trials, and how rates were found. Trials that are compared follow each other.
    fn series(
        &self,
        architectures: &[Architecture],
    ) -> Result<(Vec<Row>, Vec<Calibration>), LabError> {
        let mut rows = Vec::new();
        let mut calibrations = Vec::new();
        for series in &self.plan.series {
            let mode = series.mode;
            let periods = match mode.periods() {
                Some(periods) => periods,
                None => {
                    let found = self.calibrate(mode)?;
                    calibrations.push(found);
                    found.periods()
                }
            };
            for low_clients in series.low_clients.iter().copied() {
                for architecture in architectures.iter().copied() {
                    let trial = Trial {
                        length: series.length,
                        calls: series.calls,
                        ..self.trial(architecture, mode, low_clients, periods, mode.name())
                    };
                    let measured = self.try_one(&trial)?;
                    rows.extend(Class::ALL.map(|class| row(&trial, mode, class, &measured)));
                }
            }
        }
        Ok((rows, calibrations))
    }

    pub(crate) fn trial(
        &self,
        architecture: Architecture,
        mode: Mode,
        low_clients: u32,
        periods: Periods,
        name: &str,
    ) -> Trial {
        let (work, steps) = match mode.works() {
            true => (self.plan.work, self.steps),
            false => (Duration::ZERO, 0),
        };
        Trial {
            architecture,
            name: format!("{architecture}, {name}, {}", report::clients(low_clients)),
            low_clients,
            length: Duration::ZERO,
            place: self.plan.place_in(mode),
            periods,
            calls: 0,
            work,
            steps,
            threads: self.plan.threads,
            options: Vec::new(),
        }
    }

    pub(crate) fn try_one(&self, trial: &Trial) -> Result<Measurement, LabError> {
        self.watch.begin(&trial.name);
        self.site.run(trial, || self.watch.tick())
    }
}

fn row(trial: &Trial, mode: Mode, class: Class, measured: &Measurement) -> Row {
    let (calls, period) = match class {
        Class::High => (&measured.high, trial.periods.high),
        Class::Low => (&measured.low, trial.periods.low),
    };
    let from_call = calls.from_call.summary();
    Row {
        architecture: trial.architecture,
        mode,
        place: trial.place,
        low_clients: trial.low_clients,
        class,
        latency: calls.from_due.summary(),
        call_mean_us: from_call.mean_us,
        call_jitter_us: from_call.jitter_us,
        call_p99_us: from_call.p99_us,
        call_max_us: from_call.max_us,
        period_us: micros(period),
        work_us: micros(trial.work),
        server_cpu_percent: measured.server_cpu_percent,
        client_cpu_percent: measured.client_cpu_percent,
        stolen_percent: measured.stolen_percent,
    }
}

fn micros(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e8).round() / 1e2
}
