//! The processes for a number of threads: a server of each strategy, and a client for each.

use std::time::Duration;

use chronorb_rt::Deadline;

use super::Strategy;
use super::case::PoolCell;
use super::client::{CLIENT, PoolClientOrder, RequestBatch, Terms};
use super::outcome::PoolTrial;
use super::plan::ThreadPoolsPlan;
use crate::bench::{Cpus, Model, OBJECT, PoolSpec, SERVER, ServerSpec, Serving, real_time_options};
use crate::error::LabError;
use crate::process::{Begin, Child, Ready};
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
        let (server, serving): (_, Serving) = Child::start(&name, SERVER, &spec)?;
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

/// The time that requests may take besides their work: about a hundred times their usual time.
const PATIENCE: Duration = Duration::from_secs(120);
/// The time that processes may take to end.
const WIND_DOWN: Duration = Duration::from_secs(20);
