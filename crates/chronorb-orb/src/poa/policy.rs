//! Policies of a POA, and which of them go together.

use chronorb_cdr::CdrError;
use chronorb_giop::{PolicyValue, PriorityModelValue};

use super::adapter::{ALIVE, GUARDED};
use super::{CreatePoaError, PolicyRule};
use crate::key_codes::KeyCodes;
use crate::protocol::Registry;
use crate::rtcorba::{
    BidirectionalMode, Priority, PriorityBands, PriorityModel, Protocols, ThreadpoolId,
};

/// A policy given to [`create_poa`](super::Poa::create_poa).
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Policy {
    /// The threads that call servants. Default [`ThreadModel::OrbControl`].
    Thread(ThreadModel),
    /// Whether references outlive the POA. Default [`Lifespan::Transient`].
    Lifespan(Lifespan),
    /// Whether a servant may be several objects. Default [`IdUniqueness::Unique`].
    IdUniqueness(IdUniqueness),
    /// The side that names objects. Default [`IdAssignment::System`].
    IdAssignment(IdAssignment),
    /// Whether servants become objects by being asked for their reference. Default
    /// [`ImplicitActivation::NoImplicit`], and [`ImplicitActivation::Implicit`] for the root POA.
    ImplicitActivation(ImplicitActivation),
    /// Whether the POA remembers which servant is which object. Default
    /// [`ServantRetention::Retain`].
    ServantRetention(ServantRetention),
    /// The source of a request's servant. Default [`RequestProcessing::ActiveObjectMapOnly`].
    RequestProcessing(RequestProcessing),
    /// The thread pool that serves its objects. Default: the ORB's own.
    Threadpool(ThreadpoolId),
    /// The source of the priority of requests, and the priority of objects that have no other
    /// (RT-CORBA 1.2, “Real-Time CORBA Priority Models”). Default: priorities are not used.
    PriorityModel(PriorityModel, Priority),
    /// The most urgent priority at which requests of clients are served, if clients propagate it.
    /// Default: the end of the highest band, else the highest lane, else
    /// [`priority_ceiling`](crate::OrbConfig::priority_ceiling). Higher priorities are clamped or
    /// refused, according to [`priority_excess`](crate::OrbConfig::priority_excess). Needs
    /// [`PriorityModel::ClientPropagated`].
    PriorityCeiling(Priority),
    /// Clients use one connection for each band of priorities (RT-CORBA 1.2, “Priority Banded
    /// Connections”). References contain the bands. Default: one for each priority that they use.
    PriorityBandedConnection(PriorityBands),
    /// The protocols by which its objects are served, and the properties of the connections
    /// (RT-CORBA 1.2, “Protocol Configuration”). They must be among those that the ORB listens by,
    /// which
    /// [`PolicyManager::set_server_protocol`](crate::rtcorba::PolicyManager::set_server_protocol)
    /// sets, and which are the default.
    ServerProtocol(Protocols),
    /// The protocols that clients must use, and their properties (RT-CORBA 1.2, “Protocol
    /// Configuration”). References contain them. Default: the clients choose.
    ClientProtocol(Protocols),
    /// Whether the POA serves only requests whose keys it has made. Default
    /// [`ObjectKeys::Plain`].
    ObjectKeys(ObjectKeys),
    /// Whether servers may call its objects on the connections that this ORB opened to them (CORBA
    /// 3.3 part 2, 9.9). Default [`BidirectionalMode::Normal`]. Needs
    /// [`OrbConfig::bidirectional`](crate::OrbConfig::bidirectional); all such POAs of an ORB have
    /// the same thread pool.
    Bidirectional(BidirectionalMode),
}

/// The threads that call servants and servant managers (CORBA 3.3, 15.3.8.1).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ThreadModel {
    /// The threads of its pool, several at a time.
    #[default]
    OrbControl,
    /// The threads of its pool, one at a time; a servant that calls an object of the same POA
    /// within the process does not block.
    SingleThread,
    /// The thread that runs the ORB ([`Orb::run`](crate::Orb::run),
    /// [`Orb::perform_work`](crate::Orb::perform_work)) and no other.
    MainThread,
}

/// The time that references stay valid (CORBA 3.3, 15.3.8.2).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Lifespan {
    /// References are valid as long as this POA exists.
    #[default]
    Transient,
    /// Across restarts: as long as a POA of the same path, at the same endpoint, has an object of
    /// the same id.
    Persistent,
}

/// Whether a servant may be several objects (CORBA 3.3, 15.3.8.3).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum IdUniqueness {
    /// A servant incarnates at most one object. Servants are told apart by
    /// [`Skeleton::identity`](crate::Skeleton::identity).
    #[default]
    Unique,
    /// A servant may incarnate several objects.
    Multiple,
}

/// The side that names objects (CORBA 3.3, 15.3.8.4).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum IdAssignment {
    /// The POA.
    #[default]
    System,
    /// The application.
    User,
}

/// Whether a servant becomes an object by being asked for its reference or id (CORBA 3.3,
/// 15.3.8.7).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ImplicitActivation {
    /// Implicit activation is permitted.
    Implicit,
    /// Implicit activation is refused.
    #[default]
    NoImplicit,
}

/// Whether the POA remembers which servant is which object (CORBA 3.3, 15.3.8.5).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ServantRetention {
    /// The POA retains servants, in its active object map.
    #[default]
    Retain,
    /// The POA does not retain servants.
    NonRetain,
}

/// The source of a request's servant (CORBA 3.3, 15.3.8.6).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum RequestProcessing {
    /// From the active object map; an object that is not in it does not exist.
    #[default]
    ActiveObjectMapOnly,
    /// One default servant serves the objects that are not in the active object map.
    DefaultServant,
    /// A [`ServantActivator`](super::ServantActivator) provides the servants of objects that are
    /// not in the active object map. Without a map a [`ServantLocator`](super::ServantLocator)
    /// provides all of them.
    ServantManager,
}

/// Whether object keys can be guessed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ObjectKeys {
    /// They follow from numbers that every reference contains: a client with one reference can make
    /// those of other objects.
    #[default]
    Plain,
    /// They have an authentication code of 64 bits, by a random secret of the ORB's run, and in a
    /// [persistent](Lifespan::Persistent) POA by that of
    /// [`OrbConfig::object_key_secret`](crate::OrbConfig::object_key_secret). Requests with another
    /// code are answered with `OBJECT_NOT_EXIST` (OMG minor 2).
    Authenticated,
}

/// The effective policies of a POA.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policies {
    pub(crate) thread: ThreadModel,
    pub(crate) lifespan: Lifespan,
    pub(crate) id_uniqueness: IdUniqueness,
    pub(crate) id_assignment: IdAssignment,
    pub(crate) implicit_activation: ImplicitActivation,
    pub(crate) servant_retention: ServantRetention,
    pub(crate) request_processing: RequestProcessing,
    pub(crate) threadpool: Option<ThreadpoolId>,
    pub(crate) priority_model: Option<(PriorityModel, Priority)>,
    pub(crate) ceiling: Option<Priority>,
    pub(crate) bands: Option<PriorityBands>,
    pub(crate) server_protocols: Option<Protocols>,
    pub(crate) client_protocols: Option<Protocols>,
    pub(crate) object_keys: ObjectKeys,
    pub(crate) bidirectional: BidirectionalMode,
}

impl Policies {
    /// Returns the policies of the root POA (CORBA 3.3, 15.3.9.1).
    pub(crate) fn of_root() -> Self {
        Self {
            implicit_activation: ImplicitActivation::Implicit,
            ..Self::default()
        }
    }

    /// Takes a list in.
    ///
    /// # Errors
    /// [`CreatePoaError::InvalidPolicy`] with the index of the first policy that was given twice,
    /// or that does not go with the others.
    pub(crate) fn new(list: &[Policy], registry: &Registry) -> Result<Self, CreatePoaError> {
        let mut this = Self::default();
        for (i, policy) in list.iter().enumerate() {
            let kind = std::mem::discriminant(policy);
            if list[..i].iter().any(|p| std::mem::discriminant(p) == kind) {
                return Err(CreatePoaError::InvalidPolicy {
                    index: i as u16,
                    rule: PolicyRule::Once,
                });
            }
            match policy.clone() {
                Policy::Thread(value) => this.thread = value,
                Policy::Lifespan(value) => this.lifespan = value,
                Policy::IdUniqueness(value) => this.id_uniqueness = value,
                Policy::IdAssignment(value) => this.id_assignment = value,
                Policy::ImplicitActivation(value) => this.implicit_activation = value,
                Policy::ServantRetention(value) => this.servant_retention = value,
                Policy::RequestProcessing(value) => this.request_processing = value,
                Policy::Threadpool(id) => this.threadpool = Some(id),
                Policy::PriorityModel(model, priority) => {
                    this.priority_model = Some((model, priority));
                }
                Policy::PriorityCeiling(ceiling) => this.ceiling = Some(ceiling),
                Policy::PriorityBandedConnection(bands) => this.bands = Some(bands),
                Policy::ServerProtocol(protocols) => this.server_protocols = Some(protocols),
                Policy::ClientProtocol(protocols) => this.client_protocols = Some(protocols),
                Policy::ObjectKeys(value) => this.object_keys = value,
                Policy::Bidirectional(value) => this.bidirectional = value,
            }
        }
        this.check(list, registry)?;
        Ok(this)
    }

    /// The rules that [`PolicyRule`](super::PolicyRule) names. A policy that asks for another which
    /// is not there is at fault; of several, the first in the list.
    fn check(&self, list: &[Policy], registry: &Registry) -> Result<(), CreatePoaError> {
        use RequestProcessing::{ActiveObjectMapOnly, DefaultServant};
        let map_only = self.request_processing == ActiveObjectMapOnly;
        let no_source = !self.retains() && map_only;
        let broken_by = |policy: &Policy| match policy {
            Policy::ServantRetention(_) => no_source.then_some(PolicyRule::NoSource),
            Policy::RequestProcessing(DefaultServant) => {
                self.is_unique().then_some(PolicyRule::UniqueDefault)
            }
            Policy::RequestProcessing(_) => no_source.then_some(PolicyRule::NoSource),
            Policy::ImplicitActivation(_) => {
                let may = !self.is_implicit() || (self.retains() && self.has_system_ids());
                (!may).then_some(PolicyRule::NoImplicit)
            }
            Policy::PriorityBandedConnection(bands) => {
                let is_wrong = match self.priority_model {
                    None => true,
                    // No connection would be for the only priority there is.
                    Some((PriorityModel::ServerDeclared, declared)) => {
                        bands.band_of(declared).is_none()
                    }
                    Some((PriorityModel::ClientPropagated, _)) => false,
                };
                is_wrong.then_some(PolicyRule::NoBand)
            }
            Policy::PriorityCeiling(_) => {
                let may = matches!(
                    self.priority_model,
                    Some((PriorityModel::ClientPropagated, _))
                );
                (!may).then_some(PolicyRule::NoCeiling)
            }
            Policy::ServerProtocol(protocols) | Policy::ClientProtocol(protocols) => {
                (!protocols.are_usable(|tag| registry.has(tag))).then_some(PolicyRule::NoProtocol)
            }
            _ => None,
        };
        let mut broken = list.iter().enumerate();
        let broken = broken.find_map(|(index, policy)| Some((index, broken_by(policy)?)));
        match broken {
            Some((index, rule)) => Err(CreatePoaError::InvalidPolicy {
                index: index as u16,
                rule,
            }),
            None => Ok(()),
        }
    }

    /// Returns the policies that references publish, for an object of this priority model.
    ///
    /// # Errors
    /// None in practice: the values are small.
    pub(crate) fn exported(
        &self,
        priority_model: Option<(PriorityModel, Priority)>,
        registry: &Registry,
    ) -> Result<Vec<PolicyValue>, CdrError> {
        let mut exported = Vec::new();
        if let Some((model, priority)) = priority_model {
            exported.push(PolicyValue::priority_model(PriorityModelValue {
                model: match model {
                    PriorityModel::ClientPropagated => 0,
                    PriorityModel::ServerDeclared => 1,
                },
                server_priority: priority.value(),
            })?);
        }
        if let Some(bands) = &self.bands {
            exported.push(PolicyValue::priority_bands(&bands.to_values())?);
        }
        if let Some(protocols) = &self.client_protocols {
            exported.push(PolicyValue::client_protocols(
                &protocols.to_values(|tag| registry.has(tag)),
            )?);
        }
        Ok(exported)
    }

    /// Whether keys are authenticated.
    pub(crate) fn authenticates_keys(&self) -> bool {
        cfg!(feature = "access") && self.object_keys == ObjectKeys::Authenticated
    }

    /// Authenticates keys if there is a secret for their codes, as the secure profile requires.
    pub(super) fn authenticate_keys(&mut self, codes: &KeyCodes) {
        if codes.exist_for(self.is_persistent()) {
            self.object_keys = ObjectKeys::Authenticated;
        }
    }

    /// The state of a POA that is there for requests.
    pub(super) fn state_of_life(&self) -> u32 {
        match self.object_keys {
            ObjectKeys::Plain => ALIVE,
            ObjectKeys::Authenticated => GUARDED,
        }
    }

    pub(crate) fn retains(&self) -> bool {
        self.servant_retention == ServantRetention::Retain
    }

    pub(crate) fn is_unique(&self) -> bool {
        self.id_uniqueness == IdUniqueness::Unique
    }

    pub(crate) fn is_implicit(&self) -> bool {
        self.implicit_activation == ImplicitActivation::Implicit
    }

    pub(crate) fn is_persistent(&self) -> bool {
        self.lifespan == Lifespan::Persistent
    }

    pub(crate) fn has_system_ids(&self) -> bool {
        self.id_assignment == IdAssignment::System
    }

    pub(crate) fn uses_default_servant(&self) -> bool {
        self.request_processing == RequestProcessing::DefaultServant
    }

    pub(crate) fn uses_servant_manager(&self) -> bool {
        self.request_processing == RequestProcessing::ServantManager
    }
}

/// The error that names the first policy of a kind.
pub(super) fn invalid(list: &[Policy], kind: impl Fn(&Policy) -> bool) -> CreatePoaError {
    breaks(PolicyRule::Conflict, list, kind)
}

/// The error that names the first policy of a kind, and the rule that it breaks.
pub(super) fn breaks(
    rule: PolicyRule,
    list: &[Policy],
    kind: impl Fn(&Policy) -> bool,
) -> CreatePoaError {
    CreatePoaError::InvalidPolicy {
        index: list.iter().position(kind).unwrap_or_default() as u16,
        rule,
    }
}
