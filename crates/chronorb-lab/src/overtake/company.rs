//! The processes of the experiment, and the course of one case.

use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic, sleep_until};

use super::case::{Case, Strategy};
use super::order::{
    ClientOrder, Fare, Loaded, Measured, Prepare, Ready, Role, ServerOrder, Serving, Start,
};
use super::plan::Plan;
use super::{CLIENT_COMMAND, SERVER_COMMAND};
use crate::environment::ProcessorTime;
use crate::error::LabError;
use crate::process::Child;
use crate::stats::Record;
use crate::work::Speed;

/// A server by each strategy, and the clients that call whichever they are told.
#[derive(Debug)]
pub(super) struct Company {
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

impl Company {
    /// Starts all processes.
    pub(super) fn start(plan: &Plan, lock_memory: bool) -> Result<Self, LabError> {
        let up = Deadline::after(START_UP);
        let servers = Strategy::ALL
            .map(|strategy| {
                let order = ServerOrder {
                    strategy,
                    lock_memory,
                    plan: plan.clone(),
                };
                let name = format!("{} server", strategy.title());
                let mut server = Child::start(name, SERVER_COMMAND, &order)?;
                let serving = server.hear(up)?;
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
            Child::start(name, CLIENT_COMMAND, &order)
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

    /// Runs one case; calls `tick` now and then.
    pub(super) fn run(
        &mut self,
        strategy: Strategy,
        case: Case,
        mut tick: impl FnMut(),
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
            .flat_map(|(.., serving)| &serving.references)
            .find(|(pool, _)| *pool == case.pool)
            .map(|(_, reference)| reference.clone())
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
                tick();
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
        let mut fares = [Fare::default(); 2];
        let mut middle = [None; 2];
        for (role, child) in loaders {
            let Loaded { spans } = child.hear(end)?;
            fares = [fares[0].and(spans[0]), fares[1].and(spans[1])];
            if *role == Role::Middle {
                middle = spans.map(|fare| Some(fare.longest_stop_us));
            }
        }
        let mut outcomes = calls.into_iter().enumerate().map(|(index, calls)| {
            let (before, after) = processors[index];
            SpanOutcome {
                calls,
                busy_percent: before.busy_percent(after),
                stolen_percent: before.stolen_percent(after),
                refused: fares[index].refused,
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
        for mut client in clients.chain([self.high]) {
            client.tell(&None::<Prepare>)?;
            client.finish(end)?;
        }
        for (_, server, _) in self.servers {
            server.stop(end)?;
        }
        Ok(())
    }
}

/// How long processes may take to start, and clients to connect.
const START_UP: Duration = Duration::from_secs(20);
/// From the last client's connection to the start.
const LEAD: Duration = Duration::from_millis(50);
/// How long clients may take to answer, and servers to shut down, after the end.
const WIND_DOWN: Duration = Duration::from_secs(20);
const TICK: Duration = Duration::from_millis(200);
