//! The atomics of shared state. The model checker substitutes its own (`tests/loom.rs`).

pub(super) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
