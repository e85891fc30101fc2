//! The processes of a number of threads: a server by each strategy, and a client for each.

use std::time::Duration;

use chronorb_rt::Deadline;

use super::Strategy;
use super::case::Cell;
use super::client::{Batch, CLIENT, ClientOrder, Terms, Took};
use super::outcome::Trial;
use super::plan::Plan;
use crate::bench::{Cpus, Model, OBJECT, PoolSpec, SERVER, ServerSpec, Serving, real_time_options};
use crate::error::LabError;
use crate::process::{Begin, Child, Ready};
use crate::usage;

/// A server by each strategy, all of as many threads, each with a client of its own.
#[derive(Debug)]
pub(super) struct StrategyFleet {
    pairs: Vec<Pair>,
}

#[derive(Debug)]
struct Pair {
    strategy: Strategy,
    server: Child,
    client: Child,
}

impl StrategyFleet {
    /// Starts all processes, and puts them in their places.
    pub(super) fn start(
        plan: &Plan,
        threads: u32,
        cpus: &Cpus,
        terms: Terms,
    ) -> Result<Self, LabError> {
        let pairs = Strategy::ALL.map(|strategy| {
            let mut options = real_time_options(terms.lock_memory);
            options.extend(["-ORBThreadpoolStrategy", strategy.option()].map(str::to_owned));
            let priority = terms.priority();
            let lane = PoolSpec::lanes([(priority, threads)]);
            let spec = ServerSpec::of_work(options, lane, Model::Declared(priority));
            let name = format!("{} server", strategy.title());
            let (server, serving): (_, Serving) = Child::start(name, SERVER, &spec)?;
            let order = ClientOrder {
                reference: serving[OBJECT].clone(),
                callers: plan.callers,
                terms,
            };
            let name = format!("client of the {} server", strategy.title());
            let (client, Ready {}) = Child::start(name, CLIENT, &order)?;
            cpus.place(plan.place.placement(), client.id(), server.id())?;
            Ok(Pair {
                strategy,
                server,
                client,
            })
        });
        let pairs = pairs.into_iter().collect::<Result<_, LabError>>()?;
        Ok(Self { pairs })
    }

    /// Measures a strategy.
    pub(super) fn run(
        &mut self,
        strategy: Strategy,
        batch: Batch,
        cell: Cell,
        round: u32,
    ) -> Result<Trial, LabError> {
        let pair = self.pairs.iter_mut().find(|pair| pair.strategy == strategy);
        let pair = pair.ok_or_else(|| LabError::work("measuring")("there is no server"))?;
        let end = Deadline::after(PATIENCE + cell.work() * (batch.requests + batch.warm_up) * 2);
        pair.client.tell(&Some(batch))?;
        let Ready {} = pair.client.hear(end)?;
        let before = usage::of(pair.server.id());
        pair.client.tell(&Begin {})?;
        let Took { elapsed_ns } = pair.client.hear(end)?;
        let used = usage::of(pair.server.id()).since(before);
        Ok(Trial {
            cell,
            strategy,
            round,
            requests: batch.requests,
            elapsed_ms: elapsed_ns as f64 / 1e6,
            server_cpu_ms: used.cpu_ns as f64 / 1e6,
            server_context_switches: used.switches,
        })
    }

    /// Ends all processes.
    pub(super) fn stop(self) -> Result<(), LabError> {
        let end = Deadline::after(WIND_DOWN);
        for Pair { server, client, .. } in self.pairs {
            client.dismiss(end)?;
            server.stop(end)?;
        }
        Ok(())
    }
}

/// How long requests may take, besides their work: about a hundred times what they do.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long processes may take to end.
const WIND_DOWN: Duration = Duration::from_secs(20);
