//! Options of sending to groups and listening at them.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::{self, AddressFamily, SocketFlags, SocketType, netdevice, sockopt};

use crate::ip_options::refused;
use crate::{Address, Endpoint, EndpointError};

/// Options of sending to groups and listening at them.
///
/// The text form, also in endpoints, is `name=value[&…]`, with the names of the fields:
/// `interface=eth1&ttl=4`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MulticastOptions {
    /// The interface that groups are joined and sent to on: its name, or one of its IPv4 addresses;
    /// `None` leaves that to the kernel's routes.
    pub interface: Option<String>,
    /// The number of networks that packets cross, 0 to 255: with 1, the default, no router forwards
    /// them, and with 0 they stay on this machine.
    pub ttl: u8,
    /// Whether listeners of this machine receive its packets; they do by default.
    pub loopback: bool,
    /// The octets of the longest IP packet that is sent, 256 to 65535; by default 1500, as Ethernet
    /// carries. JacORB takes no longer ones.
    pub mtu: u16,
    /// The octets of the longest message that is sent or taken; 1 MiB by default.
    pub max: u32,
    /// The octets of messages that are sent each second at most; 0, the default, for as many as can
    /// be. A message that is longer than the listeners' socket buffers needs that they are given
    /// time to empty them. It holds for senders that may wait; those that may not send at once.
    pub rate: u32,
}

impl Default for MulticastOptions {
    fn default() -> Self {
        Self {
            interface: None,
            ttl: 1,
            loopback: true,
            mtu: 1500,
            max: 1 << 20,
            rate: 0,
        }
    }
}

impl MulticastOptions {
    /// Reads options from text; those that are not given are as by default.
    ///
    /// # Errors
    /// The name or value that is unknown or malformed.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut options = Self::default();
        for option in text.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option
                .split_once('=')
                .ok_or_else(|| format!("the option {option:?} is not of the form name=value"))?;
            options.set(name, value)?;
        }
        Ok(options)
    }

    /// These options, with those that an endpoint gives instead.
    pub(super) fn with(&self, endpoint: &Endpoint) -> Result<Self, EndpointError> {
        let mut options = self.clone();
        for (name, value) in &endpoint.options {
            options
                .set(name, value)
                .map_err(|problem| endpoint.error(problem))?;
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let wrong = |wanted: &str| format!("the {name} {value:?} is not {wanted}");
        match name {
            "interface" => self.interface = Some(value.to_owned()),
            "ttl" => self.ttl = value.parse().map_err(|_| wrong("a number from 0 to 255"))?,
            "loopback" => {
                self.loopback = match value {
                    "0" => false,
                    "1" => true,
                    _ => return Err(wrong("0 or 1")),
                }
            }
            "mtu" => {
                let mtu = value.parse().ok().filter(|mtu| *mtu >= LEAST_MTU);
                self.mtu = mtu.ok_or_else(|| wrong("a number from 256 to 65535"))?;
            }
            "max" => {
                let max = value.parse().ok().filter(|max| *max >= LEAST_MAX);
                self.max = max.ok_or_else(|| wrong("a number from 1024 to 4294967295"))?;
            }
            "rate" => self.rate = value.parse().map_err(|_| wrong("a number"))?,
            _ => return Err(format!("the option {name:?} is not known")),
        }
        Ok(())
    }
}

/// A group, at the port that its members listen at.
///
/// # Errors
/// The reason why an address is not a group.
pub(super) fn group(address: &Address) -> Result<SocketAddr, &'static str> {
    let (host, port) = address
        .as_host()
        .ok_or("it needs a group's address and a port, and no path")?;
    let ip: IpAddr = host
        .parse()
        .map_err(|_| "a group is an IPv4 or IPv6 address, as 239.255.1.1")?;
    if !ip.is_multicast() {
        return Err(
            "the address is not one of a multicast group: those are 224.0.0.0/4 and ff00::/8",
        );
    }
    if port == 0 {
        return Err("a group needs a port");
    }
    Ok(SocketAddr::new(ip, port))
}

/// A UDP socket of the group's family, closed on `exec`.
pub(super) fn socket(group: SocketAddr) -> io::Result<OwnedFd> {
    let family = match group {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC;
    Ok(net::socket_with(family, SocketType::DGRAM, flags, None)?)
}

/// A network interface.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interface {
    /// Unspecified where it is known by its number.
    address: Ipv4Addr,
    /// 0 where it is known by its address, or not at all.
    index: u32,
}

impl Interface {
    /// The one that the options name.
    pub(super) fn of(options: &MulticastOptions, socket: &OwnedFd) -> io::Result<Self> {
        let any = Ipv4Addr::UNSPECIFIED;
        let (address, index) = match options.interface.as_deref() {
            None => (any, 0),
            Some(name) => match name.parse() {
                Ok(address) => (address, 0),
                Err(_) => {
                    let index = netdevice::name_to_index(socket, name);
                    let index = index.map_err(|error| {
                        let error = io::Error::from(error);
                        let text = format!("there is no interface {name:?}: {error}");
                        io::Error::new(error.kind(), text)
                    })?;
                    (any, index)
                }
            },
        };
        Ok(Self { address, index })
    }

    /// Joins a group on it.
    pub(super) fn join(self, socket: &OwnedFd, group: IpAddr) -> io::Result<()> {
        let joined = match group {
            IpAddr::V4(group) => sockopt::set_ip_add_membership_with_ifindex(
                socket,
                &group,
                &self.address,
                self.index,
            ),
            IpAddr::V6(group) => sockopt::set_ipv6_add_membership(socket, &group, self.index),
        };
        joined.or_else(refused("IP_ADD_MEMBERSHIP"))
    }

    /// Lets a socket send to groups by it, as far as they are to be heard.
    pub(super) fn send_by(
        self,
        socket: &OwnedFd,
        group: IpAddr,
        options: &MulticastOptions,
    ) -> io::Result<()> {
        let (ttl, loopback) = (u32::from(options.ttl), options.loopback);
        match group {
            IpAddr::V4(group) => {
                sockopt::set_ip_multicast_ttl(socket, ttl).or_else(refused("IP_MULTICAST_TTL"))?;
                sockopt::set_ip_multicast_loop(socket, loopback)
                    .or_else(refused("IP_MULTICAST_LOOP"))?;
                let Self { address, index } = self;
                sockopt::set_ip_multicast_if_with_ifindex(socket, &group, &address, index)
                    .or_else(refused("IP_MULTICAST_IF"))
            }
            IpAddr::V6(_) => {
                sockopt::set_ipv6_multicast_hops(socket, ttl)
                    .or_else(refused("IPV6_MULTICAST_HOPS"))?;
                sockopt::set_ipv6_multicast_loop(socket, loopback)
                    .or_else(refused("IPV6_MULTICAST_LOOP"))?;
                sockopt::set_ipv6_multicast_if(socket, self.index)
                    .or_else(refused("IPV6_MULTICAST_IF"))
            }
        }
    }

    /// The group as an address to bind or connect to: those of one link only need to know which.
    pub(super) fn scoped(self, group: SocketAddr) -> SocketAddr {
        match group {
            SocketAddr::V4(_) => group,
            SocketAddr::V6(mut group) => {
                group.set_scope_id(self.index);
                group.into()
            }
        }
    }
}

/// A packet must have room for its headers, and some data.
const LEAST_MTU: u16 = 256;
const LEAST_MAX: u32 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_from_text() {
        let text = "interface=lo&ttl=3&loopback=0&mtu=9000&max=65536&rate=1000000";
        let options = MulticastOptions::parse(text);
        let expected = MulticastOptions {
            interface: Some("lo".to_owned()),
            ttl: 3,
            loopback: false,
            mtu: 9000,
            max: 65536,
            rate: 1_000_000,
        };
        assert_eq!(options, Ok(expected));
        assert_eq!(MulticastOptions::parse(""), Ok(MulticastOptions::default()));
    }

    #[test]
    fn wrong_ones_are_refused_by_name() {
        for (text, problem) in [
            ("colour=red", "colour"),
            ("ttl", "name=value"),
            ("ttl=256", "ttl"),
            ("loopback=yes", "loopback"),
            ("mtu=100", "mtu"),
            ("max=0", "max"),
            ("rate=-1", "rate"),
        ] {
            let error = MulticastOptions::parse(text).expect_err(text);
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    #[test]
    fn a_group_is_a_multicast_address_with_a_port() {
        for address in [("239.255.1.1", 5000), ("ff15::1", 5000)] {
            let (host, port) = address;
            assert!(group(&Address::host(host, port)).is_ok());
        }
        for (address, problem) in [
            (Address::host("10.0.0.1", 5000), "224.0.0.0/4"),
            (Address::host("::1", 5000), "ff00::/8"),
            (Address::host("239.255.1.1", 0), "port"),
            (Address::host("radar.example", 5000), "address"),
            (Address::Path("/run/radar".to_owned()), "path"),
        ] {
            let error = group(&address).expect_err("it is none");
            assert!(error.contains(problem), "{address}: {error}");
        }
    }
}
