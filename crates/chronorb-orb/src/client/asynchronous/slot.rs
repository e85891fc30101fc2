//! The slots of asynchronous calls: each holds one call, from its request to its reply.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use chronorb_cdr::{CdrError, Frame, TextForm};
use chronorb_giop::{
    CompletionStatus, MessageHeader, MessageType, SystemException, SystemExceptionKind, minor,
};
use chronorb_rt::{Deadline, Gate, PiMutex};

use super::completion::Completion;
use crate::call::{Operation, Reply};
use crate::client::attempt::{Decision, Destination, INV_OBJREF, Outcome};
use crate::client::binding::{Binding, BindingKey, NO_USABLE_PROFILE, flush_oneways};
use crate::client::connection::{Failure, MALFORMED, SharedOwner, SharedWait, comm_failure};
use crate::client::invocation::{Invocation, locate};
use crate::client::request::{Arguments, marshal, marshal_again, read_reply};
use crate::core::{Core, Object};
use crate::failure::{self, LastFailure};
use crate::profile::Profile;
use crate::riders;
use crate::rtcorba::scheduling::CallConstraint;
use crate::rtcorba::{Priority, request_priority};
use crate::scope::{self, ReplyBody, Scope};

/// The free slots of an ORB, made with its first asynchronous call.
pub(super) struct Slots {
    /// Boxed, so that lending one moves a pointer.
    #[allow(clippy::vec_box)]
    free: PiMutex<Vec<Box<Slot>>>,
    /// Locked while a completion thread is started.
    pub(super) starting: PiMutex<()>,
}

impl Slots {
    #[allow(clippy::disallowed_methods, reason = "once for each ORB")]
    pub(super) fn of(core: &Core) -> &Self {
        let make = || {
            let free = (0..core.config.max_pending).map(|_| Box::default());
            Box::new(Self {
                free: PiMutex::new(free.collect()),
                starting: PiMutex::default(),
            }) as _
        };
        let slots = core.client.slots.get_or_init(make);
        slots.downcast_ref().expect("nothing else is put there")
    }
}

/// A slot for one call, with its memory.
pub(in crate::client) struct Slot {
    /// The marshalled request, for another attempt.
    request: Frame,
    /// The position of the body in it.
    body: usize,
    /// The form of its text.
    text: TextForm,
    reply: Frame,
    /// The gate of a thread that waits for the reply.
    waiter: Arc<Gate>,
    /// The completion for a future.
    completion: Arc<Completion>,
    call: Option<SlotCall>,
}

/// The call that has the slot.
struct SlotCall {
    object: Object,
    operation: Operation,
    /// The CORBA priority of the thread that made it.
    caller: Option<Priority>,
    /// The constraint that its requests carry, whichever thread sends them.
    constraint: CallConstraint,
    invocation: Invocation,
    riders: riders::CallState,
    state: SlotState,
    /// A decision that another thread carries out, because that may take long.
    deferred: Option<Decision>,
    /// The cause of its failure, for the thread that takes the result.
    cause: Option<Box<LastFailure>>,
}

enum SlotState {
    /// Nothing was sent.
    Begun,
    /// A request was sent.
    Sent(SentRequest),
    /// The call has ended, with the content of the reply frame.
    Done(Result<ReplyBody, SystemException>),
}

/// A request whose reply is awaited, and its destination.
struct SentRequest {
    owner: Arc<SharedOwner>,
    request_id: u32,
    destination: Destination,
}

impl Default for Slot {
    #[allow(clippy::disallowed_methods, reason = "once for each slot")]
    fn default() -> Self {
        Self {
            request: scope::empty_frame(),
            body: 0,
            text: scope::text_within(),
            reply: scope::empty_frame(),
            waiter: Arc::new(Gate::new(0)),
            completion: Arc::default(),
            call: None,
        }
    }
}

/// Sends a request in a slot of its own.
///
/// # Errors
/// Those that occur before the request is sent; `TRANSIENT` if all slots are in use.
pub(super) fn begin(
    object: &Object,
    operation: &Operation,
    arguments: Arguments<'_>,
) -> Result<Box<Slot>, SystemException> {
    #[cfg(feature = "distributable-threads")]
    if crate::rtscheduling::is_in_segment() {
        return begin_in_segment(object, operation, arguments);
    }
    let invocation = Invocation::begin(object, BindingKey::of_asynchronous_calls)?;
    let of_caller = (request_priority(), CallConstraint::of_calls());
    begin_by(object, operation, arguments, (invocation, of_caller))
}

/// Sends a request as [`begin`] does. It makes a distributable thread of its own, as oneway
/// requests do, because the caller goes on.
#[cfg(feature = "distributable-threads")]
#[cold]
#[inline(never)]
fn begin_in_segment(
    object: &Object,
    operation: &Operation,
    arguments: Arguments<'_>,
) -> Result<Box<Slot>, SystemException> {
    let caller = request_priority();
    let call = crate::rtscheduling::begin_detached()?;
    let invocation = Invocation::begin(object, BindingKey::of_asynchronous_calls);
    let constraint = CallConstraint::of_calls();
    let call = call.prepared();
    let begun = invocation.and_then(|invocation| {
        let of_caller = (caller, constraint);
        begin_by(object, operation, arguments, (invocation, of_caller))
    });
    let ended = call.end(begun.as_ref().map(|_| false).map_err(|it| *it));
    match (begun, ended) {
        (Ok(slot), Err(cancelled)) => {
            slot.cancel();
            Err(cancelled)
        }
        (begun, ended) => ended.and(begun),
    }
}

/// Sends a request, with the priority and the constraint of its caller.
fn begin_by(
    object: &Object,
    operation: &Operation,
    arguments: Arguments<'_>,
    (invocation, (caller, constraint)): (Invocation, (Option<Priority>, CallConstraint)),
) -> Result<Box<Slot>, SystemException> {
    let free = Slots::of(object.core()).free.lock().pop();
    let mut slot = free.ok_or(TOO_MANY_PENDING)?;
    if slot.reply.capacity() == 0 {
        // For the first call in it; later, frames are exchanged.
        slot.reply = scope::frame();
    }
    slot.call = Some(SlotCall {
        object: object.clone(),
        operation: *operation,
        caller,
        constraint,
        invocation,
        riders: riders::CallState::default(),
        state: SlotState::Begun,
        deferred: None,
        cause: None,
    });
    match Scope::with(|scope| slot.start(scope, arguments)) {
        Ok(()) => Ok(slot),
        Err(exception) => {
            slot.free();
            Err(exception)
        }
    }
}

impl Slot {
    fn call(&self) -> &SlotCall {
        self.call.as_ref().expect(LENT)
    }

    fn call_mut(&mut self) -> &mut SlotCall {
        self.call.as_mut().expect(LENT)
    }

    /// The ORB of the call.
    pub(super) fn core(&self) -> Arc<Core> {
        self.call().object.core().clone()
    }

    pub(super) fn deadline(&self) -> Deadline {
        self.call().invocation.deadline.get()
    }

    /// The CORBA priority of the thread that made the call.
    pub(super) fn caller(&self) -> Option<Priority> {
        self.call().caller
    }

    /// The priority of the call for the thread that completes it.
    pub(super) fn urgency(&self) -> Option<Priority> {
        let call = self.call();
        call.caller.max(call.invocation.key.priority)
    }

    /// Whether the next step of the call is deferred; [`resume`](Self::resume) takes it.
    pub(super) fn is_deferred(&self) -> bool {
        self.call().deferred.is_some()
    }

    /// Takes a deferred step, which may take as long as the call has time.
    pub(super) fn resume(&mut self) {
        if let Some(decision) = self.call_mut().deferred.take() {
            self.carry_out(decision);
        }
    }

    /// The connection and the request whose reply is awaited; `None` if the call has ended.
    pub(super) fn awaited(&self) -> Option<(Arc<SharedOwner>, u32)> {
        let sent = self.sent()?;
        Some((sent.owner.clone(), sent.request_id))
    }

    /// The id of the request whose reply is awaited.
    pub(super) fn request_id(&self) -> Option<u32> {
        self.sent().map(|sent| sent.request_id)
    }

    fn sent(&self) -> Option<&SentRequest> {
        match &self.call().state {
            SlotState::Sent(sent) if !self.is_deferred() => Some(sent),
            _ => None,
        }
    }

    fn start(
        &mut self,
        scope: &mut Scope,
        arguments: Arguments<'_>,
    ) -> Result<(), SystemException> {
        let call = self.call_mut();
        let (object, operation) = (&call.object, &call.operation);
        let result = call
            .invocation
            .call_within(object, scope, operation, arguments)?;
        if let Some(result) = result {
            std::mem::swap(&mut self.reply, &mut scope.reply);
            self.end(result);
            return Ok(());
        }
        call.locate(scope)?;
        while let Err(failure) = self.send(scope, Some(arguments))? {
            let call = self.call_mut();
            let decision = call.decide(Err(failure));
            call.carry_out(decision)?;
        }
        Ok(())
    }

    /// Sends the request: marshals the arguments, or sends the same body again.
    ///
    /// # Errors
    /// Those of binding the object.
    fn send(
        &mut self,
        scope: &mut Scope,
        arguments: Option<Arguments<'_>>,
    ) -> Result<Result<(), Failure>, SystemException> {
        let call = self.call();
        let binding = call.invocation.bind(&call.object)?;
        let owner = binding.connection.shared();
        let owner = owner.ok_or(NO_USABLE_PROFILE)?.clone();
        Ok(self.send_by(&binding, owner, scope, arguments))
    }

    fn send_by(
        &mut self,
        binding: &Binding,
        owner: Arc<SharedOwner>,
        scope: &mut Scope,
        arguments: Option<Arguments<'_>>,
    ) -> Result<(), Failure> {
        let call = self.call.as_mut().expect(LENT);
        let (core, shared) = (call.object.core().clone(), owner.shared.clone());
        let connection = &binding.connection;
        if connection.announces() && owner.is_known.load(Ordering::Relaxed) {
            connection.announce_no_more();
        }
        let limits = call.invocation.begin_attempt(binding, &call.operation)?;
        if binding.buffering.is_some() {
            // Those of synchronous calls may wait in another connection.
            flush_oneways(&call.object, limits.until)?;
        }
        let request_id = shared.next_request_id();
        call.state = SlotState::Sent(SentRequest {
            owner,
            request_id,
            destination: binding.destination(),
        });
        scope.begin(&core);
        let (frame, operation) = (&mut scope.request, &call.operation);
        let riders = &mut call.riders;
        let _carried = call.constraint.carry();
        let body = match arguments {
            Some(arguments) => marshal(binding, riders, frame, operation, arguments, request_id)?.0,
            None => {
                let body = self.request.as_slice().get(self.body..).unwrap_or_default();
                let body = (self.body, body, self.text);
                marshal_again(binding, riders, frame, (operation, request_id), body)?
            }
        };
        if frame.len() > core.config.max_message_size {
            return Err(SystemException::from(CdrError::FrameFull).into());
        }
        std::mem::swap(&mut self.request, frame);
        (self.body, self.text) = (body, connection.text);
        let urgency = call.invocation.key.priority;
        shared.expect(request_id, urgency, &self.request, &self.waiter)?;
        let message = if shared.takes_frames() {
            frame.clear();
            let copied = frame.extend_from_slice(self.request.as_slice());
            copied.map_err(SystemException::from)?;
            frame
        } else {
            &mut self.request
        };
        shared.send(request_id, message, limits.until)
    }

    /// Returns whether the call has ended, without waiting.
    pub(super) fn poll(&mut self) -> bool {
        self.advance(None, false)
    }

    /// Polls for a thread that completes other calls as well: also returns `true` if the call [is
    /// deferred](Self::is_deferred).
    pub(super) fn poll_and_defer(&mut self) -> bool {
        self.advance(None, true)
    }

    /// Waits for the end of the call; returns whether it has ended before `until`.
    pub(super) fn wait(&mut self, until: Deadline) -> bool {
        self.advance(Some((until, None)), false)
    }

    /// Waits as [`wait`](Self::wait) does, until another thread ends that by `wait`.
    #[cfg(feature = "distributable-threads")]
    pub(super) fn wait_until_interrupted(&mut self, until: Deadline, wait: &SharedWait) -> bool {
        self.advance(Some((until, Some(wait))), false)
    }

    /// Returns what ends waits of the slot's present owner; `None` if no file descriptor was left
    /// for it.
    #[cfg(feature = "distributable-threads")]
    pub(super) fn interruption(&self) -> Option<Arc<SharedWait>> {
        SharedWait::of(&self.waiter)
    }

    /// Waits for the end of the present attempt alone, whose connection has ended.
    pub(super) fn settle(&mut self) {
        let deadline = self.deadline();
        if let Some((owner, request_id)) = self.awaited() {
            let received = owner.shared.receive(request_id, &mut self.reply, deadline);
            self.take_in(&owner, request_id, received, false);
        }
    }

    /// Receives replies and carries out what follows, until the call has ended. Returns `false` if
    /// there is no reply by `until`, or at present.
    fn advance(&mut self, until: Option<(Deadline, Option<&SharedWait>)>, defers: bool) -> bool {
        loop {
            let deadline = self.deadline();
            let Some((owner, request_id)) = self.awaited() else {
                return true;
            };
            let (shared, frame) = (&owner.shared, &mut self.reply);
            let received = match until {
                None => shared.poll(request_id, frame),
                Some((until, wait)) => {
                    let until = (until.min(deadline), wait);
                    shared.receive_until_interrupted(request_id, frame, until)
                }
            };
            if !self.take_in(&owner, request_id, received, defers) {
                return false;
            }
        }
    }

    /// Carries out what follows from a reply, or from the end of the call's time; returns whether
    /// there was one of them. If it `defers`, it defers a step that may take long.
    fn take_in(
        &mut self,
        owner: &SharedOwner,
        request_id: u32,
        received: Option<Result<MessageHeader, Failure>>,
        defers: bool,
    ) -> bool {
        let outcome = match received {
            Some(Ok(message)) => self.read(owner, request_id, message),
            Some(Err(failure)) => Err(failure),
            None if self.deadline().has_passed() => {
                Err(owner.shared.abandon(request_id, &mut self.reply, true))
            }
            None => return false,
        };
        let call = self.call_mut();
        let decision = call.decide(outcome);
        if defers && call.may_look_up(&decision) {
            call.deferred = Some(decision);
        } else {
            self.carry_out(decision);
        }
        true
    }

    /// Ends the call, or sends the request again.
    fn carry_out(&mut self, decision: Decision) {
        if let Decision::Done(answer) = decision {
            return self.end(Ok(answer));
        }
        failure::begin();
        if let Err(exception) = self.repeat(decision) {
            self.end(Err(exception));
        }
    }

    #[cold]
    fn repeat(&mut self, mut decision: Decision) -> Result<(), SystemException> {
        loop {
            self.call_mut().carry_out(decision)?;
            match Scope::with(|scope| self.send(scope, None))? {
                Ok(()) => return Ok(()),
                Err(failure) => decision = self.call_mut().decide(Err(failure)),
            }
        }
    }

    fn end(&mut self, result: Result<ReplyBody, SystemException>) {
        let call = self.call_mut();
        if let Err(exception) = result {
            call.cause = failure::kept(exception);
        }
        call.state = SlotState::Done(result);
    }

    /// Reads a reply up to its results.
    fn read(
        &mut self,
        owner: &SharedOwner,
        request_id: u32,
        message: MessageHeader,
    ) -> Result<Outcome, Failure> {
        let (core, text) = (self.core(), self.text);
        let failure = if message.kind == MessageType::Reply {
            owner.is_known.store(true, Ordering::Relaxed);
            let riders = &mut self.call.as_mut().expect(LENT).riders;
            let read = Scope::with(|scope| {
                scope.begin(&core);
                let parts = (&mut self.reply, scope.arena());
                read_reply(parts, riders, message, text, request_id)
            });
            match read {
                Ok(Some(outcome)) => return Ok(outcome),
                Ok(None) => MALFORMED,
                Err(malformed) => {
                    let exception = SystemException::from(malformed);
                    exception.with_completed(CompletionStatus::Maybe).into()
                }
            }
        } else {
            comm_failure(CompletionStatus::Maybe).into()
        };
        owner.shared.close();
        Err(failure)
    }

    /// Attaches the call to the slot's own waiter again.
    pub(super) fn reattach(&self) {
        if let Some((owner, request_id)) = self.awaited() {
            owner.shared.reattach(request_id, &self.waiter, false);
        }
    }

    /// Ends the call with an exception.
    pub(super) fn fail(&mut self, exception: SystemException) {
        self.abandon();
        self.call_mut().state = SlotState::Done(Err(exception));
    }

    /// Abandons the request whose reply is awaited.
    fn abandon(&mut self) {
        if let Some((owner, request_id)) = self.awaited() {
            let _ = owner.shared.abandon(request_id, &mut self.reply, false);
        }
    }

    /// Returns a new completion for the call.
    pub(super) fn new_completion(&mut self) -> Arc<Completion> {
        match Arc::get_mut(&mut self.completion) {
            Some(completion) => *completion = Completion::default(),
            // A thread is still about to leave that of the previous call.
            None => self.completion = Arc::default(),
        }
        self.completion.clone()
    }

    /// Ends a call whose result is not wanted, and frees the slot.
    pub(super) fn cancel(mut self: Box<Self>) {
        self.abandon();
        self.free();
    }

    /// Frees the slot of a call that has ended, and returns what `read` makes of the reply.
    pub(super) fn open<R>(
        mut self: Box<Self>,
        read: impl FnOnce(Result<Reply<'_>, SystemException>) -> R,
    ) -> R {
        let core = self.core();
        let call = self.call_mut();
        let ended = match std::mem::replace(&mut call.state, SlotState::Begun) {
            SlotState::Done(ended) => ended,
            _ => Err(INV_OBJREF),
        };
        if let Some(cause) = call.cause.take() {
            failure::put(*cause);
        }
        Scope::with(|scope| {
            scope.begin(&core);
            std::mem::swap(&mut self.reply, &mut scope.reply);
            self.free();
            let opened = ended.and_then(|answer| scope.open(&core, answer));
            let result = read(opened);
            scope::release(&mut scope.reply);
            result
        })
    }

    fn free(mut self: Box<Self>) {
        // There may be very many slots.
        scope::release(&mut self.request);
        scope::release(&mut self.reply);
        if let Some(call) = self.call.take() {
            let core = call.object.core().clone();
            drop(call);
            Slots::of(&core).free.lock().push(self);
        }
    }
}

impl SlotCall {
    /// Asks the server for the location of the object, if the reference is only an address, as that
    /// of a `corbaloc:` URL. The object may be elsewhere, and need another GIOP or another form of
    /// text there, so arguments that are marshalled already would be of no use. Each thread that
    /// calls by the reference asks once.
    ///
    /// # Errors
    /// `TIMEOUT` if the time is over, and those of a forward. Any other one affects the request as
    /// well.
    fn locate(&mut self, scope: &mut Scope) -> Result<(), SystemException> {
        loop {
            let binding = self.invocation.bind(&self.object)?;
            if binding.is_located.replace(true) || !binding.connection.link().is_stream() {
                return Ok(());
            }
            match locate(&binding, scope, self.invocation.deadline.get()) {
                located @ Ok(Outcome::Forward(_)) => {
                    self.invocation
                        .on_outcome(&self.object, &binding, located)?;
                }
                Err(Failure::Exception(exception))
                    if exception.kind == SystemExceptionKind::Timeout =>
                {
                    return Err(exception.with_completed(CompletionStatus::No));
                }
                _ => return Ok(()),
            }
        }
    }

    fn decide(&mut self, outcome: Result<Outcome, Failure>) -> Decision {
        let (object, state) = (&self.object, &self.state);
        let at = || match state {
            SlotState::Sent(sent) => sent.destination.clone(),
            SlotState::Begun | SlotState::Done(_) => Destination::original(object),
        };
        self.invocation.attempt.on_outcome(object, at, outcome)
    }

    /// Prepares the next attempt.
    ///
    /// # Errors
    /// The exception that the call ends with.
    fn carry_out(&mut self, decision: Decision) -> Result<(), SystemException> {
        let used = match &self.state {
            SlotState::Sent(sent) => Some((&sent.owner.key.way, &sent.owner.shared.link)),
            _ => None,
        };
        self.invocation.carry_out(&self.object, decision, used)
    }

    /// Whether the call may have to look up the name of a host for this decision.
    fn may_look_up(&self, decision: &Decision) -> bool {
        let has_names = |object: &Object| object.profile().is_some_and(Profile::has_names);
        let is_any = || {
            has_names(&self.object)
                || matches!(&self.state, SlotState::Sent(sent) if has_names(&sent.destination.target))
        };
        match decision {
            Decision::Done(_) | Decision::Failed { .. } => false,
            Decision::Again | Decision::Readdress(_) | Decision::Original => is_any(),
            Decision::Elsewhere(target) => has_names(target) || is_any(),
            // It connects, perhaps to an address that does not answer.
            Decision::NextAddress { .. } => true,
        }
    }
}

const LENT: &str = "a slot that was lent has a call";
const TOO_MANY_PENDING: SystemException =
    SystemException::no(SystemExceptionKind::Transient, minor::TOO_MANY_PENDING);
