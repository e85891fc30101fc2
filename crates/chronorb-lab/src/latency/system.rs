//! The systems that are compared.

use std::str::FromStr;

use serde::Serialize;

/// A system that makes the call.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LatencySystem {
    /// Raw TCP; both sides block.
    RawBlocking,
    /// The ORB; both sides block.
    Chronorb,
    /// omniORB, which blocks.
    #[serde(rename = "omniorb")]
    OmniOrb,
    /// Raw TCP; both sides spin.
    RawSpinning,
    /// The ORB; both sides spin.
    ChronorbSpinning,
}

impl LatencySystem {
    /// All systems, in the order of tables.
    pub const ALL: [Self; 5] = [
        Self::RawBlocking,
        Self::Chronorb,
        Self::OmniOrb,
        Self::RawSpinning,
        Self::ChronorbSpinning,
    ];

    /// Returns the name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RawBlocking => "raw TCP, blocking",
            Self::Chronorb => "chronorb, blocking",
            Self::OmniOrb => "omniORB",
            Self::RawSpinning => "raw TCP, spinning",
            Self::ChronorbSpinning => "chronorb, spinning",
        }
    }

    /// Whether it spins, and so needs a CPU for each side.
    #[must_use]
    pub const fn spins(self) -> bool {
        matches!(self, Self::RawSpinning | Self::ChronorbSpinning)
    }

    /// Returns raw TCP that waits in the same way.
    pub(super) const fn raw(self) -> Self {
        if self.spins() {
            Self::RawSpinning
        } else {
            Self::RawBlocking
        }
    }
}

/// The ways to wait that take part.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct WaitSet {
    /// Whether systems that block take part.
    pub block: bool,
    /// Whether systems that spin take part.
    pub spin: bool,
}

impl WaitSet {
    /// Both ways.
    pub const BOTH: Self = Self {
        block: true,
        spin: true,
    };

    pub(super) const fn includes(self, system: LatencySystem) -> bool {
        if system.spins() {
            self.spin
        } else {
            self.block
        }
    }
}

impl FromStr for WaitSet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (block, spin) = match text {
            "block" => (true, false),
            "spin" => (false, true),
            "both" => (true, true),
            _ => return Err(format!("{text:?} is not block, spin or both")),
        };
        Ok(Self { block, spin })
    }
}
