//! The driver `kernel`: a plan enforced by the kernel's own TCP and queues.
//!
//! For outgoing packets, and for incoming ones on request, each class has its share of the
//! interface (HTB). A program that the kernel runs for each packet selects the share. Threads with
//! a priority (threaded NAPI) instead of soft interrupts receive the interface's packets. Ports or
//! the DSCP are enough to classify a connection. Connections of the [transport](crate::Riop) with
//! the driver `kernel` name their class explicitly (`SO_PRIORITY`).
//!
//! This changes the interface for all programs. Therefore `chronorb rio setup` does it and undoes
//! it; applications do not.

mod counted;
mod filter;
mod lookup;
mod napi;
mod tree;

use std::io;

use chronorb_net::{
    Discipline, Handle, Netlink, NetlinkError, QueueInfo, Undo, UndoError, undo_all, undo_or_tell,
};
use libc::sock_filter;
use thiserror::Error;

use crate::bpf::classic::Instruction;
use crate::driver::{DriverError, Link};
use crate::plan::{Interface, Reservation};

pub use crate::bpf::AssembleError;
pub use counted::{CountedShare, InterfaceShares, counted};
pub use lookup::Unkept;
pub(crate) use lookup::{check, find, may_have, priority_of};
pub use napi::NapiThread;
pub use tree::{Branch, Tree};

/// An interface whose kernel enforces a plan, until this is dropped. A thread in the network
/// namespace of the interface undoes it.
#[derive(Debug)]
pub struct EnforcedPlan {
    tree: Tree,
    threads: Vec<NapiThread>,
    inward: Option<String>,
    changes: Vec<Undo>,
}

/// The directions in which packets have the shares of their classes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ways {
    /// Outgoing packets.
    Out,
    /// Incoming packets as well. They have already used the link, but their delivery is delayed, so
    /// that peers slow down.
    Both,
}

impl EnforcedPlan {
    /// Makes the kernel enforce a plan on an interface of the calling thread's network namespace.
    /// `tell` is called with each change before it is made, so that it can be undone even if this
    /// process is killed.
    ///
    /// # Errors
    /// [`KernelError`]; nothing is changed then.
    pub fn keep(
        interface: &Interface,
        classes: &[Reservation],
        ways: Ways,
        tell: &mut dyn FnMut(&Undo) -> io::Result<()>,
    ) -> Result<Self, KernelError> {
        let mut netlink = Netlink::open()?;
        let link = Link::read(&mut netlink, &interface.name)?;
        for class in classes {
            check(class)?;
        }
        let tree = Tree::new(interface, classes)?;
        let program = filter::program(&tree, classes)?;
        let mut kept = Self {
            tree,
            threads: Vec::new(),
            inward: None,
            changes: Vec::new(),
        };
        let mut tell = |change: Undo| {
            tell(&change).map_err(KernelError::Untold)?;
            kept.changes.push(change);
            Ok(())
        };

        let found = netlink.disciplines(link.index)?;
        // The kernel's default discipline has no handle, and returns by itself.
        let is_somebodys = |found: &QueueInfo| {
            let is_ours_to_take = match ways {
                Ways::Out => found.parent == Handle::ROOT,
                Ways::Both => [Handle::ROOT, Handle::INGRESS].contains(&found.parent),
            };
            found.handle.0 != 0 && is_ours_to_take
        };
        if let Some(other) = found.into_iter().find(is_somebodys) {
            return Err(KernelError::Taken {
                interface: interface.name.clone(),
                kind: other.kind,
            });
        }
        tell(Undo::Discipline {
            index: link.index,
            handle: tree::DISCIPLINE,
        })?;
        install(&mut netlink, link.index, &kept.tree, &program)?;
        if ways == Ways::Both {
            // Incoming packets are redirected to leave by this interface, and are delivered then.
            let name = format!("{INWARD}{}", link.index);
            if netlink.link(&name).is_ok() {
                return Err(KernelError::LinkTaken(name));
            }
            tell(Undo::Link { name: name.clone() })?;
            netlink.create_link(&name, "ifb")?;
            let index = netlink.link(&name)?.index;
            install(&mut netlink, index, &kept.tree, &program)?;
            netlink.set_up(index, true)?;
            tell(Undo::Ingress { index: link.index })?;
            let ingress = Handle::new(0xffff, 0);
            netlink.set_discipline(link.index, Handle::INGRESS, ingress, &Discipline::Ingress)?;
            netlink.redirect(link.index, index)?;
            kept.inward = Some(name);
        }
        kept.threads = napi::prioritize(&link, classes, &mut tell)?;
        Ok(kept)
    }

    /// Returns the name of the auxiliary interface with the shares of incoming packets, if there is
    /// one.
    pub fn inward(&self) -> Option<&str> {
        self.inward.as_deref()
    }

    /// Returns the shares of the classes in each direction.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Returns the receiving threads; none if the interface's driver has none.
    pub fn threads(&self) -> &[NapiThread] {
        &self.threads
    }

    /// Undoes all changes.
    ///
    /// # Errors
    /// [`UndoError`]
    pub fn end(mut self) -> Result<(), UndoError> {
        undo_all(&std::mem::take(&mut self.changes))
    }
}

/// The prefix of the auxiliary interface's name; the index of the interface that receives the
/// packets follows.
const INWARD: &str = "rio-in-";

/// Installs the shares on an interface.
fn install(
    netlink: &mut Netlink,
    index: u32,
    tree: &Tree,
    program: &[Instruction],
) -> Result<(), NetlinkError> {
    let discipline = Discipline::Classes {
        default: tree.default.minor(),
    };
    netlink.set_discipline(index, Handle::ROOT, tree::DISCIPLINE, &discipline)?;
    netlink.set_class(index, tree::DISCIPLINE, tree::ALL, &tree.all)?;
    for branch in &tree.branches {
        netlink.set_class(index, tree::ALL, branch.handle, &branch.share)?;
        if let Some(limit) = branch.queue {
            let waiting = Discipline::Order { limit };
            netlink.set_discipline(index, branch.handle, Handle(0), &waiting)?;
        }
    }
    let program: Vec<_> = program.iter().copied().map(sock_filter::from).collect();
    netlink.add_filter(index, tree::DISCIPLINE, &program)
}

impl Drop for EnforcedPlan {
    fn drop(&mut self) {
        undo_or_tell(&self.changes);
    }
}

/// An error while the kernel is made to enforce a plan.
#[derive(Debug, Error)]
pub enum KernelError {
    /// The plan gives no rate of the interface.
    #[error("the plan does not say what the interface carries: give it rate = \"100 Mbit\"")]
    NoRate,
    /// The reservations exceed the rate of the interface.
    #[error("{asked} bit/s are reserved, and the interface carries {rate}: reserve less")]
    TooMuch {
        /// The reserved bits per second.
        asked: u64,
        /// The rate of the interface in bits per second.
        rate: u64,
    },
    /// The reservations exceed the capacity of the queues.
    #[error(transparent)]
    Unkept(#[from] Unkept),
    /// The kernel enforces another plan already.
    #[error(
        "the kernel keeps another plan on the interface {0}: give programs the same one as \
        `chronorb rio setup --kernel`"
    )]
    Another(String),
    /// The interface has a queueing discipline that was set by another program.
    #[error(
        "the interface {interface} has the queueing discipline {kind}, which another program has \
        set: remove it first (`tc qdisc del dev {interface} root`)"
    )]
    Taken {
        /// The name of the interface.
        interface: String,
        /// The name of its queueing discipline, for example `htb`.
        kind: String,
    },
    /// The name of the auxiliary interface for incoming packets is in use.
    #[error(
        "there is an interface {0:?} already: remove it if it is unused (`ip link delete {0}`)"
    )]
    LinkTaken(String),
    /// The rules of the plan are too many for a program.
    #[error("the plan's rules make no program: {0}")]
    Program(#[from] AssembleError),
    /// The interface does not exist.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The kernel returned an error.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// The receiving threads cannot have their priority.
    #[error("the threads that take packets in: {0}")]
    Threads(io::Error),
    /// The thread that would undo the changes cannot be started.
    #[error("the thread that undoes it cannot be started: {0}")]
    Untold(io::Error),
}
