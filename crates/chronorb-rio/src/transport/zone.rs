//! Link-local addresses (`fe80::…`) and their zones (RFC 4007).
//!
//! `fe80::1%eth0` is `fe80::1` on the link of `eth0`. The zone, behind the `%`, is only valid on
//! this host. Therefore references contain the address without it, and the client has to know the
//! interface.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use chronorb_net::Netlink;
use chronorb_rt::Deadline;
use chronorb_transport::host_addresses;
use thiserror::Error;

/// Splits a host from the zone behind it.
pub(super) fn split(host: &str) -> Result<(&str, Option<&str>), ZoneError> {
    let Some((host, zone)) = host.split_once('%') else {
        return Ok((host, None));
    };
    match host.parse::<Ipv6Addr>() {
        Ok(address) if address.is_unicast_link_local() && !zone.is_empty() => {
            Ok((host, Some(zone)))
        }
        _ => Err(ZoneError::Elsewhere(format!("{host}%{zone}"))),
    }
}

/// Resolves a host, which may have a zone, before the deadline.
pub(super) fn resolve(
    host: &str,
    port: u16,
    deadline: Deadline,
) -> io::Result<(Vec<SocketAddr>, Option<&str>)> {
    let (host, zone) = split(host).map_err(io::Error::other)?;
    let addresses = host_addresses(host, deadline)?.into_iter();
    // The zone, if there is one, is returned separately.
    let plain = addresses.map(|address| SocketAddr::new(address.ip(), port));
    Ok((plain.collect(), zone))
}

/// Returns the interface of a zone, and checks that it agrees with an explicitly given one.
pub(super) fn interface_beside(zone: &str, given: Option<&str>) -> io::Result<String> {
    let interface = interface_of(zone)?;
    match given {
        Some(given) if given != interface => Err(io::Error::other(ZoneError::Other {
            zone: zone.to_owned(),
            interface: given.to_owned(),
        })),
        _ => Ok(interface),
    }
}

/// Returns the interface of a zone, which is its name or its index in this network namespace.
fn interface_of(zone: &str) -> io::Result<String> {
    let Ok(index) = zone.parse::<u32>() else {
        return Ok(zone.to_owned());
    };
    let links = Netlink::open().and_then(|mut netlink| netlink.links());
    let mut links = links.map_err(io::Error::other)?.into_iter();
    let found = links.find(|link| link.index == index);
    match found {
        Some(link) => Ok(link.name),
        None => Err(io::Error::other(ZoneError::NoInterface(index))),
    }
}

/// Returns the interfaces of this network namespace that have an address.
pub(super) fn interfaces_with(address: IpAddr) -> io::Result<Vec<String>> {
    let mut netlink = Netlink::open().map_err(io::Error::other)?;
    let mut names = Vec::new();
    for link in netlink.links().map_err(io::Error::other)? {
        let addresses = netlink.addresses(link.index).map_err(io::Error::other)?;
        if addresses.iter().any(|(its, _)| *its == address) {
            names.push(link.name);
        }
    }
    Ok(names)
}

/// Returns whether the address is link-local, so that it needs an interface.
pub(super) const fn needs_zone(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

/// An error of a link-local address, or of its zone.
#[derive(Debug, Error)]
pub(super) enum ZoneError {
    /// An address that is not link-local has a zone.
    #[error("{0:?} has a zone (%), which only link-local addresses have: fe80::1%eth0")]
    Elsewhere(String),
    /// A link-local address has no zone, and no interface is given.
    #[error(
        "{0} is a link-local address without an interface: name its interface, as in {0}%eth0 or \
        by -ORBRioInterface"
    )]
    Missing(IpAddr),
    /// Several interfaces have the address.
    #[error(
        "{address} is an address of {}: say which, as in {address}%{}",
        interfaces.join(" and of "),
        interfaces[0]
    )]
    Several {
        address: IpAddr,
        interfaces: Vec<String>,
    },
    /// The zone contradicts the given interface.
    #[error("{zone} is another interface than the given {interface}")]
    Other { zone: String, interface: String },
    /// There is no interface with this index.
    #[error(
        "there is no network interface with the number {0}; `ip link` lists those that there are"
    )]
    NoInterface(u32),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_one_link_have_a_zone() {
        let zone = |host| split(host).ok().map(|(_, zone)| zone);
        assert_eq!(zone("fe80::1%eth0"), Some(Some("eth0")));
        assert_eq!(zone("fe80::1"), Some(None));
        assert_eq!(zone("radar.example"), Some(None));
        for wrong in [
            "fd00::1%eth0",
            "10.0.0.1%eth0",
            "radar%eth0",
            "fe80::1%",
            "%eth0",
        ] {
            assert_eq!(zone(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_zone_may_be_a_number() {
        assert_eq!(interface_of("eth0").expect("a name"), "eth0");
        assert_eq!(interface_of("1").expect("the first is always there"), "lo");
        assert!(interface_of("4000000000").is_err());
    }
}
