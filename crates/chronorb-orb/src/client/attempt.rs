//! The attempts of one call, and what follows each of them.
//!
//! [`Attempt::on_outcome`] decides whether a call ends or is retried: an [`Outcome`] or a
//! [`Failure`] goes in, a [`Decision`] comes out. The rules are the same for synchronous,
//! asynchronous, explicit and collocated calls, which only carry decisions out: there is no I/O
//! here, and no table of bindings. Before an attempt, `binding` replaces a connection that has
//! ended meanwhile; that is no retry.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::Arc;
use std::time::Duration;

use chronorb_giop::{
    AddressingDisposition, CompletionStatus, Ior, SystemException, SystemExceptionKind, minor,
};
use chronorb_rt::Deadline;

use super::connection::Failure;
use crate::core::Object;
use crate::protocol::Way;
use crate::rtcorba::{FailoverPolicy, FailoverSemantics, RebindMode};
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
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Destination {
    pub(super) target: Object,
    /// Whether the target comes from a location forward, and is not the object that was called.
    pub(super) forwarded: bool,
    pub(super) rebind: RebindMode,
    pub(super) addressing: AddressingDisposition,
    pub(super) failover: Option<Arc<FailoverState>>,
}

/// The fail-over of the calls by a binding.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FailoverState {
    pub(super) policy: FailoverPolicy,
    /// The number of addresses of the reference.
    pub(super) addresses: usize,
    /// The addresses that were tried in the call for which the binding was made.
    pub(super) tried: Vec<Way>,
}

impl FailoverState {
    /// Whether the wait for a reply has a share of the call's time.
    pub(super) fn shares_time(&self) -> bool {
        self.policy.semantics == FailoverSemantics::AtLeastOnce
    }

    /// Whether a call that ends so may be repeated at another address.
    fn is_retryable(&self, exception: &SystemException, cause: Cause) -> bool {
        use CompletionStatus::{Maybe, No};
        use SystemExceptionKind::{CommFailure, NoResponse, ObjAdapter, Timeout, Transient};
        let is_condition = match exception.kind {
            CommFailure | Transient | NoResponse | ObjAdapter => true,
            // The time of the attempt is over, and perhaps not that of the call.
            Timeout => cause == Cause::Failed && self.shares_time(),
            _ => false,
        };
        is_condition
            && match self.policy.semantics {
                FailoverSemantics::BestEffort => exception.completed == No,
                FailoverSemantics::AtLeastOnce => matches!(exception.completed, No | Maybe),
                FailoverSemantics::OrbDefault | FailoverSemantics::AtMostOnce => false,
            }
    }
}

impl Destination {
    /// The object that was called, before it is bound.
    pub(super) fn original(target: &Object) -> Self {
        Self {
            target: target.clone(),
            forwarded: false,
            rebind: RebindMode::Transparent,
            addressing: AddressingDisposition::Key,
            failover: None,
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
    /// Another attempt at another address of the object; the call ends with the exception if there
    /// is none, or no time or budget for it.
    NextAddress {
        exception: SystemException,
        cause: Cause,
        from: Destination,
        /// Whether it is the first move of the call.
        is_first: bool,
    },
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
    /// Whether a server may have executed an earlier attempt.
    is_uncertain: bool,
    forwards: u8,
    repeats: u8,
    /// Attempts at further addresses.
    moves: u8,
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
        let decision = match outcome {
            Ok(Outcome::Answer(answer)) => return Decision::Done(answer),
            Ok(Outcome::Exception(exception)) => {
                self.after_exception(called, at(), exception, Cause::Raised)
            }
            Err(Failure::Exception(exception)) => {
                self.after_exception(called, at(), exception, Cause::Failed)
            }
            Ok(Outcome::Forward(ior)) => self.forward(&at(), ior),
            Ok(Outcome::Addressing(mode)) => self.readdress(&at(), mode),
            Err(Failure::NotProcessed) if self.may_repeat() => Decision::Again,
            Err(Failure::NotProcessed) => {
                self.after_exception(called, at(), DISCARDED, Cause::Discarded)
            }
        };
        match decision {
            Decision::Failed {
                exception,
                cause,
                is_stale,
            } => Decision::Failed {
                exception: self.of_all_attempts(exception),
                cause,
                is_stale,
            },
            other => other,
        }
    }

    /// The exception of the whole call if its last attempt ends with this one.
    #[cold]
    pub(super) fn of_all_attempts(&self, exception: SystemException) -> SystemException {
        if self.is_uncertain && exception.completed == CompletionStatus::No {
            return exception.with_completed(CompletionStatus::Maybe);
        }
        exception
    }

    /// The number of attempts at further addresses.
    pub(super) fn moves(&self) -> usize {
        self.moves.into()
    }

    /// Goes on at another address, or returns to the object that was called.
    #[cold]
    #[inline(never)]
    fn after_exception(
        &mut self,
        called: &Object,
        at: Destination,
        exception: SystemException,
        cause: Cause,
    ) -> Decision {
        let is_retryable = at
            .failover
            .as_ref()
            .is_some_and(|failover| failover.is_retryable(&exception, cause));
        if !is_retryable || self.moves == MAX_MOVES {
            return self.retry_original(called, &at, exception, cause);
        }
        self.moves += 1;
        self.is_uncertain |= exception.completed == CompletionStatus::Maybe;
        Decision::NextAddress {
            exception: self.of_all_attempts(exception),
            cause,
            from: at,
            is_first: self.moves == 1,
        }
    }

    fn may_repeat(&mut self) -> bool {
        let may_repeat = self.repeats < MAX_REPEATS;
        self.repeats += u8::from(may_repeat);
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
            && cause != Cause::Discarded
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

/// The deadline of one of several attempts that are left until a deadline.
pub(super) fn share(deadline: Deadline, longest: Option<Duration>, left: usize) -> Deadline {
    let left = u32::try_from(left).unwrap_or(u32::MAX).max(1);
    let remaining = deadline.remaining().unwrap_or_default();
    let share = longest.unwrap_or(remaining / left);
    deadline.min(Deadline::after(share))
}

fn failed(exception: SystemException, cause: Cause) -> Decision {
    Decision::Failed {
        exception,
        cause,
        is_stale: false,
    }
}

/// Location forwards of one call; more are a loop.
const MAX_FORWARDS: u8 = 8;
/// New attempts of one call after an orderly close, in another form, or at the original target.
const MAX_REPEATS: u8 = 2;
/// Attempts of one call at further addresses.
const MAX_MOVES: u8 = 128;
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
