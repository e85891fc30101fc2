//! Calls of distributable threads: what travels, and the scheduling points on both sides.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::num::NonZeroU64;
use std::sync::{Arc, Weak};

use chronorb_giop::{CompletionStatus, SchedulingContext, SystemException, SystemExceptionKind};

use super::current::end_all;
use super::record::{self, Interrupt};
use super::thread::{self, Caller, LevelPlace, NewLevel, constraint_of};
use super::{Guid, SchedulingParameter, SchedulingPoint};
use crate::core::Core;
use crate::incident::Incident;
use crate::rtcorba::scheduling::{CallConstraint, CarriedConstraint, Constraint, due};
use crate::rtcorba::{Priority, request_priority, set_request_priority};

/// A call by a distributable thread.
pub(crate) struct CallInSegment {
    /// The distributable thread that calls.
    caller: Caller,
    kind: CallKind,
}

/// A call by a distributable thread that goes on, with the context and the priority of its
/// requests, which are others than those of the calling thread.
pub(crate) struct DetachedCall {
    call: CallInSegment,
    of_requests: RequestsOfThread,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum CallKind {
    /// The thread waits for the reply.
    Synchronous,
    /// The thread goes on.
    Detached,
    /// The thread fetches the reply to an asynchronous call.
    Poll,
}

/// The requests of the calling thread are those of a distributable thread that begins with them,
/// until this is dropped.
struct RequestsOfThread {
    _context: CarriedConstraint,
    /// The priority of the calling thread.
    before: Option<Priority>,
}

/// The wait of a call for its reply, which a cancellation ends.
pub(crate) struct InterruptibleWait<'a>(&'a LevelPlace);

/// A distributable thread that a request has brought to the calling thread. Its segments here end
/// when this is dropped.
pub(crate) struct HostedThread {
    core: Arc<Core>,
    guid: Guid,
    place: LevelPlace,
}

/// The answer of a server to a distributable thread.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    Reply,
    Exception(SystemException),
    Other,
}

/// Whether calls of this thread are those of a distributable thread.
#[inline]
pub(crate) fn is_in_segment() -> bool {
    thread::is_active()
}

/// Makes requests of this thread cancel a distributable thread, until the guard is dropped.
pub(crate) fn cancelling(guid: Guid) -> CarriedConstraint {
    let context = SchedulingContext {
        guid: guid.0,
        cancelled: true,
        ..SchedulingContext::default()
    };
    let cancelling = Constraint { due: None, context };
    CallConstraint::none().with_thread(cancelling).carry()
}

/// Begins a call with a reply.
///
/// # Errors
/// `THREAD_CANCELLED`.
#[inline]
pub(crate) fn begin_call() -> Result<CallInSegment, SystemException> {
    begin(CallKind::Synchronous, SchedulingPoint::SendRequest)
}

/// Begins to fetch the reply to an asynchronous call.
///
/// # Errors
/// `THREAD_CANCELLED`.
pub(crate) fn begin_poll() -> Result<CallInSegment, SystemException> {
    begin(CallKind::Poll, SchedulingPoint::SendPoll)
}

#[inline(always)]
fn begin(kind: CallKind, point: SchedulingPoint) -> Result<CallInSegment, SystemException> {
    match thread::caller() {
        Some(caller) if !caller.place.is_cancelled() => {
            let scheduler = caller.core.scheduling.scheduler();
            scheduler.at_point(point, caller.guid);
            Ok(CallInSegment { caller, kind })
        }
        // A poll fetches the reply to a request that was sent before.
        _ if kind == CallKind::Poll => Err(thread::unwind(CompletionStatus::Maybe)),
        _ => Err(thread::unwind(CompletionStatus::No)),
    }
}

/// Begins a call that the caller does not wait for. It makes a distributable thread of its own,
/// which has the implicit parameter.
///
/// # Errors
/// `THREAD_CANCELLED`.
pub(crate) fn begin_detached() -> Result<DetachedCall, SystemException> {
    let call = begin(CallKind::Detached, SchedulingPoint::SendRequest)?;
    let present = thread::present().ok_or_else(|| thread::cancelled(CompletionStatus::No))?;
    let implicit = present.implicit.as_ref();
    let guid = present.core.scheduling.next_guid();
    let mut constraint = constraint_of(guid, present.hops, implicit);
    constraint.context.begins_thread = true;
    let scheduler = present.core.scheduling.scheduler();
    let before = request_priority();
    let priority = implicit.and_then(|implicit| scheduler.priority(implicit));
    set_request_priority(priority.or(before));
    let of_requests = RequestsOfThread {
        _context: CallConstraint::of_calls().with_thread(constraint).carry(),
        before,
    };
    Ok(DetachedCall { call, of_requests })
}

impl Drop for RequestsOfThread {
    fn drop(&mut self) {
        set_request_priority(self.before);
    }
}

impl DetachedCall {
    /// The call, while requests of the calling thread are its own.
    pub(crate) fn call(&self) -> &CallInSegment {
        &self.call
    }

    /// Ends the guard of the context and of the priority of its requests: those that are sent later
    /// have them by other ways.
    pub(crate) fn prepared(self) -> CallInSegment {
        drop(self.of_requests);
        self.call
    }
}

impl CallInSegment {
    /// Ends an attempt to fetch a reply that has not arrived. A cancellation ends the distributable
    /// thread.
    ///
    /// # Errors
    /// `THREAD_CANCELLED`.
    pub(crate) fn end_without_reply(self) -> Result<(), SystemException> {
        if self.is_cancelled() {
            return Err(thread::unwind(CompletionStatus::Maybe));
        }
        let scheduler = self.caller.core.scheduling.scheduler();
        scheduler.at_point(SchedulingPoint::ReceiveOther, self.caller.guid);
        Ok(())
    }

    /// The distributable thread that calls.
    pub(crate) fn guid(&self) -> Guid {
        self.caller.guid
    }

    /// Lets a cancellation interrupt what the thread waits for, which is at this address, until the
    /// result is dropped.
    ///
    /// # Errors
    /// `THREAD_CANCELLED`.
    pub(crate) fn wait(
        &self,
        address: usize,
        wait: impl FnOnce() -> Weak<dyn Interrupt>,
    ) -> Result<InterruptibleWait<'_>, SystemException> {
        let place = &self.caller.place;
        let may_wait = place.begin_wait(address, wait);
        let waiting = InterruptibleWait(place);
        if may_wait {
            Ok(waiting)
        } else {
            Err(thread::cancelled(CompletionStatus::No))
        }
    }

    /// Whether the distributable thread is cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.caller.place.is_cancelled()
    }

    /// The exception of a call that a cancellation has interrupted.
    pub(crate) fn interrupted(&self) -> SystemException {
        thread::cancelled(CompletionStatus::Maybe)
    }

    /// Ends the call, with this outcome: whether the answer is an exception of the user, or the
    /// exception of the system.
    ///
    /// # Errors
    /// `THREAD_CANCELLED`, if the thread was cancelled here, or where it was.
    #[inline(always)]
    pub(crate) fn end(self, outcome: Result<bool, SystemException>) -> Result<(), SystemException> {
        let Self { caller, kind } = self;
        let was_cancelled =
            outcome.is_err_and(|exception| exception.kind == SystemExceptionKind::ThreadCancelled);
        if !caller.is_as_before() || was_cancelled {
            caller.clean_up(kind, outcome)?;
        }
        let point = match outcome {
            _ if kind == CallKind::Detached => SchedulingPoint::ReceiveOther,
            Ok(false) => SchedulingPoint::ReceiveReply,
            Ok(true) | Err(_) => SchedulingPoint::ReceiveException,
        };
        let scheduler = caller.core.scheduling.scheduler();
        scheduler.at_point(point, caller.guid);
        Ok(())
    }
}

impl Caller {
    /// Whether the distributable thread has the same segments as at the beginning of a call, and is
    /// not cancelled.
    #[inline]
    fn is_as_before(&self) -> bool {
        let has_segments = || {
            let status = thread::status(self.guid);
            status.is_some_and(|status| status.segments == self.segments)
        };
        (self.place.is_unchanged() || has_segments()) && !self.place.is_cancelled()
    }

    /// Ends the segments that a call has left open, and the distributable thread if it was
    /// cancelled.
    #[cold]
    #[inline(never)]
    fn clean_up(
        &self,
        kind: CallKind,
        outcome: Result<bool, SystemException>,
    ) -> Result<(), SystemException> {
        let left_open = end_all(&self.core, self.segments, self.guid, false);
        if left_open > 0 {
            report_open(&self.core, left_open);
        }
        if let Err(exception) = outcome
            && exception.kind == SystemExceptionKind::ThreadCancelled
            && kind == CallKind::Synchronous
        {
            thread::mark_cancelled_if(self.guid);
        }
        let completed = match outcome {
            // The request was sent, and its end is not known here.
            Ok(_) if kind == CallKind::Detached => CompletionStatus::Maybe,
            Ok(_) => CompletionStatus::Yes,
            Err(exception) => exception.completed,
        };
        match thread::status(self.guid) {
            Some(status) if !status.is_cancelled => Ok(()),
            Some(_) => Err(thread::unwind(completed)),
            // A servant of this process was cancelled on this thread, and ended all segments.
            None => Err(thread::cancelled(completed)),
        }
    }
}

impl Drop for InterruptibleWait<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.end_wait();
    }
}

/// Cancels the distributable thread of a context where a request of this origin has brought it.
/// Returns the exception for the request that cancels, which is the same if there is none.
#[cold]
#[inline(never)]
pub(crate) fn cancel_hosted(
    core: &Core,
    context: &SchedulingContext,
    origin: NonZeroU64,
) -> SystemException {
    record::cancel_from(core.number, Guid(context.guid), origin);
    thread::cancelled(CompletionStatus::No)
}

/// Begins the part of a distributable thread that a request with this context and of this origin
/// brings to the calling thread, which has the constraint of the request.
///
/// # Errors
/// `IMP_LIMIT` if the calling thread has too many distributable threads within each other.
#[cold]
#[inline(never)]
pub(crate) fn host(
    core: &Arc<Core>,
    context: &SchedulingContext,
    priority: Option<Priority>,
    origin: NonZeroU64,
) -> Result<HostedThread, SystemException> {
    let guid = Guid(context.guid);
    let parameter = SchedulingParameter::read(context, priority, due());
    let place = thread::enter(NewLevel {
        core,
        guid,
        origin: Some(origin),
        parameter,
        implicit: parameter,
        hops: context.hops,
    })?;
    let hosted = HostedThread {
        core: core.clone(),
        guid,
        place,
    };
    let scheduler = core.scheduling.scheduler();
    scheduler.at_point(SchedulingPoint::ReceiveRequest, guid);
    Ok(hosted)
}

impl HostedThread {
    /// Ends the part of the distributable thread, whose request has this answer. Segments that the
    /// servant has left open end, and are reported.
    ///
    /// # Errors
    /// `THREAD_CANCELLED`, which is the answer then.
    pub(crate) fn finish(&self, answer: Answer) -> Result<(), SystemException> {
        let left_open = self.end_segments();
        if left_open > 0 {
            report_open(&self.core, left_open);
        }
        if self.place.is_cancelled() {
            let completed = match answer {
                Answer::Exception(exception) => exception.completed,
                Answer::Reply | Answer::Other => CompletionStatus::Yes,
            };
            return Err(thread::unwind_by(completed, false));
        }
        let point = match answer {
            Answer::Reply => SchedulingPoint::SendReply,
            Answer::Exception(_) => SchedulingPoint::SendException,
            Answer::Other => SchedulingPoint::SendOther,
        };
        self.core.scheduling.scheduler().at_point(point, self.guid);
        Ok(())
    }
}

impl HostedThread {
    /// Ends the segments that are open here. Returns their number.
    #[inline]
    fn end_segments(&self) -> usize {
        if self.place.is_unchanged() {
            0
        } else {
            end_all(&self.core, 0, self.guid, false)
        }
    }
}

impl Drop for HostedThread {
    fn drop(&mut self) {
        self.end_segments();
        thread::leave();
    }
}

#[cold]
#[inline(never)]
fn report_open(core: &Core, segments: usize) {
    let incident = Incident::OpenSegments;
    core.incidents.note(incident, &"a servant", segments as i64);
}
