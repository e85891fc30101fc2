//! Rates, execution times and criticality as they flow along calls.

use std::collections::BTreeMap;

use chronorb_sched::{Load, Time};

use crate::idl::rtec_scheduler::{CriticalityT, InfoTypeT};
use crate::model::{CallEdge, Rate};

/// Arrivals at an operation: the calls of each period.
pub(crate) type OracleStreams = BTreeMap<u32, u64>;

/// An operation as calls reach it.
#[derive(Clone, Debug, Default)]
pub(crate) struct OracleFlow {
    /// Executions in threads of other operations, or of its own.
    pub(crate) arrivals: OracleStreams,
    /// Executions that are dispatched: those of its own period, and one-way calls.
    pub(crate) dispatched: OracleStreams,
    /// The execution time with that of all operations that it calls and waits for.
    pub(crate) demand: Time,
    pub(crate) criticality: CriticalityT,
    /// Whether nothing calls it and it has no period.
    pub(crate) is_unresolved: bool,
    /// Whether it is called only by operations of other schedulers.
    pub(crate) is_remote: bool,
}

impl OracleFlow {
    /// The period of the greatest rate at which it runs.
    pub(crate) fn period(&self) -> Option<u32> {
        self.arrivals.keys().next().copied()
    }
}

/// The graph of calls, without cycles.
pub(crate) struct OracleGraph<'a> {
    pub(crate) calls: &'a [CallEdge],
    /// The operations, callers before callees.
    pub(crate) order: &'a [usize],
    /// The edges by callee and by caller.
    pub(crate) into: &'a [Vec<usize>],
    pub(crate) out: &'a [Vec<usize>],
}

impl OracleGraph<'_> {
    /// Computes the flow for one rate of each operation. Operations that are not in the order have
    /// an empty result.
    pub(crate) fn flow(&self, rates: &[Option<Rate>]) -> Vec<OracleFlow> {
        let mut reached = vec![OracleFlow::default(); rates.len()];
        self.flow_along(self.order, rates, &mut reached);
        reached
    }

    /// Computes the flow of some operations again, which depend on no others. They have the order
    /// of the graph.
    pub(crate) fn flow_along(
        &self,
        order: &[usize],
        rates: &[Option<Rate>],
        reached: &mut [OracleFlow],
    ) {
        for operation in order {
            reached[*operation] = self.reach(*operation, rates, reached);
        }
        for operation in order.iter().rev() {
            let own = rates[*operation].map_or(0, |rate| rate.worst);
            let called = self.out[*operation].iter().map(|edge| self.calls[*edge]);
            let waited = called.filter(|edge| edge.is_two_way);
            reached[*operation].demand = waited.fold(own, |sum, edge| {
                let each = reached[edge.callee].demand;
                sum.saturating_add(each.saturating_mul(edge.calls))
            });
        }
        self.spread_criticality(order, reached);
    }

    /// Returns each operation with those that it reaches along calls in either direction, as the
    /// positions of sets, and these sets. An operation that is not in the order is in none.
    pub(crate) fn components(&self) -> (Vec<Option<usize>>, Vec<Vec<usize>>) {
        let mut of = vec![None; self.into.len()];
        let mut count = 0;
        for first in self.order {
            let mut open = vec![*first];
            while let Some(operation) = open.pop() {
                if of[operation].is_some() {
                    continue;
                }
                of[operation] = Some(count);
                let edges = self.into[operation].iter().chain(&self.out[operation]);
                let ends = edges.map(|edge| self.calls[*edge]);
                open.extend(ends.flat_map(|edge| [edge.caller, edge.callee]));
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

    fn reach(
        &self,
        operation: usize,
        rates: &[Option<Rate>],
        reached: &[OracleFlow],
    ) -> OracleFlow {
        let rate = rates[operation];
        let edges = || self.into[operation].iter().map(|edge| self.calls[*edge]);
        let mut result = OracleFlow {
            criticality: rate.unwrap_or_default().criticality,
            ..OracleFlow::default()
        };
        let period = rate.map_or(0, |rate| rate.period);
        let has_threads = rate.is_some_and(|rate| rate.threads > 0);
        let has_own = period > 0 && (has_threads || self.into[operation].is_empty());
        let own: OracleStreams = has_own.then_some((period, 1)).into_iter().collect();
        let kind = rate.unwrap_or_default().kind;
        let one_way: Vec<_> = edges()
            .filter(|edge| !edge.is_two_way)
            .map(|edge| times(&reached[edge.caller].arrivals, edge.calls))
            .filter(|streams| !streams.is_empty())
            .collect();
        let called = match kind {
            InfoTypeT::Disjunction => one_way.iter().fold(OracleStreams::new(), add),
            // An arrival needs one call of each, so the slowest caller decides.
            _ => one_way
                .into_iter()
                .min_by(compare_rates)
                .unwrap_or_default(),
        };
        result.dispatched = add(called, &own);
        result.arrivals = edges()
            .filter(|edge| edge.is_two_way)
            .map(|edge| times(&reached[edge.caller].arrivals, edge.calls))
            .fold(result.dispatched.clone(), |all, streams| add(all, &streams));
        if result.arrivals.is_empty() {
            let is_remote = |edge: CallEdge| reached[edge.caller].is_remote;
            result.is_remote = kind == InfoTypeT::RemoteDependant || edges().any(is_remote);
            result.is_unresolved = !result.is_remote;
        }
        result
    }

    /// Raises the criticality of operations to that of those that depend on them.
    fn spread_criticality(&self, order: &[usize], reached: &mut [OracleFlow]) {
        let mut changed: Vec<_> = order.to_vec();
        while let Some(depending) = changed.pop() {
            let edges = self.into[depending].iter().chain(&self.out[depending]);
            for edge in edges {
                let (from, to) = self.calls[*edge].dependency();
                let criticality = reached[from].criticality;
                if from == depending && reached[to].criticality < criticality {
                    reached[to].criticality = criticality;
                    changed.push(to);
                }
            }
        }
    }
}

fn times(streams: &OracleStreams, calls: u64) -> OracleStreams {
    let each = streams.iter();
    each.map(|(period, count)| (*period, count.saturating_mul(calls)))
        .collect()
}

fn add(mut all: OracleStreams, streams: &OracleStreams) -> OracleStreams {
    for (period, count) in streams {
        let sum = all.entry(*period).or_default();
        *sum = sum.saturating_add(*count);
    }
    all
}

/// Compares the arrivals of two streams within the same time.
fn compare_rates(a: &OracleStreams, b: &OracleStreams) -> std::cmp::Ordering {
    // In billionths of an arrival for each 100 ns. Periods have 31 bits.
    let rate = |streams: &OracleStreams| -> u128 {
        let each = streams.iter();
        each.map(|(period, count)| u128::from(*count) * 1_000_000_000 / u128::from(*period))
            .sum()
    };
    rate(a).cmp(&rate(b)).then_with(|| a.cmp(b))
}

/// The demand of an operation's dispatches on the processor.
pub(crate) fn loads(reached: &OracleFlow) -> impl Iterator<Item = Load> + Clone + '_ {
    let each = reached.dispatched.iter();
    each.map(|(period, count)| Load {
        cost: reached.demand.saturating_mul(*count),
        period: Time::from(*period),
        jitter: 0,
    })
}
