//! The room for longer execution times, or what would make a schedule fit.

use chronorb_sched::{Resource, Time, Transaction, analyse_sequences, first_late_step};

use crate::error::ScheduleError;
use crate::schedule::Schedule;

/// The unit of factors: a factor of one.
pub const FACTOR_UNIT: u64 = 10_000;
/// The greatest factor that is looked for.
const MAX_FACTOR: u64 = 100 * FACTOR_UNIT;

impl Schedule {
    /// Returns the greatest factor, in units of [`FACTOR_UNIT`], by which all execution and
    /// transmission times may be multiplied so that all deadlines are met with these priorities.
    /// Overhead and blocking stay. A factor whose analysis has too many steps counts as too great.
    ///
    /// # Errors
    /// As for [`to_task_sets`](Self::to_task_sets).
    pub fn greatest_factor(&self, priorities: &[u32]) -> Result<u64, ScheduleError> {
        let sets = self.to_task_sets(priorities)?;
        let (resources, transactions) = (sets.analysed_resources(), sets.analysed_transactions());
        Ok(greatest(MAX_FACTOR, |factor| {
            let scaled = scaled(&resources, &transactions, factor);
            scaled.is_some_and(|(resources, transactions)| fits(&resources, &transactions))
        }))
    }

    /// Returns the longest response of each transaction and its deadline, of the step that is
    /// closest to its deadline, with all times multiplied by a factor in units of
    /// [`FACTOR_UNIT`]. `None` if that cannot be analysed, or a response has no bound.
    ///
    /// # Errors
    /// As for [`to_task_sets`](Self::to_task_sets).
    pub fn responses_at(
        &self,
        priorities: &[u32],
        factor: u64,
    ) -> Result<Option<Vec<(Time, Time)>>, ScheduleError> {
        let sets = self.to_task_sets(priorities)?;
        let (resources, transactions) = (sets.analysed_resources(), sets.analysed_transactions());
        let Some((resources, transactions)) = scaled(&resources, &transactions, factor.max(1))
        else {
            return Ok(None);
        };
        let Ok(analysis) = analyse_sequences(&resources, &transactions) else {
            return Ok(None);
        };
        let each = transactions
            .iter()
            .zip(&analysis.responses)
            .map(|(it, responses)| {
                let steps = it.steps.iter().zip(responses).map(|(step, response)| {
                    let deadline = step.deadline.unwrap_or(it.deadline);
                    let time = response.time()?;
                    Some((i128::from(deadline) - i128::from(time), time, deadline))
                });
                let tightest = steps.collect::<Option<Vec<_>>>()?.into_iter().min()?;
                Some((tightest.1.div_ceil(FACTOR_UNIT), tightest.2 / FACTOR_UNIT))
            });
        Ok(each.collect())
    }

    /// Returns the operation that is late first if all times grow above a factor of
    /// [`greatest_factor`](Self::greatest_factor), in the same units; `None` if that is a message,
    /// or cannot be analysed.
    ///
    /// # Errors
    /// As for [`to_task_sets`](Self::to_task_sets).
    pub fn bottleneck(
        &self,
        priorities: &[u32],
        factor: u64,
    ) -> Result<Option<usize>, ScheduleError> {
        let sets = self.to_task_sets(priorities)?;
        let (resources, transactions) = (sets.analysed_resources(), sets.analysed_transactions());
        let above = factor.saturating_add(1);
        let Some((resources, transactions)) = scaled(&resources, &transactions, above) else {
            return Ok(None);
        };
        let late = first_late_step(&resources, &transactions).ok().flatten();
        Ok(late
            .and_then(|(transaction, step)| sets.transactions[transaction].works[step].executed()))
    }

    /// Returns the greatest execution time of one operation with which all deadlines are met with
    /// these priorities, while all others keep theirs; zero if there is none.
    ///
    /// # Errors
    /// As for [`to_task_sets`](Self::to_task_sets).
    pub fn greatest_cost(
        &self,
        priorities: &[u32],
        operation: usize,
    ) -> Result<Time, ScheduleError> {
        let sets = self.to_task_sets(priorities)?;
        let resources = sets.analysed_resources();
        let mut changed = self.clone();
        // Locks are held within the execution time, and stay as they are.
        let deadlines = sets.transactions.iter().map(|it| it.transaction.deadline);
        let most = deadlines.max().unwrap_or(0);
        changed.operations[operation].cost = 1;
        changed.to_task_sets(priorities)?;
        Ok(greatest(most, |cost| {
            changed.operations[operation].cost = cost;
            let sets = changed.to_task_sets(priorities);
            sets.is_ok_and(|sets| fits(&resources, &sets.analysed_transactions()))
        }))
    }
}

fn fits(resources: &[Resource], transactions: &[Transaction]) -> bool {
    // Times of the search that are too great for the analysis do not fit.
    first_late_step(resources, transactions).is_ok_and(|late| late.is_none())
}

/// Multiplies costs by the factor, and all times by the unit.
fn scaled(
    resources: &[Resource],
    transactions: &[Transaction],
    factor: u64,
) -> Option<(Vec<Resource>, Vec<Transaction>)> {
    let unit = |time: Time| time.checked_mul(FACTOR_UNIT);
    let resources = resources.iter().map(|it| {
        Some(Resource {
            blocking: unit(it.blocking)?,
            ..*it
        })
    });
    let transactions = transactions.iter().map(|it| {
        let mut scaled = it.clone();
        scaled.period = unit(it.period)?;
        scaled.deadline = unit(it.deadline)?;
        scaled.jitter = unit(it.jitter)?;
        for step in &mut scaled.steps {
            step.cost = step.cost.checked_mul(factor)?;
            step.blocking = unit(step.blocking)?;
            for time in [&mut step.deadline, &mut step.order].into_iter().flatten() {
                *time = unit(*time)?;
            }
        }
        Some(scaled)
    });
    Some((
        resources.collect::<Option<_>>()?,
        transactions.collect::<Option<_>>()?,
    ))
}

/// Returns the greatest value up to `most` that passes, or zero. The test is monotonic.
fn greatest(most: u64, mut passes: impl FnMut(u64) -> bool) -> u64 {
    let (mut good, mut bad) = (0, most.saturating_add(1));
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if passes(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    good
}
