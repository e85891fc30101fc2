//! What parent and children say to each other.

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::course::Course;
use crate::stats::Record;

/// To a child, as its argument.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum Order {
    Serve(ServerOrder),
    Echo(EchoOrder),
    Send(SenderOrder),
}

/// What a server is to do. It ends when all of its connections have.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ServerOrder {
    pub(super) lock_memory: bool,
    pub(super) doors: Vec<Door>,
}

/// Where a server listens, and what it does for those who come, one after the other.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Door {
    pub(super) endpoint: String,
    pub(super) services: Vec<Service>,
}

/// What a server does for a connection.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) enum Service {
    /// It sends back what comes.
    Echo { fifo: Option<u8> },
    /// It takes what comes, and computes for so many steps for each block.
    Sink { fifo: Option<u8>, steps: u32 },
}

/// From a server, when it listens: where, door by door.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Serving {
    pub(super) doors: Vec<SocketAddr>,
}

/// From a server, when all connections have ended: what came by each that was a sink, in the order of the doors.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Served {
    pub(super) courses: Vec<Course>,
}

/// Who sends small messages, and waits for them to come back.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct EchoOrder {
    pub(super) to: SocketAddr,
    pub(super) fifo: Option<u8>,
    pub(super) lock_memory: bool,
    /// How many echoes do not count.
    pub(super) warm_up: u32,
}

/// To who sends small messages: when to begin.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct EchoRun {
    /// By the monotonic clock.
    pub(super) at_ns: u64,
    pub(super) echoes: u32,
    /// From an answer to the next message, about; zero for at once.
    pub(super) pause: Duration,
}

/// From it: what each took.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Echoed {
    pub(super) record: Record,
}

/// Who sends blocks, one after the other.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct SenderOrder {
    pub(super) to: SocketAddr,
    pub(super) fifo: Option<u8>,
    /// What it does where packets are lost (`TCP_CONGESTION`, tcp(7)).
    pub(super) congestion: String,
}

/// To who sends blocks: when to begin. It ends with its input.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct SendRun {
    /// By the monotonic clock.
    pub(super) at_ns: u64,
}

/// Octets of an echo, as in the paper.
pub(super) const ECHO: usize = 64;
/// Octets of a block, as in the paper.
pub(super) const BLOCK: usize = 8_000;
