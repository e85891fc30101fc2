//! Policies for operations that exceed their budgets.

use std::fmt;
use std::str::FromStr;

/// The treatment of an operation that uses more processor time than its budget.
///
/// In each case the overrun is counted, and reported to the log as the incident
/// [`Overrun`](crate::Incident::Overrun).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum OverrunPolicy {
    /// Nothing else happens.
    Log,
    /// The thread is lowered to ordinary scheduling at the end of the budget, until the operation
    /// ends. The kernel compares at its ticks, so a budget of less than a few milliseconds is not
    /// kept exactly.
    Demote,
    /// The following requests of the operation are refused by `TRANSIENT` (minor `0x43520003`)
    /// until they have made up for the overrun: each counts one budget.
    Skip,
}

impl OverrunPolicy {
    /// All policies.
    pub const ALL: [Self; 3] = [Self::Log, Self::Demote, Self::Skip];

    /// Returns the name, as in settings and schedules.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Demote => "demote",
            Self::Skip => "skip",
        }
    }
}

impl fmt::Display for OverrunPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for OverrunPolicy {
    type Err = String;

    /// # Errors
    /// The text is none of the names.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Self::ALL.into_iter();
        all.find(|policy| policy.name() == text)
            .ok_or_else(|| format!("{text:?} is not log, demote or skip"))
    }
}
