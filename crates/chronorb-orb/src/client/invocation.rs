//! One call: bind, marshal, send and receive, and once more if the server asks for it.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use chronorb_cdr::{Arena, CdrError, Frame, TextForm};
use chronorb_giop::{
    CompletionStatus, EndTimes, MessageHeader, MessageType, ResponseFlags, SystemException,
    SystemExceptionKind, UtcTime, minor,
};
use chronorb_rt::{Deadline, Monotonic};

use super::attempt::{Attempt, Cause, Decision, Outcome, share};
use super::binding::failover::fail_over;
use super::binding::{self, Binding, BindingKey, Limits};
use super::collocated::{self, LocalCall};
use super::connection::{Failure, Link, MALFORMED, MAX_STRAYS, comm_failure};
use super::request::{self, Arguments, encoder, marshal, read_plain_reply, read_reply};
use super::route::onward_priority;
use crate::call::Operation;
use crate::core::{Core, Object};
use crate::failure::because;
use crate::protocol::Way;
use crate::riders;
use crate::rtcorba::policies::{EndPolicies, check_ends, utc_now};
use crate::rtcorba::{Priority, request_priority};
use crate::scope::{ReplyBody, Scope};
use crate::stage::Stage;

/// Calls an operation, and waits for the answer, whose octets stay in the scope's reply frame.
pub(crate) fn invoke(
    object: &Object,
    scope: &mut Scope,
    operation: &Operation,
    arguments: Arguments<'_>,
) -> Result<ReplyBody, SystemException> {
    #[cfg(feature = "distributable-threads")]
    if crate::rtscheduling::is_in_segment() {
        return super::segment::invoke(object, scope, operation, arguments);
    }
    object.core().at(Stage::Bind);
    let mut object = object;
    let (mut usual, mut call) = (None, None);
    let mut riders = riders::CallState::default();
    if object.is_outside() {
        usual = binding::usual(object);
    } else if let Some(result) = call_here(&mut call, object, scope, operation, arguments)? {
        return result;
    }
    loop {
        let (binding, limits) = match usual.take() {
            Some(usual) => usual,
            None => {
                object = object.answering()?;
                match Invocation::go_on(&mut call, object, scope, operation, arguments)? {
                    NextAttempt::At(binding, limits) => (binding, limits),
                    NextAttempt::Done(answer) => return Ok(answer),
                }
            }
        };
        match exchange(&binding, &mut riders, scope, operation, arguments, limits) {
            Ok(answer) => return Ok(answer),
            Err(outcome) => Invocation::fail(&mut call, object, &binding, limits, outcome)?,
        }
    }
}

/// Calls an object of this process. `None` is for a call that must use the transport: its state is
/// in `call` if an attempt was made.
#[inline(never)]
fn call_here(
    call: &mut Option<Invocation>,
    object: &Object,
    scope: &mut Scope,
    operation: &Operation,
    arguments: Arguments<'_>,
) -> Result<Option<Result<ReplyBody, SystemException>>, SystemException> {
    let core = object.core();
    if operation.oneway || core.rt.policies.uses_ends() {
        return Ok(None);
    }
    let Some(key) = object.key_within() else {
        return Ok(None);
    };
    core.check_running()?;
    let deadline = Deadline::after_nanos(object.time_out());
    let priority = onward_priority(core)?;
    let limits = (priority, deadline);
    let mut attempt = Attempt::default();
    match collocated::call(
        object,
        key,
        &mut attempt,
        scope,
        operation,
        arguments,
        limits,
    )? {
        LocalCall::Done(result) => Ok(Some(result)),
        LocalCall::ByTransport => leave_process(call, object, attempt, limits, None).map(|()| None),
        LocalCall::Forwarded(target) => {
            leave_process(call, object, attempt, limits, Some(target)).map(|()| None)
        }
    }
}

/// Begins the state of a call that has to use the transport, after attempts within the process,
/// perhaps to an object to which it was forwarded.
#[cold]
#[inline(never)]
fn leave_process(
    call: &mut Option<Invocation>,
    object: &Object,
    attempt: Attempt,
    (priority, deadline): (Option<Priority>, Deadline),
    target: Option<Object>,
) -> Result<(), SystemException> {
    let key = BindingKey::of_calls(object, priority);
    let call = call.insert(Invocation::new(key, deadline, attempt));
    call.is_at_original = false;
    call.has_waited.set(true);
    target.map_or(Ok(()), |target| binding::forward(key, target, deadline))
}

/// Sends the request of a oneway operation. Returns `false`, without sending it, if the policy
/// wants an answer: the operation is [invoked](invoke) then.
pub(crate) fn invoke_oneway(
    object: &Object,
    scope: &mut Scope,
    operation: &Operation,
    arguments: Arguments<'_>,
) -> Result<bool, SystemException> {
    #[cfg(feature = "distributable-threads")]
    if crate::rtscheduling::is_in_segment() {
        return super::segment::invoke_oneway(object, scope, operation, arguments);
    }
    send_oneway(object, scope, operation, arguments)
}

/// Sends the request of a oneway operation as [`invoke_oneway`] does, for any thread.
#[inline(always)]
pub(super) fn send_oneway(
    object: &Object,
    scope: &mut Scope,
    operation: &Operation,
    arguments: Arguments<'_>,
) -> Result<bool, SystemException> {
    let mut usual = binding::usual(object);
    let mut call = None;
    let mut riders = riders::CallState::default();
    loop {
        let (binding, limits) = match usual.take() {
            Some(usual) => usual,
            None => match Invocation::go_on(&mut call, object, scope, operation, arguments)? {
                NextAttempt::At(binding, limits) => (binding, limits),
                NextAttempt::Done(_) => return Ok(true),
            },
        };
        if binding.oneways != ResponseFlags::None {
            return Ok(false);
        }
        match send_request(
            &binding,
            &mut riders,
            scope,
            operation,
            arguments,
            limits.until,
        ) {
            Ok(_) => return Ok(true),
            Err(failure) => {
                Invocation::fail(&mut call, object, &binding, limits, Err(failure))?;
            }
        }
    }
}

/// Sends the oneways that the thread has kept for an object.
pub(crate) fn flush_oneways(object: &Object) -> Result<(), SystemException> {
    let flushed = binding::flush_oneways(object, Deadline::after_nanos(object.time_out()));
    flushed.map_err(|failure| match failure {
        Failure::Exception(exception) => exception,
        Failure::NotProcessed => comm_failure(CompletionStatus::Maybe),
    })
}

/// The next attempt of a call.
pub(super) enum NextAttempt {
    /// An attempt by a binding, within limits.
    At(Rc<Binding>, Limits),
    /// None: the call has ended within the process.
    Done(ReplyBody),
}

/// The state of a call under way that is not [usual](binding::usual).
pub(super) struct Invocation {
    pub(super) key: BindingKey,
    pub(super) deadline: Cell<Deadline>,
    pub(super) attempt: Attempt,
    /// The time from the beginning of the call to the deadline, in nanoseconds; 0 if unknown.
    whole: Cell<u64>,
    /// Whether the call has waited already.
    has_waited: Cell<bool>,
    /// Whether the next attempt is at the object itself, which may be in this process.
    is_at_original: bool,
}

impl Invocation {
    /// Begins a call of `object` by the binding with this key.
    pub(super) fn begin(
        object: &Object,
        key: impl FnOnce(&Object, Option<Priority>) -> BindingKey,
    ) -> Result<Self, SystemException> {
        let core = object.core();
        core.check_running()?;
        let whole = object.time_out();
        let deadline = Deadline::after_nanos(whole);
        let key = key(object, onward_priority(core)?);
        Ok(Self {
            whole: Cell::new(whole),
            ..Self::new(key, deadline, Attempt::default())
        })
    }

    pub(super) fn new(key: BindingKey, deadline: Deadline, attempt: Attempt) -> Self {
        Self {
            key,
            deadline: Cell::new(deadline),
            attempt,
            whole: Cell::new(0),
            has_waited: Cell::new(false),
            is_at_original: true,
        }
    }

    /// Begins the next attempt of a call, and the call itself if that has not been done.
    #[inline(never)]
    pub(super) fn go_on(
        call: &mut Option<Self>,
        object: &Object,
        scope: &mut Scope,
        operation: &Operation,
        arguments: Arguments<'_>,
    ) -> Result<NextAttempt, SystemException> {
        let call = match call {
            Some(call) => call,
            None => call.insert(Self::begin(object, BindingKey::of_calls)?),
        };
        loop {
            if std::mem::take(&mut call.is_at_original)
                && !operation.oneway
                && let Some(result) = call.call_within(object, scope, operation, arguments)?
            {
                return result.map(NextAttempt::Done);
            }
            let binding = call.bind(object)?;
            match call.begin_attempt(&binding, operation) {
                Ok(limits) => return Ok(NextAttempt::At(binding, limits)),
                Err(failure) => call.on_outcome(object, &binding, Err(failure))?,
            };
        }
    }

    /// Ends a call after an attempt without an answer, or prepares the next attempt. The first one
    /// had these limits.
    #[cold]
    #[inline(never)]
    pub(super) fn fail(
        call: &mut Option<Self>,
        object: &Object,
        binding: &Binding,
        limits: Limits,
        outcome: Result<Outcome, Failure>,
    ) -> Result<(), SystemException> {
        let call = match call {
            Some(call) => call,
            None => {
                let key = BindingKey::of_calls(object, request_priority());
                call.insert(Self::new(key, limits.deadline, Attempt::default()))
            }
        };
        call.on_outcome(object, binding, outcome).map(drop)
    }

    /// Binds the object for the next attempt.
    pub(super) fn bind(&self, object: &Object) -> Result<Rc<Binding>, SystemException> {
        let (explicit, deadline) = (self.attempt.is_explicit, self.deadline.get());
        binding::bind(self.key, object, explicit, deadline, &self.has_waited)
            .map_err(|exception| self.attempt.of_all_attempts(exception))
    }

    /// The deadline of an attempt, which may have a share of the call's time.
    fn limit_of_attempt(&self, binding: &Binding) -> Deadline {
        let deadline = self.deadline.get();
        let failover = binding.failover.as_deref();
        match failover.filter(|failover| failover.shares_time()) {
            Some(failover) => {
                let left = failover.addresses.saturating_sub(self.attempt.moves());
                share(deadline, failover.policy.attempt_timeout, left)
            }
            None => deadline,
        }
    }

    /// Limits an attempt of a call with these policies about end times. Returns its end times, and
    /// the deadline by which its request must be sent.
    ///
    /// # Errors
    /// `TIMEOUT` if an end time has passed.
    #[cold]
    #[inline(never)]
    fn limit(&self, policies: &EndPolicies) -> Result<(EndTimes, Deadline), SystemException> {
        let (deadline, now) = (self.deadline.get(), utc_now());
        let begun = deadline
            .instant()
            .as_nanos()
            .saturating_sub(self.whole.get());
        let since = match self.whole.get() {
            0 => Duration::ZERO,
            _ => Monotonic::now().since(Monotonic::from_nanos(begun)),
        };
        let ends = policies.of_call(now.before(since));
        check_ends(ends, now).map_err(|(late, _)| late)?;
        let within = |end: Option<UtcTime>| {
            end.map_or(deadline, |end| {
                deadline.min(Deadline::after(end.since(now)))
            })
        };
        let limited = within(ends.reply);
        self.has_waited.set(true);
        self.deadline.set(limited);
        let left = limited.instant().as_nanos().saturating_sub(begun);
        self.whole.set(left.max(1));
        Ok((ends, within(ends.request).min(limited)))
    }

    /// Begins an attempt by a binding. Returns its limits.
    ///
    /// # Errors
    /// `TIMEOUT` if an end time has passed, and those of sending oneways that were kept before.
    pub(super) fn begin_attempt(
        &self,
        binding: &Binding,
        operation: &Operation,
    ) -> Result<Limits, Failure> {
        let mut until = None;
        if let Some(policies) = &binding.ends {
            let (ends, limited) = self.limit(policies)?;
            binding.present_ends.set(ends);
            until = Some(limited);
        }
        let deadline = self.limit_of_attempt(binding);
        let until = until.map_or(deadline, |until| until.min(deadline));
        if binding.buffering.is_some() && binding.has_answer(operation) {
            self.has_waited.set(true);
            binding.connection.flush(until)?;
        }
        Ok(Limits {
            until,
            deadline,
            whole: if self.has_waited.get() || deadline != self.deadline.get() {
                0
            } else {
                self.whole.get()
            },
        })
    }

    /// Makes attempts at objects of this process. `None` is for a call that must use the transport,
    /// at another object if this one was forwarded there.
    ///
    /// # Errors
    /// Those that occur before a servant is called, or after it.
    pub(super) fn call_within(
        &mut self,
        object: &Object,
        scope: &mut Scope,
        operation: &Operation,
        arguments: Arguments<'_>,
    ) -> Result<Option<Result<ReplyBody, SystemException>>, SystemException> {
        let Some(key) = object.key_within() else {
            return Ok(None);
        };
        self.has_waited.set(true);
        if object.core().rt.policies.uses_ends() {
            self.limit(object.effective_overrides().ends())?;
        }
        let limits = (self.key.priority, self.deadline.get());
        let attempt = &mut self.attempt;
        match collocated::call(object, key, attempt, scope, operation, arguments, limits)? {
            LocalCall::Done(result) => Ok(Some(result)),
            LocalCall::Forwarded(target) => {
                binding::forward(self.key, target, self.deadline.get())?;
                Ok(None)
            }
            LocalCall::ByTransport => Ok(None),
        }
    }

    /// Ends the call after an attempt by a binding, or prepares the next attempt.
    #[cold]
    #[inline(never)]
    pub(super) fn on_outcome(
        &mut self,
        object: &Object,
        binding: &Binding,
        outcome: Result<Outcome, Failure>,
    ) -> Result<Option<ReplyBody>, SystemException> {
        self.has_waited.set(true);
        let at = || binding.destination();
        match self.attempt.on_outcome(object, at, outcome) {
            Decision::Done(answer) => Ok(Some(answer)),
            decision => {
                let connection = &binding.connection;
                let used = Some((&connection.way, connection.link()));
                self.carry_out(object, decision, used).map(|()| None)
            }
        }
    }

    /// Prepares the next attempt; the last one used this connection.
    ///
    /// # Errors
    /// The exception that the call ends with.
    #[cold]
    #[inline(never)]
    pub(super) fn carry_out(
        &mut self,
        object: &Object,
        decision: Decision,
        used: Option<(&Way, &Link)>,
    ) -> Result<(), SystemException> {
        match decision {
            Decision::Done(_) | Decision::Again => {}
            Decision::Failed {
                exception,
                cause,
                is_stale,
            } => {
                if is_stale {
                    binding::forget(self.key);
                }
                return Err(match used {
                    Some((way, link)) => explain(exception, cause, object.core(), way, link),
                    None => exception,
                });
            }
            Decision::Readdress(mode) => self.bind(object)?.addressing.set(mode),
            Decision::Elsewhere(target) => {
                binding::forward(self.key, target, self.deadline.get())?;
            }
            Decision::Original => {
                binding::forget(self.key);
                self.is_at_original = true;
            }
            Decision::NextAddress {
                exception,
                cause,
                from,
                is_first,
            } => {
                let Some((way, link)) = used else {
                    return Err(exception);
                };
                let (key, deadline) = (self.key, self.deadline.get());
                if !fail_over(key, object, from, (way, exception), is_first, deadline) {
                    return Err(explain(exception, cause, object.core(), way, link));
                }
            }
        }
        Ok(())
    }
}

/// Records the cause of an exception that ends a call by a connection.
fn explain(
    exception: SystemException,
    cause: Cause,
    core: &Core,
    way: &Way,
    link: &Link,
) -> SystemException {
    use SystemExceptionKind::{CommFailure, ImpLimit, Marshal, Timeout};
    let note = |cause: fmt::Arguments<'_>| because(exception, cause);
    match (cause, exception.kind, exception.minor) {
        (Cause::Raised, ..) => note(format_args!("raised by the server at {way}")),
        (Cause::Discarded, ..) => {
            let what = "closed each connection without beginning the request";
            note(format_args!("{way} {what}: {FULL}"))
        }
        (_, Marshal, minor::MALFORMED_MESSAGE) => note(format_args!(
            "the answer of {way} is not GIOP; {MAY_BE_TLS}"
        )),
        (_, CommFailure, _) => match link.problem() {
            Some(problem) => note(format_args!("the connection to {way} was lost: {problem}")),
            None => note(format_args!("the connection to {way} was lost")),
        },
        (_, Timeout, _) => {
            let limits = "(-ORBRequestTimeout, or a time-out of policies)";
            note(format_args!("no answer of {way} in time {limits}"))
        }
        (_, ImpLimit, minor::MESSAGE_TOO_LARGE) => {
            let most = core.config.max_message_size;
            let bound = format_args!("a message to or from {way} is larger than {most} octets");
            note(format_args!("{bound} (-ORBMaxMessageSize)"))
        }
        _ => note(format_args!("in a call by the connection to {way}")),
    }
}

/// One request and its reply. Any other outcome than an answer is an error.
#[inline(always)]
pub(super) fn exchange(
    binding: &Binding,
    riders: &mut riders::CallState,
    scope: &mut Scope,
    operation: &Operation,
    arguments: Arguments<'_>,
    limits: Limits,
) -> Result<ReplyBody, Result<Outcome, Failure>> {
    let request_id =
        send_request(binding, riders, scope, operation, arguments, limits.until).map_err(Err)?;
    let core = binding.target.core();
    core.at(Stage::Await);
    let connection = &binding.connection;
    let times = (limits.deadline, limits.whole);
    let received = connection.receive(request_id, MessageType::Reply, &mut scope.reply, times);
    core.at(Stage::Understand);
    let answer = match received {
        Ok(message) => read_plain_reply(&scope.reply, message, connection.text, request_id),
        Err(_) => None,
    };
    let answer = match answer {
        Some(answer) => answer,
        None => {
            let reply = (request_id, MessageType::Reply, limits.deadline);
            match read_outcome(binding, riders, scope, received, reply, read_reply) {
                Ok(Outcome::Answer(answer)) => answer,
                outcome => return Err(outcome),
            }
        }
    };
    core.at(Stage::Return);
    Ok(answer)
}

/// One locate request and its reply.
#[cold]
pub(super) fn locate(
    binding: &Binding,
    scope: &mut Scope,
    deadline: Deadline,
) -> Result<Outcome, Failure> {
    scope.begin(binding.target.core());
    let connection = &binding.connection;
    connection.flush(deadline)?;
    let request_id = connection.next_request_id();
    request::write_locate_request(binding, &mut scope.request, request_id)?;
    connection.send_for_reply(request_id, &mut scope.request, deadline)?;
    let kind = MessageType::LocateReply;
    let received = connection.receive(request_id, kind, &mut scope.reply, (deadline, 0));
    let reply = (request_id, kind, deadline);
    let riders = &mut riders::CallState::default();
    read_outcome(
        binding,
        riders,
        scope,
        received,
        reply,
        request::read_locate_reply,
    )
}

/// Reads the outcome in what was received for a request, by `read`, and receives again after
/// replies to other ones.
#[cold]
#[inline(never)]
fn read_outcome(
    binding: &Binding,
    riders: &mut riders::CallState,
    scope: &mut Scope,
    mut received: Result<MessageHeader, Failure>,
    (request_id, kind, deadline): (u32, MessageType, Deadline),
    read: ReadReply,
) -> Result<Outcome, Failure> {
    let connection = &binding.connection;
    let mut strays = 0;
    loop {
        let parts = scope.reply_parts();
        let failure = match read(parts, riders, received?, connection.text, request_id) {
            Ok(Some(outcome)) => return Ok(outcome),
            Ok(None) if strays == MAX_STRAYS => MALFORMED,
            Ok(None) => {
                strays += 1;
                let times = (deadline, 0);
                received = connection.receive(request_id, kind, &mut scope.reply, times);
                continue;
            }
            Err(malformed) => {
                let exception = SystemException::from(malformed);
                let completed = match kind {
                    MessageType::Reply => CompletionStatus::Maybe,
                    _ => CompletionStatus::No,
                };
                exception.with_completed(completed).into()
            }
        };
        connection.close();
        return Err(failure);
    }
}

/// Reads the outcome in a reply with these octets, and `None` if it is not the one to this request.
type ReadReply = fn(
    (&mut Frame, &Arena),
    &mut riders::CallState,
    MessageHeader,
    TextForm,
    u32,
) -> Result<Option<Outcome>, CdrError>;

#[inline(always)]
pub(super) fn send_request(
    binding: &Binding,
    riders: &mut riders::CallState,
    scope: &mut Scope,
    operation: &Operation,
    arguments: Arguments<'_>,
    deadline: Deadline,
) -> Result<u32, Failure> {
    let core = binding.target.core();
    core.at(Stage::Marshal);
    scope.begin(core);
    let connection = &binding.connection;
    let request_id = connection.next_request_id();
    let frame = &mut scope.request;
    let (body_start, left_out) = marshal(binding, riders, frame, operation, arguments, request_id)?;
    let total = frame.len() + left_out;
    core.at(Stage::Send);
    if total > core.config.max_message_size {
        return Err(SystemException::from(CdrError::FrameFull).into());
    }
    match connection.gathering() {
        Some(gathering) if left_out > 0 => {
            connection.flush(deadline)?;
            let mut encoder = encoder(binding, frame);
            gathering.send_gathered(&mut encoder, body_start, total, arguments, deadline)?;
        }
        _ if !binding.has_answer(operation) => match binding.buffering {
            None => connection.send(frame, deadline)?,
            Some(limits) => connection.send_batched(frame, limits, deadline)?,
        },
        _ => connection.send_for_reply(request_id, frame, deadline)?,
    }
    Ok(request_id)
}

/// The answer of a server of TLS, to a client without it, is malformed.
const MAY_BE_TLS: &str = "a server of TLS answers so: use its reference, with ssliop";
/// The reasons for which a server closes connections in order.
const FULL: &str = "it has as many as it may (-ORBMaxConnections there), or is ending";
