//! Objects with a priority of their own: the additional operations of an RT POA.
//!
//! Source: Real-Time CORBA 1.2, “Setting Server Priority on a per-Object Reference
//! Basis”.
//!
//! The priority of an object is stored with it while it is active. Its references contain the
//! priority in the policy that clients read, in the choice of the lane's endpoint, and in the
//! object key. The server does not use the priority in a key, because keys come from clients, which
//! must not choose priorities. For objects that are not active the POA remembers the declared
//! priorities, so that they also apply to objects that a default servant or a servant manager
//! serves.
//!
//! A priority that a client propagates is admitted up to the ceilings of the POA and of the
//! endpoint.

use std::fmt;
use std::net::IpAddr;

#[cfg(feature = "ssliop")]
use chronorb_giop::TAG_SSL_SEC_TRANS;
use chronorb_giop::{SystemException, SystemExceptionKind, minor};
#[cfg(feature = "ssliop")]
use chronorb_transport::tls::Verify;

use super::table::Active;
use super::{ActivateError, IntoServant, ObjectError, ObjectId, Poa, Policies, PriorityModel};
use crate::core::{Core, Object};
use crate::failure;
use crate::lanes::{PoolHandle, PublishedEndpoint};
use crate::rtcorba::{Priority, PriorityBands};

/// The strangers that can send requests to a POA without proof of their identity.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Reach {
    /// The users of this machine.
    Users,
    /// Clients on a network.
    Network,
}

/// Displays one of them, for messages to people.
impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Users => "any user of this machine",
            Self::Network => "any client on the network",
        })
    }
}

impl Poa {
    /// Creates a reference to an object that is not active (yet), under a new id, with its own
    /// priority. Every servant serves it at this priority.
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

    /// Creates a reference to an object that need not be active (yet), with its own priority. Every
    /// servant serves it at this priority, also if the object is activated later without naming
    /// one.
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

    /// Activates a servant under an id made by the POA, as an object with its own priority.
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
        failure::begin();
        self.check_priority(priority)?;
        self.activate_new(servant.into_servant(), Some(priority))
    }

    /// Activates a servant under an id, as
    /// [`activate_object_with_id`](Self::activate_object_with_id) does, as an object with its own
    /// priority.
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
        failure::begin();
        self.check_priority(priority)?;
        self.activate_as(id.into(), servant.into_servant(), Some(priority))
    }

    /// Gives an object that is not active yet, or has this priority, the priority.
    ///
    /// # Errors
    /// [`ObjectError::WrongPolicy`] where objects have no priorities of their own; those of
    /// [`create_reference_with_id_and_priority`](Self::create_reference_with_id_and_priority).
    #[cfg(feature = "schedule")]
    pub(crate) fn schedule(&self, id: &ObjectId, priority: Priority) -> Result<(), ObjectError> {
        if !self.declares_for_objects() {
            return Err(ObjectError::WrongPolicy);
        }
        self.check_priority(priority)?;
        Ok(self.declare(id, priority)?)
    }

    /// Returns the priority at which the POA's model serves a request for the object `id`, if it
    /// has one, and the object's own priority. `propagated` was received with the request, by an
    /// endpoint of this `ceiling`.
    #[inline]
    pub(crate) fn priority_of_request(
        &self,
        active: Option<&Active>,
        id: &[u8],
        propagated: Option<Priority>,
        ceiling: Option<Priority>,
    ) -> (Option<Priority>, Option<Priority>) {
        match self.priority_model() {
            Some((PriorityModel::ClientPropagated, default)) => {
                let admitted = propagated.map(|wanted| self.clamp(wanted, ceiling));
                (Some(admitted.unwrap_or(default)), None)
            }
            Some((PriorityModel::ServerDeclared, default)) => {
                let own = match active {
                    Some(active) => active.priority,
                    None => self.declared_priority(id),
                };
                (own.or(Some(default)), own)
            }
            None => (None, None),
        }
    }

    /// The priority that a propagated one is served at.
    #[inline]
    fn clamp(&self, wanted: Priority, of_endpoint: Option<Priority>) -> Priority {
        let ceilings = [self.inner.ceiling, of_endpoint];
        ceilings.into_iter().flatten().fold(wanted, Priority::min)
    }

    /// Whether a propagated priority is above the ceiling of this POA, or that of the endpoint.
    #[inline]
    pub(crate) fn is_above_ceiling(
        &self,
        propagated: Priority,
        of_endpoint: Option<Priority>,
    ) -> bool {
        let model = self.priority_model();
        matches!(model, Some((PriorityModel::ClientPropagated, _)))
            && self.clamp(propagated, of_endpoint) < propagated
    }

    /// The strangers that may choose any priority for requests to it, if there are any.
    pub(super) fn unbounded_reach(&self) -> Option<Reach> {
        let model = self.priority_model();
        let is_bounded = self.inner.ceiling.is_some()
            || !matches!(model, Some((PriorityModel::ClientPropagated, _)));
        let pool = self.inner.pool.get().filter(|_| !is_bounded)?;
        let published = pool.lanes.iter().flat_map(|lane| &*lane.published);
        let unbounded = published.filter(|it| it.endpoint.priority_ceiling().is_none());
        unbounded.filter_map(|it| self.reach_of(it)).max()
    }

    /// The strangers that can send requests to an endpoint without a certificate.
    fn reach_of(&self, published: &PublishedEndpoint) -> Option<Reach> {
        #[cfg(feature = "ssliop")]
        if published.way.protocol == TAG_SSL_SEC_TRANS
            && self.core().config.ssl.verify == Verify::Mutual
        {
            return None;
        }
        let is_loopback = |host: &str| match host.parse::<IpAddr>() {
            Ok(address) => address.is_loopback(),
            Err(_) => host == "localhost",
        };
        if let Some((host, _)) = published.way.address.as_host() {
            return Some(if is_loopback(host) {
                Reach::Users
            } else {
                Reach::Network
            });
        }
        // A socket file is its owner's alone, unless it has another mode. An abstract name has no
        // mode.
        let mode = published.endpoint.option("mode");
        let mode = mode.and_then(|mode| u32::from_str_radix(mode, 8).ok());
        let is_abstract = |path: &str| path.starts_with('@');
        let is_shared = mode.is_some_and(|mode| mode & 0o022 != 0)
            || published.way.address.as_path().is_some_and(is_abstract);
        is_shared.then_some(Reach::Users)
    }

    /// The priority that references to an object were created with.
    pub(super) fn declared_priority(&self, id: &[u8]) -> Option<Priority> {
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
        match (asked, self.declared_priority(id.as_bytes())) {
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
            None => self.declared_priority(id.as_bytes()),
        };
        if present.is_some_and(|present| present != priority) {
            return Err(REASSIGNED);
        }
        let mut declared = self.inner.declared.lock();
        if declared.len() >= MAX_DECLARED {
            // Their objects have the POA's priority again while they are not active.
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
    /// `BAD_PARAM` for a priority that no lane of the pool has; without lanes, the errors of its
    /// mapping.
    fn check_priority(&self, priority: Priority) -> Result<(), SystemException> {
        self.check_alive()?;
        self.pool()?;
        if !self.has_lane_of(priority) {
            return Err(SystemException::no(SystemExceptionKind::BadParam, 0));
        }
        self.core().rt.real_time.scheduling(priority).map(drop)
    }

    /// Whether its pool has threads for a priority.
    fn has_lane_of(&self, priority: Priority) -> bool {
        self.pool()
            .is_ok_and(|pool| !pool.has_lanes || pool.lane_of(priority).is_some())
    }
}

const REASSIGNED: SystemException = SystemException::no(
    SystemExceptionKind::BadInvOrder,
    minor::PRIORITY_ALREADY_SET,
);
/// Returns the ceiling of the priorities that clients propagate to a POA: that of its policies,
/// else the end of its highest band, its highest lane, or the ORB's ceiling.
pub(super) fn ceiling_of(
    core: &Core,
    policies: &Policies,
    pool: Option<&PoolHandle>,
) -> Option<Priority> {
    let bands = policies.bands.iter().flat_map(PriorityBands::as_slice);
    // The one lane of a pool without lanes does not count.
    let lanes = pool.filter(|pool| pool.has_lanes);
    let lanes = lanes.into_iter().flat_map(|pool| &pool.lanes);
    policies
        .ceiling
        .or_else(|| bands.map(|band| band.high).max())
        .or_else(|| lanes.filter_map(|lane| lane.priority).max())
        .or(core.config.priority_ceiling)
}

/// The number of priorities of created references that a POA remembers. Beyond it, the POA forgets
/// them and starts again.
const MAX_DECLARED: usize = 1 << 16;
