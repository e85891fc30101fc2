//! Counters of a class in memory that other processes read.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use core::ffi::CStr;
use core::sync::atomic::{AtomicU64, Ordering};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use chronorb_rt::PublishedWords;

use super::layout::{self, BUCKETS, Count, Level};
use crate::class::ClassId;
use crate::plan::{Policy, Processing, Reservation};

/// The page with the counters of an interface's classes, which other processes can read.
#[derive(Clone, Debug)]
pub struct Page {
    words: Arc<PublishedWords>,
}

impl Page {
    /// The name of the page's file among the descriptors of the process.
    pub const NAME: &CStr = c"chronorb-rio";

    /// Creates the page of an interface without classes. It is freed with the last of its clones
    /// and counters.
    ///
    /// # Errors
    /// [`io::Error`] if no memory or descriptor is left.
    #[allow(clippy::disallowed_methods, reason = "once for each interface")]
    pub fn create(interface: &str) -> io::Result<Self> {
        let words = PublishedWords::create(Self::NAME, layout::PAGE)?;
        let name = &words[layout::INTERFACE_AT..][..layout::INTERFACE_WORDS];
        write_text(name, interface);
        words[layout::VERSION_AT].store(layout::VERSION, Ordering::Relaxed);
        words[layout::MAGIC_AT].store(layout::MAGIC, Ordering::Release);
        Ok(Self {
            words: Arc::new(words),
        })
    }

    /// Opens the counters of a class, which begin at 0, and records its reservation. They replace
    /// those of a former class with the same number.
    pub fn open(&self, class: ClassId, reservation: &Reservation) -> ClassCounters {
        let counters = ClassCounters {
            words: self.words.clone(),
            at: layout::HEAD + class.index() * layout::CLASS,
        };
        counters.begin(reservation);
        counters
    }
}

/// The counters of a class. Any thread may write them without blocking. On drop, the class is
/// marked as closed.
#[derive(Debug)]
pub struct ClassCounters {
    words: Arc<PublishedWords>,
    /// The index of the class's first word.
    at: usize,
}

impl ClassCounters {
    /// Adds `n` to a count.
    #[inline]
    pub fn add(&self, count: Count, n: u64) {
        self.word(layout::COUNTS + count as usize)
            .fetch_add(n, Ordering::Relaxed);
    }

    /// Sets a count that is maintained elsewhere.
    #[inline]
    pub fn put(&self, count: Count, n: u64) {
        self.word(layout::COUNTS + count as usize)
            .store(n, Ordering::Relaxed);
    }

    /// Returns a count.
    pub fn count(&self, count: Count) -> u64 {
        self.word(layout::COUNTS + count as usize)
            .load(Ordering::Relaxed)
    }

    /// Sets a level and updates its maximum.
    #[inline]
    pub fn set(&self, level: Level, n: u64) {
        let at = layout::LEVELS + 2 * level as usize;
        self.word(at).store(n, Ordering::Relaxed);
        let most = self.word(at + 1);
        // The maximum rarely changes; without a write, the cache line stays shared.
        if most.load(Ordering::Relaxed) < n {
            most.fetch_max(n, Ordering::Relaxed);
        }
    }

    /// Counts packets that were delivered within `latency` after their thread was notified.
    #[inline]
    pub fn delivered_after(&self, latency: Duration, packets: u64) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        let bucket = (u64::BITS - nanos.leading_zeros()) as usize;
        self.word(layout::LATENCIES + bucket.min(BUCKETS - 1))
            .fetch_add(packets, Ordering::Relaxed);
        let longest = self.word(layout::LONGEST);
        if longest.load(Ordering::Relaxed) < nanos {
            longest.fetch_max(nanos, Ordering::Relaxed);
        }
    }

    fn begin(&self, reservation: &Reservation) {
        let before = self.word(layout::OPENING).swap(0, Ordering::AcqRel);
        let last = self.word(LAST_OPENING);
        last.fetch_max(before, Ordering::Relaxed);
        for at in (layout::OPENING + 1..layout::CLASS).filter(|at| *at != LAST_OPENING) {
            self.word(at).store(0, Ordering::Relaxed);
        }
        let name = &self.words[self.at + layout::NAME..][..layout::NAME_WORDS];
        write_text(name, &reservation.name);
        let bound = reservation.bound();
        let about = [
            (layout::MODE, mode(reservation.processing)),
            (layout::POLICY, policy(reservation.policy)),
            (layout::PRIORITY, reservation.priority.into()),
            (
                layout::PACKETS,
                bound.map_or(0, |bound| bound.packets.into()),
            ),
            (
                layout::PERIOD,
                bound.map_or(0, |bound| bound.period.as_nanos() as u64),
            ),
            (layout::CPU, reservation.cpu.map_or(0, |cpu| cpu as u64 + 1)),
            (layout::QUEUE, reservation.queue as u64),
            (layout::CONNECTIONS, reservation.connections as u64),
        ];
        for (at, value) in about {
            self.word(at).store(value, Ordering::Relaxed);
        }
        let opening = last.load(Ordering::Relaxed) + 1;
        last.store(opening, Ordering::Relaxed);
        self.word(layout::OPENING).store(opening, Ordering::Release);
    }

    #[inline]
    fn word(&self, at: usize) -> &AtomicU64 {
        &self.words[self.at + at]
    }
}

impl Drop for ClassCounters {
    fn drop(&mut self) {
        self.word(layout::OPENING).store(0, Ordering::Release);
    }
}

/// Writes the text, cut to the available room.
fn write_text(words: &[AtomicU64], text: &str) {
    let mut octets = text.bytes();
    for word in words {
        let chunk = [(); 8].map(|()| octets.next().unwrap_or(0));
        word.store(u64::from_ne_bytes(chunk), Ordering::Relaxed);
    }
}

pub(super) const fn mode(processing: Processing) -> u64 {
    match processing {
        Processing::OnArrival => 1,
        Processing::OnDemand { .. } => 2,
        Processing::Periodic { .. } => 3,
    }
}

pub(super) const fn policy(policy: Policy) -> u64 {
    match policy {
        Policy::Other => 0,
        Policy::Fifo => 1,
        Policy::RoundRobin => 2,
        Policy::Deadline => 6,
    }
}

/// The word that keeps the number of the last opening while the class is closed.
const LAST_OPENING: usize = layout::COUNTS - 1;
