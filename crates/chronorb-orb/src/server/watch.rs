//! Counters and states of a lane and its threads, for snapshots and monitors.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use chronorb_rt::{Monotonic, PiMutex};

use crate::core::Core;
use crate::observe::Activity;

/// Whether a new lane measures times from the start.
pub(super) fn are_times_wanted(core: &Core) -> bool {
    core.server.watchers.load(Ordering::Relaxed) != 0
}

/// The state of one thread, written by that thread alone.
pub(super) struct ThreadWatch {
    pub(super) name: String,
    pub(super) tid: AtomicU32,
    activity: AtomicU32,
    served: AtomicU64,
    times: Times,
}

impl ThreadWatch {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            tid: AtomicU32::new(0),
            activity: AtomicU32::new(0),
            served: AtomicU64::new(0),
            times: Times::new(),
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
    times_before: Times,
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
            times_before: Times::new(),
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
        (0..BUCKETS)
            .map(|bucket| {
                let count: u64 = threads.iter().map(|t| t.times.count(bucket)).sum();
                (upper_bound(bucket), count + self.times_before.count(bucket))
            })
            .filter(|(_, count)| *count > 0)
            .collect()
    }
}

/// Counts of times in buckets, four for each power of two.
struct Times([AtomicU64; BUCKETS]);

impl Times {
    fn new() -> Self {
        Self([const { AtomicU64::new(0) }; BUCKETS])
    }

    fn note(&self, time: Duration) {
        let count = &self.0[bucket_of(time.as_nanos() as u64)];
        // There is only one writer.
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    fn add(&self, other: &Self) {
        for (count, other) in self.0.iter().zip(&other.0) {
            count.fetch_add(other.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    fn count(&self, bucket: usize) -> u64 {
        self.0[bucket].load(Ordering::Relaxed)
    }
}

/// Four buckets for each power of two, up to half a minute.
const BUCKETS: usize = 4 * 35;

fn bucket_of(nanoseconds: u64) -> usize {
    if nanoseconds < 4 {
        return nanoseconds as usize;
    }
    let power = nanoseconds.ilog2() as usize;
    let quarter = (nanoseconds >> (power - 2)) as usize & 3;
    (4 * (power - 1) + quarter).min(BUCKETS - 1)
}

/// The least time that is too long for a bucket.
fn upper_bound(bucket: usize) -> Duration {
    let next = bucket + 1;
    let nanoseconds = match next {
        0..4 => next as u64,
        _ => (4 + (next as u64 & 3)) << (next / 4 - 1),
    };
    Duration::from_nanos(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_below_the_bound_of_its_bucket_and_not_below_that_of_the_one_before() {
        for nanoseconds in (0..10_000).chain([1 << 20, (1 << 30) - 1, 1 << 34]) {
            let bucket = bucket_of(nanoseconds);
            let time = Duration::from_nanos(nanoseconds);
            assert!(time < upper_bound(bucket), "{nanoseconds} in {bucket}");
            assert!(bucket == 0 || time >= upper_bound(bucket - 1));
        }
    }
}
