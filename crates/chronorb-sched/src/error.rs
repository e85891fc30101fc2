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

    /// Fails at once if there are not enough steps for as many sums.
    pub(crate) fn reserve(&self, sums: u64, terms: usize) -> Result<(), AnalysisError> {
        if sums.saturating_mul(terms.max(1) as u64) > self.0 {
            return Err(AnalysisError::TooComplex);
        }
        Ok(())
    }
}
