//! Failures of operations, and the exceptions that they become.

use chronorb::quota::QuotaError;
use chronorb::{Call, SystemException, SystemExceptionKind};

use crate::idl::chronorb_naming::leasing_context::{InvalidTimeToLive, LeaseLost};
use crate::idl::chronorb_naming::{
    BindWithLeaseError, BindWithLeaseErrorBuf, RebindWithLeaseError, RebindWithLeaseErrorBuf,
    ReleaseError, ReleaseErrorBuf,
};
use crate::idl::cos_naming::naming_context::{
    AlreadyBound, CannotProceed, CannotProceedBuf, InvalidName, NotFound, NotFoundBuf,
};
use crate::idl::cos_naming::{
    BindError, BindErrorBuf, NameComponent, NamingContext, RebindError, RebindErrorBuf,
    ResolveStrError, ToStringError, ToUrlError,
};
use crate::name::NameTextError;
use crate::state::ServerState;
use crate::tree::TreeError;

/// The failure of an operation: the exceptions of all operations together.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Failure<'a> {
    NotFound(NotFound<'a>),
    CannotProceed(CannotProceed<'a>),
    InvalidName,
    AlreadyBound,
    NotEmpty,
    LeaseLost,
    InvalidTimeToLive(InvalidTimeToLive),
    System(SystemException),
}

/// A system exception that completed nothing.
pub(crate) const fn system(kind: SystemExceptionKind) -> SystemException {
    SystemException::no(kind, 0)
}

/// The exception for a client that has too much.
pub(crate) fn over_quota(error: &QuotaError) -> SystemException {
    system(match error {
        QuotaError::Memory { .. } => SystemExceptionKind::NoMemory,
        _ => SystemExceptionKind::NoResources,
    })
}

/// The reason why a text is not read or written.
pub(crate) enum TextFailure {
    /// The text is no name, or the name has no text.
    Invalid,
    System(SystemException),
}

impl From<SystemException> for TextFailure {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

impl From<NameTextError> for TextFailure {
    fn from(_: NameTextError) -> Self {
        Self::Invalid
    }
}

impl<'a> Failure<'a> {
    /// Returns `CannotProceed` at a context.
    pub(crate) fn at(
        call: &Call<'a>,
        context: &NamingContext,
        rest: &'a [NameComponent<'a>],
    ) -> Self {
        Self::CannotProceed(CannotProceed {
            cxt: Some(call.keep(context.clone())),
            rest_of_name: rest,
        })
    }

    /// Returns the exception for a refusal by the tree.
    pub(crate) fn of_tree(call: &Call<'a>, shared: &ServerState, error: TreeError<'a>) -> Self {
        use SystemExceptionKind::{ImpLimit, NoPermission, NoResources, ObjectNotExist};
        match error {
            TreeError::NoContext => Self::System(system(ObjectNotExist)),
            TreeError::InvalidName => Self::InvalidName,
            TreeError::NotFound(why, rest_of_name) => {
                Self::NotFound(NotFound { why, rest_of_name })
            }
            TreeError::Destroyed(context, rest) => match shared.context(context) {
                Ok(context) => Self::at(call, &context, rest),
                Err(exception) => Self::System(exception),
            },
            TreeError::AlreadyBound => Self::AlreadyBound,
            TreeError::NotEmpty => Self::NotEmpty,
            TreeError::LeaseLost => Self::LeaseLost,
            TreeError::Root => Self::System(system(NoPermission)),
            TreeError::TooMany => Self::System(system(NoResources)),
            TreeError::TooLong => Self::System(system(ImpLimit)),
        }
    }

    fn of_not_found(call: &Call<'a>, error: NotFoundBuf) -> Result<Self, SystemException> {
        let error = call.keep(error).as_view_in(call.arena())?;
        Ok(Self::NotFound(error))
    }

    fn of_cannot_proceed(
        call: &Call<'a>,
        error: CannotProceedBuf,
    ) -> Result<Self, SystemException> {
        let error = call.keep(error).as_view_in(call.arena())?;
        Ok(Self::CannotProceed(error))
    }
}

impl From<TextFailure> for Failure<'_> {
    fn from(failure: TextFailure) -> Self {
        match failure {
            TextFailure::Invalid => Self::InvalidName,
            TextFailure::System(exception) => Self::System(exception),
        }
    }
}

impl From<SystemException> for Failure<'_> {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

/// The failure of a call to another server.
pub(crate) trait RemoteError {
    /// Returns the same failure for the caller; `Err` for a system exception.
    fn pass_on<'a>(self, call: &Call<'a>) -> Result<Failure<'a>, SystemException>;
}

macro_rules! remote {
    ($($error:ident { $($plain:ident $(($exception:ident))? => $failure:expr),* })*) => {$(
        impl RemoteError for $error {
            fn pass_on<'a>(self, call: &Call<'a>) -> Result<Failure<'a>, SystemException> {
                match self {
                    Self::NotFound(error) => Failure::of_not_found(call, error),
                    Self::CannotProceed(error) => Failure::of_cannot_proceed(call, error),
                    Self::InvalidName(_) => Ok(Failure::InvalidName),
                    Self::System(exception) => Err(exception),
                    $(Self::$plain(_exception) => {
                        $(let $exception = _exception;)?
                        Ok($failure)
                    })*
                }
            }
        }
    )*};
}

remote! {
    RebindErrorBuf {}
    BindErrorBuf { AlreadyBound => Failure::AlreadyBound }
    BindWithLeaseErrorBuf {
        AlreadyBound => Failure::AlreadyBound,
        InvalidTimeToLive(error) => Failure::InvalidTimeToLive(error)
    }
    RebindWithLeaseErrorBuf { InvalidTimeToLive(error) => Failure::InvalidTimeToLive(error) }
    ReleaseErrorBuf { LeaseLost => Failure::LeaseLost }
}

macro_rules! raised_by_texts {
    ($($error:ident),*) => {$(
        impl From<TextFailure> for $error {
            fn from(failure: TextFailure) -> Self {
                match failure {
                    TextFailure::Invalid => InvalidName.into(),
                    TextFailure::System(exception) => exception.into(),
                }
            }
        }
    )*};
}

raised_by_texts! { ToStringError, ToUrlError }

/// Failures that an operation does not raise cannot occur in it.
const IMPOSSIBLE: SystemException = system(SystemExceptionKind::Internal);

macro_rules! raised {
    ($($error:ident { $($failure:pat => $exception:expr),* })*) => {$(
        impl<'a> From<Failure<'a>> for $error<'a> {
            fn from(failure: Failure<'a>) -> Self {
                match failure {
                    Failure::NotFound(error) => Self::NotFound(error),
                    Failure::CannotProceed(error) => Self::CannotProceed(error),
                    Failure::InvalidName => Self::InvalidName(InvalidName),
                    Failure::System(exception) => Self::System(exception),
                    $($failure => $exception,)*
                    _ => Self::System(IMPOSSIBLE),
                }
            }
        }
    )*};
}

raised! {
    RebindError {}
    ResolveStrError {}
    BindError { Failure::AlreadyBound => Self::AlreadyBound(AlreadyBound) }
    BindWithLeaseError {
        Failure::AlreadyBound => Self::AlreadyBound(AlreadyBound),
        Failure::InvalidTimeToLive(error) => Self::InvalidTimeToLive(error)
    }
    RebindWithLeaseError { Failure::InvalidTimeToLive(error) => Self::InvalidTimeToLive(error) }
    ReleaseError { Failure::LeaseLost => Self::LeaseLost(LeaseLost) }
}
