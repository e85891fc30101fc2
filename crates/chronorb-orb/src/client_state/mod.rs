//! The client's part of an ORB.

mod health;
mod permit;
mod threads;

use std::any::Any;
use std::sync::OnceLock;
use std::time::Duration;

use chronorb_rt::Deadline;

use self::health::Health;
use self::threads::ConnectionThreads;
use crate::protocol::Way;

pub(crate) use self::permit::{ConnectionPermit, ConnectionPermits};

/// The part of an ORB's state that calls of its threads need.
pub(crate) struct ClientState {
    /// ConnectionPermits for connections to servers.
    pub(crate) permits: ConnectionPermits,
    /// Made with the first of them. The type is erased, so that programs without calls do not link
    /// its destructor.
    pub(crate) connections: OnceLock<Box<dyn OpenConnections>>,
    /// Set with the first binding.
    pub(crate) first_binding: OnceLock<FirstBinding>,
    pub(crate) threads: ConnectionThreads,
    pub(crate) health: Health,
    /// The slots of asynchronous calls, made with the first of them. The type is erased, because it
    /// is one of the calls, above the connections.
    pub(crate) slots: OnceLock<Box<dyn Any + Send + Sync>>,
}

/// The part of the state that begins with the first binding of an ORB.
pub(crate) struct FirstBinding {
    /// Drops the connections of an ORB that the calling thread has. A pointer, because the bindings
    /// are above the connections.
    pub(crate) forget: fn(u64),
    /// The [forks](crate::fork::count) that had led to the process.
    pub(crate) forks: u32,
}

/// The connections of an ORB to servers that are not of one thread alone.
pub(crate) trait OpenConnections: Any + Send + Sync {
    /// Sends the oneways that threads have kept. Ends the heartbeats, and shared connections as
    /// soon as no call is under way on them.
    fn leave(&self);
}

impl ClientState {
    pub(crate) fn new(limit: u32) -> Self {
        Self {
            permits: ConnectionPermits::new(limit as usize),
            connections: OnceLock::new(),
            first_binding: OnceLock::new(),
            threads: ConnectionThreads::default(),
            health: Health::default(),
            slots: OnceLock::new(),
        }
    }

    /// See [`Health::suspect`].
    pub(crate) fn suspect(&self, way: &Way, time: Duration) -> bool {
        self.health.suspect(way, time)
    }

    /// Drops the calling thread's connections, and ends those that threads share as soon as no call
    /// is under way on them. The ORB has this number.
    pub(crate) fn leave(&self, orb: u64) {
        if let Some(first) = self.first_binding.get() {
            (first.forget)(orb);
        }
        if let Some(connections) = self.connections.get() {
            connections.leave();
        }
    }

    /// Waits until the threads of connections have ended, with the last calls.
    pub(crate) fn wait_until_ended(&self, deadline: Deadline) {
        self.threads.wait_until_ended(deadline);
    }
}
