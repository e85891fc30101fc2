//! Counters of each thread, which other threads may read.
#![allow(unsafe_code)]

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

/// The number of words that a thread has for the counts of instruments.
pub const COUNT_WORDS: usize = 10;

/// The counts of one thread or the sum of several.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ThreadCounts {
    /// As [`allocations`](crate::allocations).
    pub allocations: u64,
    /// As [`allocated_octets`](crate::allocated_octets).
    pub allocated_octets: u64,
    /// As [`lock_operations`](crate::lock_operations).
    pub lock_operations: u64,
    /// The words [counted](count) by instruments.
    pub words: [u64; COUNT_WORDS],
}

impl ThreadCounts {
    /// Returns the counts of the calling thread so far.
    #[inline]
    #[must_use]
    pub fn of_this_thread() -> Self {
        TALLY.with(Tally::read)
    }
}

impl core::ops::Add for ThreadCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            allocations: self.allocations + other.allocations,
            allocated_octets: self.allocated_octets + other.allocated_octets,
            lock_operations: self.lock_operations + other.lock_operations,
            words: core::array::from_fn(|at| self.words[at] + other.words[at]),
        }
    }
}

impl core::ops::Sub for ThreadCounts {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            allocations: self.allocations - before.allocations,
            allocated_octets: self.allocated_octets - before.allocated_octets,
            lock_operations: self.lock_operations - before.lock_operations,
            words: core::array::from_fn(|at| self.words[at] - before.words[at]),
        }
    }
}

/// Counts an allocation of the calling thread.
#[inline]
pub(crate) fn allocated(octets: usize) {
    TALLY.with(|tally| {
        add(&tally.allocations, 1);
        add(&tally.allocated_octets, octets as u64);
    });
}

/// Counts a lock operation of the calling thread.
#[inline]
pub(crate) fn locked() {
    TALLY.with(|tally| add(&tally.lock_operations, 1));
}

/// Adds to one of the [words](ThreadCounts::words) of the calling thread. Never allocates, locks or
/// waits; a word that does not exist is ignored.
#[inline]
pub fn count(word: usize, more: u64) {
    TALLY.with(|tally| {
        if let Some(count) = tally.words.get(word) {
            add(count, more);
        }
    });
}

/// The tally of a thread, for others to read as long as the thread lives.
pub(crate) struct TallyHandle(NonNull<Tally>);

// SAFETY: a tally consists of atomics; `read` demands that it still exists.
unsafe impl Send for TallyHandle {}

impl TallyHandle {
    /// Returns the tally of the calling thread.
    pub(crate) fn of_this_thread() -> Self {
        Self(TALLY.with(|tally| NonNull::from(tally)))
    }

    /// Returns the counts of the thread so far.
    ///
    /// # Safety
    /// The thread has not ended.
    pub(crate) unsafe fn read(&self) -> ThreadCounts {
        // SAFETY: the tally has no destructor, and its memory belongs to the thread until that
        // ends, which the caller excludes.
        unsafe { self.0.as_ref() }.read()
    }
}

/// Only its thread writes to it.
struct Tally {
    allocations: AtomicU64,
    allocated_octets: AtomicU64,
    lock_operations: AtomicU64,
    words: [AtomicU64; COUNT_WORDS],
}

impl Tally {
    fn read(&self) -> ThreadCounts {
        ThreadCounts {
            allocations: self.allocations.load(Ordering::Relaxed),
            allocated_octets: self.allocated_octets.load(Ordering::Relaxed),
            lock_operations: self.lock_operations.load(Ordering::Relaxed),
            words: self
                .words
                .each_ref()
                .map(|word| word.load(Ordering::Relaxed)),
        }
    }
}

/// Adds to a count that no other thread writes: no atomic operation is needed.
#[inline]
fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

thread_local! {
    static TALLY: Tally = const {
        Tally {
            allocations: AtomicU64::new(0),
            allocated_octets: AtomicU64::new(0),
            lock_operations: AtomicU64::new(0),
            words: [const { AtomicU64::new(0) }; COUNT_WORDS],
        }
    };
}
