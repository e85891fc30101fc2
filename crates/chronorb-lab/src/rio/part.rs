//! The experiments of the paper's section 4.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// One of the experiments that belong together.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Part {
    /// What scheduled processing costs beside processing on arrival.
    Processing,
    /// Low latency beside bulk traffic that keeps the receiver busy.
    Company,
    /// Guarantees and limits of bandwidth.
    Guarantees,
    /// The ORB, with and without RIO below it.
    Orb,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Processing, Self::Company, Self::Guarantees, Self::Orb];

    /// Its name on the command line and in figures.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Processing => "e10",
            Self::Company => "e11",
            Self::Guarantees => "e12",
            Self::Orb => "e13",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|part| part.name() == text);
        named.ok_or_else(|| format!("there are {}", Self::ALL.map(Self::name).join(", ")))
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
