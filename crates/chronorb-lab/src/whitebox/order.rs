//! What parent and children say to each other.

use serde::{Deserialize, Serialize};

use super::architectures;
use super::counts::Counts;

/// To a child, as its argument.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum Part {
    Server(ServerOrder),
    Client(ClientOrder),
    ServerOfMany(architectures::ServerOrder),
    ManyClients(architectures::ClientOrder),
}

/// What a server is to do.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ServerOrder {
    /// The name of the case.
    pub(super) case: String,
    pub(super) pass: Pass,
}

/// What a client is to do.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ClientOrder {
    /// The name of the case.
    pub(super) case: String,
    pub(super) pass: Pass,
    /// The server's object, as `IOR:…`; nothing where the client has the object itself.
    pub(super) reference: Option<String>,
    pub(super) calls: u32,
}

/// How a case is run.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) enum Pass {
    /// The processes count for themselves.
    Counted,
    /// Their system calls are traced, and they do nothing more than they must.
    Traced,
}

/// From a server, when it serves.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct Serving {
    pub(super) reference: Option<String>,
}

/// From a client, when it has made its calls: what both sides counted; zeros where it was traced.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Counted {
    pub(super) client: Counts,
    /// Nothing where the client had the object itself.
    pub(super) server: Option<Counts>,
}
