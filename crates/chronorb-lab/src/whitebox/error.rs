//! Why the experiment fails.

use std::error::Error;

use thiserror::Error;

use crate::process::ProcessError;

/// It could not be counted what calls cost inside.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WhiteboxError {
    /// A process failed, or could not be understood.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A server or a client could not do its work.
    #[error("{doing}: {source}")]
    Work {
        /// What it tried.
        doing: &'static str,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The program's allocator does not count.
    #[error(
        "allocations are not counted: chronorb_rt::CountingAllocator is not the program's global allocator"
    )]
    Allocator,
}

/// Calls do more than they need.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("{missed} of the budgets' claims are missed: calls do more than they need")]
pub struct BrokenBudgets {
    /// How many claims of the budgets do not hold.
    pub missed: usize,
}

impl WhiteboxError {
    /// Names what was tried when `source` happened.
    pub(super) fn work<E>(doing: &'static str) -> impl Fn(E) -> Self
    where
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        move |source| Self::Work {
            doing,
            source: source.into(),
        }
    }
}
