//! The origins of connections, for which the number of connections is limited.

use std::net::{IpAddr, Ipv6Addr};

use chronorb_transport::{Connection, RemoteAddress};

/// A peer whose connections count together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Origin {
    /// A host; with IPv6 its network, because a host may have any number of addresses in it.
    Host(IpAddr),
    /// A user of this machine, at a Unix-domain socket.
    User(u32),
}

impl Origin {
    /// The origin of a connection; `None` on the loopback, and where the transport does not tell.
    pub(super) fn of(transport: &dyn Connection) -> Option<Self> {
        match transport.remote().address {
            RemoteAddress::Process(credentials) => Some(Self::User(credentials.uid)),
            RemoteAddress::Host(address) => Self::of_host(address.ip()),
            RemoteAddress::Unknown => None,
        }
    }

    fn of_host(address: IpAddr) -> Option<Self> {
        match address.to_canonical() {
            address if address.is_loopback() => None,
            IpAddr::V6(v6) => {
                let network = v6.to_bits() & !u128::from(u64::MAX);
                Some(Self::Host(Ipv6Addr::from_bits(network).into()))
            }
            v4 => Some(Self::Host(v4)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(address: &str) -> Option<Origin> {
        Origin::of_host(address.parse().expect("an address"))
    }

    #[test]
    fn the_loopback_has_no_limit() {
        for address in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(of(address), None, "{address}");
        }
    }

    #[test]
    fn addresses_of_one_host_are_one_origin() {
        assert_eq!(of("10.1.0.7"), of("::ffff:10.1.0.7"));
        assert_ne!(of("10.1.0.7"), of("10.1.0.8"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    }
}
