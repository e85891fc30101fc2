//! Calls of objects of the same ORB, served by the calling thread.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::any::TypeId;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use chronorb_cdr::{Arena, Encoder, Endian, Frame};
use chronorb_giop::{
    CompletionStatus, MessageHeader, MessageType, ReplyHeader, SystemException,
    SystemExceptionKind, Version, minor, start_message,
};
use chronorb_rt::{Deadline, Gate, PiMutex};

use super::attempt::{Attempt, Cause, DISCARDED, Decision, Destination, Outcome};
use super::request::{Arguments, read_reply};
use super::route::onward_priority;
use crate::call::{Call, IncomingRequest, Operation, ReplyWriter, Skeleton};
use crate::core::{Core, Object};
use crate::failure::because;
use crate::poa::Poa;
use crate::riders;
use crate::rtcorba::{OwnPriority, Priority};
use crate::scope::{ReplyBody, Scope, text_within};
use crate::upcall::Dispatch;
use crate::upcall::{Body, Parks, Role, Thread, Upcall, UpcallError};

/// The state of a call after attempts within the process.
pub(super) enum LocalCall {
    /// The call ended.
    Done(Result<ReplyBody, SystemException>),
    /// The call must use the transport, to the object that was called.
    ByTransport,
    /// The call must use the transport, to this object, to which it was forwarded.
    Forwarded(Object),
}

/// Makes attempts of a call at objects of this process: first at `called`, which has this key.
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
) -> Result<LocalCall, SystemException> {
    let mut onward: Option<Object> = None;
    loop {
        let target = onward.as_ref();
        let key = target.map_or(Some(key), Object::key_within);
        let core = target.unwrap_or(called).core();
        let outcome = match key {
            Some(key) => exchange(core, key, scope, operation, arguments, limits)?,
            None => None,
        };
        match outcome {
            Some(Outcome::Answer(answer)) => return Ok(LocalCall::Done(Ok(answer))),
            Some(outcome) => match next_target(called, onward, attempt, outcome) {
                Ok(target) => onward = target,
                Err(exception) => return Ok(LocalCall::Done(Err(exception))),
            },
            None => return Ok(onward.map_or(LocalCall::ByTransport, LocalCall::Forwarded)),
        }
    }
}

/// Decides on the target of the next attempt after one at `onward`, to which a call was forwarded,
/// or at the object that was called: `None` is the latter again.
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
        Decision::Done(_)
        | Decision::Again
        | Decision::Readdress(_)
        | Decision::NextAddress { .. } => Ok(onward),
    }
}

/// Records the cause of an exception that ends a call within the process.
#[cold]
#[inline(never)]
fn explain(exception: SystemException, cause: Cause) -> SystemException {
    let how = match cause {
        Cause::Raised => "raised",
        _ => "in a call",
    };
    because(exception, format_args!("{how} within this process"))
}

/// Makes one attempt within the process; `None` if the call must use the transport.
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

/// Calls the servant itself; `None` if the call must be marshalled. Generated code has a body for
/// each operation, so this is compiled once for all of them.
#[inline(never)]
pub(crate) fn serve_directly<'b>(
    core: &Arc<Core>,
    key: &[u8],
    scope: &mut Scope,
    operation: &Operation,
    body: &mut (dyn Body<Output = ()> + 'b),
) -> Option<Result<(), SystemException>> {
    // The ends of a call are scheduling points, which calls that are marshalled have.
    #[cfg(feature = "distributable-threads")]
    if crate::rtscheduling::is_in_segment() {
        return None;
    }
    // After the end of the ORB, the marshalled call fails.
    core.check_running().ok()?;
    let propagated = match onward_priority(core) {
        Ok(priority) => priority,
        Err(exception) => return Some(Err(exception)),
    };
    scope.begin(core);
    let request = (key, operation.name, propagated);
    let thread = caller(core);
    let upcall = upcall(core, scope.arena(), request, &thread);
    match upcall.serve(body) {
        Ok(()) => Some(Ok(())),
        Err(UpcallError::Exception(exception)) => Some(Err(exception)),
        Err(
            UpcallError::Forward(_) | UpcallError::ByAnotherThread(_) | UpcallError::Parked(..),
        ) => None,
    }
}

/// The upcall for a request with this key, operation and priority.
#[inline(always)]
fn upcall<'r>(
    core: &'r Arc<Core>,
    arena: &'r Arena,
    (key, operation, propagated): (&'r [u8], &'r str, Option<Priority>),
    thread: &'r Thread,
) -> Upcall<'r> {
    Upcall {
        core,
        incoming: IncomingRequest {
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
    }
}

/// A call of the servant itself.
pub(crate) struct DirectCall<'x, S, F, R> {
    /// The call, until it is made.
    call: Option<F>,
    /// The result, if the servant has the type that is called.
    result: Option<R>,
    arguments: PhantomData<&'x ()>,
    servant: PhantomData<fn(&S)>,
}

impl<S, F, R> DirectCall<'_, S, F, R> {
    pub(crate) fn new(call: F) -> Self {
        Self {
            call: Some(call),
            result: None,
            arguments: PhantomData,
            servant: PhantomData,
        }
    }

    /// Returns the result, if the servant was called.
    pub(crate) fn into_result(self) -> Option<R> {
        self.result
    }
}

impl<'x, S, R, F> Body for DirectCall<'x, S, F, R>
where
    S: 'static,
    F: for<'a> FnOnce(&S, &Call<'a>, [&'a &'x (); 0]) -> R,
{
    type Output = ();

    fn run<'c>(&mut self, servant: &'c dyn Skeleton, _: &Poa, call: &Call<'c>)
    where
        Self: 'c,
    {
        if let Some(servant) = servant.servant_as(TypeId::of::<S>())
            && let Some(servant) = servant.downcast_ref::<S>()
            && let Some(made) = self.call.take()
        {
            self.result = Some(made(servant, call, []));
        }
    }
}

/// The calling thread in its role as the one that serves.
fn caller(core: &Core) -> Thread {
    Thread {
        own: OwnPriority::of_caller(),
        patience: core.config.hold_timeout,
        parks: Parks::No,
        role: Role::Caller,
    }
}

/// Serves the request in the scope's frame, and writes the reply into its other one.
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
    let upcall = upcall(core, arena, (key, operation, propagated), &thread);
    let mut reply = ReplyWriter::new(reply, VERSION.into(), REQUEST_ID, text, &[]);
    match upcall.serve(&mut Dispatch::of_caller(&mut Some(arguments), &mut reply))? {
        Ok(()) => {}
        Err(exception) => reply.system_exception(exception)?,
    }
    reply.finish();
    // The values of the arguments make room for those of the results.
    scope.reset_arena();
    Ok(())
}

/// Has the main thread serve the request, and waits for that; `None` if the request is not for the
/// main thread. The request is queued at `priority`, and has the priority `propagated`.
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
        let (core, caller_waits) = (core.clone(), WakeCaller(shared.clone()));
        move || {
            let thread = Thread {
                // The POA has admitted the request; one that holds again must not delay others.
                patience: Duration::ZERO,
                role: Role::Main,
                ..caller(&core)
            };
            let served = serve(&core, &key, name, &mut there, propagated, thread);
            *caller_waits.0.result.lock() = Some((served, there.reply));
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

/// The place for the reply of the main thread.
struct Rendezvous {
    done: Gate,
    result: PiMutex<Option<(Result<(), UpcallError>, Frame)>>,
}

/// A guard that wakes the caller when the request is dropped, served or not.
struct WakeCaller(Arc<Rendezvous>);

impl Drop for WakeCaller {
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

/// The outcome in the reply in the scope's frame.
fn outcome(scope: &mut Scope) -> Result<Outcome, SystemException> {
    if ReplyHeader::is_own_result(scope.reply.as_slice()) {
        return Ok(Outcome::Answer(ReplyBody {
            exception: false,
            body: ReplyHeader::RESULT_AT,
            endian: Endian::NATIVE,
            text: text_within(),
        }));
    }
    let parts = scope.reply_parts();
    let message = MessageHeader::parse(parts.0.as_slice()).map_err(|_| MALFORMED)?;
    let riders = &mut riders::CallState::default();
    let outcome = read_reply(parts, riders, message, text_within(), REQUEST_ID)
        .map_err(|e| SystemException::from(e).with_completed(CompletionStatus::Maybe))?;
    outcome.ok_or(MALFORMED)
}

const MALFORMED: SystemException =
    SystemException::no(SystemExceptionKind::Marshal, minor::MALFORMED_MESSAGE);
const VERSION: Version = Version::V1_2;
const REQUEST_ID: u32 = 0;
/// The position of the arguments, after a message's header and padding.
const BODY: usize = 16;
