//! The reply to an asynchronous call, as the application has it.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use chronorb_cdr::{CdrError, Encoder};
use chronorb_giop::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use chronorb_rt::Deadline;

use super::attendance::{Attended, Then, entrust};
use super::meeting::Meeting;
use super::slot::{self, Slot};
use crate::call::{Operation, Reply};
use crate::object::Object;

/// The result of an asynchronous call, which may not be there yet: a poller in the sense of CORBA Messaging (CORBA 3.3
/// part 1, 22.10).
///
/// What a generated `begin_…` method gives. It is taken once, in one of these ways:
///
/// | | who reads the reply |
/// |---|---|
/// | [`wait`](Self::wait), [`wait_until`](Self::wait_until) | the calling thread |
/// | [`try_get`](Self::try_get) | the calling thread, as far as it has come |
/// | [`on_reply`](Self::on_reply) | a thread of the connection, `ami.N`, which then calls the handler |
/// | `.await` | the same thread, which then wakes the task |
///
/// It is a slot of a table that the ORB has for `-ORBMaxPending` calls. The call has as much time as every call
/// by its reference, from the beginning; then it ends with `TIMEOUT` (OMG minor 3, completed `MAYBE`). Dropping
/// this cancels the call: the server is told, the slot is free, and a reply that comes all the same is passed
/// over.
///
/// Whatever the reply says is done as with every call: after a location forward, or where the server has closed
/// the connection without having begun, the request is sent again, by whoever has read that.
pub struct PendingReply<T, E = SystemException> {
    stage: Stage,
    read: fn(Reply<'_>) -> Result<T, E>,
}

enum Stage {
    /// Nobody else has to do with the call.
    Own(Box<Slot>),
    /// An attendant completes it.
    Attended(Arc<Meeting>),
    /// The result was taken.
    Over,
}

impl<T, E: From<SystemException>> PendingReply<T, E> {
    /// Sends a request, whose reply `read` will read.
    ///
    /// Generated stubs call this.
    ///
    /// # Errors
    /// What [`Object::invoke`] fails with before the request is sent, and `TRANSIENT` (chronorb minor 2) where as
    /// many calls are under way as may be.
    #[doc(hidden)]
    pub fn begin(
        object: &Object,
        operation: &Operation,
        arguments: &dyn Fn(&mut Encoder<'_>) -> Result<(), CdrError>,
        read: fn(Reply<'_>) -> Result<T, E>,
    ) -> Result<Self, SystemException> {
        let slot = slot::begin(object.answering()?, operation, arguments)?;
        let stage = Stage::Own(slot);
        Ok(Self { stage, read })
    }

    /// Waits for the result, as long as the call has time.
    ///
    /// # Errors
    /// Those of the operation.
    pub fn wait(mut self) -> Result<T, E> {
        loop {
            let to_its_end = |slot: &mut Slot| slot.wait(slot.deadline());
            if let Some(result) = self.get_if(Deadline::after(LONG), to_its_end) {
                return result;
            }
        }
    }

    /// Waits for the result until `deadline`, or for as long as the call has time, if that is less.
    ///
    /// # Errors
    /// Those of the operation; `TIMEOUT` with OMG minor 1, completed `MAYBE`, where the deadline passes first: the
    /// call goes on, and may be waited for again; `OBJECT_NOT_EXIST` (OMG minor 5) where the result was taken
    /// before.
    pub fn wait_until(&mut self, deadline: Instant) -> Result<T, E> {
        let left = deadline.saturating_duration_since(Instant::now());
        let until = Deadline::after(left);
        let result = self.get_if(until, |slot| slot.wait(until));
        result.unwrap_or_else(|| Err(E::from(NOT_YET)))
    }

    /// The result, if it is there; `None` where it is not there yet. Waits for nothing, but where the request has
    /// to be sent again.
    ///
    /// # Errors
    /// Those of the operation; `OBJECT_NOT_EXIST` (OMG minor 5) where the result was taken before.
    pub fn try_get(&mut self) -> Option<Result<T, E>> {
        self.get_if(Deadline::after(Duration::ZERO), Slot::look)
    }

    /// Has `handler` called with the result, once: the callback model of CORBA Messaging.
    ///
    /// It is called by a thread of the connection that the ORB makes when it is first needed, with the name
    /// `ami.N`, at the priority that the connection is for, and the CORBA priority that the calling thread had when
    /// the call began. Handlers of one connection are called one after the other. One that panics ends alone. Where
    /// the result is there already, because the object is in this process or somebody has looked for it, the handler
    /// is called at once, by the calling thread.
    ///
    /// This allocates.
    ///
    /// # Errors
    /// `NO_RESOURCES` where that thread cannot be had; `OBJECT_NOT_EXIST` (OMG minor 5) where the result was taken
    /// before. The call is cancelled then, and the handler never called.
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
        match entrust(Attended::new(slot, Then::Handle(then))) {
            Ok(None) => Ok(()),
            Ok(Some(ended)) => {
                ended.finish();
                Ok(())
            }
            Err((call, exception)) => {
                call.cancel();
                Err(exception)
            }
        }
    }

    /// The result, if by `has_ended` the call has come to its end. Where it is just doing so, that is waited for, not
    /// longer than `until`.
    fn get_if(
        &mut self,
        until: Deadline,
        has_ended: impl FnOnce(&mut Slot) -> bool,
    ) -> Option<Result<T, E>> {
        if matches!(self.stage, Stage::Over) {
            return Some(Err(E::from(TAKEN)));
        }
        let mut slot = self.take_slot(until)?;
        if has_ended(&mut slot) {
            return Some(self.open(slot));
        }
        self.stage = Stage::Own(slot);
        None
    }

    /// Takes the slot, from the attendant if that has it; `None` where there is none, or it is coming to its end and
    /// `until` passes first.
    fn take_slot(&mut self, until: Deadline) -> Option<Box<Slot>> {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Own(slot) => Some(slot),
            Stage::Attended(meeting) => {
                let slot = meeting.take_back(until);
                if slot.is_none() {
                    self.stage = Stage::Attended(meeting);
                }
                slot
            }
            Stage::Over => None,
        }
    }

    fn open(&self, slot: Box<Slot>) -> Result<T, E> {
        slot.open(|reply| (self.read)(reply?))
    }
}

/// Ready with the result. The request is sent when the call begins, not when this is first polled; from then on the
/// attendant thread of the connection waits for the reply, as [`on_reply`](PendingReply::on_reply) says, and wakes the
/// task.
impl<T, E: From<SystemException>> Future for PendingReply<T, E> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let ended = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Over => return Poll::Ready(Err(E::from(TAKEN))),
            Stage::Attended(meeting) => {
                let ended = meeting.poll(context.waker());
                if ended.is_none() {
                    self.stage = Stage::Attended(meeting);
                }
                ended
            }
            Stage::Own(mut slot) => {
                let meeting = slot.new_meeting();
                let _ = meeting.poll(context.waker());
                match entrust(Attended::new(slot, Then::Meet(meeting.clone()))) {
                    Ok(None) => {
                        self.stage = Stage::Attended(meeting);
                        None
                    }
                    Ok(Some(ended)) => Some(ended.slot),
                    Err((call, exception)) => {
                        call.cancel();
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
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Own(slot) => slot.cancel(),
            Stage::Attended(meeting) => meeting.leave(),
            Stage::Over => {}
        }
    }
}

impl<T, E> fmt::Debug for PendingReply<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            Stage::Own(_) => "under way",
            Stage::Attended(_) => "attended",
            Stage::Over => "over",
        };
        f.debug_tuple("PendingReply").field(&stage).finish()
    }
}

/// The result was taken before.
const TAKEN: SystemException =
    SystemException::no(SystemExceptionKind::ObjectNotExist, minor::ALREADY_REPLIED);
/// It is not there yet.
const NOT_YET: SystemException = SystemException::new(
    SystemExceptionKind::Timeout,
    minor::TIMEOUT_POLLER,
    CompletionStatus::Maybe,
);
/// Longer than it takes to bring a call to its end.
const LONG: Duration = Duration::from_secs(3600);
