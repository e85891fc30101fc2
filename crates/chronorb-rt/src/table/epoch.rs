//! Deferred freeing of memory that readers may still access.
//!
//! Readers of [`Slots`](crate::Slots) and [`HashIndex`](crate::HashIndex) take no lock, so a writer
//! that removes memory from a table does not know which readers have just found it there. Each
//! thread therefore publishes, in a record of its own, the epoch in which it began to read. Memory
//! is freed when all records show that their threads began later, or do not read now. A writer
//! never waits for that: memory that cannot be freed when it leaves is freed by a later writer, of
//! any table.
//!
//! No reader meets freed memory. A writer first removes the memory from the table (1), then stamps
//! it with the epoch and advances the epoch (2), then reads each record, by an exchange (3). A
//! reader first loads the epoch (a), then exchanges it into its record (b), then reads the table
//! (c). Since (3) and (b) are exchanges of the same word, one of them sees the other:
//! * (b) comes after (3). Then (1) happens before (c), and the reader does not find the memory.
//! * (3) sees (b), and an epoch after the stamp. Then (a) has seen (2), and again (1) happens
//!   before (c).
//! * (3) sees (b), and an epoch up to the stamp. The memory is kept.
//! * (3) sees that the reader has left. Then all that it did happens before the memory is freed.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![allow(unsafe_code)]

use core::cell::Cell;
use core::marker::PhantomData;
use core::{fmt, mem};

use crate::sync::primitives::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::primitives::{Mutex, const_but_for_loom, thread_local};
use crate::table::memory::Memory;

/// A guard during which memory that this thread finds in shared tables is not freed; see [`enter`].
///
/// The memory of all tables waits for it, so it should cover look-ups, not the work that follows.
#[must_use = "it protects what is read as long as it lives"]
pub struct EpochGuard {
    record: &'static Record,
    of_this_thread: PhantomData<*mut ()>,
}

/// Permits the calling thread to read shared tables, until the result is dropped.
///
/// The tables do so themselves. A caller that reads several tables, one after the other, enters
/// around all of that: entering again costs an addition, whereas the outermost entry is an atomic
/// exchange on a cache line of the thread. Entering is wait-free except for the first time in a
/// thread, which takes a lock and may allocate.
#[inline]
pub fn enter() -> EpochGuard {
    // A thread that is about to end has returned its record already.
    let record = OWN
        .try_with(|own| own.0)
        .unwrap_or_else(|_| Record::take(true));
    if record.depth.get() == 0 {
        let now = DOMAIN.epoch.load(Ordering::Acquire);
        record.entered.swap(now, Ordering::AcqRel);
    }
    record.depth.set(record.depth.get() + 1);
    EpochGuard {
        record,
        of_this_thread: PhantomData,
    }
}

impl EpochGuard {
    /// Requests, for writers, that retired memory which could not be freed before is freed when the
    /// thread leaves.
    pub(crate) fn collect_on_leave(&self) {
        if DOMAIN.waiting.load(Ordering::Relaxed) != 0 {
            self.record.collects.set(true);
        }
    }
}

impl Drop for EpochGuard {
    #[inline]
    fn drop(&mut self) {
        let record = self.record;
        let depth = record.depth.get() - 1;
        record.depth.set(depth);
        if depth > 0 {
            return;
        }
        let collects = record.collects.take();
        let left = if record.abandoned.get() {
            UNOWNED
        } else {
            IDLE
        };
        // From here on the record may belong to another thread.
        record.entered.store(left, Ordering::Release);
        if collects {
            collect();
        }
    }
}

impl fmt::Debug for EpochGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EpochGuard").finish_non_exhaustive()
    }
}

/// Frees `memory`, which is in no table any more, as soon as no reader can be accessing it: at the
/// earliest when the calling thread leaves.
pub(super) fn retire(memory: Memory) {
    let reading = enter();
    let mut shared = DOMAIN.shared.lock();
    let stamp = DOMAIN.epoch.fetch_add(1, Ordering::AcqRel);
    shared.garbage.push((stamp, memory));
    DOMAIN
        .waiting
        .store(shared.garbage.len(), Ordering::Relaxed);
    drop(shared);
    reading.collect_on_leave();
}

/// Frees the retired memory that can be freed now.
fn collect() {
    let mut shared = DOMAIN.shared.lock();
    let oldest = shared.oldest();
    let free = shared.garbage.partition_point(|(stamp, _)| *stamp < oldest);
    if free == 0 {
        return;
    }
    let kept = shared.garbage.split_off(free);
    DOMAIN.waiting.store(kept.len(), Ordering::Relaxed);
    let garbage = mem::replace(&mut shared.garbage, kept);
    // Freeing much memory may take a while.
    drop(shared);
    drop(garbage);
}

struct Domain {
    epoch: AtomicU64,
    /// The amount of memory that waits to be freed.
    waiting: AtomicUsize,
    shared: Mutex<Registry>,
}

struct Registry {
    /// One for each of the greatest number of concurrent threads so far.
    records: Vec<&'static Record>,
    /// Retired memory by stamp.
    garbage: Vec<(u64, Memory)>,
}

/// The published reading state of a thread.
///
/// The cells belong to the thread that owns the record.
#[repr(align(64))]
struct Record {
    /// The epoch when the thread began to read, or [`IDLE`], or [`UNOWNED`].
    entered: AtomicU64,
    /// The number of [`EpochGuard`]s of the thread.
    depth: Cell<u64>,
    /// Whether the thread frees memory when it leaves.
    collects: Cell<bool>,
    /// Whether the record is to be given back when the thread leaves.
    abandoned: Cell<bool>,
}

// SAFETY: the cells are used by the owner alone. A new owner gets the record under the lock, after
// it has seen there that the last one has given it back.
unsafe impl Sync for Record {}

/// The record of a thread.
struct Own(&'static Record);

/// The owner does not read. Both are later than any epoch.
const IDLE: u64 = u64::MAX;
/// The record has no owner.
const UNOWNED: u64 = u64::MAX - 1;

#[cfg(not(loom))]
static DOMAIN: Domain = Domain::new();
#[cfg(loom)]
loom::lazy_static! {
    static ref DOMAIN: Domain = Domain::new();
}

thread_local! {
    static OWN: Own = Own(Record::take(false));
}

impl Domain {
    const_but_for_loom! {
        fn new() -> Self {
            Self {
                epoch: AtomicU64::new(0),
                waiting: AtomicUsize::new(0),
                shared: Mutex::new(Registry {
                    records: Vec::new(),
                    garbage: Vec::new(),
                }),
            }
        }
    }
}

impl Registry {
    /// Returns the oldest epoch in which a present reader may have begun.
    fn oldest(&self) -> u64 {
        // An exchange and not a load; see the documentation of the module.
        let entered = |record: &&Record| record.entered.fetch_or(0, Ordering::AcqRel);
        self.records.iter().map(entered).min().unwrap_or(IDLE)
    }
}

impl Record {
    /// Returns a record for the calling thread: a returned one, or a new one.
    #[expect(clippy::disallowed_methods, reason = "once for each thread")]
    fn take(abandoned: bool) -> &'static Self {
        let mut shared = DOMAIN.shared.lock();
        let unowned = |record: &&&Self| record.entered.load(Ordering::Acquire) == UNOWNED;
        let found = shared.records.iter().find(unowned).copied();
        let record = found.unwrap_or_else(|| {
            let record: &Self = Box::leak(Box::new(Self {
                entered: AtomicU64::new(UNOWNED),
                depth: Cell::new(0),
                collects: Cell::new(false),
                abandoned: Cell::new(false),
            }));
            shared.records.push(record);
            record
        });
        record.entered.store(IDLE, Ordering::Release);
        record.abandoned.set(abandoned);
        record
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if self.0.depth.get() > 0 {
            // Another thread-local value is still reading.
            self.0.abandoned.set(true);
        } else {
            self.0.entered.store(UNOWNED, Ordering::Release);
        }
    }
}
