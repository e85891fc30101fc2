//! The messages between client and server beside the calls, and the sizes of the calls.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::case::WaitMethod;

/// The octets of a request: about as many as those of a small call by GIOP.
pub(super) const REQUEST: usize = 60;
/// The octets of a reply.
pub(super) const REPLY: usize = 28;

/// The argument of the server's process.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct WaitsServerOrder {
    /// The number of idle connections, which are accepted first.
    pub(super) idle: u32,
    pub(super) lock_memory: bool,
}

/// The server's message when it listens.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ListenerReport {
    pub(super) address: SocketAddr,
    pub(super) io_uring: IoUring,
}

/// The availability of io_uring.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IoUring {
    /// The kernel permits it, and does the work of completions `deferred`, `cooperative` or
    /// `interrupting` (see [`chronorb_probe::CompletionWork`]).
    Permitted(String),
    /// The kernel refuses it, for this reason.
    Refused(String),
}

/// The order for one trial, whose connection the server accepts next.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct TrialOrder {
    pub(super) way: WaitMethod,
    pub(super) processor: usize,
    /// The priority of `SCHED_FIFO`; without it, the thread is an ordinary one.
    pub(super) priority: Option<u8>,
    /// The number of idle connections in the thread's set.
    pub(super) idle: u32,
}
