//! What client and server say to each other beside the calls, and what the calls are.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::case::Way;

/// The octets of a request: about those of a small call by GIOP.
pub(super) const REQUEST: usize = 60;
/// The octets of a reply.
pub(super) const REPLY: usize = 28;

/// To the server, as its argument.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ServerOrder {
    /// How many connections come first, on which nothing will happen.
    pub(super) idle: u32,
    pub(super) lock_memory: bool,
}

/// From the server, when it listens.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Listening {
    pub(super) address: SocketAddr,
    pub(super) io_uring: IoUring,
}

/// Whether there is io_uring.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IoUring {
    /// There is; when the kernel does what a completion takes: `deferred`, `cooperative` or
    /// `interrupting` (see [`chronorb_probe::CompletionWork`]).
    Permitted(String),
    /// The system refuses it, and why.
    Refused(String),
}

/// To the server, for each trial; the end of its work is `None`. The connection for it follows.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Serve {
    pub(super) way: Way,
    pub(super) processor: usize,
    /// Of `SCHED_FIFO`.
    pub(super) priority: Option<u8>,
    /// How many idle connections are in its set.
    pub(super) idle: u32,
}

/// From the server, when the connection is closed.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Served {}
