//! Affinity of threads to connections: a thread that has dispatched a request waits for the next one
//! on the connection itself, and not on the reactor of the lane, as long as other threads wait
//! there.
//!
//! That spares a system call for each request, and the choice among threads. It happens only on
//! connections whose client announced that it waits for each reply: on others the next request may
//! arrive while this thread is in an upcall, and another one has to read it.
//!
//! Threads with an affinity never leave the reactor without a thread ([`Stays`]).
//!
//! Under thread-per-connection each thread stays with one connection until that ends.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::io;
use std::sync::Arc;
use std::time::Duration;

use chronorb_rt::{Deadline, Key, Kick, Slots, Stayer, Stays, look_for, thread_id};
use chronorb_transport::{Connection, IoError, Waiting};

use super::connection::ServerConnection;

/// The connections of a lane.
type Connections = Slots<ServerConnection>;

/// The threads of a lane that stay with connections.
pub(super) struct ConnectionAffinity {
    kick: Kick,
    /// Threads stay until their connections end.
    until_the_end: bool,
    pub(super) stays: Stays<Key>,
}

impl ConnectionAffinity {
    /// For a lane of so many threads; none where one of them cannot do without the other, or where
    /// the application handles the signal by which threads are called back.
    pub(super) fn new(threads: u32) -> Option<Self> {
        if threads < 2 {
            return None;
        }
        Some(Self {
            kick: Kick::install().ok()?,
            until_the_end: false,
            stays: Stays::new(),
        })
    }

    /// For a lane each of whose connections has a thread.
    ///
    /// # Errors
    /// Where they could not be called when the lane ends.
    pub(super) fn until_the_end() -> io::Result<Self> {
        Ok(Self {
            kick: Kick::install()?,
            until_the_end: true,
            stays: Stays::new(),
        })
    }

    /// Makes the calling thread one that may stay.
    #[allow(clippy::disallowed_methods, reason = "once for each thread")]
    pub(super) fn stayer(&self) -> Arc<Stayer> {
        self.kick.block();
        Arc::new(Stayer::new(thread_id()))
    }

    /// The calling thread stays with a connection, unless it would leave the set alone, or the
    /// connection or its lane has ended, as `is_live` says after the thread can be called.
    pub(super) fn enter<'l>(
        &'l self,
        stayer: &'l Arc<Stayer>,
        connection: &'l dyn Connection,
        key: Key,
        is_live: impl FnOnce() -> bool,
    ) -> Option<Stay<'l>> {
        let may = self.stays.enter(stayer, key);
        self.begin(stayer, connection, may, is_live)
    }

    /// The calling thread stays with a connection, until the connection or the lane ends.
    pub(super) fn keep<'l>(
        &'l self,
        stayer: &'l Arc<Stayer>,
        connection: &'l dyn Connection,
        key: Key,
        is_live: impl FnOnce() -> bool,
    ) -> Option<Stay<'l>> {
        // Another thread is at the set, or will be there again.
        let _ = self.stays.enter(stayer, key);
        self.begin(stayer, connection, true, is_live)
    }

    #[inline]
    fn begin<'l>(
        &'l self,
        stayer: &'l Arc<Stayer>,
        connection: &'l dyn Connection,
        may: bool,
        is_live: impl FnOnce() -> bool,
    ) -> Option<Stay<'l>> {
        let may = may && is_live();
        self.kick.let_through();
        let stay = Stay {
            affinity: self,
            stayer,
            connection,
            served: 0,
        };
        may.then_some(stay)
    }

    /// Calls one thread back to the set.
    #[cold]
    pub(super) fn call_one_back(&self, connections: &Connections) {
        if self.until_the_end {
            return;
        }
        self.stays
            .call_one(|key, tid| self.wake(connections, *key, tid));
    }

    /// Calls all back; the lane ends.
    pub(super) fn call_all_back(&self, connections: &Connections) {
        self.stays
            .call_all(|key, tid| self.wake(connections, *key, tid));
    }

    /// Calls back whoever stays with a connection that was ended by another thread.
    #[cold]
    pub(super) fn call_from(&self, connections: &Connections, key: Key) {
        self.stays
            .call_from(&key, |key, tid| self.wake(connections, *key, tid));
    }

    /// Ends the wait of a thread on a connection.
    fn wake(&self, connections: &Connections, key: Key, tid: u32) {
        // It may have been ended; the thread that waits still has it.
        if let Some(connection) = connections.get_held(key) {
            // First this, so that it does not begin to wait after the kick.
            connection.transport().interrupt();
        }
        self.kick.send(tid);
    }
}

/// A thread stays with a connection as long as this lives.
pub(super) struct Stay<'l> {
    affinity: &'l ConnectionAffinity,
    stayer: &'l Arc<Stayer>,
    connection: &'l dyn Connection,
    served: u32,
}

impl Stay<'_> {
    /// Receives what comes next on the connection, and waits for it; [`IoError::WouldBlock`] where
    /// the thread is called back, or at the deadline, if there is one.
    pub(super) fn recv(
        &self,
        room: &mut [u8],
        waiting: Waiting,
        deadline: Option<Deadline>,
    ) -> Result<usize, IoError> {
        let left = || deadline.map(|deadline| deadline.remaining().unwrap_or_default());
        if waiting != Waiting::Block {
            let bound = waiting.bound().min(left().unwrap_or(Duration::MAX));
            let looked = look_for(bound, || match self.connection.look(room) {
                Err(IoError::WouldBlock) if !self.is_called() => None,
                received => Some(received),
            });
            if let Some(received) = looked {
                return received;
            }
        }
        if !self.stayer.waits() {
            return Err(IoError::WouldBlock);
        }
        let received = self.connection.recv_until_interrupted(room, left());
        // If it was called meanwhile, it has what it received nevertheless.
        self.stayer.has_waited();
        received?.ok_or(IoError::WouldBlock)
    }

    /// Whether the thread is to go back to the set.
    pub(super) fn is_called(&self) -> bool {
        self.stayer.is_called()
    }

    /// A request was served.
    pub(super) fn has_served(&mut self) {
        self.served = self.served.saturating_add(1);
    }
}

impl Drop for Stay<'_> {
    fn drop(&mut self) {
        self.affinity.kick.hold_off();
        if self.affinity.stays.leave(self.stayer, self.served) {
            self.connection.resume();
        }
    }
}
