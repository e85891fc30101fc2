//! A table of generation-checked slots, the base of active demultiplexing.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![allow(unsafe_code)]

use core::mem::ManuallyDrop;
use core::ops::{ControlFlow, Deref};
use core::ptr::NonNull;
use core::{array, fmt};

use crate::sync::primitives::Mutex;
use crate::sync::primitives::atomic::{AtomicU32, Ordering};
use crate::table::epoch::{self, EpochGuard};
use crate::table::row::{OwnedRow, Row, SharedRow};

use chunk::{CHUNKS, Counts, FIRST_CHUNK, Writers, bit, first_index, place};
use slot::{DYING, LIVE, MANY, NONE, READER, READERS, Slot, generation, live_state, vacant_state};

mod chunk;
mod slot;

/// A table whose readers never wait, and whose keys never find a newer value.
///
/// A key names a slot by index and generation. [`get`](Self::get) is wait-free: it takes no lock
/// and allocates nothing. Several look-ups are cheaper within one [`epoch::enter`]. Inserting and
/// removing take a lock among themselves.
///
/// A removed value is unreachable at once, but lives as long as it is in use. The last user,
/// through [`remove`](Self::remove) or [`SlotRef::release`], receives the value.
///
/// Memory for slots is allocated in chunks that double, each a cache line for a value of up to 48
/// octets. New values go to the lowest chunk with room. Memory of a chunk without values is given
/// back when the table has fewer values than half of what the chunk holds; all but the first, of 8
/// slots, when the table is empty.
///
/// Each slot serves 2³² − 1 values one after another, less those by which others of its chunk were
/// ahead when memory was given back, and is then retired.
pub struct Slots<T> {
    chunks: [SharedRow<Counts, Slot<T>>; CHUNKS],
    /// The highest generation that any slot of the chunk had when its memory was last given back.
    spent: [AtomicU32; CHUNKS],
    max: u32,
    writers: Mutex<Writers>,
}

/// The name of a value in [`Slots`], unique over the life of the table.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Key {
    /// The slot, from 0.
    pub index: u32,
    /// The number of the value in its slot, from 1. Zero names none.
    pub generation: u32,
}

/// The table has no free slot. A value that was removed but is still in use holds its slot.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the slot table is full")]
pub struct Full;

/// The outcome of removing a value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use = "the value may be in it"]
pub enum RemoveOutcome<T> {
    /// The value is not in the table, or not any more.
    NotThere,
    /// The value is removed but still in use. The last user receives it.
    InUse,
    /// The value is removed, and was not in use.
    Last(T),
}

impl<T> RemoveOutcome<T> {
    /// Whether the value was in the table until now.
    #[must_use]
    pub fn was_there(&self) -> bool {
        !matches!(self, Self::NotThere)
    }
}

impl<T> Slots<T> {
    /// An empty table for at most `max` values. Does not allocate.
    #[must_use]
    pub fn new(max: u32) -> Self {
        Self {
            chunks: array::from_fn(|_| SharedRow::new()),
            spent: array::from_fn(|_| AtomicU32::new(0)),
            max,
            writers: Mutex::new(Writers::default()),
        }
    }

    /// Puts `value` into a free slot and returns its key.
    ///
    /// # Errors
    /// [`Full`]; the value is dropped.
    pub fn insert(&self, value: T) -> Result<Key, Full> {
        self.insert_with(|_| value)
    }

    /// Puts the value that `make` returns for its key into a free slot, and returns the key. No
    /// reader finds the slot before.
    ///
    /// # Errors
    /// [`Full`]; `make` was not called.
    pub fn insert_with(&self, make: impl FnOnce(Key) -> T) -> Result<Key, Full> {
        let vacancy = self.take_vacancy()?;
        let key = vacancy.key;
        vacancy.fill(make(key));
        Ok(key)
    }

    /// The value of `key`, if it has not been removed. Wait-free.
    ///
    /// `None` also if 2²⁹ references to the value are in use.
    pub fn get(&self, key: Key) -> Option<SlotRef<'_, T>> {
        self.get_or_inherit(key, drop)
    }

    /// As [`get`](Self::get), for tables whose values must not just be dropped.
    ///
    /// If the value of `key` was replaced by another one during the call, then the call may have
    /// been the last use of that one; in this rare case `heir` gets it.
    #[inline]
    pub fn get_or_inherit(&self, key: Key, heir: impl FnOnce(T)) -> Option<SlotRef<'_, T>> {
        self.enter(key.index, Some(key.generation), LIVE, &epoch::enter(), heir)
    }

    /// As [`get_or_inherit`](Self::get_or_inherit), for callers that have entered the epoch.
    #[inline(always)]
    pub fn get_within(
        &self,
        key: Key,
        reading: &EpochGuard,
        heir: impl FnOnce(T),
    ) -> Option<SlotRef<'_, T>> {
        let slot = self.slot(key.index, reading)?;
        let live = live_state(key.generation);
        // The number of readers; a great number in any other state and with another generation.
        let seen = slot.state.load(Ordering::Acquire).wrapping_sub(live);
        if seen >= MANY {
            return None;
        }
        let before = slot.state.fetch_add(READER, Ordering::Acquire);
        if before.wrapping_sub(live) <= READERS {
            return Some(SlotRef {
                slots: self,
                slot: NonNull::from(slot),
            });
        }
        self.enter_changed(slot, before, Some(key.generation), heir)
    }

    /// The value that is now in the slot of this index, whatever its generation. Wait-free.
    pub fn get_at(&self, index: u32) -> Option<(Key, SlotRef<'_, T>)> {
        let reference = self.enter(index, None, LIVE, &epoch::enter(), drop)?;
        Some((reference.key(), reference))
    }

    /// Finds a value as [`get`](Self::get) does, even if it is removed and still in use: for
    /// callers that use it already.
    pub fn get_held(&self, key: Key) -> Option<SlotRef<'_, T>> {
        self.get_held_or_inherit(key, drop)
    }

    /// As [`get_held`](Self::get_held), with an heir as in
    /// [`get_or_inherit`](Self::get_or_inherit).
    pub fn get_held_or_inherit(&self, key: Key, heir: impl FnOnce(T)) -> Option<SlotRef<'_, T>> {
        let wanted = LIVE | DYING;
        self.enter(
            key.index,
            Some(key.generation),
            wanted,
            &epoch::enter(),
            heir,
        )
    }

    /// Removes the value of `key`: [`get`](Self::get) does not find it from now on.
    pub fn remove(&self, key: Key) -> RemoveOutcome<T> {
        // Declared first, so that memory is freed when the lock is not held any more.
        let reading = epoch::enter();
        let mut writers = self.writers.lock();
        let Some(slot) = self.slot(key.index, &reading) else {
            return RemoveOutcome::NotThere;
        };
        // Only the counter of readers can change while the lock is held.
        if slot.state.load(Ordering::Relaxed) & !READERS != live_state(key.generation) {
            return RemoveOutcome::NotThere;
        }
        writers.live -= 1;
        let state = slot.state.fetch_sub(LIVE - DYING, Ordering::AcqRel) - (LIVE - DYING);
        let Some(value) = slot.take_if_unused(state) else {
            return RemoveOutcome::InUse;
        };
        self.put_back(key.index, &mut writers, &reading);
        RemoveOutcome::Last(value)
    }

    /// Whether the table has ever given out this key. Wait-free.
    ///
    /// The result is always right for a key that was issued, even if memory was freed in between.
    /// After that, some generations of a slot count as issued, too, by which another slot of the
    /// chunk was ahead; no value ever has such a key.
    pub fn was_issued(&self, key: Key) -> bool {
        let reading = epoch::enter();
        let (chunk, _) = place(key.index);
        if key.index >= self.max || chunk >= CHUNKS {
            return false;
        }
        let slot = self.slot(key.index, &reading);
        // In this order: memory is given back after the generations were noted.
        let here = slot.map_or(0, |slot| generation(slot.state.load(Ordering::Acquire)));
        let newest = here.max(self.spent[chunk].load(Ordering::Acquire));
        key.generation != 0 && key.generation <= newest
    }

    /// Returns the number of references to the value of `key` that are in use now, removed or not.
    /// Wait-free.
    pub fn readers(&self, key: Key) -> u32 {
        let reading = epoch::enter();
        let Some(slot) = self.slot(key.index, &reading) else {
            return 0;
        };
        let state = slot.state.load(Ordering::Acquire);
        if state & (LIVE | DYING) != 0 && generation(state) == key.generation {
            (state & READERS) as u32
        } else {
            0
        }
    }

    /// Calls `visit` for the values in the table, by index, until it breaks, and returns that
    /// result. Takes no lock and does not allocate.
    ///
    /// Values that are in the table during the whole call are visited. Each is in use while it is
    /// visited. Freeing memory of all tables waits for the end of the call.
    pub fn for_each_live<R>(&self, mut visit: impl FnMut(Key, &T) -> ControlFlow<R>) -> Option<R> {
        let reading = epoch::enter();
        for chunk in 0..CHUNKS {
            let Some(row) = self.chunks[chunk].read(&reading) else {
                continue;
            };
            let first = first_index(chunk);
            for index in first..first + row.head().used.load(Ordering::Acquire) {
                if let Some((key, value)) = self.get_at(index)
                    && let ControlFlow::Break(result) = visit(key, &value)
                {
                    return Some(result);
                }
            }
        }
        None
    }

    /// Returns an index above those of all values in the table, for iteration by
    /// [`get_at`](Self::get_at). Wait-free.
    pub fn bound(&self) -> u32 {
        let reading = epoch::enter();
        let rows = (0..CHUNKS).rev();
        let mut used = rows.filter_map(|chunk| {
            let row = self.chunks[chunk].read(&reading)?;
            Some(first_index(chunk) + row.head().used.load(Ordering::Acquire))
        });
        used.next().unwrap_or(0)
    }

    /// Returns the number of values in the table, without those that were removed but are still in
    /// use.
    pub fn len(&self) -> usize {
        self.writers.lock().live as usize
    }

    /// Whether no value is in the table.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The keys of all values that are in the table now, by index. Allocates.
    pub fn keys(&self) -> Vec<Key> {
        let mut keys = Vec::new();
        self.for_each_live::<()>(|key, _| {
            keys.push(key);
            ControlFlow::Continue(())
        });
        keys
    }

    #[inline]
    fn slot<'r>(&'r self, index: u32, reading: &'r EpochGuard) -> Option<&'r Slot<T>> {
        // A chunk has no slot whose index is the maximum or above.
        let (chunk, offset) = place(index);
        self.chunks.get(chunk)?.read(reading)?.get(offset)
    }

    /// Counts a reader in, if the slot is in one of the states `wanted` and has the generation, or
    /// any. If the call was the last use of a value of another generation, `heir` gets that value.
    #[inline]
    fn enter(
        &self,
        index: u32,
        wanted_generation: Option<u32>,
        wanted: u64,
        reading: &EpochGuard,
        heir: impl FnOnce(T),
    ) -> Option<SlotRef<'_, T>> {
        let slot = self.slot(index, reading)?;
        let seen = slot.state.load(Ordering::Acquire);
        if seen & wanted == 0
            || wanted_generation.is_some_and(|wanted| wanted != generation(seen))
            || seen & READERS >= MANY
        {
            return None;
        }
        let before = slot.state.fetch_add(READER, Ordering::Acquire);
        self.conclude_enter(slot, before, wanted_generation, heir)
    }

    /// Concludes an entry for a slot that was changed after it was seen.
    #[cold]
    #[inline(never)]
    fn enter_changed(
        &self,
        slot: &Slot<T>,
        before: u64,
        wanted_generation: Option<u32>,
        heir: impl FnOnce(T),
    ) -> Option<SlotRef<'_, T>> {
        self.conclude_enter(slot, before, wanted_generation, heir)
    }

    /// Returns a reference for a reader that was counted in, in the state `before`.
    #[inline]
    fn conclude_enter(
        &self,
        slot: &Slot<T>,
        before: u64,
        wanted_generation: Option<u32>,
        heir: impl FnOnce(T),
    ) -> Option<SlotRef<'_, T>> {
        if before & (LIVE | DYING) == 0 {
            // The value was removed meanwhile. The counter is meaningless until the next value, and
            // starts from zero then.
            return None;
        }
        // A value that was removed since is in place as long as it is dying.
        let reference = SlotRef {
            slots: self,
            slot: NonNull::from(slot),
        };
        if wanted_generation.is_none_or(|wanted| wanted == generation(before)) {
            return Some(reference);
        }
        reference.release().map(heir);
        None
    }

    /// Counts a reader out. Returns the value if it is removed and the reader was the last.
    #[inline]
    fn leave(&self, slot: NonNull<Slot<T>>) -> Option<T> {
        // SAFETY: the reader holds the slot, until it is counted out.
        let state = unsafe { &slot.as_ref().state };
        let seen = state.load(Ordering::Relaxed);
        // While the value can be found, the thread that removes it takes care of it, and the slot
        // is not touched any more.
        if seen & DYING == 0
            && state
                .compare_exchange(seen, seen - READER, Ordering::Release, Ordering::Relaxed)
                .is_ok()
        {
            return None;
        }
        self.leave_disturbed(slot)
    }

    /// Leaves as [`leave`](Self::leave) does, under contention, or when the value is removed.
    #[cold]
    fn leave_disturbed(&self, slot: NonNull<Slot<T>>) -> Option<T> {
        // As soon as the reader is counted out, others may empty the slot and then the chunk.
        let reading = epoch::enter();
        // SAFETY: the reader holds the slot, and its own entry holds the memory from then on.
        let slot = unsafe { slot.as_ref() };
        let index = slot.index.load(Ordering::Relaxed);
        let state = slot.state.fetch_sub(READER, Ordering::AcqRel) - READER;
        let value = slot.take_if_unused(state)?;
        self.put_back(index, &mut self.writers.lock(), &reading);
        Some(value)
    }

    /// Takes a slot that has no value, and gives it a new generation.
    fn take_vacancy(&self) -> Result<Vacancy<'_, T>, Full> {
        let mut fresh: Option<(usize, OwnedRow<Counts, Slot<T>>)> = None;
        loop {
            let reading = epoch::enter();
            let mut writers = self.writers.lock();
            if writers.roomy == 0 {
                let chunk = writers.allocated.trailing_ones() as usize;
                match fresh.take_if(|(fresh, _)| *fresh == chunk) {
                    Some((_, row)) => {
                        self.chunks[chunk].replace(Some(row));
                        writers.allocated |= bit(chunk);
                        writers.roomy |= bit(chunk);
                    }
                    None => {
                        // Allocating much memory may take a while, if memory is locked.
                        drop(writers);
                        let slots = self.capacity(chunk);
                        if slots == 0 {
                            return Err(Full);
                        }
                        fresh = Some((chunk, OwnedRow::allocate(Counts::default(), slots)));
                        continue;
                    }
                }
            }
            return Ok(self.take_from(&mut writers, &reading));
        }
    }

    /// Takes a slot from the lowest chunk with room; there is one.
    fn take_from(&self, writers: &mut Writers, reading: &EpochGuard) -> Vacancy<'_, T> {
        let chunk = writers.roomy.trailing_zeros() as usize;
        let row = self.row(chunk, reading);
        let counts = row.head();
        let free = counts.free.load(Ordering::Relaxed);
        let used = counts.used.load(Ordering::Relaxed);
        // Those that were used before are cheaper than fresh ones.
        let offset = if free == NONE { used } else { free - 1 };
        let Some(slot) = row.get(offset as usize) else {
            unreachable!("a chunk with room has a vacant slot");
        };
        if free == NONE {
            counts.used.store(used + 1, Ordering::Release);
        } else {
            let next = slot.next_free.load(Ordering::Relaxed);
            counts.free.store(next, Ordering::Relaxed);
        }
        slot.index
            .store(first_index(chunk) + offset, Ordering::Relaxed);
        let state = slot.state.load(Ordering::Relaxed);
        let spent = self.spent[chunk].load(Ordering::Relaxed);
        let key = Key {
            index: first_index(chunk) + offset,
            generation: generation(state).max(spent) + 1,
        };
        slot.state
            .swap(vacant_state(key.generation), Ordering::AcqRel);
        let newest = counts.newest.load(Ordering::Relaxed).max(key.generation);
        counts.newest.store(newest, Ordering::Relaxed);
        let taken = counts.taken.load(Ordering::Relaxed) + 1;
        counts.taken.store(taken, Ordering::Relaxed);
        if taken as usize == row.len() {
            writers.roomy &= !bit(chunk);
        }
        writers.empty &= !bit(chunk);
        reading.collect_on_leave();
        writers.taken += 1;
        writers.live += 1;
        Vacancy {
            slots: self,
            slot: NonNull::from(slot),
            key,
        }
    }

    /// Makes a slot free whose value was taken out.
    fn put_back(&self, index: u32, writers: &mut Writers, reading: &EpochGuard) {
        let (chunk, offset) = place(index);
        let row = self.row(chunk, reading);
        let counts = row.head();
        let Some(slot) = row.get(offset) else {
            unreachable!("a slot that had a value is in its chunk");
        };
        if generation(slot.state.load(Ordering::Relaxed)) == u32::MAX {
            // It holds its place for ever.
            return;
        }
        let next = counts.free.load(Ordering::Relaxed);
        slot.next_free.store(next, Ordering::Relaxed);
        counts.free.store(offset as u32 + 1, Ordering::Relaxed);
        let taken = counts.taken.load(Ordering::Relaxed) - 1;
        counts.taken.store(taken, Ordering::Relaxed);
        writers.taken -= 1;
        writers.roomy |= bit(chunk);
        if taken == 0 && chunk != 0 {
            writers.empty |= bit(chunk);
        }
        reading.collect_on_leave();
        self.give_memory_back(writers, reading);
    }

    fn give_memory_back(&self, writers: &mut Writers, reading: &EpochGuard) {
        let mut empty = writers.empty;
        while empty != 0 {
            let chunk = empty.trailing_zeros() as usize;
            empty &= !bit(chunk);
            let row = self.row(chunk, reading);
            if row.len() as u64 <= 2 * u64::from(writers.taken) {
                continue;
            }
            let newest = row.head().newest.load(Ordering::Relaxed);
            self.spent[chunk].store(newest, Ordering::Release);
            self.chunks[chunk].replace(None);
            writers.allocated &= !bit(chunk);
            writers.roomy &= !bit(chunk);
            writers.empty &= !bit(chunk);
        }
    }

    /// A chunk that is allocated.
    fn row<'r>(&'r self, chunk: usize, reading: &'r EpochGuard) -> Row<'r, Counts, Slot<T>> {
        match self.chunks[chunk].read(reading) {
            Some(row) => row,
            None => unreachable!("chunks come and go under the lock"),
        }
    }

    /// Returns the number of slots of the chunk when it is allocated.
    fn capacity(&self, chunk: usize) -> usize {
        if chunk >= CHUNKS {
            return 0;
        }
        let left = u64::from(self.max).saturating_sub(FIRST_CHUNK as u64 * ((1 << chunk) - 1));
        left.min((FIRST_CHUNK as u64) << chunk) as usize
    }
}

impl<T> Drop for Slots<T> {
    fn drop(&mut self) {
        let reading = epoch::enter();
        for row in self.chunks.iter().filter_map(|chunk| chunk.read(&reading)) {
            let used = row.head().used.load(Ordering::Relaxed) as usize;
            for slot in (0..used).filter_map(|offset| row.get(offset)) {
                if slot.state.load(Ordering::Relaxed) & (LIVE | DYING) != 0 {
                    // SAFETY: the slot has its value, and the table is not shared any more.
                    slot.value
                        .with_mut(|value| unsafe { (*value).assume_init_drop() });
                }
            }
        }
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
    slot: NonNull<Slot<T>>,
}

// SAFETY: it is a reference to a `T`, and the thread that drops the last one receives the value.
unsafe impl<T: Send + Sync> Send for SlotRef<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for SlotRef<'_, T> {}

impl<T> SlotRef<'_, T> {
    /// Returns the key of the value.
    pub fn key(&self) -> Key {
        let slot = self.slot();
        Key {
            index: slot.index.load(Ordering::Relaxed),
            generation: generation(slot.state.load(Ordering::Relaxed)),
        }
    }

    /// Ends this use of the value. Returns the value if it was removed from the table and this was
    /// its last use.
    #[inline]
    pub fn release(self) -> Option<T> {
        let this = ManuallyDrop::new(self);
        this.slots.leave(this.slot)
    }

    #[inline]
    fn slot(&self) -> &Slot<T> {
        // SAFETY: the slot stays in its memory until the reader is counted out.
        unsafe { self.slot.as_ref() }
    }
}

impl<T> Deref for SlotRef<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        let value = &self.slot().value;
        // SAFETY: the slot had its value when this reader was counted in, and the value stays
        // there untouched until the reader is counted out.
        value.with(|value| unsafe { (*value).assume_init_ref() })
    }
}

impl<T> Drop for SlotRef<'_, T> {
    #[inline]
    fn drop(&mut self) {
        drop(self.slots.leave(self.slot));
    }
}

impl<T: fmt::Debug> fmt::Debug for SlotRef<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// A slot between two values, taken by a writer; it is put back if it is not filled.
struct Vacancy<'a, T> {
    slots: &'a Slots<T>,
    slot: NonNull<Slot<T>>,
    key: Key,
}

impl<T> Vacancy<'_, T> {
    fn fill(self, value: T) {
        let this = ManuallyDrop::new(self);
        // SAFETY: a chunk with a slot that was taken keeps its memory.
        let slot = unsafe { this.slot.as_ref() };
        // SAFETY: the slot was taken under the lock, so no other writer uses it; and it is neither
        // live nor dying, so no reader looks at the value.
        slot.value.with_mut(|cell| unsafe {
            (*cell).write(value);
        });
        slot.state
            .swap(live_state(this.key.generation), Ordering::AcqRel);
    }
}

impl<T> Drop for Vacancy<'_, T> {
    fn drop(&mut self) {
        let reading = epoch::enter();
        let mut writers = self.slots.writers.lock();
        writers.live -= 1;
        self.slots.put_back(self.key.index, &mut writers, &reading);
    }
}

#[cfg(all(test, not(loom)))]
#[allow(clippy::disallowed_methods, reason = "tests may allocate")]
mod tests;
