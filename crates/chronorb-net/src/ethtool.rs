//! Settings of network interfaces that delay packets.

#![allow(
    unsafe_code,
    reason = "the ethtool requests have no safe wrapper elsewhere"
)]

use std::io;
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// Work that an interface does for several packets together.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Offloads {
    /// The kernel merges received packets (GRO).
    pub generic_receive: bool,
    /// The interface merges received packets (LRO).
    pub large_receive: bool,
    /// The interface cuts large segments of TCP into packets (TSO).
    pub tcp_segmentation: bool,
    /// The kernel cuts large segments as late as it can (GSO).
    pub generic_segmentation: bool,
}

impl Offloads {
    /// Asks the kernel for those of an interface of this process's network namespace.
    ///
    /// # Errors
    /// `InvalidInput` for a name that no interface can have, otherwise the system's error.
    pub fn of(interface: &str) -> io::Result<Self> {
        let flag = |command| {
            let mut value = [command, 0];
            ethtool(interface, &mut value).map(|()| value[1])
        };
        Ok(Self {
            generic_receive: flag(ETHTOOL_GGRO)? != 0,
            large_receive: flag(ETHTOOL_GFLAGS)? & ETH_FLAG_LRO != 0,
            tcp_segmentation: flag(ETHTOOL_GTSO)? != 0,
            generic_segmentation: flag(ETHTOOL_GGSO)? != 0,
        })
    }

    /// Sets whether the kernel merges received packets (GRO). Needs `CAP_NET_ADMIN`.
    ///
    /// # Errors
    /// `InvalidInput` for a name that no interface can have, otherwise the system's error.
    pub fn set_generic_receive(interface: &str, merges: bool) -> io::Result<()> {
        ethtool(interface, &mut [ETHTOOL_SGRO, merges.into()])
    }

    /// Turns all of them off for an interface of the calling thread's network namespace, and that
    /// checksums and VLAN tags are left to it: packets then leave as they are on a cable. Needs
    /// `CAP_NET_ADMIN`.
    ///
    /// # Errors
    /// `InvalidInput` for a name that no interface can have, `Unsupported` where one of them is on
    /// for good, otherwise the system's error.
    pub fn turn_off(interface: &str) -> io::Result<()> {
        for (get, set) in SWITCHES {
            let turned = ethtool(interface, &mut [set, 0]);
            let mut now = [get, 0];
            match (turned, ethtool(interface, &mut now)) {
                (_, Ok(())) if now[1] == 0 => {}
                (turned, asked) => {
                    turned.and(asked)?;
                    return Err(io::ErrorKind::Unsupported.into());
                }
            }
        }
        let mut flags = [ETHTOOL_GFLAGS, 0];
        ethtool(interface, &mut flags)?;
        match flags[1] & !FLAGS {
            unchanged if unchanged == flags[1] => Ok(()),
            fewer => ethtool(interface, &mut [ETHTOOL_SFLAGS, fewer]),
        }
    }
}

/// The time that an interface may delay the interrupt for a received packet.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Coalescing {
    /// From the first packet to the interrupt, at most, in µs.
    pub receive_us: u32,
    /// The number of packets that cause the interrupt before the time is over; 0 and 1 are the
    /// same.
    pub receive_frames: u32,
    /// Whether the driver changes these values with the load.
    pub adaptive_receive: bool,
}

impl Coalescing {
    /// Asks the kernel for that of an interface of this process's network namespace.
    ///
    /// # Errors
    /// `InvalidInput` for an invalid name, `Unsupported` if the driver does not report it,
    /// otherwise the system's error.
    pub fn of(interface: &str) -> io::Result<Self> {
        // `struct ethtool_coalesce` consists of 23 numbers.
        let mut value = [0; 23];
        value[0] = ETHTOOL_GCOALESCE;
        ethtool(interface, &mut value)?;
        Ok(Self {
            receive_us: value[1],
            receive_frames: value[2],
            adaptive_receive: value[10] != 0,
        })
    }
}

/// Returns the number of receive queues of an interface of this network namespace.
///
/// # Errors
/// As [`Coalescing::of`].
pub fn receive_queues(interface: &str) -> io::Result<u32> {
    // `struct ethtool_channels`: the command, four limits, then queues for receiving, for sending,
    // for other things, and for both.
    let mut value = [0; 9];
    value[0] = ETHTOOL_GCHANNELS;
    ethtool(interface, &mut value)?;
    Ok(value[5] + value[8])
}

/// Sets by how many queues an interface of the calling thread's network namespace receives packets,
/// and by how many it sends them, if these are not the same ones. Needs `CAP_NET_ADMIN`.
///
/// # Errors
/// As [`Coalescing::of`]; `InvalidInput` if the interface has fewer queues, or a program takes
/// packets from a queue that would be removed.
pub fn set_queues(interface: &str, receiving: u32, sending: u32) -> io::Result<()> {
    let mut value = [0; 9];
    value[0] = ETHTOOL_GCHANNELS;
    ethtool(interface, &mut value)?;
    value[0] = ETHTOOL_SCHANNELS;
    (value[5], value[6]) = (receiving, sending);
    ethtool(interface, &mut value)
}

/// Makes one request of `SIOCETHTOOL`: `value` begins with the command, and is filled.
///
/// Only for the commands of this module, which fill no more than the type that their `value` is.
fn ethtool<const N: usize>(interface: &str, value: &mut [u32; N]) -> io::Result<()> {
    let socket = socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    // SAFETY: an `ifreq` of zeroes is valid: an empty name, a null pointer.
    let mut request: libc::ifreq = unsafe { core::mem::zeroed() };
    if interface.is_empty() || interface.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as _;
    }
    request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
    // SAFETY: `request` names the interface with a zero at the end and points to `value`, which has
    // the size that the kernel fills for its command: a command with one number, with 8, or with
    // 22.
    match unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

// <linux/ethtool.h>
const ETHTOOL_GCOALESCE: u32 = 0x0e;
const ETHTOOL_GRXCSUM: u32 = 0x14;
const ETHTOOL_SRXCSUM: u32 = 0x15;
const ETHTOOL_GTXCSUM: u32 = 0x16;
const ETHTOOL_STXCSUM: u32 = 0x17;
const ETHTOOL_GTSO: u32 = 0x1e;
const ETHTOOL_GCHANNELS: u32 = 0x3c;
const ETHTOOL_SCHANNELS: u32 = 0x3d;
const ETHTOOL_STSO: u32 = 0x1f;
const ETHTOOL_GGSO: u32 = 0x23;
const ETHTOOL_SGSO: u32 = 0x24;
const ETHTOOL_GFLAGS: u32 = 0x25;
const ETHTOOL_SFLAGS: u32 = 0x26;
const ETHTOOL_GGRO: u32 = 0x2b;
const ETHTOOL_SGRO: u32 = 0x2c;
const ETH_FLAG_TXVLAN: u32 = 1 << 7;
const ETH_FLAG_RXVLAN: u32 = 1 << 8;
const ETH_FLAG_LRO: u32 = 1 << 15;
/// The features that a flag turns off.
const FLAGS: u32 = ETH_FLAG_TXVLAN | ETH_FLAG_RXVLAN | ETH_FLAG_LRO;
/// The features that can be queried and turned off, in an order in which none depends on one that
/// is already off.
const SWITCHES: [(u32, u32); 5] = [
    (ETHTOOL_GGRO, ETHTOOL_SGRO),
    (ETHTOOL_GTSO, ETHTOOL_STSO),
    (ETHTOOL_GGSO, ETHTOOL_SGSO),
    (ETHTOOL_GTXCSUM, ETHTOOL_STXCSUM),
    (ETHTOOL_GRXCSUM, ETHTOOL_SRXCSUM),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_tells_its_offloads() {
        let offloads = Offloads::of("lo").expect("the loopback is there");
        assert!(!offloads.large_receive, "{offloads:?}");
    }

    #[test]
    fn names_that_no_interface_has_are_refused() {
        for name in ["", "a-name-too-long-for-the-kernel"] {
            let error = Offloads::of(name).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name}");
        }
        assert!(Offloads::of("no-such-one").is_err());
        assert!(Coalescing::of("no-such-one").is_err());
    }
}
