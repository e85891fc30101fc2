//! Explicit binding: what the first calls would have to find out and to connect, done before.

use chronorb_cdr::CdrError;
use chronorb_giop::{
    AddressingDisposition, CompletionStatus, Ior, LocateReplyHeader, LocateRequestHeader,
    LocateStatus, MessageHeader, MessageType, SystemException, SystemExceptionKind,
    encode_locate_request, finish_message, minor, start_message,
};
use chronorb_rt::Deadline;

use super::attempt::{Attempt, Outcome};
use super::binding::{self, Binding};
use super::connection::{Failure, MALFORMED, MAX_STRAYS};
use super::invocation::{Invocation, protocol_of};
use super::route::{self, NoRoute, Route};
use crate::object::{BindError, Object};
use crate::rtcorba::{ClientPolicy, onward_priority};
use crate::scope::{Answer, Scope};
use crate::upcall::stays_within;

/// See [`Object::validate_connection`].
pub(crate) fn bind_explicitly(object: &Object) -> Result<(), BindError> {
    let core = object.core();
    core.check_running()?;
    let present = onward_priority(core)?;
    if object
        .key_within()
        .is_some_and(|key| stays_within(core, key, present))
    {
        return Ok(());
    }
    let profile = binding::usable_profile(object)?;
    let effective = binding::policies(object, profile).map_err(BindError::Inconsistent)?;
    let bands = effective.bands.as_ref();
    if let (Some(bands), Err(NoRoute::OutsideOfBands)) = (bands, Route::of(profile, bands, present))
    {
        let bands = ClientPolicy::PriorityBandedConnection(bands.clone());
        return Err(BindError::Inconsistent(vec![bands]));
    }
    let deadline = Deadline::after(object.time_out());
    let others = route::priorities(profile, bands).into_iter().map(Some);
    let others = others.filter(|priority| *priority != present);
    Scope::with(|scope| {
        std::iter::once(present)
            .chain(others.collect::<Vec<_>>())
            .try_for_each(|priority| {
                let call = Invocation::new(object, priority, deadline, Attempt::explicit());
                bind_one(call, scope)
            })
    })?;
    Ok(())
}

/// Makes the connection to a group ready, of which nobody can be asked anything.
#[cfg(feature = "miop")]
pub(crate) fn bind_group(group: &Object) -> Result<(), SystemException> {
    let core = group.core();
    core.check_running()?;
    let present = onward_priority(core)?;
    let deadline = Deadline::after(group.time_out());
    binding::bind(group, present, true, deadline).map(drop)
}

/// Binds at one priority, and asks the server whether it has the object, so that forwards are
/// followed now.
fn bind_one(mut call: Invocation<'_>, scope: &mut Scope) -> Result<(), SystemException> {
    let mut first = true;
    loop {
        let binding = call.bind()?;
        let located = match locate(&binding, scope, call.deadline) {
            // The connection may be one from before that has ended since; asking twice does no harm.
            Err(Failure::Exception(e)) if first && e.kind == SystemExceptionKind::CommFailure => {
                first = false;
                Err(Failure::NotProcessed)
            }
            located => located,
        };
        if call.on_outcome(&binding, located)?.is_some() {
            return Ok(());
        }
    }
}

/// One locate request and its reply.
pub(super) fn locate(
    binding: &Binding,
    scope: &mut Scope,
    deadline: Deadline,
) -> Result<Outcome, Failure> {
    scope.begin(binding.target.core());
    let request_id = binding.connection.next_request_id();
    let header = LocateRequestHeader {
        request_id,
        target: binding.target()?,
    };
    let protocol = protocol_of(binding, &header.target, b"")?;
    let write = |scope: &mut Scope| {
        let mut e = start_message(&mut scope.request, protocol, MessageType::LocateRequest)?;
        encode_locate_request(&mut e, protocol, &header)?;
        finish_message(&mut scope.request);
        Ok::<(), CdrError>(())
    };
    write(scope).map_err(SystemException::from)?;
    let connection = &binding.connection;
    connection.send_for_reply(request_id, &mut scope.request, deadline)?;
    let mut strays = 0;
    loop {
        let message = connection.receive_locate_reply(request_id, &mut scope.reply, deadline)?;
        match read(binding, scope, message, request_id) {
            Ok(Some(outcome)) => return Ok(outcome),
            Ok(None) if strays == MAX_STRAYS => {
                connection.close();
                return Err(MALFORMED);
            }
            Ok(None) => strays += 1,
            Err(malformed) => {
                connection.close();
                let exception = SystemException::from(malformed);
                return Err(exception.with_completed(CompletionStatus::No).into());
            }
        }
    }
}

/// Reads a locate reply; `None` where it is not the one to `request_id`.
fn read(
    binding: &Binding,
    scope: &mut Scope,
    message: MessageHeader,
    request_id: u32,
) -> Result<Option<Outcome>, CdrError> {
    let text = binding.connection.text();
    let (frame, arena) = scope.reply_parts();
    let mut d = message.decoder(frame, arena).with_text(text);
    let header = LocateReplyHeader::decode(&mut d, message.protocol)?;
    if header.request_id != request_id {
        return Ok(None);
    }
    Ok(Some(match header.status {
        LocateStatus::ObjectHere => Outcome::Answer(Answer {
            exception: false,
            body: d.position(),
            endian: message.endian,
            text,
        }),
        LocateStatus::UnknownObject => Outcome::Exception(NO_SUCH_OBJECT),
        LocateStatus::ObjectForward | LocateStatus::ObjectForwardPerm => {
            Outcome::Forward(Ior::decode(&mut d)?)
        }
        LocateStatus::SystemException => Outcome::Exception(SystemException::decode(&mut d)?),
        LocateStatus::NeedsAddressingMode => {
            Outcome::Addressing(AddressingDisposition::decode(&mut d)?)
        }
    }))
}

const NO_SUCH_OBJECT: SystemException =
    SystemException::no(SystemExceptionKind::ObjectNotExist, minor::NO_SUCH_OBJECT);
