//! The table of an ORB's POAs, and the look-up of one by a key.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};

use chronorb_giop::{SystemException, SystemExceptionKind, minor};
use chronorb_rt::{Full, Key, PiMutex, RemoveOutcome, SlotRef};

use super::code::KeyCodes;
use super::key::{ObjectKey, PoaKey};
use super::manager::Managers;
use super::{Poa, ThreadModel};
use crate::config::OrbConfig;
use crate::demux::{Demultiplexing, Directory};

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

impl Drop for PoaRef<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(poa) = self.slot.take().and_then(SlotRef::release) {
            poa.release_hold();
        }
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
    #[inline]
    pub(crate) fn find(&self, incarnation: u64, key: &ObjectKey<'_>) -> Option<PoaRef<'_>> {
        let slot = match key.poa {
            PoaKey::Place {
                incarnation: of,
                key,
            } => (of == incarnation).then(|| self.live.at(key, ORPHANS))?,
            PoaKey::Path { place, path, .. } => {
                let found = self.live.find(None, path, ORPHANS);
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
                    BEING_DESTROYED
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

    /// Returns the paths of the POAs for which any client on a network may choose any priority.
    #[allow(clippy::disallowed_methods, reason = "not for requests")]
    pub(crate) fn with_unbounded_priorities(&self) -> Vec<String> {
        let all = (0..self.live.bound()).map(|index| PoaRef {
            slot: self.live.at_index(index),
        });
        let present = all.filter(|poa| poa.slot.is_some());
        let unbounded = present.filter(|poa| poa.has_unbounded_priorities());
        unbounded.map(|poa| poa.path_of_names()).collect()
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

/// The last reader of a removed POA completes its destruction.
const ORPHANS: fn(Poa) = |poa| poa.release_hold();

const NO_SUCH_ADAPTER: SystemException =
    SystemException::no(SystemExceptionKind::ObjectNotExist, minor::NO_SUCH_ADAPTER);
const BEING_DESTROYED: SystemException =
    SystemException::no(SystemExceptionKind::Transient, minor::ADAPTER_DESTROYED);

const MAX_POAS: u32 = 1 << 20;
