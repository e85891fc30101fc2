//! Calls of objects of the same ORB, served by the calling thread.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::any::TypeId;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use chronorb_cdr::{Encoder, Endian, Frame};
use chronorb_giop::{
    CompletionStatus, MessageHeader, MessageType, ReplyHeader, SystemException,
    SystemExceptionKind, Version, minor, start_message,
};
use chronorb_rt::{Deadline, Gate, PiMutex};

use super::attempt::{Attempt, Cause, DISCARDED, Decision, Destination, Outcome};
use super::invocation::{Arguments, read_status};
use crate::call::{Call, IncomingRequest, Operation, ReplyWriter, Skeleton};
use crate::core::Core;
use crate::failure::because;
use crate::object::Object;
use crate::rtcorba::{OwnPriority, Priority, onward_priority};
use crate::scope::{Answer, Scope, text_within};
use crate::upcall::Dispatch;
use crate::upcall::{Body, Parks, Role, Thread, Upcall, UpcallError};

/// Makes attempts of a call at objects of this process: first at `called`, which has this key.
/// `Continue` is for a call that has to go by the transport, to another object if `called` was
/// forwarded there.
///
/// # Errors
/// Those that occur before a servant is called, or after it.
pub(super) fn call(
    called: &Object,
    key: &[u8],
    attempt: &mut Attempt,
    scope: &mut Scope,
    operation: &Operation,
    arguments: Arguments<'_>,
    limits: (Option<Priority>, Deadline),
) -> Result<Within, SystemException> {
    let mut onward: Option<Object> = None;
    loop {
        let target = onward.as_ref();
        let Some(key) = target.map_or(Some(key), Object::key_within) else {
            return Ok(ControlFlow::Continue(onward));
        };
        let core = target.unwrap_or(called).core();
        match exchange(core, key, scope, operation, arguments, limits)? {
            Some(Outcome::Answer(answer)) => return Ok(ControlFlow::Break(Ok(answer))),
            Some(outcome) => match next_target(called, onward, attempt, outcome) {
                Ok(target) => onward = target,
                Err(exception) => return Ok(ControlFlow::Break(Err(exception))),
            },
            None => return Ok(ControlFlow::Continue(onward)),
        }
    }
}

/// Decides where a call goes on after an attempt at `onward`, to which it was forwarded, or at the
/// object that was called: `None` is the latter again.
///
/// # Errors
/// The exception that the call ends with.
#[cold]
#[inline(never)]
fn next_target(
    called: &Object,
    onward: Option<Object>,
    attempt: &mut Attempt,
    outcome: Outcome,
) -> Result<Option<Object>, SystemException> {
    let target = onward.as_ref().unwrap_or(called);
    let at = || Destination {
        forwarded: onward.is_some(),
        rebind: target.rebind_mode(),
        ..Destination::original(target)
    };
    match attempt.on_outcome(called, at, Ok(outcome)) {
        Decision::Failed {
            exception, cause, ..
        } => Err(explain(exception, cause)),
        Decision::Elsewhere(target) => Ok(Some(target)),
        Decision::Original => Ok(None),
        // An answer is none of these outcomes, and the others are about connections.
        Decision::Done(_) | Decision::Again | Decision::Readdress(_) => Ok(onward),
    }
}

/// The result of a call within the process, or the object at which it goes on.
pub(super) type Within = ControlFlow<Result<Answer, SystemException>, Option<Object>>;

/// Notes the cause of an exception that ends a call within the process.
#[cold]
#[inline(never)]
fn explain(exception: SystemException, cause: Cause) -> SystemException {
    let how = match cause {
        Cause::Raised => "raised",
        _ => "in a call",
    };
    because(exception, format_args!("{how} within this process"))
}

/// Calls an operation as one of this process; `None` where it has to go by the transport.
fn exchange(
    core: &Arc<Core>,
    key: &[u8],
    scope: &mut Scope,
    operation: &Operation,
    arguments: Arguments<'_>,
    (propagated, deadline): (Option<Priority>, Deadline),
) -> Result<Option<Outcome>, SystemException> {
    scope.begin(core);
    marshal(core, &mut scope.request, arguments)?;
    let mut served = serve(core, key, operation.name, scope, propagated, caller(core));
    if let Err(UpcallError::ByAnotherThread(priority)) = served {
        let priorities = (priority, propagated);
        match by_main_thread(core, key, operation, scope, priorities, deadline) {
            Some(there) => served = there,
            None => return Ok(None),
        }
    }
    match served {
        Ok(()) => outcome(scope).map(Some),
        Err(UpcallError::Exception(exception)) => Ok(Some(Outcome::Exception(exception))),
        Err(UpcallError::Forward(target)) => Ok(Some(Outcome::Forward(target.ior().clone()))),
        Err(UpcallError::ByAnotherThread(_) | UpcallError::Parked(..)) => Ok(None),
    }
}

/// Calls the servant itself; `None` where the call has to be marshalled.
pub(crate) fn direct<'x, S: 'static, R>(
    core: &Arc<Core>,
    key: &[u8],
    scope: &mut Scope,
    operation: &Operation,
    call: impl for<'a> FnOnce(&S, &Call<'a>, [&'a &'x (); 0]) -> R,
) -> Option<Result<R, SystemException>> {
    // Without the ORB a marshalled call says so.
    core.check_running().ok()?;
    let propagated = match onward_priority(core) {
        Ok(priority) => priority,
        Err(exception) => return Some(Err(exception)),
    };
    scope.begin(core);
    let upcall = Upcall {
        incoming: IncomingRequest {
            core,
            arena: scope.arena(),
            operation: operation.name.as_bytes(),
            response_expected: true,
            contexts: &[],
            peer: None,
        },
        key,
        propagated,
        ceiling: None,
        thread: caller(core),
    };
    let mut call = Direct {
        call: Some(call),
        arguments: PhantomData,
        servant: PhantomData,
    };
    match upcall.serve(&mut call) {
        Ok(result) => result.map(Ok),
        Err(UpcallError::Exception(exception)) => Some(Err(exception)),
        Err(
            UpcallError::Forward(_) | UpcallError::ByAnotherThread(_) | UpcallError::Parked(..),
        ) => None,
    }
}

/// A call of the servant itself.
struct Direct<'x, S, F> {
    /// Taken when the servant is called.
    call: Option<F>,
    arguments: PhantomData<&'x ()>,
    servant: PhantomData<fn(&S)>,
}

impl<'x, S, R, F> Body for Direct<'x, S, F>
where
    S: 'static,
    F: for<'a> FnOnce(&S, &Call<'a>, [&'a &'x (); 0]) -> R,
{
    type Output = Option<R>;

    fn run<'c>(&mut self, servant: &'c dyn Skeleton, call: &Call<'c>) -> Self::Output
    where
        Self: 'c,
    {
        let servant = servant.servant_as(TypeId::of::<S>())?;
        let servant = servant.downcast_ref::<S>()?;
        Some(self.call.take()?(servant, call, []))
    }
}

/// The calling thread as the one that serves.
fn caller(core: &Core) -> Thread {
    Thread {
        own: OwnPriority::of_caller(),
        patience: core.config.hold_timeout,
        parks: Parks::No,
        role: Role::Caller,
    }
}

/// Serves the request in the scope's frame, which came with a priority, and writes the reply into
/// its other one.
fn serve(
    core: &Arc<Core>,
    key: &[u8],
    operation: &str,
    scope: &mut Scope,
    propagated: Option<Priority>,
    thread: Thread,
) -> Result<(), UpcallError> {
    let text = text_within();
    let (request, reply, arena) = scope.parts();
    let arguments = request.decoder(BODY, Endian::NATIVE, arena);
    let arguments = arguments.with_text(text).with_host(Some(core));
    let upcall = Upcall {
        incoming: IncomingRequest {
            core,
            arena,
            operation: operation.as_bytes(),
            response_expected: true,
            contexts: &[],
            peer: None,
        },
        key,
        propagated,
        ceiling: None,
        thread,
    };
    let mut reply = ReplyWriter::new(reply, VERSION.into(), 0, text, &[]);
    match upcall.serve(&mut Dispatch::of_caller(&mut Some(arguments), &mut reply))? {
        Ok(()) => {}
        Err(exception) => reply.system_exception(exception)?,
    }
    reply.finish();
    // The values of the arguments make room for those of the results.
    scope.reset_arena();
    Ok(())
}

/// Lets the main thread serve the request, which waits for it at the first of two priorities and
/// came with the second, and waits; `None` where it is none for it.
#[cold]
#[allow(clippy::disallowed_methods, reason = "the request is queued")]
fn by_main_thread(
    core: &Arc<Core>,
    key: &[u8],
    operation: &Operation,
    scope: &mut Scope,
    (priority, propagated): (Option<Priority>, Option<Priority>),
    deadline: Deadline,
) -> Option<Result<(), UpcallError>> {
    if !core.poas.is_for_main_thread(core.incarnation, key) || core.main.is_here() {
        return None;
    }
    if core.main.is_full() {
        return Some(Err(DISCARDED.into()));
    }
    let shared = Arc::new(Rendezvous {
        done: Gate::new(0),
        result: PiMutex::new(None),
    });
    let mut there = Scope::new(core.config.arena_size);
    there.begin(core);
    std::mem::swap(&mut there.request, &mut scope.request);
    let (key, name) = (key.to_vec(), operation.name);
    let task = {
        let (core, left) = (core.clone(), Left(shared.clone()));
        move || {
            let thread = Thread {
                // The POA let the request in; one that holds again must not hold up the others.
                patience: Duration::ZERO,
                role: Role::Main,
                ..caller(&core)
            };
            let served = serve(&core, &key, name, &mut there, propagated, thread);
            *left.0.result.lock() = Some((served, there.reply));
        }
    };
    core.main.post(priority, Box::new(task));
    if shared.done.wait_while(0, deadline) == 0 {
        let kind = SystemExceptionKind::Timeout;
        let late = SystemException::new(kind, minor::TIMEOUT_REPLY_END, CompletionStatus::Maybe);
        return Some(Err(late.into()));
    }
    let Some((served, reply)) = shared.result.lock().take() else {
        return Some(Err(DISCARDED.into()));
    };
    scope.reply = reply;
    Some(served)
}

/// Where the main thread leaves the reply.
struct Rendezvous {
    done: Gate,
    result: PiMutex<Option<(Result<(), UpcallError>, Frame)>>,
}

/// The request as the main thread has it. Its caller goes on when this is dropped, be it because
/// the ORB has ended.
struct Left(Arc<Rendezvous>);

impl Drop for Left {
    fn drop(&mut self) {
        self.0.done.set(1);
    }
}

fn marshal(
    core: &Core,
    request: &mut Frame,
    arguments: Arguments<'_>,
) -> Result<(), SystemException> {
    let mut e: Encoder<'_> =
        start_message(request, VERSION, MessageType::Request)?.with_text(text_within());
    e.align(8)?;
    arguments(&mut e)?;
    if request.len() > core.config.max_message_size {
        return Err(chronorb_cdr::CdrError::FrameFull.into());
    }
    Ok(())
}

/// What the reply in the scope's frame says.
fn outcome(scope: &mut Scope) -> Result<Outcome, SystemException> {
    let text = text_within();
    let (frame, arena) = scope.reply_parts();
    let message = MessageHeader::parse(frame.as_slice()).map_err(|_| MALFORMED)?;
    let mut d = message.decoder(frame, arena).with_text(text);
    let header = ReplyHeader::decode(&mut d, message.protocol)?;
    read_status(header.status, &mut d, text, message.endian)
        .map_err(|e| SystemException::from(e).with_completed(CompletionStatus::Maybe))
}

const MALFORMED: SystemException =
    SystemException::no(SystemExceptionKind::Marshal, minor::MALFORMED_MESSAGE);
const VERSION: Version = Version::V1_2;
/// Where the arguments begin, after a message's header and padding.
const BODY: usize = 16;
