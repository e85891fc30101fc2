//! The room for longer execution times, or what would make a schedule fit.

use chronorb_sched::{Time, first_late_step};

use crate::error::ScheduleError;
use crate::schedule::Schedule;
use crate::task_sets::TaskSets;

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
        Ok(greatest(MAX_FACTOR, |factor| {
            sets.scaled(factor).is_some_and(|scaled| fits(&scaled))
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
        let Some(scaled) = self.to_task_sets(priorities)?.scaled(factor.max(1)) else {
            return Ok(None);
        };
        let Ok(settled) = scaled.settle() else {
            return Ok(None);
        };
        let each = (settled.sets.transactions.iter())
            .zip(&settled.result.responses)
            .map(|(it, responses)| {
                let it = &it.transaction;
                let steps = it.steps.iter().zip(responses).map(|(step, response)| {
                    let deadline = step.deadline.unwrap_or(it.deadline);
                    let time = response.time()?;
                    Some((i128::from(deadline) - i128::from(time), time, deadline))
                });
                let tightest = steps.collect::<Option<Vec<_>>>()?.into_iter().min()?;
                Some((tightest.1, tightest.2))
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
        let Some(Ok(settled)) = (sets.scaled(factor.saturating_add(1))).map(|it| it.settle())
        else {
            return Ok(None);
        };
        let settled = settled.sets;
        let late = first_late_step(
            &settled.analysed_resources(),
            &settled.analysed_transactions(),
        );
        Ok(late.ok().flatten().and_then(|(transaction, step)| {
            settled.transactions[transaction].works[step].executed()
        }))
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
        let mut changed = self.clone();
        // Locks are held within the execution time, and stay as they are.
        let deadlines = sets.transactions.iter().map(|it| it.transaction.deadline);
        let most = deadlines.max().unwrap_or(0);
        changed.operations[operation].cost = 1;
        if !fits(&changed.to_task_sets(priorities)?) {
            return Ok(0);
        }
        Ok(greatest(most, |cost| {
            changed.operations[operation].cost = cost;
            let sets = changed.to_task_sets(priorities);
            sets.is_ok_and(|sets| fits(&sets))
        }))
    }
}

fn fits(sets: &TaskSets) -> bool {
    // Times of the search that are too great for the analysis do not fit.
    sets.fits().unwrap_or(false)
}

impl TaskSets {
    /// Multiplies costs by a factor in units of [`FACTOR_UNIT`], rounded up.
    fn scaled(&self, factor: u64) -> Option<Self> {
        let mut scaled = self.clone();
        let transactions = scaled.transactions.iter_mut();
        for step in transactions.flat_map(|it| &mut it.transaction.steps) {
            *step = step.scaled(factor, FACTOR_UNIT)?;
        }
        Some(scaled)
    }
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
