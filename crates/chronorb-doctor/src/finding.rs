//! Findings and their verdicts.

use serde::Serialize;

/// The judgement of a finding, the most serious first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// A right or a part of the kernel that real time needs is missing.
    Missing,
    /// A setting, or the machine itself, makes urgent work wait.
    CostsLatency,
    /// The machine does not tell, or what it tells makes no sense.
    CannotBeTold,
    /// There is nothing to do.
    Good,
}

impl Verdict {
    /// All verdicts in the order in which they are shown.
    pub const ALL: [Self; 4] = [
        Self::Missing,
        Self::CostsLatency,
        Self::CannotBeTold,
        Self::Good,
    ];

    /// Returns the name for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Missing => "Missing",
            Self::CostsLatency => "Costs latency",
            Self::CannotBeTold => "Cannot be told",
            Self::Good => "Good",
        }
    }
}

/// The result of one check.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Finding {
    /// The stable name of the check for programs: `rt-throttling`.
    pub id: &'static str,
    /// The name of the check for people.
    #[serde(skip)]
    pub title: &'static str,
    /// The judgement.
    pub verdict: Verdict,
    /// The state of the machine, or the reason why it cannot be told.
    pub found: String,
    /// The cost, or the possible cost if it cannot be told; nothing where it is good.
    pub cost: Option<String>,
    /// The steps that mend it, or find it out; nothing where it is good. Lines that begin with two
    /// spaces are commands and kernel options, to be taken literally.
    pub remedy: Option<String>,
}

impl Finding {
    /// Returns the labels of cost and remedy.
    pub(crate) fn labels(&self) -> (&'static str, &'static str) {
        match self.verdict {
            Verdict::CannotBeTold => ("may cost", "to find out"),
            _ => ("costs", "to mend"),
        }
    }
}
