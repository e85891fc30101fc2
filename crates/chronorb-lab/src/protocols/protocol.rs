//! The protocols, and what each stands on.

use std::env;
use std::path::Path;
use std::process;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::Serialize;
use thiserror::Error;

use super::trial::Trial;
use crate::contest::certificates::{AUTHORITY, CERTIFICATE, KEY};
use crate::contest::{Medium, OrbSettings};

/// A protocol of the ORB, by the scheme of its endpoints.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Protocol {
    /// TCP.
    Iiop,
    /// Streams of Unix-domain sockets.
    Uiop,
    /// Shared memory.
    Shmiop,
    /// UDP.
    Diop,
    /// TLS over TCP.
    Ssliop,
    /// Multicast.
    Miop,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Iiop,
        Self::Uiop,
        Self::Shmiop,
        Self::Diop,
        Self::Ssliop,
        Self::Miop,
    ];

    /// As endpoints begin.
    #[must_use]
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::Iiop => "iiop",
            Self::Uiop => "uiop",
            Self::Shmiop => "shmiop",
            Self::Diop => "diop",
            Self::Ssliop => "ssliop",
            Self::Miop => "miop",
        }
    }

    /// What it stands on, in words.
    #[must_use]
    pub const fn raw_name(self) -> &'static str {
        match self {
            Self::Iiop => "raw TCP",
            Self::Uiop => "raw Unix-domain",
            Self::Shmiop => "raw shared memory",
            Self::Diop => "raw UDP",
            Self::Ssliop => "raw rustls/TCP",
            Self::Miop => "raw multicast",
        }
    }

    /// Whether it can carry this.
    pub(super) const fn carries(self, trial: Trial) -> bool {
        match self {
            Self::Iiop | Self::Uiop | Self::Shmiop | Self::Ssliop => true,
            // A message is a datagram.
            Self::Diop => trial.octets() < 1 << 16,
            Self::Miop => matches!(trial, Trial::Oneway),
        }
    }

    /// Whether GIOPlite can be agreed on: it is not where messages are datagrams.
    pub(super) const fn has_giop_lite(self) -> bool {
        !matches!(self, Self::Diop | Self::Miop)
    }

    /// What it stands on, with the certificates that TLS needs.
    pub(super) fn medium(self, certificates: &Path) -> Medium {
        match self {
            Self::Iiop => Medium::Tcp,
            Self::Uiop => Medium::Unix,
            Self::Shmiop => Medium::Memory,
            Self::Diop => Medium::Udp,
            Self::Ssliop => Medium::Tls(certificates.to_owned()),
            Self::Miop => Medium::Multicast,
        }
    }

    /// An ORB that this machine alone reaches, by nothing but this protocol.
    pub(super) fn settings(self, certificates: &Path, giop_lite: bool) -> OrbSettings {
        let endpoint = match self {
            Self::Iiop | Self::Diop | Self::Ssliop => format!("{}://127.0.0.1:0", self.scheme()),
            Self::Uiop | Self::Shmiop => format!("{}://{}", self.scheme(), unused_path()),
            Self::Miop => "miop://239.255.67.82:0".to_owned(),
        };
        let mut settings = OrbSettings::of(endpoint);
        if self == Self::Ssliop {
            let file = |name: &str| certificates.join(name).display().to_string();
            settings.server = options(&[
                ("-ORBSSLCertificate", &file(CERTIFICATE)),
                ("-ORBSSLPrivateKey", &file(KEY)),
            ]);
            settings.client = options(&[("-ORBSSLCertificateAuthority", &file(AUTHORITY))]);
        }
        if giop_lite {
            settings.server.extend(options(GIOP_LITE));
            settings.client.extend(options(GIOP_LITE));
        }
        settings
    }
}

impl FromStr for Protocol {
    type Err = UnknownProtocol;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut all = Self::ALL.into_iter();
        all.find(|protocol| protocol.scheme() == text)
            .ok_or_else(|| UnknownProtocol {
                name: text.to_owned(),
            })
    }
}

/// There is no such protocol.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
#[error("there is no protocol {name:?}; those that there are: {}", Protocol::ALL.map(Protocol::scheme).join(", "))]
pub struct UnknownProtocol {
    name: String,
}

/// The options that let an ORB speak GIOPlite.
pub(super) fn giop_lite() -> Vec<String> {
    options(GIOP_LITE)
}

/// A name that no socket of this process has had.
pub(super) fn unused_path() -> String {
    let number = NAMED.fetch_add(1, Ordering::Relaxed);
    let name = format!("chronorb-lab-{}-{number}.socket", process::id());
    env::temp_dir().join(name).display().to_string()
}

fn options(pairs: &[(&str, &str)]) -> Vec<String> {
    let words = pairs.iter().flat_map(|(name, value)| [*name, *value]);
    words.map(str::to_owned).collect()
}

static NAMED: AtomicU32 = AtomicU32::new(0);
const GIOP_LITE: &[(&str, &str)] = &[("-ORBGIOPLite", "1")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_is_known_by_its_scheme() {
        for protocol in Protocol::ALL {
            assert_eq!(protocol.scheme().parse(), Ok(protocol));
            let settings = protocol.settings(Path::new("/certificates"), false);
            let scheme = format!("{}://", protocol.scheme());
            assert!(settings.endpoints.starts_with(&scheme), "{settings:?}");
        }
        let error = "vme".parse::<Protocol>().unwrap_err().to_string();
        assert!(
            error.contains("\"vme\"") && error.contains("shmiop"),
            "{error}"
        );
    }

    #[test]
    fn no_two_servers_get_the_same_path() {
        assert_ne!(unused_path(), unused_path());
    }

    #[test]
    fn datagrams_carry_what_fits_into_one() {
        assert!(Protocol::Diop.carries(Trial::Call(1 << 10)));
        assert!(!Protocol::Diop.carries(Trial::Call(1 << 16)));
        assert!(!Protocol::Miop.carries(Trial::Call(0)));
        assert!(Protocol::Ssliop.carries(Trial::Call(1 << 16)));
    }
}
