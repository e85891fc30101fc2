//! Staying with a connection: a thread that has served a request waits for the next one on the
//! connection itself, and not on the lane's set, as long as other threads wait there.
//!
//! That spares a system call for each request, and the choice among threads. It is done only on
//! connections whose client waits for each reply, as it has announced: on others the next request
//! may come while this thread is in an upcall, and another one has to read it.
//!
//! The set must never be left alone by threads that only stay: who goes away from it as the last one
//! calls another back. Both sides look again after their own step, who stays and who goes away
//! (`Lingering::enter`, `Lingering::go`), so that one of them sees the other.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use chronorb_rt::{Key, Kick, PiMutex, look_for, thread_id};
use chronorb_transport::{Connection, IoError, Waiting};

use super::lane::Lane;

/// The threads of a lane that stay with connections.
pub(super) struct Lingering {
    kick: Kick,
    /// Threads that wait on the set.
    at_set: AtomicUsize,
    /// Threads that stay with a connection; as many as `lingerers` has.
    staying: AtomicUsize,
    lingerers: PiMutex<Vec<(Key, Arc<Lingerer>)>>,
    /// Requests that the set still has to bring before a thread may stay.
    reluctance: AtomicU32,
    /// What that becomes at the next call back.
    next_reluctance: AtomicU32,
}

/// A thread that stays with a connection now and then.
#[derive(Debug)]
pub(super) struct Lingerer {
    tid: u32,
    /// [`WAITING`], [`BUSY`] or [`CALLED`].
    state: AtomicU32,
}

/// It waits for a request.
const WAITING: u32 = 0;
/// It serves one, or is about to wait.
const BUSY: u32 = 1;
/// It shall go back to the set.
const CALLED: u32 = 2;

impl Lingering {
    /// For a lane of so many threads; none where one of them cannot do without the other, or where
    /// the application handles the signal by which threads are called back.
    pub(super) fn new(threads: u32) -> Option<Self> {
        if threads < 2 {
            return None;
        }
        Some(Self {
            kick: Kick::install().ok()?,
            at_set: AtomicUsize::new(0),
            staying: AtomicUsize::new(0),
            lingerers: PiMutex::new(Vec::new()),
            reluctance: AtomicU32::new(0),
            next_reluctance: AtomicU32::new(LEAST_RELUCTANCE),
        })
    }

    /// Makes the calling thread one that may stay.
    #[allow(clippy::disallowed_methods, reason = "once for each thread")]
    pub(super) fn lingerer(&self) -> Arc<Lingerer> {
        self.kick.block();
        Arc::new(Lingerer {
            tid: thread_id(),
            state: AtomicU32::new(BUSY),
        })
    }

    /// How many threads stay with a connection.
    pub(super) fn staying(&self) -> usize {
        self.staying.load(Ordering::Relaxed)
    }

    /// A thread is about to wait on the set.
    pub(super) fn come(&self) {
        self.at_set.fetch_add(1, Ordering::SeqCst);
    }

    /// A thread goes away from the set. Returns whether another one has to be called back, if it
    /// stays away for long.
    pub(super) fn go(&self) -> bool {
        self.at_set.fetch_sub(1, Ordering::SeqCst) == 1 && self.staying.load(Ordering::SeqCst) > 0
    }

    /// Whether a thread may stay: while others wait at the set, and not for a while after one was called back, which is longer
    /// each time.
    pub(super) fn is_time(&self) -> bool {
        if self.at_set.load(Ordering::Relaxed) == 0 {
            return false;
        }
        match self.reluctance.load(Ordering::Relaxed) {
            0 => true,
            // That some are counted once for two threads does not matter.
            left => {
                self.reluctance.store(left - 1, Ordering::Relaxed);
                false
            }
        }
    }

    /// The calling thread stays with a connection, unless it would leave the set alone.
    pub(super) fn enter<'l>(
        &'l self,
        lane: &'l Lane,
        thread: &'l Arc<Lingerer>,
        connection: &'l dyn Connection,
        key: Key,
    ) -> Option<Stay<'l>> {
        thread.state.store(BUSY, Ordering::SeqCst);
        self.lingerers.lock().push((key, thread.clone()));
        self.staying.fetch_add(1, Ordering::SeqCst);
        self.kick.let_through();
        let stay = Stay {
            lingering: self,
            thread,
            connection,
            served: 0,
        };
        // From here on it is called back, where it has to be.
        let may = self.at_set.load(Ordering::SeqCst) > 0 && !lane.is_stopping();
        may.then_some(stay)
    }

    /// Calls one thread back to the set, if possible one that waits.
    #[cold]
    pub(super) fn call_one_back(&self, lane: &Lane) {
        let next = self.next_reluctance.load(Ordering::Relaxed);
        self.reluctance.store(next, Ordering::Relaxed);
        let longer = next.saturating_mul(2).min(GREATEST_RELUCTANCE);
        self.next_reluctance.store(longer, Ordering::Relaxed);
        let lingerers = self.lingerers.lock();
        let mut all = lingerers.iter();
        if !all.any(|(key, thread)| self.call(lane, *key, thread, false)) {
            // All that stay are busy: the first of them that has done comes.
            let mut all = lingerers.iter();
            all.any(|(key, thread)| self.call(lane, *key, thread, true));
        }
    }

    /// Calls all back; the lane ends.
    pub(super) fn call_all_back(&self, lane: &Lane) {
        for (key, thread) in &*self.lingerers.lock() {
            self.call(lane, *key, thread, true);
        }
    }

    /// Calls a thread that waits, or one that is busy too. Returns whether it did.
    fn call(&self, lane: &Lane, key: Key, thread: &Lingerer, even_if_busy: bool) -> bool {
        let become_called = |from| {
            let state = &thread.state;
            let became = state.compare_exchange(from, CALLED, Ordering::SeqCst, Ordering::SeqCst);
            became.is_ok()
        };
        loop {
            if become_called(WAITING) {
                if let Some(connection) = lane.connections.get(key) {
                    // First this, so that it does not begin to wait after the kick.
                    connection.transport().interrupt();
                }
                self.kick.send(thread.tid);
                return true;
            }
            if even_if_busy && become_called(BUSY) {
                return true;
            }
            // It may have begun to wait between the two.
            if !even_if_busy || thread.is_called() {
                return false;
            }
        }
    }
}

impl Lingerer {
    fn is_called(&self) -> bool {
        self.state.load(Ordering::SeqCst) == CALLED
    }
}

/// A thread stays with a connection as long as this lives.
pub(super) struct Stay<'l> {
    lingering: &'l Lingering,
    thread: &'l Arc<Lingerer>,
    connection: &'l dyn Connection,
    served: u32,
}

impl Stay<'_> {
    /// Receives what comes next on the connection, and waits for it; [`IoError::WouldBlock`] where
    /// the thread is called back, or after `limit`.
    pub(super) fn recv(
        &self,
        room: &mut [u8],
        waiting: Waiting,
        limit: Option<Duration>,
    ) -> Result<usize, IoError> {
        if waiting != Waiting::Block {
            let looked = look_for(waiting.bound(), || match self.connection.try_recv(room) {
                Err(IoError::WouldBlock) if !self.is_called() => None,
                received => Some(received),
            });
            if let Some(received) = looked {
                return received;
            }
        }
        let state = &self.thread.state;
        let waits = state.compare_exchange(BUSY, WAITING, Ordering::SeqCst, Ordering::SeqCst);
        if waits.is_err() {
            return Err(IoError::WouldBlock);
        }
        let received = self.connection.recv_until_interrupted(room, limit);
        // Where this fails, the thread is called back, and has what it received nevertheless.
        let _ = state.compare_exchange(WAITING, BUSY, Ordering::SeqCst, Ordering::SeqCst);
        received?.ok_or(IoError::WouldBlock)
    }

    /// Whether the thread is to go back to the set.
    pub(super) fn is_called(&self) -> bool {
        self.thread.is_called()
    }

    /// A request was served.
    pub(super) fn has_served(&mut self) {
        self.served = self.served.saturating_add(1);
    }
}

impl Drop for Stay<'_> {
    fn drop(&mut self) {
        let lingering = self.lingering;
        lingering.kick.hold_off();
        let mut lingerers = lingering.lingerers.lock();
        lingerers.retain(|(_, thread)| !Arc::ptr_eq(thread, self.thread));
        drop(lingerers);
        lingering.staying.fetch_sub(1, Ordering::SeqCst);
        // Nobody finds it in the list any more.
        if self.thread.state.swap(BUSY, Ordering::SeqCst) == CALLED {
            self.connection.resume();
        }
        if self.served >= WORTH {
            lingering
                .next_reluctance
                .store(LEAST_RELUCTANCE, Ordering::Relaxed);
        }
    }
}

/// Requests that the set brings after a call back before a thread stays again.
const LEAST_RELUCTANCE: u32 = 64;
const GREATEST_RELUCTANCE: u32 = 1 << 16;
/// Requests that are served in one stay where it was worth it.
const WORTH: u32 = 4096;
