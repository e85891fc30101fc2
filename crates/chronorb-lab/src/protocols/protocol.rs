//! The protocols, and what each stands on.

use std::env;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::process;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::Serialize;
use thiserror::Error;

use super::trial::Trial;
use crate::bench::certificates::{AUTHORITY, CERTIFICATE, KEY};
use crate::bench::{Medium, OrbSettings};

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
            // Nobody answers for a group, so that its messages are tried in all sizes.
            Self::Miop => trial.is_oneway(),
            _ if matches!(trial, Trial::Flood(_)) => false,
            // A message is a datagram.
            Self::Diop => trial.octets() < 1 << 16,
            Self::Iiop | Self::Uiop | Self::Shmiop | Self::Ssliop => {
                !trial.is_oneway() || trial.octets() == 0
            }
        }
    }

    /// All that it can carry.
    pub(super) fn trials(self) -> Vec<Trial> {
        let trials = Trial::ALL.into_iter();
        trials.filter(|trial| self.carries(*trial)).collect()
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
            // The server listens at the group from its member on; an ORB has to have an endpoint besides.
            Self::Miop => Self::Iiop.settings(certificates, false).endpoints,
        };
        let mut settings = OrbSettings::of(endpoint);
        if self == Self::Miop {
            settings.server = options(THIS_MACHINE);
            settings.client = options(THIS_MACHINE);
            settings.group = Some(format!("corbaloc:miop:1.0@1.0-Lab-1/{}", unused_group()));
        }
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

/// The address of a group that no other process of this machine makes, at a port that this one has not used. All have
/// equally many letters, so that references have as many octets.
fn unused_group() -> SocketAddrV4 {
    let process = process::id();
    let number = NAMED.fetch_add(1, Ordering::Relaxed) % GROUPS_EACH;
    // Of those for use within an organisation (RFC 2365), whose last 18 bits are free; process numbers have 22.
    let group = u32::from(Ipv4Addr::new(239, 192, 0, 0)) | (process & 0x3ffff);
    let port = LEAST_PORT + ((process >> 18) * GROUPS_EACH + number) as u16;
    SocketAddrV4::new(group.into(), port)
}

fn options(pairs: &[(&str, &str)]) -> Vec<String> {
    let words = pairs.iter().flat_map(|(name, value)| [*name, *value]);
    words.map(str::to_owned).collect()
}

static NAMED: AtomicU32 = AtomicU32::new(0);
/// Multicast does not leave this machine.
const THIS_MACHINE: &[(&str, &str)] = &[("-ORBMulticast", "interface=lo&ttl=0")];
const LEAST_PORT: u16 = 20_000;
const GROUPS_EACH: u32 = 512;
const GIOP_LITE: &[(&str, &str)] = &[("-ORBGIOPLite", "1")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_is_known_by_its_scheme() {
        for protocol in Protocol::ALL {
            assert_eq!(protocol.scheme().parse(), Ok(protocol));
            let settings = protocol.settings(Path::new("/certificates"), false);
            let place = settings.group.as_ref().unwrap_or(&settings.endpoints);
            let scheme = format!("{}:", protocol.scheme());
            assert!(place.contains(&scheme), "{settings:?}");
        }
        let error = "vme".parse::<Protocol>().unwrap_err().to_string();
        assert!(
            error.contains("\"vme\"") && error.contains("shmiop"),
            "{error}"
        );
    }

    #[test]
    fn no_two_servers_get_the_same_path_or_group() {
        assert_ne!(unused_path(), unused_path());
        let (one, other) = (unused_group(), unused_group());
        assert_ne!(one, other);
        assert!(one.ip().is_multicast(), "{one}");
    }

    #[test]
    fn datagrams_carry_what_fits_into_one() {
        assert!(Protocol::Diop.carries(Trial::Call(1 << 10)));
        assert!(!Protocol::Diop.carries(Trial::Call(1 << 16)));
        assert!(Protocol::Ssliop.carries(Trial::Call(1 << 16)));
    }

    #[test]
    fn groups_are_sent_messages_of_all_sizes_and_never_called() {
        for trial in Trial::ALL {
            assert_eq!(Protocol::Miop.carries(trial), trial.is_oneway());
        }
        assert!(Protocol::Iiop.carries(Trial::Oneway(0)));
        assert!(!Protocol::Iiop.carries(Trial::Flood(4)));
    }
}
