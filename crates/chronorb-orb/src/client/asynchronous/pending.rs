//! The reply to an asynchronous call, as the application has it.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
#[cfg(feature = "distributable-threads")]
use std::sync::Weak;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use chronorb_cdr::{CdrError, Encoder};
use chronorb_giop::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use chronorb_rt::Deadline;

use super::completer::{AsyncCall, Continuation, entrust};
use super::completion::Completion;
use super::slot::{self, Slot};
use crate::call::{Operation, Reply};
use crate::core::Object;
#[cfg(feature = "distributable-threads")]
use crate::rtscheduling::Interrupt;

/// The result of an asynchronous call, which may not have arrived yet: a poller in the sense of
/// CORBA Messaging (CORBA 3.3 part 1, 22.10).
///
/// Generated methods `begin_…` return it. The result is taken once, in one of these ways:
///
/// | | the thread that reads the reply |
/// |---|---|
/// | [`wait`](Self::wait), [`wait_until`](Self::wait_until) | the calling thread |
/// | [`try_get`](Self::try_get) | the calling thread, if the reply has arrived |
/// | [`on_reply`](Self::on_reply) | a thread of the connection, `ami.N`, which then calls the handler |
/// | `.await` | the same thread, which then wakes the task |
///
/// It has a slot of a table that the ORB has for `-ORBMaxPending` calls. The call has as much time
/// as every call by its reference, from the beginning; then it ends with `TIMEOUT` (OMG minor 3,
/// completed `MAYBE`). Dropping this cancels the call: the server is told, the slot is free, and a
/// late reply is dropped.
///
/// Replies have the same effect as with every call: after a location forward, or if the server
/// closed the connection without beginning the request, the thread that read this sends the request
/// again.
pub struct PendingReply<T, E = SystemException> {
    state: PendingState,
    read: fn(Reply<'_>) -> Result<T, E>,
}

enum PendingState {
    /// Only this object has the call.
    Own(Box<Slot>),
    /// A completion thread completes it.
    Entrusted(Arc<Completion>),
    /// The result was taken.
    Over,
}

impl<T, E: From<SystemException>> PendingReply<T, E> {
    /// Sends a request, whose reply `read` reads later.
    ///
    /// Generated stubs call this.
    ///
    /// # Errors
    /// Those of [`Object::invoke`] before the request is sent, and `TRANSIENT` (chronorb minor 2)
    /// if as many calls are under way as may be.
    #[doc(hidden)]
    pub fn begin(
        object: &Object,
        operation: &Operation,
        arguments: &dyn Fn(&mut Encoder<'_>) -> Result<(), CdrError>,
        read: fn(Reply<'_>) -> Result<T, E>,
    ) -> Result<Self, SystemException> {
        let slot = slot::begin(object.answering()?, operation, arguments)?;
        let state = PendingState::Own(slot);
        Ok(Self { state, read })
    }

    /// Waits for the result, as long as the call has time.
    ///
    /// # Errors
    /// Those of the operation.
    pub fn wait(mut self) -> Result<T, E> {
        loop {
            let to_its_end = WaitLimit::EndOfCall;
            if let Some(result) = self.get_if(Deadline::after(LONG), to_its_end) {
                return result;
            }
        }
    }

    /// Waits for the result until `deadline`, or for as long as the call has time, if that is less.
    ///
    /// # Errors
    /// Those of the operation; `TIMEOUT` with OMG minor 1, completed `MAYBE`, if the deadline
    /// passes first: the call continues, and may be waited for again; `OBJECT_NOT_EXIST` (OMG
    /// minor 5) if the result was taken before.
    pub fn wait_until(&mut self, deadline: Instant) -> Result<T, E> {
        let left = deadline.saturating_duration_since(Instant::now());
        let until = Deadline::after(left);
        let result = self.get_if(until, WaitLimit::Until(until));
        result.unwrap_or_else(|| Err(E::from(NOT_YET)))
    }

    /// Returns the result; `None` if it has not arrived yet. Does not wait, unless the request must
    /// be sent again.
    ///
    /// # Errors
    /// Those of the operation; `OBJECT_NOT_EXIST` (OMG minor 5) if the result was taken before.
    pub fn try_get(&mut self) -> Option<Result<T, E>> {
        self.get_if(Deadline::after(Duration::ZERO), WaitLimit::Now)
    }

    /// Has `handler` called with the result, once: the callback model of CORBA Messaging.
    ///
    /// The handler is called by a thread of the connection, `ami.N`, which the ORB starts for the
    /// first handler. The thread has the priority of the connection, and the CORBA priority that
    /// the calling thread had when the call began. Handlers of one connection are called one after
    /// the other; the panic of one does not affect the others. If the result is there already,
    /// because the object is in this process or a thread has polled for it, the calling thread
    /// calls the handler at once.
    ///
    /// This allocates.
    ///
    /// # Errors
    /// `NO_RESOURCES` if that thread cannot be started; `OBJECT_NOT_EXIST` (OMG minor 5) if the
    /// result was taken before. The call is cancelled then, and the handler never called.
    #[allow(clippy::disallowed_methods, reason = "handlers are of any size")]
    pub fn on_reply(
        mut self,
        handler: impl FnOnce(Result<T, E>) + Send + 'static,
    ) -> Result<(), SystemException>
    where
        T: 'static,
        E: 'static,
    {
        let slot = self.take_slot(Deadline::after(LONG)).ok_or(TAKEN)?;
        let read = self.read;
        let then = Box::new(move |reply: Result<Reply<'_>, SystemException>| {
            handler(reply.map_err(E::from).and_then(read));
        });
        match entrust(AsyncCall {
            slot,
            then: Continuation::Handle(then),
        }) {
            Ok(None) => Ok(()),
            Ok(Some(ended)) => {
                ended.finish();
                Ok(())
            }
            Err((call, exception)) => {
                call.slot.cancel();
                Err(exception)
            }
        }
    }

    /// Returns the result if the call has ended within a limit. Waits until `until` for a call that
    /// is just being completed.
    fn get_if(&mut self, until: Deadline, limit: WaitLimit) -> Option<Result<T, E>> {
        if matches!(self.state, PendingState::Over) {
            return Some(Err(E::from(TAKEN)));
        }
        #[cfg(feature = "distributable-threads")]
        if crate::rtscheduling::is_in_segment() {
            return self.get_in_segment(until, limit);
        }
        let mut slot = self.take_slot(until)?;
        if limit.wait(&mut slot) {
            return Some(self.open(slot));
        }
        self.state = PendingState::Own(slot);
        None
    }

    /// Returns the result as [`get_if`](Self::get_if) does, between scheduling points. A
    /// cancellation of the calling distributable thread ends the wait and the call.
    #[cfg(feature = "distributable-threads")]
    #[cold]
    #[inline(never)]
    fn get_in_segment(&mut self, until: Deadline, limit: WaitLimit) -> Option<Result<T, E>> {
        let poll = match crate::rtscheduling::begin_poll() {
            Ok(poll) => poll,
            Err(cancelled) => return Some(Err(E::from(cancelled))),
        };
        let mut slot = self.take_slot(until)?;
        let has_ended = match (slot.interruption(), limit.until(&slot)) {
            (Some(wait), Some(until)) => {
                let weak = || Arc::downgrade(&wait) as Weak<dyn Interrupt>;
                let waiting = poll.wait(Arc::as_ptr(&wait).addr(), weak);
                waiting.is_ok() && slot.wait_until_interrupted(until, &wait)
            }
            _ => limit.wait(&mut slot),
        };
        if has_ended {
            let result = self.open(slot);
            return Some(match poll.end(Ok(result.is_err())) {
                Ok(()) => result,
                Err(cancelled) => Err(E::from(cancelled)),
            });
        }
        match poll.end_without_reply() {
            Ok(()) => {
                self.state = PendingState::Own(slot);
                None
            }
            Err(cancelled) => {
                slot.cancel();
                Some(Err(E::from(cancelled)))
            }
        }
    }

    /// Takes the slot, back from a completion thread if that has it; `None` if there is none, or
    /// the call is just being completed and `until` passes first.
    fn take_slot(&mut self, until: Deadline) -> Option<Box<Slot>> {
        match std::mem::replace(&mut self.state, PendingState::Over) {
            PendingState::Own(slot) => Some(slot),
            PendingState::Entrusted(completion) => {
                let slot = completion.take_back(until);
                if slot.is_none() {
                    self.state = PendingState::Entrusted(completion);
                }
                slot
            }
            PendingState::Over => None,
        }
    }

    fn open(&self, slot: Box<Slot>) -> Result<T, E> {
        slot.open(|reply| (self.read)(reply?))
    }
}

/// Ready with the result. The request is sent when the call begins, not when this is first polled.
/// From the first poll on the completion thread of the connection waits for the reply, as
/// [`on_reply`](PendingReply::on_reply) says, and wakes the task.
impl<T, E: From<SystemException>> Future for PendingReply<T, E> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let ended = match std::mem::replace(&mut self.state, PendingState::Over) {
            PendingState::Over => return Poll::Ready(Err(E::from(TAKEN))),
            PendingState::Entrusted(completion) => {
                let ended = completion.poll(context.waker());
                if ended.is_none() {
                    self.state = PendingState::Entrusted(completion);
                }
                ended
            }
            PendingState::Own(mut slot) => {
                let completion = slot.new_completion();
                let _ = completion.poll(context.waker());
                let then = Continuation::Complete(completion.clone());
                match entrust(AsyncCall { slot, then }) {
                    Ok(None) => {
                        self.state = PendingState::Entrusted(completion);
                        None
                    }
                    Ok(Some(ended)) => Some(ended.slot),
                    Err((call, exception)) => {
                        call.slot.cancel();
                        return Poll::Ready(Err(E::from(exception)));
                    }
                }
            }
        };
        match ended {
            Some(slot) => Poll::Ready(self.open(slot)),
            None => Poll::Pending,
        }
    }
}

impl<T, E> Drop for PendingReply<T, E> {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.state, PendingState::Over) {
            PendingState::Own(slot) => slot.cancel(),
            PendingState::Entrusted(completion) => completion.abandon(),
            PendingState::Over => {}
        }
    }
}

impl<T, E> fmt::Debug for PendingReply<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            PendingState::Own(_) => "under way",
            PendingState::Entrusted(_) => "entrusted",
            PendingState::Over => "over",
        };
        f.debug_tuple("PendingReply").field(&state).finish()
    }
}

/// The time that a thread waits for the end of a call.
#[derive(Clone, Copy)]
enum WaitLimit {
    /// No time.
    Now,
    Until(Deadline),
    /// The time that the call has left.
    EndOfCall,
}

impl WaitLimit {
    fn until(self, slot: &Slot) -> Option<Deadline> {
        match self {
            Self::Now => None,
            Self::Until(until) => Some(until),
            Self::EndOfCall => Some(slot.deadline()),
        }
    }

    /// Waits. Returns whether the call has ended.
    fn wait(self, slot: &mut Slot) -> bool {
        match self.until(slot) {
            None => slot.poll(),
            Some(until) => slot.wait(until),
        }
    }
}

/// The result was taken before.
const TAKEN: SystemException =
    SystemException::no(SystemExceptionKind::ObjectNotExist, minor::ALREADY_REPLIED);
/// The result has not arrived yet.
const NOT_YET: SystemException = SystemException::new(
    SystemExceptionKind::Timeout,
    minor::TIMEOUT_POLLER,
    CompletionStatus::Maybe,
);
/// A limit above the duration of any call.
const LONG: Duration = Duration::from_secs(3600);
