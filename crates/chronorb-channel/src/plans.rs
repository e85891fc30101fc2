//! The present plan of a channel: a value that is replaced as a whole.

use chronorb_rt::{Key, SlotRef, Slots};

use super::sync::{AtomicU64, Ordering};

/// The present plan. Suppliers read it without waiting, and the last reference to a replaced plan
/// drops it.
pub(crate) struct Plans<P> {
    plans: Slots<P>,
    current: AtomicU64,
}

impl<P> Plans<P> {
    /// No plan yet, and at most this number at a time: the present one, and those that suppliers
    /// still use.
    pub(crate) fn new(most: u32) -> Self {
        Self {
            plans: Slots::new(most),
            current: AtomicU64::new(0),
        }
    }

    /// Returns the present plan; `None` before the first one.
    #[inline]
    pub(crate) fn read(&self) -> Option<SlotRef<'_, P>> {
        loop {
            let current = self.current.load(Ordering::Acquire);
            if current == 0 {
                return None;
            }
            // A plan that was replaced meanwhile is gone, and the next one is there.
            if let Some(plan) = self.plans.get(key_of(current)) {
                return Some(plan);
            }
        }
    }

    /// Replaces the plan. The caller is alone to do so. Returns whether there was room.
    pub(crate) fn replace(&self, plan: P) -> bool {
        let Ok(key) = self.plans.insert(plan) else {
            return false;
        };
        let word = (u64::from(key.index) << 32) | u64::from(key.generation);
        let before = self.current.swap(word, Ordering::AcqRel);
        if before != 0 {
            drop(self.plans.remove(key_of(before)));
        }
        true
    }
}

/// Generations begin at 1, so no key is 0.
fn key_of(word: u64) -> Key {
    Key {
        index: (word >> 32) as u32,
        generation: word as u32,
    }
}
