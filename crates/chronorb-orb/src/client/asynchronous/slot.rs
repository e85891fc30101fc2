//! One asynchronous call, from its request to its reply.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use chronorb_cdr::{CdrError, Frame, TextForm};
use chronorb_giop::{
    AddressingDisposition, CompletionStatus, Ior, MessageHeader, MessageType, ReplyHeader,
    SystemException, SystemExceptionKind, finish_message, minor,
};
use chronorb_rt::{Deadline, Gate};

use super::meeting::Meeting;
use super::table::Slots;
use crate::call::{Operation, Reply};
use crate::client::binding::{self, Binding};
use crate::client::collocated;
use crate::client::connection::{Awaited, Failure, Open, comm_failure};
use crate::client::explicit::locate;
use crate::client::invocation::{
    Arguments, MAX_FORWARDS, MAX_REPEATS, Outcome, inv_objref, marshal, read_status, write_header,
};
use crate::core::Core;
use crate::failure::{self, LastFailure, because};
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
    forwards: u32,
    repeats: u32,
    state: State,
    /// Whether what may need the name of a host to be looked up is left undecided: it would hold others up.
    defers: bool,
    undecided: Option<Result<Outcome, Failure>>,
    /// What is known of its failure, found by another thread than the one that takes the result.
    cause: Option<Box<LastFailure>>,
}

enum State {
    /// Nothing has been sent.
    Begun,
    /// A request was sent.
    Awaited(Attempt),
    /// It has come to its end, with what is in the reply frame.
    Done(Result<Answer, SystemException>),
}

/// A request whose reply is awaited.
struct Attempt {
    open: Arc<Open>,
    request_id: u32,
    /// Where it was sent to.
    target: Object,
    /// Whether that is another object than the one that was called.
    forwarded: bool,
    rebind: RebindMode,
    addressing: AddressingDisposition,
    text: TextForm,
}

impl Default for Slot {
    #[allow(clippy::disallowed_methods, reason = "once for each slot")]
    fn default() -> Self {
        Self {
            request: scope::empty_frame(),
            body: 0,
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
        forwards: 0,
        repeats: 0,
        state: State::Begun,
        defers: false,
        undecided: None,
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

    /// Whether it has been left undecided how the call goes on; [`decide`](Self::decide) does that.
    pub(super) fn is_undecided(&self) -> bool {
        self.call().undecided.is_some()
    }

    /// Goes on with the call where that was left undecided, which may take as long as the call has time.
    pub(super) fn decide(&mut self) {
        if let Some(outcome) = self.call_mut().undecided.take() {
            self.resolve(outcome);
        }
    }

    /// The connection and the request on it whose reply is awaited; `None` when the call has come to its end.
    pub(super) fn awaited(&self) -> Option<(Arc<Open>, u32)> {
        match &self.call().state {
            State::Awaited(attempt) if !self.is_undecided() => {
                Some((attempt.open.clone(), attempt.request_id))
            }
            _ => None,
        }
    }

    fn start(
        &mut self,
        scope: &mut Scope,
        arguments: Arguments<'_>,
    ) -> Result<(), SystemException> {
        let call = self.call();
        let (mut object, operation, deadline) =
            (call.object.clone(), call.operation, call.deadline);
        while let Some(key) = object.key_within() {
            let served = collocated::exchange(&object, key, scope, &operation, arguments, deadline);
            let Some(outcome) = served else { break };
            match outcome? {
                Outcome::Answer(answer) => {
                    std::mem::swap(&mut self.reply, &mut scope.reply);
                    self.call_mut().state = State::Done(Ok(answer));
                    return Ok(());
                }
                Outcome::Exception(exception) => {
                    self.call_mut().state = State::Done(Err(exception));
                    return Ok(());
                }
                Outcome::Addressing(_) => return Err(inv_objref()),
                Outcome::Forward(ior) => {
                    let target = self.call_mut().forwarded(ior)?;
                    if !binding::may_move(object.rebind_mode(), &object, &target) {
                        return Err(binding::FORWARD_FORBIDDEN);
                    }
                    object = target;
                }
            }
        }
        self.call_mut().object = object;
        self.locate(scope)?;
        loop {
            let Err(failure) = self.send(scope, Some(arguments)) else {
                return Ok(());
            };
            if let ControlFlow::Break(result) = self.follow(Err(failure)) {
                return result.map(drop);
            }
        }
    }

    /// Asks the server where the object is, if the reference is only an address, as that of a `corbaloc:` is. It may be
    /// elsewhere, and want another GIOP or text in another form there: then arguments that are marshalled already
    /// would be of no use. It is asked once by each thread that calls by the reference.
    ///
    /// # Errors
    /// `TIMEOUT` where the time is over, and those of a forward. Any other one the request will meet as well.
    fn locate(&mut self, scope: &mut Scope) -> Result<(), SystemException> {
        let call = self.call_mut();
        let key = binding::key_of_shared(&call.object, call.priority);
        loop {
            let binding = binding::bind_shared(key, &call.object, call.deadline)?;
            if binding.is_located.replace(true) || !binding.connection.is_stream() {
                return Ok(());
            }
            match locate(&binding, scope, call.deadline) {
                Ok(Outcome::Forward(ior)) => {
                    let target = call.forwarded(ior)?;
                    if !binding.may_move_to(&target) {
                        return Err(binding::FORWARD_FORBIDDEN);
                    }
                    binding::forward_by(key, target, call.deadline)?;
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
    fn send(&mut self, scope: &mut Scope, arguments: Option<Arguments<'_>>) -> Result<(), Failure> {
        let call = self.call.as_mut().expect(LENT);
        let core = call.object.core().clone();
        let (operation, deadline) = (call.operation, call.deadline);
        let key = binding::key_of_shared(&call.object, call.priority);
        let binding = binding::bind_shared(key, &call.object, deadline)?;
        let connection = &binding.connection;
        let open = connection.open().ok_or(binding::NO_USABLE_PROFILE)?.clone();
        if connection.announces() && open.is_known.load(Ordering::Relaxed) {
            connection.announce_no_more();
        }
        let request_id = open.shared.next_request_id();
        scope.begin(&core);
        let body = match arguments {
            Some(arguments) => marshal(&binding, scope, &operation, arguments, request_id)?.0,
            None => {
                let before = match &call.state {
                    State::Awaited(attempt) => Some(attempt.text),
                    _ => None,
                };
                let body = self.request.as_slice().get(self.body..).unwrap_or_default();
                let body = (self.body, body);
                marshal_again(&binding, scope, &operation, request_id, body, before)?
            }
        };
        if scope.request.len() > core.config.max_message_size {
            return Err(SystemException::from(CdrError::FrameFull).into());
        }
        let target = binding.target.clone();
        call.state = State::Awaited(Attempt {
            open: open.clone(),
            request_id,
            forwarded: binding.forwarded,
            rebind: binding.rebind,
            addressing: binding.addressing.get(),
            text: connection.text(),
            target,
        });
        std::mem::swap(&mut self.request, &mut scope.request);
        self.body = body;
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
    /// call [is undecided](Self::is_undecided).
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
        match self.call().defers && self.call().may_look_up(&outcome) {
            true => self.call_mut().undecided = Some(outcome),
            false => self.resolve(outcome),
        }
        true
    }

    /// Ends the call by what came, or sends the request again.
    fn resolve(&mut self, outcome: Result<Outcome, Failure>) {
        let mut outcome = outcome;
        loop {
            match self.follow(outcome) {
                ControlFlow::Break(result) => {
                    if let Err(exception) = result {
                        self.call_mut().cause = failure::kept(exception);
                    }
                    self.call_mut().state = State::Done(result);
                    return;
                }
                ControlFlow::Continue(()) => match Scope::with(|scope| self.send(scope, None)) {
                    Ok(()) => return,
                    Err(failure) => outcome = Err(failure),
                },
            }
        }
    }

    /// Reads a reply up to its results.
    fn read(&mut self, open: &Open, message: MessageHeader) -> Result<Outcome, Failure> {
        let text = match &self.call().state {
            State::Awaited(attempt) => attempt.text,
            _ => scope::text_within(),
        };
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

    /// Ends the call, or prepares the next attempt, by the rules for all calls.
    fn follow(
        &mut self,
        outcome: Result<Outcome, Failure>,
    ) -> ControlFlow<Result<Answer, SystemException>> {
        match outcome {
            Ok(Outcome::Answer(answer)) => ControlFlow::Break(Ok(answer)),
            Ok(Outcome::Exception(exception)) => {
                self.explain(exception, "raised by the server at");
                self.call_mut().fall_back(exception)
            }
            Err(Failure::Exception(exception)) => {
                // What shows before there is a connection has told its cause.
                if failure::of(exception).is_none() {
                    self.explain(exception, "in a call by the connection to");
                }
                self.call_mut().fall_back(exception)
            }
            Ok(Outcome::Forward(ior)) => match self.call_mut().forward(ior) {
                Ok(()) => ControlFlow::Continue(()),
                Err(exception) => ControlFlow::Break(Err(exception)),
            },
            Ok(Outcome::Addressing(mode)) => self.call_mut().address(mode),
            Err(Failure::NotProcessed) => self.call_mut().repeat(),
        }
    }

    /// Says at which server the call failed.
    #[cold]
    fn explain(&self, exception: SystemException, what: &str) {
        if let Some(attempt) = self.call().attempt() {
            because(exception, format_args!("{what} {}", attempt.open.key.way));
        }
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
            _ => Err(inv_objref()),
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
    fn attempt(&self) -> Option<&Attempt> {
        match &self.state {
            State::Awaited(attempt) => Some(attempt),
            _ => None,
        }
    }

    /// Whether the call may have to look up the name of a host to go on after this.
    fn may_look_up(&self, outcome: &Result<Outcome, Failure>) -> bool {
        let has_names = |object: &Object| object.profile().is_some_and(Profile::has_names);
        let present = || {
            let target = self.attempt().map(|attempt| &attempt.target);
            has_names(&self.object) || target.is_some_and(has_names)
        };
        match outcome {
            Ok(Outcome::Answer(_)) => false,
            Ok(Outcome::Forward(ior)) => {
                let target = self.object.forwarded_to(ior.clone());
                present() || target.is_some_and(|target| has_names(&target))
            }
            Ok(Outcome::Exception(_)) | Err(Failure::Exception(_)) => {
                self.attempt().is_some_and(|attempt| attempt.forwarded) && present()
            }
            Ok(Outcome::Addressing(_)) | Err(Failure::NotProcessed) => present(),
        }
    }

    /// The object that a server named instead.
    fn forwarded(&mut self, ior: Ior) -> Result<Object, SystemException> {
        self.forwards += 1;
        if self.forwards > MAX_FORWARDS {
            let kind = SystemExceptionKind::Transient;
            return Err(SystemException::no(kind, minor::FORWARD_LOOP));
        }
        self.object.forwarded_to(ior).ok_or_else(inv_objref)
    }

    /// Goes on at another object, which this thread remembers for the calls to come.
    fn forward(&mut self, ior: Ior) -> Result<(), SystemException> {
        let target = self.forwarded(ior)?;
        if let Some(attempt) = self.attempt()
            && !binding::may_move(attempt.rebind, &attempt.target, &target)
        {
            return Err(binding::FORWARD_FORBIDDEN);
        }
        let key = binding::key_of_shared(&self.object, self.priority);
        binding::forward_by(key, target, self.deadline)
    }

    /// Where a forwarded target fails before it began, the original one is asked again.
    fn fall_back(
        &mut self,
        exception: SystemException,
    ) -> ControlFlow<Result<Answer, SystemException>> {
        use SystemExceptionKind::{CommFailure, ObjectNotExist, Transient};
        let stale = matches!(exception.kind, CommFailure | ObjectNotExist | Transient)
            && exception.completed == CompletionStatus::No;
        let may_return = self.attempt().is_some_and(|attempt| {
            let may_move = binding::may_move(attempt.rebind, &attempt.target, &self.object);
            attempt.forwarded && may_move
        });
        if stale && may_return {
            binding::forget_by(binding::key_of_shared(&self.object, self.priority));
            if self.repeats < MAX_REPEATS {
                self.repeats += 1;
                return ControlFlow::Continue(());
            }
        }
        ControlFlow::Break(Err(exception))
    }

    /// Names the object as the server wants it.
    fn address(
        &mut self,
        mode: AddressingDisposition,
    ) -> ControlFlow<Result<Answer, SystemException>> {
        let is_other = self.attempt().is_some_and(|a| a.addressing != mode);
        if !is_other || self.repeats >= MAX_REPEATS {
            return ControlFlow::Break(Err(inv_objref()));
        }
        self.repeats += 1;
        let key = binding::key_of_shared(&self.object, self.priority);
        match binding::bind_shared(key, &self.object, self.deadline) {
            Ok(binding) => {
                binding.addressing.set(mode);
                ControlFlow::Continue(())
            }
            Err(exception) => ControlFlow::Break(Err(exception)),
        }
    }

    /// The server has not begun the request.
    fn repeat(&mut self) -> ControlFlow<Result<Answer, SystemException>> {
        if self.repeats < MAX_REPEATS {
            self.repeats += 1;
            return ControlFlow::Continue(());
        }
        let kind = SystemExceptionKind::Transient;
        ControlFlow::Break(Err(SystemException::no(kind, minor::REQUEST_DISCARDED)))
    }
}

const LENT: &str = "a slot that was lent has a call";

/// Makes a request of the `body` of another one, which began at an octet of that and had its text in the form
/// `before`; returns where it begins now.
///
/// # Errors
/// `TRANSIENT` where the new target wants arguments marshalled in another way: the application may call again.
#[cold]
fn marshal_again(
    binding: &Binding,
    scope: &mut Scope,
    operation: &Operation,
    request_id: u32,
    (start, body): (usize, &[u8]),
    before: Option<TextForm>,
) -> Result<usize, SystemException> {
    let announces = binding.connection.announces();
    let frame = &mut scope.request;
    let header_end = write_header(binding, frame, operation, request_id, announces)?;
    let body_start = frame.len();
    if body.is_empty() {
        frame.truncate(header_end);
    } else if before == Some(binding.connection.text()) && start % 8 == body_start % 8 {
        frame.extend_from_slice(body)?;
    } else {
        let kind = SystemExceptionKind::Transient;
        return Err(SystemException::no(kind, minor::REQUEST_DISCARDED));
    }
    finish_message(frame);
    Ok(body_start)
}
