//! What network interfaces are set to do, as far as it delays packets.

#![allow(
    unsafe_code,
    reason = "the ethtool requests have no safe wrapper elsewhere"
)]

use core::time::Duration;
use std::io;
use std::os::fd::AsRawFd;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

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

    /// Says whether the kernel merges received packets (GRO). Needs `CAP_NET_ADMIN`.
    ///
    /// # Errors
    /// `InvalidInput` for a name that no interface can have, otherwise the system's error.
    pub fn set_generic_receive(interface: &str, merges: bool) -> io::Result<()> {
        ethtool(interface, &mut [ETHTOOL_SGRO, merges.into()])
    }

    /// Turns all of them off for an interface of the calling thread's network namespace, and that checksums and VLAN tags are
    /// left to it: packets then leave as they are on a cable. Needs `CAP_NET_ADMIN`.
    ///
    /// # Errors
    /// `InvalidInput` for a name that no interface can have, `Unsupported` where one of them is on for good, otherwise the
    /// system's error.
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

/// How long an interface may hold back the interrupt for a received packet.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Coalescing {
    /// From the first packet to the interrupt, at most, in µs.
    pub receive_us: u32,
    /// So many packets bring the interrupt sooner; 0 and 1 are the same.
    pub receive_frames: u32,
    /// Whether the driver changes these values with the load.
    pub adaptive_receive: bool,
}

impl Coalescing {
    /// Asks the kernel for that of an interface of this process's network namespace.
    ///
    /// # Errors
    /// `InvalidInput` for a name that no interface can have, `Unsupported` where the driver does
    /// not tell, otherwise the system's error.
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

/// How many queues an interface of this network namespace receives packets by.
///
/// # Errors
/// As [`Coalescing::of`].
pub fn receive_queues(interface: &str) -> io::Result<u32> {
    // `struct ethtool_channels`: the command, four limits, then queues for receiving, for sending, for
    // other things, and for both.
    let mut value = [0; 9];
    value[0] = ETHTOOL_GCHANNELS;
    ethtool(interface, &mut value)?;
    Ok(value[5] + value[8])
}

/// Sets by how many queues an interface of the calling thread's network namespace receives packets, and by how many it sends them,
/// if these are not the same ones. Needs `CAP_NET_ADMIN`.
///
/// # Errors
/// As [`Coalescing::of`]; `InvalidInput` for more than it can have, and where somebody takes packets from a queue that would be gone.
pub fn set_queues(interface: &str, receiving: u32, sending: u32) -> io::Result<()> {
    let mut value = [0; 9];
    value[0] = ETHTOOL_GCHANNELS;
    ethtool(interface, &mut value)?;
    value[0] = ETHTOOL_SCHANNELS;
    (value[5], value[6]) = (receiving, sending);
    ethtool(interface, &mut value)
}

/// A queueing discipline: how packets wait for an interface.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct QueueingDiscipline {
    /// The number of the interface.
    pub interface: u32,
    /// The kind, such as `pfifo_fast`, `mq`, `fq_codel`, `noqueue`.
    pub kind: String,
}

impl QueueingDiscipline {
    /// All of this process's network namespace, the inner ones too.
    ///
    /// # Errors
    /// The system's error; `InvalidData` for an answer that is no list of them.
    pub fn list() -> io::Result<Vec<Self>> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            // `NETLINK_ROUTE`, which is protocol 0.
            None,
        )?;
        set_socket_timeout(&socket, Timeout::Recv, Some(Duration::from_secs(1)))?;
        let kernel = SocketAddrNetlink::new(0, 0);
        sendto(&socket, &request(), SendFlags::empty(), &kernel)?;
        let mut list = Vec::new();
        let mut answer = vec![0; 64 << 10];
        loop {
            let (length, _) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
            if read_answer(&answer[..length], &mut list)? || list.len() > MAX_DISCIPLINES {
                return Ok(list);
            }
        }
    }
}

/// Asks for all queueing disciplines, rtnetlink(7): `nlmsghdr` and an empty `tcmsg`.
fn request() -> [u8; REQUEST] {
    let mut request = [0; REQUEST];
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    request[0..4].copy_from_slice(&(REQUEST as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&libc::RTM_GETQDISC.to_ne_bytes());
    request[6..8].copy_from_slice(&flags.to_ne_bytes());
    request
}

/// Takes the disciplines out of one answer; true if it was the last.
fn read_answer(mut rest: &[u8], list: &mut Vec<QueueingDiscipline>) -> io::Result<bool> {
    while !rest.is_empty() {
        let (message, after) = part(rest, u32_at(rest, 0)? as usize, HEADER)?;
        match i32::from(u16_at(message, 4)?) {
            libc::NLMSG_DONE => return Ok(true),
            libc::NLMSG_ERROR => {
                let error = u32_at(message, HEADER)?.cast_signed();
                return Err(io::Error::from_raw_os_error(error.saturating_neg()));
            }
            kind if kind == i32::from(libc::RTM_NEWQDISC) => {
                let interface = u32_at(message, HEADER + 4)?;
                let mut attributes = message.get(REQUEST..).ok_or(INVALID)?;
                while !attributes.is_empty() {
                    let length = usize::from(u16_at(attributes, 0)?);
                    let (attribute, after) = part(attributes, length, 4)?;
                    if u16_at(attribute, 2)? == libc::TCA_KIND {
                        let kind = attribute[4..].split(|octet| *octet == 0).next();
                        list.push(QueueingDiscipline {
                            interface,
                            kind: String::from_utf8_lossy(kind.unwrap_or_default()).into_owned(),
                        });
                    }
                    attributes = after;
                }
            }
            _ => {}
        }
        rest = after;
    }
    Ok(false)
}

/// The first `length` octets, at least `least`, and what comes after their padding.
fn part(octets: &[u8], length: usize, least: usize) -> io::Result<(&[u8], &[u8])> {
    let part = octets.get(..length).ok_or(INVALID)?;
    let after = octets.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    match length >= least {
        true => Ok((part, after)),
        false => Err(INVALID.into()),
    }
}

fn u32_at(octets: &[u8], at: usize) -> io::Result<u32> {
    let octets = octets.get(at..).and_then(|rest| rest.first_chunk());
    Ok(u32::from_ne_bytes(*octets.ok_or(INVALID)?))
}

fn u16_at(octets: &[u8], at: usize) -> io::Result<u16> {
    let octets = octets.get(at..).and_then(|rest| rest.first_chunk());
    Ok(u16::from_ne_bytes(*octets.ok_or(INVALID)?))
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
    // SAFETY: `request` names the interface with a zero at the end and points to `value`, which is
    // of the size of what the kernel fills for its command: a command with one number, with 8, or with 22.
    match unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

const INVALID: io::ErrorKind = io::ErrorKind::InvalidData;

/// The size of `nlmsghdr`.
const HEADER: usize = 16;
/// The size of `nlmsghdr` and `tcmsg`.
const REQUEST: usize = HEADER + 20;
/// More than any machine has.
const MAX_DISCIPLINES: usize = 1 << 16;

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
/// What is turned off by a flag.
const FLAGS: u32 = ETH_FLAG_TXVLAN | ETH_FLAG_RXVLAN | ETH_FLAG_LRO;
/// What can be asked for and turned off, in an order in which nothing depends on what is off already.
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

    #[test]
    fn disciplines_can_be_listed() {
        for discipline in QueueingDiscipline::list().expect("anybody may ask") {
            assert!(!discipline.kind.is_empty(), "{discipline:?}");
        }
    }

    fn message(kind: i32, content: &[u8]) -> Vec<u8> {
        let mut message = ((HEADER + content.len()) as u32).to_ne_bytes().to_vec();
        message.extend((kind as u16).to_ne_bytes());
        message.resize(HEADER, 0);
        message.extend(content);
        message.resize(message.len().next_multiple_of(4), 0);
        message
    }

    fn discipline(interface: u32, kind: &[u8]) -> Vec<u8> {
        let mut content = vec![0; 20];
        content[4..8].copy_from_slice(&interface.to_ne_bytes());
        content.extend((4 + kind.len() as u16).to_ne_bytes());
        content.extend(libc::TCA_KIND.to_ne_bytes());
        content.extend(kind);
        message(libc::RTM_NEWQDISC.into(), &content)
    }

    #[test]
    fn answers_are_read_to_the_last_message() {
        let mut list = Vec::new();
        let mut answer = discipline(2, b"fq_codel\0");
        answer.extend(discipline(3, b"mq\0"));
        assert!(!read_answer(&answer, &mut list).unwrap());
        assert!(read_answer(&message(libc::NLMSG_DONE, &[0; 4]), &mut list).unwrap());
        let kinds: Vec<_> = list.iter().map(|d| (d.interface, &*d.kind)).collect();
        assert_eq!(kinds, [(2, "fq_codel"), (3, "mq")]);
    }

    #[test]
    fn an_answer_that_is_cut_anywhere_is_an_error_or_shorter() {
        let answer = discipline(2, b"pfifo_fast\0");
        for length in 0..answer.len() {
            let mut list = Vec::new();
            let read = read_answer(&answer[..length], &mut list);
            assert!(length == 0 || length > REQUEST || read.is_err(), "{length}");
        }
        let mut zero_length = answer;
        zero_length[..4].fill(0);
        assert!(read_answer(&zero_length, &mut Vec::new()).is_err());
    }

    #[test]
    fn a_refusal_is_an_error() {
        let refused = message(libc::NLMSG_ERROR, &(-libc::EPERM).to_ne_bytes());
        let error = read_answer(&refused, &mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }
}
