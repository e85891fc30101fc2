//! An allocator that counts, for tests of paths that must not allocate.
#![allow(unsafe_code)]

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use core::hint::black_box;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::alloc::System;

use crate::mem::tally::{self, ThreadCounts};

/// The system's allocator, with counts of the allocations of each thread and of the memory of the
/// process.
///
/// A test installs it for its program:
///
/// ```
/// use chronorb_rt::{CountingAllocator, allocations, forbid};
///
/// #[global_allocator]
/// static ALLOCATOR: CountingAllocator = CountingAllocator;
///
/// let before = allocations();
/// let buffer = vec![0_u8; 1024];
/// assert_eq!(allocations() - before, 1);
/// forbid(|| assert_eq!(buffer.len(), 1024));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CountingAllocator;

/// Returns the number of allocations and reallocations by the calling thread; always zero unless
/// [`CountingAllocator`] is the program's global allocator.
#[must_use]
pub fn allocations() -> u64 {
    ThreadCounts::of_this_thread().allocations
}

/// Returns the number of octets that the calling thread has requested, without subtracting freed
/// ones; always zero unless [`CountingAllocator`] is the program's global allocator.
#[must_use]
pub fn allocated_octets() -> u64 {
    ThreadCounts::of_this_thread().allocated_octets
}

/// Returns the number of octets that the process has requested and not freed; always zero unless
/// [`CountingAllocator`] is the program's global allocator.
#[must_use]
pub fn live_octets() -> usize {
    LIVE_OCTETS.load(Ordering::Relaxed)
}

/// Runs `f`. Returns its result, and the most octets that the calling thread has requested and not
/// freed at any time meanwhile, less those before; always zero unless [`CountingAllocator`] is the
/// program's global allocator. A block is counted where it was requested and where it is freed,
/// which may be different threads.
pub fn peak_octets<R>(f: impl FnOnce() -> R) -> (R, u64) {
    let (before, outer) = HELD.get();
    HELD.set((before, before));
    let result = f();
    let (held, peak) = HELD.get();
    HELD.set((held, peak.max(outer)));
    (result, peak.abs_diff(before))
}

/// Runs `f`, which must not allocate on the calling thread.
///
/// # Panics
/// If `f` allocated, with the number of allocations; or if [`CountingAllocator`] is not the
/// program's global allocator, so that allocations are not counted.
#[track_caller]
pub fn forbid<R>(f: impl FnOnce() -> R) -> R {
    let before = allocations();
    drop(black_box(Box::new(0_u8)));
    assert!(
        allocations() > before,
        "CountingAllocator is not the global allocator of this program"
    );
    let before = allocations();
    let result = f();
    let count = allocations() - before;
    assert!(count == 0, "{count} allocation(s) where none is allowed");
    result
}

/// Makes all allocations of more than `octets` fail, in all threads, while the guard lives. It has
/// an effect only if [`CountingAllocator`] is the program's global allocator. There may be one
/// guard at a time.
#[must_use = "nothing fails when the guard is dropped"]
pub fn refuse_above(octets: usize) -> RefusedAllocations {
    GRANTED_OCTETS.store(octets, Ordering::Relaxed);
    RefusedAllocations { _private: () }
}

/// A guard during which large allocations fail; see [`refuse_above`].
#[derive(Debug)]
pub struct RefusedAllocations {
    _private: (),
}

impl Drop for RefusedAllocations {
    fn drop(&mut self) {
        GRANTED_OCTETS.store(usize::MAX, Ordering::Relaxed);
    }
}

thread_local! {
    /// The octets that the thread has requested and not freed, and the most of them so far.
    static HELD: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
}

/// Counts octets that the thread has requested, or freed if they are negative.
fn held(octets: i64) {
    let (held, peak) = HELD.get();
    let held = held.wrapping_add(octets);
    HELD.set((held, peak.max(held)));
}

static LIVE_OCTETS: AtomicUsize = AtomicUsize::new(0);
/// The greatest size that is granted.
static GRANTED_OCTETS: AtomicUsize = AtomicUsize::new(usize::MAX);

fn is_refused(octets: usize) -> bool {
    octets > GRANTED_OCTETS.load(Ordering::Relaxed)
}

/// Counts a block, unless it is null.
fn resized(block: *mut u8, before: usize, after: usize) -> *mut u8 {
    if !block.is_null() {
        LIVE_OCTETS.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
        held(after.cast_signed() as i64 - before.cast_signed() as i64);
    }
    block
}

// SAFETY: every method hands its arguments on to `System`, whose contract is the same. The counters
// are constant-initialised and have no destructor, so using them neither allocates nor fails.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size()) {
            return ptr::null_mut();
        }
        tally::allocated(layout.size());
        // SAFETY: the caller's contract.
        resized(unsafe { System.alloc(layout) }, 0, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size()) {
            return ptr::null_mut();
        }
        tally::allocated(layout.size());
        // SAFETY: the caller's contract.
        resized(unsafe { System.alloc_zeroed(layout) }, 0, layout.size())
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if is_refused(size) {
            return ptr::null_mut();
        }
        tally::allocated(size);
        // SAFETY: the caller's contract.
        let moved = unsafe { System.realloc(block, layout, size) };
        resized(moved, layout.size(), size)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE_OCTETS.fetch_sub(layout.size(), Ordering::Relaxed);
        held(-(layout.size().cast_signed() as i64));
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(block, layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "not the global allocator")]
    fn nothing_is_claimed_without_the_allocator() {
        forbid(|| ());
    }
}
