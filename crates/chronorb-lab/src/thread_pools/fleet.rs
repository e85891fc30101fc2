//! The processes for a number of threads: a server of each strategy, and a client for each, whose
//! threads call again as soon as they are answered.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic};
use serde::{Deserialize, Serialize};

use super::Strategy;
use super::outcome::PoolTrial;
use super::plan::{PoolCell, ThreadPoolsPlan};
use crate::bench::work::{self, find};
use crate::bench::{
    Cpus, Model, OBJECT, ObjectReferences, PoolSpec, SERVER, ServerSpec, elapsed_ns, priority,
    real_time_options, start_orb, with_callers,
};
use crate::error::LabError;
use crate::idl::lab::Work;
use crate::process::{self, Begin, Child, Parent, Ready};
use crate::usage;

/// A server with a thread pool of one strategy, and its client.
#[derive(Debug)]
pub(super) struct StrategyFleet {
    strategy: Strategy,
    server: Child,
    client: Child,
}

impl StrategyFleet {
    /// Starts both processes, and places them.
    pub(super) fn start(
        strategy: Strategy,
        plan: &ThreadPoolsPlan,
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
        let order = PoolClientOrder {
            reference: serving[OBJECT].clone(),
            callers: plan.callers,
            terms,
        };
        let name = format!("client of the {name}");
        let (client, Ready {}) = Child::start(name, CLIENT, &order)?;
        cpus.place(plan.place.placement(), client.id(), server.id())?;
        Ok(Self {
            strategy,
            server,
            client,
        })
    }

    /// Measures a batch of requests.
    pub(super) fn run(
        &mut self,
        batch: RequestBatch,
        cell: PoolCell,
        round: u32,
    ) -> Result<PoolTrial, LabError> {
        let end = Deadline::after(PATIENCE + cell.work() * (batch.requests + batch.warm_up) * 2);
        self.client.tell(&Some(batch))?;
        let Ready {} = self.client.hear(end)?;
        let before = usage::of(self.server.id());
        self.client.tell(&Begin {})?;
        let elapsed_ns: u64 = self.client.hear(end)?;
        let used = usage::of(self.server.id()).since(before);
        Ok(PoolTrial {
            cell,
            strategy: self.strategy,
            round,
            requests: batch.requests,
            elapsed_ms: elapsed_ns as f64 / 1e6,
            server_cpu_ms: used.cpu_ns as f64 / 1e6,
            server_context_switches: used.switches,
        })
    }

    /// Ends both processes.
    pub(super) fn stop(self) -> Result<(), LabError> {
        let end = Deadline::after(WIND_DOWN);
        self.client.dismiss(end)?;
        Ok(self.server.stop(end)?)
    }
}

/// The rights that the processes of a run use.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
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

/// The order of a client.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct PoolClientOrder {
    /// The object that it calls.
    pub(super) reference: String,
    /// The number of threads that call.
    pub(super) callers: u32,
    pub(super) terms: Terms,
}

/// Requests that all threads of a client make together.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct RequestBatch {
    /// The number of requests that are not counted, before those that are.
    pub(super) warm_up: u32,
    /// The number of requests that are counted.
    pub(super) requests: u32,
    /// The steps of work in each.
    pub(super) steps: u32,
}

/// Runs the client: for each batch it warms up, waits for the parent, makes the requests, and tells
/// the parent their time in ns.
///
/// # Errors
/// [`LabError::Process`] when the order cannot be read, [`LabError::Work`] when a call fails.
pub(crate) fn client_main(order: &str) -> Result<(), LabError> {
    let order: PoolClientOrder = process::order(order)?;
    let parent = Parent::or_exit();
    let orb = start_orb(&real_time_options(order.terms.lock_memory))?;
    let callers = order.callers as usize;
    let left = AtomicU32::new(0);
    let start = Barrier::new(callers);
    let connect = |_| {
        let priority = priority(order.terms.priority());
        let work = find(&orb, Some(priority), &order.reference)?;
        work::call(&work, 3, 0)?;
        Ok(work)
    };
    let run = |work: &mut Work, _: usize, steps: &u32| {
        start.wait();
        let first = Monotonic::now();
        let take = |left: u32| left.checked_sub(1);
        // All threads end together, because a faster thread takes more of the requests.
        while let Ok(turn) = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            work::call(work, turn as u8, *steps)?;
        }
        Ok((first, Monotonic::now()))
    };
    with_callers(callers, connect, run, |callers| {
        let make = |requests, steps| {
            left.store(requests, Ordering::Relaxed);
            Ok::<_, LabError>(elapsed_ns(&callers.run(&steps)?))
        };
        process::tell(&Ready {})?;
        while let Some(batch) = parent.hear::<Option<RequestBatch>>()? {
            make(batch.warm_up, batch.steps)?;
            process::tell(&Ready {})?;
            let Begin {} = parent.hear()?;
            process::tell(&make(batch.requests, batch.steps)?)?;
        }
        Ok(())
    })
}

/// The part of a process that is a client of this experiment.
pub(crate) const CLIENT: &str = "thread-pools-client";
const REAL_TIME: i16 = 8_000;
/// The time that requests may take besides their work: about a hundred times their usual time.
const PATIENCE: Duration = Duration::from_secs(120);
/// The time that processes may take to end.
const WIND_DOWN: Duration = Duration::from_secs(20);
