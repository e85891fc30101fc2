//! The Portable Object Adapter: where objects live.
//!
//! Source: CORBA 3.3 part 1, chapter 15.

mod activation;
mod adapter;
mod authorizer;
mod current;
mod error;
mod gate;
mod identities;
mod in_progress;
mod key;
mod lifecycle;
mod manager;
mod policy;
mod priorities;
mod profiles;
mod reference;
mod replaceable;
mod serial;
mod servant_manager;
mod servants;
mod table;
mod tree;

pub use self::adapter::Poa;
pub use self::authorizer::{AuthorizationRequest, Authorizer};
pub(crate) use self::current::{InvocationGuard, is_in_upcall};
pub use self::current::{NoContext, PoaCurrent};
pub use self::error::{
    ActivateError, CreatePoaError, FindPoaError, ObjectError, PolicyRule, Refusal, ServantError,
    ServantManagerError, WaitError,
};
pub(crate) use self::gate::{Ticket, WaitCause};
pub(crate) use self::key::ObjectKey;
pub use self::key::describe_object_key;
pub use self::manager::{
    AdapterInactive, CreateManagerError, DeactivateError, ManagerAlreadyExists, PoaManager,
    PoaManagerFactory, PoaManagerState,
};
pub(crate) use self::policy::Policies;
pub use self::policy::{
    IdAssignment, IdUniqueness, ImplicitActivation, Lifespan, ObjectKeys, Policy,
    RequestProcessing, ServantRetention, ThreadModel,
};
#[cfg(feature = "diop")]
pub(crate) use self::reference::forwarded_policies;
pub(crate) use self::serial::{Entry, SerialGuard};
pub use self::servant_manager::{
    AdapterActivator, Cookie, ServantActivator, ServantLocator, ServantManager,
};
pub use self::servants::IntoServant;
pub(crate) use self::servants::{RequestServant, RequestTarget};
pub(crate) use self::table::{ActiveRef, PoaRef, PoaTable};
pub use crate::key_codes::ObjectKeySecret;
pub use crate::object_id::ObjectId;
pub use crate::rtcorba::PriorityModel;
