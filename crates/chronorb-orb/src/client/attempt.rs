//! The attempts of one call, and what follows each of them.
//!
//! [`Attempt::on_outcome`] decides whether a call ends or is retried: an [`Outcome`] or a
//! [`Failure`] goes in, a [`Decision`] comes out. The rules are the same for synchronous,
//! asynchronous, explicit and collocated calls, which only carry decisions out: there is no I/O
//! here, and no table of bindings. Before an attempt, `binding` replaces a connection that has
//! ended meanwhile; that is no retry.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_giop::{
    AddressingDisposition, CompletionStatus, Ior, SystemException, SystemExceptionKind, minor,
};

use super::connection::Failure;
use crate::object::Object;
use crate::rtcorba::RebindMode;
use crate::scope::ReplyBody;

/// The content of a reply.
#[derive(Clone)]
pub(super) enum Outcome {
    Answer(ReplyBody),
    Exception(SystemException),
    Forward(Ior),
    Addressing(AddressingDisposition),
}

/// The destination of an attempt.
#[derive(Clone)]
pub(super) struct Destination {
    pub(super) target: Object,
    /// Whether the target comes from a location forward, and is not the object that was called.
    pub(super) forwarded: bool,
    pub(super) rebind: RebindMode,
    pub(super) addressing: AddressingDisposition,
}

impl Destination {
    /// The object that was called, before it is bound.
    pub(super) fn original(target: &Object) -> Self {
        Self {
            target: target.clone(),
            forwarded: false,
            rebind: RebindMode::Transparent,
            addressing: AddressingDisposition::Key,
        }
    }
}

/// The next step of a call.
#[derive(Debug, PartialEq)]
pub(super) enum Decision {
    /// The call ends with an answer.
    Done(ReplyBody),
    /// The call ends with an exception.
    Failed {
        exception: SystemException,
        cause: Cause,
        /// Whether later calls begin at the object that was called, and not where it was forwarded.
        is_stale: bool,
    },
    /// Another attempt at the same target.
    Again,
    /// Another attempt at the same target, which is named in this way from now on.
    Readdress(AddressingDisposition),
    /// Another attempt at the object that the server named.
    Elsewhere(Object),
    /// Another attempt at the object that was called, and not where it was forwarded.
    Original,
}

/// The origin of the exception that a call ends with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cause {
    /// The server raised it.
    Raised,
    /// The connection failed, or a rule for attempts forbids another one.
    Failed,
    /// The server closed each connection without beginning the request.
    Discarded,
}

/// The state of one call's attempts.
#[derive(Default)]
pub(super) struct Attempt {
    /// Whether the application asked for a binding, which the rebind policy does not restrict.
    pub(super) is_explicit: bool,
    forwards: u32,
    repeats: u32,
}

impl Attempt {
    /// The attempts of an explicit binding.
    pub(super) fn explicit() -> Self {
        Self {
            is_explicit: true,
            ..Self::default()
        }
    }

    /// Decides what follows an attempt at the destination `at` of a call of the object `called`.
    #[inline]
    pub(super) fn on_outcome(
        &mut self,
        called: &Object,
        at: impl FnOnce() -> Destination,
        outcome: Result<Outcome, Failure>,
    ) -> Decision {
        match outcome {
            Ok(Outcome::Answer(answer)) => Decision::Done(answer),
            Ok(Outcome::Exception(exception)) => {
                self.retry_original(called, &at(), exception, Cause::Raised)
            }
            Err(Failure::Exception(exception)) => {
                self.retry_original(called, &at(), exception, Cause::Failed)
            }
            Ok(Outcome::Forward(ior)) => self.forward(&at(), ior),
            Ok(Outcome::Addressing(mode)) => self.readdress(&at(), mode),
            Err(Failure::NotProcessed) if self.may_repeat() => Decision::Again,
            Err(Failure::NotProcessed) => failed(DISCARDED, Cause::Discarded),
        }
    }

    fn may_repeat(&mut self) -> bool {
        let may_repeat = self.repeats < MAX_REPEATS;
        self.repeats += u32::from(may_repeat);
        may_repeat
    }

    #[cold]
    #[inline(never)]
    fn readdress(&mut self, at: &Destination, mode: AddressingDisposition) -> Decision {
        if at.addressing != mode && self.may_repeat() {
            return Decision::Readdress(mode);
        }
        failed(INV_OBJREF, Cause::Failed)
    }

    #[cold]
    #[inline(never)]
    fn forward(&mut self, at: &Destination, ior: Ior) -> Decision {
        self.forwards += 1;
        if self.forwards > MAX_FORWARDS {
            return failed(FORWARD_LOOP, Cause::Failed);
        }
        match at.target.forwarded_to(ior) {
            None => failed(INV_OBJREF, Cause::Failed),
            Some(target) if self.may_move(at, &target) => Decision::Elsewhere(target),
            Some(_) => failed(FORWARD_FORBIDDEN, Cause::Failed),
        }
    }

    /// Returns to the object that was called, if the target of a forward fails before it begins.
    #[cold]
    #[inline(never)]
    fn retry_original(
        &mut self,
        called: &Object,
        at: &Destination,
        exception: SystemException,
        cause: Cause,
    ) -> Decision {
        use SystemExceptionKind::{CommFailure, ObjectNotExist, Transient};
        let is_stale = at.forwarded
            && matches!(exception.kind, CommFailure | ObjectNotExist | Transient)
            && exception.completed == CompletionStatus::No
            && self.may_move(at, called);
        if is_stale && self.may_repeat() {
            return Decision::Original;
        }
        Decision::Failed {
            exception,
            cause,
            is_stale,
        }
    }

    fn may_move(&self, at: &Destination, to: &Object) -> bool {
        self.is_explicit || may_move(at.rebind, &at.target, to)
    }
}

/// Whether calls may go to another object than the one that was bound: with
/// [`RebindMode::NoRebind`] only where the policies that clients see are the same there.
pub(super) fn may_move(mode: RebindMode, from: &Object, to: &Object) -> bool {
    let seen = |object: &Object| {
        let profile = object.profile()?;
        let (bands, protocols) = (profile.bands.clone(), profile.protocols.clone());
        Some((profile.priority_model, bands, protocols))
    };
    match mode {
        RebindMode::Transparent => true,
        RebindMode::NoRebind => seen(from) == seen(to),
        RebindMode::NoReconnect => false,
    }
}

fn failed(exception: SystemException, cause: Cause) -> Decision {
    Decision::Failed {
        exception,
        cause,
        is_stale: false,
    }
}

/// Location forwards of one call; more are a loop.
const MAX_FORWARDS: u32 = 8;
/// New attempts of one call after an orderly close, in another form, or at the original target.
const MAX_REPEATS: u32 = 2;
/// The rebind policy forbids to follow a forward, or to return from one.
pub(super) const FORWARD_FORBIDDEN: SystemException =
    SystemException::no(SystemExceptionKind::Rebind, minor::FORWARD_FORBIDDEN);
/// A reference in a reply cannot be used, or the server asks for the form that was used.
pub(super) const INV_OBJREF: SystemException =
    SystemException::no(SystemExceptionKind::InvObjref, 0);
/// The server did not begin the request.
pub(super) const DISCARDED: SystemException =
    SystemException::no(SystemExceptionKind::Transient, minor::REQUEST_DISCARDED);
const FORWARD_LOOP: SystemException =
    SystemException::no(SystemExceptionKind::Transient, minor::FORWARD_LOOP);

#[cfg(test)]
#[allow(clippy::disallowed_macros, clippy::disallowed_methods)]
mod tests;
