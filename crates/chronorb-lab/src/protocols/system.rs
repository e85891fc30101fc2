//! The systems that are compared.

use serde::Serialize;

use super::protocol::Protocol;

/// A system that is measured by a protocol or beside it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProtocolSystem {
    /// The raw channel below the protocol.
    Raw,
    /// The ORB with GIOP.
    Giop,
    /// The ORB with GIOPlite.
    GiopLite,
    /// omniORB over TCP, beside any protocol for comparison.
    #[serde(rename = "omniorb-tcp")]
    OmniOrbTcp,
    /// omniORB over its Unix-domain transport.
    #[serde(rename = "omniorb-unix")]
    OmniOrbUnix,
}

impl ProtocolSystem {
    /// All systems.
    pub const ALL: [Self; 5] = [
        Self::Raw,
        Self::Giop,
        Self::GiopLite,
        Self::OmniOrbTcp,
        Self::OmniOrbUnix,
    ];

    /// The name in texts and tables.
    #[must_use]
    pub fn name(self, protocol: Protocol) -> String {
        let scheme = protocol.scheme();
        match self {
            Self::Raw => protocol.raw_name().to_owned(),
            Self::Giop => format!("{scheme}, GIOP"),
            Self::GiopLite => format!("{scheme}, GIOPlite"),
            Self::OmniOrbTcp => format!("omniORB over TCP, beside {scheme}"),
            Self::OmniOrbUnix => "omniORB over Unix-domain".to_owned(),
        }
    }

    /// Whether it is chronorb.
    pub(super) const fn is_own(self) -> bool {
        matches!(self, Self::Giop | Self::GiopLite)
    }
}
