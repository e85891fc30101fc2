//! The POA itself.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, OnceLock};

use chronorb_giop::{SystemException, SystemExceptionKind, minor};
use chronorb_rt::{Gate, Key, PiMutex};

use super::authorizer::Guard;
use super::identities::Identities;
use super::in_progress::InProgress;
use super::key::slot_octets;
use super::replaceable::Replaceable;
use super::serial::Serial;
use super::table::Active;
use super::{
    AdapterActivator, ObjectId, PoaManager, PoaManagerFactory, PoaManagerState, Policies,
    PriorityModel, ServantManager, ThreadModel,
};
use crate::call::Servant;
use crate::core::Core;
use crate::demux::{Directory, DirectoryEntry};
use crate::lanes::{PoolHandle, PoolUse};
use crate::rtcorba::{OwnPriority, Priority, PriorityGuard, request_priority};

/// A POA. A handle; clones are the same POA.
///
/// ```no_run
/// # use chronorb_orb::{Orb, Skeleton};
/// # fn example(orb: Orb, servant: impl Skeleton) -> Result<(), Box<dyn std::error::Error>> {
/// let root = orb.root_poa()?;
/// let id = root.activate_object(servant)?;
/// println!("{}", orb.object_to_string(&root.id_to_reference(&id)?));
/// root.manager().activate()?;
/// orb.run_until_signal()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Poa {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) core: Arc<Core>,
    pub(super) name: String,
    /// The names from the root's child on, each after a `/`; empty for the root.
    pub(super) path: String,
    pub(super) parent: Option<Poa>,
    pub(super) manager: PoaManager,
    pub(super) policies: Policies,
    /// The most urgent priority that a client may propagate, if there is a bound.
    pub(super) ceiling: Option<Priority>,
    /// The pool that it names, or the ORB's own from the first object on.
    pub(super) pool: OnceLock<Arc<PoolHandle>>,
    /// Keeps that pool from being destroyed before it.
    pub(super) pool_use: PiMutex<Option<PoolUse>>,
    /// The key in the table of POAs.
    pub(super) place: Key,
    /// [`ALIVE`], or a state before or after it.
    pub(super) state: Gate,
    pub(super) children: PiMutex<HashMap<String, Poa>>,
    /// Children that the adapter activator is making.
    pub(super) adapting: InProgress<String>,
    pub(super) activator: PiMutex<Option<Arc<dyn AdapterActivator>>>,
    /// The number of holds that delay the completion of its destruction: its own, as long as a
    /// request may be in it, and one for each child.
    pub(super) holds: AtomicUsize,
    /// Whether servants are given back to the activator at the end.
    pub(super) etherealizes: AtomicBool,
    pub(super) objects: Directory<Active>,
    pub(super) servants: Identities,
    /// Held while `objects` and `servants` change, so that they always agree.
    pub(super) writing: PiMutex<()>,
    /// Objects that the servant activator is making or taking back.
    pub(super) changing: InProgress<ObjectId>,
    /// The priorities that references to objects were created with.
    pub(super) declared: PiMutex<HashMap<ObjectId, Priority>>,
    pub(super) servant_manager: Replaceable<ServantManager>,
    pub(super) default_servant: Replaceable<Servant>,
    /// Asks the authorizer, once there is one.
    pub(super) guard: OnceLock<Box<dyn Guard>>,
    pub(super) serial: Option<Serial>,
}

/// Made by an adapter activator that has not returned: requests wait.
pub(super) const INITIALISING: u32 = 0;
pub(super) const ALIVE: u32 = 1;
/// Alive, and its keys are authenticated or it has an authorizer, which each request is asked by.
/// Requests of other POAs do not look for these.
pub(super) const GUARDED: u32 = 2;
/// No further requests enter; some may be in progress.
pub(super) const DESTROYING: u32 = 3;
pub(super) const DESTROYED: u32 = 4;

impl Poa {
    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The POA that made it; `None` for the root.
    pub fn parent(&self) -> Option<&Self> {
        self.inner.parent.as_ref()
    }

    /// The POAs that it made, in no particular order.
    pub fn children(&self) -> Vec<Self> {
        self.inner.children.lock().values().cloned().collect()
    }

    /// Returns the manager that controls its requests.
    pub fn manager(&self) -> &PoaManager {
        &self.inner.manager
    }

    /// Returns the factory of managers for several POAs.
    pub fn manager_factory(&self) -> PoaManagerFactory {
        PoaManagerFactory::new(self.inner.core.clone())
    }

    /// Octets that no other POA of the process has (`PortableServer::POA::id`).
    pub fn id(&self) -> Vec<u8> {
        let number = self.inner.core.number.to_be_bytes();
        [&number[..], &slot_octets(self.inner.place)].concat()
    }

    /// Returns the number of objects in its active object map.
    pub fn active_objects(&self) -> usize {
        self.inner.objects.len()
    }

    /// The names from the root's child on, with a `/` between them; its own where it is the root.
    pub(super) fn path_of_names(&self) -> String {
        match self.inner.path.strip_prefix('/') {
            Some(path) => path.to_owned(),
            None => self.inner.name.clone(),
        }
    }

    pub(super) fn serial(&self) -> Option<&Serial> {
        self.inner.serial.as_ref()
    }

    pub(crate) fn priority_model(&self) -> Option<(PriorityModel, Priority)> {
        self.inner.policies.priority_model
    }

    pub(crate) fn thread_model(&self) -> ThreadModel {
        self.inner.policies.thread
    }

    pub(crate) fn place(&self) -> Key {
        self.inner.place
    }

    /// The pool that serves its objects. That of the ORB opens its endpoints and starts its
    /// threads when the first object needs them, so that a server of lanes alone has no others.
    pub(crate) fn pool(&self) -> Result<&Arc<PoolHandle>, SystemException> {
        if let Some(pool) = self.inner.pool.get() {
            return Ok(pool);
        }
        let pool = self.inner.core.server.default_pool(&self.inner.core)?;
        Ok(self.inner.pool.get_or_init(|| pool))
    }

    pub(super) fn policies(&self) -> &Policies {
        &self.inner.policies
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.inner.core
    }

    /// # Errors
    /// `BAD_INV_ORDER` (OMG minor 4) after shutdown, and `OBJECT_NOT_EXIST` (OMG minor 2) after
    /// the POA's destruction began.
    pub(super) fn check_alive(&self) -> Result<(), SystemException> {
        self.core().check_running()?;
        if self.inner.state.get() >= DESTROYING {
            let kind = SystemExceptionKind::ObjectNotExist;
            return Err(SystemException::no(kind, minor::NO_SUCH_ADAPTER));
        }
        Ok(())
    }

    /// Restores the priority of the calling thread after application code outside of a request.
    pub(super) fn keep_priority(&self) -> Option<PriorityGuard> {
        let own = OwnPriority {
            priority: request_priority(),
            scheduling: chronorb_rt::current().ok(),
        };
        PriorityGuard::enter(&self.core().rt.real_time, &own, None).ok()
    }

    /// Whether etherealization is part of an end: that of the POA or of its manager.
    pub(super) fn is_ending(&self) -> bool {
        self.inner.state.get() >= DESTROYING || self.manager().state() == PoaManagerState::Inactive
    }
}

impl DirectoryEntry for Poa {
    fn name(&self) -> &[u8] {
        self.inner.path.as_bytes()
    }
}

impl PartialEq for Poa {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Eq for Poa {}

impl fmt::Debug for Poa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poa")
            .field("name", &self.inner.name)
            .field("path", &self.inner.path)
            .field("manager", &self.inner.manager.state())
            .finish_non_exhaustive()
    }
}
