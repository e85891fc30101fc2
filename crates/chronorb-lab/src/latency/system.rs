//! Who takes part.

use std::str::FromStr;

use serde::Serialize;

/// Who takes part.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum System {
    /// Raw TCP; both sides sleep until they are woken.
    RawBlocking,
    /// The ORB, waiting like that.
    Chronorb,
    /// omniORB, which waits like that.
    #[serde(rename = "omniorb")]
    OmniOrb,
    /// Raw TCP; both sides look again and again.
    RawSpinning,
    /// The ORB, waiting like that.
    ChronorbSpinning,
}

impl System {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::RawBlocking,
        Self::Chronorb,
        Self::OmniOrb,
        Self::RawSpinning,
        Self::ChronorbSpinning,
    ];

    /// In words.
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

    /// Whether it needs a CPU for each side.
    #[must_use]
    pub const fn spins(self) -> bool {
        matches!(self, Self::RawSpinning | Self::ChronorbSpinning)
    }

    /// Raw TCP that waits like it.
    pub(super) const fn raw(self) -> Self {
        match self.spins() {
            true => Self::RawSpinning,
            false => Self::RawBlocking,
        }
    }
}

/// Which ways to wait take part.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct WaitSet {
    /// Those that sleep until they are woken.
    pub block: bool,
    /// Those that look again and again.
    pub spin: bool,
}

impl WaitSet {
    /// Both.
    pub const BOTH: Self = Self {
        block: true,
        spin: true,
    };

    pub(super) const fn includes(self, system: System) -> bool {
        match system.spins() {
            true => self.spin,
            false => self.block,
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
