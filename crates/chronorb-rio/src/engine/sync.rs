//! The atomics of the timers. The model checker replaces them (`tests/loom.rs`).

pub(super) use core::sync::atomic::{AtomicU64, Ordering};
