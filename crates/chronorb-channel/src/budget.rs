//! The time that a consumer may use of its lane.

use std::time::Duration;

/// The time that a consumer may use of its lane within each period.
///
/// When it has used more, its events wait in its queue until the next period, and other consumers
/// of the lane are served. Time beyond the budget counts in the next period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The time within each period.
    pub cost: Duration,
    /// The period. Zero is no bound.
    pub period: Duration,
}

/// The account of a budget, in nanoseconds of the channel's clock.
#[derive(Debug)]
pub(crate) struct BudgetAccount {
    cost: u64,
    period: u64,
    /// The beginning of the present period.
    begin: u64,
    used: u64,
}

impl BudgetAccount {
    /// The account of a consumer that begins now; `None` without a bound.
    pub(crate) fn new(budget: Budget, now: u64) -> Option<Self> {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let period = nanos(budget.period);
        (period > 0).then(|| Self {
            cost: nanos(budget.cost),
            period,
            begin: now,
            used: 0,
        })
    }

    /// Returns the time until which the consumer is not served, if it has used its budget.
    pub(crate) fn paused_until(&mut self, now: u64) -> Option<u64> {
        let periods = now.saturating_sub(self.begin) / self.period;
        self.begin += periods * self.period;
        self.used = self.used.saturating_sub(self.cost.saturating_mul(periods));
        (self.used >= self.cost).then(|| self.begin.saturating_add(self.period))
    }

    pub(crate) fn charge(&mut self, nanos: u64) {
        self.used = self.used.saturating_add(nanos);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(cost: u64, period: u64) -> Option<BudgetAccount> {
        let [cost, period] = [cost, period].map(Duration::from_nanos);
        BudgetAccount::new(Budget { cost, period }, 1000)
    }

    #[test]
    fn time_beyond_the_budget_is_paid_back() {
        let mut account = account(10, 100).expect("it has a bound");
        assert_eq!(account.paused_until(1000), None);
        account.charge(9);
        assert_eq!(account.paused_until(1050), None);
        account.charge(16);
        assert_eq!(account.paused_until(1099), Some(1100));
        // 25 were used of 10, and 15 of the next 10.
        assert_eq!(account.paused_until(1100), Some(1200));
        assert_eq!(account.paused_until(1200), None);
        account.charge(5);
        assert_eq!(account.paused_until(1250), Some(1300));
        assert_eq!(account.paused_until(9999), None);
    }

    #[test]
    fn a_budget_without_a_period_is_no_bound() {
        assert!(account(10, 0).is_none());
    }

    #[test]
    fn nothing_is_served_without_any_time() {
        let mut account = account(0, 100).expect("it has a bound");
        assert_eq!(account.paused_until(5000), Some(5100));
    }
}
