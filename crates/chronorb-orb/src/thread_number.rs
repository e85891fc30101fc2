//! Numbers of threads.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number of the calling thread that no other has, nor will have.
pub(crate) fn this_thread() -> u64 {
    static NUMBERS: AtomicU64 = AtomicU64::new(NOBODY + 1);
    thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(NOBODY) };
    }
    let mut number = NUMBER.get();
    if number == NOBODY {
        number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        NUMBER.set(number);
    }
    number
}

/// The number of no thread.
pub(crate) const NOBODY: u64 = 0;
