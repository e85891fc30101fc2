//! The names of initial references.

use std::collections::HashMap;

use chronorb_giop::{Ior, SystemException};
use chronorb_rt::PiMutex;
use thiserror::Error;

use crate::config::OrbConfig;
use crate::failure::{self, LastFailure};

/// The initial references of an ORB.
pub(crate) struct InitialReferences {
    pub(crate) given: Vec<(String, String)>,
    pub(crate) default: Option<String>,
    /// Whether references in text form may name files; those of `-ORBInitRef` always may.
    pub(crate) files: bool,
    registered: PiMutex<HashMap<String, Ior>>,
}

impl InitialReferences {
    pub(crate) fn new(config: &OrbConfig) -> Self {
        Self {
            given: config.init_refs.clone(),
            default: config.default_init_ref.clone(),
            files: config.file_references,
            registered: PiMutex::new(HashMap::new()),
        }
    }

    pub(crate) fn register(&self, name: &str, ior: Ior) -> Result<(), ResolveError> {
        let mut registered = self.registered.lock();
        if name.is_empty() {
            return Err(ResolveError::InvalidName);
        }
        if registered.contains_key(name) {
            return Err(ResolveError::NameTaken);
        }
        registered.insert(name.to_owned(), ior);
        Ok(())
    }

    /// The reference that is registered under a plain key, for `corbaloc:` requests of clients.
    pub(crate) fn registered(&self, key: &[u8]) -> Option<Ior> {
        let name = std::str::from_utf8(key).ok()?;
        self.registered.lock().get(name).cloned()
    }
}

/// An error in resolving or registering an initial reference.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ResolveError {
    /// There is no such name, or it is empty.
    #[error("no initial reference has this name (-ORBInitRef NAME=URL gives one)")]
    InvalidName,
    /// An object is already registered under this name.
    #[error("an initial reference of this name is registered already")]
    NameTaken,
    /// The URL of the initial reference cannot be used; the source has the cause.
    #[error("the URL of the initial reference cannot be used")]
    Unusable(#[source] Box<LastFailure>),
    /// The URL of the initial reference cannot be used.
    #[error(transparent)]
    System(SystemException),
}

impl From<SystemException> for ResolveError {
    fn from(exception: SystemException) -> Self {
        failure::kept(exception).map_or(Self::System(exception), Self::Unusable)
    }
}
