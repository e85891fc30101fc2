//! From a name or a place to what has it: the tables by which a request finds POA and object.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_rt::{Full, HashIndex, Key, Removed, SlotRef, Slots};

/// How a request finds its POA or its object (the papers' request demultiplexing strategies).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Demultiplexing {
    /// By index and generation in the object key, and by hash where the key cannot have them:
    /// the same time whatever the number of entries.
    #[default]
    Active,
    /// By a hash of the name, made for each request.
    DynamicHash,
    /// By comparing with one name after another: for comparison only.
    LinearSearch,
}

/// What has a name that requests may look for.
pub(crate) trait Named {
    /// Its octets.
    fn name(&self) -> &[u8];
}

/// A table of entries that requests find by place or by name, without a lock and without waiting
/// for those who change it. Who changes it holds a lock of the table's owner.
pub(crate) struct Directory<T> {
    slots: Slots<T>,
    names: HashIndex,
    strategy: Demultiplexing,
}

impl<T: Named> Directory<T> {
    pub(crate) fn new(max: u32, strategy: Demultiplexing) -> Self {
        Self {
            slots: Slots::new(max),
            names: HashIndex::new(),
            strategy,
        }
    }

    pub(crate) fn strategy(&self) -> Demultiplexing {
        self.strategy
    }

    /// The entry in a slot, unless it is gone. Wait-free.
    #[inline]
    pub(crate) fn at(&self, key: Key, orphans: impl Fn(T)) -> Option<SlotRef<'_, T>> {
        self.slots.get_or_inherit(key, orphans)
    }

    /// The entry that has a slot now. Wait-free.
    pub(crate) fn at_index(&self, index: u32) -> Option<SlotRef<'_, T>> {
        self.slots.get_at(index).map(|(_, entry)| entry)
    }

    /// The entry in a slot that the caller is using already, perhaps by another reference; even
    /// where it was removed meanwhile.
    pub(crate) fn held_at(&self, key: Key, orphans: impl Fn(T)) -> Option<SlotRef<'_, T>> {
        self.slots.get_held_or_inherit(key, orphans)
    }

    /// The entry of a name. The slot and the hash are guesses; right ones make it faster.
    /// Wait-free.
    ///
    /// Who looks at a wrong entry for a moment may be the last to do so, and then gives it to
    /// `orphans`, as whoever is the last to use a removed entry has to see to its end.
    #[inline]
    pub(crate) fn find(
        &self,
        slot: Option<Key>,
        hash: Option<u32>,
        name: &[u8],
        orphans: impl Fn(T) + Copy,
    ) -> Option<SlotRef<'_, T>> {
        match self.strategy {
            Demultiplexing::Active => {
                if let Some(key) = slot
                    && let Some(guessed) = self.at(key, orphans)
                {
                    if is_same(guessed.name(), name) {
                        return Some(guessed);
                    }
                    guessed.release().map(orphans);
                }
                self.find_named(hash, name, orphans)
            }
            Demultiplexing::DynamicHash => self.find_hashed(hash_of(name), name, orphans),
            Demultiplexing::LinearSearch => {
                (0..self.slots.bound()).find_map(|index| self.named_at(index, name, orphans))
            }
        }
    }

    /// Whether the name is one of an entry that was inserted with it. Who asks holds the lock.
    pub(crate) fn has_name(&self, name: &[u8]) -> bool {
        self.find_hashed(hash_of(name), name, drop).is_some()
    }

    /// Puts an entry in, made knowing its slot. Its name can be found where `named` says so; one
    /// that is not can only be found by its slot (and by strategies that know of no slots).
    pub(crate) fn insert(&self, named: bool, make: impl FnOnce(Key) -> T) -> Result<Key, Full> {
        let key = self.slots.insert_with(make)?;
        if (named || self.strategy == Demultiplexing::DynamicHash)
            && let Some(entry) = self.slots.get(key)
        {
            self.names.insert(hash_of(entry.name()), key.index);
        }
        Ok(key)
    }

    /// Takes an entry out: nobody finds it any more.
    pub(crate) fn remove(&self, key: Key) -> Removed<T> {
        if let Some(entry) = self.slots.get(key) {
            // The name goes first, while the slot is still its own.
            self.names.remove(hash_of(entry.name()), key.index);
        }
        self.slots.remove(key)
    }

    /// An index beyond those of all entries.
    pub(crate) fn bound(&self) -> u32 {
        self.slots.bound()
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether a slot was ever called so here.
    pub(crate) fn was_issued(&self, key: Key) -> bool {
        self.slots.was_issued(key)
    }

    /// How many references to an entry are in use.
    pub(crate) fn users(&self, key: Key) -> u32 {
        self.slots.readers(key)
    }

    fn find_named(
        &self,
        hash: Option<u32>,
        name: &[u8],
        orphans: impl Fn(T) + Copy,
    ) -> Option<SlotRef<'_, T>> {
        if self.names.is_empty() {
            return None;
        }
        let guessed = hash.and_then(|hash| self.find_hashed(hash, name, orphans));
        guessed.or_else(|| {
            let right = hash_of(name);
            // A guess that was right has found what there is.
            (hash != Some(right)).then(|| self.find_hashed(right, name, orphans))?
        })
    }

    fn find_hashed(
        &self,
        hash: u32,
        name: &[u8],
        orphans: impl Fn(T) + Copy,
    ) -> Option<SlotRef<'_, T>> {
        self.names
            .find(hash, |index| self.named_at(index, name, orphans))
    }

    fn named_at(&self, index: u32, name: &[u8], orphans: impl Fn(T)) -> Option<SlotRef<'_, T>> {
        let entry = self.at_index(index)?;
        if is_same(entry.name(), name) {
            return Some(entry);
        }
        entry.release().map(orphans);
        None
    }
}

/// Whether two names are the same. Most are slots, of eight octets.
#[inline]
fn is_same(a: &[u8], b: &[u8]) -> bool {
    match (<&[u8; 8]>::try_from(a), <&[u8; 8]>::try_from(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}

/// The hash of a name that tables and persistent keys use: FNV-1a of 64 bits, folded to 32. It
/// stays as it is, since keys outlive the program.
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
    use super::*;

    impl Named for String {
        fn name(&self) -> &[u8] {
            self.as_bytes()
        }
    }

    const STRATEGIES: [Demultiplexing; 3] = [
        Demultiplexing::Active,
        Demultiplexing::DynamicHash,
        Demultiplexing::LinearSearch,
    ];

    /// What every strategy does alike.
    fn conforms(strategy: Demultiplexing, named: bool) {
        let table = Directory::new(1 << 20, strategy);
        let name = |n: u32| format!("object {n}");
        let keys: Vec<Key> = (0..500)
            .map(|n| table.insert(named, |_| name(n)).expect("there is room"))
            .collect();
        let found = |n: u32, slot, hash| {
            let entry = table.find(slot, hash, name(n).as_bytes(), drop);
            entry.map(|entry| entry.to_string())
        };
        let wrong_slot = Some(keys[7]);
        for n in 100..400 {
            let slot = Some(keys[n as usize]);
            assert_eq!(found(n, slot, None), Some(name(n)), "by its slot");
            if named {
                let hash = hash_of(name(n).as_bytes());
                assert_eq!(found(n, None, None), Some(name(n)), "by name alone");
                assert_eq!(found(n, None, Some(hash)), Some(name(n)), "by its hash");
                assert_eq!(found(n, wrong_slot, Some(!hash)), Some(name(n)), "guesses");
                assert!(table.has_name(name(n).as_bytes()));
            }
        }
        assert_eq!(found(1000, wrong_slot, Some(0)), None);
        for n in (0..500).step_by(2) {
            let removed = table.remove(keys[n as usize]);
            assert!(matches!(removed, Removed::Last(gone) if gone == name(n)));
            assert_eq!(found(n, Some(keys[n as usize]), None), None, "it is gone");
            assert!(table.was_issued(keys[n as usize]));
        }
        let key = table.insert(named, |_| name(2)).expect("there is room");
        assert_eq!(found(2, Some(key), None), Some(name(2)), "it is back");
        assert_eq!(table.len(), 251);
        assert!(table.at(keys[2], drop).is_none(), "and not where it was");
    }

    #[test]
    fn all_strategies_find_the_same() {
        for strategy in STRATEGIES {
            conforms(strategy, true);
            conforms(strategy, false);
        }
    }

    #[test]
    fn the_hash_of_names_stays_as_it_is() {
        // Test vectors of FNV-1a, folded.
        assert_eq!(hash_of(b""), 0xcbf2_9ce4 ^ 0x8422_2325);
        assert_eq!(hash_of(b"foobar"), 0x8594_4171 ^ 0xf739_67e8);
    }
}
