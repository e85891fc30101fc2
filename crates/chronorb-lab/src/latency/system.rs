//! The systems that are compared.

use std::str::FromStr;

use serde::Serialize;

use crate::bench::Waits;

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

    /// Returns the way in which both sides wait. A side that spins needs a CPU.
    #[must_use]
    pub const fn waits(self) -> Waits {
        match self {
            Self::RawBlocking | Self::Chronorb | Self::OmniOrb => Waits::Block,
            Self::RawSpinning | Self::ChronorbSpinning => Waits::Spin,
        }
    }

    /// Whether it spins.
    #[must_use]
    pub fn spins(self) -> bool {
        self.waits() == Waits::Spin
    }

    /// Returns raw TCP that waits in the same way.
    pub(super) const fn raw(self) -> Self {
        match self.waits() {
            Waits::Block => Self::RawBlocking,
            Waits::Spin => Self::RawSpinning,
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

    /// Whether systems that wait in this way take part.
    pub(super) const fn includes(self, waits: Waits) -> bool {
        match waits {
            Waits::Block => self.block,
            Waits::Spin => self.spin,
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
