//! From an object key to a servant: active demultiplexing.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::collections::HashMap;

use chronorb_giop::{SystemException, SystemExceptionKind, minor};
use chronorb_rt::{Key, PiMutex, Slots};

use super::key::{ObjectKey, PoaKey};
use super::{Active, Poa};

/// All POAs of an ORB.
pub(crate) struct PoaTable {
    live: Slots<Poa>,
    /// Persistent POAs by path: their keys outlive the table.
    by_path: PiMutex<HashMap<Box<str>, Key>>,
    root: PiMutex<Option<Poa>>,
}

impl PoaTable {
    pub(crate) fn new() -> Self {
        Self {
            live: Slots::new(MAX_POAS),
            by_path: PiMutex::new(HashMap::new()),
            root: PiMutex::new(None),
        }
    }

    /// The root POA, made by `make` the first time.
    pub(super) fn root(
        &self,
        make: impl FnOnce() -> Result<Poa, SystemException>,
    ) -> Result<Poa, SystemException> {
        let mut root = self.root.lock();
        if let Some(poa) = &*root {
            return Ok(poa.clone());
        }
        let poa = make()?;
        *root = Some(poa.clone());
        Ok(poa)
    }

    /// Gives a POA its place, which its references will carry.
    pub(super) fn insert(
        &self,
        poa: &Poa,
        persistent_path: Option<&str>,
    ) -> Result<Key, SystemException> {
        let key = self.live.insert(poa.clone()).map_err(|_| {
            SystemException::no(SystemExceptionKind::ImpLimit, minor::TOO_MANY_POAS)
        })?;
        if let Some(path) = persistent_path {
            self.by_path.lock().insert(path.into(), key);
        }
        Ok(key)
    }

    pub(super) fn remove(&self, key: Key, persistent_path: Option<&str>) {
        if let Some(path) = persistent_path {
            let mut by_path = self.by_path.lock();
            // A successor of the same name may be there already.
            if by_path.get(path) == Some(&key) {
                by_path.remove(path);
            }
        }
        self.live.remove(key);
    }

    /// Runs `f` with the POA and the active object that a key stands for. Both stay alive
    /// until it returns, even if they are destroyed meanwhile. `admit` is asked before the object
    /// is looked for, since it may wait for it to be activated.
    ///
    /// # Errors
    /// `OBJECT_NOT_EXIST`: OMG minor 2 where the POA does not exist (any more), a minor of our own
    /// where the object does not.
    pub(crate) fn with_object<R>(
        &self,
        incarnation: u64,
        key: &[u8],
        admit: impl FnOnce(&Poa) -> Result<(), SystemException>,
        f: impl FnOnce(&Poa, &Active) -> R,
    ) -> Result<R, SystemException> {
        let no_adapter =
            SystemException::no(SystemExceptionKind::ObjectNotExist, minor::NO_SUCH_ADAPTER);
        let key = ObjectKey::parse(key).ok_or(no_adapter)?;
        let place = match key.poa {
            PoaKey::Transient {
                incarnation: of,
                key,
            } if of == incarnation => key,
            PoaKey::Transient { .. } => return Err(no_adapter),
            PoaKey::Persistent { path } => *self.by_path.lock().get(path).ok_or(no_adapter)?,
        };
        let poa = self.live.get(place).ok_or(no_adapter)?;
        admit(&poa)?;
        let object = poa.find(key.id).ok_or(SystemException::no(
            SystemExceptionKind::ObjectNotExist,
            minor::NO_SUCH_OBJECT,
        ))?;
        Ok(f(&poa, &object))
    }

    /// Lets no request through any more, and none wait: at the beginning of the end.
    pub(crate) fn deactivate(&self) {
        for key in self.live.keys() {
            if let Some(poa) = self.live.get(key) {
                // It may be inactive already, which is what is wanted.
                let _ = poa.manager().deactivate();
            }
        }
    }

    /// Forgets all POAs and servants; at the end of the ORB.
    pub(crate) fn clear(&self) {
        let root = self.root.lock().take();
        if let Some(root) = root {
            root.destroy();
        }
    }
}

const MAX_POAS: u32 = 1 << 20;
