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

/// More proxies than the channel may have.
pub(crate) const TOO_MANY: SystemException = system(SystemExceptionKind::ImpLimit);
