//! Exceptions of the channel.

use chronorb::{SystemException, SystemExceptionKind};

/// A system exception of an operation that had no effect.
pub(crate) const fn system(kind: SystemExceptionKind) -> SystemException {
    SystemException::no(kind, 0)
}

/// A malformed or excessive argument.
pub(crate) const BAD_PARAM: SystemException = system(SystemExceptionKind::BadParam);

/// An object that was disconnected or destroyed.
pub(crate) const GONE: SystemException = system(SystemExceptionKind::ObjectNotExist);

/// No memory for what a client sent.
pub(crate) const NO_MEMORY: SystemException = system(SystemExceptionKind::NoMemory);

/// More than the channel may have, or a client.
pub(crate) const TOO_MANY: SystemException = system(SystemExceptionKind::ImpLimit);

/// An operation that the options of the channel do not allow to clients.
pub(crate) const NOT_ALLOWED: SystemException = system(SystemExceptionKind::NoPermission);
