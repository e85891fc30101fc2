//! The atomics of what is shared. The model checker puts its own in their place (`tests/loom.rs`).

pub(super) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
