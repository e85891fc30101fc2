//! Making references.

#[cfg(feature = "diop")]
use chronorb_giop::{Component, Policies, TaggedComponent};
use chronorb_giop::{Ior, SystemException};

use chronorb_rt::Key;
#[cfg(feature = "diop")]
use chronorb_rt::epoch;

use super::key::{Hint, ObjectKey, PoaKey, authenticated, slot};
use super::profiles::ProfileContents;
use super::{ObjectError, ObjectId, Poa};
use crate::call::Servant;
#[cfg(any(feature = "diop", feature = "schedule"))]
use crate::core::Core;
use crate::core::Object;
use crate::demux::{Demultiplexing, hash_of};
use crate::lanes::{LaneHandle, PoolHandle};
use crate::rtcorba::Priority;

impl Poa {
    /// A reference to an object that is not active (yet), under a new id.
    ///
    /// # Errors
    /// [`ObjectError::WrongPolicy`] if ids come from the application.
    pub fn create_reference(&self, repository_id: &str) -> Result<Object, ObjectError> {
        if !self.policies().has_system_ids() {
            return Err(ObjectError::WrongPolicy);
        }
        let id = self.numbered_id();
        Ok(self.reference(None, id.as_bytes(), None, repository_id)?)
    }

    /// A reference to an object that need not be active (yet).
    ///
    /// # Errors
    /// `BAD_PARAM` (OMG minor 14) if ids come from the POA and this one does not.
    pub fn create_reference_with_id(
        &self,
        id: &ObjectId,
        repository_id: &str,
    ) -> Result<Object, ObjectError> {
        self.check_id(id)?;
        Ok(self.reference_to(id, None, repository_id)?)
    }

    /// Returns the object id in a reference that this POA created.
    ///
    /// # Errors
    /// [`ObjectError::WrongAdapter`] if another POA created the reference.
    pub fn reference_to_id(&self, reference: &Object) -> Result<ObjectId, ObjectError> {
        let profile = reference.profile().ok_or(ObjectError::WrongAdapter)?;
        let key = ObjectKey::parse(&profile.key).ok_or(ObjectError::WrongAdapter)?;
        if key.poa != self.poa_key() {
            return Err(ObjectError::WrongAdapter);
        }
        Ok(ObjectId::new(key.id))
    }

    /// Returns the POA and the id of an object of this ORB, by its reference; `None` for a foreign
    /// reference, and where the POA does not exist.
    #[cfg(feature = "schedule")]
    pub(crate) fn of_reference(core: &Core, reference: &Object) -> Option<(Self, ObjectId)> {
        let profile = reference.profile()?;
        let key = ObjectKey::parse(&profile.key)?;
        let found = core.poas.find(core.incarnation, &key)?;
        Some((Self::clone(&found), ObjectId::new(key.id)))
    }

    /// Returns the servant of the object that a reference of this POA denotes: the active one, or
    /// the default servant.
    ///
    /// # Errors
    /// [`ObjectError::WrongPolicy`] where the POA neither retains servants nor has a default
    /// servant; [`ObjectError::WrongAdapter`] for a reference of another POA;
    /// [`ObjectError::ObjectNotActive`].
    pub fn reference_to_servant(&self, reference: &Object) -> Result<Servant, ObjectError> {
        if !self.policies().retains() && !self.policies().uses_default_servant() {
            return Err(ObjectError::WrongPolicy);
        }
        self.id_to_servant(&self.reference_to_id(reference)?)
    }

    /// The servant of an object: the active one, or the default servant.
    ///
    /// # Errors
    /// [`ObjectError::WrongPolicy`] where the POA neither retains servants nor has a default
    /// servant; [`ObjectError::ObjectNotActive`].
    pub fn id_to_servant(&self, id: &ObjectId) -> Result<Servant, ObjectError> {
        let policies = self.policies();
        if !policies.retains() && !policies.uses_default_servant() {
            return Err(ObjectError::WrongPolicy);
        }
        match self.find(self.hint(id), id.as_bytes()) {
            Some(active) => Ok(active.servant.clone()),
            None if policies.uses_default_servant() => {
                self.servant().map_err(|_| ObjectError::ObjectNotActive)
            }
            None => Err(ObjectError::ObjectNotActive),
        }
    }

    /// The reference of an active object.
    ///
    /// # Errors
    /// [`ObjectError::WrongPolicy`] where servants are not retained;
    /// [`ObjectError::ObjectNotActive`].
    pub fn id_to_reference(&self, id: &ObjectId) -> Result<Object, ObjectError> {
        if !self.policies().retains() {
            return Err(ObjectError::WrongPolicy);
        }
        let active = self.find(self.hint(id), id.as_bytes());
        let active = active.ok_or(ObjectError::ObjectNotActive)?;
        let repository_id = active.servant.repository_id();
        let place = Some(active.key());
        Ok(self.reference(place, id.as_bytes(), active.priority, repository_id)?)
    }

    /// The reference of an object that may be active; `priority` is its own as far as the caller
    /// knows.
    pub(super) fn reference_to(
        &self,
        id: &ObjectId,
        priority: Option<Priority>,
        repository_id: &str,
    ) -> Result<Object, SystemException> {
        let (place, priority) = match self.find(self.hint(id), id.as_bytes()) {
            Some(active) => (Some(active.key()), active.priority.or(priority)),
            None => (
                None,
                priority.or_else(|| self.declared_priority(id.as_bytes())),
            ),
        };
        self.reference(place, id.as_bytes(), priority, repository_id)
    }

    /// The reference of the object with this id; `place` is its slot where it is active, and
    /// `priority` is its own.
    pub(super) fn reference(
        &self,
        place: Option<Key>,
        id: &[u8],
        priority: Option<Priority>,
        repository_id: &str,
    ) -> Result<Object, SystemException> {
        let key = self.key_octets(place, id, priority);
        let core = &self.inner.core;
        self.check_alive()?;
        let pool = self.pool()?;
        let model = self
            .priority_model()
            .map(|(model, default)| (model, priority.unwrap_or(default)));
        let lane = published_lane(pool, model.map(|(_, priority)| priority));
        let told = ProfileContents {
            core,
            pool,
            key: &key,
            endpoints: self.manager().endpoints(),
            policies: self.policies().exported(model, &core.protocols)?,
        };
        let ior = Ior {
            type_id: repository_id.to_owned(),
            profiles: told.profiles(lane, self.policies().server_protocols.as_ref())?,
        };
        Object::from_ior(core, ior).ok_or(SystemException::no(
            chronorb_giop::SystemExceptionKind::Internal,
            0,
        ))
    }

    /// The key of an object that need not be active.
    ///
    /// # Errors
    /// `BAD_PARAM` (OMG minor 14) if ids come from the POA and this one does not.
    #[cfg(feature = "miop")]
    pub(crate) fn key_of(&self, id: &ObjectId) -> Result<Vec<u8>, SystemException> {
        self.check_id(id)?;
        let (place, priority) = match self.find(self.hint(id), id.as_bytes()) {
            Some(active) => (Some(active.key()), active.priority),
            None => (None, self.declared_priority(id.as_bytes())),
        };
        Ok(self.key_octets(place, id.as_bytes(), priority))
    }

    /// The key of an object, with a code where keys are authenticated.
    fn key_octets(&self, place: Option<Key>, id: &[u8], priority: Option<Priority>) -> Vec<u8> {
        let key = self.object_key(place, id, priority).to_vec();
        if !self.policies().authenticates_keys() {
            return key;
        }
        let codes = &self.core().poas.key_codes;
        // A persistent POA is not made without a secret.
        authenticated(&key, codes, self.is_persistent()).unwrap_or_default()
    }

    fn object_key<'k>(
        &'k self,
        place: Option<Key>,
        id: &'k [u8],
        priority: Option<Priority>,
    ) -> ObjectKey<'k> {
        let poa = self.poa_key();
        let hint = match (poa, place) {
            (PoaKey::Path { .. }, _) => Hint::Hash(hash_of(id)),
            // An id made by the POA contains it.
            (PoaKey::Place { .. }, Some(place)) if slot(id) != Some(place) => Hint::Slot(place),
            (PoaKey::Place { .. }, _) => Hint::None,
        };
        ObjectKey {
            poa,
            hint,
            priority,
            id,
        }
    }

    fn poa_key(&self) -> PoaKey<'_> {
        let core = self.core();
        let place = (core.incarnation, self.place());
        let by_path = |place| PoaKey::Path {
            place,
            hash: hash_of(self.inner.path.as_bytes()),
            path: self.inner.path.as_bytes(),
        };
        if self.is_persistent() {
            by_path(None)
        } else if core.poas.strategy() == Demultiplexing::Active {
            let (incarnation, key) = place;
            PoaKey::Place { incarnation, key }
        } else {
            by_path(Some(place))
        }
    }

    pub(super) fn is_persistent(&self) -> bool {
        self.policies().is_persistent()
    }
}

/// Returns the published policies of a POA, for a reference that only forwards to an object of it;
/// `None` if it has none, or does not exist.
#[cfg(feature = "diop")]
pub(crate) fn forwarded_policies(core: &Core, key: &ObjectKey<'_>) -> Option<TaggedComponent> {
    let _reading = epoch::enter();
    let poa = core.poas.find(core.incarnation, key)?;
    let model = poa.priority_model().map(|(model, default)| {
        let active = poa.find(key.hint, key.id);
        let own = active.and_then(|active| active.priority);
        (model, own.unwrap_or(default))
    });
    let policies = poa.policies().exported(model, &core.protocols).ok()?;
    if policies.is_empty() {
        return None;
    }
    Component::Policies(Policies(policies)).tagged().ok()
}

/// Returns the lane whose endpoint clients without knowledge of lanes use: that of the priority
/// that the server declares, else the least urgent.
fn published_lane(pool: &PoolHandle, declared: Option<Priority>) -> &LaneHandle {
    declared
        .and_then(|priority| pool.lane_of(priority))
        .unwrap_or_else(|| pool.least_urgent_lane())
}
