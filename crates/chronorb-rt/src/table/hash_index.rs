//! A map from hashes to the indices of slots, the base of demultiplexing by name.

use core::fmt;

use crate::sync::primitives::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::primitives::{Mutex, const_but_for_loom};
use crate::table::epoch;
use crate::table::row::{OwnedRow, Row, SharedRow};

/// A map from hashes to indices; readers never wait.
///
/// The index does not store names: a reader compares the name it looks up with the one in the slot.
/// An entry that exists during the whole of a look-up is not missed, whatever is inserted and
/// removed meanwhile; one that is removed meanwhile may still be found.
///
/// Writers take a lock among themselves. Now and then one of them copies all entries into a table
/// of another size, in amortised constant time. The table has room for two to eight times the
/// entries, 8 octets for each, and for 8 at least; an empty index has none.
pub struct HashIndex {
    words: SharedRow<(), AtomicU64>,
    len: AtomicUsize,
    /// The number of words that are not empty. A writer holds this lock while it changes words.
    filled: Mutex<usize>,
}

impl HashIndex {
    const_but_for_loom! {
        /// An empty index. Does not allocate.
        #[must_use]
        pub fn new() -> Self {
            Self {
                words: SharedRow::new(),
                len: AtomicUsize::new(0),
                filled: Mutex::new(0),
            }
        }
    }

    /// Adds `index` under `hash`, besides existing entries.
    ///
    /// # Panics
    /// If `index` is `u32::MAX`, which no slot has.
    pub fn insert(&self, hash: u32, index: u32) {
        assert!(index != u32::MAX, "no slot has this index");
        // Declared first, so that memory is freed when the lock is not held any more.
        let reading = epoch::enter();
        reading.collect_on_leave();
        let mut filled = self.filled.lock();
        let len = self.len.load(Ordering::Relaxed) + 1;
        let words = self.words.read(&reading);
        if words.is_none_or(|words| 2 * (*filled + 1) > words.len()) {
            let larger = copy(words, len);
            put(larger.row(), word(hash, index));
            *filled = len;
            self.words.replace(Some(larger));
        } else if let Some(words) = words {
            *filled += usize::from(put(words, word(hash, index)));
        }
        self.len.store(len, Ordering::Release);
    }

    /// Removes `index` under `hash`, one such entry if there are several. Returns whether there
    /// was one.
    pub fn remove(&self, hash: u32, index: u32) -> bool {
        let reading = epoch::enter();
        reading.collect_on_leave();
        let mut filled = self.filled.lock();
        let Some(words) = self.words.read(&reading) else {
            return false;
        };
        let entry = word(hash, index);
        let Some(at) = probe(words, hash)
            .take_while(|at| load(words, *at) != EMPTY)
            .find(|at| index != u32::MAX && load(words, *at) == entry)
        else {
            return false;
        };
        let len = self.len.load(Ordering::Relaxed) - 1;
        self.len.store(len, Ordering::Release);
        *filled -= take_out(words, at);
        if len == 0 {
            *filled = 0;
            self.words.replace(None);
        } else if 8 * len < words.len() && capacity(len) < words.len() {
            *filled = len;
            self.words.replace(Some(copy(Some(words), len)));
        }
        true
    }

    /// Calls `accept` with each index under `hash`, until it returns a value. Wait-free: it reads
    /// at most all entries.
    pub fn find<R>(&self, hash: u32, mut accept: impl FnMut(u32) -> Option<R>) -> Option<R> {
        let reading = epoch::enter();
        let words = self.words.read(&reading)?;
        probe(words, hash)
            .map(|at| load(words, at))
            .take_while(|word| *word != EMPTY)
            .filter(|word| (*word >> 32) as u32 == hash)
            .find_map(|word| accept((word as u32).checked_sub(1)?))
    }

    /// Returns the number of entries. Wait-free.
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// Whether there is no entry. Wait-free.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Default for HashIndex {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for HashIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HashIndex")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

/// A table of 2ⁿ words, half of them empty at least.
type Words<'r> = Row<'r, (), AtomicU64>;

/// An empty word: each search ends here.
const EMPTY: u64 = 0;
/// The tombstone of a removed entry: a search continues beyond it. Its lower half is 0, unlike that
/// of any entry.
const REMOVED: u64 = 1 << 32;

/// The entry of `index` under `hash`.
fn word(hash: u32, index: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(index.wrapping_add(1))
}

fn load(words: Words<'_>, at: usize) -> u64 {
    words
        .get(at)
        .map_or(EMPTY, |word| word.load(Ordering::Acquire))
}

fn store(words: Words<'_>, at: usize, value: u64) {
    if let Some(word) = words.get(at) {
        word.store(value, Ordering::Release);
    }
}

/// Returns the words where an entry under `hash` may be, in order; an empty word ends the search.
fn probe(words: Words<'_>, hash: u32) -> impl Iterator<Item = usize> {
    // 2⁶⁴ divided by the golden ratio: Knuth's multiplicative hashing, which takes upper bits.
    let spread = u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let first = (spread >> (u64::BITS - words.len().ilog2())) as usize;
    let mask = words.len() - 1;
    (0..words.len()).map(move |step| (first + step) & mask)
}

/// Puts an entry into the first free word for it. Returns whether that was empty.
fn put(words: Words<'_>, entry: u64) -> bool {
    let hash = (entry >> 32) as u32;
    let free = probe(words, hash).find(|at| matches!(load(words, *at), EMPTY | REMOVED));
    let Some(at) = free else {
        unreachable!("half of the words are empty");
    };
    let was_empty = load(words, at) == EMPTY;
    store(words, at, entry);
    was_empty
}

/// Frees a word, and returns the number of words that became empty.
///
/// If the next word is empty, no search continues beyond this one. So this word becomes empty too,
/// and so do removed ones before it.
fn take_out(words: Words<'_>, at: usize) -> usize {
    let mask = words.len() - 1;
    if load(words, (at + 1) & mask) != EMPTY {
        store(words, at, REMOVED);
        return 0;
    }
    store(words, at, EMPTY);
    let before = (1..words.len()).map(|step| at.wrapping_sub(step) & mask);
    let waiting = before.take_while(|before| load(words, *before) == REMOVED);
    1 + waiting.map(|before| store(words, before, EMPTY)).count()
}

/// Returns a table with the same entries, and room for `len`.
fn copy(words: Option<Words<'_>>, len: usize) -> OwnedRow<(), AtomicU64> {
    let copy = OwnedRow::allocate((), capacity(len));
    if let Some(words) = words {
        (0..words.len())
            .map(|at| load(words, at))
            .filter(|word| *word as u32 != 0)
            .for_each(|entry| {
                put(copy.row(), entry);
            });
    }
    copy
}

/// Returns the number of words of a fresh table for `len` entries: between a sixth and a third of
/// them are filled, so that many entries come or go until it is replaced.
fn capacity(len: usize) -> usize {
    (3 * len).next_power_of_two().max(LEAST)
}

/// The model checker pays for each.
const LEAST: usize = if cfg!(loom) { 4 } else { 8 };
