//! The hierarchy of POAs: making children, and finding them.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::{iter, mem};

use chronorb_giop::{SystemException, SystemExceptionKind, minor};
use chronorb_rt::{Deadline, Gate, PiMutex};

use super::adapter::{DESTROYING, INITIALISING, Inner};
use super::identities::Identities;
use super::in_progress::{BeginOutcome, InProgress};
use super::policy::{breaks, invalid};
use super::priorities::ceiling_of;
use super::replaceable::Replaceable;
use super::serial::Serial;
use super::{
    AdapterActivator, CreatePoaError, FindPoaError, ObjectKeys, Poa, PoaManager, Policies, Policy,
    PolicyRule, ThreadModel, key,
};
use crate::core::Core;
use crate::demux::{Demultiplexing, Directory};
use crate::failure::{ADAPTER_DESTROYED, DISCARDED, NO_SUCH_ADAPTER};
use crate::lanes::PoolUse;
use crate::rtcorba::{BidirectionalMode, PriorityBand, PriorityModel, Protocol, Protocols};

impl Poa {
    /// The root POA of an ORB; the first call makes it.
    pub(crate) fn root(core: &Arc<Core>) -> Result<Self, SystemException> {
        core.check_running()?;
        core.poas.root(|| {
            // Under the lock by which the end of the ORB takes the root away.
            core.check_running()?;
            let manager = PoaManager::new(core, Some(ROOT_MANAGER)).or_else(|_| {
                // The application has made one of this name.
                PoaManager::new(core, None)
            });
            let manager =
                manager.map_err(|_| SystemException::no(SystemExceptionKind::Internal, 0))?;
            let mut policies = Policies::of_root();
            if core.config.is_secure() {
                policies.authenticate_keys(&core.poas.key_codes);
            }
            Self::make(core, "RootPOA", None, manager, policies, None)
        })
    }

    /// Creates a child POA. Without a manager it gets one of its own, which holds requests until it
    /// is activated.
    ///
    /// # Errors
    /// [`CreatePoaError::AdapterAlreadyExists`]; [`CreatePoaError::InvalidPolicy`] for a policy
    /// given twice, one that does not go with the others, a thread pool that does not exist, a
    /// thread pool with lanes without a priority model, a priority in the model that no lane
    /// has, a band that covers no lane, server protocols that the ORB does not listen by, and
    /// authenticated keys of a persistent POA without a secret;
    /// `BAD_INV_ORDER` (OMG minor 17) while this POA, or one of this name, is being destroyed;
    /// `BAD_PARAM` for a manager of another ORB; `IMP_LIMIT` for the 65th below the root, a path
    /// of more than 65535 octets, and more than 2²⁰ POAs.
    pub fn create_poa(
        &self,
        name: &str,
        manager: Option<&PoaManager>,
        policies: &[Policy],
    ) -> Result<Self, CreatePoaError> {
        let core = self.core();
        core.check_running()?;
        if manager.is_some_and(|manager| !manager.is_of(core)) {
            return Err(SystemException::no(SystemExceptionKind::BadParam, 0).into());
        }
        let mut effective = Policies::new(policies, &self.core().protocols)?;
        if core.config.is_secure() && !policies.iter().any(|p| matches!(p, Policy::ObjectKeys(_))) {
            effective.authenticate_keys(&core.poas.key_codes);
        }
        if effective.object_keys == ObjectKeys::Authenticated
            && !core.poas.key_codes.exist_for(effective.is_persistent())
        {
            let is_at_fault = |policy: &Policy| matches!(policy, Policy::ObjectKeys(_));
            return Err(breaks(PolicyRule::NoSecret, policies, is_at_fault));
        }
        let pool = self.pool_for(policies, &effective)?;
        if effective.bidirectional == BidirectionalMode::Both && !takes_callbacks(core, &pool)? {
            let is_at_fault = |policy: &Policy| matches!(policy, Policy::Bidirectional(_));
            return Err(breaks(PolicyRule::NoCallbacks, policies, is_at_fault));
        }
        let mut children = self.inner.children.lock();
        // Under the lock that the destruction takes after it has marked the POA.
        core.check_running()?;
        let ending = self.inner.state.get() >= DESTROYING;
        let present = children.get(name).map(|child| child.inner.state.get());
        match present {
            _ if ending => return Err(BEING_DESTROYED.into()),
            Some(state) if state >= DESTROYING => return Err(BEING_DESTROYED.into()),
            Some(_) => return Err(CreatePoaError::AdapterAlreadyExists),
            None => {}
        }
        let manager = match manager {
            Some(manager) => manager.clone(),
            None => PoaManager::new(core, None)
                .map_err(|_| SystemException::no(SystemExceptionKind::Internal, 0))?,
        };
        let child = Self::make(core, name, Some(self), manager, effective, pool)?;
        self.inner.holds.fetch_add(1, Ordering::AcqRel);
        children.insert(name.to_owned(), child.clone());
        Ok(child)
    }

    /// The child of this name; with `activate_it` made by the adapter activator, where it is not
    /// there.
    ///
    /// # Errors
    /// [`FindPoaError::AdapterNonExistent`]; `OBJ_ADAPTER` (OMG minor 1) where the adapter
    /// activator failed; `TRANSIENT` (OMG minor 1) where another thread's did not return in time.
    pub fn find_poa(&self, name: &str, activate_it: bool) -> Result<Self, FindPoaError> {
        self.core().check_running()?;
        if let Some(child) = self.child(name) {
            return Ok(child);
        }
        if !activate_it {
            return Err(FindPoaError::AdapterNonExistent);
        }
        self.activate_child(name)
    }

    /// Sets the activator that makes children on demand; `None` for no activator.
    pub fn set_activator(&self, activator: Option<Arc<dyn AdapterActivator>>) {
        let before = mem::replace(&mut *self.inner.activator.lock(), activator);
        // Dropping it runs application code, which must not run under the lock.
        drop(before);
    }

    /// Returns the activator that makes children on demand.
    pub fn activator(&self) -> Option<Arc<dyn AdapterActivator>> {
        self.inner.activator.lock().clone()
    }

    /// Makes the POAs on the way down a path.
    pub(super) fn descendant(&self, path: &str) -> Result<Self, SystemException> {
        let mut poa = self.clone();
        // There are none below that.
        for name in names(path).take(MAX_DEPTH + 1) {
            poa = match poa.present_child(&name) {
                Some(child) if child.inner.state.get() < DESTROYING => child,
                Some(_) => return Err(ADAPTER_DESTROYED),
                None => {
                    // The request is one for the parent's activator, and waits as such.
                    poa.manager().admit(self.core().config.hold_timeout)?;
                    // It may have been created meanwhile.
                    match poa.child(&name) {
                        Some(child) => child,
                        None => poa.activate_child(&name).map_err(|error| match error {
                            FindPoaError::AdapterNonExistent => NO_SUCH_ADAPTER,
                            FindPoaError::System(exception) => exception,
                        })?,
                    }
                }
            };
        }
        Ok(poa)
    }

    fn child(&self, name: &str) -> Option<Self> {
        let child = self.present_child(name)?;
        (child.inner.state.get() < DESTROYING).then_some(child)
    }

    /// The child of this name, even where its destruction has begun.
    fn present_child(&self, name: &str) -> Option<Self> {
        self.inner.children.lock().get(name).cloned()
    }

    fn activate_child(&self, name: &str) -> Result<Self, FindPoaError> {
        let Some(activator) = self.activator() else {
            return Err(FindPoaError::AdapterNonExistent);
        };
        let time_out = self.core().config.hold_timeout;
        let adapting = &self.inner.adapting;
        match adapting.begin(&name.to_owned(), Deadline::after(time_out)) {
            BeginOutcome::Now => {}
            // The activator requests the same child that it was asked for.
            BeginOutcome::Already => return Err(FindPoaError::AdapterNonExistent),
            BeginOutcome::TimedOut => return Err(DISCARDED.into()),
        }
        let made = if self.child(name).is_some() {
            // By another thread, which was first.
            Ok(true)
        } else {
            self.ask_activator(activator, name)
        };
        let child = self.child(name);
        if let Some(child) = &child {
            // Its requests may come in now.
            child.end_initialisation();
        }
        adapting.end(&name.to_owned());
        if made? {
            child.ok_or(FindPoaError::AdapterNonExistent)
        } else {
            Err(FindPoaError::AdapterNonExistent)
        }
    }

    /// Calls the activator on the thread that the POA's model determines.
    fn ask_activator(
        &self,
        activator: Arc<dyn AdapterActivator>,
        name: &str,
    ) -> Result<bool, SystemException> {
        let time_out = self.core().config.hold_timeout;
        let ask = move |poa: &Self, name: &str| {
            if poa.child(name).is_some() {
                // Made for a request that has stopped waiting since.
                return Ok(true);
            }
            let _priority = poa.keep_priority();
            let asked = || activator.unknown_adapter(poa, name);
            let made = catch_unwind(AssertUnwindSafe(asked));
            made.ok().and_then(Result::ok).ok_or(ACTIVATOR_FAILED)
        };
        if self.thread_model() != ThreadModel::MainThread {
            let _serial = self.enter(time_out)?;
            return ask(self, name);
        }
        let (poa, name) = (self.clone(), name.to_owned());
        let asked = self.core().main.consult(time_out, move || ask(&poa, &name));
        asked.unwrap_or(Err(DISCARDED))
    }

    fn make(
        core: &Arc<Core>,
        name: &str,
        parent: Option<&Self>,
        manager: PoaManager,
        policies: Policies,
        pool: Option<PoolUse>,
    ) -> Result<Self, SystemException> {
        let path = match parent {
            None => String::new(),
            Some(parent) => format!("{}/{}", parent.inner.path, escaped(name)),
        };
        let depth = iter::successors(parent, |poa| poa.parent()).count();
        if path.len() > key::MAX_PATH || depth > MAX_DEPTH {
            let kind = SystemExceptionKind::ImpLimit;
            return Err(SystemException::no(kind, minor::POA_PATH_TOO_LONG));
        }
        let adapting = parent.is_some_and(|parent| parent.inner.adapting.is_going_on(name));
        let state = if adapting {
            INITIALISING
        } else {
            policies.state_of_life()
        };
        let named = policies.is_persistent() || core.poas.strategy() != Demultiplexing::Active;
        let served_by = pool.as_ref().map(|used| used.pool().clone());
        let ceiling = ceiling_of(core, &policies, served_by.as_deref());
        let servants = Identities::of(&policies);
        let serial = Serial::of(policies.thread);
        let mut made = None;
        let inserted = core.poas.insert(named, |place| {
            let poa = Self {
                inner: Arc::new(Inner {
                    core: core.clone(),
                    name: name.to_owned(),
                    path,
                    parent: parent.cloned(),
                    manager,
                    policies,
                    ceiling,
                    pool: served_by.map_or_else(OnceLock::new, OnceLock::from),
                    pool_use: PiMutex::new(pool),
                    place,
                    state: Gate::new(state),
                    children: PiMutex::new(HashMap::new()),
                    adapting: InProgress::new(),
                    activator: PiMutex::new(None),
                    holds: AtomicUsize::new(1),
                    etherealizes: AtomicBool::new(true),
                    objects: Directory::new(MAX_OBJECTS, core.config.servant_demultiplexing),
                    servants,
                    writing: PiMutex::new(()),
                    changing: InProgress::new(),
                    declared: PiMutex::new(HashMap::new()),
                    servant_manager: Replaceable::new(),
                    default_servant: Replaceable::new(),
                    guard: OnceLock::new(),
                    serial,
                }),
            };
            made = Some(poa.clone());
            poa
        });
        let poa = made.filter(|_| inserted.is_ok());
        let poa = poa.ok_or(TOO_MANY_POAS)?;
        poa.manager().add(poa.place());
        Ok(poa)
    }

    /// Whether servers may call its objects on connections that the ORB opened.
    #[cfg(feature = "bidir")]
    pub(crate) fn takes_callbacks(&self) -> bool {
        self.policies().bidirectional == BidirectionalMode::Both
    }

    /// Returns the pool that the policies name, if it can serve them.
    fn pool_for(
        &self,
        list: &[Policy],
        policies: &Policies,
    ) -> Result<Option<PoolUse>, CreatePoaError> {
        let is_pool = |p: &Policy| matches!(p, Policy::Threadpool(_));
        let is_model = |p: &Policy| matches!(p, Policy::PriorityModel(..));
        let is_bands = |p: &Policy| matches!(p, Policy::PriorityBandedConnection(_));
        let is_server_protocol = |p: &Policy| matches!(p, Policy::ServerProtocol(_));
        if let Some(protocols) = &policies.server_protocols {
            let core = self.core();
            // Every endpoint has the properties of the ORB's own policy.
            let as_opened = |protocol: &Protocol| {
                let of = |these| Protocols::socket_options(these, protocol.tag(), None);
                !core.protocols.has(protocol.tag())
                    || of(Some(protocols)) == of(core.rt.policies.server_protocols())
            };
            if !protocols.as_slice().iter().all(as_opened) {
                return Err(invalid(list, is_server_protocol));
            }
        }
        let Some(id) = policies.threadpool else {
            return Ok(None);
        };
        let used = self.core().server.use_pool(id);
        let used = used.ok_or_else(|| breaks(PolicyRule::NoPool, list, is_pool))?;
        let pool = used.pool();
        if pool.has_lanes {
            match policies.priority_model {
                None => return Err(breaks(PolicyRule::NoModel, list, is_pool)),
                // A default for propagated priorities only selects the lane of clients that know
                // none. Without a lane of its own that is the least urgent one.
                Some((PriorityModel::ServerDeclared, priority))
                    if pool.lane_of(priority).is_none() =>
                {
                    return Err(breaks(PolicyRule::NoLane, list, is_model));
                }
                Some(_) => {}
            }
            let covers_lane = |band: &PriorityBand| {
                let mut lanes = pool.lanes.iter().filter_map(|lane| lane.priority);
                lanes.any(|lane| band.contains(lane))
            };
            let bands = policies.bands.as_ref().map_or(&[][..], |b| b.as_slice());
            if !bands.iter().all(covers_lane) {
                return Err(breaks(PolicyRule::NoLane, list, is_bands));
            }
        }
        Ok(Some(used))
    }
}

/// A name as part of a path.
fn escaped(name: &str) -> String {
    name.replace('\\', r"\\").replace('/', r"\/")
}

/// The names that a path is made of.
fn names(path: &str) -> impl Iterator<Item = String> {
    let mut characters = path.chars().peekable();
    iter::from_fn(move || {
        characters.find(|c| *c == '/')?;
        let mut name = String::new();
        while let Some(c) = characters.next_if(|c| *c != '/') {
            let escaped = (c == '\\').then(|| characters.next()).flatten();
            name.push(escaped.unwrap_or(c));
        }
        Some(name)
    })
}

const TOO_MANY_POAS: SystemException =
    SystemException::no(SystemExceptionKind::ImpLimit, minor::TOO_MANY_POAS);
const BEING_DESTROYED: SystemException = SystemException::no(
    SystemExceptionKind::BadInvOrder,
    minor::ADAPTER_BEING_DESTROYED,
);
const ACTIVATOR_FAILED: SystemException = SystemException::no(
    SystemExceptionKind::ObjAdapter,
    minor::ADAPTER_ACTIVATOR_FAILED,
);

const ROOT_MANAGER: &str = "RootPOAManager";
const MAX_OBJECTS: u32 = 1 << 24;
/// The greatest depth of POAs, the root included. The destruction of one destroys all below it on
/// one thread's stack, and clients cause the creations of an adapter activator.
const MAX_DEPTH: usize = 64;

/// Lets the pool of a new POA serve callbacks. Returns whether it does: the ORB offers that, and no
/// other pool of it does.
#[cfg(feature = "bidir")]
fn takes_callbacks(core: &Arc<Core>, pool: &Option<PoolUse>) -> Result<bool, SystemException> {
    if !core.config.bidirectional.offers() {
        return Ok(false);
    }
    let pool = match pool {
        Some(used) => used.pool().clone(),
        None => core.server.default_pool(core)?,
    };
    let Some(pool) = core.server.callback_pool(&pool) else {
        return Ok(false);
    };
    let (is_open, is_new) = core.bidirectional.open(pool);
    if is_new {
        // Connections that were opened before cannot be called back on.
        core.rt.policies.note_change();
    }
    Ok(is_open)
}

#[cfg(not(feature = "bidir"))]
#[expect(clippy::unnecessary_wraps, reason = "the same as with the feature")]
fn takes_callbacks(_: &Arc<Core>, _: &Option<PoolUse>) -> Result<bool, SystemException> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn names_come_back_out_of_a_path(
            given in proptest::collection::vec(r"[a/\\]{0,6}", 0..5),
        ) {
            let path: String = given.iter().map(|name| format!("/{}", escaped(name))).collect();
            prop_assert_eq!(names(&path).collect::<Vec<_>>(), given);
        }
    }
}
