//! The protocols, and the channels below them.

use std::env;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::Serialize;

use super::cell::Workload;
use crate::bench::certificates::{AUTHORITY, CERTIFICATE, KEY};
use crate::bench::{Medium, Operation, OrbSettings};
use crate::named::by_name;

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
    /// All protocols.
    pub const ALL: [Self; 6] = [
        Self::Iiop,
        Self::Uiop,
        Self::Shmiop,
        Self::Diop,
        Self::Ssliop,
        Self::Miop,
    ];

    /// Returns the scheme of endpoints, and the name of the raw channel below the protocol.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Iiop => ("iiop", "raw TCP"),
            Self::Uiop => ("uiop", "raw Unix-domain"),
            Self::Shmiop => ("shmiop", "raw shared memory"),
            Self::Diop => ("diop", "raw UDP"),
            Self::Ssliop => ("ssliop", "raw rustls/TCP"),
            Self::Miop => ("miop", "raw multicast"),
        }
    }

    /// The scheme of endpoints.
    #[must_use]
    pub const fn scheme(self) -> &'static str {
        self.names().0
    }

    /// The name of the raw channel below the protocol.
    pub(crate) const fn raw_name(self) -> &'static str {
        self.names().1
    }

    /// Whether the protocol can carry a workload.
    pub(super) const fn carries(self, workload: Workload) -> bool {
        match self {
            // A group sends no replies, so its messages are tried in all sizes.
            Self::Miop => workload.is_oneway(),
            _ if matches!(workload, Workload::Flood(_)) => false,
            // A message is a datagram.
            Self::Diop => workload.octets() < 1 << 16,
            Self::Iiop | Self::Uiop | Self::Shmiop | Self::Ssliop => {
                !workload.is_oneway() || workload.octets() == 0
            }
        }
    }

    /// Returns all workloads that the protocol can carry, and their operations.
    pub(super) fn workloads_and_operations(self) -> (Vec<Workload>, Vec<Operation>) {
        let workloads = Workload::ALL.into_iter();
        let workloads = workloads.filter(|workload| self.carries(*workload));
        workloads
            .map(|workload| (workload, workload.operation()))
            .unzip()
    }

    /// Whether GIOPlite can be negotiated: it cannot where messages are datagrams.
    pub(super) const fn has_giop_lite(self) -> bool {
        !matches!(self, Self::Diop | Self::Miop)
    }

    /// Returns the raw channel below the protocol, with the certificates that TLS needs.
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

    /// Returns the settings of an ORB that only this machine reaches, by this protocol alone.
    pub(crate) fn settings(self, certificates: &Path, giop_lite: bool) -> OrbSettings {
        let endpoint = match self {
            Self::Iiop | Self::Diop | Self::Ssliop => format!("{}://127.0.0.1:0", self.scheme()),
            Self::Uiop | Self::Shmiop => format!("{}://{}", self.scheme(), unused_path()),
            // The server joins the group for its member; an ORB needs an endpoint besides.
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

by_name!(Protocol);

/// Returns the options of an ORB that speaks GIOPlite.
pub(super) fn giop_lite() -> Vec<String> {
    options(GIOP_LITE)
}

/// Returns a path that no socket of this process has had.
pub(super) fn unused_path() -> String {
    let number = NAMED.fetch_add(1, Ordering::Relaxed);
    let name = format!("chronorb-lab-{}-{number}.socket", process::id());
    env::temp_dir().join(name).display().to_string()
}

/// Returns the address of a group that no other process of this machine makes, at a port that this
/// one has not used. All have equally many letters, so that references have as many octets.
fn unused_group() -> SocketAddrV4 {
    let process = process::id();
    let number = NAMED.fetch_add(1, Ordering::Relaxed) % GROUPS_EACH;
    // Groups for use within an organisation (RFC 2365) have 18 free bits, process numbers 22.
    let group = u32::from(Ipv4Addr::new(239, 192, 0, 0)) | (process & 0x3ffff);
    let port = LEAST_PORT + ((process >> 18) * GROUPS_EACH + number) as u16;
    SocketAddrV4::new(group.into(), port)
}

fn options(pairs: &[(&str, &str)]) -> Vec<String> {
    let words = pairs.iter().flat_map(|(name, value)| [*name, *value]);
    words.map(str::to_owned).collect()
}

static NAMED: AtomicU32 = AtomicU32::new(0);
/// The option that keeps multicast on this machine.
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
        let error = "vme".parse::<Protocol>().unwrap_err();
        assert!(error.contains("shmiop"), "{error}");
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
        assert!(Protocol::Diop.carries(Workload::Call(1 << 10)));
        assert!(!Protocol::Diop.carries(Workload::Call(1 << 16)));
        assert!(Protocol::Ssliop.carries(Workload::Call(1 << 16)));
    }

    #[test]
    fn groups_are_sent_messages_of_all_sizes_and_never_called() {
        for workload in Workload::ALL {
            assert_eq!(Protocol::Miop.carries(workload), workload.is_oneway());
        }
        assert!(Protocol::Iiop.carries(Workload::Oneway(0)));
        assert!(!Protocol::Iiop.carries(Workload::Flood(4)));
    }
}
