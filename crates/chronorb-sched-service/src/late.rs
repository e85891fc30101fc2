//! The deadlines that a schedule does not guarantee.
//!
//! A deadline is the period, and nothing blocks. The least time that equals the work that a level
//! and all earlier ones release within it is then the longest response in the level: that of each
//! task in a static level, and a safe bound by deadline or laxity. If it is at most a period, the
//! jobs of the period end in it.

use std::collections::BTreeMap;

use chronorb_sched::Load;

use crate::budget::{Budget, BudgetError};
use crate::usage::{Usage, share};

/// The tasks of a level: each is a load, and the operation that it is of.
#[derive(Clone, Debug, Default)]
pub(crate) struct LevelTasks {
    pub(crate) tasks: Vec<(usize, Load)>,
    /// Whether the order is by rates, and not by deadline or laxity.
    pub(crate) is_static: bool,
}

/// Returns the operations that may be late, in the order of levels.
///
/// The result equals that of [`chronorb_sched::guaranteed`] for tasks without blocking and jitter
/// whose deadlines are their periods. Here the work counts by periods and not by tasks.
pub(crate) fn late(levels: &[LevelTasks], budget: &mut Budget) -> Result<Vec<usize>, BudgetError> {
    let mut costs = BTreeMap::<u64, u128>::new();
    let mut usage = Usage::default();
    let mut work = 0;
    // The least time that may be the longest response of the next level.
    let mut time = 1;
    let mut late = Vec::new();
    for level in levels {
        let is_first = costs.is_empty();
        budget.take(level.tasks.len())?;
        for (_, load) in &level.tasks {
            usage += Usage::of(*load);
            work += u128::from(load.cost);
            *costs.entry(load.period).or_default() += u128::from(load.cost);
        }
        let periods = || level.tasks.iter().map(|(_, load)| u128::from(load.period));
        let (Some(shortest), Some(longest)) = (periods().min(), periods().max()) else {
            continue;
        };
        let longest_response = if usage.is_excessive() {
            u128::MAX
        } else if is_first && !level.is_static && level.tasks.len() > 1 {
            // By deadline or laxity, a processor is enough.
            let loads = level.tasks.iter().map(|(_, load)| *load);
            if usage.fits(loads, budget)? {
                0
            } else {
                u128::MAX
            }
        } else if is_short(work, usage, shortest) {
            0
        } else {
            time = response(&costs, time, longest, budget)?;
            time
        };
        let owners = level.tasks.iter();
        let owners = owners.filter(|(_, load)| longest_response > load.period.into());
        late.extend(owners.map(|(owner, _)| *owner));
    }
    late.dedup();
    Ok(late)
}

/// Whether the response is at most a period because it is at most the work of a job of each task,
/// divided by the part of the processor that is free.
fn is_short(work: u128, usage: Usage, period: u128) -> bool {
    let free = usage.least_free();
    let (Ok(work), Ok(period)) = (u64::try_from(work), u64::try_from(period)) else {
        return false;
    };
    free > 0 && share(work, period) < free
}

/// Returns the least time from `time` on that equals the work that is released within it, or a
/// time above `most` that is at most that time.
fn response(
    costs: &BTreeMap<u64, u128>,
    mut time: u128,
    most: u128,
    budget: &mut Budget,
) -> Result<u128, BudgetError> {
    while time <= most {
        budget.take(costs.len())?;
        let each = costs.iter().map(|(period, cost)| {
            let jobs = match u64::try_from(time) {
                Ok(time) => time.div_ceil(*period).into(),
                Err(_) => time.div_ceil((*period).into()),
            };
            cost.saturating_mul(jobs)
        });
        let longer = each.fold(0, u128::saturating_add);
        if longer <= time {
            break;
        }
        time = longer;
    }
    Ok(time)
}
