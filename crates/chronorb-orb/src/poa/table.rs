//! The tables of an ORB's POAs and of the objects of each, and the look-ups by a key.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};

use chronorb_giop::SystemException;
use chronorb_rt::epoch::{self, EpochGuard};
use chronorb_rt::{Full, Key, PiMutex, RemoveOutcome, SlotRef};

use super::key::{Hint, ObjectKey, PoaKey, slot};
use super::manager::Managers;
use super::priorities::Reach;
use super::{ObjectId, Poa, ThreadModel};
use crate::call::Servant;
use crate::config::OrbConfig;
use crate::demux::{Demultiplexing, Directory, DirectoryEntry};
use crate::failure::{ADAPTER_DESTROYED, NO_SUCH_ADAPTER};
use crate::key_codes::KeyCodes;
use crate::rtcorba::Priority;

/// All POAs of an ORB.
pub(crate) struct PoaTable {
    live: Directory<Poa>,
    root: PiMutex<Option<Poa>>,
    /// Held while `live` changes.
    writing: PiMutex<()>,
    /// The keys of authenticated object keys.
    pub(super) key_codes: KeyCodes,
    pub(super) managers: Managers,
    /// The number of the next object whose id is not a slot.
    pub(super) next_object: AtomicU64,
    /// See [`Core::incarnation`](crate::core::Core::incarnation).
    incarnation: u64,
}

/// A POA that a request is in. Its destruction is complete when the last one is dropped.
pub(crate) struct PoaRef<'t> {
    slot: Option<SlotRef<'t, Poa>>,
}

impl Deref for PoaRef<'_> {
    type Target = Poa;

    #[inline]
    fn deref(&self) -> &Poa {
        // It is taken out only when this is dropped.
        self.slot.as_deref().expect("a POA in use is there")
    }
}

impl PoaRef<'_> {
    /// Drops the reference, inlined.
    #[inline(always)]
    pub(crate) fn leave(self) {
        ManuallyDrop::new(self).release();
    }

    #[inline(always)]
    fn release(&mut self) {
        if let Some(poa) = self.slot.take().and_then(SlotRef::release) {
            poa.release_hold();
        }
    }
}

impl Drop for PoaRef<'_> {
    fn drop(&mut self) {
        self.release();
    }
}

impl PoaTable {
    pub(crate) fn new(config: &OrbConfig, incarnation: u64) -> Self {
        Self {
            live: Directory::new(MAX_POAS, config.poa_demultiplexing),
            root: PiMutex::new(None),
            writing: PiMutex::new(()),
            key_codes: KeyCodes::new(config.object_key_secret.as_ref()),
            managers: Managers::default(),
            next_object: AtomicU64::new(0),
            incarnation,
        }
    }

    /// Whether an object id is an incarnation and a number that this ORB has given out.
    pub(super) fn is_own_number(&self, id: &[u8]) -> bool {
        let Some((incarnation, rest)) = id.split_first_chunk() else {
            return false;
        };
        let number = rest.try_into().map(u64::from_be_bytes);
        u64::from_be_bytes(*incarnation) == self.incarnation
            && number.is_ok_and(|number| number < self.next_object.load(Ordering::Relaxed))
    }

    /// The root POA, made by `make` the first time, and anew after its destruction.
    pub(super) fn root(
        &self,
        make: impl FnOnce() -> Result<Poa, SystemException>,
    ) -> Result<Poa, SystemException> {
        let mut root = self.root.lock();
        if let Some(poa) = root.as_ref().filter(|poa| !poa.is_destroyed()) {
            return Ok(poa.clone());
        }
        let poa = make()?;
        let before = root.replace(poa.clone());
        // Dropping the former one may drop values of the application, which must not run under the
        // lock.
        drop(root);
        drop(before);
        Ok(poa)
    }

    /// The root POA, if it was made.
    pub(crate) fn present_root(&self) -> Option<Poa> {
        self.root.lock().clone()
    }

    pub(super) fn strategy(&self) -> Demultiplexing {
        self.live.strategy()
    }

    /// Gives a POA its place, which its references will carry; `named` where they carry its path.
    pub(super) fn insert(&self, named: bool, make: impl FnOnce(Key) -> Poa) -> Result<(), Full> {
        let _writing = self.writing.lock();
        self.live.insert(named, make).map(drop)
    }

    /// Removes it, so that no further request finds it. The last request in it, or this call,
    /// releases its hold.
    pub(super) fn remove(&self, key: Key) {
        let removed = {
            let _writing = self.writing.lock();
            self.live.remove(key)
        };
        if let RemoveOutcome::Last(poa) = removed {
            poa.release_hold();
        }
    }

    /// The POA that a key names. Wait-free.
    pub(crate) fn find(&self, incarnation: u64, key: &ObjectKey<'_>) -> Option<PoaRef<'_>> {
        self.find_within(&epoch::enter(), incarnation, key)
    }

    /// As [`find`](Self::find), for callers that have entered the epoch.
    #[inline(always)]
    pub(crate) fn find_within(
        &self,
        reading: &EpochGuard,
        incarnation: u64,
        key: &ObjectKey<'_>,
    ) -> Option<PoaRef<'_>> {
        let slot = match key.poa {
            PoaKey::Place {
                incarnation: of,
                key,
            } => (of == incarnation).then(|| self.live.at(key, reading, ORPHANS))?,
            PoaKey::Path { place, path, .. } => {
                let found = self.live.find(None, path, reading, ORPHANS);
                let found = PoaRef { slot: Some(found?) };
                let is_meant = match place {
                    None => found.is_persistent(),
                    Some(place) => place == (incarnation, found.place()) && !found.is_persistent(),
                };
                return is_meant.then_some(found);
            }
        };
        Some(PoaRef { slot: Some(slot?) })
    }

    /// The POA that a key names, made by adapter activators where it is not there.
    ///
    /// # Errors
    /// `OBJECT_NOT_EXIST` (OMG minor 2) if there is none and none is made; `TRANSIENT` (OMG minor
    /// 4) while it is being destroyed; `OBJ_ADAPTER` (OMG minor 1) if an activator failed; and the
    /// exceptions of the managers of ancestors.
    #[cold]
    pub(crate) fn obtain(
        &self,
        incarnation: u64,
        key: &ObjectKey<'_>,
    ) -> Result<PoaRef<'_>, SystemException> {
        match key.poa {
            PoaKey::Place {
                incarnation: of,
                key,
            } if of == incarnation => {
                // A request may still be in it.
                let dying = self.held_at(key).is_some();
                return Err(if dying {
                    ADAPTER_DESTROYED
                } else {
                    NO_SUCH_ADAPTER
                });
            }
            PoaKey::Path {
                place: None, path, ..
            } => {
                let path = std::str::from_utf8(path).map_err(|_| NO_SUCH_ADAPTER)?;
                let root = self.present_root().ok_or(NO_SUCH_ADAPTER)?;
                root.descendant(path)?;
            }
            PoaKey::Place { .. } | PoaKey::Path { .. } => {}
        }
        self.find(incarnation, key).ok_or(NO_SUCH_ADAPTER)
    }

    /// Whether requests for this object are for the main thread.
    pub(crate) fn is_for_main_thread(&self, incarnation: u64, key: &[u8]) -> bool {
        let poa = ObjectKey::parse(key).and_then(|key| self.find(incarnation, &key));
        poa.is_some_and(|poa| poa.thread_model() == ThreadModel::MainThread)
    }

    /// The POA in a slot, even where its destruction has begun.
    pub(crate) fn held_at(&self, key: Key) -> Option<Poa> {
        let slot = self.live.held_at(key, ORPHANS)?;
        let held = PoaRef { slot: Some(slot) };
        Some(Poa::clone(&held))
    }

    /// Returns the number of requests in it.
    pub(super) fn users(&self, key: Key) -> u32 {
        self.live.users(key)
    }

    /// Returns the paths of the POAs for which strangers may choose any priority, and which these
    /// are.
    #[allow(clippy::disallowed_methods, reason = "not for requests")]
    pub(crate) fn with_unbounded_priorities(&self) -> Vec<(String, Reach)> {
        let all = (0..self.live.bound()).map(|index| PoaRef {
            slot: self.live.at_index(index),
        });
        let present = all.filter(|poa| poa.slot.is_some());
        let unbounded =
            present.filter_map(|poa| Some((poa.path_of_names(), poa.unbounded_reach()?)));
        unbounded.collect()
    }

    /// Makes all POAs refuse requests, also waiting ones: at the beginning of the end.
    pub(crate) fn deactivate(&self) {
        for index in 0..self.live.bound() {
            let poa = PoaRef {
                slot: self.live.at_index(index),
            };
            if poa.slot.is_some() {
                poa.manager().make_inactive();
            }
        }
    }

    /// Destroys all POAs; at the end of the ORB.
    pub(crate) fn clear(&self) {
        let root = self.root.lock().take();
        if let Some(root) = root {
            root.begin_destruction(true);
        }
    }
}

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

    #[inline]
    fn is_named(&self, name: &[u8]) -> bool {
        self.id.is(name)
    }
}

/// A reference to an entry of the active object map, held while a request uses the object. After
/// deactivation, the drop of the last reference releases or etherealizes the servant.
pub(crate) struct ActiveRef<'p> {
    poa: &'p Poa,
    slot: Option<SlotRef<'p, Active>>,
}

impl ActiveRef<'_> {
    /// Drops a reference, if it is one, inlined.
    #[inline(always)]
    pub(crate) fn leave(this: Option<Self>) {
        if let Some(this) = this {
            ManuallyDrop::new(this).release();
        }
    }

    #[inline(always)]
    fn release(&mut self) {
        if let Some(active) = self.slot.take().and_then(SlotRef::release) {
            self.poa.give_back(active);
        }
    }

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
    fn drop(&mut self) {
        self.release();
    }
}

impl Poa {
    /// The active object of an id. Wait-free.
    pub(crate) fn find(&self, hint: Hint, id: &[u8]) -> Option<ActiveRef<'_>> {
        self.find_within(&epoch::enter(), hint, id)
    }

    /// As [`find`](Self::find), for callers that have entered the epoch.
    #[inline(always)]
    pub(crate) fn find_within(
        &self,
        reading: &EpochGuard,
        hint: Hint,
        id: &[u8],
    ) -> Option<ActiveRef<'_>> {
        let place = match hint {
            Hint::Slot(key) => Some(key),
            // Ids of the POA's own making are slots, also in keys that name the POA by its path.
            Hint::Hash(_) if !self.makes_slots() => None,
            Hint::Hash(_) | Hint::None => slot(id),
        };
        let orphans = |active| self.give_back(active);
        let found = self.inner.objects.find(place, id, reading, orphans)?;
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

/// The last reader of a removed POA completes its destruction.
const ORPHANS: fn(Poa) = |poa| poa.release_hold();

const MAX_POAS: u32 = 1 << 20;
