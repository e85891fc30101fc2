//! The atomics of the lock-free parts. The model checker substitutes its own (`tests/loom.rs`).

use std::cell::Cell;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

pub(crate) use chronorb_rt::Deadline;

/// A number that threads wait on.
#[derive(Debug, Default)]
pub(crate) struct Gate(chronorb_rt::Gate);

impl Gate {
    pub(crate) fn get(&self) -> u32 {
        self.0.get()
    }

    pub(crate) fn advance(&self) {
        self.0.advance();
    }

    /// Waits while the number is `seen`, at most until the deadline.
    pub(crate) fn wait_while(&self, seen: u32, deadline: Deadline) {
        self.0.wait_while(seen, deadline);
    }
}

thread_local! {
    /// The pushes that the thread is in.
    static DEPTH: Cell<i32> = const { Cell::new(0) };
}

/// The number of pushes that the calling thread is in.
#[inline]
pub(crate) fn depth() -> i32 {
    DEPTH.get()
}

#[inline]
pub(crate) fn change_depth(by: i32) {
    DEPTH.set(DEPTH.get() + by);
}
