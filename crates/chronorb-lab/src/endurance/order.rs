//! The messages between the parent and its children.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::plan::{EnduranceLoad, EndurancePlan, ServerKind};

/// The argument of a child process.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum EnduranceOrder {
    Server(EnduranceServer),
    Client(ClientOrder),
}

/// A server, at the port that it always has.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct EnduranceServer {
    pub(super) kind: ServerKind,
    pub(super) port: u16,
    /// The folder of a name server's store.
    pub(super) store: PathBuf,
}

/// A client.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct ClientOrder {
    pub(super) load: EnduranceLoad,
    /// The number of the client among those of its load.
    pub(super) number: u32,
    /// The reference of its server.
    pub(super) reference: String,
    pub(super) plan: EndurancePlan,
    /// The values of its names that were acknowledged before, 0 for none.
    pub(super) acknowledged: Vec<u32>,
}

/// The calls of a client since its last report.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct EnduranceReport {
    /// The calls, and the events that arrived.
    pub(super) calls: u64,
    /// The exceptions, which the disturbances must explain.
    pub(super) exceptions: Vec<CallException>,
    /// Failures that nothing explains.
    pub(super) failures: Vec<(FailureKind, String)>,
    /// The values of its names that are acknowledged, 0 for none; empty without a change.
    pub(super) acknowledged: Vec<u32>,
}

/// A call that ended by an exception.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct CallException {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) words: String,
}

/// A kind of failure.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FailureKind {
    /// An answer that is wrong.
    Wrong,
    /// A call that takes too long.
    Hung,
    /// A name that is lost.
    Lost,
    /// An event out of order.
    Disorder,
}
