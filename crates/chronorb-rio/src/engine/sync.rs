//! The atomics of the timers. The model checker puts its own in their place (`tests/loom.rs`).

pub(super) use core::sync::atomic::{AtomicU64, Ordering};
