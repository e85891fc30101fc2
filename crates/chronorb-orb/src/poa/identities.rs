//! The objects that servants incarnate.

use std::collections::HashMap;

use chronorb_rt::{HashIndex, PiMutex};

use super::Policies;
use crate::demux::hash_of;

/// The objects by the identity of their servants, as far as they are queried.
pub(super) enum Identities {
    /// The slot of the object that each servant incarnates (`UNIQUE_ID`).
    Unique(HashIndex),
    /// The number of objects that a servant incarnates. Its creator is notified when it drops to
    /// zero.
    Multiple(PiMutex<HashMap<usize, u32>>),
    /// Not recorded, because it is never queried.
    Unknown,
}

impl Identities {
    pub(super) fn of(policies: &Policies) -> Self {
        if policies.is_unique() {
            Self::Unique(HashIndex::new())
        } else if policies.uses_servant_manager() {
            Self::Multiple(PiMutex::default())
        } else {
            Self::Unknown
        }
    }

    /// Notes that a servant is one object more.
    pub(super) fn add(&self, identity: usize, slot: u32) {
        match self {
            Self::Unique(slots) => slots.insert(hash(identity), slot),
            Self::Multiple(counts) => *counts.lock().entry(identity).or_default() += 1,
            Self::Unknown => {}
        }
    }

    /// Notes that it is one less.
    pub(super) fn remove(&self, identity: usize, slot: u32) {
        match self {
            Self::Unique(slots) => {
                slots.remove(hash(identity), slot);
            }
            Self::Multiple(counts) => {
                let mut counts = counts.lock();
                if let Some(count) = counts.get_mut(&identity) {
                    *count -= 1;
                    if *count == 0 {
                        counts.remove(&identity);
                    }
                }
                if counts.is_empty() {
                    // Frees its memory.
                    *counts = HashMap::new();
                }
            }
            Self::Unknown => {}
        }
    }

    /// The object of a servant that can be only one; `accept` looks into a slot where it may be.
    pub(super) fn find<R>(
        &self,
        identity: usize,
        accept: impl FnMut(u32) -> Option<R>,
    ) -> Option<R> {
        match self {
            Self::Unique(slots) => slots.find(hash(identity), accept),
            Self::Multiple(_) | Self::Unknown => None,
        }
    }

    /// Whether a servant that may be several objects is any.
    pub(super) fn has(&self, identity: usize) -> bool {
        match self {
            Self::Multiple(counts) => counts.lock().contains_key(&identity),
            Self::Unique(_) | Self::Unknown => false,
        }
    }
}

fn hash(identity: usize) -> u32 {
    hash_of(&identity.to_ne_bytes())
}
