//! Policies of a POA.

use thiserror::Error;

use chronorb_giop::SystemException;

use crate::rtcorba::{Priority, ThreadpoolId};

/// A policy given to [`create_poa`](super::Poa::create_poa).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Policy {
    /// Whether references outlive the POA. Default [`Lifespan::Transient`].
    Lifespan(Lifespan),
    /// Who names objects. Default [`IdAssignment::System`].
    IdAssignment(IdAssignment),
    /// Whether a servant may be several objects. Default [`IdUniqueness::Unique`].
    IdUniqueness(IdUniqueness),
    /// The thread pool that serves its objects. Default: the ORB's own.
    Threadpool(ThreadpoolId),
    /// Where the priority of requests comes from (RT-CORBA 1.2, 5.7), and the priority of
    /// objects for which nothing else says one. Default: priorities play no part.
    PriorityModel(PriorityModel, Priority),
}

/// How long references mean the same object (CORBA 3.3, 15.3.8.2).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Lifespan {
    /// As long as this POA exists.
    #[default]
    Transient,
    /// Across restarts: as long as a POA of the same path, at the same endpoint, has an object of the same id.
    Persistent,
}

/// Who names objects (CORBA 3.3, 15.3.8.4).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum IdAssignment {
    /// The POA.
    #[default]
    System,
    /// The application.
    User,
}

/// Whether a servant may be several objects (CORBA 3.3, 15.3.8.3).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum IdUniqueness {
    /// It may not. Servants are told apart by the skeleton that they were activated with.
    #[default]
    Unique,
    /// It may.
    Multiple,
}

/// Where the priority of a request comes from (RT-CORBA 1.2, 5.7).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PriorityModel {
    /// From the client; it travels with the request.
    ClientPropagated,
    /// From the server; the object's reference tells it.
    ServerDeclared,
}

/// The effective policies of a POA.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Policies {
    pub(crate) lifespan: Lifespan,
    pub(crate) id_assignment: IdAssignment,
    pub(crate) id_uniqueness: IdUniqueness,
    pub(crate) threadpool: Option<ThreadpoolId>,
    pub(crate) priority_model: Option<(PriorityModel, Priority)>,
}

impl Policies {
    /// Takes a list in; an error is the index of a policy that was given twice.
    pub(crate) fn new(list: &[Policy]) -> Result<Self, u16> {
        let mut this = Self::default();
        for (i, policy) in list.iter().enumerate() {
            let kind = std::mem::discriminant(policy);
            if list[..i].iter().any(|p| std::mem::discriminant(p) == kind) {
                return Err(i as u16);
            }
            match *policy {
                Policy::Lifespan(value) => this.lifespan = value,
                Policy::IdAssignment(value) => this.id_assignment = value,
                Policy::IdUniqueness(value) => this.id_uniqueness = value,
                Policy::Threadpool(id) => this.threadpool = Some(id),
                Policy::PriorityModel(model, priority) => {
                    this.priority_model = Some((model, priority));
                }
            }
        }
        Ok(this)
    }
}

/// A POA could not be made.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum CreatePoaError {
    /// The parent has a child of this name.
    #[error("there is a POA of this name already")]
    AdapterAlreadyExists,
    /// A policy contradicts another or names something that does not exist.
    #[error("policy number {index} (from 0) cannot be used here")]
    InvalidPolicy {
        /// Its index in the list.
        index: u16,
    },
    /// The ORB or the POA is shut down, or has no room.
    #[error(transparent)]
    System(#[from] SystemException),
}

/// An object could not be activated.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ActivateError {
    /// The servant is an object already, and the POA wants each to be one.
    #[error("the servant is active already")]
    ServantAlreadyActive,
    /// There is an object of this id.
    #[error("there is an object of this id already")]
    ObjectAlreadyActive,
    /// The POA's policies do not allow it: ids come from the other side.
    #[error("the POA's policies do not allow this")]
    WrongPolicy,
    /// The ORB or the POA is shut down, or has no room; `BAD_PARAM` (OMG minor 14) for an id that
    /// is not one of this POA.
    #[error(transparent)]
    System(#[from] SystemException),
}

/// An object was not found.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ObjectError {
    /// There is no such object.
    #[error("there is no object of this id")]
    ObjectNotActive,
    /// The reference is not one of this POA.
    #[error("the reference is not one of this POA")]
    WrongAdapter,
    /// The POA's policies do not allow it.
    #[error("the POA's policies do not allow this")]
    WrongPolicy,
    /// Anything else.
    #[error(transparent)]
    System(#[from] SystemException),
}
