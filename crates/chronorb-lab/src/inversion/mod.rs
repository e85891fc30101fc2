//! `chronorb lab inversion`: priority inversion by the architecture of an ORB.
//!
//! One client process has a thread of high priority and up to fifty of low priority, which call two
//! servants of one server process at fixed times. [`Inversion`] runs both anew for each
//! [`Architecture`], [`Mode`] and number of low-priority clients, and measures the calls of each
//! class. This is the experiment of figures 7 and 8 of "Alleviating Priority Inversion and
//! Non-determinism in Real-time CORBA ORB Core Architectures" by Schmidt, Mungee, Flores-Gaitan and
//! Gokhale (RTAS 1998), with rates and work that keep a server of today busy.
//!
//! The processes are this very program, called with the hidden command
//! [`CHILD_COMMAND`](crate::CHILD_COMMAND), or programs of omniORB. They exchange lines of JSON:
//!
//! | child | sends | receives |
//! |---|---|---|
//! | server | the references of its objects | the end of its input: shut down |
//! | sender of bulk data | that it is connected, then the octets that it has sent | as the client |
//! | client | that all its threads are connected, then the times of each call | when to call; at last, the end of its input |

mod architecture;
mod bulk;
mod claims;
mod client;
mod outcome;
mod plan;
mod report;
mod trial;

use std::time::Duration;

use chronorb_testnet::{Layout, Network};

use crate::awake::Awake;
use crate::bench::{CallScheduling, Cpus, OmniOrb, check_permitted};
use crate::error::LabError;
use crate::experiment::{Experiment, may_lock_memory, observed};
use crate::watch::Watch;
use crate::work::Speed;

pub use architecture::Architecture;
pub(crate) use bulk::{BULK, BulkLoad, bulk_main};
pub(crate) use client::{CLIENT, client_main};
pub use outcome::{Calibration, ClientClass, InversionOutcome, InversionRow};
pub use plan::{CpuPlacement, InversionPlan, InversionSeries, Mode};

pub(crate) use plan::Periods;
use plan::{BACK_TO_BACK, MOST_CLIENTS};
pub(crate) use trial::{InversionSite, InversionTrial, Measurement};

/// The experiment on priority inversion.
///
/// The program that runs it hands [`CHILD_COMMAND`](crate::CHILD_COMMAND) on to
/// [`child_main`](crate::child_main).
#[derive(Clone, Copy, Debug)]
pub struct Inversion;

impl Experiment for Inversion {
    const NAME: &'static str = "inversion";
    const TITLE: &'static str = "Priority inversion by the architecture of the ORB";
    type Plan = InversionPlan;
    type Findings = InversionOutcome;

    fn full() -> InversionPlan {
        InversionPlan::full()
    }

    fn short() -> InversionPlan {
        InversionPlan::short()
    }

    fn measure(plan: &InversionPlan) -> Result<InversionOutcome, LabError> {
        let omniorb = if plan.architectures.iter().any(|of| of.is_of_omniorb()) {
            OmniOrb::find()
        } else {
            OmniOrb::without("it was not asked for".to_owned())
        };
        let network = plan.namespaces.then(|| Network::build(&Layout::default()));
        let network = network.transpose().map_err(|source| LabError::Network {
            source,
            hint: "; without --namespaces all runs over the loopback device",
        })?;
        let site = InversionSite {
            cpus: Cpus::of_this_process()?,
            network,
            lock_memory: may_lock_memory(),
            real_time: check_permitted(CallScheduling::Fifo).is_ok(),
            omniorb: omniorb.inversion(),
        };
        let (environment, (calibrations, rows)) = observed(|| measure(plan, &site))?;
        Ok(InversionOutcome {
            plan: plan.clone(),
            environment,
            real_time: site.real_time,
            memory_locked: site.lock_memory,
            one_cpu: !site.cpus.are_several(),
            omniorb,
            calibrations,
            rows,
        })
    }
}

/// Makes all trials of a plan.
fn measure(
    plan: &InversionPlan,
    site: &InversionSite,
) -> Result<(Vec<Calibration>, Vec<InversionRow>), LabError> {
    let awake = plan.awake.then(|| Awake::on(site.cpus.iter())).transpose();
    let _awake = awake.map_err(LabError::work("keeping processors awake"))?;
    let architectures = plan.taking_part(site);
    let watch = Watch::start(Inversion::TITLE, plan.length_of(architectures.len()));
    let run = InversionRun::begin(plan, site, &watch);
    let (mut calibrations, mut rows) = (Vec::new(), Vec::new());
    for series in &plan.series {
        let mode = series.mode;
        let periods = match mode.periods() {
            Some(periods) => periods,
            None => {
                let calibration = run.calibrate(mode)?;
                calibrations.push(calibration);
                calibration.periods()
            }
        };
        // Trials that are compared follow each other.
        for low_clients in series.low_clients.iter().copied() {
            for architecture in architectures.iter().copied() {
                let trial = InversionTrial {
                    length: series.length,
                    calls: series.calls,
                    ..run.trial(architecture, mode, low_clients, periods, &mode.to_string())
                };
                let measured = run.try_one(&trial)?;
                let row = |class| run.row(&trial, class, &measured);
                rows.extend(ClientClass::ALL.map(row));
            }
        }
    }
    Ok((calibrations, rows))
}

/// The settings that the trials of a run share.
#[derive(Debug)]
pub(crate) struct InversionRun<'a> {
    plan: &'a InversionPlan,
    site: &'a InversionSite,
    watch: &'a Watch,
    /// The computing steps of a call.
    steps: u32,
    /// The threads that keep processors awake, and the server's processor, to measure how busy it
    /// is.
    pub(crate) awake: Option<(&'a Awake, usize)>,
}

impl<'a> InversionRun<'a> {
    pub(crate) fn begin(
        plan: &'a InversionPlan,
        site: &'a InversionSite,
        watch: &'a Watch,
    ) -> Self {
        Self {
            plan,
            site,
            watch,
            steps: Speed::measure().steps(plan.work),
            awake: None,
        }
    }

    /// Measures the rates of a mode for which they depend on the machine: the rate at which fifty
    /// low-priority clients keep a processor as busy as planned, with the real-time architecture.
    ///
    /// If client and server have one processor each, the busier one counts, otherwise their sum.
    pub(crate) fn calibrate(&self, mode: Mode) -> Result<Calibration, LabError> {
        let architecture = Architecture::RealTime;
        let trial = InversionTrial {
            length: self.plan.calibration,
            ..self.trial(
                architecture,
                mode,
                MOST_CLIENTS,
                BACK_TO_BACK,
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
        let request = match self.plan.place_in(mode) {
            CpuPlacement::Apart => server.max(client),
            CpuPlacement::Together | CpuPlacement::Free => server + client,
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

    pub(crate) fn trial(
        &self,
        architecture: Architecture,
        mode: Mode,
        low_clients: u32,
        periods: Periods,
        name: &str,
    ) -> InversionTrial {
        InversionTrial {
            architecture,
            mode,
            name: format!("{architecture}, {name}, {}", report::clients(low_clients)),
            low_clients,
            periods,
            length: Duration::ZERO,
            calls: 0,
            options: Vec::new(),
            bulk: None,
            trace_marker: None,
        }
    }

    /// Returns the computing time of a call in a mode.
    fn work(&self, mode: Mode) -> Duration {
        let works = mode.settings().works;
        if works {
            self.plan.work
        } else {
            Duration::ZERO
        }
    }

    /// Returns the row of a class of clients in a trial.
    fn row(
        &self,
        trial: &InversionTrial,
        class: ClientClass,
        measured: &Measurement,
    ) -> InversionRow {
        let period = match class {
            ClientClass::High => trial.periods.high,
            ClientClass::Low => trial.periods.low,
        };
        let calls = measured.calls(class);
        let from_call = calls.from_call.summary();
        InversionRow {
            architecture: trial.architecture,
            mode: trial.mode,
            place: self.plan.place_in(trial.mode),
            low_clients: trial.low_clients,
            class,
            latency: calls.from_due.summary(),
            call_mean_us: from_call.mean_us,
            call_jitter_us: from_call.jitter_us,
            call_p99_us: from_call.p99_us,
            call_max_us: from_call.max_us,
            period_us: micros(period),
            work_us: micros(self.work(trial.mode)),
            server_cpu_percent: measured.server_cpu_percent,
            client_cpu_percent: measured.client_cpu_percent,
            stolen_percent: measured.stolen_percent,
        }
    }
}

fn micros(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e8).round() / 1e2
}
