//! The kernel driver: what a plan promises, kept by the kernel's own TCP and queues.
//!
//! On the way out, and on the way in where that is asked for, each class has its share of the
//! interface (HTB), chosen by a program that the kernel runs for each packet; on the way in the
//! interface's packets are taken in by threads with a priority (threaded NAPI) in place of soft
//! interrupts. Connections need no more than their ports or their DSCP. Those of the
//! [transport](crate::Riop) whose driver is the kernel name their class themselves (`SO_PRIORITY`).
//!
//! It changes the interface for everybody, so it is for `chronorb rio setup`, which has it undone,
//! and for no application.

mod counted;
mod filter;
mod found;
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
pub use counted::{Counted, CountedShare, counted};
pub use found::Unkept;
pub(crate) use found::{check, find, may_have, priority_of};
pub use napi::NapiThread;
pub use tree::{Branch, Tree};

/// An interface whose kernel keeps a plan, until this is dropped: by a thread in the network
/// namespace of the interface.
#[derive(Debug)]
pub struct Kept {
    tree: Tree,
    threads: Vec<NapiThread>,
    inward: Option<String>,
    changes: Vec<Undo>,
}

/// Which packets have the shares of their classes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ways {
    /// Those that leave the host.
    Out,
    /// Those that come to it as well. They have come by then: what is held back is that they are
    /// taken in, so that peers slow down.
    Both,
}

impl Kept {
    /// Has the kernel keep a plan on an interface of the calling thread's network namespace. `tell`
    /// learns of each change before it is made, so that it is undone even if this process is
    /// killed.
    ///
    /// # Errors
    /// [`KernelError`]; all is as before then.
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
        // The kernel's own choice has no number, and comes back by itself.
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
        plant(&mut netlink, link.index, &kept.tree, &program)?;
        if ways == Ways::Both {
            // What comes in goes out by this one, and is taken in then.
            let name = format!("{INWARD}{}", link.index);
            if netlink.link(&name).is_ok() {
                return Err(KernelError::LinkTaken(name));
            }
            tell(Undo::Link { name: name.clone() })?;
            netlink.create_link(&name, "ifb")?;
            let index = netlink.link(&name)?.index;
            plant(&mut netlink, index, &kept.tree, &program)?;
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

    /// The name of the interface that has the shares of what comes in, if they are kept.
    pub fn inward(&self) -> Option<&str> {
        self.inward.as_deref()
    }

    /// The shares of the classes, each way that they are kept.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The threads that take packets in; none where the interface's driver has none.
    pub fn threads(&self) -> &[NapiThread] {
        &self.threads
    }

    /// Has all undone.
    ///
    /// # Errors
    /// [`UndoError`]
    pub fn end(mut self) -> Result<(), UndoError> {
        undo_all(&std::mem::take(&mut self.changes))
    }
}

/// What the name of the interface by which packets come in begins with; the number of the one that
/// they come from follows.
const INWARD: &str = "rio-in-";

/// Gives an interface the shares.
fn plant(
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

impl Drop for Kept {
    fn drop(&mut self) {
        undo_or_tell(&self.changes);
    }
}

/// Why the kernel does not keep a plan.
#[derive(Debug, Error)]
pub enum KernelError {
    /// Shares are parts of something.
    #[error("the plan does not say what the interface carries: give it rate = \"100 Mbit\"")]
    NoRate,
    /// More is promised than the interface carries.
    #[error("{asked} bit/s are reserved, and the interface carries {rate}: reserve less")]
    TooMuch {
        /// Bits in a second that are reserved.
        asked: u64,
        /// Bits in a second that it carries.
        rate: u64,
    },
    /// More is promised than queues can keep.
    #[error(transparent)]
    Unkept(#[from] Unkept),
    /// The kernel keeps a plan already, and it is not this one.
    #[error(
        "the kernel keeps another plan on the interface {0}: give programs the same one as `chronorb rio setup --kernel`"
    )]
    Another(String),
    /// Somebody has set the interface's queues already.
    #[error(
        "the interface {interface} has the queueing discipline {kind}, which was set by somebody: take it away first \
         (`tc qdisc del dev {interface} root`)"
    )]
    Taken {
        /// The interface.
        interface: String,
        /// Its queueing discipline.
        kind: String,
    },
    /// There is an interface of the name that the one for what comes in would have.
    #[error(
        "there is an interface {0:?} already: remove it if nobody uses it (`ip link delete {0}`)"
    )]
    LinkTaken(String),
    /// The plan has more to tell packets apart by than a program has room for.
    #[error("the plan's rules make no program: {0}")]
    Program(#[from] AssembleError),
    /// The interface is not there.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The kernel refused.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// The threads of the interface cannot have their priority.
    #[error("the threads that take packets in: {0}")]
    Threads(io::Error),
    /// Nobody would undo it.
    #[error("nobody would undo it: {0}")]
    Untold(io::Error),
}
