//! The origins of requests and connections, the unit of limits.

use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::OnceLock;

use chronorb_transport::{Connection, RemoteAddress};

/// The peers whose use of a limited resource counts together.
///
/// The origin is the strongest identity that the transport reports: a certificate before an
/// address. The source address of a datagram can be forged.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Origin {
    /// The holder of a certificate (TLS), by a fingerprint that differs between processes.
    Certificate(u64),
    /// A user of this machine, at a Unix-domain socket or in shared memory, by its number.
    User(u32),
    /// A host; with IPv6 its network of 64 bits, because a host may have any number of addresses
    /// in it.
    Host(IpAddr),
    /// A connection on the loopback, by the address and port of its other end, since all users of
    /// this machine have one host.
    Connection(IpAddr, u16),
    /// A peer of which its protocol reports nothing; all peers of the protocol are one origin.
    Protocol(&'static str),
    /// A call from within this process, which has a share of its own like any other origin.
    Process,
}

impl Origin {
    /// The origin of what arrives on a connection.
    pub(crate) fn from_connection(transport: &dyn Connection) -> Self {
        match transport.peer_certificate() {
            Some(certificate) => Self::Certificate(fingerprint(certificate)),
            None => Self::by_address(transport),
        }
    }

    /// A hash of the origin, which differs between processes.
    #[cfg(feature = "distributable-threads")]
    pub(crate) fn fingerprint(self) -> u64 {
        fingerprint(self)
    }

    /// The origin by the address of the peer, without a look at certificates.
    pub(crate) fn by_address(transport: &dyn Connection) -> Self {
        let remote = transport.remote();
        match remote.address {
            RemoteAddress::Process(credentials) => Self::User(credentials.uid),
            RemoteAddress::Host(address) => Self::of_host(address),
            RemoteAddress::Unknown => Self::Protocol(remote.scheme),
        }
    }

    /// Returns the key of the origin.
    pub(crate) fn key(self) -> OriginKey {
        let (kind, value) = match self {
            Self::User(uid) => return OriginKey::of_user(uid),
            Self::Host(ip) => return OriginKey::of_host(ip),
            Self::Connection(IpAddr::V4(v4), port) => {
                (4 | u32::from(port) << 8, v4.to_bits().into())
            }
            // IPv6 has one address of the loopback.
            Self::Connection(IpAddr::V6(v6), port) => {
                (5 | u32::from(port) << 8, v6.to_bits() as u64)
            }
            Self::Certificate(fingerprint) => (6, fingerprint),
            // That of another protocol by chance, in one of 2⁶⁴ cases.
            Self::Protocol(scheme) => (7, fingerprint(scheme)),
            Self::Process => (8, 0),
        };
        OriginKey { kind, value }
    }

    fn of_host(address: SocketAddr) -> Self {
        match address.ip().to_canonical() {
            ip if ip.is_loopback() => Self::Connection(ip, address.port()),
            IpAddr::V6(v6) => {
                let network = v6.to_bits() & !u128::from(u64::MAX);
                Self::Host(Ipv6Addr::from_bits(network).into())
            }
            v4 => Self::Host(v4),
        }
    }
}

/// A short form of an origin, for tables.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct OriginKey {
    /// The kind of origin, and the port of a connection; 0 for none.
    kind: u32,
    value: u64,
}

impl OriginKey {
    /// The key of no origin.
    pub(crate) const NONE: Self = Self { kind: 0, value: 0 };

    /// The key of the origin by which connections are limited before their handshake;
    /// [`NONE`](Self::NONE) on the loopback, and where the transport does not tell.
    pub(crate) fn for_limits(transport: &dyn Connection) -> Self {
        match transport.remote().address {
            RemoteAddress::Process(credentials) => Self::of_user(credentials.uid),
            RemoteAddress::Host(address) => match address.ip().to_canonical() {
                ip if ip.is_loopback() => Self::NONE,
                ip => Self::of_host(ip),
            },
            RemoteAddress::Unknown => Self::NONE,
        }
    }

    fn of_user(uid: u32) -> Self {
        Self {
            kind: 1,
            value: uid.into(),
        }
    }

    /// The key of a host, with IPv6 of its network of 64 bits.
    fn of_host(ip: IpAddr) -> Self {
        let (kind, value) = match ip {
            IpAddr::V4(v4) => (2, v4.to_bits().into()),
            IpAddr::V6(v6) => (3, (v6.to_bits() >> 64) as u64),
        };
        Self { kind, value }
    }
}

/// Displays the origin, for messages to people.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Certificate(fingerprint) => write!(f, "certificate {fingerprint:016x}"),
            Self::User(uid) => write!(f, "user {uid}"),
            Self::Host(host) => write!(f, "{host}"),
            Self::Connection(ip, port) => write!(f, "{}", SocketAddr::new(*ip, *port)),
            Self::Protocol(scheme) => write!(f, "peers by {scheme}"),
            Self::Process => f.write_str("this process"),
        }
    }
}

/// A keyed hash: without the key, a value with the fingerprint of another one is not found.
fn fingerprint(value: impl Hash) -> u64 {
    static KEYS: OnceLock<RandomState> = OnceLock::new();
    KEYS.get_or_init(RandomState::new).hash_one(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(address: &str) -> Origin {
        Origin::of_host(address.parse().expect("an address"))
    }

    #[test]
    fn each_connection_on_the_loopback_is_an_origin() {
        for address in ["127.0.0.1", "127.9.9.9", "[::1]", "[::ffff:127.0.0.1]"] {
            let (first, second) = (of(&format!("{address}:1")), of(&format!("{address}:2")));
            assert!(matches!(first, Origin::Connection(..)), "{first}");
            assert_ne!(first, second);
        }
        assert_eq!(of("127.0.0.1:7"), of("[::ffff:127.0.0.1]:7"));
    }

    #[test]
    fn addresses_of_one_host_are_one_origin() {
        assert_eq!(of("10.1.0.7:1"), of("[::ffff:10.1.0.7]:2"));
        assert_ne!(of("10.1.0.7:1"), of("10.1.0.8:1"));
        assert_eq!(of("[2001:db8::1]:1"), of("[2001:db8::ffff:2]:2"));
        assert_ne!(of("[2001:db8::1]:1"), of("[2001:db8:0:1::1]:1"));
    }

    #[test]
    fn each_origin_has_a_key_of_its_own() {
        let origins = [
            Origin::Certificate(0),
            Origin::Certificate(7),
            Origin::User(0),
            Origin::User(7),
            of("0.0.0.7:1"),
            of("10.1.0.7:1"),
            of("[0:0:0:7::1]:1"),
            of("[2001:db8::1]:1"),
            of("127.0.0.1:1"),
            of("127.0.0.1:7"),
            of("127.0.0.7:1"),
            of("[::1]:1"),
            of("[::1]:7"),
            Origin::Protocol("iiop"),
            Origin::Protocol("uiop"),
            Origin::Process,
        ];
        let mut keys = origins.map(Origin::key);
        keys.sort_unstable();
        assert!(keys.is_sorted_by(|one, next| one < next), "{keys:?}");
        assert!(!keys.contains(&OriginKey::NONE));
        let network = |host: &str| of(host).key();
        assert_eq!(network("[2001:db8::1]:1"), network("[2001:db8::ffff:2]:2"));
    }

    #[test]
    fn a_certificate_has_one_fingerprint() {
        assert_eq!(fingerprint(b"certificate"), fingerprint(b"certificate"));
        assert_ne!(fingerprint(b"certificate"), fingerprint(b"another"));
    }
}
