//! Priorities of transactions by local deadlines: the heuristic of Gutiérrez García and González
//! Harbour (1995), HOPA.
//!
//! Each step gets a part of the deadline of its transaction, at first in proportion to its cost. On
//! each resource the step with the shortest local deadline is the most urgent one. After each
//! analysis, steps that exceeded their local deadlines get more of it, and steps with room less.
//!
//! There are several passes, with two measures of the excess and changes of different size. Each
//! begins with the best order so far, and ends when some orders in a row are no better.

use crate::error::AnalysisError;
use crate::holistic::{HolisticAnalysis, analyse_sequences, check};
use crate::rta::Response;
use crate::task::Time;
use crate::transaction::{Resource, Transaction};

/// Assigns distinct priorities to the steps of each resource so that every transaction meets its
/// deadline, if the heuristic finds such an order. Returns the analysis with these priorities.
///
/// If it finds none, the priorities are those with the least lateness in proportion to the
/// deadline.
///
/// # Errors
/// As for [`analyse_sequences`].
///
/// # Example
/// ```
/// use chronorb_sched::{Resource, Step, Transaction, assign_transactions};
///
/// let cpus = [Resource::default(), Resource::default()];
/// let call = vec![Step::new(0, 2, 0), Step::new(1, 10, 0), Step::new(0, 2, 0)];
/// let mut set = [Transaction::new(30, call), Transaction::new(12, vec![Step::new(0, 5, 0)])];
/// assert!(assign_transactions(&cpus, &mut set)?.schedulable);
/// assert!(set[0].steps[0].priority > set[1].steps[0].priority);
/// # Ok::<(), chronorb_sched::AnalysisError>(())
/// ```
pub fn assign_transactions(
    resources: &[Resource],
    transactions: &mut [Transaction],
) -> Result<HolisticAnalysis, AnalysisError> {
    let (best, analysis) = assign_by_local_deadlines(resources, transactions, by_resource)?;
    transactions.clone_from_slice(&best);
    Ok(analysis)
}

/// Assigns priorities as [`assign_transactions`] does, by a rule of the caller. Returns the
/// transactions with their analysis.
///
/// `prioritise` gets the local deadline of each step of each transaction, in units of
/// [`LOCAL_UNIT`], and sets the priorities and whatever depends on them. It may give several steps
/// one priority.
///
/// # Errors
/// As for [`analyse_sequences`].
pub fn assign_by_local_deadlines(
    resources: &[Resource],
    transactions: &[Transaction],
    mut prioritise: impl FnMut(&mut [Transaction], &[Vec<u128>]),
) -> Result<(Vec<Transaction>, HolisticAnalysis), AnalysisError> {
    check(resources, transactions)?;
    let weights = transactions
        .iter()
        .map(|it| it.steps.iter().map(|step| step.cost.into()).collect());
    let mut search = Search {
        resources,
        transactions,
        trial: transactions.to_vec(),
        last: None,
        best: None,
        weights: weights.collect(),
    };
    for pass in PASSES {
        if search.pass(pass, &mut prioritise)? {
            break;
        }
    }
    let best = search.best.ok_or(AnalysisError::TooComplex)?;
    Ok((best.transactions, best.analysis))
}

/// A pass: the measure of excess, and the greatest change of a local deadline from one order to the
/// next, as a part of it.
type Pass = (Excess, (i128, i128));

/// The measure by which a step exceeds its local deadline.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Excess {
    /// By its response from the end of the step before it, and the more the longer its transaction
    /// takes in proportion to its deadline. It is compared with that of all steps.
    OfStep,
    /// By its response from the arrival of the transaction. It is compared with that of the other
    /// steps of the transaction, and so later steps get more of the deadline.
    SinceArrival,
}

const PASSES: [Pass; 8] = [
    (Excess::SinceArrival, (2, 3)),
    (Excess::OfStep, (2, 3)),
    (Excess::SinceArrival, (1, 2)),
    (Excess::OfStep, (1, 2)),
    (Excess::SinceArrival, (1, 3)),
    (Excess::OfStep, (1, 3)),
    (Excess::SinceArrival, (1, 6)),
    (Excess::OfStep, (1, 6)),
];
/// The orders of a pass, at most.
const ORDERS: usize = 10;
/// The orders after which a pass ends if none of them is better.
const PATIENCE: usize = 6;

/// An order with its analysis.
#[derive(Clone, Debug)]
struct Order {
    lateness: u128,
    transactions: Vec<Transaction>,
    analysis: HolisticAnalysis,
}

/// The search for an order.
struct Search<'a> {
    resources: &'a [Resource],
    transactions: &'a [Transaction],
    trial: Vec<Transaction>,
    /// The last order, which often comes again.
    last: Option<Order>,
    best: Option<Order>,
    /// The weights of the steps in the best order.
    weights: Vec<Vec<u128>>,
}

impl Search<'_> {
    /// Tries orders from the best one on. Returns whether one meets all deadlines.
    fn pass(
        &mut self,
        pass: Pass,
        prioritise: &mut impl FnMut(&mut [Transaction], &[Vec<u128>]),
    ) -> Result<bool, AnalysisError> {
        let mut weights = self.weights.clone();
        let mut left = PATIENCE;
        for _ in 0..ORDERS {
            let each = self.transactions.iter().zip(&weights);
            let local: Vec<_> = each
                .map(|(it, weights)| local_deadlines(it, weights))
                .collect();
            prioritise(&mut self.trial, &local);
            let is_new = (self.last.as_ref()).is_none_or(|last| last.transactions != self.trial);
            if is_new {
                let analysis = match analyse_sequences(self.resources, &self.trial) {
                    Ok(analysis) => analysis,
                    // An order that cannot be analysed is none.
                    Err(AnalysisError::TooLarge | AnalysisError::TooComplex) => return Ok(false),
                    Err(error) => return Err(error),
                };
                self.last = Some(Order {
                    lateness: lateness(self.transactions, &analysis),
                    transactions: self.trial.clone(),
                    analysis,
                });
            }
            let Some(last) = &self.last else {
                return Ok(false);
            };
            let best = self.best.as_ref();
            if best.is_none_or(|best| last.lateness < best.lateness) {
                self.best = Some(last.clone());
                self.weights.clone_from(&weights);
                left = PATIENCE;
            } else {
                left -= 1;
            }
            if last.analysis.schedulable {
                return Ok(true);
            }
            if left == 0 {
                break;
            }
            weights = adjusted(self.transactions, &local, &last.analysis, pass);
        }
        Ok(false)
    }
}

/// The unit of local deadlines: the parts of one unit of time.
pub const LOCAL_UNIT: u128 = 1 << 20;

/// Gives the step with the shortest local deadline of each resource the greatest priority.
fn by_resource(transactions: &mut [Transaction], local: &[Vec<u128>]) {
    let mut order = Vec::new();
    for (transaction, it) in transactions.iter().enumerate() {
        for (number, step) in it.steps.iter().enumerate() {
            order.push((
                step.resource,
                local[transaction][number],
                transaction,
                number,
            ));
        }
    }
    order.sort_unstable();
    for steps in order.chunk_by(|a, b| a.0 == b.0) {
        for (rank, (.., transaction, number)) in steps.iter().rev().enumerate() {
            let priority = u32::try_from(rank + 1).unwrap_or(u32::MAX);
            transactions[*transaction].steps[*number].priority = priority;
        }
    }
}

/// Divides the deadlines of a transaction among its steps in proportion to weights. The sum of any
/// path is at most the deadline of its last step.
fn local_deadlines(transaction: &Transaction, weights: &[u128]) -> Vec<u128> {
    const PARTS: u32 = 40;
    let count = transaction.steps.len();
    let before = |step: usize| transaction.before(step);
    // The heaviest path from the first step to each, and from each to a last one.
    let mut to = vec![0_u128; count];
    let mut from = vec![0_u128; count];
    let mut deadlines = Vec::with_capacity(count);
    for step in 0..count {
        let path = before(step).map_or(0, |before| to[before]);
        to[step] = path.saturating_add(weights[step]);
        deadlines.push(transaction.deadline_of(step));
    }
    for step in (0..count).rev() {
        from[step] = from[step].saturating_add(weights[step]);
        if let Some(before) = before(step) {
            from[before] = from[before].max(from[step]);
            deadlines[before] = deadlines[before].min(deadlines[step]);
        }
    }
    let each = (0..count).map(|step| {
        let path = to[step]
            .saturating_add(from[step])
            .saturating_sub(weights[step]);
        let weight = weights[step].min(u128::MAX >> PARTS);
        let share = (weight << PARTS) / path.max(1);
        // At most 2⁶⁴ · 2²⁰ · 2⁴⁰.
        (u128::from(deadlines[step]) * LOCAL_UNIT * share.min(1 << PARTS)) >> PARTS
    });
    each.collect()
}

/// Returns weights that are greater for steps, and on resources, that exceeded local deadlines.
fn adjusted(
    transactions: &[Transaction],
    local: &[Vec<u128>],
    analysis: &HolisticAnalysis,
    (measure, (numerator, denominator)): Pass,
) -> Vec<Vec<u128>> {
    const UNIT: i128 = 1 << 20;
    let excess = |transaction: usize, step: usize| {
        let it = &transactions[transaction];
        let responses = &analysis.responses[transaction];
        let longest = it.deadline_of(step).saturating_mul(8);
        let time = |response: Response| response.time().unwrap_or(Time::MAX);
        let before = match measure {
            Excess::OfStep => it.before(step).map_or(0, |before| time(responses[before])),
            Excess::SinceArrival => 0,
        };
        let own = time(responses[step]).saturating_sub(before).min(longest);
        let own = i128::from(own) * LOCAL_UNIT as i128;
        let excess = own - i128::try_from(local[transaction][step]).unwrap_or(i128::MAX);
        match measure {
            Excess::SinceArrival => excess,
            Excess::OfStep => {
                let ends = responses.iter().map(|it| time(*it));
                let end = ends.max().unwrap_or(0).min(it.deadline.saturating_mul(8));
                excess / i128::from(it.deadline.max(1)) * i128::from(end)
            }
        }
    };
    let mut of_steps = Vec::with_capacity(transactions.len());
    let mut of_resources: Vec<(usize, i128)> = Vec::new();
    for (transaction, it) in transactions.iter().enumerate() {
        let each = (0..it.steps.len()).map(|step| excess(transaction, step));
        let each: Vec<_> = each.collect();
        for (step, excess) in it.steps.iter().zip(&each) {
            match of_resources
                .iter_mut()
                .find(|(resource, _)| *resource == step.resource)
            {
                Some((_, sum)) => *sum = sum.saturating_add(*excess),
                None => of_resources.push((step.resource, *excess)),
            }
        }
        of_steps.push(each);
    }
    let all = of_steps.iter().flatten().map(|it| it.unsigned_abs()).max();
    let greatest_of = |transaction: usize| match measure {
        Excess::OfStep => all,
        Excess::SinceArrival => {
            let own = of_steps[transaction].iter();
            own.map(|it: &i128| it.unsigned_abs()).max()
        }
    };
    let greatest_resource = of_resources.iter().map(|(_, it)| it.unsigned_abs()).max();
    // Returns 1 + excess / greatest · fraction, in units.
    let factor = |excess: i128, greatest: Option<u128>| {
        let greatest = i128::try_from(greatest.unwrap_or(1).max(1)).unwrap_or(i128::MAX);
        let change = excess.saturating_mul(UNIT) / greatest * numerator / denominator;
        (UNIT + change.clamp(-UNIT, UNIT)).max(1).unsigned_abs()
    };
    let each = transactions.iter().enumerate().map(|(transaction, it)| {
        let steps = it.steps.iter().enumerate().map(|(number, step)| {
            let of_resource = of_resources.iter().find(|it| it.0 == step.resource);
            let of_resource = of_resource.map_or(0, |(_, excess)| *excess);
            let own = factor(of_steps[transaction][number], greatest_of(transaction));
            let shared = factor(of_resource, greatest_resource);
            // At most 2⁸⁴ · 2²¹, and as much again.
            let weight = (local[transaction][number] * own) >> 20;
            ((weight * shared) >> 20).max(1)
        });
        steps.collect()
    });
    each.collect()
}

/// Returns the greatest response of a step in thousandths of its deadline.
fn lateness(transactions: &[Transaction], analysis: &HolisticAnalysis) -> u128 {
    let each = transactions
        .iter()
        .zip(&analysis.responses)
        .flat_map(|(it, responses)| {
            let steps = responses.iter().enumerate();
            steps.map(|(step, response)| match response {
                Response::Bounded(time) => {
                    u128::from(*time) * 1_000 / u128::from(it.deadline_of(step).max(1))
                }
                Response::Unbounded => u128::MAX,
            })
        });
    each.max().unwrap_or(0)
}
