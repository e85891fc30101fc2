//! Calls of distributable threads: what travels, and the scheduling points on both sides.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::cell::Cell;
use std::sync::{Arc, Weak};

use chronorb_giop::{CompletionStatus, SchedulingContext, SystemException, SystemExceptionKind};
use chronorb_rt::Monotonic;

use super::current::end_all;
use super::record::{self, Interrupt};
use super::thread::{self, NewLevel, Present};
use super::{Guid, SchedulingParameter, SchedulingPoint};
use crate::core::Core;
use crate::incident::Incident;
use crate::rtcorba::scheduling::received;
use crate::rtcorba::{Priority, request_priority, set_request_priority};

thread_local! {
    /// Whether requests of the thread carry a context now.
    static SENDS_CONTEXT: Cell<bool> = const { Cell::new(false) };
    static OUTGOING: Cell<Option<RequestContext>> = const { Cell::new(None) };
}

/// The context of requests, but for the time that is left.
#[derive(Clone, Copy)]
struct RequestContext {
    context: SchedulingContext,
    deadline: Option<Monotonic>,
}

/// Requests of the thread carry a context until this is dropped.
pub(crate) struct OutgoingGuard {
    previous: Option<RequestContext>,
}

/// A call by a distributable thread.
pub(crate) struct CallInSegment {
    context: RequestContext,
    core: Arc<Core>,
    /// The distributable thread that calls.
    pub(crate) guid: Guid,
    is_oneway: bool,
    /// The number of its segments here.
    segments: usize,
    /// The priority of the calling thread, if the request has another one.
    priority: Option<Option<Priority>>,
}

/// The wait of a call for its reply, which a cancellation ends.
pub(crate) struct InterruptibleWait(());

/// A distributable thread that a request has brought to the calling thread. Its segments here end
/// when this is dropped.
pub(crate) struct HostedThread {
    core: Arc<Core>,
    guid: Guid,
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

/// Whether a request of this thread carries a context.
#[inline]
pub(crate) fn sends_context() -> bool {
    SENDS_CONTEXT.get()
}

/// The context for a request that is sent now.
pub(crate) fn outgoing() -> Option<[u8; SchedulingContext::LEN]> {
    let mut outgoing = OUTGOING.get()?;
    outgoing.context.relative = outgoing.deadline.map(|deadline| {
        let now = Monotonic::now().as_nanos();
        deadline
            .as_nanos()
            .cast_signed()
            .wrapping_sub(now.cast_signed())
    });
    Some(outgoing.context.encode())
}

impl OutgoingGuard {
    fn set(context: RequestContext) -> Self {
        let previous = OUTGOING.replace(Some(context));
        SENDS_CONTEXT.set(true);
        Self { previous }
    }
}

impl Drop for OutgoingGuard {
    fn drop(&mut self) {
        SENDS_CONTEXT.set(self.previous.is_some());
        OUTGOING.set(self.previous);
    }
}

/// Makes requests of this thread cancel a distributable thread, until the guard is dropped.
pub(crate) fn cancelling(guid: Guid) -> OutgoingGuard {
    let context = SchedulingContext {
        guid: guid.0,
        cancelled: true,
        ..SchedulingContext::default()
    };
    let deadline = None;
    OutgoingGuard::set(RequestContext { context, deadline })
}

/// Begins a call with a reply.
///
/// # Errors
/// `THREAD_CANCELLED`.
pub(crate) fn begin_call() -> Result<CallInSegment, SystemException> {
    let present = present()?;
    let context = context_of(&present, present.guid, present.parameter.as_ref());
    Ok(begin(present, context, false, None))
}

/// Begins a oneway call, which makes a distributable thread of its own: it has the implicit
/// parameter, and the caller goes on.
///
/// # Errors
/// `THREAD_CANCELLED`.
pub(crate) fn begin_oneway() -> Result<CallInSegment, SystemException> {
    let present = present()?;
    let guid = present.core.scheduling.next_guid();
    let implicit = present.implicit;
    let context = SchedulingContext {
        begins_thread: true,
        ..context_of(&present, guid, implicit.as_ref())
    };
    let scheduler = present.core.scheduling.scheduler();
    let priority = implicit.and_then(|implicit| scheduler.priority(&implicit));
    let deadline = implicit.and_then(|implicit| implicit.deadline());
    let mut call = begin(present, context, true, deadline);
    if let Some(priority) = priority {
        call.priority = Some(request_priority());
        set_request_priority(Some(priority));
    }
    Ok(call)
}

fn present() -> Result<Present, SystemException> {
    match thread::present() {
        Some(present) if !present.is_cancelled => Ok(present),
        _ => Err(thread::unwind(CompletionStatus::No)),
    }
}

fn context_of(
    present: &Present,
    guid: Guid,
    parameter: Option<&SchedulingParameter>,
) -> SchedulingContext {
    let mut context = SchedulingContext {
        guid: guid.0,
        hops: present.hops.saturating_add(1),
        ..SchedulingContext::default()
    };
    if let Some(parameter) = parameter {
        parameter.write(&mut context);
    }
    context
}

fn begin(
    present: Present,
    context: SchedulingContext,
    is_oneway: bool,
    deadline: Option<Monotonic>,
) -> CallInSegment {
    let own = present.parameter.and_then(|parameter| parameter.deadline());
    let deadline = if is_oneway { deadline } else { own };
    let scheduler = present.core.scheduling.scheduler();
    scheduler.at_point(SchedulingPoint::SendRequest, present.guid);
    CallInSegment {
        context: RequestContext { context, deadline },
        guid: present.guid,
        segments: present.segments,
        core: present.core,
        is_oneway,
        priority: None,
    }
}

impl CallInSegment {
    /// Makes requests of this thread carry the distributable thread, until the guard is dropped.
    pub(crate) fn carry(&self) -> OutgoingGuard {
        OutgoingGuard::set(self.context)
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
    ) -> Result<InterruptibleWait, SystemException> {
        thread::begin_wait(address, wait);
        let waiting = InterruptibleWait(());
        // A cancellation before this was not able to interrupt.
        if self.is_cancelled() {
            return Err(thread::cancelled(CompletionStatus::No));
        }
        Ok(waiting)
    }

    /// Whether the distributable thread is cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        thread::status(self.guid).is_some_and(|status| status.is_cancelled)
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
    pub(crate) fn end(self, outcome: Result<bool, SystemException>) -> Result<(), SystemException> {
        let left_open = end_all(&self.core, self.segments, self.guid, false);
        if left_open > 0 {
            report_open(&self.core, left_open);
        }
        if let Err(exception) = outcome
            && exception.kind == SystemExceptionKind::ThreadCancelled
            && !self.is_oneway
        {
            thread::mark_cancelled_if(self.guid);
        }
        let completed =
            outcome.map_or_else(|exception| exception.completed, |_| CompletionStatus::Yes);
        match thread::status(self.guid) {
            Some(status) if !status.is_cancelled => {}
            Some(_) => return Err(thread::unwind(completed)),
            // A servant of this process was cancelled on this thread, and ended all segments.
            None => return Err(thread::cancelled(completed)),
        }
        let point = match outcome {
            _ if self.is_oneway => SchedulingPoint::ReceiveOther,
            Ok(false) => SchedulingPoint::ReceiveReply,
            Ok(true) | Err(_) => SchedulingPoint::ReceiveException,
        };
        self.core.scheduling.scheduler().at_point(point, self.guid);
        Ok(())
    }
}

impl Drop for CallInSegment {
    fn drop(&mut self) {
        if let Some(priority) = self.priority {
            set_request_priority(priority);
        }
    }
}

impl Drop for InterruptibleWait {
    fn drop(&mut self) {
        thread::end_wait();
    }
}

/// Begins the part of a distributable thread that a request with this context brings to the calling
/// thread. `None` is for a context without one.
///
/// # Errors
/// `THREAD_CANCELLED` for a request that cancels, which has no other effect; `IMP_LIMIT` if the
/// calling thread has too many distributable threads within each other; `MARSHAL` for a content
/// that cannot be read.
#[cold]
#[inline(never)]
pub(crate) fn host(
    core: &Arc<Core>,
    content: &[u8],
    priority: Option<Priority>,
) -> Result<Option<HostedThread>, SystemException> {
    // Another version has no effect.
    let Some(context) = SchedulingContext::decode(content)? else {
        return Ok(None);
    };
    let guid = Guid(context.guid);
    if guid.halves() == (0, 0) {
        return Ok(None);
    }
    if context.cancelled {
        record::cancel(core.number, guid);
        return Err(thread::cancelled(CompletionStatus::No));
    }
    let parameter = SchedulingParameter::read(&context, priority, received());
    thread::enter(NewLevel {
        core,
        guid,
        is_hosted: true,
        parameter,
        implicit: parameter,
        hops: context.hops,
    })?;
    let scheduler = core.scheduling.scheduler();
    let hosted = HostedThread {
        core: core.clone(),
        guid,
    };
    scheduler.at_point(SchedulingPoint::ReceiveRequest, guid);
    Ok(Some(hosted))
}

impl HostedThread {
    /// Ends the part of the distributable thread, whose request has this answer. Segments that the
    /// servant has left open end, and are reported.
    ///
    /// # Errors
    /// `THREAD_CANCELLED`, which is the answer then.
    pub(crate) fn finish(self, answer: Answer) -> Result<(), SystemException> {
        let left_open = end_all(&self.core, 0, self.guid, false);
        if left_open > 0 {
            report_open(&self.core, left_open);
        }
        if thread::status(self.guid).is_some_and(|status| status.is_cancelled) {
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

impl Drop for HostedThread {
    fn drop(&mut self) {
        end_all(&self.core, 0, self.guid, false);
        thread::leave();
    }
}

#[cold]
#[inline(never)]
fn report_open(core: &Core, segments: usize) {
    let incident = Incident::OpenSegments;
    core.incidents.note(incident, &"a servant", segments as i64);
}
