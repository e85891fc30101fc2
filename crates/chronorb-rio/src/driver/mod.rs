//! Drivers: access to network interfaces, with packets classified before any protocol work.

use std::fmt;
use std::io;
use std::net::IpAddr;

use chronorb_net::{Netlink, NetlinkError};
use thiserror::Error;

use crate::class::{ClassId, Rule, RuleError};
use crate::frame::ETHERNET_LEN;
use crate::path::Path;

pub(crate) mod bpf;
pub(crate) mod guard;
pub(crate) mod home;
mod open;
pub(crate) mod packet;
mod rights;
mod socket;
mod table;
#[cfg(test)]
pub(crate) mod tap;
#[cfg(test)]
pub(crate) mod wire;
pub(crate) mod xdp;

pub(crate) use open::open;
pub use open::{DriverChoice, DriverOpenError, DriverOptions, UnknownChoice};
pub use rights::{PacketAccess, PacketRights};

/// A network interface that is open for classes.
///
/// Classes open and close while it is open. All other traffic of the host goes through the kernel,
/// unaffected. Everything that a driver sets up ends with its process, however the process ends.
pub(crate) trait Driver: fmt::Debug + Send + Sync {
    /// Returns the interface as it was when it was opened. Later addresses are not classified, and
    /// a later MTU is ignored.
    fn link(&self) -> &Link;

    /// Opens the path of a class. From now on it receives the packets that match these rules. If a
    /// rule of another class matches too, the older rule wins.
    ///
    /// `queue` is the number of frames that can wait in each direction, at most [`MAX_QUEUE`],
    /// rounded up to a power of two. If the interface has several receive queues that the kernel
    /// does not merge ([`xdp`]), the number applies to each of them. Frames of one flow stay in
    /// order. Frames of several flows may overtake each other.
    ///
    /// # Errors
    /// [`DriverError`]; nothing is changed then.
    fn open(&self, class: ClassId, rules: &[Rule], queue: usize) -> Result<Path, DriverError>;

    /// Adds a rule to an open class, for example for the local port of an outgoing connection.
    ///
    /// # Errors
    /// [`DriverError`]; nothing is changed then.
    fn add(&self, rule: &Rule) -> Result<(), DriverError>;

    /// Removes a rule.
    #[cfg(test)]
    fn remove(&self, rule: &Rule);

    /// Sets the destination of TCP packets to the host that no rule matches. The default is the
    /// kernel.
    ///
    /// # Errors
    /// [`DriverError`]; nothing is changed then.
    #[cfg(test)]
    fn set_unknown(&self, unknown: crate::class::Unknown) -> Result<(), DriverError>;
}

/// The properties of a network interface.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Link {
    /// The name.
    pub name: String,
    /// The index in this network namespace.
    pub index: u32,
    /// The hardware address.
    pub hardware: [u8; 6],
    /// The length of the longest packet in octets, without the Ethernet header.
    pub mtu: usize,
    /// The addresses of this host at the interface, each with the prefix length of its network.
    pub addresses: Vec<(IpAddr, u8)>,
}

impl Link {
    /// Reads the properties of the interface with this name from the kernel.
    ///
    /// # Errors
    /// [`DriverError::NoInterface`] if there is no such interface; `Unsupported` if it has no
    /// Ethernet address.
    pub(crate) fn read(netlink: &mut Netlink, name: &str) -> Result<Self, DriverError> {
        let info = match netlink.link(name) {
            Err(error) if error.is_absent() => {
                return Err(DriverError::NoInterface(name.to_owned()));
            }
            other => other?,
        };
        let hardware = info.hardware.ok_or_else(|| DriverError::Unsupported {
            what: "an Ethernet address of the interface",
            source: io::ErrorKind::Unsupported.into(),
        })?;
        Ok(Self {
            addresses: netlink.addresses(info.index)?,
            name: info.name,
            index: info.index,
            hardware,
            mtu: info.mtu,
        })
    }
}

/// The maximum length of a class's queue in frames.
pub(crate) const MAX_QUEUE: usize = 1 << 16;

/// Rounds a number of frames up to a permitted queue length.
fn queue_of(frames: usize) -> Result<usize, DriverError> {
    match frames {
        ..=MAX_QUEUE => Ok(frames.next_power_of_two()),
        long => Err(DriverError::LongQueue(long)),
    }
}

/// Returns the length of the longest frame in octets: the longest packet, the Ethernet header and a
/// VLAN tag.
fn longest_frame(link: &Link) -> usize {
    link.mtu + ETHERNET_LEN + VLAN_TAG_LEN
}

/// An error while a driver, or a path of it, is opened.
#[derive(Debug, Error)]
pub enum DriverError {
    /// There is no such interface in this network namespace.
    #[error("there is no network interface {0:?} here; `ip link` lists those that there are")]
    NoInterface(String),
    /// The process lacks a capability.
    #[error(
        "{what} needs {capability}: run as root, or grant it (`setcap {capability}+ep PROGRAM`)"
    )]
    Denied {
        /// The attempted operation.
        what: &'static str,
        /// The missing capabilities, as `setcap` writes them.
        capability: &'static str,
    },
    /// The kernel, or the interface's driver, does not support the operation.
    #[error("{what} is not available here: {source}")]
    Unsupported {
        /// The attempted operation.
        what: &'static str,
        /// The error of the system call.
        source: io::Error,
    },
    /// The class is open already.
    #[error("class {0} is open already")]
    Open(ClassId),
    /// The class is not open.
    #[error("class {0} is not open")]
    Closed(ClassId),
    /// A rule is invalid, or one too many.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The interface was opened with less room than the queue needs.
    #[error(
        "a queue of {asked} packets, where there is room for {left} more; open the interface with \
        more"
    )]
    NoRoom {
        /// The requested queue length in packets.
        asked: usize,
        /// The remaining room in packets.
        left: usize,
    },
    /// The queue is longer than any can be.
    #[error("a queue of {0} packets is too long: take at most {MAX_QUEUE}")]
    LongQueue(usize),
    /// The kernel's own TCP was chosen, which has no driver.
    #[error("the kernel's own TCP is not a driver of packets: it has sockets")]
    Kernel,
    /// The interface already runs another XDP program.
    #[error(
        "another XDP program is on the interface: `ip link` shows which; end the program that \
         attached it"
    )]
    Taken,
    /// Another error.
    #[error("{what}: {source}")]
    Failed {
        /// The attempted operation.
        what: &'static str,
        /// The error of the system call.
        source: io::Error,
    },
}

impl From<NetlinkError> for DriverError {
    fn from(error: NetlinkError) -> Self {
        match error {
            NetlinkError::Denied { .. } => Self::Denied {
                what: "changing the network",
                capability: "cap_net_admin",
            },
            error => Self::Failed {
                what: "the kernel's network",
                source: error.into(),
            },
        }
    }
}

/// The length of a VLAN tag in octets.
const VLAN_TAG_LEN: usize = 4;
