//! The messages between parent and children.

use serde::{Deserialize, Serialize};

/// The argument of a child: the part of a server or of a client.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct PartOrder {
    /// The number of the case, in [`CASES`](super::CASES) and then in
    /// [`ARCHITECTURES`](super::ARCHITECTURES).
    pub(super) case: usize,
    pub(super) pass: Pass,
    /// The part of a client; nothing for a server.
    pub(super) client: Option<ClientPart>,
}

/// The part of a client. It reports the costs of client and server when its calls are made.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ClientPart {
    /// The server's objects, as `IOR:…`; none where the client has the object itself.
    pub(super) objects: Vec<String>,
    /// The number of calls of each thread.
    pub(super) calls: u32,
}

/// A pass over a case, with processes of its own.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) enum Pass {
    /// The processes count for themselves.
    Counts,
    /// The threads read their clocks whenever they turn to another activity.
    Times,
    /// The system calls are traced, and the processes do nothing that is not necessary.
    Trace,
}
