//! The processes of the experiment, and the course of one case.

use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic, sleep_until};

use super::case::{CallSeries, OvertakeCase, OvertakePool, OvertakeTrial, Strategy};
use super::outcome::OvertakeRow;
use super::plan::{HIGH_THREADS, OvertakePlan};
use crate::awake::Awake;
use crate::bench::{
    CLIENT, ClientSpec, Cpus, MeasuredCalls, Model, ObjectReferences, ObjectSpec, Pace, PacedRun,
    PoolSpec, SERVER, ServantSpec, ServerSpec, real_time_options,
};
use crate::environment::ProcessorTime;
use crate::error::LabError;
use crate::process::{Child, Ready};
use crate::stats::Record;
use crate::watch::Watch;
use crate::work::Speed;

/// A server by each strategy, with the settings of the clients that are started for each case.
#[derive(Debug)]
pub(super) struct OvertakeFleet<'a> {
    plan: &'a OvertakePlan,
    servers: Vec<(Strategy, Child, ObjectReferences)>,
    cpus: Cpus,
    lock_memory: bool,
    /// The computing steps of a measured call.
    high_steps: u32,
}

/// One series of calls in one case.
#[derive(Debug)]
pub(super) struct SeriesOutcome {
    pub(super) row: OvertakeRow,
    pub(super) calls: Record,
    /// Whether the measuring client ran at a real-time priority.
    pub(super) real_time: bool,
}

/// The clients of one case.
struct CaseClients {
    /// The client whose calls are measured.
    high: Child,
    /// The clients of the load, with their priorities and the paces of their threads.
    loaders: Vec<(i16, Vec<Pace>, Child)>,
}

impl<'a> OvertakeFleet<'a> {
    /// Starts the servers.
    pub(super) fn start(plan: &'a OvertakePlan, lock_memory: bool) -> Result<Self, LabError> {
        let servers = Strategy::ALL.into_iter().map(|strategy| {
            let spec = server_spec(plan, strategy, lock_memory);
            let name = format!("{} server", strategy.title());
            let (server, serving) = Child::start(name, SERVER, &spec)?;
            Ok((strategy, server, serving))
        });
        Ok(Self {
            plan,
            servers: servers.collect::<Result<_, LabError>>()?,
            cpus: Cpus::of_this_process()?,
            lock_memory,
            high_steps: Speed::measure().steps(plan.high_work),
        })
    }

    /// Runs one case: both series of calls.
    pub(super) fn run(
        &self,
        strategy: Strategy,
        case: OvertakeCase,
        round: u32,
        watch: &Watch,
    ) -> Result<Vec<SeriesOutcome>, LabError> {
        let servers = self.servers.iter();
        let mut serving = servers.filter(|(of, ..)| *of == strategy);
        let reference = serving.find_map(|(.., serving)| serving.get(&object_name(case.pool)));
        let reference = reference
            .ok_or_else(|| LabError::work("finding the object")("there is no such pool"))?;
        let mut clients = self.start_clients(case, reference)?;
        let awake = case.load.wakes();
        let awake = awake.then(|| Awake::competing_on(self.cpus.iter()));
        let awake = awake.transpose();
        let awake = awake.map_err(LabError::work("keeping processors awake"))?;
        let series = CallSeries::ALL.into_iter().map(|series| {
            let trial = OvertakeTrial::new(strategy, case, series);
            self.measure(trial, round, &mut clients, watch)
        });
        let outcomes = series.collect::<Result<_, _>>()?;
        drop(awake);
        let end = Deadline::after(WIND_DOWN);
        let loaders = clients.loaders.into_iter().map(|(.., child)| child);
        for client in loaders.chain([clients.high]) {
            client.dismiss(end)?;
        }
        Ok(outcomes)
    }

    /// Starts the clients of a case; all are connected when this returns.
    fn start_clients(&self, case: OvertakeCase, reference: &str) -> Result<CaseClients, LabError> {
        let plan = self.plan;
        let endless = |rest| Pace::Endless {
            compute: plan.middle_compute,
            rest,
        };
        let slow = Pace::Occupy(plan.slow_work);
        let (exhausts, saturates) = (case.load.exhausts(), case.load.saturates());
        let many = plan.saturating_callers();
        let loads = [
            ("slow", exhausts, HIGH, plan.slow_callers, slow),
            ("middle", saturates, MIDDLE, many, endless(plan.middle_rest)),
            ("low", saturates, LOW, many, endless(Duration::ZERO)),
        ];
        let start = |name, priority, threads: u32, lock_memory, warm_up| {
            let spec = ClientSpec {
                options: real_time_options(lock_memory),
                reference: reference.to_owned(),
                threads: vec![Some(priority); threads as usize],
                warm_up,
                server: None,
            };
            let (child, Ready {}) = Child::start(format!("{name} client"), CLIENT, &spec)?;
            Ok::<_, LabError>(child)
        };
        let wanted = loads.into_iter().filter(|(_, is_wanted, ..)| *is_wanted);
        let loaders = wanted.map(|(name, _, priority, threads, pace)| {
            let child = start(name, priority, threads, false, 1)?;
            Ok((priority, vec![pace; threads as usize], child))
        });
        let loaders = loaders.collect::<Result<_, LabError>>()?;
        // Only this client locks its memory: no call of the others is measured, and the stacks of
        // their many threads would have to be locked too.
        let high = start("high-priority", HIGH, 1, self.lock_memory, WARM_UP_CALLS)?;
        Ok(CaseClients { high, loaders })
    }

    /// Measures one series of calls while the load is on.
    fn measure(
        &self,
        trial: OvertakeTrial,
        round: u32,
        clients: &mut CaseClients,
        watch: &Watch,
    ) -> Result<SeriesOutcome, LabError> {
        let plan = self.plan;
        let (pace, length) = match trial.series {
            CallSeries::Periodic => (Pace::CallEvery(plan.period), plan.periodic),
            CallSeries::BackToBack => (Pace::BackToBack, plan.back_to_back),
        };
        let load_from = Monotonic::now() + LEAD;
        let start = load_from + plan.settle;
        let end = start + length;
        let CaseClients { high, loaders } = clients;
        for (_, paces, loader) in loaders.iter_mut() {
            let span = plan.settle + length + TAIL;
            loader.tell(&Some(PacedRun::new(load_from, span, paces, 0)))?;
        }
        let run = PacedRun::new(start, length, &[pace], self.high_steps);
        high.tell(&Some(run))?;
        let mut wait_until = |instant: Monotonic| {
            while Monotonic::now() < instant {
                sleep_until(instant.min(Monotonic::now() + TICK));
                watch.tick();
                high.check()?;
                loaders
                    .iter_mut()
                    .try_for_each(|(.., child)| child.check())?;
            }
            Ok::<_, LabError>(ProcessorTime::now())
        };
        let before = wait_until(start)?;
        let after = wait_until(end)?;
        let patience = Deadline::at(end + WIND_DOWN);
        let measured: MeasuredCalls = high.hear(patience)?;
        let (mut refused_requests, mut middle_longest_stop_us) = (0, None);
        for (priority, _, loader) in loaders {
            let load: MeasuredCalls = loader.hear(patience)?;
            refused_requests += load.refused;
            if *priority == MIDDLE {
                middle_longest_stop_us = Some(load.longest_stop_us);
            }
        }
        let mut calls = Record::new();
        measured.calls.iter().for_each(|of| calls.merge(of));
        Ok(SeriesOutcome {
            row: OvertakeRow {
                trial,
                round,
                latency: calls.summary(),
                cpu_busy_percent: before.busy_percent(after),
                cpu_stolen_percent: before.stolen_percent(after),
                refused_requests,
                middle_longest_stop_us,
            },
            calls,
            real_time: measured.real_time,
        })
    }

    /// Ends the servers.
    pub(super) fn stop(self) -> Result<(), LabError> {
        let end = Deadline::after(WIND_DOWN);
        for (_, server, _) in self.servers {
            server.stop(end)?;
        }
        Ok(())
    }
}

/// Returns the server by a strategy: four thread pools, and an object on each.
fn server_spec(plan: &OvertakePlan, strategy: Strategy, lock_memory: bool) -> ServerSpec {
    let mut options = real_time_options(lock_memory);
    options.extend(["-ORBThreadpoolStrategy", strategy.option()].map(str::to_owned));
    let lower = plan.lower_threads;
    let pool = |pool| match pool {
        OvertakePool::NoLanes => PoolSpec::Shared {
            priority: LOW,
            threads: plan.threads(),
        },
        _ => PoolSpec::Lanes {
            lanes: vec![(LOW, lower), (MIDDLE, lower), (HIGH, HIGH_THREADS)],
            allow_borrowing: pool == OvertakePool::Borrowing,
            buffered: (pool == OvertakePool::Buffering).then(|| plan.buffered()),
        },
    };
    let object = |(index, pool)| ObjectSpec {
        name: object_name(pool),
        pool: Some((index, Model::Propagated(LOW))),
        servant: ServantSpec::Work,
    };
    let pools = OvertakePool::ALL;
    ServerSpec {
        options,
        pools: pools.map(pool).to_vec(),
        objects: pools.into_iter().enumerate().map(object).collect(),
        trace_marker: None,
    }
}

/// Returns the name of the object on a pool.
fn object_name(pool: OvertakePool) -> String {
    format!("{pool:?}")
}

/// Real-time priorities of Linux, where they may be used.
const HIGH: i16 = 24_000;
const MIDDLE: i16 = 8_000;
/// Ordinary scheduling, which has the time that the other priorities leave.
const LOW: i16 = 0;
/// The calls of high priority that are not measured.
const WARM_UP_CALLS: u32 = 100;
/// The time from the order to the start of the load.
const LEAD: Duration = Duration::from_millis(50);
/// The time for which the load continues after the last measured call.
const TAIL: Duration = Duration::from_millis(20);
/// The time that clients may take to answer, and processes to end.
const WIND_DOWN: Duration = Duration::from_secs(20);
const TICK: Duration = Duration::from_millis(200);
