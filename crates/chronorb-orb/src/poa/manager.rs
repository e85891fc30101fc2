//! POA managers, which admit, hold, discard or refuse requests.

use std::sync::{Arc, Weak};
use std::time::Duration;

use chronorb_giop::{SystemException, SystemExceptionKind, minor};
use chronorb_rt::{Deadline, Gate, Key, PiMutex};
use chronorb_transport::Endpoint;
use thiserror::Error;

use super::gate::Waiters;
use super::{Poa, WaitError, is_in_upcall};
use crate::core::Core;

/// A controller of the requests to its POAs (CORBA 3.3, 15.3.4). A handle.
#[derive(Clone, Debug)]
pub struct PoaManager {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    id: String,
    /// The endpoints that references of its POAs name; all, if it is empty.
    endpoints: Vec<Endpoint>,
    core: Weak<Core>,
    gate: Gate,
    /// Lanes with requests that it holds.
    waiters: Waiters,
    /// The places of its POAs.
    poas: PiMutex<Vec<Key>>,
}

/// The treatment of requests by a manager.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PoaManagerState {
    /// They wait, for the ORB's hold time-out at most.
    Holding,
    /// They are served.
    Active,
    /// They are answered with `TRANSIENT` (OMG minor 1).
    Discarding,
    /// They are answered with `OBJ_ADAPTER`, for good.
    Inactive,
}

/// The manager is inactive, and stays so.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the POA manager is inactive")]
pub struct AdapterInactive;

/// A manager's state could not be changed.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum DeactivateError {
    /// The manager is inactive, and stays so.
    #[error(transparent)]
    Inactive(#[from] AdapterInactive),
    /// The caller is a servant of the same ORB, and would wait for itself. Nothing was changed.
    #[error(transparent)]
    Wait(#[from] WaitError),
}

impl PoaManager {
    pub(super) fn new(core: &Arc<Core>, id: Option<&str>) -> Result<Self, ManagerAlreadyExists> {
        core.poas.managers.add(core, id, Vec::new())
    }

    /// Admits requests.
    ///
    /// # Errors
    /// [`AdapterInactive`] after [`deactivate`](Self::deactivate).
    pub fn activate(&self) -> Result<(), AdapterInactive> {
        self.change(ACTIVE)?;
        if let Some(core) = self.inner.core.upgrade() {
            core.server.log_listening(&core);
        }
        Ok(())
    }

    /// Holds requests. They occupy no thread of their lane meanwhile, except with a thread for each
    /// connection. With `wait_for_completion` this returns when no request is in progress, or the
    /// state has been changed again.
    ///
    /// # Errors
    /// [`DeactivateError::Inactive`] after [`deactivate`](Self::deactivate);
    /// [`DeactivateError::Wait`] where a servant of the same ORB waits.
    pub fn hold_requests(&self, wait_for_completion: bool) -> Result<(), DeactivateError> {
        self.end_requests(HOLDING, wait_for_completion)
    }

    /// Answers requests with `TRANSIENT`. With `wait_for_completion` this returns when no request
    /// is in progress, or the state has been changed again.
    ///
    /// # Errors
    /// As [`hold_requests`](Self::hold_requests).
    pub fn discard_requests(&self, wait_for_completion: bool) -> Result<(), DeactivateError> {
        self.end_requests(DISCARDING, wait_for_completion)
    }

    /// Answers requests with `OBJ_ADAPTER` from now on. With `etherealize_objects` the objects of
    /// its POAs that have a [`ServantActivator`](super::ServantActivator) are deactivated, and
    /// their servants returned to it. With `wait_for_completion` this returns after all requests in
    /// progress and the deactivations, except for work of the main thread.
    ///
    /// # Errors
    /// As [`hold_requests`](Self::hold_requests).
    pub fn deactivate(
        &self,
        etherealize_objects: bool,
        wait_for_completion: bool,
    ) -> Result<(), DeactivateError> {
        self.check_wait(wait_for_completion)?;
        self.change(INACTIVE)?;
        if etherealize_objects {
            self.poas().iter().for_each(Poa::give_servants_back);
        }
        if wait_for_completion {
            self.wait(INACTIVE);
        }
        Ok(())
    }

    /// Returns the present state.
    pub fn state(&self) -> PoaManagerState {
        match self.inner.gate.get() {
            HOLDING => PoaManagerState::Holding,
            ACTIVE => PoaManagerState::Active,
            DISCARDING => PoaManagerState::Discarding,
            _ => PoaManagerState::Inactive,
        }
    }

    /// Returns the name, which is unique in the ORB.
    pub fn id(&self) -> &str {
        &self.inner.id
    }

    /// Whether requests pass without waiting.
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.inner.gate.get() == ACTIVE
    }

    /// Whether requests wait.
    pub(super) fn is_holding(&self) -> bool {
        self.inner.gate.get() == HOLDING
    }

    pub(super) fn waiters(&self) -> &Waiters {
        &self.inner.waiters
    }

    /// Admits one request, after waiting if necessary.
    pub(crate) fn admit(&self, hold: Duration) -> Result<(), SystemException> {
        let mut state = self.inner.gate.get();
        if state == HOLDING {
            state = self.inner.gate.wait_while(HOLDING, Deadline::after(hold));
        }
        match state {
            ACTIVE => Ok(()),
            INACTIVE => Err(SystemException::no(
                SystemExceptionKind::ObjAdapter,
                minor::POA_MANAGER_INACTIVE,
            )),
            _ => Err(SystemException::no(
                SystemExceptionKind::Transient,
                minor::REQUEST_DISCARDED,
            )),
        }
    }

    /// Returns the endpoints that references of its POAs may name; empty for all.
    pub(super) fn endpoints(&self) -> &[Endpoint] {
        &self.inner.endpoints
    }

    pub(super) fn is_of(&self, core: &Arc<Core>) -> bool {
        std::ptr::eq(self.inner.core.as_ptr(), Arc::as_ptr(core))
    }

    pub(super) fn add(&self, place: Key) {
        self.inner.poas.lock().push(place);
    }

    pub(super) fn remove(&self, place: Key) {
        self.inner.poas.lock().retain(|of| *of != place);
    }

    /// Makes the manager inactive at the end of the ORB.
    pub(crate) fn make_inactive(&self) {
        // It may be inactive already, as intended.
        let _ = self.change(INACTIVE);
    }

    fn end_requests(&self, state: u32, wait: bool) -> Result<(), DeactivateError> {
        self.check_wait(wait)?;
        self.change(state)?;
        if wait {
            self.wait(state);
        }
        Ok(())
    }

    fn check_wait(&self, wait: bool) -> Result<(), WaitError> {
        let core = self.inner.core.upgrade();
        if wait && core.is_some_and(|core| is_in_upcall(&core)) {
            let kind = SystemExceptionKind::BadInvOrder;
            return Err(SystemException::no(kind, minor::WOULD_DEADLOCK).into());
        }
        Ok(())
    }

    /// Waits until no request is in progress in any of its POAs, while the state is `state`.
    /// Requests do not announce their end, because that would cost time in each of them: they are
    /// polled at intervals.
    fn wait(&self, state: u32) {
        while self.inner.gate.get() == state && self.poas().iter().any(Poa::is_busy) {
            self.inner
                .gate
                .wait_while(state, Deadline::after(LOOK_AGAIN));
        }
    }

    fn poas(&self) -> Vec<Poa> {
        let Some(core) = self.inner.core.upgrade() else {
            return Vec::new();
        };
        let places = self.inner.poas.lock().clone();
        let poas = places
            .into_iter()
            .filter_map(|place| core.poas.held_at(place));
        poas.collect()
    }

    fn change(&self, to: u32) -> Result<(), AdapterInactive> {
        let gate = &self.inner.gate;
        let mut state = gate.get();
        while state != INACTIVE {
            match gate.compare_set(state, to) {
                Ok(()) => {
                    self.inner.waiters.ring();
                    return Ok(());
                }
                Err(present) => state = present,
            }
        }
        Err(AdapterInactive)
    }
}

impl PartialEq for PoaManager {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Eq for PoaManager {}

/// Makes and finds POA managers (`PortableServer::POAManagerFactory`; CORBA 3.3, 15.3.4.7).
#[derive(Clone, Debug)]
pub struct PoaManagerFactory {
    core: Arc<Core>,
}

/// There is a manager of this name.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("there is a POA manager of this name already")]
pub struct ManagerAlreadyExists;

/// A manager with endpoints of its own could not be created.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum CreateManagerError {
    /// There is a manager of this name.
    #[error(transparent)]
    AlreadyExists(#[from] ManagerAlreadyExists),
    /// This is not an endpoint of the ORB's configuration.
    #[error("the ORB does not listen at {0:?}; give it by -ORBListenEndpoints")]
    NoEndpoint(String),
}

impl PoaManagerFactory {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// Makes a manager, which holds requests until it is activated.
    ///
    /// # Errors
    /// [`ManagerAlreadyExists`]. Names that begin with `chronorb.` are taken.
    pub fn create(&self, id: &str) -> Result<PoaManager, ManagerAlreadyExists> {
        if id.starts_with(OWN_ID) {
            return Err(ManagerAlreadyExists);
        }
        PoaManager::new(&self.core, Some(id))
    }

    /// Makes a manager whose POAs' references name only these of the ORB's endpoints, for example
    /// those of a separate network, or of one protocol (as TAO's `EndpointPolicy`). Requests that
    /// arrive at other endpoints are served too.
    ///
    /// # Errors
    /// [`CreateManagerError::NoEndpoint`] for none at all, or one that the configuration does not
    /// name (`-ORBListenEndpoints`, `-ORBLaneListenEndpoints`), whatever its options;
    /// [`CreateManagerError::AlreadyExists`] as [`create`](Self::create).
    pub fn create_with_endpoints(
        &self,
        id: &str,
        endpoints: &[Endpoint],
    ) -> Result<PoaManager, CreateManagerError> {
        let config = &self.core.config;
        let of_lanes = config.lane_listen_endpoints.iter().map(|(_, e)| e);
        let given: Vec<_> = config.listen_endpoints.iter().chain(of_lanes).collect();
        let is_given = |one: &&Endpoint| given.iter().any(|given| given.is_same_place(one));
        if let Some(unknown) = endpoints.iter().find(|endpoint| !is_given(endpoint)) {
            return Err(CreateManagerError::NoEndpoint(unknown.to_string()));
        }
        if endpoints.is_empty() {
            return Err(CreateManagerError::NoEndpoint(String::new()));
        }
        if id.starts_with(OWN_ID) {
            return Err(ManagerAlreadyExists.into());
        }
        let managers = &self.core.poas.managers;
        Ok(managers.add(&self.core, Some(id), endpoints.to_vec())?)
    }

    /// Returns all managers of the ORB that are still referenced.
    pub fn list(&self) -> Vec<PoaManager> {
        self.core.poas.managers.list()
    }

    /// The manager of this name.
    pub fn find(&self, id: &str) -> Option<PoaManager> {
        self.list().into_iter().find(|manager| manager.id() == id)
    }
}

/// The managers of an ORB.
#[derive(Debug, Default)]
pub(crate) struct Managers {
    all: PiMutex<(Vec<Weak<Inner>>, u64)>,
}

impl Managers {
    fn add(
        &self,
        core: &Arc<Core>,
        id: Option<&str>,
        endpoints: Vec<Endpoint>,
    ) -> Result<PoaManager, ManagerAlreadyExists> {
        let mut all = self.all.lock();
        let (managers, made) = &mut *all;
        if managers.len() == managers.capacity() {
            managers.retain(|manager| manager.strong_count() > 0);
        }
        let id = match id {
            Some(id) => {
                let mut present = managers.iter().filter_map(Weak::upgrade);
                if present.any(|manager| manager.id == id) {
                    return Err(ManagerAlreadyExists);
                }
                id.to_owned()
            }
            None => {
                *made += 1;
                format!("{OWN_ID}{made}")
            }
        };
        let inner = Arc::new(Inner {
            id,
            endpoints,
            core: Arc::downgrade(core),
            gate: Gate::new(HOLDING),
            waiters: Waiters::default(),
            poas: PiMutex::default(),
        });
        managers.push(Arc::downgrade(&inner));
        Ok(PoaManager { inner })
    }

    fn list(&self) -> Vec<PoaManager> {
        let all = self.all.lock();
        let present = all.0.iter().filter_map(Weak::upgrade);
        present.map(|inner| PoaManager { inner }).collect()
    }
}

const HOLDING: u32 = 0;
const ACTIVE: u32 = 1;
const DISCARDING: u32 = 2;
const INACTIVE: u32 = 3;

/// The beginning of the names of managers that were made without one.
const OWN_ID: &str = "chronorb.";
/// The interval at which the end of the last request is checked.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
