//! The sources of a request's servant, and the application's interface to them.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use chronorb_giop::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use chronorb_rt::{Deadline, Full, RemoveOutcome, SlotRef};

use super::current::PassedTarget;
use super::in_progress::BeginOutcome;
use super::key::Hint;
use super::table::ActiveRef;
use super::{
    ActivateError, Cookie, InvocationGuard, ObjectId, Poa, Refusal, SerialGuard, ServantActivator,
    ServantError, ServantLocator, ServantManager, ServantManagerError,
};
use crate::call::{Servant, Skeleton, bad_operation};
use crate::core::Core;
use crate::failure::DISCARDED;
use crate::rtcorba::Priority;

/// A value that can be activated: a skeleton, or one that is shared already.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no skeleton",
    label = "requests do not reach it",
    note = "a servant of an interface `Quoter` is passed in its skeleton, \
            `QuoterSkeleton::new(servant)`"
)]
pub trait IntoServant {
    /// The shared form.
    fn into_servant(self) -> Servant;
}

impl<S: Skeleton> IntoServant for S {
    #[expect(clippy::disallowed_methods, reason = "once for each servant")]
    fn into_servant(self) -> Servant {
        Arc::new(self)
    }
}

impl IntoServant for Servant {
    fn into_servant(self) -> Servant {
        self
    }
}

impl IntoServant for &Servant {
    fn into_servant(self) -> Servant {
        self.clone()
    }
}

/// A servant that was made for one request, until it is dropped.
pub(crate) enum RequestServant<'p> {
    /// A servant of the active object map.
    Active(ActiveRef<'p>),
    /// One that the POA does not remember.
    Transient(TransientServant<'p>),
}

/// The servant that a request calls. Both kinds stay where they were found, because moving them
/// costs the path of a request more than a reference.
#[derive(Clone, Copy)]
pub(crate) enum RequestTarget<'r> {
    /// A servant of the active object map.
    Active(&'r ActiveRef<'r>),
    /// One that the POA does not remember.
    Transient(&'r TransientServant<'r>),
}

/// A default servant, or one that a locator has given.
pub(crate) struct TransientServant<'p> {
    id: ObjectId,
    /// The priority in the reference.
    priority: Option<Priority>,
    kind: Kind<'p>,
}

enum Kind<'p> {
    Default(DefaultRef<'p>),
    Locator(LocatorServant<'p>),
}

/// The default servant in use. Where it was replaced, it is dropped with the last one.
struct DefaultRef<'p> {
    poa: &'p Poa,
    slot: Option<SlotRef<'p, Servant>>,
}

struct LocatorServant<'p> {
    poa: &'p Poa,
    locator: Arc<dyn ServantLocator>,
    id: ObjectId,
    operation: &'p str,
    /// Until it is given back.
    servant: Option<(Servant, Cookie)>,
    _serial: Option<SerialGuard<'p>>,
}

impl RequestServant<'_> {
    /// Drops a servant in its place, if there is one.
    #[inline(always)]
    pub(crate) fn leave(this: &mut Option<Self>) {
        if this.is_some() {
            Self::end(this);
        }
    }

    #[cold]
    #[inline(never)]
    fn end(this: &mut Option<Self>) {
        *this = None;
    }

    #[cold]
    pub(crate) fn target(&self) -> RequestTarget<'_> {
        match self {
            Self::Active(active) => RequestTarget::Active(active),
            Self::Transient(passing) => RequestTarget::Transient(passing),
        }
    }
}

impl<'r> RequestTarget<'r> {
    #[inline]
    pub(crate) fn servant(self) -> &'r dyn Skeleton {
        match self {
            Self::Active(active) => &*active.servant,
            Self::Transient(passing) => &**passing.shared(),
        }
    }

    #[inline]
    pub(crate) fn id(self) -> &'r ObjectId {
        match self {
            Self::Active(active) => &active.id,
            Self::Transient(passing) => &passing.id,
        }
    }

    /// Notes that the calling thread serves a request for it, for
    /// [`PoaCurrent`](super::PoaCurrent).
    #[inline(always)]
    pub(crate) fn begin(self, core: &Core, poa: &Poa) -> InvocationGuard {
        match self {
            Self::Active(active) => InvocationGuard::active(core, poa, active.key()),
            Self::Transient(passing) => passing.begin(poa),
        }
    }
}

impl TransientServant<'_> {
    #[inline(never)]
    fn begin(&self, poa: &Poa) -> InvocationGuard {
        let target = PassedTarget {
            id: self.id.clone(),
            servant: self.shared().clone(),
            priority: self.priority,
        };
        InvocationGuard::passing(poa, target)
    }

    fn shared(&self) -> &Servant {
        let servant = match &self.kind {
            Kind::Default(servant) => servant.slot.as_deref(),
            Kind::Locator(located) => located.servant.as_ref().map(|(servant, _)| servant),
        };
        // It is given back only when this is dropped.
        servant.expect("the servant of a request in progress is there")
    }
}

impl Drop for DefaultRef<'_> {
    fn drop(&mut self) {
        if let Some(servant) = self.slot.take().and_then(SlotRef::release) {
            self.poa.let_go(servant);
        }
    }
}

impl Drop for LocatorServant<'_> {
    fn drop(&mut self) {
        let Some((servant, cookie)) = self.servant.take() else {
            return;
        };
        let _running = InvocationGuard::servant_manager(self.poa);
        // The answer is made already; a panic here must not take it back.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            self.locator
                .postinvoke(&self.id, self.poa, self.operation, cookie, servant);
        }));
    }
}

impl Poa {
    /// Sets the servant of all objects that are not in the active object map.
    ///
    /// # Errors
    /// [`ServantError::WrongPolicy`] where the POA uses no default servant; `NO_RESOURCES` where
    /// very many former ones are still in use.
    pub fn set_servant(&self, servant: impl IntoServant) -> Result<(), ServantError> {
        if !self.policies().uses_default_servant() {
            return Err(ServantError::WrongPolicy);
        }
        let before = self.set_default_servant(Some(servant.into_servant()));
        drop(before.map_err(|Full| NO_RESOURCES)?);
        Ok(())
    }

    /// The servant of all objects that are not in the active object map.
    ///
    /// # Errors
    /// [`ServantError::WrongPolicy`] where the POA uses none; [`ServantError::NoServant`] where
    /// none was set.
    pub fn servant(&self) -> Result<Servant, ServantError> {
        if !self.policies().uses_default_servant() {
            return Err(ServantError::WrongPolicy);
        }
        let servant = self.inner.default_servant.get();
        servant
            .map(|servant| servant.clone())
            .ok_or(ServantError::NoServant)
    }

    /// Sets the activator that makes the servants of objects which are not in the active object
    /// map.
    ///
    /// # Errors
    /// [`ServantManagerError::WrongPolicy`] where the POA uses no servant manager; `OBJ_ADAPTER`
    /// (OMG minor 4) where it does not retain servants, and so needs a locator; `BAD_INV_ORDER`
    /// (OMG minor 6) where there is one already.
    #[expect(clippy::disallowed_methods, reason = "once for each POA")]
    pub fn set_servant_activator(
        &self,
        activator: impl ServantActivator,
    ) -> Result<(), ServantManagerError> {
        self.set_servant_manager(ServantManager::Activator(Arc::new(activator)))
    }

    /// Sets the locator that provides the servant of each request.
    ///
    /// # Errors
    /// [`ServantManagerError::WrongPolicy`] where the POA uses no servant manager; `OBJ_ADAPTER`
    /// (OMG minor 4) where it retains servants, and so needs an activator; `BAD_INV_ORDER` (OMG
    /// minor 6) where there is one already.
    #[expect(clippy::disallowed_methods, reason = "once for each POA")]
    pub fn set_servant_locator(
        &self,
        locator: impl ServantLocator,
    ) -> Result<(), ServantManagerError> {
        self.set_servant_manager(ServantManager::Locator(Arc::new(locator)))
    }

    /// Sets a servant manager that others may share.
    ///
    /// # Errors
    /// As [`set_servant_activator`](Self::set_servant_activator) and
    /// [`set_servant_locator`](Self::set_servant_locator).
    pub fn set_servant_manager(&self, manager: ServantManager) -> Result<(), ServantManagerError> {
        if !self.policies().uses_servant_manager() {
            return Err(ServantManagerError::WrongPolicy);
        }
        let is_activator = matches!(manager, ServantManager::Activator(_));
        if is_activator != self.policies().retains() {
            return Err(NO_SERVANT_MANAGER.into());
        }
        // Under the lock of threads that change the map and check for a manager.
        let _writing = self.inner.writing.lock();
        if self.inner.servant_manager.get().is_some() {
            let kind = SystemExceptionKind::BadInvOrder;
            return Err(SystemException::no(kind, minor::SERVANT_MANAGER_ALREADY_SET).into());
        }
        let set = self.inner.servant_manager.set(Some(manager));
        set.map(drop).map_err(|Full| NO_RESOURCES.into())
    }

    /// The servant manager; `None` before it is set.
    ///
    /// # Errors
    /// [`ServantManagerError::WrongPolicy`] where the POA uses none.
    pub fn servant_manager(&self) -> Result<Option<ServantManager>, ServantManagerError> {
        if !self.policies().uses_servant_manager() {
            return Err(ServantManagerError::WrongPolicy);
        }
        let manager = self.inner.servant_manager.get();
        Ok(manager.map(|manager| manager.clone()))
    }

    /// Whether a request for an object would find a servant, as far as it can be known without a
    /// servant manager.
    pub(crate) fn has_servant(&self, hint: Hint, id: &[u8]) -> bool {
        self.find(hint, id).is_some()
            || self.inner.default_servant.get().is_some()
            || self.inner.servant_manager.get().is_some()
    }

    /// Releases everything that the application has set, at the end.
    pub(super) fn forget_application(&self) {
        self.let_go(self.set_default_servant(None));
        self.let_go(self.inner.activator.lock().take());
        // Otherwise an object is being looked up right now, whose servant is then returned.
        if self.inner.changing.is_empty() {
            let manager = {
                let _writing = self.inner.writing.lock();
                self.inner.servant_manager.set(None)
            };
            self.let_go(manager);
        }
    }

    fn set_default_servant(
        &self,
        servant: Option<Servant>,
    ) -> Result<RemoveOutcome<Servant>, Full> {
        let _writing = self.inner.writing.lock();
        self.inner.default_servant.set(servant)
    }

    /// The servant of a request for an object that is not active.
    ///
    /// # Errors
    /// The refusals of a servant manager; `OBJECT_NOT_EXIST` if nothing else serves an object that
    /// is not active; `OBJ_ADAPTER` with OMG minor 3 (no default servant), 4 (no servant manager)
    /// or 5 (the servant is another object already).
    ///
    /// `priority` is the object's own.
    pub(crate) fn make_servant<'p>(
        &'p self,
        id: &[u8],
        priority: Option<Priority>,
        operation: &'p [u8],
    ) -> Result<RequestServant<'p>, Refusal> {
        let policies = self.policies();
        if policies.uses_default_servant() {
            let servant = self.inner.default_servant.get().ok_or(NO_DEFAULT_SERVANT)?;
            let servant = DefaultRef {
                poa: self,
                slot: Some(servant),
            };
            return Ok(RequestServant::Transient(TransientServant {
                id: ObjectId::new(id),
                priority,
                kind: Kind::Default(servant),
            }));
        }
        if !policies.uses_servant_manager() {
            return Err(NO_SUCH_OBJECT.into());
        }
        let manager = self.inner.servant_manager.get();
        match manager.as_deref().ok_or(NO_SERVANT_MANAGER)? {
            ServantManager::Activator(activator) => {
                self.incarnate(&**activator, &ObjectId::new(id), priority)
            }
            ServantManager::Locator(locator) => {
                self.locate(locator.clone(), ObjectId::new(id), priority, operation)
            }
        }
    }

    /// Makes the activator create the servant of an object; one thread does, others wait for it.
    fn incarnate(
        &self,
        activator: &dyn ServantActivator,
        id: &ObjectId,
        priority: Option<Priority>,
    ) -> Result<RequestServant<'_>, Refusal> {
        let deadline = Deadline::after(self.core().config.hold_timeout);
        let changing = &self.inner.changing;
        loop {
            match changing.begin(id, deadline) {
                BeginOutcome::Now => {}
                // The activator calls the object that it is to make.
                BeginOutcome::Already => return Err(NO_SUCH_OBJECT.into()),
                BeginOutcome::TimedOut => return Err(DISCARDED.into()),
            }
            let made = match self.find(self.hint(id), id.as_bytes()) {
                // By another thread, which was first.
                Some(active) => Some(Ok(active)),
                // That was first, and the object deactivated again: its servant is still to be
                // given back.
                None if changing.is_marked(id) => None,
                None => Some(self.incarnate_now(activator, id, priority)),
            };
            changing.end(id);
            if let Some(made) = made {
                return made.map(RequestServant::Active);
            }
        }
    }

    fn incarnate_now(
        &self,
        activator: &dyn ServantActivator,
        id: &ObjectId,
        priority: Option<Priority>,
    ) -> Result<ActiveRef<'_>, Refusal> {
        // Returning the former servant may have to wait for this thread to leave the POA. So it
        // enters only now, after that.
        let _serial = self.enter(self.core().config.hold_timeout)?;
        let running = InvocationGuard::servant_manager(self);
        let ask = || activator.incarnate(id, self);
        let asked = catch_unwind(AssertUnwindSafe(ask));
        drop(running);
        let servant = asked.unwrap_or(Err(MANAGER_PANICKED.into()))?;
        let priority = self.declared_priority(id.as_bytes()).or(priority);
        let activated = self.activate(Some(id.clone()), servant, priority);
        match activated {
            // Its request is served by it, even where it is deactivated at once.
            Ok(active) => return Ok(active),
            // The activator has activated the object itself.
            Err(ActivateError::ObjectAlreadyActive) => {}
            Err(ActivateError::ServantAlreadyActive) => return Err(POLICY_VIOLATED.into()),
            Err(ActivateError::System(exception)) => return Err(exception.into()),
            Err(ActivateError::Caused(failure)) => return Err(failure.exception().into()),
            Err(ActivateError::WrongPolicy) => return Err(NO_SUCH_OBJECT.into()),
        }
        let active = self.find(self.hint(id), id.as_bytes());
        active.ok_or_else(|| NO_SUCH_OBJECT.into())
    }

    fn locate<'p>(
        &'p self,
        locator: Arc<dyn ServantLocator>,
        id: ObjectId,
        priority: Option<Priority>,
        operation: &'p [u8],
    ) -> Result<RequestServant<'p>, Refusal> {
        let operation = std::str::from_utf8(operation).map_err(|_| bad_operation())?;
        let serial = self.enter(self.core().config.hold_timeout)?;
        let running = InvocationGuard::servant_manager(self);
        let ask = || locator.preinvoke(&id, self, operation);
        let asked = catch_unwind(AssertUnwindSafe(ask));
        drop(running);
        let servant = asked.unwrap_or(Err(MANAGER_PANICKED.into()))?;
        let located = LocatorServant {
            poa: self,
            locator,
            id: id.clone(),
            operation,
            servant: Some(servant),
            _serial: serial,
        };
        let kind = Kind::Locator(located);
        Ok(RequestServant::Transient(TransientServant {
            id,
            priority,
            kind,
        }))
    }
}

/// Very many former ones are still in use.
const NO_RESOURCES: SystemException = SystemException::no(SystemExceptionKind::NoResources, 0);
const NO_SUCH_OBJECT: SystemException =
    SystemException::no(SystemExceptionKind::ObjectNotExist, minor::NO_SUCH_OBJECT);
const NO_DEFAULT_SERVANT: SystemException =
    SystemException::no(SystemExceptionKind::ObjAdapter, minor::NO_DEFAULT_SERVANT);
const NO_SERVANT_MANAGER: SystemException =
    SystemException::no(SystemExceptionKind::ObjAdapter, minor::NO_SERVANT_MANAGER);
const POLICY_VIOLATED: SystemException = SystemException::no(
    SystemExceptionKind::ObjAdapter,
    minor::SERVANT_VIOLATES_POLICY,
);
const MANAGER_PANICKED: SystemException = SystemException::new(
    SystemExceptionKind::Unknown,
    minor::SERVANT_PANICKED,
    CompletionStatus::No,
);
