//! The streams of all suppliers and the executions of all consumers of a channel.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chronorb_sched::{Step, Time, Transaction};

use super::shortfall::TOO_MUCH_WORK;
use super::streams::{ConsumerLoad, Execution, PublishedStream, SuppliedStream};

/// The loads of a channel. Clients are known by tickets, which count up.
#[derive(Clone, Debug)]
pub(super) struct Loads {
    /// The most streams to consumers that are admitted.
    most_streams: u64,
    suppliers: BTreeMap<u64, Arc<[PublishedStream]>>,
    consumers: BTreeMap<u64, Arc<Executions>>,
    sums: Sums,
    /// The streams that each client pays for: a stream to a consumer belongs to the one that
    /// connected later, the consumer or the supplier.
    paid: BTreeMap<u64, u64>,
    streams: u64,
    /// The nodes of all filters.
    nodes: u64,
}

/// The costs of executions by priority and period. Those that are alike have one response.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums(BTreeMap<(u32, Time), u128>);

/// The executions of a consumer.
#[derive(Clone, Debug)]
struct Executions {
    load: Arc<ConsumerLoad>,
    streams: Vec<Execution>,
    /// A supplier has left, and what is here is a bound only.
    is_stale: bool,
}

/// The steps that an analysis may take.
#[derive(Debug)]
pub(super) struct Work(u64);

impl Work {
    /// The steps of an analysis, in proportion to the streams and the nodes of filters.
    pub(super) fn for_loads(loads: &Loads) -> Self {
        let streams = (loads.streams + BASE_STREAMS) * STEPS_OF_STREAM;
        Self(streams.saturating_add(loads.nodes.saturating_mul(STEPS_OF_NODE)))
    }

    pub(super) fn left(&self) -> u64 {
        self.0
    }

    fn take(&mut self, steps: u64) -> Result<(), String> {
        let left = self.0.checked_sub(steps);
        self.0 = left.ok_or_else(|| TOO_MUCH_WORK.to_owned())?;
        Ok(())
    }
}

impl Sums {
    fn add(&mut self, priority: u32, execution: &Execution) {
        let sum = self.0.entry((priority, execution.period)).or_default();
        *sum += u128::from(execution.cost);
    }

    fn remove(&mut self, priority: u32, execution: &Execution) {
        let class = (priority, execution.period);
        if let Some(sum) = self.0.get_mut(&class) {
            *sum -= u128::from(execution.cost);
            if *sum == 0 {
                self.0.remove(&class);
            }
        }
    }

    /// Returns the sums without those of some of the executions.
    pub(super) fn without(&self, some: &Self) -> Self {
        let mut rest = self.0.clone();
        for (class, cost) in &some.0 {
            if let Some(sum) = rest.get_mut(class) {
                *sum -= cost;
            }
        }
        rest.retain(|_, cost| *cost > 0);
        Self(rest)
    }

    /// Returns a transaction for each priority and period.
    ///
    /// Executions of one priority and period delay each other, and arrive together at the worst. If
    /// all end within the period, they end together, so their sum has the same response.
    pub(super) fn transactions(&self) -> Vec<Transaction> {
        let each = self.0.iter().map(|(&(priority, period), cost)| {
            let cost = Time::try_from(*cost).unwrap_or(Time::MAX);
            Transaction::new(period, vec![Step::new(0, cost, priority)])
        });
        each.collect()
    }
}

impl Loads {
    /// The loads of a channel without clients.
    pub(super) fn new(most_streams: u64) -> Self {
        Self {
            most_streams,
            suppliers: BTreeMap::new(),
            consumers: BTreeMap::new(),
            sums: Sums::default(),
            paid: BTreeMap::new(),
            streams: 0,
            nodes: 0,
        }
    }

    /// Returns the streams that a client pays for.
    pub(super) fn paid_by(&self, ticket: u64) -> u64 {
        self.paid.get(&ticket).copied().unwrap_or_default()
    }

    /// Returns the clients that pay for another number of streams than in `before`.
    pub(super) fn other_payers(&self, before: &Self) -> Vec<u64> {
        let all = self.paid.keys().chain(before.paid.keys());
        let differs = |ticket: &u64| self.paid_by(*ticket) != before.paid_by(*ticket);
        all.copied().filter(differs).collect()
    }

    /// Returns the number of a supplier's publications.
    pub(super) fn published_by(&self, ticket: u64) -> u64 {
        self.suppliers.get(&ticket).map_or(0, |it| it.len() as u64)
    }

    /// The sums of all executions.
    pub(super) fn sums(&self) -> &Sums {
        &self.sums
    }

    /// The sums of the executions of a consumer.
    pub(super) fn sums_of(&self, ticket: u64) -> Sums {
        let mut sums = Sums::default();
        if let Some(it) = self.consumers.get(&ticket) {
            it.streams
                .iter()
                .for_each(|execution| sums.add(it.load.priority, execution));
        }
        sums
    }

    /// Adds a consumer.
    ///
    /// # Errors
    /// A shortfall as text: of steps, or of streams.
    pub(super) fn add_consumer(
        &mut self,
        ticket: u64,
        load: &Arc<ConsumerLoad>,
        work: &mut Work,
    ) -> Result<(), String> {
        let published = self.published();
        self.refresh(&published, work)?;
        work.take(load.steps(published.len()))?;
        let streams = load.executions(&published, self.most_streams).collect();
        self.set(ticket, load.clone(), streams)
    }

    /// Adds a supplier. Executions are computed for its publications only, where others do not
    /// matter.
    ///
    /// # Errors
    /// As for [`add_consumer`](Self::add_consumer).
    pub(super) fn add_supplier(
        &mut self,
        ticket: u64,
        streams: &Arc<[PublishedStream]>,
        work: &mut Work,
    ) -> Result<(), String> {
        self.suppliers.insert(ticket, streams.clone());
        let published = self.published();
        let added: Vec<_> = streams.iter().map(|stream| (ticket, *stream)).collect();
        for (consumer, before) in self.those(|_| true) {
            let load = &before.load;
            let streams = if load.is_separable() {
                work.take(load.steps(added.len()))?;
                let mut more = load.executions(&added, self.most_streams).peekable();
                if more.peek().is_none() {
                    continue;
                }
                before.streams.iter().copied().chain(more).collect()
            } else {
                work.take(load.steps(published.len()))?;
                load.executions(&published, self.most_streams).collect()
            };
            self.set(consumer, load.clone(), streams)?;
        }
        Ok(())
    }

    /// Computes the executions of stale consumers anew, as long as half of the steps is left. The
    /// others keep their bounds.
    fn refresh(&mut self, published: &[SuppliedStream], work: &mut Work) -> Result<(), String> {
        work.take(self.consumers.len() as u64)?;
        let reserved = work.left() / 2;
        for (ticket, it) in self.those(|it| it.is_stale) {
            let steps = it.load.steps(published.len());
            if steps > work.left() - reserved {
                continue;
            }
            work.take(steps)?;
            let streams = it.load.executions(published, self.most_streams).collect();
            self.set(ticket, it.load.clone(), streams)?;
        }
        Ok(())
    }

    /// Returns the consumers of which this is true.
    fn those(&self, is_wanted: impl Fn(&Executions) -> bool) -> Vec<(u64, Arc<Executions>)> {
        let all = self.consumers.iter();
        let wanted = all.filter(|(_, it)| is_wanted(it));
        wanted.map(|(ticket, it)| (*ticket, it.clone())).collect()
    }

    /// Removes a client. Returns the clients that pay for other streams then.
    ///
    /// No filter is evaluated. What a supplier delivered is left out, which is a bound for filters
    /// with groups too: a group is no more often complete than any of its parts has events.
    pub(super) fn remove(&mut self, ticket: u64) -> BTreeSet<u64> {
        let mut payers = BTreeSet::from([ticket]);
        if let Some(before) = self.consumers.remove(&ticket) {
            self.count_out(ticket, &before, &mut payers);
        }
        if self.suppliers.remove(&ticket).is_none() {
            return payers;
        }
        let is_its = |execution: &Execution| execution.supplier == Some(ticket);
        let is_changed = |it: &Executions| !it.load.is_separable() || it.streams.iter().any(is_its);
        for (consumer, before) in self.those(is_changed) {
            self.count_out(consumer, &before, &mut payers);
            let mut left = (*before).clone();
            left.streams.retain(|execution| !is_its(execution));
            left.is_stale |= !left.load.is_separable();
            self.count_in(consumer, &left);
            self.consumers.insert(consumer, Arc::new(left));
        }
        payers
    }

    /// Returns the publications of all suppliers.
    fn published(&self) -> Vec<SuppliedStream> {
        let each = self.suppliers.iter();
        let each = each.flat_map(|(ticket, streams)| streams.iter().map(|it| (*ticket, *it)));
        each.collect()
    }

    /// Sets the executions of a consumer.
    fn set(
        &mut self,
        ticket: u64,
        load: Arc<ConsumerLoad>,
        streams: Vec<Execution>,
    ) -> Result<(), String> {
        if let Some(before) = self.consumers.get(&ticket).cloned() {
            self.count_out(ticket, &before, &mut BTreeSet::new());
        }
        let executions = Executions {
            load,
            streams,
            is_stale: false,
        };
        self.count_in(ticket, &executions);
        self.consumers.insert(ticket, Arc::new(executions));
        // So a copy is bounded whichever client pays.
        if self.streams > self.most_streams.saturating_mul(2) {
            return Err(format!(
                "the consumers have more than {} streams of events",
                self.most_streams
            ));
        }
        Ok(())
    }

    fn count_in(&mut self, ticket: u64, executions: &Executions) {
        for execution in &executions.streams {
            self.sums.add(executions.load.priority, execution);
            *self.paid.entry(payer(ticket, execution)).or_default() += 1;
        }
        self.streams += executions.streams.len() as u64;
        self.nodes += executions.load.nodes;
    }

    fn count_out(&mut self, ticket: u64, executions: &Executions, payers: &mut BTreeSet<u64>) {
        for execution in &executions.streams {
            self.sums.remove(executions.load.priority, execution);
            let payer = payer(ticket, execution);
            payers.insert(payer);
            if let Some(paid) = self.paid.get_mut(&payer) {
                *paid -= 1;
                if *paid == 0 {
                    self.paid.remove(&payer);
                }
            }
        }
        self.streams -= executions.streams.len() as u64;
        self.nodes -= executions.load.nodes;
    }
}

/// The client that pays for a stream to a consumer.
fn payer(consumer: u64, execution: &Execution) -> u64 {
    execution
        .supplier
        .map_or(consumer, |supplier| supplier.max(consumer))
}

/// The streams for which an analysis of few has steps, so that a shortfall is found as well.
const BASE_STREAMS: u64 = 1024;
/// The steps for each stream.
const STEPS_OF_STREAM: u64 = 4096;
/// The steps for each node, so that the filters of others do not refuse a supplier of as many
/// publications.
const STEPS_OF_NODE: u64 = 64;
