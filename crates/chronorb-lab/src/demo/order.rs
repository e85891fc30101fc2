//! What parent and children say to each other.

use chronorb::rtcorba::Priority;
use serde::{Deserialize, Serialize};

use super::work::Steps;
use crate::comparison::Setup;
use crate::stats::Record;

/// The priority of the high class: a real-time priority of Linux.
pub(super) const HIGH_PRIORITY: Priority = Priority::new(24_000).expect("not negative");
/// The priority of the low class: work that saturates the processors belongs to the ordinary
/// scheduling of Linux.
pub(super) const LOW_PRIORITY: Priority = Priority::MIN;

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
