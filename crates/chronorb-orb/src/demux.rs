//! Demultiplexing tables, by which a request finds its POA and its object by name or by slot.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::hash::{BuildHasher, RandomState};

use chronorb_rt::epoch::EpochGuard;
use chronorb_rt::{Full, HashIndex, Key, RemoveOutcome, SlotRef, Slots};

/// The strategy by which a request finds its POA or object.
///
/// The literature calls these request demultiplexing strategies.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Demultiplexing {
    /// Uses index and generation in the object key, and a hash of the name where the key cannot
    /// contain them: the time does not depend on the number of entries.
    #[default]
    Active,
    /// Always uses a hash of the name.
    DynamicHash,
    /// Compares one name after another: for comparison only.
    LinearSearch,
}

/// An entry of a [`Directory`], with a name that requests may look up.
pub(crate) trait DirectoryEntry {
    /// The octets of the name.
    fn name(&self) -> &[u8];

    /// Whether the entry has this name.
    fn is_named(&self, name: &[u8]) -> bool {
        self.name() == name
    }
}

/// A table of entries that requests find by slot or by name, without a lock and without waiting for
/// a thread that changes it. A thread that changes it holds a lock of the table's owner.
pub(crate) struct Directory<T> {
    slots: Slots<T>,
    names: HashIndex,
    hasher: NameHasher,
    strategy: Demultiplexing,
}

impl<T: DirectoryEntry> Directory<T> {
    pub(crate) fn new(max: u32, strategy: Demultiplexing) -> Self {
        Self {
            slots: Slots::new(max),
            names: HashIndex::new(),
            hasher: NameHasher::new(),
            strategy,
        }
    }

    pub(crate) fn strategy(&self) -> Demultiplexing {
        self.strategy
    }

    /// The entry in a slot, unless it was removed. Wait-free.
    #[inline(always)]
    pub(crate) fn at(
        &self,
        key: Key,
        reading: &EpochGuard,
        orphans: impl Fn(T),
    ) -> Option<SlotRef<'_, T>> {
        self.slots.get_within(key, reading, orphans)
    }

    /// The present entry in the slot of this index. Wait-free.
    pub(crate) fn at_index(&self, index: u32) -> Option<SlotRef<'_, T>> {
        self.slots.get_at(index).map(|(_, entry)| entry)
    }

    /// The entry in a slot that the caller already uses, perhaps by another reference; also after
    /// its removal.
    pub(crate) fn held_at(&self, key: Key, orphans: impl Fn(T)) -> Option<SlotRef<'_, T>> {
        self.slots.get_held_or_inherit(key, orphans)
    }

    /// The entry of a name. The slot is a hint, and makes the search faster if it is right.
    /// Wait-free.
    ///
    /// The search may briefly use a wrong entry and become its last user after the entry was
    /// removed. It then gives the entry to `orphans`, because the last user has to destroy it.
    #[inline(always)]
    pub(crate) fn find(
        &self,
        slot: Option<Key>,
        name: &[u8],
        reading: &EpochGuard,
        orphans: impl Fn(T) + Copy,
    ) -> Option<SlotRef<'_, T>> {
        if self.strategy == Demultiplexing::Active
            && let Some(key) = slot
            && let Some(guessed) = self.at(key, reading, orphans)
        {
            if guessed.is_named(name) {
                return Some(guessed);
            }
            guessed.release().map(orphans);
        }
        self.search(name, orphans)
    }

    /// Whether an entry was inserted with this name. The caller holds the owner's lock.
    pub(crate) fn has_name(&self, name: &[u8]) -> bool {
        self.find_named(name, drop).is_some()
    }

    /// Inserts an entry, which `make` creates from its key. Unless it is `named`, it is found only
    /// by its slot, and by strategies that do not use slots.
    pub(crate) fn insert(&self, named: bool, make: impl FnOnce(Key) -> T) -> Result<Key, Full> {
        let key = self.slots.insert_with(make)?;
        if (named || self.strategy == Demultiplexing::DynamicHash)
            && let Some(entry) = self.slots.get(key)
        {
            self.names.insert(self.hasher.hash(entry.name()), key.index);
        }
        Ok(key)
    }

    /// Removes an entry, which can no longer be found.
    pub(crate) fn remove(&self, key: Key) -> RemoveOutcome<T> {
        if let Some(entry) = self.slots.get(key) {
            // The name is removed first, while the entry still has the slot.
            self.names.remove(self.hasher.hash(entry.name()), key.index);
        }
        self.slots.remove(key)
    }

    /// An index greater than those of all entries.
    pub(crate) fn bound(&self) -> u32 {
        self.slots.bound()
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether this table has ever assigned the key.
    pub(crate) fn was_issued(&self, key: Key) -> bool {
        self.slots.was_issued(key)
    }

    /// The number of references to an entry that are in use.
    pub(crate) fn users(&self, key: Key) -> u32 {
        self.slots.readers(key)
    }

    /// The entry of a name whose slot is not known.
    #[inline(never)]
    fn search(&self, name: &[u8], orphans: impl Fn(T) + Copy) -> Option<SlotRef<'_, T>> {
        match self.strategy {
            Demultiplexing::Active | Demultiplexing::DynamicHash => self.find_named(name, orphans),
            Demultiplexing::LinearSearch => {
                (0..self.slots.bound()).find_map(|index| self.named_at(index, name, orphans))
            }
        }
    }

    fn find_named(&self, name: &[u8], orphans: impl Fn(T) + Copy) -> Option<SlotRef<'_, T>> {
        if self.names.is_empty() {
            return None;
        }
        self.names.find(self.hasher.hash(name), |index| {
            self.named_at(index, name, orphans)
        })
    }

    fn named_at(&self, index: u32, name: &[u8], orphans: impl Fn(T)) -> Option<SlotRef<'_, T>> {
        let entry = self.at_index(index)?;
        if entry.is_named(name) {
            return Some(entry);
        }
        entry.release().map(orphans);
        None
    }
}

/// A hash function for the names of a table, with a random key: a peer that chooses names cannot
/// choose colliding ones.
struct NameHasher {
    start: u64,
    factor: u64,
    last: u64,
}

impl NameHasher {
    fn new() -> Self {
        let random = RandomState::new();
        Self {
            start: random.hash_one(0),
            factor: random.hash_one(1) | 1,
            last: random.hash_one(2) | 1,
        }
    }

    /// Multiplies word by word, and combines both halves of each product (folded multiplication).
    #[inline]
    fn hash(&self, name: &[u8]) -> u32 {
        let mut state = self.start ^ name.len() as u64;
        let mut rest = name;
        while let Some((word, after)) = rest.split_first_chunk() {
            state = fold(state ^ u64::from_le_bytes(*word), self.factor);
            rest = after;
        }
        if !rest.is_empty() {
            let word = match name.last_chunk() {
                // The overlap with octets that were hashed already does no harm.
                Some(last) => u64::from_le_bytes(*last),
                None => rest
                    .iter()
                    .fold(0, |word, octet| word << 8 | u64::from(*octet)),
            };
            state = fold(state ^ word, self.factor);
        }
        (fold(state, self.last) >> 32) as u32
    }
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// The hash of a name in persistent keys: FNV-1a of 64 bits, folded to 32. It must not change,
/// because keys outlive the program.
#[inline]
pub(crate) fn hash_of(name: &[u8]) -> u32 {
    let hash = name.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, octet| {
        (hash ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash ^ (hash >> 32)) as u32
}

#[cfg(test)]
#[allow(clippy::disallowed_macros, clippy::disallowed_methods)]
mod tests {
    use std::cell::Cell;
    use std::collections::HashSet;

    use chronorb_rt::epoch;

    use super::*;

    impl DirectoryEntry for String {
        fn name(&self) -> &[u8] {
            self.as_bytes()
        }
    }

    const STRATEGIES: [Demultiplexing; 3] = [
        Demultiplexing::Active,
        Demultiplexing::DynamicHash,
        Demultiplexing::LinearSearch,
    ];

    /// Checks the behaviour that all strategies have in common.
    fn conforms(strategy: Demultiplexing, named: bool) {
        let table = Directory::new(1 << 20, strategy);
        let name = |n: u32| format!("object {n}");
        let keys: Vec<Key> = (0..500)
            .map(|n| table.insert(named, |_| name(n)).expect("there is room"))
            .collect();
        let found = |n: u32, slot| {
            let entry = table.find(slot, name(n).as_bytes(), &epoch::enter(), drop);
            entry.map(|entry| entry.to_string())
        };
        let wrong_slot = Some(keys[7]);
        for n in 100..400 {
            let slot = Some(keys[n as usize]);
            assert_eq!(found(n, slot), Some(name(n)), "by its slot");
            if named {
                assert_eq!(found(n, None), Some(name(n)), "by name alone");
                assert_eq!(found(n, wrong_slot), Some(name(n)), "by a wrong guess");
                assert!(table.has_name(name(n).as_bytes()));
            }
        }
        assert_eq!(found(1000, wrong_slot), None);
        for n in (0..500).step_by(2) {
            let removed = table.remove(keys[n as usize]);
            assert!(matches!(removed, RemoveOutcome::Last(gone) if gone == name(n)));
            assert_eq!(found(n, Some(keys[n as usize])), None, "it is removed");
            assert!(table.was_issued(keys[n as usize]));
        }
        let key = table.insert(named, |_| name(2)).expect("there is room");
        assert_eq!(found(2, Some(key)), Some(name(2)), "it is back");
        assert_eq!(table.len(), 251);
        assert!(
            table.at(keys[2], &epoch::enter(), drop).is_none(),
            "and not where it was"
        );
    }

    #[test]
    fn all_strategies_find_the_same() {
        for strategy in STRATEGIES {
            conforms(strategy, true);
            conforms(strategy, false);
        }
    }

    /// A name that counts its comparisons.
    struct ComparisonCounter<'c> {
        name: [u8; 8],
        comparisons: &'c Cell<u32>,
    }

    impl DirectoryEntry for ComparisonCounter<'_> {
        fn name(&self) -> &[u8] {
            self.comparisons.set(self.comparisons.get() + 1);
            &self.name
        }
    }

    #[test]
    fn names_of_one_stable_hash_are_found_by_one_comparison() {
        let names = COLLIDING.map(u64::to_be_bytes);
        assert!(names.iter().all(|name| hash_of(name) == COLLIDES_AT));
        let comparisons = Cell::new(0);
        let table = Directory::new(1 << 10, Demultiplexing::Active);
        for name in names {
            let make = |_| ComparisonCounter {
                name,
                comparisons: &comparisons,
            };
            table.insert(true, make).expect("there is room");
        }
        comparisons.set(0);
        for name in names {
            assert!(table.find(None, &name, &epoch::enter(), drop).is_some());
        }
        // Two of them may collide by chance, but not many.
        let most = names.len() as u32 + 2;
        assert!(comparisons.get() <= most, "{}", comparisons.get());
    }

    #[test]
    fn names_of_all_lengths_have_different_hashes() {
        let hasher = NameHasher::new();
        let long = [0; 40];
        let names = (0..=40).map(|len| &long[..len]);
        let hashes: HashSet<_> = names.map(|name| hasher.hash(name)).collect();
        assert!(hashes.len() >= 40, "{}", hashes.len());
        let hashes: HashSet<_> = (0..40)
            .map(|at| {
                let mut name = long;
                name[at] = 1;
                hasher.hash(&name[..39 - at % 2])
            })
            .collect();
        assert!(hashes.len() >= 38, "{}", hashes.len());
    }

    /// Names, as big-endian numbers, that all have this stable hash.
    const COLLIDES_AT: u32 = 0x1234_5678;
    const COLLIDING: [u64; 24] = [
        0x6964_0002_4183_bc21,
        0x6964_0002_7269_9451,
        0x6964_0003_fc8c_3ca6,
        0x6964_0005_e7dc_be63,
        0x6964_0005_e8bd_3d9d,
        0x6964_0008_3be9_af87,
        0x6964_0008_910b_2520,
        0x6964_000c_026c_7dd1,
        0x6964_000d_760e_a144,
        0x6964_000d_dec8_210d,
        0x6964_000e_395a_f400,
        0x6964_000e_9fba_4f24,
        0x6964_000e_af36_7182,
        0x6964_0010_26db_ab8e,
        0x6964_0010_f40b_0299,
        0x6964_0011_2608_9707,
        0x6964_0012_01f7_fbd8,
        0x6964_0012_2023_36ee,
        0x6964_0012_49fc_0ca9,
        0x6964_0015_2ef0_55bc,
        0x6964_0015_314d_bda1,
        0x6964_0015_4ccc_b5fb,
        0x6964_0017_8629_6138,
        0x6964_0019_3a60_85d1,
    ];

    #[test]
    fn the_hash_of_names_does_not_change() {
        // Test vectors of FNV-1a, folded.
        assert_eq!(hash_of(b""), 0xcbf2_9ce4 ^ 0x8422_2325);
        assert_eq!(hash_of(b"foobar"), 0x8594_4171 ^ 0xf739_67e8);
    }
}
