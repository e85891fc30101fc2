//! Lookup of a plan that the kernel enforces, and the priorities by which sockets select a class.

use std::io;
use std::net::UdpSocket;

use chronorb_net::{Handle, Netlink, QueueInfo};
use chronorb_rt::{Policy as NativePolicy, Scheduling};
use chronorb_transport::set_packet_priority;
use thiserror::Error;

use super::tree::{self, Tree};
use super::{KernelError, counted};
use crate::plan::{Interface, Output, Policy, Reservation};

/// Returns the shares of this plan, if the kernel enforces it on an interface of the calling
/// thread's network namespace; `None` if the kernel enforces no plan of RIO there.
///
/// # Errors
/// [`KernelError`]: the kernel enforces another plan there, or this one has no shares.
pub(crate) fn find(
    interface: &Interface,
    classes: &[Reservation],
) -> Result<Option<Tree>, KernelError> {
    let mut netlink = Netlink::open()?;
    let index = netlink.link(&interface.name)?.index;
    if !netlink.disciplines(index)?.iter().any(is_ours) {
        return Ok(None);
    }
    let tree = Tree::new(interface, classes)?;
    let shares = counted::shares(&mut netlink, index)?;
    if tree.is_same(&shares) {
        Ok(Some(tree))
    } else {
        Err(KernelError::Another(interface.name.clone()))
    }
}

/// Returns whether a queueing discipline belongs to a plan of RIO.
pub(super) fn is_ours(queue: &QueueInfo) -> bool {
    queue.parent == Handle::ROOT && queue.handle == tree::DISCIPLINE && queue.kind == "htb"
}

/// Checks that the kernel can enforce everything in a reservation.
///
/// # Errors
/// [`Unkept`]
pub(crate) fn check(class: &Reservation) -> Result<(), Unkept> {
    let what = match class {
        _ if class.policy == Policy::Deadline => "policy = \"deadline\"",
        _ if class.output == Output::Scheduled => "output = \"scheduled\"",
        _ if class.cpu.is_some() => "cpu",
        _ => return Ok(()),
    };
    Err(Unkept {
        class: class.name.clone(),
        what,
    })
}

/// The error of a reservation that the kernel cannot enforce.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error(
    "class {class:?} has {what}, and the kernel's TCP has no thread of the class for it: leave it \
    out, or take another driver"
)]
pub struct Unkept {
    /// The class.
    pub class: String,
    /// The unsupported setting, as plans write it.
    pub what: &'static str,
}

/// Returns the packet priority (`SO_PRIORITY`) of a thread's scheduling, for queues without
/// classes. Higher is more urgent. The values follow Linux's meaning of these numbers, so its
/// default queues order the packets correctly too.
pub(crate) const fn priority_of(urgency: Scheduling) -> u32 {
    match urgency.policy {
        NativePolicy::Other => BEST_EFFORT,
        NativePolicy::Fifo | NativePolicy::RoundRobin => INTERACTIVE,
    }
}

/// Returns whether this process may use such a packet priority. Above 6 that needs a right.
///
/// # Errors
/// [`io::Error`] if no socket can be opened for the test.
pub(crate) fn may_have(priority: u32) -> io::Result<bool> {
    let socket = UdpSocket::bind(("127.0.0.1", 0))?;
    match set_packet_priority(&socket, priority) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(false),
        Err(error) => Err(error),
    }
}

// <linux/pkt_sched.h>: TC_PRIO_BESTEFFORT, TC_PRIO_INTERACTIVE.
const BEST_EFFORT: u32 = 0;
const INTERACTIVE: u32 = 6;
