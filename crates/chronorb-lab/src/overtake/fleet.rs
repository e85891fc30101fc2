//! The processes of the experiment, and the course of one case.

use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic, sleep_until};

use super::case::{Case, Pool, Strategy};
use super::client::{
    CLIENT, ClientOrder, HIGH, LOW, Loads, MIDDLE, Measured, Prepare, Role, Start,
};
use super::plan::{HIGH_THREADS, Plan};
use crate::bench::{
    Model, ObjectSpec, PoolSpec, SERVER, ServantSpec, ServerSpec, Serving, real_time_options,
};
use crate::environment::ProcessorTime;
use crate::error::LabError;
use crate::process::{Child, Ready};
use crate::stats::Record;
use crate::watch::Watch;
use crate::work::Speed;

/// A server by each strategy, and the clients that call whichever they are told.
#[derive(Debug)]
pub(super) struct OvertakeFleet {
    plan: Plan,
    servers: Vec<(Strategy, Child, Serving)>,
    high: Child,
    loaders: Vec<(Role, Child)>,
}

/// What came of one series of calls in one case.
#[derive(Debug)]
pub(super) struct SpanOutcome {
    pub(super) calls: Record,
    pub(super) busy_percent: f64,
    pub(super) stolen_percent: f64,
    pub(super) refused: u64,
    /// Nothing where the middle lane had no work.
    pub(super) middle_longest_stop_us: Option<u32>,
}

/// What came of a case: an outcome for each series.
#[derive(Debug)]
pub(super) struct CaseOutcome {
    pub(super) spans: [SpanOutcome; 2],
    /// Whether the measuring client ran at a real-time priority.
    pub(super) real_time: bool,
}

impl OvertakeFleet {
    /// Starts all processes.
    pub(super) fn start(plan: &Plan, lock_memory: bool) -> Result<Self, LabError> {
        let servers = Strategy::ALL
            .map(|strategy| {
                let spec = server_spec(plan, strategy, lock_memory);
                let name = format!("{} server", strategy.title());
                let (server, serving) = Child::start(name, SERVER, &spec)?;
                Ok((strategy, server, serving))
            })
            .into_iter()
            .collect::<Result<Vec<_>, LabError>>()?;
        let high_steps = Speed::measure().steps(plan.high_work);
        let client = |name: &str, role| {
            let order = ClientOrder {
                role,
                // The stacks of many threads would have to be locked too, and no call of theirs is
                // measured.
                lock_memory: lock_memory && role == Role::High,
                plan: plan.clone(),
                high_steps,
            };
            Child::launch(name, CLIENT, &order)
        };
        Ok(Self {
            plan: plan.clone(),
            servers,
            high: client("high-priority client", Role::High)?,
            loaders: [
                ("client with slow calls", Role::Slow),
                ("middle-priority client", Role::Middle),
                ("low-priority client", Role::Low),
                ("client that keeps processors awake", Role::Awake),
            ]
            .into_iter()
            .map(|(name, role)| Ok((role, client(name, role)?)))
            .collect::<Result<_, LabError>>()?,
        })
    }

    /// Runs one case.
    pub(super) fn run(
        &mut self,
        strategy: Strategy,
        case: Case,
        watch: &Watch,
    ) -> Result<CaseOutcome, LabError> {
        let callers = |role| match role {
            Role::High => 1,
            Role::Slow => self.plan.exhausting_callers(case.load),
            Role::Middle | Role::Low => self.plan.saturating_callers(case.load),
            Role::Awake => self.plan.waking_threads(case.load),
        };
        let reference = self
            .servers
            .iter()
            .filter(|(of, ..)| *of == strategy)
            .find_map(|(.., serving)| serving.get(&object_name(case.pool)).cloned())
            .ok_or_else(|| LabError::work("finding the object")("there is no such pool"))?;
        let mut loaders: Vec<_> = self
            .loaders
            .iter_mut()
            .filter(|(role, _)| callers(*role) > 0)
            .collect();

        let connected = Deadline::after(START_UP);
        let prepare = |child: &mut Child, callers| {
            child.tell(&Some(Prepare {
                reference: reference.clone(),
                callers,
            }))?;
            let Ready {} = child.hear(connected)?;
            Ok::<_, LabError>(())
        };
        for (role, child) in &mut loaders {
            prepare(child, callers(*role))?;
        }
        prepare(&mut self.high, callers(Role::High))?;

        let at = Monotonic::now() + LEAD;
        let start = Start {
            at_ns: at.as_nanos(),
        };
        for (_, child) in &mut loaders {
            child.tell(&start)?;
        }
        self.high.tell(&start)?;

        let spans = self.plan.spans(at);
        let mut wait_until = |instant: Monotonic| {
            while Monotonic::now() < instant {
                sleep_until(instant.min(Monotonic::now() + TICK));
                watch.tick();
                self.high.check()?;
                loaders
                    .iter_mut()
                    .try_for_each(|(_, child)| child.check())?;
            }
            Ok::<_, LabError>(ProcessorTime::now())
        };
        let mut processors = Vec::new();
        for span in &spans {
            let before = wait_until(span.window.start)?;
            processors.push((before, wait_until(span.window.start + span.window.length)?));
        }

        let end = Deadline::at(at + self.plan.case_length() + WIND_DOWN);
        let Measured {
            spans: calls,
            real_time,
        } = self.high.hear(end)?;
        let mut loads = Loads::default();
        let mut middle = [None; 2];
        for (role, child) in loaders {
            let of_child: Loads = child.hear(end)?;
            loads = [loads[0].and(of_child[0]), loads[1].and(of_child[1])];
            if *role == Role::Middle {
                middle = of_child.map(|load| Some(load.longest_stop_us));
            }
        }
        let mut outcomes = calls.into_iter().enumerate().map(|(index, calls)| {
            let (before, after) = processors[index];
            SpanOutcome {
                calls,
                busy_percent: before.busy_percent(after),
                stolen_percent: before.stolen_percent(after),
                refused: loads[index].refused,
                middle_longest_stop_us: middle[index],
            }
        });
        let spans = [outcomes.next(), outcomes.next()];
        Ok(CaseOutcome {
            spans: spans.map(|span| span.expect("there are two series")),
            real_time,
        })
    }

    /// Ends all processes.
    pub(super) fn stop(self) -> Result<(), LabError> {
        let end = Deadline::after(WIND_DOWN);
        let clients = self.loaders.into_iter().map(|(_, child)| child);
        for client in clients.chain([self.high]) {
            client.dismiss(end)?;
        }
        for (_, server, _) in self.servers {
            server.stop(end)?;
        }
        Ok(())
    }
}

/// Returns the server by a strategy: four thread pools, and an object on each.
fn server_spec(plan: &Plan, strategy: Strategy, lock_memory: bool) -> ServerSpec {
    let mut options = real_time_options(lock_memory);
    options.extend(["-ORBThreadpoolStrategy", strategy.option()].map(str::to_owned));
    let lower = plan.lower_threads;
    let pool = |pool| match pool {
        Pool::NoLanes => PoolSpec::Shared {
            priority: LOW,
            threads: plan.threads(),
        },
        _ => PoolSpec::Lanes {
            lanes: vec![(LOW, lower), (MIDDLE, lower), (HIGH, HIGH_THREADS)],
            allow_borrowing: pool == Pool::Borrowing,
            buffered: (pool == Pool::Buffering).then(|| plan.buffered()),
        },
    };
    let object = |(index, pool)| ObjectSpec {
        name: object_name(pool),
        pool: Some((index, Model::Propagated(LOW))),
        servant: ServantSpec::Work,
    };
    ServerSpec {
        options,
        pools: Pool::ALL.map(pool).to_vec(),
        objects: Pool::ALL.into_iter().enumerate().map(object).collect(),
    }
}

/// Returns the name of the object on a pool.
fn object_name(pool: Pool) -> String {
    format!("{pool:?}")
}

/// How long processes may take to start, and clients to connect.
const START_UP: Duration = Duration::from_secs(20);
/// From the last client's connection to the start.
const LEAD: Duration = Duration::from_millis(50);
/// How long clients may take to answer, and servers to shut down, after the end.
const WIND_DOWN: Duration = Duration::from_secs(20);
const TICK: Duration = Duration::from_millis(200);
