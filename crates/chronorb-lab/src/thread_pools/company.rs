//! The processes of a number of threads: a server by each strategy, and a client for each.

use std::time::Duration;

use chronorb_rt::Deadline;

use super::case::Cell;
use super::order::{Batch, ClientOrder, Go, Ready, ServerOrder, Serving, Terms, Took};
use super::outcome::Trial;
use super::plan::Plan;
use super::usage::Used;
use super::{CLIENT_COMMAND, SERVER_COMMAND, Strategy};
use crate::contest::Cpus;
use crate::error::LabError;
use crate::process::Child;

/// A server by each strategy, all of as many threads, each with a client of its own.
#[derive(Debug)]
pub(super) struct Company {
    pairs: Vec<Pair>,
}

#[derive(Debug)]
struct Pair {
    strategy: Strategy,
    server: Child,
    client: Child,
}

impl Company {
    /// Starts all processes, and puts them in their places.
    pub(super) fn start(
        plan: &Plan,
        threads: u32,
        cpus: &Cpus,
        terms: Terms,
    ) -> Result<Self, LabError> {
        let up = Deadline::after(START_UP);
        let pairs = Strategy::ALL.map(|strategy| {
            let order = ServerOrder {
                strategy,
                threads,
                terms,
            };
            let name = format!("{} server", strategy.title());
            let mut server = Child::start(name, SERVER_COMMAND, &order)?;
            let Serving { reference } = server.hear(up)?;
            let order = ClientOrder {
                reference,
                callers: plan.callers,
                terms,
            };
            let name = format!("client of the {} server", strategy.title());
            let mut client = Child::start(name, CLIENT_COMMAND, &order)?;
            let Ready {} = client.hear(up)?;
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
        let used = |server: &Child| {
            Used::by(server.id()).map_err(LabError::work("asking what the server used"))
        };
        let before = used(&pair.server)?;
        pair.client.tell(&Go {})?;
        let Took { elapsed_ns } = pair.client.hear(end)?;
        let used = used(&pair.server)?.since(before);
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
        for Pair {
            server, mut client, ..
        } in self.pairs
        {
            client.tell(&None::<Batch>)?;
            client.finish(end)?;
            server.stop(end)?;
        }
        Ok(())
    }
}

/// How long processes may take to start, and clients to connect.
const START_UP: Duration = Duration::from_secs(20);
/// How long requests may take, besides their work: about a hundred times what they do.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long processes may take to end.
const WIND_DOWN: Duration = Duration::from_secs(20);
