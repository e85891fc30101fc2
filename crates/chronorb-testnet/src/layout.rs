//! The properties of a test network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// One of the two hosts.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Host {
    /// The first.
    A,
    /// The second.
    B,
}

impl Host {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];

    /// The name of its port in the switch.
    pub const fn port(self) -> &'static str {
        match self {
            Self::A => "port-a",
            Self::B => "port-b",
        }
    }
}

/// The addresses of a host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Addresses {
    /// The address of IPv4, in a network with a prefix of 24 bits.
    pub v4: Ipv4Addr,
    /// The address of IPv6, in a network with a prefix of 64 bits.
    pub v6: Ipv6Addr,
}

impl Addresses {
    /// Each with the length of its network's prefix.
    pub(super) fn with_prefixes(self) -> [(IpAddr, u8); 2] {
        [(self.v4.into(), 24), (self.v6.into(), 64)]
    }
}

/// The properties of a test network.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Layout {
    /// Octets of the longest packet, without the Ethernet header: 1,280 to 65,521.
    pub mtu: u32,
    /// The rate of the switch each way in bits per second, counted as on a cable: with Ethernet
    /// headers and the overhead of a frame. `None` for no limit.
    pub rate: Option<u64>,
    /// The time that each frame spends in the switch, each way, in addition to its transmission at
    /// the rate; none with [`offloads`](Self::offloads). With a delay the switch is a thread of
    /// this process, of urgent scheduling if that is permitted, and not the kernel's bridge.
    pub delay: Duration,
    /// Whether the kernel may leave checksums to the interfaces and packets together, which no
    /// cable does.
    pub offloads: bool,
    /// The number of receive queues of each host's interface, 1 to 4,096. The packets of a flow use
    /// one of them, chosen by the switch's hash of addresses and ports, as with a network card.
    pub queues: u32,
    /// The CPU on which each host receives its packets, [`Host::A`] first, whose CPU also does the
    /// work of the switch. With `None` the CPU of the sender does the work of the receiver, unlike
    /// between two machines. A program of AF_XDP in the interface's driver (`mode=native`) has the
    /// same effect in any case.
    pub cpus: Option<[usize; 2]>,
    /// The addresses of [`Host::A`].
    pub a: Addresses,
    /// The addresses of [`Host::B`], in the same networks.
    pub b: Addresses,
}

impl Default for Layout {
    /// Returns the layout of a plain cable: an MTU of 1,500, no limit of the rate, no delay, no
    /// offloads, one queue, `10.79.0.1` and `fd79::1` on one host, `10.79.0.2` and `fd79::2` on the
    /// other.
    fn default() -> Self {
        let addresses = |last| Addresses {
            v4: Ipv4Addr::new(10, 79, 0, last),
            v6: Ipv6Addr::new(0xfd79, 0, 0, 0, 0, 0, 0, last.into()),
        };
        Self {
            mtu: 1500,
            rate: None,
            delay: Duration::ZERO,
            offloads: false,
            queues: 1,
            cpus: None,
            a: addresses(1),
            b: addresses(2),
        }
    }
}
