//! The verdict on a claim.

use serde::Serialize;

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub enum Verdict {
    /// The claim is true.
    #[serde(rename = "PASS")]
    Pass,
    /// The claim is not true.
    #[serde(rename = "MISSED")]
    Missed,
    /// The figures that decide were not measured.
    #[serde(rename = "NOT MEASURED")]
    NotMeasured,
}

impl Verdict {
    /// Returns the verdict as it is written in JSON.
    pub(crate) const fn recorded(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Missed => "MISSED",
            Self::NotMeasured => "NOT MEASURED",
        }
    }

    /// Returns the verdict on a claim that was measured.
    #[must_use]
    pub const fn of(holds: bool) -> Self {
        if holds { Self::Pass } else { Self::Missed }
    }
}
