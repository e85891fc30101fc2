//! Priorities of transactions by local deadlines: the heuristic of Gutiérrez García and González
//! Harbour (1995), HOPA.
//!
//! Each step gets a part of the deadline of its transaction, at first in proportion to its cost. On
//! each resource the step with the shortest local deadline is the most urgent one. After each
//! analysis, steps that exceeded their local deadlines get more of it, and steps with room less.

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
    let mut weights: Vec<Vec<u128>> = transactions
        .iter()
        .map(|it| it.steps.iter().map(|step| step.cost.into()).collect())
        .collect();
    let mut trial = transactions.to_vec();
    let mut best: Option<(u128, Vec<Transaction>, HolisticAnalysis)> = None;
    for round in 0..ROUNDS {
        let local: Vec<Vec<u128>> = transactions
            .iter()
            .zip(&weights)
            .map(|(it, weights)| local_deadlines(it, weights))
            .collect();
        prioritise(&mut trial, &local);
        let analysis = analyse_sequences(resources, &trial);
        // An order that cannot be analysed is none.
        let analysis = match analysis {
            Ok(analysis) => analysis,
            Err(error) if best.is_none() && round + 1 == ROUNDS => return Err(error),
            Err(AnalysisError::TooLarge | AnalysisError::TooComplex) => continue,
            Err(error) => return Err(error),
        };
        let lateness = lateness(transactions, &analysis);
        weights = adjusted(
            transactions,
            &local,
            &analysis,
            FRACTIONS[round % FRACTIONS.len()],
        );
        let is_schedulable = analysis.schedulable;
        if best.as_ref().is_none_or(|(least, ..)| lateness < *least) {
            best = Some((lateness, trial.clone(), analysis));
        }
        if is_schedulable {
            break;
        }
    }
    let (_, transactions, analysis) = best.ok_or(AnalysisError::TooComplex)?;
    Ok((transactions, analysis))
}

/// The orders that are tried.
const ROUNDS: usize = 24;
/// The greatest change of a local deadline from one order to the next, as a part of it.
const FRACTIONS: [(i128, i128); 4] = [(2, 3), (1, 2), (1, 3), (1, 6)];

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
    (numerator, denominator): (i128, i128),
) -> Vec<Vec<u128>> {
    const UNIT: i128 = 1 << 20;
    let excess = |transaction: usize, step: usize| {
        let it = &transactions[transaction];
        let responses = &analysis.responses[transaction];
        let longest = it.deadline_of(step).saturating_mul(8);
        let time = |response: Response| response.time().unwrap_or(Time::MAX);
        let before = it.before(step).map_or(0, |before| time(responses[before]));
        let own = time(responses[step]).saturating_sub(before).min(longest);
        let own = i128::from(own) * LOCAL_UNIT as i128;
        own - i128::try_from(local[transaction][step]).unwrap_or(i128::MAX)
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
    let greatest_step = of_steps.iter().flatten().map(|it| it.unsigned_abs()).max();
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
            let own = factor(of_steps[transaction][number], greatest_step);
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
