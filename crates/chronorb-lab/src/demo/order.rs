//! What parent and children say to each other.

use serde::{Deserialize, Serialize};

use super::work::Steps;
use crate::comparison::Setup;
use crate::stats::Record;

/// The CORBA priority of the high class, of 0 to 32767: a real-time priority of Linux.
pub(super) const HIGH_PRIORITY: i16 = 24_000;
/// The CORBA priority of the low class: bulk work, for which Linux keeps its ordinary scheduler.
pub(super) const LOW_PRIORITY: i16 = 0;

/// To the server, as its argument.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ServerOrder {
    pub(super) priorities: bool,
    pub(super) setup: Setup,
}

/// From the server, when it serves.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Serving {
    /// The object, as `IOR:…`.
    pub(super) reference: String,
}

/// To a client, as its argument.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ClientOrder {
    pub(super) class: Class,
    pub(super) priorities: bool,
    pub(super) reference: String,
    pub(super) setup: Setup,
    pub(super) steps: Steps,
}

/// The two classes of clients.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) enum Class {
    High,
    Low,
}

/// From a client, when all its threads are connected.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Connected {}

/// To a client: when to start, in ns of the monotonic clock.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Start {
    pub(super) at_ns: u64,
}

/// From a client, at its end.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Measured {
    pub(super) calls: Record,
    /// Whether all calling threads ran at a real-time priority.
    pub(super) real_time: bool,
}
