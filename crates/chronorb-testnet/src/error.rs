//! Why a test network was not built.

use std::io;

use chronorb_net::NetlinkError;
use thiserror::Error;

/// The reason why a test network was not built.
#[derive(Debug, Error)]
pub enum NetworkError {
    /// The process may not make network namespaces.
    #[error(
        "cannot {what}: it needs CAP_SYS_ADMIN and CAP_NET_ADMIN; run as root, or grant them \
         (`setcap cap_sys_admin,cap_net_admin+ep PROGRAM`)"
    )]
    Denied {
        /// The attempted operation.
        what: &'static str,
    },
    /// A namespace cannot be had.
    #[error("cannot {what}: {source}")]
    Namespace {
        /// The attempted operation.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// There is a namespace of this name.
    #[error(
        "there is a network namespace {0:?} already: choose another name, or remove it if it is \
         not used (`ip netns delete {0}`)"
    )]
    NameTaken(String),
    /// The name was given by another program.
    #[error(
        "the network namespace {0:?} was not made here, and is left alone: `ip netns delete {0}` \
         removes it"
    )]
    NotOurs(String),
    /// No namespace can be named so.
    #[error(
        "a network cannot be named {0:?}: letters, digits, `-`, `_` and `.` make a name, 1 to 100 \
         of them"
    )]
    InvalidName(String),
    /// A delay was combined with offloads. A delayed frame has to be as it would be on a cable, and
    /// offloads leave its segmentation and checksum to the hardware.
    #[error("a network with a delay has no offloads: leave one of them out")]
    DelayWithOffloads,
    /// An interface does not carry packets.
    #[error(
        "the interface {0:?} of the network has no carrier after ten seconds: is another program \
         changing it?"
    )]
    NoCarrier(&'static str),
    /// The kernel refused a part of it.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
}

impl NetworkError {
    pub(super) fn io(what: &'static str, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::Denied { what },
            _ => Self::Namespace { what, source },
        }
    }
}
