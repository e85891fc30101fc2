//! A histogram of times that threads fill without locks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counts of times in buckets, four for each power of two up to half a minute.
pub(crate) struct TimeHistogram([AtomicU64; BUCKETS]);

impl TimeHistogram {
    pub(crate) const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; BUCKETS])
    }

    /// Counts a time. Only one thread at a time may do so.
    pub(crate) fn note(&self, time: Duration) {
        let count = &self.0[bucket_of(time.as_nanos() as u64)];
        // There is only one writer.
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Counts a time, while other threads may do so too.
    #[cfg(feature = "schedule")]
    pub(crate) fn note_shared(&self, time: Duration) {
        self.0[bucket_of(time.as_nanos() as u64)].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, other: &Self) {
        for (count, other) in self.0.iter().zip(&other.0) {
            count.fetch_add(other.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// The exclusive upper bounds of the buckets of several histograms that have counts, with
    /// their sums.
    pub(crate) fn sums<'t>(
        histograms: impl Iterator<Item = &'t Self> + Clone,
    ) -> Vec<(Duration, u64)> {
        let count = |bucket: usize| {
            let counts = histograms.clone().map(|times| &times.0[bucket]);
            counts.map(|count| count.load(Ordering::Relaxed)).sum()
        };
        (0..BUCKETS)
            .map(|bucket| (upper_bound(bucket), count(bucket)))
            .filter(|(_, count)| *count > 0)
            .collect()
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
