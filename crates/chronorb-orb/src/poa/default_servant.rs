//! The servant of all objects that have none of their own.

use std::sync::atomic::{AtomicU64, Ordering};

use chronorb_rt::{Full, Key, Removed, SlotRef, Slots};

use super::key::{slot, slot_octets};
use crate::call::Servant;

/// A servant that can be replaced while requests use it, and is read without a lock.
pub(super) struct DefaultServant {
    /// The present one, and former ones that requests still use.
    slots: Slots<Servant>,
    /// The slot of the present one, packed; 0 for none.
    present: AtomicU64,
}

impl DefaultServant {
    pub(super) fn new() -> Self {
        Self {
            slots: Slots::new(MOST),
            present: AtomicU64::new(0),
        }
    }

    /// The present one, kept until the reference is dropped.
    pub(super) fn get(&self) -> Option<SlotRef<'_, Servant>> {
        loop {
            let present = self.present.load(Ordering::Acquire);
            if let Some(servant) = self.slots.get(unpacked(present)?) {
                return Some(servant);
            }
            // It was replaced in between.
            if self.present.load(Ordering::Acquire) == present {
                return None;
            }
        }
    }

    /// Replaces it. Who calls this holds a lock.
    pub(super) fn set(&self, servant: Option<Servant>) -> Result<Removed<Servant>, Full> {
        let next = match servant {
            Some(servant) => packed(self.slots.insert(servant)?),
            None => 0,
        };
        let before = self.present.swap(next, Ordering::AcqRel);
        Ok(match unpacked(before) {
            Some(key) => self.slots.remove(key),
            None => Removed::NotThere,
        })
    }
}

fn packed(key: Key) -> u64 {
    u64::from_be_bytes(slot_octets(key))
}

fn unpacked(packed: u64) -> Option<Key> {
    if packed == 0 {
        return None;
    }
    slot(&packed.to_be_bytes())
}

/// Former servants that are still in use, and the present one.
const MOST: u32 = 1024;
