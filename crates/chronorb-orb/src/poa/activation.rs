//! Making servants objects, and ending that.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use chronorb_giop::{SystemException, SystemExceptionKind, minor};
use chronorb_rt::{Deadline, Key, RemoveOutcome};

use super::in_progress::BeginOutcome;
use super::key::{Hint, slot, slot_octets};
use super::table::{Active, ActiveRef};
use super::{
    ActivateError, IntoServant, InvocationGuard, ObjectError, ObjectId, Poa, PoaCurrent,
    ServantActivator, ServantError, ServantManager, ThreadModel,
};
use crate::call::Servant;
use crate::core::Object;
use crate::demux::hash_of;
use crate::failure;
use crate::failure::DISCARDED;
use crate::rtcorba::Priority;

impl Poa {
    /// Activates a servant under an id of the POA's making.
    ///
    /// # Errors
    /// [`ActivateError::WrongPolicy`] if ids come from the application, or servants are not
    /// retained; [`ActivateError::ServantAlreadyActive`] if the servant is an object already and
    /// the POA has [`IdUniqueness::Unique`](super::IdUniqueness::Unique).
    pub fn activate_object(&self, servant: impl IntoServant) -> Result<ObjectId, ActivateError> {
        failure::begin();
        self.activate_new(servant.into_servant(), None)
    }

    /// Activates a servant under an id of the application's making, or under one that the POA
    /// made: for a reference, for an object that was deactivated, or, where it is persistent, in
    /// an earlier run.
    ///
    /// # Errors
    /// [`ActivateError::WrongPolicy`] if servants are not retained;
    /// [`ActivateError::ObjectAlreadyActive`]; [`ActivateError::ServantAlreadyActive`]; `BAD_PARAM`
    /// (OMG minor 14) if ids come from the POA and this one does not.
    pub fn activate_object_with_id(
        &self,
        id: impl Into<ObjectId>,
        servant: impl IntoServant,
    ) -> Result<(), ActivateError> {
        failure::begin();
        self.activate_as(id.into(), servant.into_servant(), None)
    }

    /// Deactivates an object: it receives no further requests. Requests in progress are finished;
    /// after the last, the servant is returned to the [`ServantActivator`], or dropped.
    ///
    /// # Errors
    /// [`ObjectError::ObjectNotActive`]; [`ObjectError::WrongPolicy`] where servants are not
    /// retained.
    pub fn deactivate_object(&self, id: &ObjectId) -> Result<(), ObjectError> {
        if !self.policies().retains() {
            return Err(ObjectError::WrongPolicy);
        }
        self.deactivate(id).ok_or(ObjectError::ObjectNotActive)
    }

    /// Activates a servant under an id of the POA's making, and gives its reference.
    ///
    /// # Errors
    /// As [`activate_object`](Self::activate_object).
    pub fn serve(&self, servant: impl IntoServant) -> Result<Object, ActivateError> {
        let servant = servant.into_servant();
        let repository_id = servant.repository_id();
        let id = self.activate_object(servant)?;
        let hint = slot(id.as_bytes());
        Ok(self.reference(hint, id.as_bytes(), None, repository_id)?)
    }

    /// Returns the id of a servant: the one that it is active under, a new one if the POA activates
    /// servants implicitly, or that of the request in progress if it is the default servant.
    ///
    /// # Errors
    /// [`ServantError::ServantNotActive`]; [`ServantError::WrongPolicy`] if the POA's policies
    /// allow none of these ways; and those of activation.
    pub fn servant_to_id(&self, servant: &Servant) -> Result<ObjectId, ServantError> {
        let policies = self.policies();
        let by_map = policies.retains() && (policies.is_unique() || policies.is_implicit());
        if !by_map && !policies.uses_default_servant() {
            return Err(ServantError::WrongPolicy);
        }
        if let Some(id) = self.id_of_servant(servant)? {
            return Ok(id);
        }
        self.current_id(servant)
            .map(|(id, _)| id)
            .filter(|_| policies.uses_default_servant())
            .ok_or(ServantError::ServantNotActive)
    }

    /// The reference of a servant: that of the request in progress where it serves it, else that
    /// of its id as [`servant_to_id`](Self::servant_to_id) finds it.
    ///
    /// # Errors
    /// As [`servant_to_id`](Self::servant_to_id); a default servant has a reference only while it
    /// serves a request.
    pub fn servant_to_reference(&self, servant: &Servant) -> Result<Object, ServantError> {
        let policies = self.policies();
        let repository_id = servant.repository_id();
        let (id, priority) = match self.current_id(servant) {
            Some(current) => current,
            None => {
                let by_map = policies.is_unique() || policies.is_implicit();
                if !policies.retains() || !by_map {
                    return Err(ServantError::WrongPolicy);
                }
                let id = self.id_of_servant(servant)?;
                (id.ok_or(ServantError::ServantNotActive)?, None)
            }
        };
        Ok(self.reference_to(&id, priority, repository_id)?)
    }

    /// The id that a servant has or gets by the active object map.
    fn id_of_servant(&self, servant: &Servant) -> Result<Option<ObjectId>, SystemException> {
        let policies = self.policies();
        if !policies.retains() {
            return Ok(None);
        }
        loop {
            if policies.is_unique()
                && let Some(active) = self.find_servant(servant.identity())
            {
                return Ok(Some(active.id.clone()));
            }
            if !policies.is_implicit() {
                return Ok(None);
            }
            match self.activate(self.new_id(), servant.clone(), None) {
                Ok(active) => return Ok(Some(active.id.clone())),
                Err(error) => {
                    if let Some(exception) = error.system_exception() {
                        return Err(exception);
                    }
                    // By another thread, in between.
                }
            }
        }
    }

    /// Returns the id of the request in progress here that this servant serves, and the priority in
    /// its reference.
    fn current_id(&self, servant: &Servant) -> Option<(ObjectId, Option<Priority>)> {
        let current = PoaCurrent::new(self.core().clone());
        let here = current.poa().ok()? == *self;
        let its = current.servant().ok()?.identity() == servant.identity();
        let id = current.object_id().ok().filter(|_| here && its)?;
        Some((id, current.own_priority()))
    }

    /// Returns the likely slot of an object of this id in the active object map.
    pub(super) fn hint(&self, id: &ObjectId) -> Hint {
        if self.makes_slots() {
            Hint::None
        } else {
            Hint::Hash(hash_of(id.as_bytes()))
        }
    }

    /// Whether the ids that it makes are slots of its table.
    #[inline]
    pub(super) fn makes_slots(&self) -> bool {
        self.policies().has_system_ids() && !self.policies().is_persistent()
    }

    /// # Errors
    /// `BAD_PARAM` (OMG minor 14) if ids come from the POA and this one does not.
    pub(super) fn check_id(&self, id: &ObjectId) -> Result<(), SystemException> {
        let policies = self.policies();
        let octets = id.as_bytes();
        let ours = if !policies.has_system_ids() {
            true
        } else if policies.is_persistent() {
            // Ids of an earlier run cannot be distinguished from others.
            octets.len() == NUMBERED
        } else {
            match slot(octets) {
                Some(key) => self.inner.objects.was_issued(key),
                None => self.core().poas.is_own_number(octets),
            }
        };
        let kind = SystemExceptionKind::BadParam;
        let foreign = SystemException::no(kind, minor::INVALID_OBJECT_ID);
        ours.then_some(()).ok_or(foreign)
    }

    /// Returns a unique id that is not a slot: after a restart, or because there is no object yet.
    pub(super) fn numbered_id(&self) -> ObjectId {
        let number = self.core().poas.next_object.fetch_add(1, Ordering::Relaxed);
        let incarnation = self.core().incarnation;
        ObjectId::new([incarnation.to_be_bytes(), number.to_be_bytes()].concat())
    }

    /// The id of a new object; `None` where it is its slot.
    fn new_id(&self) -> Option<ObjectId> {
        self.policies().is_persistent().then(|| self.numbered_id())
    }

    /// Activates a servant under an id made by the POA, with its own priority if one is given.
    pub(super) fn activate_new(
        &self,
        servant: Servant,
        priority: Option<Priority>,
    ) -> Result<ObjectId, ActivateError> {
        if !self.policies().has_system_ids() || !self.policies().retains() {
            return Err(ActivateError::WrongPolicy);
        }
        let active = self.activate(self.new_id(), servant, priority)?;
        Ok(active.id.clone())
    }

    /// Activates a servant under an id, with its own priority if one is given.
    pub(super) fn activate_as(
        &self,
        id: ObjectId,
        servant: Servant,
        priority: Option<Priority>,
    ) -> Result<(), ActivateError> {
        if !self.policies().retains() {
            return Err(ActivateError::WrongPolicy);
        }
        self.check_id(&id)?;
        if self.activator_of_servants().is_none() {
            return self.activate(Some(id), servant, priority).map(drop);
        }
        // After the activator has taken back the servant that had the id.
        let deadline = Deadline::after(self.core().config.hold_timeout);
        let begun = self.inner.changing.begin(&id, deadline);
        if begun == BeginOutcome::TimedOut {
            return Err(DISCARDED.into());
        }
        let activated = self.activate(Some(id.clone()), servant, priority);
        if begun == BeginOutcome::Now {
            self.inner.changing.end(&id);
        }
        activated.map(drop)
    }

    /// Adds an object to the active object map, where other threads may remove it at once.
    pub(super) fn activate(
        &self,
        id: Option<ObjectId>,
        servant: Servant,
        priority: Option<Priority>,
    ) -> Result<ActiveRef<'_>, ActivateError> {
        self.check_alive()?;
        self.pool()?;
        let objects = &self.inner.objects;
        let identity = servant.identity();
        let _writing = self.inner.writing.lock();
        // Under the lock that the destruction takes after it has marked the POA.
        self.check_alive()?;
        if let Some(id) = &id
            && (objects.has_name(id.as_bytes()) || self.find(Hint::None, id.as_bytes()).is_some())
        {
            return Err(ActivateError::ObjectAlreadyActive);
        }
        if self.find_servant(identity).is_some() {
            return Err(ActivateError::ServantAlreadyActive);
        }
        let priority = match &id {
            Some(id) => self.agreed_priority(id, priority)?,
            None => priority,
        };
        let named = id.is_some();
        let make = |key| {
            let id = id.unwrap_or_else(|| ObjectId::new(slot_octets(key)));
            Active {
                servant,
                id,
                priority,
            }
        };
        let key = objects.insert(named, make).map_err(|_| {
            SystemException::no(SystemExceptionKind::ImpLimit, minor::TOO_MANY_OBJECTS)
        })?;
        self.inner.servants.add(identity, key.index);
        // It cannot be removed while the lock is held.
        let internal = SystemException::no(SystemExceptionKind::Internal, 0);
        self.held(key).ok_or(ActivateError::System(internal))
    }

    /// Takes an object out of the active object map.
    fn deactivate(&self, id: &ObjectId) -> Option<()> {
        let removed = {
            let _writing = self.inner.writing.lock();
            let key = self.find(self.hint(id), id.as_bytes())?.key();
            self.take_out(key)
        };
        // Application code runs without the lock.
        if let RemoveOutcome::Last(active) = removed {
            self.give_back(active);
        }
        Some(())
    }

    /// Takes an object out; the caller holds the lock.
    fn take_out(&self, key: Key) -> RemoveOutcome<Active> {
        if let Some(active) = self.held(key) {
            let identity = active.servant.identity();
            self.inner.servants.remove(identity, key.index);
            if self.activator_of_servants().is_some() {
                self.inner.changing.mark(&active.id);
            }
            #[cfg(feature = "miop")]
            self.leave_groups(&active.id);
        }
        self.inner.objects.remove(key)
    }

    /// Takes all objects out.
    pub(super) fn deactivate_all(&self) {
        let bound = {
            // An activation that was under way when the end began has ended by then.
            let _writing = self.inner.writing.lock();
            self.inner.objects.bound()
        };
        for index in 0..bound {
            let removed = {
                let _writing = self.inner.writing.lock();
                let active = self.inner.objects.at_index(index);
                match active.map(|active| self.in_use(active).key()) {
                    Some(key) => self.take_out(key),
                    None => continue,
                }
            };
            if let RemoveOutcome::Last(active) = removed {
                self.give_back(active);
            }
        }
    }

    /// Deactivates all objects whose activator wants their servants back.
    pub(super) fn give_servants_back(&self) {
        if self.activator_of_servants().is_some() {
            self.deactivate_all();
        }
    }

    /// Returns the servant of an unused object to its activator, or drops it.
    #[cold]
    pub(super) fn give_back(&self, active: Active) {
        let Some(activator) = self.activator_of_servants() else {
            self.let_go(active);
            return;
        };
        let poa = self.clone();
        let give_back = move || poa.etherealize(&*activator, active);
        if self.thread_model() == ThreadModel::MainThread {
            self.core().main.entrust(give_back);
        } else {
            self.take_turn(give_back);
        }
    }

    fn etherealize(&self, activator: &dyn ServantActivator, active: Active) {
        let Active { servant, id, .. } = active;
        let etherealizes = self.inner.etherealizes.load(Ordering::Acquire);
        let _priority = self.keep_priority();
        let _running = InvocationGuard::servant_manager(self);
        // A servant manager that panics has received its servant.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            if etherealizes {
                let identity = servant.identity();
                let remaining =
                    self.inner.servants.has(identity) || self.find_servant(identity).is_some();
                activator.etherealize(&id, self, servant, self.is_ending(), remaining);
            } else {
                drop(servant);
            }
        }));
        self.inner.changing.unmark(&id);
    }

    /// Drops an unused value of the application. That runs code of the application, which must not
    /// wait for requests in progress here; and if it panics, no request must be affected.
    pub(super) fn let_go<T>(&self, given: T) {
        let _running = InvocationGuard::servant_manager(self);
        let _ = catch_unwind(AssertUnwindSafe(|| drop(given)));
    }

    /// The object of a servant that can be only one.
    fn find_servant(&self, identity: usize) -> Option<ActiveRef<'_>> {
        self.inner.servants.find(identity, |index| {
            let active = self.in_use(self.inner.objects.at_index(index)?);
            (active.servant.identity() == identity).then_some(active)
        })
    }

    fn activator_of_servants(&self) -> Option<Arc<dyn ServantActivator>> {
        match self.inner.servant_manager.get().as_deref() {
            Some(ServantManager::Activator(activator)) => Some(activator.clone()),
            _ => None,
        }
    }
}

/// The length of an id of an incarnation and a number.
pub(crate) const NUMBERED: usize = 16;
