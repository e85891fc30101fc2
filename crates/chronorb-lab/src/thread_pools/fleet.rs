//! The processes for a number of threads: a server of each strategy, and a client for each, whose
//! threads call again as soon as they are answered.

use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic};

use super::Strategy;
use super::outcome::PoolTrial;
use super::plan::{PoolCell, ThreadPoolsPlan};
use crate::bench::{
    CLIENT, ClientSpec, Cpus, MeasuredCalls, Model, OBJECT, ObjectReferences, Pace, PacedRun,
    PoolSpec, SERVER, ServerSpec, real_time_options,
};
use crate::error::LabError;
use crate::process::{Child, Ready};
use crate::usage;

/// A server with a thread pool of one strategy, and its client.
#[derive(Debug)]
pub(super) struct StrategyFleet<'a> {
    strategy: Strategy,
    plan: &'a ThreadPoolsPlan,
    server: Child,
    client: Child,
}

impl<'a> StrategyFleet<'a> {
    /// Starts both processes, and places them.
    pub(super) fn start(
        strategy: Strategy,
        plan: &'a ThreadPoolsPlan,
        threads: u32,
        cpus: &Cpus,
        terms: Terms,
    ) -> Result<Self, LabError> {
        let mut options = real_time_options(terms.lock_memory);
        options.extend(["-ORBThreadpoolStrategy", strategy.option()].map(str::to_owned));
        let priority = terms.priority();
        let lane = PoolSpec::lanes([(priority, threads)]);
        let spec = ServerSpec::of_work(options, lane, Model::Declared(priority));
        let name = format!("{} server", strategy.title());
        let (server, serving): (_, ObjectReferences) = Child::start(&name, SERVER, &spec)?;
        let client = ClientSpec {
            options: real_time_options(terms.lock_memory),
            reference: serving[OBJECT].clone(),
            threads: vec![Some(priority); plan.callers as usize],
            warm_up: 1,
            server: None,
        };
        let name = format!("client of the {name}");
        let (client, Ready {}) = Child::start(name, CLIENT, &client)?;
        cpus.place(plan.place.placement(), client.id(), server.id())?;
        Ok(Self {
            strategy,
            plan,
            server,
            client,
        })
    }

    /// Warms up, and measures the requests of a cell, with so many steps of work in each.
    pub(super) fn run(
        &mut self,
        cell: PoolCell,
        steps: u32,
        round: u32,
    ) -> Result<PoolTrial, LabError> {
        let plan = self.plan;
        self.make(plan.warm_up, steps, cell)?;
        let before = usage::of(self.server.id());
        let elapsed_ns = self.make(plan.requests, steps, cell)?;
        let used = usage::of(self.server.id()).since(before);
        Ok(PoolTrial {
            cell,
            strategy: self.strategy,
            round,
            requests: plan.requests,
            elapsed_ms: elapsed_ns as f64 / 1e6,
            server_cpu_ms: used.cpu_ns as f64 / 1e6,
            server_context_switches: used.switches,
        })
    }

    /// Has all threads make so many requests together. Returns their time in ns.
    fn make(&mut self, requests: u32, steps: u32, cell: PoolCell) -> Result<u64, LabError> {
        let paces = vec![Pace::Together(requests); self.plan.callers as usize];
        let start = Monotonic::now() + LEAD;
        self.client
            .tell(&Some(PacedRun::new(start, Duration::ZERO, &paces, steps)))?;
        let end = Deadline::after(PATIENCE + cell.work() * requests * 2);
        let measured: MeasuredCalls = self.client.hear(end)?;
        Ok(measured.elapsed_ns)
    }

    /// Ends both processes.
    pub(super) fn stop(self) -> Result<(), LabError> {
        let end = Deadline::after(WIND_DOWN);
        self.client.dismiss(end)?;
        Ok(self.server.stop(end)?)
    }
}

/// The rights that the processes of a run use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// Whether memory may be locked without limit, and is.
    pub(super) lock_memory: bool,
    /// Whether the threads that call and serve have a real-time priority.
    pub(super) real_time: bool,
}

impl Terms {
    /// Returns the priority of the threads that call and serve.
    pub(super) const fn priority(self) -> i16 {
        if self.real_time { REAL_TIME } else { 0 }
    }
}

const REAL_TIME: i16 = 8_000;
/// The time that requests may take besides their work: about a hundred times their usual time.
const PATIENCE: Duration = Duration::from_secs(120);
/// The time that processes may take to end.
const WIND_DOWN: Duration = Duration::from_secs(20);
/// The time in which all threads of the client get an order.
const LEAD: Duration = Duration::from_millis(2);
