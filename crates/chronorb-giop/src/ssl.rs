//! The TLS component of references, which SSLIOP defines (CORBA Security 1.8, clause 3.7).

use std::ops::BitOr;

use chronorb_cdr::CdrError;

use crate::encapsulation::{self, Reader};
use crate::minor;

/// The tag of chronorb's component with the TLS endpoints for the requests of each priority: a list
/// of [`TaoEndpoint`](crate::TaoEndpoint), like `TAG_TAO_ENDPOINTS` for the endpoints of IIOP
/// itself.
pub const TAG_SSLIOP_LANES: u32 = minor::CHRONORB | 4;

/// The content of [`TAG_SSL_SEC_TRANS`](crate::TAG_SSL_SEC_TRANS): where TLS is spoken, at the host
/// of the profile.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct SslSecTrans {
    /// The options that the server supports.
    pub target_supports: AssociationOptions,
    /// The options that it requires.
    pub target_requires: AssociationOptions,
    /// The port of TLS; that of the profile is for connections without it, and 0 where there are
    /// none.
    pub port: u16,
}

impl SslSecTrans {
    /// Whether requests must not go by the profile's own port, without TLS.
    #[must_use]
    pub fn requires_protection(&self) -> bool {
        self.target_requires
            .intersects(AssociationOptions::PROTECTION)
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>, CdrError> {
        encapsulation::build(|e| {
            e.write_u16(self.target_supports.0)?;
            e.write_u16(self.target_requires.0)?;
            e.write_u16(self.port)
        })
    }

    pub(crate) fn decode(data: &[u8]) -> Result<Self, CdrError> {
        let mut r = Reader::new(data)?;
        Ok(Self {
            target_supports: AssociationOptions(r.read_u16()?),
            target_requires: AssociationOptions(r.read_u16()?),
            port: r.read_u16()?,
        })
    }
}

/// Properties of a connection (`Security::AssociationOptions`), as bits.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct AssociationOptions(pub u16);

impl AssociationOptions {
    /// Requests may be neither protected nor hidden.
    pub const NO_PROTECTION: Self = Self(1);
    /// Requests cannot be changed unnoticed.
    pub const INTEGRITY: Self = Self(2);
    /// Requests cannot be read by third parties.
    pub const CONFIDENTIALITY: Self = Self(4);
    /// Requests cannot be replayed.
    pub const DETECT_REPLAY: Self = Self(8);
    /// Requests cannot be reordered.
    pub const DETECT_MISORDERING: Self = Self(16);
    /// The server proves its identity.
    pub const ESTABLISH_TRUST_IN_TARGET: Self = Self(32);
    /// The client proves its identity.
    pub const ESTABLISH_TRUST_IN_CLIENT: Self = Self(64);

    /// The options that connections without TLS do not have.
    const PROTECTION: Self = Self(2 | 4 | 8 | 16 | 32 | 64);

    /// Whether it has any of these.
    #[must_use]
    pub fn intersects(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }
}

impl BitOr for AssociationOptions {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
