//! Who takes part.

use serde::Serialize;

use super::protocol::Protocol;

/// Who takes part, by a protocol or beside it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum System {
    /// What the protocol stands on, with nothing above it.
    Raw,
    /// The ORB with GIOP.
    Giop,
    /// The ORB with GIOPlite.
    GiopLite,
    /// omniORB over TCP, whatever the protocol is: a yardstick.
    #[serde(rename = "omniorb-tcp")]
    OmniOrbTcp,
    /// omniORB over its Unix-domain transport.
    #[serde(rename = "omniorb-unix")]
    OmniOrbUnix,
}

impl System {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Raw,
        Self::Giop,
        Self::GiopLite,
        Self::OmniOrbTcp,
        Self::OmniOrbUnix,
    ];

    /// In words.
    #[must_use]
    pub fn name(self, protocol: Protocol) -> String {
        match self {
            Self::Raw => protocol.raw_name().to_owned(),
            Self::Giop => format!("{}, GIOP", protocol.scheme()),
            Self::GiopLite => format!("{}, GIOPlite", protocol.scheme()),
            Self::OmniOrbTcp => format!("omniORB over TCP, beside {}", protocol.scheme()),
            Self::OmniOrbUnix => "omniORB over Unix-domain".to_owned(),
        }
    }

    /// Whether it is chronorb.
    pub(super) const fn is_own(self) -> bool {
        matches!(self, Self::Giop | Self::GiopLite)
    }
}
