//! The sides of connections on which an ORB uses bidirectional GIOP.

use super::{BidirectionalConnections, OrbConfig};

impl OrbConfig {
    /// Whether connections may be bidirectional.
    pub(crate) fn is_bidirectional(&self) -> bool {
        self.bidirectional != BidirectionalConnections::Off
    }
}

impl BidirectionalConnections {
    pub(crate) fn offers(self) -> bool {
        matches!(self, Self::Offer | Self::Both)
    }

    pub(crate) fn accepts(self) -> bool {
        matches!(self, Self::Accept | Self::Both)
    }
}
