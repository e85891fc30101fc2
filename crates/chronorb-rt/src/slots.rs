//! A table of generation-checked slots, the base of active demultiplexing.
#![allow(unsafe_code)]

use core::fmt;
use core::ops::Deref;
use std::sync::OnceLock;

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, UnsafeCell};

/// A table whose readers never wait, and whose keys never find a newer value.
///
/// A key names a slot by index and generation. [`get`](Self::get) is wait-free: one atomic
/// addition, one comparison, and one subtraction when the reference is dropped. It takes no lock
/// and allocates nothing. Inserting and removing take a lock among themselves.
///
/// A removed value is unreachable at once, but is dropped only when nobody uses it any more: by
/// [`remove`](Self::remove), or with the last [`SlotRef`] to it, on that thread.
///
/// Each slot serves 2³² − 1 values one after another and is then retired.
pub struct Slots<T> {
    chunks: [OnceLock<Box<[Slot<T>]>>; CHUNKS],
    max: u32,
    writers: Mutex<Writers>,
}

/// The name of a value in [`Slots`], unique over the life of the table.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Key {
    /// The slot, from 0.
    pub index: u32,
    /// Which value of the slot, from 1. Zero names none.
    pub generation: u32,
}

/// The table has no free slot. A value that was removed but is still in use holds its slot.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the slot table is full")]
pub struct Full;

impl<T> Slots<T> {
    /// An empty table for at most `max` values. Memory for slots is allocated as they are first
    /// used, in chunks that double, and stays where it is.
    #[must_use]
    pub fn new(max: u32) -> Self {
        Self {
            chunks: [const { OnceLock::new() }; CHUNKS],
            max,
            writers: Mutex::new(Writers {
                free: NO_SLOT,
                used: 0,
                live: 0,
            }),
        }
    }

    /// Puts `value` into a free slot and returns its key.
    ///
    /// # Errors
    /// [`Full`]; the value is dropped.
    pub fn insert(&self, value: T) -> Result<Key, Full> {
        let (index, slot) = self.take_free().ok_or(Full)?;
        // SAFETY: the slot was taken off the free list, so no other writer uses it; and it is not
        // live, so no reader looks at the value.
        slot.value
            .with_mut(|cell| unsafe { (*cell).value = Some(value) });
        let before = slot.state.fetch_add(GENERATION + LIVE, Ordering::Release);
        let generation = generation(before) + 1;
        Ok(Key { index, generation })
    }

    /// The value of `key`, if it has not been removed. Wait-free.
    ///
    /// `None` also if 2²⁹ references to the value are in use.
    pub fn get(&self, key: Key) -> Option<SlotRef<'_, T>> {
        let slot = self.slot(key.index)?;
        let before = slot.state.fetch_add(READER, Ordering::Acquire);
        // From here on the reader is counted; dropping the reference takes it out again.
        let reference = SlotRef {
            slots: self,
            slot,
            index: key.index,
        };
        let found = before & !READERS == live_state(key.generation) && before & READERS < MANY;
        found.then_some(reference)
    }

    /// Removes the value of `key`: [`get`](Self::get) does not find it from now on. The value is
    /// dropped now, or with the last reference to it. Returns whether it was there.
    pub fn remove(&self, key: Key) -> bool {
        let Some(slot) = self.slot(key.index) else {
            return false;
        };
        let mut writers = self.writers.lock();
        // Only the counter of readers can change while the lock is held.
        if slot.state.load(Ordering::Relaxed) & !READERS != live_state(key.generation) {
            return false;
        }
        writers.live -= 1;
        let state = slot.state.fetch_sub(LIVE - DYING, Ordering::AcqRel) - (LIVE - DYING);
        drop(writers);
        self.reclaim_if_unused(key.index, slot, state);
        true
    }

    /// How many values are in the table, without those that were removed but are still in use.
    pub fn len(&self) -> usize {
        self.writers.lock().live as usize
    }

    /// Whether no value is in the table.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The keys of all values that are in the table now, by index. Allocates.
    pub fn keys(&self) -> Vec<Key> {
        let writers = self.writers.lock();
        (0..writers.used)
            .filter_map(|index| {
                let state = self.slot(index)?.state.load(Ordering::Relaxed);
                let generation = generation(state);
                (state & LIVE != 0).then_some(Key { index, generation })
            })
            .collect()
    }

    fn slot(&self, index: u32) -> Option<&Slot<T>> {
        if index >= self.max {
            return None;
        }
        let (chunk, offset) = place(index);
        self.chunks[chunk].get()?.get(offset)
    }

    fn take_free(&self) -> Option<(u32, &Slot<T>)> {
        let mut writers = self.writers.lock();
        if writers.free != NO_SLOT {
            let index = writers.free;
            let slot = self.slot(index)?;
            // SAFETY: the slot is on the free list, whose lock is held.
            writers.free = slot.value.with(|cell| unsafe { (*cell).next_free });
            writers.live += 1;
            return Some((index, slot));
        }
        if writers.used == self.max {
            return None;
        }
        let index = writers.used;
        let (chunk, offset) = place(index);
        let slots = self.chunks[chunk]
            .get_or_init(|| (0..FIRST_CHUNK << chunk).map(|_| Slot::vacant()).collect());
        writers.used += 1;
        writers.live += 1;
        slots.get(offset).map(|slot| (index, slot))
    }

    /// Takes the value out of a slot that somebody has just seen in `state`, if it is removed and
    /// unused, and makes the slot free.
    ///
    /// Everyone who brings a slot into such a state comes here. A reader with an outdated key may
    /// bring it there again, or hold it up for a moment and then comes here in turn; the exchange
    /// of the state lets exactly one of them through.
    fn reclaim_if_unused(&self, index: u32, slot: &Slot<T>, state: u64) {
        if state & (DYING | READERS) != DYING {
            return;
        }
        let vacant = state - DYING;
        if slot
            .state
            .compare_exchange(state, vacant, Ordering::AcqRel, Ordering::Relaxed)
            .is_err()
        {
            return;
        }
        // SAFETY: the slot is neither live nor dying nor on the free list, so only this thread,
        // which made it so, uses the cell. Every reader has been counted out before.
        let value = slot.value.with_mut(|cell| unsafe { (*cell).value.take() });
        if generation(vacant) < u32::MAX {
            let mut writers = self.writers.lock();
            // SAFETY: as above.
            slot.value
                .with_mut(|cell| unsafe { (*cell).next_free = writers.free });
            writers.free = index;
        }
        drop(value);
    }
}

impl<T> fmt::Debug for Slots<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots")
            .field("len", &self.len())
            .field("max", &self.max)
            .finish_non_exhaustive()
    }
}

/// A value of [`Slots`] in use. As long as the reference is alive, so is the value.
#[must_use = "the value may be dropped with the reference"]
pub struct SlotRef<'a, T> {
    slots: &'a Slots<T>,
    slot: &'a Slot<T>,
    index: u32,
}

impl<T> Deref for SlotRef<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the slot was live when this reader was counted in, so its value is in place, and
        // stays there untouched until the reader is counted out.
        let value = self.slot.value.with(|cell| unsafe { &(*cell).value });
        match value {
            Some(value) => value,
            None => unreachable!("a slot in use has its value"),
        }
    }
}

impl<T> Drop for SlotRef<'_, T> {
    fn drop(&mut self) {
        let state = self.slot.state.fetch_sub(READER, Ordering::AcqRel) - READER;
        self.slots.reclaim_if_unused(self.index, self.slot, state);
    }
}

impl<T: fmt::Debug> fmt::Debug for SlotRef<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// One slot, on its own cache line.
#[repr(align(64))]
struct Slot<T> {
    /// The generation (upper 32 bits), [`LIVE`] or [`DYING`] or neither, and the readers.
    state: AtomicU64,
    value: UnsafeCell<Cell<T>>,
}

struct Cell<T> {
    value: Option<T>,
    /// The next free slot; only while this one is free.
    next_free: u32,
}

// SAFETY: readers on several threads share `&T`, and any of them may be the one who drops it. Who
// may touch the cell is decided by the state and the free list, as said at each access.
unsafe impl<T: Send + Sync> Sync for Slot<T> {}

impl<T> Slot<T> {
    fn vacant() -> Self {
        Self {
            state: AtomicU64::new(0),
            value: UnsafeCell::new(Cell {
                value: None,
                next_free: NO_SLOT,
            }),
        }
    }
}

/// What the lock among writers protects, besides the cells of free slots.
struct Writers {
    /// The first free slot that was used before.
    free: u32,
    /// How many slots have ever been used; those after them are fresh.
    used: u32,
    live: u32,
}

/// One reader in the state of a slot.
const READER: u64 = 1;
/// The counter of readers.
const READERS: u64 = DYING - 1;
/// So many readers are only there when references are leaked; the counter must not overflow.
const MANY: u64 = DYING >> 1;
/// The value is removed, and not yet taken out of the slot.
const DYING: u64 = 1 << 30;
/// The value can be found.
const LIVE: u64 = 1 << 31;
/// One generation in the state of a slot.
const GENERATION: u64 = 1 << 32;

/// The end of the free list. No slot has this index, since it is below `max`.
const NO_SLOT: u32 = u32::MAX;

/// Slots of the first chunk; each further chunk is twice as large. The model checker pays for each.
const FIRST_CHUNK: usize = if cfg!(loom) { 2 } else { 32 };
/// Enough chunks for every index of 32 bits.
const CHUNKS: usize = 33 - FIRST_CHUNK.ilog2() as usize;

fn generation(state: u64) -> u32 {
    (state >> 32) as u32
}

/// The state, without readers, of a slot with the value of `generation`.
fn live_state(generation: u32) -> u64 {
    u64::from(generation) << 32 | LIVE
}

/// The chunk of a slot, and its place there.
fn place(index: u32) -> (usize, usize) {
    let position = u64::from(index) + FIRST_CHUNK as u64;
    let chunk = (position.ilog2() - FIRST_CHUNK.ilog2()) as usize;
    (chunk, (position - ((FIRST_CHUNK as u64) << chunk)) as usize)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_value_is_found_by_its_key_until_it_is_removed() {
        let table = Slots::new(10);
        let key = table.insert("quoter").unwrap();
        assert_eq!(table.get(key).as_deref(), Some(&"quoter"));
        assert!(table.remove(key));
        assert!(table.get(key).is_none());
        assert!(!table.remove(key));
        assert!(table.is_empty());
    }

    #[test]
    fn a_reused_slot_is_not_found_by_the_old_key() {
        let table = Slots::new(1);
        let old = table.insert(1).unwrap();
        table.remove(old);
        let new = table.insert(2).unwrap();
        assert_eq!(old.index, new.index);
        assert!(table.get(old).is_none());
        assert!(!table.remove(old));
        assert_eq!(table.get(new).as_deref(), Some(&2));
    }

    #[test]
    fn keys_from_outside_are_harmless() {
        let table = Slots::new(100);
        table.insert(()).unwrap();
        for index in [0, 1, 31, 32, 99, 100, u32::MAX] {
            for generation in [0, 2, u32::MAX] {
                let key = Key { index, generation };
                assert!(table.get(key).is_none(), "{key:?}");
                assert!(!table.remove(key), "{key:?}");
            }
        }
    }

    #[test]
    fn a_removed_value_lives_until_its_last_reference() {
        let table = Slots::new(1);
        let value = Arc::new(());
        let key = table.insert(Arc::clone(&value)).unwrap();
        let (first, second) = (table.get(key).unwrap(), table.get(key).unwrap());
        assert!(table.remove(key));
        assert_eq!(table.len(), 0);
        assert_eq!(table.insert(Arc::new(())), Err(Full));
        drop(first);
        assert_eq!(Arc::strong_count(&value), 2);
        drop(second);
        assert_eq!(Arc::strong_count(&value), 1);
        assert!(table.insert(Arc::new(())).is_ok());
    }

    #[test]
    fn the_table_drops_what_is_left_in_it() {
        let table = Slots::new(2);
        let value = Arc::new(());
        table.insert(Arc::clone(&value)).unwrap();
        drop(table);
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn a_table_of_no_slots_is_full() {
        assert_eq!(Slots::new(0).insert(()), Err(Full));
    }

    #[test]
    fn a_slot_whose_generations_are_used_up_is_retired() {
        let table = Slots::new(1);
        let first = table.insert(1).unwrap();
        table.remove(first);
        let slot = table.slot(first.index).unwrap();
        slot.state
            .store(u64::from(u32::MAX - 1) << 32, Ordering::Relaxed);
        let last = table.insert(2).unwrap();
        assert_eq!(last.generation, u32::MAX);
        assert!(table.remove(last));
        assert!(table.get(last).is_none());
        assert_eq!(table.insert(3), Err(Full));
    }

    #[test]
    fn every_index_has_its_own_place() {
        let mut expected = (0, 0);
        for index in 0..10_000 {
            assert_eq!(place(index), expected);
            expected.1 += 1;
            if expected.1 == FIRST_CHUNK << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
        assert_eq!(place(u32::MAX).0, CHUNKS - 1);
    }
}
