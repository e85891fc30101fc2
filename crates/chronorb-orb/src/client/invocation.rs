//! One call: bind, marshal, send, receive, and again where the server says so.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::ops::ControlFlow;
use std::rc::Rc;

use chronorb_cdr::{CdrError, Decoder, Encoder, Endian, Frame, TextForm};
#[cfg(feature = "gioplite")]
use chronorb_giop::GiopLite;
use chronorb_giop::contexts;
use chronorb_giop::{
    AddressingDisposition, CompletionStatus, Ior, MessageHeader, MessageProtocol, MessageType,
    Protocol, ReplyHeader, ReplyStatus, RequestHeader, ResponseFlags, ServiceContext,
    SystemException, SystemExceptionKind, Target, Version, encode_request, finish_message, minor,
    start_message,
};
use chronorb_rt::Deadline;

use super::attempt::{Attempt, Cause, Decision, Outcome};
use super::binding::{self, Binding};
use super::collocated;
use super::connection::{Failure, MALFORMED, MAX_STRAYS};
use crate::call::Operation;
use crate::core::Core;
use crate::failure::because;
use crate::gather;
use crate::object::Object;
use crate::observe::Stage;
use crate::protocol::Way;
use crate::rtcorba::{Priority, onward_priority};
use crate::scope::{Answer, Scope};

pub(super) use crate::gather::Write as Arguments;

/// Calls an operation; the answer's octets stay in the scope's reply frame.
pub(crate) fn invoke(
    object: &Object,
    scope: &mut Scope,
    operation: &Operation,
    arguments: Arguments<'_>,
) -> Result<Answer, SystemException> {
    Invocation::begin(object)?.run(scope, operation, arguments)
}

/// Calls a oneway operation.
pub(crate) fn invoke_oneway(
    object: &Object,
    scope: &mut Scope,
    operation: &Operation,
    arguments: Arguments<'_>,
) -> Result<(), SystemException> {
    let mut call = Invocation::begin(object)?;
    loop {
        let binding = call.bind()?;
        match send_request(&binding, scope, operation, arguments, call.deadline) {
            Ok(_) => return Ok(()),
            Err(failure) => call.on_outcome(&binding, Err(failure))?,
        };
    }
}

/// A call under way.
pub(super) struct Invocation<'o> {
    object: &'o Object,
    priority: Option<Priority>,
    pub(super) deadline: Deadline,
    attempt: Attempt,
    /// Whether the next attempt is at the object itself, which may be in this process.
    is_at_original: bool,
}

impl<'o> Invocation<'o> {
    fn begin(object: &'o Object) -> Result<Self, SystemException> {
        let core = object.core();
        core.check_running()?;
        let deadline = Deadline::after(object.time_out());
        let priority = onward_priority(core)?;
        Ok(Self::new(object, priority, deadline, Attempt::default()))
    }

    pub(super) fn new(
        object: &'o Object,
        priority: Option<Priority>,
        deadline: Deadline,
        attempt: Attempt,
    ) -> Self {
        Self {
            object,
            priority,
            deadline,
            attempt,
            is_at_original: true,
        }
    }

    /// Binds the object for the next attempt.
    pub(super) fn bind(&self) -> Result<Rc<Binding>, SystemException> {
        let is_explicit = self.attempt.is_explicit;
        binding::bind(self.object, self.priority, is_explicit, self.deadline)
    }

    /// Makes attempts until there is an answer.
    fn run(
        mut self,
        scope: &mut Scope,
        operation: &Operation,
        arguments: Arguments<'_>,
    ) -> Result<Answer, SystemException> {
        self.object.core().at(Stage::Bind);
        loop {
            if std::mem::take(&mut self.is_at_original)
                && let Some(key) = self.object.key_within()
            {
                let (attempt, limits) = (&mut self.attempt, (self.priority, self.deadline));
                let object = self.object;
                match collocated::call(object, key, attempt, scope, operation, arguments, limits)? {
                    ControlFlow::Break(result) => return result,
                    ControlFlow::Continue(Some(target)) => self.forward(target)?,
                    ControlFlow::Continue(None) => {}
                }
            }
            let binding = self.bind()?;
            let outcome = exchange(&binding, scope, operation, arguments, self.deadline);
            if let Some(answer) = self.on_outcome(&binding, outcome)? {
                return Ok(answer);
            }
        }
    }

    /// Ends the call, or prepares the next attempt.
    pub(super) fn on_outcome(
        &mut self,
        binding: &Binding,
        outcome: Result<Outcome, Failure>,
    ) -> Result<Option<Answer>, SystemException> {
        let at = || binding.destination();
        match self.attempt.on_outcome(self.object, at, outcome) {
            Decision::Done(answer) => return Ok(Some(answer)),
            Decision::Failed {
                exception,
                cause,
                is_stale,
            } => {
                if is_stale {
                    binding::forget(self.object, self.priority);
                }
                let connection = &binding.connection;
                let (core, problem) = (self.object.core(), || connection.problem());
                return Err(explain(exception, cause, core, connection.way(), &problem));
            }
            Decision::Again => {}
            Decision::Readdress(mode) => binding.addressing.set(mode),
            Decision::Elsewhere(target) => self.forward(target)?,
            Decision::Original => {
                binding::forget(self.object, self.priority);
                self.is_at_original = true;
            }
        }
        Ok(None)
    }

    fn forward(&self, target: Object) -> Result<(), SystemException> {
        binding::forward(self.object, self.priority, target, self.deadline)
    }
}

/// Notes the cause of an exception that ends a call by a connection.
#[cold]
#[inline(never)]
pub(super) fn explain(
    exception: SystemException,
    cause: Cause,
    core: &Core,
    way: &Way,
    problem: &dyn Fn() -> Option<String>,
) -> SystemException {
    use SystemExceptionKind::{CommFailure, ImpLimit, Marshal, Timeout};
    match (cause, exception.kind, exception.minor) {
        (Cause::Raised, ..) => because(exception, format_args!("raised by the server at {way}")),
        (Cause::Discarded, ..) => because(
            exception,
            format_args!("{way} closed each connection without beginning the request: {FULL}"),
        ),
        (_, Marshal, minor::MALFORMED_MESSAGE) => because(
            exception,
            format_args!("the answer of {way} is not GIOP; {MAY_BE_TLS}"),
        ),
        (_, CommFailure, _) => match problem() {
            Some(problem) => because(
                exception,
                format_args!("the connection to {way} was lost: {problem}"),
            ),
            None => because(exception, format_args!("the connection to {way} was lost")),
        },
        (_, Timeout, _) => because(
            exception,
            format_args!(
                "no answer of {way} in time (-ORBRequestTimeout, or a time-out of policies)"
            ),
        ),
        (_, ImpLimit, minor::MESSAGE_TOO_LARGE) => {
            let most = core.config.max_message_size;
            let bound = format_args!("a message to or from {way} is larger than {most} octets");
            because(exception, format_args!("{bound} (-ORBMaxMessageSize)"))
        }
        _ => because(
            exception,
            format_args!("in a call by the connection to {way}"),
        ),
    }
}

/// What the answer of a server of TLS looks like to a client without it.
const MAY_BE_TLS: &str = "a server of TLS answers so: use its reference, with ssliop";
/// Why a server closes connections in order.
const FULL: &str = "it has as many as it may (-ORBMaxConnections there), or is ending";

/// One request and its reply.
fn exchange(
    binding: &Binding,
    scope: &mut Scope,
    operation: &Operation,
    arguments: Arguments<'_>,
    deadline: Deadline,
) -> Result<Outcome, Failure> {
    let request_id = send_request(binding, scope, operation, arguments, deadline)?;
    let core = binding.target.core();
    core.at(Stage::Await);
    let mut strays = 0;
    loop {
        let connection = &binding.connection;
        let message = connection.receive_reply(request_id, &mut scope.reply, deadline)?;
        core.at(Stage::Understand);
        match read_reply(binding, scope, message, request_id) {
            Ok(Some(outcome)) => {
                core.at(Stage::Return);
                return Ok(outcome);
            }
            Ok(None) if strays == MAX_STRAYS => {
                binding.connection.close();
                return Err(MALFORMED);
            }
            Ok(None) => strays += 1,
            Err(malformed) => {
                binding.connection.close();
                let exception = SystemException::from(malformed);
                return Err(exception.with_completed(CompletionStatus::Maybe).into());
            }
        }
    }
}

fn send_request(
    binding: &Binding,
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
    let (body_start, left_out) = marshal(binding, scope, operation, arguments, request_id)?;
    let total = scope.request.len() + left_out;
    core.at(Stage::Send);
    if total > core.config.max_message_size {
        return Err(SystemException::from(CdrError::FrameFull).into());
    }
    match connection.gathering() {
        Some(gathering) if left_out > 0 => {
            let mut encoder = encoder(binding, &mut scope.request);
            gathering.send_gathered(&mut encoder, body_start, total, arguments, deadline)?;
        }
        _ if operation.oneway => connection.send(&mut scope.request, deadline)?,
        _ => connection.send_for_reply(request_id, &mut scope.request, deadline)?,
    }
    Ok(request_id)
}

/// Returns where the body begins, and how many octets of it were left out of the frame.
pub(super) fn marshal(
    binding: &Binding,
    scope: &mut Scope,
    operation: &Operation,
    arguments: Arguments<'_>,
    request_id: u32,
) -> Result<(usize, usize), SystemException> {
    let frame = &mut scope.request;
    let version = binding.version;
    let connection = &binding.connection;
    let announces = connection.announces();
    let may_be_kept =
        version >= Version::V1_2 && binding.addressing.get() == AddressingDisposition::Key;
    let prepared = match may_be_kept && !announces {
        true => {
            let is_lite = connection.speaks_lite();
            binding
                .prepared
                .write(operation, is_lite, request_id, frame)?
        }
        false => None,
    };
    let header_end = match prepared {
        Some(header_end) => header_end,
        None => {
            // Where it is not known yet by which protocol, nothing can be said of the requests to come.
            if may_be_kept && !(announces && connection.proposes_lite()) {
                // Their header, which announces nothing any more.
                let is_lite = connection.speaks_lite();
                let header_end = write_header(binding, frame, operation, request_id, false)?;
                binding.prepared.keep(operation, is_lite, frame, header_end);
            }
            write_header(binding, frame, operation, request_id, announces)?
        }
    };
    let body_start = frame.len();
    let mut encoder = encoder(binding, frame);
    let left_out = match connection.gathering() {
        Some(_) => gather::write(&mut encoder, arguments)?,
        None => {
            arguments(&mut encoder)?;
            0
        }
    };
    if encoder.position() == body_start && left_out == 0 {
        encoder.truncate(header_end);
    }
    finish_message(frame);
    Ok((body_start, left_out))
}

fn encoder<'f>(binding: &Binding, frame: &'f mut Frame) -> Encoder<'f> {
    Encoder::new(frame, Endian::NATIVE).with_text(binding.connection.text())
}

/// Writes the header of a request, padded for a body, with what a connection's first requests
/// announce where it `announces`. Returns where the padding begins.
#[cold]
pub(super) fn write_header(
    binding: &Binding,
    frame: &mut Frame,
    operation: &Operation,
    request_id: u32,
    announces: bool,
) -> Result<usize, SystemException> {
    let connection = &binding.connection;
    let version = binding.version;

    let priority = binding
        .propagated
        .map(|p| contexts::encode_priority(p.value()));
    let code_sets = connection.code_sets().filter(|_| announces);
    let mut list = [ServiceContext { id: 0, data: &[] }; 4];
    let mut count = 0;
    let mut add = |id, data| {
        list[count] = ServiceContext { id, data };
        count += 1;
    };
    if let Some(data) = &code_sets {
        add(contexts::CODE_SETS, data);
    }
    // Older versions are spoken with servers of others, which would not know it.
    let tells = announces && connection.has_one_call_at_a_time();
    if tells && version >= Version::V1_2 {
        add(contexts::ONE_AT_A_TIME, &contexts::ONE_AT_A_TIME_DATA);
    }
    if announces && connection.proposes_lite() && version >= Version::V1_2 {
        add(contexts::GIOP_LITE, &contexts::GIOP_LITE_DATA);
    }
    if let Some(data) = &priority {
        add(contexts::RT_CORBA_PRIORITY, data);
    }

    let header = RequestHeader {
        request_id,
        response: if operation.oneway {
            ResponseFlags::None
        } else {
            ResponseFlags::SyncWithTarget
        },
        target: binding.target()?,
        operation: operation.name.as_bytes(),
        contexts: &list[..count],
    };
    let protocol = protocol_of(binding, &header.target, header.operation)?;
    let mut encoder = start_message(frame, protocol, MessageType::Request)?;
    encode_request(&mut encoder, protocol, &header)?;
    let header_end = encoder.position();
    protocol.pad_request(&mut encoder)?;
    Ok(header_end)
}

/// The message protocol of a request of this operation to the target, or of the question where that is.
pub(super) fn protocol_of(
    binding: &Binding,
    target: &Target<'_>,
    operation: &[u8],
) -> Result<Protocol, SystemException> {
    let version = binding.version;
    #[cfg(feature = "gioplite")]
    if version >= Version::V1_2
        && binding.connection.speaks_lite()
        && GiopLite::can_carry(target, operation)
    {
        return Ok(Protocol::Lite);
    }
    #[cfg(not(feature = "gioplite"))]
    let _ = (target, operation);
    Ok(version.into())
}

/// Reads a reply up to its results; `None` where it is not the one to `request_id`.
fn read_reply(
    binding: &Binding,
    scope: &mut Scope,
    message: MessageHeader,
    request_id: u32,
) -> Result<Option<Outcome>, CdrError> {
    let text = binding.connection.text();
    let (frame, arena) = scope.reply_parts();
    let mut d = message.decoder(frame, arena).with_text(text);
    let header = ReplyHeader::decode(&mut d, message.protocol)?;
    if header.request_id != request_id {
        return Ok(None);
    }
    read_status(header.status, &mut d, text, message.endian).map(Some)
}

/// Reads what follows the header of a reply.
pub(super) fn read_status(
    status: ReplyStatus,
    d: &mut Decoder<'_>,
    text: TextForm,
    endian: Endian,
) -> Result<Outcome, CdrError> {
    let answer = |exception| Answer {
        exception,
        body: d.position(),
        endian,
        text,
    };
    Ok(match status {
        ReplyStatus::NoException => Outcome::Answer(answer(false)),
        ReplyStatus::UserException => Outcome::Answer(answer(true)),
        ReplyStatus::SystemException => Outcome::Exception(SystemException::decode(d)?),
        ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm => {
            Outcome::Forward(Ior::decode(d)?)
        }
        ReplyStatus::NeedsAddressingMode => Outcome::Addressing(AddressingDisposition::decode(d)?),
    })
}
