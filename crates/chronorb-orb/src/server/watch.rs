//! Counters and states of a lane and its threads, for snapshots and monitors.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use chronorb_rt::{Monotonic, PiMutex};

use crate::core::Core;
use crate::observe::{Activity, TimeHistogram};

/// Whether a new lane measures times from the start.
pub(super) fn are_times_wanted(core: &Core) -> bool {
    core.server().watchers.load(Ordering::Relaxed) != 0
}

/// The state of one thread, written by that thread alone.
pub(super) struct ThreadWatch {
    pub(super) name: String,
    pub(super) tid: AtomicU32,
    activity: AtomicU32,
    served: AtomicU64,
    times: TimeHistogram,
}

impl ThreadWatch {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            tid: AtomicU32::new(0),
            activity: AtomicU32::new(0),
            served: AtomicU64::new(0),
            times: TimeHistogram::new(),
        }
    }

    #[inline]
    pub(super) fn set(&self, activity: Activity) {
        self.activity.store(activity as u32, Ordering::Relaxed);
    }

    pub(super) fn activity(&self) -> Activity {
        Activity::of(self.activity.load(Ordering::Relaxed))
    }

    pub(super) fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }

    /// Counts a request as served, and its time since `begun` where times are measured.
    #[inline]
    pub(super) fn has_served(&self, begun: Option<Monotonic>) {
        // The time before the count: a reader that sees the request also sees its time.
        if let Some(begun) = begun {
            self.times.note(Monotonic::now() - begun);
        }
        // There is only one writer.
        let served = self.served.load(Ordering::Relaxed);
        self.served.store(served + 1, Ordering::Release);
    }
}

/// The counters of a lane, and its threads.
pub(super) struct LaneWatch {
    threads: PiMutex<Vec<Arc<ThreadWatch>>>,
    /// Requests of threads that have ended.
    served_before: AtomicU64,
    /// The times of those requests.
    times_before: TimeHistogram,
    pub(super) accepted: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) borrowed: AtomicU64,
    pub(super) buffered: AtomicU64,
    /// Whether times are measured, because a watcher wants them.
    pub(super) takes_times: AtomicBool,
}

impl LaneWatch {
    /// Returns the state of a lane without threads.
    pub(super) fn new(takes_times: bool) -> Self {
        Self {
            threads: PiMutex::default(),
            served_before: AtomicU64::new(0),
            times_before: TimeHistogram::new(),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            borrowed: AtomicU64::new(0),
            buffered: AtomicU64::new(0),
            takes_times: AtomicBool::new(takes_times),
        }
    }

    pub(super) fn enter(&self, thread: Arc<ThreadWatch>) {
        self.threads.lock().push(thread);
    }

    pub(super) fn leave(&self, thread: &Arc<ThreadWatch>) {
        // Under the lock, so that a reader counts the thread's share exactly once.
        let mut threads = self.threads.lock();
        self.served_before
            .fetch_add(thread.served(), Ordering::Relaxed);
        self.times_before.add(&thread.times);
        threads.retain(|t| !Arc::ptr_eq(t, thread));
    }

    /// The time at the beginning of a request, where times are measured.
    #[inline]
    pub(super) fn now(&self) -> Option<Monotonic> {
        self.takes_times
            .load(Ordering::Relaxed)
            .then(Monotonic::now)
    }

    pub(super) fn threads(&self) -> Vec<Arc<ThreadWatch>> {
        self.threads.lock().clone()
    }

    pub(super) fn served(&self) -> u64 {
        let threads = self.threads.lock();
        let served: u64 = threads.iter().map(|t| t.served()).sum();
        served + self.served_before.load(Ordering::Relaxed)
    }

    /// The service times since they are measured, as upper bounds and their counts.
    pub(super) fn times(&self) -> Vec<(Duration, u64)> {
        let threads = self.threads.lock();
        let present = threads.iter().map(|thread| &thread.times);
        TimeHistogram::sums(present.chain([&self.times_before]))
    }
}
