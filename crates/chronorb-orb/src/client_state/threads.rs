//! The number of the threads of connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use chronorb_rt::{Deadline, Gate};

use super::permit::ConnectionPermits;

/// The threads of an ORB's connections.
pub(crate) struct ConnectionThreads {
    started: AtomicU32,
    running: Arc<RunningThreads>,
    /// ConnectionPermits for threads that continue a call beside a completion thread.
    pub(crate) aside: ConnectionPermits,
}

#[derive(Default)]
struct RunningThreads {
    number: AtomicUsize,
    ended: Gate,
}

/// A guard that counts a thread from before its start until its end.
pub(crate) struct CountGuard(Arc<RunningThreads>);

impl Drop for CountGuard {
    fn drop(&mut self) {
        self.0.number.fetch_sub(1, Ordering::AcqRel);
        self.0.ended.advance();
    }
}

impl Default for ConnectionThreads {
    fn default() -> Self {
        Self {
            started: AtomicU32::new(0),
            running: Arc::default(),
            aside: ConnectionPermits::new(MAX_ASIDE),
        }
    }
}

impl ConnectionThreads {
    /// Returns the number of the next thread, for its name.
    pub(crate) fn next_number(&self) -> u32 {
        self.started.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn count(&self) -> CountGuard {
        self.running.number.fetch_add(1, Ordering::AcqRel);
        CountGuard(self.running.clone())
    }

    /// Waits until all of them have ended.
    pub(crate) fn wait_until_ended(&self, deadline: Deadline) {
        let running = &self.running;
        loop {
            let seen = running.ended.get();
            if running.number.load(Ordering::Acquire) == 0 || deadline.has_passed() {
                return;
            }
            running.ended.wait_while(seen, deadline);
        }
    }
}

/// The most threads that continue calls beside completion threads.
const MAX_ASIDE: usize = 16;
