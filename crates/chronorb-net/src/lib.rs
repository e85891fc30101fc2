//! The network of Linux as it is asked and changed: interfaces, routes, namespaces.
//!
//! The crate knows nothing of CORBA, of transports or of the packets that travel.
//!
//! | need | item |
//! |---|---|
//! | the network of a namespace, by rtnetlink(7) | [`Netlink`] |
//! | news of it | [`Watch`] |
//! | the hardware address of a host on the same network | [`resolve`] |
//! | a network of its own on this machine | [`NetworkNamespace`] |
//! | whole frames of an interface | [`LinkSocket`] |
//! | how interfaces delay packets | [`Offloads`], [`Coalescing`] |
//! | by how many queues packets come | [`receive_queues`], [`set_queues`] |
//! | the threads by which the kernel takes packets in | [`napi_threads_of`], [`read_threaded`] |
//! | the undoing of changes that outlive their process | [`Undo`] |

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod ethtool;
mod link_socket;
mod namespace;
mod napi;
mod netlink;
mod sys;
mod undo;

pub use ethtool::{Coalescing, Offloads, receive_queues, set_queues};
pub use link_socket::LinkSocket;
pub use namespace::NetworkNamespace;
pub use napi::{napi_threads_of, read_threaded, write_threaded};
pub use netlink::{
    AROUND_FRAME, Discipline, Handle, LinkInfo, Neighbour, Netlink, NetlinkError, QueueInfo, Rates,
    ResolveError, Route, Share, TrafficCounts, VethEnd, Watch, resolve,
};
pub use undo::{NAMES, NoUndo, Undo, UndoError, path_of, undo_all, undo_or_tell};
