//! The atomics of the shared state. The model checker replaces them (`tests/loom.rs`).

pub(super) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
