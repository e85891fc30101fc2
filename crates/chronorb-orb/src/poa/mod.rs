//! The Portable Object Adapter: where objects live.
//!
//! Source: CORBA 3.3 part 1, chapter 15.

mod key;
mod manager;
mod policy;
mod reference;
mod table;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chronorb_giop::{SystemException, SystemExceptionKind, minor};
use chronorb_rt::{Key, PiMutex, SlotRef, Slots};

pub use self::manager::{AdapterInactive, PoaManager, PoaManagerState};
pub(crate) use self::policy::Policies;
pub use self::policy::{
    ActivateError, CreatePoaError, IdAssignment, IdUniqueness, Lifespan, ObjectError, Policy,
    PriorityModel,
};
pub(crate) use self::table::PoaTable;
use crate::call::{Servant, Skeleton};
use crate::core::Core;
use crate::object::Object;
use crate::rtcorba::Priority;
use crate::server::Threadpool;

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
    inner: Arc<Inner>,
}

struct Inner {
    core: Arc<Core>,
    name: String,
    /// The names from the root's child on, separated by `/`; empty for the root.
    path: String,
    parent: Option<Poa>,
    children: PiMutex<HashMap<String, Poa>>,
    manager: PoaManager,
    policies: Policies,
    /// The pool that it names, or the ORB's own from the first object on.
    pool: OnceLock<Arc<Threadpool>>,
    /// Where it stands in the table of POAs.
    place: OnceLock<Key>,
    objects: Slots<Active>,
    /// Objects whose ids are not slot keys.
    by_id: PiMutex<HashMap<Box<[u8]>, Key>>,
    /// Servants of a `Unique` POA, by address.
    by_servant: PiMutex<HashMap<usize, Key>>,
    next_id: AtomicU64,
    destroyed: AtomicBool,
}

/// An object of a POA.
pub(crate) struct Active {
    pub(crate) servant: Servant,
    /// Set right after it got its slot, which a system id is made of.
    id: OnceLock<ObjectId>,
}

impl Active {
    pub(crate) fn id(&self) -> &ObjectId {
        self.id.get_or_init(|| ObjectId(Box::default()))
    }
}

/// Names an object within its POA.
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct ObjectId(Box<[u8]>);

impl ObjectId {
    /// The id with these octets.
    pub fn new(octets: impl Into<Vec<u8>>) -> Self {
        Self(octets.into().into_boxed_slice())
    }

    /// Its octets.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<&str> for ObjectId {
    fn from(text: &str) -> Self {
        Self::new(text.as_bytes())
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectId({})", self.0.escape_ascii())
    }
}

/// What can be activated: a skeleton, or one that is shared already.
pub trait IntoServant {
    /// The shared form.
    fn into_servant(self) -> Servant;
}

impl<S: Skeleton> IntoServant for S {
    fn into_servant(self) -> Servant {
        Arc::new(self)
    }
}

impl IntoServant for Servant {
    fn into_servant(self) -> Servant {
        self
    }
}

impl Poa {
    /// The root POA of an ORB; the first call makes it.
    pub(crate) fn root(core: &Arc<Core>) -> Result<Self, SystemException> {
        core.check_running()?;
        core.poas.root(|| {
            // Under the lock by which the end of the ORB takes the root away.
            core.check_running()?;
            let manager = PoaManager::new();
            Self::make(core, "RootPOA", None, manager, Policies::default(), None)
        })
    }

    fn make(
        core: &Arc<Core>,
        name: &str,
        parent: Option<&Self>,
        manager: PoaManager,
        policies: Policies,
        pool: Option<Arc<Threadpool>>,
    ) -> Result<Self, SystemException> {
        let path = match parent {
            None => String::new(),
            Some(parent) if parent.inner.path.is_empty() => escaped(name),
            Some(parent) => format!("{}/{}", parent.inner.path, escaped(name)),
        };
        if path.len() > key::MAX_PATH {
            let kind = SystemExceptionKind::ImpLimit;
            return Err(SystemException::no(kind, minor::POA_PATH_TOO_LONG));
        }
        let poa = Self {
            inner: Arc::new(Inner {
                core: core.clone(),
                name: name.to_owned(),
                path,
                parent: parent.cloned(),
                children: PiMutex::new(HashMap::new()),
                manager,
                policies,
                pool: pool.map_or_else(OnceLock::new, OnceLock::from),
                place: OnceLock::new(),
                objects: Slots::new(MAX_OBJECTS),
                by_id: PiMutex::new(HashMap::new()),
                by_servant: PiMutex::new(HashMap::new()),
                next_id: AtomicU64::new(0),
                destroyed: AtomicBool::new(false),
            }),
        };
        let place = core.poas.insert(&poa, poa.persistent_path())?;
        poa.inner.place.get_or_init(|| place);
        Ok(poa)
    }

    /// Makes a child POA. Without a manager it gets one of its own, which holds requests until
    /// it is activated.
    ///
    /// # Errors
    /// [`CreatePoaError::AdapterAlreadyExists`]; [`CreatePoaError::InvalidPolicy`] for a policy
    /// given twice, a thread pool that does not exist, a thread pool with lanes without a
    /// priority model, and a priority in the model that no lane has.
    pub fn create_poa(
        &self,
        name: &str,
        manager: Option<&PoaManager>,
        policies: &[Policy],
    ) -> Result<Self, CreatePoaError> {
        let core = &self.inner.core;
        core.check_running()?;
        self.check_alive()?;
        let effective =
            Policies::new(policies).map_err(|index| CreatePoaError::InvalidPolicy { index })?;
        let pool = self.pool_for(policies, &effective)?;
        let manager = manager.cloned().unwrap_or_else(PoaManager::new);
        let mut children = self.inner.children.lock();
        // Under the lock that `destroy` takes after it has marked the POA.
        self.check_alive()?;
        core.check_running()?;
        if children.contains_key(name) {
            return Err(CreatePoaError::AdapterAlreadyExists);
        }
        let child = Self::make(core, name, Some(self), manager, effective, pool)?;
        children.insert(name.to_owned(), child.clone());
        Ok(child)
    }

    /// The pool that the policies name, if it can serve what they say.
    fn pool_for(
        &self,
        list: &[Policy],
        policies: &Policies,
    ) -> Result<Option<Arc<Threadpool>>, CreatePoaError> {
        let invalid = |wanted: fn(&Policy) -> bool| CreatePoaError::InvalidPolicy {
            index: list.iter().position(wanted).unwrap_or_default() as u16,
        };
        let is_pool = |p: &Policy| matches!(p, Policy::Threadpool(_));
        let is_model = |p: &Policy| matches!(p, Policy::PriorityModel(..));
        let Some(id) = policies.threadpool else {
            return Ok(None);
        };
        let pool = self.inner.core.pools.lock().get(id);
        let pool = pool.ok_or_else(|| invalid(is_pool))?;
        if pool.has_lanes() {
            match policies.priority_model {
                None => return Err(invalid(is_pool)),
                Some((_, priority)) if pool.lane_of(priority).is_none() => {
                    return Err(invalid(is_model));
                }
                Some(_) => {}
            }
        }
        Ok(Some(pool))
    }

    /// The pool that serves its objects. That of the ORB opens its endpoints and starts its
    /// threads when the first object needs them, so that a server of lanes alone has no others.
    fn pool(&self) -> Result<&Threadpool, SystemException> {
        if let Some(pool) = self.inner.pool.get() {
            return Ok(pool);
        }
        let pool = Threadpool::default_of(&self.inner.core)?;
        Ok(self.inner.pool.get_or_init(|| pool))
    }

    /// Activates a servant under an id of the POA's making.
    ///
    /// # Errors
    /// [`ActivateError::WrongPolicy`] where ids come from the application;
    /// [`ActivateError::ServantAlreadyActive`] where the servant is an object already and the
    /// POA has [`IdUniqueness::Unique`].
    pub fn activate_object(&self, servant: impl IntoServant) -> Result<ObjectId, ActivateError> {
        if self.inner.policies.id_assignment != IdAssignment::System {
            return Err(ActivateError::WrongPolicy);
        }
        self.activate(None, servant.into_servant())
    }

    /// Activates a servant under an id of the application's making, or under one that a
    /// persistent POA made in an earlier run.
    ///
    /// # Errors
    /// [`ActivateError::ObjectAlreadyActive`]; [`ActivateError::ServantAlreadyActive`];
    /// `BAD_PARAM` (OMG minor 14) where ids come from the POA and this is none of them.
    pub fn activate_object_with_id(
        &self,
        id: impl Into<ObjectId>,
        servant: impl IntoServant,
    ) -> Result<(), ActivateError> {
        let id = id.into();
        let policies = &self.inner.policies;
        // Ids of the POA's own making come again after a restart, where they are persistent.
        let made_here =
            policies.lifespan == Lifespan::Persistent && id.as_bytes().len() == PERSISTENT_ID_LEN;
        if policies.id_assignment == IdAssignment::System && !made_here {
            let kind = SystemExceptionKind::BadParam;
            return Err(SystemException::no(kind, minor::INVALID_OBJECT_ID).into());
        }
        self.activate(Some(id), servant.into_servant()).map(drop)
    }

    fn activate(&self, id: Option<ObjectId>, servant: Servant) -> Result<ObjectId, ActivateError> {
        let inner = &*self.inner;
        inner.core.check_running()?;
        self.check_alive()?;
        self.pool()?;
        let id = match id {
            // A persistent id must not come again after a restart.
            None if inner.policies.lifespan == Lifespan::Persistent => {
                let mut octets = inner.core.incarnation.to_be_bytes().to_vec();
                let number = inner.next_id.fetch_add(1, Ordering::Relaxed);
                octets.extend_from_slice(&number.to_be_bytes());
                Some(ObjectId::new(octets))
            }
            given => given,
        };
        // Both tables are held over the whole change, so that they always agree.
        let mut by_servant = inner.by_servant.lock();
        let mut by_id = inner.by_id.lock();
        // Under the lock that `destroy` takes after it has marked the POA.
        self.check_alive()?;
        let address = Arc::as_ptr(&servant).cast::<()>() as usize;
        let unique = inner.policies.id_uniqueness == IdUniqueness::Unique;
        if unique && by_servant.contains_key(&address) {
            return Err(ActivateError::ServantAlreadyActive);
        }
        if id
            .as_ref()
            .is_some_and(|id| by_id.contains_key(id.as_bytes()))
        {
            return Err(ActivateError::ObjectAlreadyActive);
        }
        let active = Active {
            servant,
            id: OnceLock::new(),
        };
        let key = inner.objects.insert(active).map_err(|_| {
            SystemException::no(SystemExceptionKind::ImpLimit, minor::TOO_MANY_OBJECTS)
        })?;
        let named = id.is_some();
        let id = id.unwrap_or_else(|| ObjectId::new(key::slot_key_octets(key)));
        if named {
            by_id.insert(id.0.clone(), key);
        }
        if unique {
            by_servant.insert(address, key);
        }
        if let Some(active) = inner.objects.get(key) {
            active.id.get_or_init(|| id.clone());
        }
        Ok(id)
    }

    /// Ends an object. Requests in progress are finished; the servant is dropped after the last.
    ///
    /// # Errors
    /// [`ObjectError::ObjectNotActive`].
    pub fn deactivate_object(&self, id: &ObjectId) -> Result<(), ObjectError> {
        let inner = &*self.inner;
        let mut by_servant = inner.by_servant.lock();
        let mut by_id = inner.by_id.lock();
        let key = match by_id.remove(id.as_bytes()) {
            Some(key) => Some(key),
            None => self.slot_of(id.as_bytes()),
        };
        let key = key.ok_or(ObjectError::ObjectNotActive)?;
        let active = inner.objects.get(key).ok_or(ObjectError::ObjectNotActive)?;
        let address = Arc::as_ptr(&active.servant).cast::<()>() as usize;
        if by_servant.get(&address) == Some(&key) {
            by_servant.remove(&address);
        }
        // The tables are let go first: dropping the servant runs the application's code.
        drop((by_servant, by_id));
        if inner.objects.remove(key) {
            Ok(())
        } else {
            Err(ObjectError::ObjectNotActive)
        }
    }

    /// The servant of an active object.
    ///
    /// # Errors
    /// [`ObjectError::ObjectNotActive`].
    pub fn id_to_servant(&self, id: &ObjectId) -> Result<Servant, ObjectError> {
        let active = self.find(id.as_bytes());
        let active = active.ok_or(ObjectError::ObjectNotActive)?;
        Ok(active.servant.clone())
    }

    /// The reference of an active object.
    ///
    /// # Errors
    /// [`ObjectError::ObjectNotActive`].
    pub fn id_to_reference(&self, id: &ObjectId) -> Result<Object, ObjectError> {
        let active = self.find(id.as_bytes());
        let active = active.ok_or(ObjectError::ObjectNotActive)?;
        Ok(self.reference(id.as_bytes(), active.servant.repository_id())?)
    }

    /// A reference to an object that need not be active (yet).
    ///
    /// # Errors
    /// [`ObjectError::WrongPolicy`] where ids come from the POA.
    pub fn create_reference_with_id(
        &self,
        id: &ObjectId,
        repository_id: &str,
    ) -> Result<Object, ObjectError> {
        if self.inner.policies.id_assignment != IdAssignment::User {
            return Err(ObjectError::WrongPolicy);
        }
        Ok(self.reference(id.as_bytes(), repository_id)?)
    }

    /// The id within a reference that this POA made.
    ///
    /// # Errors
    /// [`ObjectError::WrongAdapter`] for any other.
    pub fn reference_to_id(&self, reference: &Object) -> Result<ObjectId, ObjectError> {
        let profile = reference.profile().ok_or(ObjectError::WrongAdapter)?;
        let key = key::ObjectKey::parse(&profile.key).ok_or(ObjectError::WrongAdapter)?;
        if key.poa != self.poa_key() {
            return Err(ObjectError::WrongAdapter);
        }
        Ok(ObjectId::new(key.id))
    }

    /// Activates a servant under an id of the POA's making, and gives its reference.
    ///
    /// # Errors
    /// As [`activate_object`](Self::activate_object).
    pub fn serve(&self, servant: impl IntoServant) -> Result<Object, ActivateError> {
        let servant = servant.into_servant();
        let repository_id = servant.repository_id();
        let id = self.activate_object(servant)?;
        Ok(self.reference(id.as_bytes(), repository_id)?)
    }

    /// Ends the POA, its children and their objects. Requests in progress are finished.
    pub fn destroy(&self) {
        if self.inner.destroyed.swap(true, Ordering::AcqRel) {
            return;
        }
        let children: Vec<Self> = self.inner.children.lock().drain().map(|(_, c)| c).collect();
        for child in children {
            child.destroy();
        }
        if let Some(place) = self.inner.place.get() {
            self.inner.core.poas.remove(*place, self.persistent_path());
        }
        self.inner.by_id.lock().clear();
        self.inner.by_servant.lock().clear();
        for key in self.inner.objects.keys() {
            self.inner.objects.remove(key);
        }
        // The name is free when nothing of this POA is left that a successor could meet.
        if let Some(parent) = &self.inner.parent {
            let mut children = parent.inner.children.lock();
            if children.get(&self.inner.name) == Some(self) {
                children.remove(&self.inner.name);
            }
        }
    }

    /// Lets one request through: after waiting, if the manager holds it.
    pub(crate) fn admit(&self, hold: Duration) -> Result<(), SystemException> {
        self.manager().admit(hold)?;
        self.check_alive()
    }

    /// The child of this name.
    pub fn find_poa(&self, name: &str) -> Option<Self> {
        self.inner.children.lock().get(name).cloned()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The POA that made it; `None` for the root.
    pub fn parent(&self) -> Option<&Self> {
        self.inner.parent.as_ref()
    }

    /// What lets its requests through.
    pub fn manager(&self) -> &PoaManager {
        &self.inner.manager
    }

    pub(crate) fn priority_model(&self) -> Option<(PriorityModel, Priority)> {
        self.inner.policies.priority_model
    }

    /// The active object of an id, kept alive while it is looked at.
    fn find(&self, id: &[u8]) -> Option<SlotRef<'_, Active>> {
        let key = match self.slot_of(id) {
            Some(key) => key,
            None => *self.inner.by_id.lock().get(id)?,
        };
        self.inner.objects.get(key)
    }

    /// The slot that an id of our own making names.
    fn slot_of(&self, id: &[u8]) -> Option<Key> {
        let policies = &self.inner.policies;
        let ours = policies.id_assignment == IdAssignment::System
            && policies.lifespan == Lifespan::Transient;
        if ours { key::slot_key(id) } else { None }
    }

    fn persistent_path(&self) -> Option<&str> {
        match self.inner.policies.lifespan {
            Lifespan::Persistent => Some(&self.inner.path),
            Lifespan::Transient => None,
        }
    }

    fn check_alive(&self) -> Result<(), SystemException> {
        if self.inner.destroyed.load(Ordering::Acquire) {
            let kind = SystemExceptionKind::ObjectNotExist;
            return Err(SystemException::no(kind, minor::NO_SUCH_ADAPTER));
        }
        Ok(())
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

/// A name as part of a path.
fn escaped(name: &str) -> String {
    name.replace('\\', r"\\").replace('/', r"\/")
}

const MAX_OBJECTS: u32 = 1 << 24;
/// The incarnation of the ORB that made it, and its number there.
const PERSISTENT_ID_LEN: usize = 16;
