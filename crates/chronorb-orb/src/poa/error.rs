//! The errors of the operations of a POA: the standard's user exceptions, and system exceptions.

use chronorb_giop::SystemException;
use thiserror::Error;

use crate::core::Object;
use crate::failure::{self, LastFailure};

/// A POA could not be made.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum CreatePoaError {
    /// The parent has a child of this name.
    #[error("there is a POA of this name already")]
    AdapterAlreadyExists,
    /// A policy contradicts another or names something that does not exist.
    #[error("policy number {index} (from 0) cannot be used here: {rule}")]
    InvalidPolicy {
        /// The index in the list.
        index: u16,
        /// The rule that it breaks.
        #[source]
        rule: PolicyRule,
    },
    /// The ORB or the POA is shut down, or has no room; `BAD_INV_ORDER` (OMG minor 17) while a
    /// POA of this name is being destroyed.
    #[error(transparent)]
    System(#[from] SystemException),
}

/// A rule for the policies of a POA (CORBA 3.3, 15.3.8; RT-CORBA 1.2, “Threadpools”; RT-CORBA 1.2,
/// “Protocol Configuration”).
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum PolicyRule {
    /// A list has one policy of a kind.
    #[error("a policy of this kind is given twice")]
    Once,
    /// A POA that does not retain servants needs a source of servants.
    #[error(
        "ServantRetention::NonRetain needs RequestProcessing::DefaultServant or \
         RequestProcessing::ServantManager"
    )]
    NoSource,
    /// A default servant is many objects.
    #[error("RequestProcessing::DefaultServant needs IdUniqueness::Multiple")]
    UniqueDefault,
    /// Objects that are activated implicitly are retained, with ids of the POA.
    #[error("ImplicitActivation::Implicit needs ServantRetention::Retain and IdAssignment::System")]
    NoImplicit,
    /// Bands need a priority model, and one of them must contain the priority that a server
    /// declares.
    #[error(
        "PriorityBandedConnection needs a PriorityModel, and a band with the priority that the \
         server declares"
    )]
    NoBand,
    /// Only priorities that clients propagate have a ceiling.
    #[error("PriorityCeiling needs PriorityModel::ClientPropagated")]
    NoCeiling,
    /// Persistent references need a secret that outlives the process.
    #[error(
        "ObjectKeys::Authenticated needs the feature access, and -ORBObjectKeySecret where \
         references are persistent"
    )]
    NoSecret,
    /// The policy names only protocols that the ORB does not have.
    #[error("none of the protocols is one that this ORB has (-ORBProtocols)")]
    NoProtocol,
    /// The thread pool exists.
    #[error("there is no such thread pool")]
    NoPool,
    /// The pool has a lane of the priority, or of each band.
    #[error("the thread pool has no lane of the priority, or none in a band")]
    NoLane,
    /// Requests for a pool with lanes have a priority.
    #[error("a thread pool with lanes needs a PriorityModel")]
    NoModel,
    /// Servers call back only where the ORB offers it, and at one thread pool of an ORB.
    #[error(
        "Bidirectional needs the feature bidir, -ORBBiDir offer or both, and the thread pool of \
         the ORB's other bidirectional POAs"
    )]
    NoCallbacks,
    /// A policy must agree with the others of the list, and with those of the ORB.
    #[error("it contradicts another policy of the list, or one of the ORB")]
    Conflict,
}

/// A child POA could not be found.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum FindPoaError {
    /// There is no POA of this name, and no adapter activator made one.
    #[error("there is no POA of this name")]
    AdapterNonExistent,
    /// `OBJ_ADAPTER` (OMG minor 1) where the adapter activator failed; the ORB is shut down.
    #[error(transparent)]
    System(#[from] SystemException),
}

/// An object could not be activated.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ActivateError {
    /// The servant is an object already, and the POA wants each to be one.
    #[error("the servant is active already")]
    ServantAlreadyActive,
    /// There is an object of this id.
    #[error("there is an object of this id already")]
    ObjectAlreadyActive,
    /// The POA's policies do not allow it: it does not retain servants, or ids come from the
    /// other side.
    #[error("the POA's policies do not allow this")]
    WrongPolicy,
    /// The ORB or the POA is shut down, or has no room; `BAD_PARAM` (OMG minor 14) for an id of
    /// another POA; `TRANSIENT` (OMG minor 1) if the object of this id is still being deactivated
    /// and the ORB's hold time-out is over.
    #[error(transparent)]
    System(SystemException),
    /// A system exception with a source that tells more: the endpoints or the threads of the pool
    /// are not available.
    #[error("{}", .0.exception())]
    Caused(#[source] Box<LastFailure>),
}

impl ActivateError {
    /// The system exception, where it is one.
    #[must_use]
    pub fn system_exception(&self) -> Option<SystemException> {
        match self {
            Self::System(exception) => Some(*exception),
            Self::Caused(failure) => Some(failure.exception()),
            _ => None,
        }
    }
}

impl From<SystemException> for ActivateError {
    fn from(exception: SystemException) -> Self {
        failure::kept(exception).map_or(Self::System(exception), Self::Caused)
    }
}

/// An object was not found.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ObjectError {
    /// The object does not exist.
    #[error("there is no object of this id")]
    ObjectNotActive,
    /// The reference belongs to another POA.
    #[error("the reference is not one of this POA")]
    WrongAdapter,
    /// The POA's policies do not allow it.
    #[error("the POA's policies do not allow this")]
    WrongPolicy,
    /// Anything else.
    #[error(transparent)]
    System(#[from] SystemException),
}

/// A servant was not found.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ServantError {
    /// The servant is no object of this POA.
    #[error("the servant is not active")]
    ServantNotActive,
    /// No default servant was set.
    #[error("there is no default servant")]
    NoServant,
    /// The POA's policies do not allow it.
    #[error("the POA's policies do not allow this")]
    WrongPolicy,
    /// Anything else.
    #[error(transparent)]
    System(#[from] SystemException),
}

/// A servant manager was not set or found.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ServantManagerError {
    /// The POA does not use a servant manager.
    #[error("the POA's policies do not allow this")]
    WrongPolicy,
    /// `OBJ_ADAPTER` (OMG minor 4) where the manager is not of the kind that the POA uses;
    /// `BAD_INV_ORDER` (OMG minor 6) where there is one already.
    #[error(transparent)]
    System(#[from] SystemException),
}

/// A POA could not be destroyed, or a manager's requests not be waited for: `BAD_INV_ORDER` (OMG
/// minor 3), since the caller is a servant of the same ORB and would wait for itself.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error(transparent)]
pub struct WaitError(#[from] pub(crate) SystemException);

impl WaitError {
    /// The system exception.
    pub fn exception(&self) -> SystemException {
        self.0
    }
}

/// The answer of a servant manager that provides no servant.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// The client is sent to another object (`PortableServer::ForwardRequest`).
    Forward(Object),
    /// The client gets this exception.
    Exception(SystemException),
}

impl From<SystemException> for Refusal {
    fn from(exception: SystemException) -> Self {
        Self::Exception(exception)
    }
}
