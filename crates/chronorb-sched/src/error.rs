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
    /// A transaction with a step that suspends itself, where its blocking would change with others.
    #[error(
        "transaction {task}: a step waits for a lock of several processors, and how long that can \
         be changes with each session"
    )]
    Suspends {
        /// The index of the transaction.
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
pub(crate) struct Steps {
    /// The rest of the bound. Beyond it a part of the analysis may be left out.
    left: u64,
    granted: StepGrant,
}

/// The steps that a caller grants to several analyses. Beyond them there is no result.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum StepGrant {
    Left(u64),
    UsedUp,
}

impl StepGrant {
    /// More steps than any analysis takes.
    pub(crate) const ALL: Self = Self::Left(u64::MAX);

    fn take(&mut self, steps: u64) -> Result<(), AnalysisError> {
        let left = match *self {
            Self::Left(left) => left.checked_sub(steps),
            Self::UsedUp => None,
        };
        *self = left.map_or(Self::UsedUp, Self::Left);
        self.check()
    }

    /// Fails if an analysis needed more.
    pub(crate) const fn check(self) -> Result<(), AnalysisError> {
        match self {
            Self::Left(_) => Ok(()),
            Self::UsedUp => Err(AnalysisError::TooComplex),
        }
    }
}

impl Steps {
    /// Creates the bound for an analysis of this many tasks, in terms of sums.
    pub(crate) const fn new(tasks: usize) -> Self {
        Self::of(tasks, StepGrant::ALL)
    }

    /// Creates the bound as [`new`](Self::new), of what the caller grants.
    pub(crate) const fn of(tasks: usize, granted: StepGrant) -> Self {
        Self {
            left: (tasks as u64 + 1) << 17,
            granted,
        }
    }

    /// Returns the rest of what the caller grants.
    pub(crate) const fn granted(&self) -> StepGrant {
        self.granted
    }

    /// Takes steps of what the caller grants only, for work beside the sums.
    pub(crate) fn visit(&mut self, terms: usize) -> Result<(), AnalysisError> {
        self.granted.take(terms as u64)
    }

    /// Takes as many steps as a sum has terms.
    pub(crate) fn take(&mut self, terms: usize) -> Result<(), AnalysisError> {
        let terms = terms.max(1) as u64;
        let left = self.left.checked_sub(terms);
        self.left = left.ok_or(AnalysisError::TooComplex)?;
        self.granted.take(terms)
    }

    /// Runs a part of the analysis with at most a fraction of the steps that are left.
    pub(crate) fn part<T>(&mut self, fraction: u64, run: impl FnOnce(&mut Self) -> T) -> T {
        let share = self.left / fraction.max(1);
        let mut part = Self {
            left: share,
            granted: self.granted,
        };
        let result = run(&mut part);
        self.left -= share - part.left;
        self.granted = part.granted;
        result
    }

    /// Whether less than a fraction of what `first` has is left.
    pub(crate) const fn is_below(&self, first: &Self, fraction: u64) -> bool {
        self.left < first.left / fraction
    }

    /// Whether there are enough steps for as many sums.
    pub(crate) const fn has(&self, sums: u64, terms: usize) -> bool {
        let terms = if terms == 0 { 1 } else { terms as u64 };
        sums.saturating_mul(terms) <= self.left
    }
}
