//! The active object map: which servant is which object.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::ops::Deref;

use chronorb_rt::{Key, SlotRef};

use super::key::{Hint, slot};
use super::{ObjectId, Poa};
use crate::call::Servant;
use crate::demux::DirectoryEntry;
use crate::rtcorba::Priority;

/// An object of a POA.
pub(crate) struct Active {
    pub(crate) servant: Servant,
    pub(crate) id: ObjectId,
    /// The object's own priority; `None` if it has that of its POA.
    pub(crate) priority: Option<Priority>,
}

impl DirectoryEntry for Active {
    #[inline]
    fn name(&self) -> &[u8] {
        self.id.as_bytes()
    }
}

/// An active object in use. Where it was deactivated, its servant is given back when the last one
/// is dropped.
pub(crate) struct ActiveRef<'p> {
    poa: &'p Poa,
    slot: Option<SlotRef<'p, Active>>,
}

impl ActiveRef<'_> {
    pub(crate) fn key(&self) -> Key {
        self.slot().key()
    }

    #[inline]
    fn slot(&self) -> &SlotRef<'_, Active> {
        // It is taken out only when this is dropped.
        self.slot.as_ref().expect("an object in use is there")
    }
}

impl Deref for ActiveRef<'_> {
    type Target = Active;

    #[inline]
    fn deref(&self) -> &Active {
        self.slot()
    }
}

impl Drop for ActiveRef<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(active) = self.slot.take().and_then(SlotRef::release) {
            self.poa.give_back(active);
        }
    }
}

impl Poa {
    /// The active object of an id. Wait-free.
    #[inline]
    pub(crate) fn find(&self, hint: Hint, id: &[u8]) -> Option<ActiveRef<'_>> {
        let place = match hint {
            Hint::Slot(key) => Some(key),
            // Ids of the POA's own making are slots, also in keys that name the POA by its path.
            Hint::Hash(_) if !self.makes_slots() => None,
            Hint::Hash(_) | Hint::None => slot(id),
        };
        let orphans = |active| self.give_back(active);
        let found = self.inner.objects.find(place, id, orphans)?;
        Some(self.in_use(found))
    }

    /// The id of an object that the caller is using.
    pub(super) fn held_id(&self, key: Key) -> Option<ObjectId> {
        Some(self.held(key)?.id.clone())
    }

    /// The servant of an object that the caller is using.
    pub(super) fn held_servant(&self, key: Key) -> Option<Servant> {
        Some(self.held(key)?.servant.clone())
    }

    /// Returns an object that the caller is using, or that cannot be removed now.
    pub(super) fn held(&self, key: Key) -> Option<ActiveRef<'_>> {
        let orphans = |active| self.give_back(active);
        let held = self.inner.objects.held_at(key, orphans)?;
        Some(self.in_use(held))
    }

    pub(super) fn in_use<'p>(&'p self, slot: SlotRef<'p, Active>) -> ActiveRef<'p> {
        ActiveRef {
            poa: self,
            slot: Some(slot),
        }
    }
}
