//! The budget of a computation: counted steps, and no time, so that equal input has equal results.

use thiserror::Error;

use crate::model::{Limits, Snapshot};

/// The steps that any computation may take, about 20 ms of a processor.
const BASE: u64 = 4_000_000;

/// The steps that a computation has left. A step is about an addition of rates.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    all: u64,
    left: u64,
}

/// A computation needs more steps than its budget.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("it needs more than {steps} steps: use fewer rates, dependencies or different periods")]
pub(crate) struct BudgetError {
    steps: u64,
}

impl Budget {
    /// Creates the budget for registered operations, in proportion to their number, their rates
    /// and dependencies.
    pub(crate) fn new(snapshot: &Snapshot, limits: &Limits) -> Self {
        let rates = snapshot.operations.iter().map(|it| it.rates.len());
        let items = snapshot.operations.len() + rates.sum::<usize>() + snapshot.dependencies.len();
        Self::of(BASE.saturating_add(limits.steps.saturating_mul(items as u64)))
    }

    pub(crate) const fn of(steps: u64) -> Self {
        Self {
            all: steps,
            left: steps,
        }
    }

    pub(crate) fn take(&mut self, steps: usize) -> Result<(), BudgetError> {
        let left = self.left.checked_sub(steps as u64);
        self.left = left.ok_or(BudgetError { steps: self.all })?;
        Ok(())
    }

    /// The steps that were taken.
    #[cfg(test)]
    pub(crate) const fn taken(&self) -> u64 {
        self.all - self.left
    }
}
