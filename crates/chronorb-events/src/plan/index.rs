//! A map whose copies share what is equal, for keys that a peer chooses.

use std::hash::{BuildHasher, RandomState};
use std::mem;
use std::sync::Arc;

/// The bits of a hash that select a slot of a branch.
const BITS: u32 = 4;
const SLOTS: usize = 1 << BITS;

/// A persistent map from numbers to values, as a trie of hashes.
///
/// A copy takes one step, and a change afterwards copies one path only. Different keys have
/// different hashes, of 64 bits, so a look-up reads at most 16 branches. The hash has a random
/// seed, so keys that are chosen by a peer find a trie as flat as others.
#[derive(Clone, Debug)]
pub(super) struct Index<V> {
    seed: u64,
    root: Slot<V>,
}

#[derive(Clone, Debug, Default)]
enum Slot<V> {
    #[default]
    Empty,
    /// A hash and its value.
    Value(u64, V),
    Branch(Arc<[Self; SLOTS]>),
}

impl<V> Default for Index<V> {
    fn default() -> Self {
        Self {
            seed: RandomState::new().hash_one(0),
            root: Slot::Empty,
        }
    }
}

impl<V> Index<V> {
    #[inline]
    pub(super) fn get(&self, key: u64) -> Option<&V> {
        let mut slot = &self.root;
        if matches!(slot, Slot::Empty) {
            return None;
        }
        let hash = self.hash(key);
        let mut rest = hash;
        loop {
            match slot {
                Slot::Empty => return None,
                Slot::Value(other, value) => return (*other == hash).then_some(value),
                Slot::Branch(slots) => slot = &slots[place(rest)],
            }
            rest >>= BITS;
        }
    }

    /// A hash of the key. The function is a bijection.
    #[inline]
    fn hash(&self, key: u64) -> u64 {
        let mixed = (key ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        mixed ^ (mixed >> 32)
    }
}

impl<V: Clone + Default> Index<V> {
    /// Changes the value of a key, which is the default one if there is none. The key is removed if
    /// the change leaves a value of no use, which `change` tells.
    pub(super) fn change(&mut self, key: u64, change: impl FnOnce(&mut V) -> Keep) {
        let hash = self.hash(key);
        self.root.change(hash, 0, change);
    }
}

/// The decision on a value after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    Yes,
    No,
}

impl<V: Clone + Default> Slot<V> {
    /// Changes the value of a hash, of which some bits have led here.
    fn change(&mut self, hash: u64, used: u32, change: impl FnOnce(&mut V) -> Keep) {
        if let Self::Value(other, _) = self
            && *other != hash
        {
            let (other, present) = (*other, mem::take(self));
            let mut slots = [const { Self::Empty }; SLOTS];
            slots[place(other >> used)] = present;
            *self = Self::Branch(Arc::new(slots));
        }
        match self {
            Self::Empty => {
                let mut value = V::default();
                if change(&mut value) == Keep::Yes {
                    *self = Self::Value(hash, value);
                }
            }
            Self::Value(_, value) => {
                if change(value) == Keep::No {
                    *self = Self::Empty;
                }
            }
            Self::Branch(slots) => {
                let slots = Arc::make_mut(slots);
                slots[place(hash >> used)].change(hash, used + BITS, change);
                if slots.iter().all(|slot| matches!(slot, Self::Empty)) {
                    *self = Self::Empty;
                }
            }
        }
    }
}

/// The slot that the lowest bits select.
#[inline]
fn place(hash: u64) -> usize {
    hash as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn set(index: &mut Index<u32>, key: u64, value: Option<u32>) {
        index.change(key, |present| match value {
            Some(value) => {
                *present = value;
                Keep::Yes
            }
            None => Keep::No,
        });
    }

    proptest! {
        #[test]
        fn an_index_is_a_map(
            changes in prop::collection::vec((0_u64..300, prop::option::of(any::<u32>())), 0..1000),
        ) {
            let mut index = Index::default();
            let mut model = BTreeMap::new();
            let mut copies = Vec::new();
            for (number, (key, value)) in changes.into_iter().enumerate() {
                // Keys that differ in few bits, as sources and types do.
                let key = ((key / 20) << 32) | (key % 20);
                set(&mut index, key, value);
                match value {
                    Some(value) => model.insert(key, value),
                    None => model.remove(&key),
                };
                if number % 50 == 0 {
                    copies.push((index.clone(), model.clone()));
                }
            }
            copies.push((index, model));
            for (copy, model) in copies {
                for key in (0..16).flat_map(|high| (0..20).map(move |low| (high << 32) | low)) {
                    prop_assert_eq!(copy.get(key), model.get(&key));
                }
            }
        }
    }

    #[test]
    fn removed_keys_leave_nothing() {
        let mut index = Index::default();
        for key in 0..1000 {
            set(&mut index, key, Some(1));
        }
        for key in 0..1000 {
            set(&mut index, key, None);
        }
        assert!(matches!(index.root, Slot::Empty));
    }
}
