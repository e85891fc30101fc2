//! The messages between the parent and its children.

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The argument of a child process.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum RioOrder {
    Serve(RioServer),
    Send(RioSender),
}

/// A server, which ends when all of its connections have ended.
///
/// It reports its addresses when it listens, and at its end the octets of each sink over time.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct RioServer {
    pub(super) lock_memory: bool,
    pub(super) acceptors: Vec<AcceptorOrder>,
}

/// An endpoint of a server, with the service of each connection in the order of their arrival.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct AcceptorOrder {
    pub(super) endpoint: String,
    pub(super) services: Vec<Service>,
}

/// The service for a connection.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Service {
    /// The `SCHED_FIFO` priority of its thread.
    pub(super) fifo: Option<u8>,
    /// The computing steps of a sink for each block; none for an echo service.
    pub(super) sink_steps: Option<u32>,
}

/// A sender, which reports that it is connected, and begins when it is told.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct RioSender {
    pub(super) to: SocketAddr,
    pub(super) fifo: Option<u8>,
    pub(super) lock_memory: bool,
    pub(super) traffic: Traffic,
}

/// The traffic of a sender.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) enum Traffic {
    /// Messages of [`ECHO`] octets, each when the one before has come back.
    Echoes {
        count: u32,
        /// The approximate time from an echo to the next message; zero for at once.
        pause: Duration,
    },
    /// Blocks of [`BLOCK`] octets, one after the other, until the end of the input.
    Bulk {
        /// The congestion control (`TCP_CONGESTION`, tcp(7)).
        congestion: String,
    },
}

/// The beginning of a sender's traffic.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct SendStart {
    /// The time by the monotonic clock.
    pub(super) at_ns: u64,
}

/// Octets of an echo, as in the paper.
pub(super) const ECHO: usize = 64;
/// Octets of a block, as in the paper.
pub(super) const BLOCK: usize = 8_000;
