//! The permitted versions of TLS.

use std::str::FromStr;

use rustls::SupportedProtocolVersion;
use rustls::version::{TLS12, TLS13};

use super::TlsConfigError;

/// The versions of TLS that a program speaks. Older ones than 1.2 are broken, and there are none
/// here.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum TlsVersions {
    /// 1.3 with peers that support it, 1.2 with others.
    #[default]
    Both,
    /// 1.2 only.
    Tls12,
    /// 1.3 only.
    Tls13,
}

impl TlsVersions {
    pub(super) fn supported(self) -> Vec<&'static SupportedProtocolVersion> {
        match self {
            Self::Both => vec![&TLS13, &TLS12],
            Self::Tls12 => vec![&TLS12],
            Self::Tls13 => vec![&TLS13],
        }
    }
}

/// Reads `1.2`, `1.3`, or both with a comma between them.
impl FromStr for TlsVersions {
    type Err = TlsConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut spoken = (false, false);
        for version in text.split(',') {
            match version.trim() {
                "1.2" => spoken.0 = true,
                "1.3" => spoken.1 = true,
                other => return Err(TlsConfigError::UnknownVersion(other.to_owned())),
            }
        }
        // A text has at least one part.
        Ok(match spoken {
            (true, false) => Self::Tls12,
            (false, true) => Self::Tls13,
            _ => Self::Both,
        })
    }
}
