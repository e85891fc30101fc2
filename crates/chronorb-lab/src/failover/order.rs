//! The messages between the parent and its children.

use std::path::PathBuf;

use chronorb_orb::CompletionStatus;
use serde::{Deserialize, Serialize};

use super::plan::{FailoverPlan, Semantics};
use crate::stats::Record;

/// The argument of a child process.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum FailoverOrder {
    Server(ServerOrder),
    Client(FailoverPlan),
}

/// A server, and the file of its record.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ServerOrder {
    pub(super) number: u32,
    pub(super) record: PathBuf,
}

/// The object of a server, which it reports when it serves.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct RecorderReference {
    pub(super) reference: String,
}

/// A trial, for the client.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct FailoverTrial {
    /// The references of the server and of the backup.
    pub(super) servers: [String; 2],
    /// The number of the backup.
    pub(super) backup: u32,
    pub(super) policy: Semantics,
    /// The number of the first call.
    pub(super) first_call: u64,
}

/// The calls of a thread.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ThreadCalls {
    /// The numbers of the calls begin here.
    pub(super) first_call: u64,
    pub(super) calls: u64,
    /// The calls that ended with an exception; all others were answered.
    pub(super) failures: Vec<FailedCall>,
    /// The times of the calls that the server answered.
    pub(super) answered: Record,
    /// The time of the first reply of the backup, on the monotonic clock.
    pub(super) moved_ns: u64,
}

/// A call that ended with an exception.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct FailedCall {
    pub(super) call: u64,
    pub(super) completed: Completion,
    pub(super) exception: String,
}

/// The completion of a call that ended with an exception.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) enum Completion {
    Yes,
    No,
    Maybe,
}

impl From<CompletionStatus> for Completion {
    fn from(status: CompletionStatus) -> Self {
        match status {
            CompletionStatus::Yes => Self::Yes,
            CompletionStatus::No => Self::No,
            CompletionStatus::Maybe => Self::Maybe,
        }
    }
}
