//! Affinity of threads to connections: a thread that has dispatched a request waits for the next
//! one on the connection itself, and not on the reactor of the lane, as long as other threads wait
//! on the reactor.
//!
//! This saves a system call for each request and the choice among threads. It is done only on
//! connections whose client announced that it waits for each reply: on others the next request may
//! arrive while this thread is in an upcall, and another thread has to read it.
//!
//! Threads with an affinity never leave the reactor without a waiting thread ([`SourceAffinity`]).
//!
//! Under thread-per-connection each thread stays with one connection until that ends.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::io;
use std::sync::Arc;
use std::time::Duration;

use chronorb_rt::{
    AffineThread, Deadline, Key, Kick, Monotonic, Slots, SourceAffinity, poll_for, thread_id,
};
use chronorb_transport::{Connection, IoError, WaitPolicy};

use super::connection::ServerConnection;

/// The connections of a lane.
type Connections = Slots<ServerConnection>;

/// The threads of a lane that wait on connections.
pub(super) struct ConnectionAffinity {
    kick: Kick,
    /// Threads keep their connection until it ends.
    until_the_end: bool,
    pub(super) stays: SourceAffinity<Key>,
}

impl ConnectionAffinity {
    /// Returns the affinity for a lane of this number of threads. `None` for a single thread, and
    /// where the application handles the signal that calls threads back.
    pub(super) fn new(threads: u32) -> Option<Self> {
        if threads < 2 {
            return None;
        }
        Some(Self {
            kick: Kick::install().ok()?,
            until_the_end: false,
            stays: SourceAffinity::new(),
        })
    }

    /// Returns the affinity for a lane with one thread for each connection.
    ///
    /// # Errors
    /// The signal that calls threads back when the lane ends cannot be installed.
    pub(super) fn until_the_end() -> io::Result<Self> {
        Ok(Self {
            kick: Kick::install()?,
            until_the_end: true,
            stays: SourceAffinity::new(),
        })
    }

    /// Makes the calling thread one that may wait on connections.
    #[allow(clippy::disallowed_methods, reason = "once for each thread")]
    pub(super) fn stayer(&self) -> Arc<AffineThread> {
        self.kick.block();
        Arc::new(AffineThread::new(thread_id()))
    }

    /// Lets the calling thread wait on a connection, unless its lane or the connection has ended.
    /// `is_live` tells that once the thread can be called. Threads that do not keep connections
    /// until the end may not if no other thread would be left at the reactor.
    #[inline]
    pub(super) fn enter<'l>(
        &'l self,
        stayer: &'l Arc<AffineThread>,
        connection: &'l dyn Connection,
        key: Key,
        is_live: impl FnOnce() -> bool,
    ) -> Option<AffinityGuard<'l>> {
        // Where connections are kept, another thread waits on the reactor, or will return to it.
        let may = (self.stays.enter(stayer, key) || self.until_the_end) && is_live();
        self.kick.let_through();
        let stay = AffinityGuard {
            affinity: self,
            stayer,
            connection,
            served: 0,
        };
        may.then_some(stay)
    }

    /// Calls one thread back to the reactor.
    #[cold]
    pub(super) fn call_one_back(&self, connections: &Connections) {
        if self.until_the_end {
            return;
        }
        let now = Monotonic::of_last_tick();
        self.stays
            .call_one(now, |key, tid| self.wake(connections, *key, tid));
    }

    /// Calls all threads back, because the lane ends.
    pub(super) fn call_all_back(&self, connections: &Connections) {
        self.stays
            .call_all(|key, tid| self.wake(connections, *key, tid));
    }

    /// Calls back the thread that waits on a connection that another thread has ended.
    #[cold]
    pub(super) fn call_from(&self, connections: &Connections, key: Key) {
        self.stays.call_from(
            |at| *at == key,
            |key, tid| self.wake(connections, *key, tid),
        );
    }

    /// Calls back the threads of connections that were last used before a tick of the lane.
    #[cold]
    pub(super) fn call_idle_back(&self, connections: &Connections, before: u32) {
        let is_idle = |key: &Key| {
            let connection = connections.get(*key);
            connection.is_some_and(|connection| connection.was_used_before(before))
        };
        self.stays
            .call_from(is_idle, |key, tid| self.wake(connections, *key, tid));
    }

    /// Ends the wait of a thread on a connection.
    fn wake(&self, connections: &Connections, key: Key, tid: u32) {
        // The connection may have been removed; the waiting thread still holds it.
        if let Some(connection) = connections.get_held(key) {
            // Before the kick, so that the thread does not begin to wait after it.
            connection.transport().interrupt();
        }
        self.kick.send(tid);
    }
}

/// A guard: the thread keeps the connection as long as this lives.
pub(super) struct AffinityGuard<'l> {
    affinity: &'l ConnectionAffinity,
    stayer: &'l Arc<AffineThread>,
    connection: &'l dyn Connection,
    served: u32,
}

impl AffinityGuard<'_> {
    /// Receives the next octets of the connection, and waits for them. [`IoError::WouldBlock`]
    /// where the thread is called back, or at the deadline, if there is one.
    #[inline(always)]
    pub(super) fn recv(
        &self,
        room: &mut [u8],
        waiting: WaitPolicy,
        deadline: Option<Deadline>,
    ) -> Result<usize, IoError> {
        let left = || deadline.map(|deadline| deadline.remaining().unwrap_or_default());
        if !matches!(waiting, WaitPolicy::Block) {
            let bound = waiting.bound().min(left().unwrap_or(Duration::MAX));
            if let Some(received) = self.poll(room, bound) {
                return received;
            }
        }
        if !self.stayer.waits() {
            return Err(IoError::WouldBlock);
        }
        let received = self.connection.recv_until_interrupted(room, left());
        // A thread that was called meanwhile still handles the octets that it received.
        self.stayer.has_waited();
        received?.ok_or(IoError::WouldBlock)
    }

    /// Polls the connection for at most `bound`.
    #[inline(never)]
    fn poll(&self, room: &mut [u8], bound: Duration) -> Option<Result<usize, IoError>> {
        poll_for(bound, || match self.connection.look(room) {
            Err(IoError::WouldBlock) if !self.is_called() => None,
            received => Some(received),
        })
    }

    /// Whether the thread has to return to the reactor.
    pub(super) fn is_called(&self) -> bool {
        self.stayer.is_called()
    }

    /// Counts a request that was served.
    pub(super) fn has_served(&mut self) {
        self.served = self.served.saturating_add(1);
    }
}

impl Drop for AffinityGuard<'_> {
    fn drop(&mut self) {
        self.affinity.kick.hold_off();
        if self.affinity.stays.leave(self.stayer, self.served) {
            self.connection.resume();
        }
    }
}
