//! One slot, and the states that it goes through.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![allow(unsafe_code)]

use core::mem::MaybeUninit;

use crate::sync::primitives::UnsafeCell;
use crate::sync::primitives::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::table::row::Zeroable;

/// One slot, on its own cache line. Vacant, and never used, if it is all zero.
#[repr(align(64))]
pub(super) struct Slot<T> {
    /// The generation (upper 32 bits), [`LIVE`] or [`DYING`] or neither, and the readers.
    pub(super) state: AtomicU64,
    pub(super) value: UnsafeCell<MaybeUninit<T>>,
    /// The next free slot of the chunk, counted from 1, or [`NONE`]. Belongs to the lock.
    pub(super) next_free: AtomicU32,
    /// The index in the table, from the first use on.
    pub(super) index: AtomicU32,
}

// SAFETY: readers on several threads share `&T`, and any of them may be the one that receives the
// value. The state and the lock decide which thread may access the cell, as noted at each access.
unsafe impl<T: Send + Sync> Sync for Slot<T> {}

// SAFETY: zero is a number, and anything is an uninitialised value. Values are dropped when they
// leave the slot. (The model checker's types own nothing either.)
unsafe impl<T> Zeroable for Slot<T> {
    #[cfg(loom)]
    fn zeroed() -> Self {
        Self {
            state: AtomicU64::new(0),
            value: UnsafeCell::new(MaybeUninit::uninit()),
            next_free: AtomicU32::new(NONE),
            index: AtomicU32::new(0),
        }
    }

    #[cfg(loom)]
    fn end(&mut self) {
        self.state.with_mut(|_| ());
        self.value.with_mut(|_| ());
    }
}

impl<T> Slot<T> {
    /// Takes the value out of a slot that was just seen in `state`, if it is removed and unused.
    /// The slot must then be put back.
    ///
    /// Every thread that brings a slot into such a state calls this. A late reader may bring it
    /// there again, or hold it up for a moment and then call this in turn; the exchange of the
    /// state lets exactly one of them through.
    pub(super) fn take_if_unused(&self, state: u64) -> Option<T> {
        if state & (DYING | READERS) != DYING {
            return None;
        }
        self.state
            .compare_exchange(state, state - DYING, Ordering::AcqRel, Ordering::Relaxed)
            .ok()?;
        // SAFETY: the slot had a value and is neither live nor dying nor free now, so only this
        // thread, which made it so, uses the cell. Every reader has been counted out before.
        let value = self
            .value
            .with_mut(|cell| unsafe { (*cell).assume_init_read() });
        Some(value)
    }
}

/// One reader in the state of a slot.
pub(super) const READER: u64 = 1;
/// The counter of readers.
pub(super) const READERS: u64 = DYING - 1;
/// The counter is only this high if references are leaked; it must not overflow.
pub(super) const MANY: u64 = DYING >> 1;
/// The value is removed, and not yet taken out of the slot.
pub(super) const DYING: u64 = 1 << 30;
/// The value can be found.
pub(super) const LIVE: u64 = 1 << 31;

/// The end of a free list, whose slots are counted from 1.
pub(super) const NONE: u32 = 0;

pub(super) fn generation(state: u64) -> u32 {
    (state >> 32) as u32
}

/// The state, without readers, of a slot with the value of `generation`.
pub(super) fn live_state(generation: u32) -> u64 {
    vacant_state(generation) | LIVE
}

/// The state of a slot that had the value of `generation`, or will have it next.
pub(super) fn vacant_state(generation: u32) -> u64 {
    u64::from(generation) << 32
}
