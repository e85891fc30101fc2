//! The present plan of a channel: an immutable routing table that is replaced as a whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chronorb_events::Routes;
use chronorb_rt::{Key, SlotRef, Slots};

use crate::member::Member;

/// The routes to the subscriptions, in order of delivery.
pub(crate) struct Plan<B> {
    pub(crate) routes: Routes,
    pub(crate) members: Box<[Arc<Member<B>>]>,
}

/// The present plan. Suppliers read it without waiting, and the last reference to a replaced plan
/// drops it.
pub(crate) struct Plans<B> {
    plans: Slots<Plan<B>>,
    current: AtomicU64,
}

impl<B> Plans<B> {
    /// An empty plan.
    pub(crate) fn new() -> Self {
        Self {
            plans: Slots::new(MAX_PLANS),
            current: AtomicU64::new(0),
        }
    }

    /// Returns the present plan; `None` before the first one.
    #[inline]
    pub(crate) fn read(&self) -> Option<SlotRef<'_, Plan<B>>> {
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

    /// Replaces the plan. The caller is alone to do so. Returns whether there was room: plans stay
    /// while a supplier uses them.
    pub(crate) fn replace(&self, plan: Plan<B>) -> bool {
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

/// The present plan, and those that suppliers still use: at most one for each thread that pushes.
const MAX_PLANS: u32 = 1 << 16;
