//! Drivers: network interfaces whose packets are told apart before any protocol work.

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
pub use open::{Choice, OpenError, Options, UnknownChoice};
pub use rights::{PacketAccess, PacketRights};

/// A network interface that is open for classes.
///
/// Classes come and go while it is open. The traffic of the rest of the host goes by the kernel,
/// undisturbed. Nothing of a driver outlives its process, whichever way that ends.
pub(crate) trait Driver: fmt::Debug + Send + Sync {
    /// The interface, as it was when it was opened: addresses that it gets later have no packets by
    /// classes, and an MTU that it gets later is none of theirs.
    fn link(&self) -> &Link;

    /// Opens the path of a class: from now on packets that these rules match come by it. Rules of
    /// other classes, if they match too, win where they were there first.
    ///
    /// `queue` is how many frames wait at most, each way, up to [`MAX_QUEUE`], rounded up to a
    /// power of two. Where frames come in by several receive queues of the interface and are not
    /// put together by the kernel ([`xdp`]), so many wait at each of them. Frames of one flow keep
    /// their order in any case, those of several may overtake each other on the way.
    ///
    /// # Errors
    /// [`DriverError`]; all is as before then.
    fn open(&self, class: ClassId, rules: &[Rule], queue: usize) -> Result<Path, DriverError>;

    /// Adds a rule to a class that is open, for example for a port that a connection goes out by.
    ///
    /// # Errors
    /// [`DriverError`]; all is as before then.
    fn add(&self, rule: &Rule) -> Result<(), DriverError>;

    /// Takes a rule away again.
    #[cfg(test)]
    fn remove(&self, rule: &Rule);

    /// Says where TCP packets to the host go that no rule matches; at first that is the kernel.
    ///
    /// # Errors
    /// [`DriverError`]; all is as before then.
    #[cfg(test)]
    fn set_unknown(&self, unknown: crate::class::Unknown) -> Result<(), DriverError>;
}

/// What there is to know of a network interface.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Link {
    /// Its name.
    pub name: String,
    /// Its number in this network namespace.
    pub index: u32,
    /// Its hardware address.
    pub hardware: [u8; 6],
    /// Octets of the longest packet, without the Ethernet header.
    pub mtu: usize,
    /// Its addresses in this host, each with the length of its network's prefix.
    pub addresses: Vec<(IpAddr, u8)>,
}

impl Link {
    /// Reads what the kernel knows of the interface of this name.
    ///
    /// # Errors
    /// [`DriverError::NoInterface`] where there is none of this name; `Unsupported` where it has no
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

/// Frames that the queue of a class can have.
pub(crate) const MAX_QUEUE: usize = 1 << 16;

/// So many frames rounded up to what a queue can have.
fn queue_of(frames: usize) -> Result<usize, DriverError> {
    match frames {
        ..=MAX_QUEUE => Ok(frames.next_power_of_two()),
        long => Err(DriverError::LongQueue(long)),
    }
}

/// Octets of the longest frame of an interface: its longest packet, the Ethernet header and a VLAN
/// tag.
fn longest_frame(link: &Link) -> usize {
    link.mtu + ETHERNET_LEN + VLAN_TAG_LEN
}

/// Why a driver, or a path of it, cannot be opened.
#[derive(Debug, Error)]
pub enum DriverError {
    /// There is no such interface in this network namespace.
    #[error("there is no network interface {0:?} here; `ip link` lists those that there are")]
    NoInterface(String),
    /// The process may not do it.
    #[error(
        "{what} needs {capability}: run as root, or grant it (`setcap {capability}+ep PROGRAM`)"
    )]
    Denied {
        /// What was to be done.
        what: &'static str,
        /// The capability, or capabilities, as `setcap` writes them.
        capability: &'static str,
    },
    /// This kernel, or the interface's driver, cannot do it.
    #[error("{what} cannot be had here: {source}")]
    Unsupported {
        /// What was to be done.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The class is open already.
    #[error("class {0} is open already")]
    Open(ClassId),
    /// The class is not open.
    #[error("class {0} is not open")]
    Closed(ClassId),
    /// A rule cannot be, or is one too many.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The interface was opened with less room.
    #[error(
        "a queue of {asked} packets, where there is room for {left} more; open the interface with more"
    )]
    NoRoom {
        /// Packets of the queue.
        asked: usize,
        /// For how many there is room.
        left: usize,
    },
    /// A queue cannot be as long.
    #[error("a queue of {0} packets is longer than any can be: take at most {MAX_QUEUE}")]
    LongQueue(usize),
    /// There is nothing to open.
    #[error("the kernel's own TCP hands out no packets: it has sockets")]
    Kernel,
    /// Another XDP program is on the interface.
    #[error(
        "another XDP program is on the interface: `ip link` shows which; end who has put it there"
    )]
    Taken,
    /// Anything else.
    #[error("{what}: {source}")]
    Failed {
        /// What was to be done.
        what: &'static str,
        /// What the kernel said.
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

/// Octets of a VLAN tag.
const VLAN_TAG_LEN: usize = 4;
