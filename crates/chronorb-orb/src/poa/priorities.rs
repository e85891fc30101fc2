//! Objects with a priority of their own: what an RT POA does beyond others.
//!
//! Source: Real-Time CORBA 1.2, chapter 5, “Setting Server Priority on a per-Object Reference
//! Basis”.
//!
//! The priority of an object is kept with it while it is active, and its references carry it: in
//! the policy that clients read, by the lane's endpoint, and in the object key, which the server
//! reads again. So it holds for objects that are not active yet, that a default servant or a
//! servant manager serves, and, where they are persistent, after a restart.

use chronorb_giop::{SystemException, SystemExceptionKind, minor};

use super::objects::Active;
use super::{ActivateError, IntoServant, ObjectError, ObjectId, Poa, PriorityModel};
use crate::object::Object;
use crate::rtcorba::Priority;

impl Poa {
    /// A reference to an object that is not active (yet), under a new id, with a priority of its
    /// own. Whatever serves it does so at this priority.
    ///
    /// # Errors
    /// [`ObjectError::WrongPolicy`] where the POA's priority model is not
    /// [`PriorityModel::ServerDeclared`], it activates servants by itself, or ids come from the
    /// application; `BAD_PARAM` for a priority that no lane of its pool has; without lanes
    /// `DATA_CONVERSION` (OMG minor 2) for one that has no native priority.
    pub fn create_reference_with_priority(
        &self,
        repository_id: &str,
        priority: Priority,
    ) -> Result<Object, ObjectError> {
        if !self.declares_for_objects() || !self.policies().has_system_ids() {
            return Err(ObjectError::WrongPolicy);
        }
        self.check_priority(priority)?;
        let id = self.numbered_id();
        self.declare(&id, priority)?;
        Ok(self.reference(None, id.as_bytes(), Some(priority), repository_id)?)
    }

    /// A reference to an object that need not be active (yet), with a priority of its own. Whatever
    /// serves it does so at this priority; it holds too where the object is activated later without
    /// naming one.
    ///
    /// # Errors
    /// [`ObjectError::WrongPolicy`] where the POA's priority model is not
    /// [`PriorityModel::ServerDeclared`], or it activates servants by itself; `BAD_INV_ORDER` (OMG
    /// minor 18) where the object has another priority: it is active with it, or a reference was
    /// created with it; `BAD_PARAM` for a priority that no lane of the POA's pool has, and (OMG
    /// minor 14) where ids come from the POA and this is none of them; without lanes
    /// `DATA_CONVERSION` (OMG minor 2) for a priority that has no native one.
    pub fn create_reference_with_id_and_priority(
        &self,
        id: &ObjectId,
        repository_id: &str,
        priority: Priority,
    ) -> Result<Object, ObjectError> {
        if !self.declares_for_objects() {
            return Err(ObjectError::WrongPolicy);
        }
        self.check_priority(priority)?;
        self.check_id(id)?;
        self.declare(id, priority)?;
        Ok(self.reference_to(id, Some(priority), repository_id)?)
    }

    /// Activates a servant under an id of the POA's making, as an object with a priority of its own.
    ///
    /// # Errors
    /// [`ActivateError::WrongPolicy`] where the POA's priority model is not
    /// [`PriorityModel::ServerDeclared`], it activates servants by itself, ids come from the
    /// application, or servants are not retained; [`ActivateError::ServantAlreadyActive`];
    /// `BAD_PARAM` for a priority that no lane of the POA's pool has; without lanes
    /// `DATA_CONVERSION` (OMG minor 2) for one that has no native priority.
    pub fn activate_object_with_priority(
        &self,
        servant: impl IntoServant,
        priority: Priority,
    ) -> Result<ObjectId, ActivateError> {
        let policies = self.policies();
        if !self.declares_for_objects() || !policies.has_system_ids() || !policies.retains() {
            return Err(ActivateError::WrongPolicy);
        }
        self.check_priority(priority)?;
        self.activate_new(servant.into_servant(), Some(priority))
    }

    /// Activates a servant under an id, as
    /// [`activate_object_with_id`](Self::activate_object_with_id) does, as an object with a
    /// priority of its own.
    ///
    /// # Errors
    /// [`ActivateError::WrongPolicy`] where the POA's priority model is not
    /// [`PriorityModel::ServerDeclared`], it activates servants by itself, or servants are not
    /// retained; [`ActivateError::ObjectAlreadyActive`]; [`ActivateError::ServantAlreadyActive`];
    /// `BAD_INV_ORDER` (OMG minor 18) where a reference to the object was created with another
    /// priority; `BAD_PARAM` for a priority that no lane of the POA's pool has, and (OMG minor 14)
    /// where ids come from the POA and this is none of them; without lanes `DATA_CONVERSION` (OMG
    /// minor 2) for a priority that has no native one.
    pub fn activate_object_with_id_and_priority(
        &self,
        id: impl Into<ObjectId>,
        servant: impl IntoServant,
        priority: Priority,
    ) -> Result<(), ActivateError> {
        if !self.declares_for_objects() || !self.policies().retains() {
            return Err(ActivateError::WrongPolicy);
        }
        self.check_priority(priority)?;
        self.activate_as(id.into(), servant.into_servant(), Some(priority))
    }

    /// The priority that a request is served at by the POA's model, if it has one, and the one that
    /// the object has for itself. `propagated` is what came with the request.
    #[inline]
    pub(crate) fn priority_of_request(
        &self,
        active: Option<&Active>,
        of_key: Option<Priority>,
        propagated: Option<Priority>,
    ) -> (Option<Priority>, Option<Priority>) {
        match self.priority_model() {
            Some((PriorityModel::ClientPropagated, default)) => {
                (Some(propagated.unwrap_or(default)), None)
            }
            Some((PriorityModel::ServerDeclared, default)) => {
                let own = self.own_priority(active, of_key);
                (own.or(Some(default)), own)
            }
            None => (None, None),
        }
    }

    /// The priority of an object that the server declares for it alone: what it was activated
    /// with, else what its reference says. A key is as old as its reference, and anybody can make
    /// one: a priority that no lane has any more is as good as none.
    #[inline]
    fn own_priority(&self, active: Option<&Active>, of_key: Option<Priority>) -> Option<Priority> {
        let of_active = active.and_then(|active| active.priority);
        of_active.or_else(|| of_key.filter(|priority| self.has_lane_of(*priority)))
    }

    /// The priority that references to an object were created with.
    pub(super) fn declared_priority(&self, id: &ObjectId) -> Option<Priority> {
        self.inner.declared.lock().get(id).copied()
    }

    /// The priority of an object that is being activated: what is asked for, else what references
    /// to it were created with. The caller holds the lock of the active object map.
    ///
    /// # Errors
    /// `BAD_INV_ORDER` (OMG minor 18) where these are two.
    pub(super) fn agreed_priority(
        &self,
        id: &ObjectId,
        asked: Option<Priority>,
    ) -> Result<Option<Priority>, SystemException> {
        match (asked, self.declared_priority(id)) {
            (Some(asked), Some(declared)) if asked != declared => Err(REASSIGNED),
            (asked, declared) => Ok(asked.or(declared)),
        }
    }

    /// Notes the priority that a reference to an object is created with.
    fn declare(&self, id: &ObjectId, priority: Priority) -> Result<(), SystemException> {
        let _writing = self.inner.writing.lock();
        let default = self.priority_model().map(|(_, default)| default);
        let present = match self.find(self.hint(id), id.as_bytes()) {
            Some(active) => active.priority.or(default),
            None => self.declared_priority(id),
        };
        if present.is_some_and(|present| present != priority) {
            return Err(REASSIGNED);
        }
        let mut declared = self.inner.declared.lock();
        if declared.len() >= MAX_DECLARED {
            // The references themselves still say it.
            declared.clear();
        }
        declared.insert(id.clone(), priority);
        Ok(())
    }

    /// Whether objects may have priorities of their own here.
    fn declares_for_objects(&self) -> bool {
        let by_server = matches!(
            self.priority_model(),
            Some((PriorityModel::ServerDeclared, _))
        );
        by_server && !self.policies().is_implicit()
    }

    /// # Errors
    /// `BAD_PARAM` for a priority that no lane of the pool has; without lanes, what its mapping
    /// fails with.
    fn check_priority(&self, priority: Priority) -> Result<(), SystemException> {
        self.check_alive()?;
        self.pool()?;
        if !self.has_lane_of(priority) {
            return Err(SystemException::no(SystemExceptionKind::BadParam, 0));
        }
        self.core().real_time.scheduling(priority).map(drop)
    }

    /// Whether its pool has threads for a priority.
    fn has_lane_of(&self, priority: Priority) -> bool {
        self.pool()
            .is_ok_and(|pool| !pool.has_lanes() || pool.lane_of(priority).is_some())
    }
}

const REASSIGNED: SystemException = SystemException::no(
    SystemExceptionKind::BadInvOrder,
    minor::PRIORITY_ALREADY_SET,
);
/// How many priorities of created references a POA remembers, to tell that they are contradicted;
/// beyond, it forgets them, and begins anew.
const MAX_DECLARED: usize = 1 << 16;
