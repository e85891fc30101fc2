//! Whether what is claimed of the figures of an experiment is true.

use serde::Serialize;

/// Whether a claim is true.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub enum Verdict {
    /// It is.
    #[serde(rename = "PASS")]
    Pass,
    /// It is not.
    #[serde(rename = "MISSED")]
    Missed,
    /// What would tell was not measured.
    #[serde(rename = "NOT MEASURED")]
    NotMeasured,
}

impl Verdict {
    /// The word of data files.
    pub(crate) const fn recorded(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Missed => "MISSED",
            Self::NotMeasured => "NOT MEASURED",
        }
    }

    /// That of a claim that was measured.
    #[must_use]
    pub const fn of(holds: bool) -> Self {
        if holds { Self::Pass } else { Self::Missed }
    }
}
