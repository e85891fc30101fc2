//! The atomics of what is shared: those of the core library, or the model checker's.

#[cfg(not(loom))]
pub(super) use core::sync::atomic::{AtomicU32, Ordering};
#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicU32, Ordering};
