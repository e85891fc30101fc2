//! A value that an application sets while requests use it.

use std::sync::atomic::{AtomicU64, Ordering};

use chronorb_rt::{Full, Key, RemoveOutcome, SlotRef, Slots};

/// A value that can be replaced while requests use it, and is read without a lock.
pub(super) struct Replaceable<T> {
    /// The present one, and former ones that requests still use.
    slots: Slots<T>,
    /// The slot of the present one, packed; 0 for none.
    present: AtomicU64,
}

impl<T> Replaceable<T> {
    pub(super) fn new() -> Self {
        Self {
            slots: Slots::new(MOST),
            present: AtomicU64::new(0),
        }
    }

    /// The present one, kept until the reference is dropped.
    pub(super) fn get(&self) -> Option<SlotRef<'_, T>> {
        loop {
            let present = self.present.load(Ordering::Acquire);
            if let Some(value) = self.slots.get(unpacked(present)?) {
                return Some(value);
            }
            // It was replaced in between.
            if self.present.load(Ordering::Acquire) == present {
                return None;
            }
        }
    }

    /// Replaces it. The caller holds a lock.
    pub(super) fn set(&self, value: Option<T>) -> Result<RemoveOutcome<T>, Full> {
        let next = match value {
            Some(value) => packed(self.slots.insert(value)?),
            None => 0,
        };
        let before = self.present.swap(next, Ordering::AcqRel);
        Ok(match unpacked(before) {
            Some(key) => self.slots.remove(key),
            None => RemoveOutcome::NotThere,
        })
    }
}

fn packed(key: Key) -> u64 {
    (u64::from(key.index) << 32) | u64::from(key.generation)
}

fn unpacked(packed: u64) -> Option<Key> {
    (packed != 0).then_some(Key {
        index: (packed >> 32) as u32,
        generation: packed as u32,
    })
}

/// Former values that are still in use, and the present one.
const MOST: u32 = 1024;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_former_value_lives_as_long_as_it_is_used() {
        let value = Replaceable::new();
        assert!(value.get().is_none());
        let first = Arc::new(1);
        assert!(matches!(
            value.set(Some(first.clone())),
            Ok(RemoveOutcome::NotThere)
        ));
        let used = value.get().expect("it was set");
        assert!(matches!(
            value.set(Some(Arc::new(2))),
            Ok(RemoveOutcome::InUse)
        ));
        assert_eq!(value.get().as_deref(), Some(&Arc::new(2)));
        assert_eq!(Arc::strong_count(&first), 2);
        drop(used);
        assert_eq!(Arc::strong_count(&first), 1);
        assert!(matches!(value.set(None), Ok(RemoveOutcome::Last(_))));
        assert!(value.get().is_none());
    }
}
