//! What was found, what it costs and how to mend it.

use serde::Serialize;

/// What is to be thought of a finding.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// A right or a part of the kernel that real time needs is not there.
    Missing,
    /// A setting, or the machine itself, makes urgent work wait.
    CostsLatency,
    /// It could not be read, or not be understood.
    CannotBeTold,
    /// Nothing is to be done.
    Good,
}

impl Verdict {
    /// All, in the order in which they are shown.
    pub const ALL: [Self; 4] = [
        Self::Missing,
        Self::CostsLatency,
        Self::CannotBeTold,
        Self::Good,
    ];

    /// Its name for people.
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

/// What one check came to.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Finding {
    /// The name of the check for programs, which stays the same: `rt-throttling`.
    pub id: &'static str,
    /// Its name for people.
    #[serde(skip)]
    pub title: &'static str,
    /// What is to be thought of it.
    pub verdict: Verdict,
    /// What the machine says; where it cannot be told, why.
    pub found: String,
    /// What it costs, or would cost if it cannot be told; nothing where it is good.
    pub cost: Option<String>,
    /// How to mend it, or to find it out; nothing where it is good. Lines that begin with two
    /// spaces are commands and kernel options, to be taken literally.
    pub remedy: Option<String>,
}

/// What a check says of what it found.
#[derive(Clone, Debug)]
pub(super) struct Judgement {
    pub(super) verdict: Verdict,
    pub(super) found: String,
    /// Where it is not the cost of the check.
    pub(super) cost: Option<&'static str>,
    pub(super) remedy: String,
}

impl Judgement {
    pub(super) fn good(found: impl Into<String>) -> Self {
        Self::new(Verdict::Good, found, String::new())
    }

    pub(super) fn costs(found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(Verdict::CostsLatency, found, remedy)
    }

    pub(super) fn missing(found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(Verdict::Missing, found, remedy)
    }

    /// It cannot be told for a reason that is no unreadable file.
    pub(super) fn unknown(found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(Verdict::CannotBeTold, found, remedy)
    }

    /// Costs something else than the check says.
    pub(super) fn costing(self, cost: &'static str) -> Self {
        Self {
            cost: Some(cost),
            ..self
        }
    }

    fn new(verdict: Verdict, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            verdict,
            found: found.into(),
            cost: None,
            remedy: remedy.into(),
        }
    }
}

/// A remedy that is an option of the kernel's command line.
pub(super) fn boot_with(options: &str) -> String {
    format!(
        "add to the kernel's command line (GRUB_CMDLINE_LINUX in /etc/default/grub, then \
         update-grub) and boot:\n  {options}"
    )
}
