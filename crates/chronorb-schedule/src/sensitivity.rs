//! The room for longer execution times, or what would make a schedule fit.

use chronorb_sched::{Time, first_late_step};

use crate::error::ScheduleError;
use crate::schedule::Schedule;
use crate::task_sets::TaskSets;

/// The unit of factors: a factor of one.
pub const FACTOR_UNIT: u64 = 10_000;
/// The operations whose execution times are cut together, to leave out those of which no cut helps.
const CUT_TOGETHER: usize = 16;
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
        let passes = |factor| sets.scaled(factor).is_some_and(|scaled| fits(&scaled));
        // What fits takes longest to analyse, so that the search keeps to greater factors.
        let mut good = 0;
        let mut tried = FACTOR_UNIT;
        while tried <= MAX_FACTOR && passes(tried) {
            good = tried;
            tried *= 2;
        }
        Ok(greatest(good, MAX_FACTOR.min(tried - 1), passes))
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
        let deadlines = sets.transactions.iter().map(|it| it.transaction.deadline);
        let most = deadlines.max().unwrap_or(0);
        Ok(self.greatest_cost_within(priorities, operation, 0, most))
    }

    /// Returns the operations among some whose execution time alone, cut least, makes all deadlines
    /// met with these priorities: at most `count`, each with its greatest such time, the one with
    /// the least cut first. An operation whose own time is enough is none of them.
    ///
    /// # Errors
    /// As for [`to_task_sets`](Self::to_task_sets).
    pub fn least_cuts(
        &self,
        priorities: &[u32],
        among: impl IntoIterator<Item = usize>,
        count: usize,
    ) -> Result<Vec<(usize, Time)>, ScheduleError> {
        self.to_task_sets(priorities)?;
        let mut cuts: Vec<(Time, usize)> = Vec::new();
        let mut among = among.into_iter();
        loop {
            let group: Vec<_> = among.by_ref().take(CUT_TOGETHER).collect();
            if group.is_empty() {
                break;
            }
            // Only a cut less than the last one takes its place.
            let longest = cuts.last().filter(|_| cuts.len() >= count);
            let longest = longest.map_or(Time::MAX, |(cut, _)| *cut);
            let least = |operation: usize| self.operations[operation].cost.saturating_sub(longest);
            // Where all cuts together do not help, no single one does.
            let mut changed = self.clone();
            for operation in &group {
                changed.operations[*operation].cost = least(*operation) + 1;
            }
            if !changed.fits_with(priorities) {
                continue;
            }
            for operation in group {
                let own = self.operations[operation].cost;
                let cost = self.greatest_cost_within(priorities, operation, least(operation), own);
                if least(operation) < cost && cost < own {
                    let cut = own - cost;
                    cuts.insert(cuts.partition_point(|it| it.0 <= cut), (cut, operation));
                }
            }
            cuts.truncate(count);
        }
        let cost =
            |(cut, operation): (Time, usize)| (operation, self.operations[operation].cost - cut);
        Ok(cuts.into_iter().map(cost).collect())
    }

    /// Returns the greatest execution time of an operation above `least` and up to `most` with
    /// which all deadlines are met, or `least`. Locks are held within the execution time, and stay
    /// as they are.
    fn greatest_cost_within(
        &self,
        priorities: &[u32],
        operation: usize,
        least: Time,
        most: Time,
    ) -> Time {
        let mut changed = self.clone();
        let mut passes = |cost| {
            changed.operations[operation].cost = cost;
            changed.fits_with(priorities)
        };
        let first = least.saturating_add(1);
        if most < first || !passes(first) {
            return least;
        }
        greatest(first, most, passes)
    }

    fn fits_with(&self, priorities: &[u32]) -> bool {
        let sets = self.to_task_sets(priorities);
        sets.is_ok_and(|sets| fits(&sets))
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

/// Returns the greatest value above `least` and up to `most` that passes, or `least`. The test is
/// monotonic.
fn greatest(least: u64, most: u64, mut passes: impl FnMut(u64) -> bool) -> u64 {
    let (mut good, mut bad) = (least, most.saturating_add(1));
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
