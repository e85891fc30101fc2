//! The use of the processor by dispatches, as a sum that a change adjusts.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::{AddAssign, SubAssign};

use chronorb_sched::{Load, Task, compare_to_processor};

use crate::budget::{Budget, BudgetError};

/// A whole processor, in the unit of [`Usage`].
pub(crate) const WHOLE: u128 = 1 << 64;

/// More than a processor. No usage is counted above it, so sums do not overflow.
const MOST: u128 = 1 << 96;

/// A part of the processor, between two bounds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Usage {
    least: u128,
    most: u128,
}

impl Usage {
    /// The usage of a load, whose period is not zero.
    pub(crate) fn of(load: Load) -> Self {
        let (least, is_exact) = divide(load.cost, load.period);
        let most = least + u128::from(!is_exact);
        Self {
            least: least.min(MOST),
            most: most.min(MOST),
        }
    }

    pub(crate) const fn least(self) -> u128 {
        self.least
    }

    /// The part of the processor that is left for certain.
    pub(crate) const fn least_free(self) -> u128 {
        WHOLE.saturating_sub(self.most)
    }

    /// Whether it is more than a processor for certain.
    pub(crate) const fn is_excessive(self) -> bool {
        self.least > WHOLE
    }

    /// Whether it is at most a processor, exactly. `loads` are those of the sum.
    pub(crate) fn fits(
        self,
        loads: impl Iterator<Item = Load>,
        budget: &mut Budget,
    ) -> Result<bool, BudgetError> {
        if self.most <= WHOLE {
            return Ok(true);
        }
        if self.is_excessive() {
            return Ok(false);
        }
        // Sums of one period make the exact numbers short.
        let mut costs = BTreeMap::<u64, u64>::new();
        for load in loads.filter(|load| load.cost > 0) {
            budget.take(1)?;
            let cost = costs.entry(load.period).or_default();
            *cost = cost.saturating_add(load.cost);
        }
        budget.take(costs.len().saturating_mul(costs.len()))?;
        let tasks: Vec<_> = costs
            .into_iter()
            .map(|(period, cost)| Task::new(cost, period))
            .collect();
        Ok(compare_to_processor(&tasks) != Ordering::Greater)
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.least += other.least;
        self.most += other.most;
    }
}

impl SubAssign for Usage {
    fn sub_assign(&mut self, other: Self) {
        self.least -= other.least;
        self.most -= other.most;
    }
}

/// Returns a time as a part of a period, rounded down. A period of zero counts as one unit.
pub(crate) fn share(time: u64, period: u64) -> u128 {
    divide(time, period).0
}

/// Returns the quotient in the unit of [`Usage`], and whether it is exact.
fn divide(time: u64, period: u64) -> (u128, bool) {
    let period = period.max(1);
    // The usual case, in words of the machine.
    if period <= u64::from(u32::MAX) {
        let (whole, rest) = (time / period, (time % period) << 32);
        let (high, rest) = (rest / period, (rest % period) << 32);
        let (low, rest) = (rest / period, rest % period);
        let share = (u128::from(whole) << 64) + (u128::from(high) << 32) + u128::from(low);
        return (share, rest == 0);
    }
    let (time, period) = (u128::from(time) << 64, u128::from(period));
    (time / period, time.is_multiple_of(period))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_usage_lies_between_its_bounds(cost: u64, period in 1..u64::from(u32::MAX)) {
            let exact = u128::from(cost) << 64;
            let usage = Usage::of(Load { cost, period, jitter: 0 });
            prop_assert_eq!(usage.least, (exact / u128::from(period)).min(MOST));
            prop_assert_eq!(usage.most, exact.div_ceil(u128::from(period)).min(MOST));
        }
    }
}
