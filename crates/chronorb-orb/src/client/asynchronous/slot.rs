//! One asynchronous call, from its request to its reply.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use chronorb_cdr::{CdrError, Frame, TextForm};
use chronorb_giop::{
    AddressingDisposition, CompletionStatus, MessageHeader, MessageType, ReplyHeader,
    SystemException, SystemExceptionKind, finish_message,
};
use chronorb_rt::{Deadline, Gate};

use super::meeting::Meeting;
use super::table::Slots;
use crate::call::{Operation, Reply};
use crate::client::attempt::{Attempt, DISCARDED, Decision, Destination, INV_OBJREF, Outcome};
use crate::client::binding::{self, Binding, BindingKey};
use crate::client::collocated;
use crate::client::connection::{Awaited, Failure, Open, comm_failure};
use crate::client::explicit::locate;
use crate::client::invocation::{Arguments, explain, marshal, read_status, write_header};
use crate::core::Core;
use crate::failure::{self, LastFailure};
use crate::object::Object;
use crate::profile::Profile;
use crate::rtcorba::{Priority, RebindMode, onward_priority, request_priority};
use crate::scope::{self, Answer, Scope};

/// A place for a call, with what it needs.
pub(in crate::client) struct Slot {
    /// The marshalled request, in case the server wants it elsewhere.
    request: Frame,
    /// Where the body begins in it.
    body: usize,
    /// The code sets of its text.
    text: TextForm,
    reply: Frame,
    /// Where a thread waits for the reply.
    seat: Arc<Gate>,
    /// Where a future finds the reply.
    meeting: Arc<Meeting>,
    call: Option<Call>,
}

/// The call that has the slot.
struct Call {
    object: Object,
    operation: Operation,
    /// The CORBA priority of the thread that made it.
    caller: Option<Priority>,
    /// That of the request.
    priority: Option<Priority>,
    deadline: Deadline,
    attempt: Attempt,
    state: State,
    /// Whether a decision that may need the name of a host to be looked up is deferred, because
    /// that would hold others up.
    defers: bool,
    deferred: Option<Decision>,
    /// What is known of its failure, found by another thread than the one that takes the result.
    cause: Option<Box<LastFailure>>,
}

enum State {
    /// Nothing has been sent.
    Begun,
    /// A request was sent.
    Sent(Sent),
    /// It has come to its end, with what is in the reply frame.
    Done(Result<Answer, SystemException>),
}

/// A request whose reply is awaited.
struct Sent {
    open: Arc<Open>,
    request_id: u32,
    /// Where it was sent to.
    target: Object,
    /// Whether that is another object than the one that was called.
    forwarded: bool,
    rebind: RebindMode,
    addressing: AddressingDisposition,
}

impl Default for Slot {
    #[allow(clippy::disallowed_methods, reason = "once for each slot")]
    fn default() -> Self {
        Self {
            request: scope::empty_frame(),
            body: 0,
            text: scope::text_within(),
            reply: scope::empty_frame(),
            seat: Arc::new(Gate::new(0)),
            meeting: Arc::default(),
            call: None,
        }
    }
}

/// Sends a request in a slot of its own.
///
/// # Errors
/// What shows before there is anything to wait for.
pub(super) fn begin(
    object: &Object,
    operation: &Operation,
    arguments: Arguments<'_>,
) -> Result<Box<Slot>, SystemException> {
    let core = object.core();
    core.check_running()?;
    let deadline = Deadline::after(object.time_out());
    let priority = onward_priority(core)?;
    let mut slot = Slots::of(core).take()?;
    if slot.reply.capacity() == 0 {
        // For the first call in it; then frames go from hand to hand.
        slot.reply = scope::frame();
    }
    slot.call = Some(Call {
        object: object.clone(),
        operation: *operation,
        caller: request_priority(),
        priority,
        deadline,
        attempt: Attempt::default(),
        state: State::Begun,
        defers: false,
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
    fn call(&self) -> &Call {
        self.call.as_ref().expect(LENT)
    }

    fn call_mut(&mut self) -> &mut Call {
        self.call.as_mut().expect(LENT)
    }

    /// The ORB, while there is a call.
    pub(super) fn core(&self) -> Arc<Core> {
        self.call().object.core().clone()
    }

    pub(super) fn deadline(&self) -> Deadline {
        self.call().deadline
    }

    /// The CORBA priority of the thread that made the call.
    pub(super) fn caller(&self) -> Option<Priority> {
        self.call().caller
    }

    /// How urgent the call is to whoever completes it.
    pub(super) fn urgency(&self) -> Option<Priority> {
        let call = self.call();
        call.caller.max(call.priority)
    }

    /// Whether the next step of the call is deferred; [`resume`](Self::resume) takes it.
    pub(super) fn is_deferred(&self) -> bool {
        self.call().deferred.is_some()
    }

    /// Takes a step that was deferred, which may take as long as the call has time.
    pub(super) fn resume(&mut self) {
        if let Some(decision) = self.call_mut().deferred.take() {
            self.carry_out(decision);
        }
    }

    /// The connection and the request on it whose reply is awaited; `None` when the call has come to its end.
    pub(super) fn awaited(&self) -> Option<(Arc<Open>, u32)> {
        match &self.call().state {
            State::Sent(sent) if !self.is_deferred() => Some((sent.open.clone(), sent.request_id)),
            _ => None,
        }
    }

    fn start(
        &mut self,
        scope: &mut Scope,
        arguments: Arguments<'_>,
    ) -> Result<(), SystemException> {
        let call = self.call.as_mut().expect(LENT);
        if let Some(key) = call.object.key_within() {
            let (object, attempt) = (&call.object, &mut call.attempt);
            let (operation, limits) = (&call.operation, (call.priority, call.deadline));
            match collocated::call(object, key, attempt, scope, operation, arguments, limits)? {
                ControlFlow::Break(result) => {
                    std::mem::swap(&mut self.reply, &mut scope.reply);
                    self.end(result);
                    return Ok(());
                }
                ControlFlow::Continue(Some(target)) => {
                    binding::forward_by(call.key(), target, call.deadline)?;
                }
                ControlFlow::Continue(None) => {}
            }
        }
        self.locate(scope)?;
        while let Err(failure) = self.send(scope, Some(arguments))? {
            let decision = self.call_mut().on_outcome(Err(failure));
            self.prepare(decision)?;
        }
        Ok(())
    }

    /// Asks the server where the object is, if the reference is only an address, as that of a `corbaloc:` is. It may be
    /// elsewhere, and want another GIOP or text in another form there: then arguments that are marshalled already
    /// would be of no use. It is asked once by each thread that calls by the reference.
    ///
    /// # Errors
    /// `TIMEOUT` where the time is over, and those of a forward. Any other one the request will meet as well.
    fn locate(&mut self, scope: &mut Scope) -> Result<(), SystemException> {
        loop {
            let call = self.call_mut();
            let binding = call.bind()?;
            if binding.is_located.replace(true) || !binding.connection.is_stream() {
                return Ok(());
            }
            let located = locate(&binding, scope, call.deadline);
            match located {
                Ok(Outcome::Forward(_)) => {
                    let at = || binding.destination();
                    let decision = call.attempt.on_outcome(&call.object, at, located);
                    self.prepare(decision)?;
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

    /// Sends the request: marshals the arguments, or sends again what was sent before.
    ///
    /// # Errors
    /// Those of binding the object.
    fn send(
        &mut self,
        scope: &mut Scope,
        arguments: Option<Arguments<'_>>,
    ) -> Result<Result<(), Failure>, SystemException> {
        let binding = self.call().bind()?;
        let open = binding.connection.open();
        let open = open.ok_or(binding::NO_USABLE_PROFILE)?.clone();
        Ok(self.send_by(&binding, open, scope, arguments))
    }

    fn send_by(
        &mut self,
        binding: &Binding,
        open: Arc<Open>,
        scope: &mut Scope,
        arguments: Option<Arguments<'_>>,
    ) -> Result<(), Failure> {
        let call = self.call.as_mut().expect(LENT);
        let core = call.object.core().clone();
        let (operation, deadline) = (call.operation, call.deadline);
        let connection = &binding.connection;
        if connection.announces() && open.is_known.load(Ordering::Relaxed) {
            connection.announce_no_more();
        }
        let request_id = open.shared.next_request_id();
        call.state = State::Sent(Sent {
            open: open.clone(),
            request_id,
            forwarded: binding.forwarded,
            rebind: binding.rebind,
            addressing: binding.addressing.get(),
            target: binding.target.clone(),
        });
        scope.begin(&core);
        let body = match arguments {
            Some(arguments) => marshal(binding, scope, &operation, arguments, request_id)?.0,
            None => {
                let body = self.request.as_slice().get(self.body..).unwrap_or_default();
                let body = (self.body, body, self.text);
                marshal_again(binding, scope, &operation, request_id, body)?
            }
        };
        if scope.request.len() > core.config.max_message_size {
            return Err(SystemException::from(CdrError::FrameFull).into());
        }
        std::mem::swap(&mut self.request, &mut scope.request);
        (self.body, self.text) = (body, connection.text());
        let awaited = Awaited {
            request_id,
            urgency: call.priority,
        };
        open.shared.expect(awaited, &self.request, &self.seat)?;
        let message = match open.shared.takes_messages() {
            false => &mut self.request,
            true => {
                scope.request.clear();
                let copied = scope.request.extend_from_slice(self.request.as_slice());
                copied.map_err(SystemException::from)?;
                &mut scope.request
            }
        };
        let sent = open.shared.send(request_id, message, deadline);
        if sent.is_err() {
            open.shared.forget(request_id);
        }
        sent
    }

    /// Looks, without waiting, whether the call has come to its end.
    pub(super) fn look(&mut self) -> bool {
        self.go_on(
            |open, request_id, frame, _| open.shared.look(request_id, frame),
            None,
        )
    }

    /// As [`look`](Self::look), for a thread that looks after other calls as well: returns `true` as well where the
    /// call [is deferred](Self::is_deferred).
    pub(super) fn look_and_defer(&mut self) -> bool {
        self.call_mut().defers = true;
        let has_ended = self.look();
        self.call_mut().defers = false;
        has_ended
    }

    /// Waits for the end of the call; returns whether it has come before `until`.
    pub(super) fn wait(&mut self, until: Deadline) -> bool {
        let receive = |open: &Open, request_id, frame: &mut Frame, until| {
            open.shared.receive(request_id, frame, until)
        };
        self.go_on(receive, Some(until))
    }

    /// Waits for the end of the present attempt alone: where its connection has ended, that is near.
    pub(super) fn settle(&mut self) {
        let deadline = self.deadline();
        if let Some((open, request_id)) = self.awaited() {
            let received = open.shared.receive(request_id, &mut self.reply, deadline);
            self.take_in(&open, request_id, received);
        }
    }

    /// Receives replies by `receive`, and does what they say, until the call has come to its end or `receive` has
    /// nothing by `until`.
    fn go_on(
        &mut self,
        receive: impl Fn(&Open, u32, &mut Frame, Deadline) -> Option<Result<MessageHeader, Failure>>,
        until: Option<Deadline>,
    ) -> bool {
        loop {
            let deadline = self.deadline();
            let Some((open, request_id)) = self.awaited() else {
                return true;
            };
            let limit = until.map_or(deadline, |until| until.min(deadline));
            let received = receive(&open, request_id, &mut self.reply, limit);
            if !self.take_in(&open, request_id, received) {
                return false;
            }
        }
    }

    /// Does what was received to a request; returns whether there was anything, be it the end of its time.
    fn take_in(
        &mut self,
        open: &Open,
        request_id: u32,
        received: Option<Result<MessageHeader, Failure>>,
    ) -> bool {
        let outcome = match received {
            Some(Ok(message)) => self.read(open, message),
            Some(Err(failure)) => Err(failure),
            None if self.deadline().has_passed() => {
                Err(open.shared.abandon(request_id, &mut self.reply))
            }
            None => return false,
        };
        let call = self.call_mut();
        let decision = call.on_outcome(outcome);
        if call.defers && call.may_look_up(&decision) {
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
            self.prepare(decision)?;
            match Scope::with(|scope| self.send(scope, None))? {
                Ok(()) => return Ok(()),
                Err(failure) => decision = self.call_mut().on_outcome(Err(failure)),
            }
        }
    }

    /// Prepares the next attempt.
    ///
    /// # Errors
    /// The exception that the call ends with.
    fn prepare(&self, decision: Decision) -> Result<(), SystemException> {
        let call = self.call();
        match decision {
            Decision::Done(_) | Decision::Again => {}
            Decision::Failed {
                exception,
                cause,
                is_stale,
            } => {
                if is_stale {
                    binding::forget_by(call.key());
                }
                let State::Sent(sent) = &call.state else {
                    return Err(exception);
                };
                let (core, way) = (call.object.core(), &sent.open.key.way);
                let problem = || sent.open.shared.transport().problem();
                return Err(explain(exception, cause, core, way, &problem));
            }
            Decision::Readdress(mode) => call.bind()?.addressing.set(mode),
            Decision::Elsewhere(target) => {
                binding::forward_by(call.key(), target, call.deadline)?;
            }
            Decision::Original => binding::forget_by(call.key()),
        }
        Ok(())
    }

    fn end(&mut self, result: Result<Answer, SystemException>) {
        let call = self.call_mut();
        if let Err(exception) = result {
            call.cause = failure::kept(exception);
        }
        call.state = State::Done(result);
    }

    /// Reads a reply up to its results.
    fn read(&mut self, open: &Open, message: MessageHeader) -> Result<Outcome, Failure> {
        let text = self.text;
        if message.kind != MessageType::Reply {
            open.shared.close();
            return Err(comm_failure(CompletionStatus::Maybe).into());
        }
        open.is_known.store(true, Ordering::Relaxed);
        let core = self.core();
        let read = Scope::with(|scope| {
            scope.begin(&core);
            let d = message.decoder(&mut self.reply, scope.arena());
            let mut d = d.with_text(text);
            let header = ReplyHeader::decode(&mut d, message.protocol)?;
            read_status(header.status, &mut d, text, message.endian)
        });
        read.map_err(|malformed| {
            open.shared.close();
            let exception = SystemException::from(malformed);
            exception.with_completed(CompletionStatus::Maybe).into()
        })
    }

    /// Has the call looked after by the slot's own seat again.
    pub(super) fn sit_down(&self) {
        if let Some((open, request_id)) = self.awaited() {
            open.shared.hand_to(request_id, &self.seat, false);
        }
    }

    /// Ends the call with an exception.
    pub(super) fn fail(&mut self, exception: SystemException) {
        if let Some((open, request_id)) = self.awaited() {
            let _ = open.shared.abandon(request_id, &mut self.reply);
        }
        self.call_mut().state = State::Done(Err(exception));
    }

    /// A meeting for the call's reply, at which nobody has been.
    pub(super) fn new_meeting(&mut self) -> Arc<Meeting> {
        match Arc::get_mut(&mut self.meeting) {
            Some(meeting) => meeting.clear(),
            // Somebody is about to leave that of the call before.
            None => self.meeting = Arc::default(),
        }
        self.meeting.clone()
    }

    /// Ends a call that nobody wants to know about any more, and frees the slot.
    pub(super) fn cancel(mut self: Box<Self>) {
        if let Some((open, request_id)) = self.awaited() {
            let _ = open.shared.abandon(request_id, &mut self.reply);
        }
        self.free();
    }

    /// Frees the slot of a call that has come to its end, and has its reply read.
    pub(super) fn open<R>(
        mut self: Box<Self>,
        read: impl FnOnce(Result<Reply<'_>, SystemException>) -> R,
    ) -> R {
        let core = self.core();
        let call = self.call.as_mut().map(|call| &mut call.state);
        let ended = match call.map(|state| std::mem::replace(state, State::Begun)) {
            Some(State::Done(ended)) => ended,
            _ => Err(INV_OBJREF),
        };
        if let Some(cause) = self.call.as_mut().and_then(|call| call.cause.take()) {
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
            Slots::of(&core).put_back(self);
        }
    }
}

impl Call {
    /// The key of its binding in the tables of a thread.
    fn key(&self) -> BindingKey {
        binding::key_of_shared(&self.object, self.priority)
    }

    fn bind(&self) -> Result<Rc<Binding>, SystemException> {
        binding::bind_shared(self.key(), &self.object, self.deadline)
    }

    fn on_outcome(&mut self, outcome: Result<Outcome, Failure>) -> Decision {
        let (object, state) = (&self.object, &self.state);
        let at = || match state {
            State::Sent(sent) => Destination {
                target: &sent.target,
                forwarded: sent.forwarded,
                rebind: sent.rebind,
                addressing: sent.addressing,
            },
            State::Begun | State::Done(_) => Destination::original(object),
        };
        self.attempt.on_outcome(object, at, outcome)
    }

    /// Whether the call may have to look up the name of a host to go on by this decision.
    fn may_look_up(&self, decision: &Decision) -> bool {
        let has_names = |object: &Object| object.profile().is_some_and(Profile::has_names);
        let is_any = || {
            has_names(&self.object)
                || matches!(&self.state, State::Sent(sent) if has_names(&sent.target))
        };
        match decision {
            Decision::Done(_) | Decision::Failed { .. } => false,
            Decision::Again | Decision::Readdress(_) | Decision::Original => is_any(),
            Decision::Elsewhere(target) => has_names(target) || is_any(),
        }
    }
}

const LENT: &str = "a slot that was lent has a call";

/// Makes a request of the body of another one, which began at an octet of that and has its text in
/// a form; returns where it begins now.
///
/// # Errors
/// `TRANSIENT` where the new target wants arguments marshalled in another way: the application may call again.
#[cold]
fn marshal_again(
    binding: &Binding,
    scope: &mut Scope,
    operation: &Operation,
    request_id: u32,
    (start, body, text): (usize, &[u8], TextForm),
) -> Result<usize, SystemException> {
    let announces = binding.connection.announces();
    let frame = &mut scope.request;
    let header_end = write_header(binding, frame, operation, request_id, announces)?;
    let body_start = frame.len();
    if body.is_empty() {
        frame.truncate(header_end);
    } else if text == binding.connection.text() && start % 8 == body_start % 8 {
        frame.extend_from_slice(body)?;
    } else {
        return Err(DISCARDED);
    }
    finish_message(frame);
    Ok(body_start)
}
