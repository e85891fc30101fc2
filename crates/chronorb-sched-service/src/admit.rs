//! The choice of a rate for each operation.

use std::cmp::Reverse;

use crate::budget::{Budget, BudgetError};
use crate::flow::{Graph, OperationFlow};
use crate::model::{Rate, Snapshot};
use crate::usage::{Usage, WHOLE, share};

/// The reason why a rate is not admitted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Refusal {
    /// The utilisation would exceed the processor.
    Processor,
    /// An operation would run at too many different periods.
    Periods,
}

/// The chosen rates with their flow, and what was not admitted.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    /// The rate of each operation.
    pub(crate) rates: Vec<Option<Rate>>,
    pub(crate) flows: Vec<OperationFlow>,
    /// The operations that do not fit at their lowest rates.
    pub(crate) excess: Vec<usize>,
    /// The further rates that were not admitted.
    pub(crate) refused: Vec<(usize, Rate, Refusal)>,
    /// The further rates that were not tried, since the budget was exhausted.
    pub(crate) untried: usize,
}

/// Chooses a rate for each operation: the lowest of all, then greater ones as long as the
/// processor has room, both by criticality and importance. `active` are operations by name.
///
/// # Errors
/// The budget is too small for the lowest rates.
pub(crate) fn admit(
    snapshot: &Snapshot,
    graph: &Graph<'_>,
    active: &[usize],
    budget: &mut Budget,
) -> Result<Admission, BudgetError> {
    let by_rate = |index: &usize| {
        let mut rates = snapshot.operations[*index].rates.clone();
        // Without a period the rate is that of the callers, which nothing here can lower.
        rates.sort_by_key(|rate| (rate.period != 0, Reverse(rate.period)));
        (*index, rates)
    };
    let mut choices: Vec<_> = active.iter().map(by_rate).collect();
    // `active` is by name, and this order is stable.
    let urgency = |rates: &[Rate]| rates.first().map(|it| (it.criticality, it.importance));
    choices.sort_by_key(|(_, rates)| Reverse(urgency(rates)));
    let mut rates = vec![None; snapshot.operations.len()];
    for (index, its_rates) in &choices {
        rates[*index] = its_rates.first().copied();
    }
    let flows = graph.flow(&rates, budget)?;
    let is_excessive = flows.iter().any(|flow| flow.is_excessive);
    let (sets_of, sets) = graph.components();
    let mut trial = Trial {
        graph,
        budget,
        total: usage_of(&flows),
        rates,
        flows,
        visited: vec![0; sets.len()],
        trials: 0,
        sets_of,
        sets,
    };
    let mut admission = Admission::default();
    if is_excessive {
        // There is no schedule.
    } else if !trial.fits()? {
        admission.excess = excess(graph, &choices, &trial.rates, trial.budget)?;
    } else {
        let most = choices.iter().map(|(_, rates)| rates.len()).max();
        for number in 1..most.unwrap_or(0) {
            let candidates = choices.iter();
            let candidates: Vec<_> = candidates
                .filter_map(|(index, rates)| Some((*index, *rates.get(number)?)))
                .collect();
            let refused = &mut admission.refused;
            match trial.admit_each(&candidates, refused) {
                Ok(()) => {}
                Err(UntriedFrom(at)) => {
                    let later = choices
                        .iter()
                        .map(|(_, it)| it.len().saturating_sub(number + 1));
                    admission.untried = candidates.len() - at + later.sum::<usize>();
                    break;
                }
            }
        }
    }
    (admission.rates, admission.flows) = (trial.rates, trial.flows);
    Ok(admission)
}

/// Returns the operations beyond the longest prefix, by criticality, that fits.
fn excess(
    graph: &Graph<'_>,
    choices: &[(usize, Vec<Rate>)],
    rates: &[Option<Rate>],
    budget: &mut Budget,
) -> Result<Vec<usize>, BudgetError> {
    let (mut good, mut bad) = (0, choices.len());
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        let mut prefix = vec![None; rates.len()];
        for (index, _) in &choices[..middle] {
            prefix[*index] = rates[*index];
        }
        let flows = graph.flow(&prefix, budget)?;
        let loads = flows.iter().flat_map(OperationFlow::loads);
        if usage_of(&flows).fits(loads, budget)? {
            good = middle;
        } else {
            bad = middle;
        }
    }
    Ok(choices[good..].iter().map(|(index, _)| *index).collect())
}

fn usage_of(flows: &[OperationFlow]) -> Usage {
    let mut total = Usage::default();
    for flow in flows {
        total += flow.usage;
    }
    total
}

/// The budget was exhausted at this candidate, which is not admitted.
struct UntriedFrom(usize);

/// Rates that were admitted, and the trial of further ones.
struct Trial<'a> {
    graph: &'a Graph<'a>,
    budget: &'a mut Budget,
    rates: Vec<Option<Rate>>,
    flows: Vec<OperationFlow>,
    total: Usage,
    /// The connected operations: the set of each, and those of each set.
    sets_of: Vec<Option<usize>>,
    sets: Vec<Vec<usize>>,
    /// The last trial that visited a set.
    visited: Vec<u64>,
    trials: u64,
}

impl Trial<'_> {
    /// Admits candidates one after another, as if each was tried alone.
    ///
    /// As long as they fit, twice as many are tried together. A rate that only adds work is
    /// refused without a trial if what it adds exceeds the processor by itself.
    fn admit_each(
        &mut self,
        candidates: &[(usize, Rate)],
        refused: &mut Vec<(usize, Rate, Refusal)>,
    ) -> Result<(), UntriedFrom> {
        let (mut at, mut run) = (0, 1);
        // The end of a run that does not fit as a whole.
        let mut end: Option<usize> = None;
        while let Some((index, rate)) = candidates.get(at).copied() {
            let exhausted = |_| UntriedFrom(at);
            if self.surely_exceeds(index, &rate) {
                self.budget.take(1).map_err(exhausted)?;
                refused.push((index, rate, Refusal::Processor));
                (at, run, end) = (at + 1, 1, None);
                continue;
            }
            let most = end.map_or(run, |end| (end - at).div_ceil(2));
            let together = candidates[at..].iter().take(most);
            let rises = together.take_while(|(index, rate)| self.is_rise(*index, rate));
            let count = rises.count().max(1);
            self.budget.take(count).map_err(exhausted)?;
            let tried = self.try_all(&candidates[at..at + count]);
            match tried.map_err(exhausted)? {
                None => {
                    (at, run) = (at + count, count * 2);
                    end = end.filter(|end| *end > at);
                }
                Some(_) if count > 1 => end = Some(at + count),
                Some(reason) => {
                    refused.push((index, rate, reason));
                    (at, run, end) = (at + 1, 1, None);
                }
            }
        }
        Ok(())
    }

    /// Whether a further rate can only add work: it is not lower, the execution time not shorter.
    fn is_rise(&self, index: usize, rate: &Rate) -> bool {
        let Some(present) = self.rates[index] else {
            return false;
        };
        let has_own = |rate| self.graph.has_own_period(index, rate);
        rate.kind == present.kind
            && rate.worst >= present.worst
            && rate.period <= present.period
            && has_own(rate) == has_own(&present)
    }

    /// Whether the work that a rise adds exceeds the processor for certain.
    fn surely_exceeds(&self, index: usize, rate: &Rate) -> bool {
        let Some(present) = self.rates[index].filter(|_| self.is_rise(index, rate)) else {
            return false;
        };
        let flow = &self.flows[index];
        let longer = rate.worst - present.worst;
        let mut added = u128::from(longer).saturating_mul(flow.least_rate());
        if self.graph.has_own_period(index, rate) {
            let each = flow
                .demand
                .saturating_add(longer)
                .saturating_add(flow.caused);
            let before = share(each, present.period.into()).saturating_add(1);
            let now = share(each, rate.period.into());
            added = added.saturating_add(now.saturating_sub(before));
        }
        self.total.least().saturating_add(added) > WHOLE
    }

    /// Admits further rates if all of them fit together.
    fn try_all(&mut self, further: &[(usize, Rate)]) -> Result<Option<Refusal>, BudgetError> {
        self.trials += 1;
        let mut affected = Vec::new();
        let mut rates_before = Vec::with_capacity(further.len());
        for (index, rate) in further {
            rates_before.push((*index, self.rates[*index].replace(*rate)));
            let set = self.sets_of[*index];
            if let Some(set) = set.filter(|set| self.visited[*set] != self.trials) {
                self.visited[set] = self.trials;
                affected.push(set);
            }
        }
        let (mut flows_before, total_before) = (Vec::new(), self.total);
        let result = self.flow_again(&affected, &mut flows_before);
        if result != Ok(None) {
            for (index, rate) in rates_before {
                self.rates[index] = rate;
            }
            for (operation, flow) in flows_before {
                self.flows[operation] = flow;
            }
            self.total = total_before;
        }
        result
    }

    /// Computes the flow of sets again, and returns why it is not admitted. A rate changes the
    /// flow of the operations that are connected with its own, only.
    fn flow_again(
        &mut self,
        affected: &[usize],
        before: &mut Vec<(usize, OperationFlow)>,
    ) -> Result<Option<Refusal>, BudgetError> {
        let operations = || affected.iter().flat_map(|set| &self.sets[*set]).copied();
        for operation in operations() {
            let flow = std::mem::take(&mut self.flows[operation]);
            self.total -= flow.usage;
            before.push((operation, flow));
        }
        for set in affected {
            let order = &self.sets[*set];
            self.graph
                .flow_along(order, &self.rates, &mut self.flows, self.budget)?;
        }
        for operation in operations() {
            let flow = &self.flows[operation];
            if flow.is_excessive {
                return Ok(Some(Refusal::Periods));
            }
            self.total += flow.usage;
        }
        let fits = self.fits()?;
        Ok((!fits).then_some(Refusal::Processor))
    }

    /// Whether all dispatches together need at most the processor.
    fn fits(&mut self) -> Result<bool, BudgetError> {
        let loads = self.flows.iter().flat_map(OperationFlow::loads);
        self.total.fits(loads, self.budget)
    }
}
