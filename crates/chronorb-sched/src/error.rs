//! The errors of an analysis, and the bound of its work.

use thiserror::Error;

/// A task set that cannot be analysed. A set that is not schedulable is a result and no error.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum AnalysisError {
    /// A task with a period of zero.
    #[error("task {task}: the period is zero")]
    ZeroPeriod {
        /// The index of the task.
        task: usize,
    },
    /// A task with an execution time of zero.
    #[error("task {task}: the execution time is zero")]
    ZeroCost {
        /// The index of the task.
        task: usize,
    },
    /// A task with a deadline of zero.
    #[error("task {task}: the deadline is zero")]
    ZeroDeadline {
        /// The index of the task.
        task: usize,
    },
    /// A task, transaction, resource or lock that does not exist.
    #[error("{what} {index} does not exist")]
    NoSuchIndex {
        /// The kind of the item.
        what: &'static str,
        /// The index of the item.
        index: usize,
    },
    /// Times or a hyperperiod above 64 bits.
    #[error("the times are too large: a result exceeds 64 bits")]
    TooLarge,
    /// More steps than the bound of an analysis.
    #[error("the analysis takes too many steps: use coarser times, or fewer different periods")]
    TooComplex,
}

impl AnalysisError {
    /// Returns the error with another index of the task.
    pub(crate) const fn with_task(self, task: usize) -> Self {
        match self {
            Self::ZeroPeriod { .. } => Self::ZeroPeriod { task },
            Self::ZeroCost { .. } => Self::ZeroCost { task },
            Self::ZeroDeadline { .. } => Self::ZeroDeadline { task },
            other => other,
        }
    }
}

/// A bound of the steps of one analysis, so that its time is bounded for any input.
#[derive(Debug)]
pub(crate) struct Steps(u64);

impl Steps {
    /// Creates the bound for an analysis of this many tasks, in terms of sums.
    pub(crate) const fn new(tasks: usize) -> Self {
        Self((tasks as u64 + 1) << 17)
    }

    /// Takes as many steps as a sum has terms.
    pub(crate) fn take(&mut self, terms: usize) -> Result<(), AnalysisError> {
        let left = self.0.checked_sub(terms.max(1) as u64);
        self.0 = left.ok_or(AnalysisError::TooComplex)?;
        Ok(())
    }

    /// Runs a part of the analysis with at most a fraction of the steps that are left.
    pub(crate) fn part<T>(&mut self, fraction: u64, run: impl FnOnce(&mut Self) -> T) -> T {
        let share = self.0 / fraction.max(1);
        let mut part = Self(share);
        let result = run(&mut part);
        self.0 -= share - part.0;
        result
    }

    /// Whether less than a fraction of what `first` has is left.
    pub(crate) const fn is_below(&self, first: &Self, fraction: u64) -> bool {
        self.0 < first.0 / fraction
    }

    /// Fails at once if there are not enough steps for as many sums.
    pub(crate) fn reserve(&self, sums: u64, terms: usize) -> Result<(), AnalysisError> {
        if sums.saturating_mul(terms.max(1) as u64) > self.0 {
            return Err(AnalysisError::TooComplex);
        }
        Ok(())
    }
}
