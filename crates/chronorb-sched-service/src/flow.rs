//! Rates, execution times and criticality as they flow along calls.

use chronorb_sched::{Load, Time};

use crate::budget::{Budget, BudgetError};
use crate::idl::rtec_scheduler::{CriticalityT, InfoTypeT};
use crate::model::{CallEdge, Rate};
use crate::usage::{Usage, share};

/// Arrivals at an operation: periods, each once and in order, with the calls of each.
pub(crate) type Streams = Vec<(u32, u64)>;

/// An operation as calls reach it.
#[derive(Clone, Debug, Default)]
pub(crate) struct OperationFlow {
    /// Executions in threads of other operations, or of its own.
    pub(crate) arrivals: Streams,
    /// Executions that are dispatched: those of its own period, and one-way calls.
    pub(crate) dispatched: Streams,
    /// The execution time with that of all operations that it calls and waits for.
    pub(crate) demand: Time,
    /// The execution time of what each execution causes to be dispatched, at least.
    pub(crate) caused: Time,
    pub(crate) usage: Usage,
    /// Whether nothing calls it and it has no period.
    pub(crate) is_unresolved: bool,
    /// Whether it is called only by operations of other schedulers.
    pub(crate) is_remote: bool,
    /// Whether it would run at more different periods than the limit. It has no arrivals then.
    pub(crate) is_excessive: bool,
}

impl OperationFlow {
    /// The period of the greatest rate at which it runs.
    pub(crate) fn period(&self) -> Option<u32> {
        self.arrivals.first().map(|(period, _)| *period)
    }

    /// The demand of the dispatches on the processor.
    pub(crate) fn loads(&self) -> impl Iterator<Item = Load> + Clone + '_ {
        let each = self.dispatched.iter();
        each.map(|(period, count)| Load {
            cost: self.demand.saturating_mul(*count),
            period: Time::from(*period),
            jitter: 0,
        })
    }

    /// Returns the arrivals in each unit of time, at least, in the unit of [`Usage`].
    pub(crate) fn least_rate(&self) -> u128 {
        let each = self.arrivals.iter();
        each.map(|(period, count)| u128::from(*count).saturating_mul(share(1, (*period).into())))
            .fold(0, u128::saturating_add)
    }
}

/// The graph of calls, without cycles.
pub(crate) struct Graph<'a> {
    pub(crate) calls: &'a [CallEdge],
    /// The operations, callers before callees.
    pub(crate) order: &'a [usize],
    /// The edges by callee and by caller.
    pub(crate) into: &'a [Vec<usize>],
    pub(crate) out: &'a [Vec<usize>],
    /// The greatest number of different periods at an operation.
    pub(crate) periods: usize,
}

impl Graph<'_> {
    /// Computes the flow for one rate of each operation. Operations that are not in the order have
    /// an empty result.
    pub(crate) fn flow(
        &self,
        rates: &[Option<Rate>],
        budget: &mut Budget,
    ) -> Result<Vec<OperationFlow>, BudgetError> {
        let mut reached = vec![OperationFlow::default(); rates.len()];
        self.flow_along(self.order, rates, &mut reached, budget)?;
        Ok(reached)
    }

    /// Computes the flow of some operations again, which depend on no others. They have the order
    /// of the graph.
    pub(crate) fn flow_along(
        &self,
        order: &[usize],
        rates: &[Option<Rate>],
        reached: &mut [OperationFlow],
        budget: &mut Budget,
    ) -> Result<(), BudgetError> {
        for operation in order {
            reached[*operation] = self.reach(*operation, rates, reached, budget)?;
        }
        for operation in order.iter().rev() {
            budget.take(1 + self.out[*operation].len())?;
            let own = rates[*operation].map_or(0, |rate| rate.worst);
            let (mut demand, mut caused) = (own, 0_u64);
            for edge in self.out[*operation].iter().map(|edge| self.calls[*edge]) {
                let callee = &reached[edge.callee];
                let mut of_each = callee.caused;
                if edge.is_two_way {
                    demand = demand.saturating_add(callee.demand.saturating_mul(edge.calls));
                } else if self.is_joined(edge.callee, rates) {
                    of_each = 0;
                } else {
                    of_each = of_each.saturating_add(callee.demand);
                }
                caused = caused.saturating_add(of_each.saturating_mul(edge.calls));
            }
            let flow = &mut reached[*operation];
            (flow.demand, flow.caused) = (demand, caused);
            let mut usage = Usage::default();
            for load in flow.loads() {
                usage += Usage::of(load);
            }
            flow.usage = usage;
        }
        Ok(())
    }

    /// Whether an operation waits for a one-way call of each of several callers.
    fn is_joined(&self, operation: usize, rates: &[Option<Rate>]) -> bool {
        let kind = rates[operation].unwrap_or_default().kind;
        kind != InfoTypeT::Disjunction && self.into[operation].len() > 1
    }

    /// Returns each operation with those that it reaches along calls in either direction, as the
    /// positions of sets, and these sets. An operation that is not in the order is in none.
    pub(crate) fn components(&self) -> (Vec<Option<usize>>, Vec<Vec<usize>>) {
        let mut of = vec![None; self.into.len()];
        let mut count = 0;
        for first in self.order {
            if of[*first].is_some() {
                continue;
            }
            let mut open = vec![*first];
            while let Some(operation) = open.pop() {
                if of[operation].replace(count).is_some() {
                    continue;
                }
                let edges = self.into[operation].iter().chain(&self.out[operation]);
                let ends = edges.map(|edge| self.calls[*edge]);
                let ends = ends.flat_map(|edge| [edge.caller, edge.callee]);
                open.extend(ends.filter(|end| of[*end].is_none()));
            }
            count += 1;
        }
        let mut sets = vec![Vec::new(); count];
        for operation in self.order {
            if let Some(set) = of[*operation] {
                sets[set].push(*operation);
            }
        }
        (of, sets)
    }

    /// Returns the length of the longest chain of calls to each operation.
    pub(crate) fn depths(&self) -> Vec<usize> {
        let mut depths = vec![0; self.into.len()];
        for operation in self.order {
            let callers = self.into[*operation].iter();
            let deepest = callers
                .map(|edge| depths[self.calls[*edge].caller] + 1)
                .max();
            depths[*operation] = deepest.unwrap_or(0);
        }
        depths
    }

    /// Whether an operation with a rate runs at its period by itself.
    pub(crate) fn has_own_period(&self, operation: usize, rate: &Rate) -> bool {
        rate.period > 0 && (rate.threads > 0 || self.into[operation].is_empty())
    }

    fn reach(
        &self,
        operation: usize,
        rates: &[Option<Rate>],
        reached: &[OperationFlow],
        budget: &mut Budget,
    ) -> Result<OperationFlow, BudgetError> {
        let rate = rates[operation];
        let edges = || self.into[operation].iter().map(|edge| self.calls[*edge]);
        let own = rate.filter(|rate| self.has_own_period(operation, rate));
        let kind = rate.unwrap_or_default().kind;
        budget.take(1)?;
        let mut sum = StreamSum::new(self.periods);
        if let Some(own) = own {
            sum.add(&[(own.period, 1)], 1);
        }
        let mut slowest: Option<Calls<'_>> = None;
        for edge in edges().filter(|edge| !edge.is_two_way) {
            let streams = &*reached[edge.caller].arrivals;
            budget.take(1 + streams.len())?;
            if streams.is_empty() {
                continue;
            }
            if kind == InfoTypeT::Disjunction {
                sum.add(streams, edge.calls);
                continue;
            }
            // An arrival needs one call of each, so the slowest caller decides.
            let calls = Calls::new(streams, edge.calls);
            if slowest.as_ref().is_none_or(|other| calls.is_slower(other)) {
                slowest = Some(calls);
            }
        }
        if let Some(calls) = slowest {
            sum.add(calls.streams, calls.each);
        }
        let dispatched = sum.streams();
        for edge in edges().filter(|edge| edge.is_two_way) {
            let streams = &reached[edge.caller].arrivals;
            budget.take(1 + streams.len())?;
            sum.add(streams, edge.calls);
        }
        let mut result = match (dispatched, sum.streams()) {
            (Some(dispatched), Some(arrivals)) => OperationFlow {
                arrivals,
                dispatched,
                ..OperationFlow::default()
            },
            _ => OperationFlow {
                is_excessive: true,
                ..OperationFlow::default()
            },
        };
        if result.arrivals.is_empty() && !result.is_excessive {
            let is_remote = |edge: CallEdge| reached[edge.caller].is_remote;
            result.is_remote = kind == InfoTypeT::RemoteDependant || edges().any(is_remote);
            result.is_unresolved = !result.is_remote;
        }
        Ok(result)
    }

    /// Returns the criticality of each operation: its own, or that of an operation that depends on
    /// it if that is greater.
    pub(crate) fn criticalities(&self, rates: &[Option<Rate>]) -> Vec<CriticalityT> {
        let own = rates
            .iter()
            .map(|rate| rate.unwrap_or_default().criticality);
        let mut all: Vec<_> = own.collect();
        // From the greatest one down, so that each operation is raised once.
        let mut from: Vec<_> = self.order.to_vec();
        from.sort_by_key(|it| std::cmp::Reverse(all[*it]));
        for first in from {
            let mut open = vec![first];
            while let Some(depending) = open.pop() {
                let edges = self.into[depending].iter().chain(&self.out[depending]);
                for edge in edges {
                    let (from, to) = self.calls[*edge].dependency();
                    if from == depending && all[to] < all[from] {
                        all[to] = all[from];
                        open.push(to);
                    }
                }
            }
        }
        all
    }
}

/// One-way calls by a caller: its arrivals, and the calls of each.
struct Calls<'a> {
    streams: &'a [(u32, u64)],
    each: u64,
    rate: u128,
}

impl<'a> Calls<'a> {
    fn new(streams: &'a [(u32, u64)], each: u64) -> Self {
        // In billionths of a call for each 100 ns. Periods have 31 bits.
        let rates = streams.iter().map(|(period, count)| {
            u128::from(count.saturating_mul(each)) * 1_000_000_000 / u128::from(*period)
        });
        Self {
            streams,
            each,
            rate: rates.sum(),
        }
    }

    /// Whether there are fewer calls within the same time.
    fn is_slower(&self, other: &Self) -> bool {
        let streams = |calls: &Self| -> Vec<_> {
            let each = calls.streams.iter();
            each.map(|(period, count)| (*period, count.saturating_mul(calls.each)))
                .collect()
        };
        let by_rate = self.rate.cmp(&other.rate);
        by_rate
            .then_with(|| streams(self).cmp(&streams(other)))
            .is_lt()
    }
}

/// A sum of arrivals.
struct StreamSum {
    all: Streams,
    limit: usize,
    is_excessive: bool,
}

impl StreamSum {
    const fn new(limit: usize) -> Self {
        Self {
            all: Vec::new(),
            limit,
            is_excessive: false,
        }
    }

    /// Adds a number of calls for each arrival.
    fn add(&mut self, streams: &[(u32, u64)], calls: u64) {
        let each = streams.iter();
        self.all
            .extend(each.map(|(period, count)| (*period, count.saturating_mul(calls))));
        if self.all.len() > self.limit.saturating_mul(4) {
            self.merge();
        }
    }

    /// Makes each period occur once.
    fn merge(&mut self) {
        self.all.sort_unstable();
        self.all.dedup_by(|one, sum| {
            let is_equal = one.0 == sum.0;
            if is_equal {
                sum.1 = sum.1.saturating_add(one.1);
            }
            is_equal
        });
        if self.all.len() > self.limit {
            self.is_excessive = true;
            self.all.clear();
        }
    }

    /// The sum; `None` if it has more periods than the limit.
    fn streams(&mut self) -> Option<Streams> {
        self.merge();
        (!self.is_excessive).then(|| self.all.clone())
    }
}
