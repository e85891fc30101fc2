//! From a message to a servant and back: header, object key, operation, upcall.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::cell::Cell;
use std::sync::Arc;

use chronorb_cdr::{Arena, CdrError, Decoder, Frame};
#[cfg(feature = "gioplite")]
use chronorb_giop::GiopLite;
use chronorb_giop::codesets::CodeSetContext;
use chronorb_giop::contexts;
use chronorb_giop::{
    CompletionStatus, Ior, LocateReplyHeader, LocateRequestHeader, LocateStatus, MessageHeader,
    MessageProtocol, MessageType, Protocol, RequestHeader, ResponseFlags, ServiceContext,
    SystemException, SystemExceptionKind, Target, Version, encode_locate_reply, finish_message,
    minor, start_message,
};
use chronorb_rt::epoch;

use super::at::At;
use super::connection::ServerConnection;
use super::end::End;
use super::outlet::Outlet;
#[cfg(feature = "diop")]
use super::proof;
use super::queued::Wait;
use crate::call::{Incoming, ReplyWriter, reply_error};
use crate::core::Core;
use crate::dispatch::{Dispatch, NON_EXISTENT};
use crate::host::Host;
use crate::incident::Incident;
use crate::observe::Stage;
use crate::peer::Peer;
use crate::poa::ObjectKey;
use crate::rtcorba::Priority;
use crate::upcall::{Thread, Unserved, Upcall};

/// What one message is handled with.
pub(super) struct Context<'w> {
    pub(super) core: &'w Arc<Core>,
    pub(super) host: &'w Host,
    pub(super) at: At<'w>,
    pub(super) arena: &'w Arena,
    pub(super) request: &'w mut Frame,
    pub(super) reply: &'w mut Frame,
    pub(super) thread: Thread,
    /// What a request has to wait for.
    pub(super) parked: &'w Cell<Option<Wait>>,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Handled {
    /// The reply frame holds the answer, which is to be sent.
    Answered,
    /// There is nothing to be sent.
    Silently,
    /// The main thread has to serve it, at this priority, and this is another. Nothing was done.
    ForMainThread(Option<Priority>),
    /// It has to wait for its POA, as [`Context::parked`] says. Nothing was done.
    Parked,
}

impl Context<'_> {
    /// Serves a request.
    pub(super) fn request(&mut self, message: MessageHeader) -> Result<Handled, End> {
        self.core.at(Stage::Dispatch);
        let body = message.decoder(self.request, self.arena);
        let mut body = body.with_host(Some(self.host.begin()));
        #[cfg_attr(not(feature = "diop"), expect(unused_mut))]
        let mut header =
            RequestHeader::decode(&mut body, message.protocol).map_err(|_| End::Malformed)?;
        let announced = learn_announced(self.at.connection, &header, message);
        body.set_text(self.at.connection.text(message.version()));

        let priority = propagated_priority(&header);
        let echo = priority
            .ok()
            .flatten()
            .map(|p| contexts::encode_priority(p.value()));
        let echo = echo.as_ref().map(|data| ServiceContext {
            id: contexts::RT_CORBA_PRIORITY,
            data,
        });
        let agrees = agree_to_lite(self.core, self.at.connection, &header);
        let reply_contexts: &[ServiceContext<'_>] = match (echo, agrees) {
            (None, false) => &[],
            (None, true) => &[AGREED],
            (Some(echo), false) => &[echo],
            (Some(echo), true) => &[echo, AGREED],
        };
        let mut reply = ReplyWriter::new(
            self.reply,
            message.protocol,
            header.request_id,
            self.at.connection.text(message.version()),
            reply_contexts,
        );
        if header.response == ResponseFlags::SyncWithTarget && self.at.connection.gathers() {
            reply.set_outlet(Outlet {
                core: self.core,
                at: self.at,
            });
        }

        #[cfg(feature = "diop")]
        if self.at.connection.is_place() {
            let forwarded =
                proof::forwards(self.core, self.at, &mut header, message.size, &mut reply);
            if forwarded.map_err(|_| End::Gone)? {
                return Ok(Handled::Answered);
            }
        }

        let request = Request {
            core: self.core,
            at: self.at,
            header: &header,
        };
        let served = match announced.and(priority) {
            Ok(propagated) => request.serve(self.arena, self.thread, propagated, body, &mut reply),
            Err(exception) => Err(exception.into()),
        };
        match served {
            Ok(()) => {}
            Err(Unserved::ByAnotherThread(_)) if self.core.main.is_full() => {
                reply.system_exception(DISCARDED).map_err(|_| End::Gone)?;
            }
            Err(Unserved::ByAnotherThread(priority)) => {
                return Ok(Handled::ForMainThread(priority));
            }
            Err(Unserved::Parked(..)) if self.at.lane.parking().is_full() => {
                reply.system_exception(DISCARDED).map_err(|_| End::Gone)?;
            }
            Err(Unserved::Parked(place, closed, priority)) => {
                self.parked.set(Some((place, closed, priority)));
                return Ok(Handled::Parked);
            }
            // What is refused because the ORB ends was not begun: the goodbye that follows lets the
            // client send it again, elsewhere or later.
            Err(Unserved::Exception(exception))
                if exception.completed == CompletionStatus::No
                    && self.core.check_running().is_err() =>
            {
                return Ok(Handled::Silently);
            }
            Err(Unserved::Exception(exception)) => {
                reply.system_exception(exception).map_err(|_| End::Gone)?;
            }
            Err(Unserved::Forward(target)) => {
                reply
                    .location_forward(target.ior())
                    .map_err(|_| End::Gone)?;
            }
        }
        let answered = match header.response {
            ResponseFlags::None => false,
            ResponseFlags::SyncWithServer | ResponseFlags::SyncWithTarget => !reply.is_sent(),
        };
        reply.finish();
        if answered && self.reply.len() > self.at.connection.largest() {
            return self.refuse(message, REPLY_TOO_LARGE);
        }
        Ok(if answered {
            Handled::Answered
        } else {
            Handled::Silently
        })
    }

    /// Answers a request that is not served.
    pub(super) fn refuse(
        &mut self,
        message: MessageHeader,
        exception: SystemException,
    ) -> Result<Handled, End> {
        let mut d = message.decoder(self.request, self.arena);
        if message.kind == MessageType::LocateRequest {
            let header = LocateRequestHeader::decode(&mut d, message.protocol);
            let header = header.map_err(|_| End::Malformed)?;
            let refused = write_locate_reply(
                self.reply,
                message.protocol,
                header.request_id,
                Err(exception),
                None,
            );
            refused.map_err(|_| End::Gone)?;
            return Ok(Handled::Answered);
        }
        let header = RequestHeader::decode(&mut d, message.protocol).map_err(|_| End::Malformed)?;
        if header.response == ResponseFlags::None {
            return Ok(Handled::Silently);
        }
        let text = self.at.connection.text(message.version());
        let agreed: &[ServiceContext<'_>] =
            match agree_to_lite(self.core, self.at.connection, &header) {
                true => &[AGREED],
                false => &[],
            };
        let id = header.request_id;
        let mut reply = ReplyWriter::new(self.reply, message.protocol, id, text, agreed);
        reply.system_exception(exception).map_err(|_| End::Gone)?;
        reply.finish();
        Ok(Handled::Answered)
    }

    /// Answers where an object is.
    pub(super) fn locate(&mut self, message: MessageHeader) -> Result<Handled, End> {
        let mut d = message.decoder(self.request, self.arena);
        let header =
            LocateRequestHeader::decode(&mut d, message.protocol).map_err(|_| End::Malformed)?;
        // A target that is named by a profile of another protocol is not here.
        let key = header.target.key().unwrap_or_default();
        #[cfg(feature = "diop")]
        let key = proof::key_of(self.core, self.at.connection, key);
        let registered = self.core.initial_references.registered(key);
        let here = is_here(self.core, key, self.at.connection);
        #[cfg(feature = "diop")]
        let (here, registered) = {
            let size = message.size as usize;
            let proof = (!self.at.connection.is_proved()
                && (here == Ok(true) || registered.is_some()))
            .then(|| proof::reference(self.core, self.at, key, size));
            match proof.flatten() {
                Some(proof) => (Ok(false), Some(proof)),
                None => (here, registered),
            }
        };
        let written = write_locate_reply(
            self.reply,
            message.protocol,
            header.request_id,
            here,
            registered.as_ref(),
        );
        written.map_err(|_| End::Gone)?;
        Ok(Handled::Answered)
    }
}

/// Says where an object is: here, where it is registered, nowhere, or why that cannot be said.
fn write_locate_reply(
    reply: &mut Frame,
    protocol: Protocol,
    request_id: u32,
    here: Result<bool, SystemException>,
    registered: Option<&Ior>,
) -> Result<(), CdrError> {
    let status = match (here, registered) {
        (Ok(true), _) => LocateStatus::ObjectHere,
        (Ok(false), Some(_)) => LocateStatus::ObjectForward,
        (Ok(false), None) => LocateStatus::UnknownObject,
        (Err(_), _) if protocol.version() >= Version::V1_2 => LocateStatus::SystemException,
        // Older versions have no way to say it: the request itself is told.
        (Err(_), _) => LocateStatus::ObjectHere,
    };
    let mut e = start_message(reply, protocol, MessageType::LocateReply)?;
    let header = LocateReplyHeader { request_id, status };
    encode_locate_reply(&mut e, protocol, &header)?;
    if let (LocateStatus::ObjectForward, Some(ior)) = (status, registered) {
        ior.encode(&mut e)?;
    }
    if let (LocateStatus::SystemException, Err(exception)) = (status, here) {
        exception.encode(&mut e)?;
    }
    finish_message(reply);
    Ok(())
}

/// The priority that the request in a frame is to be served at, as far as that shows before it is.
/// It came to an endpoint of this `ceiling`.
pub(super) fn priority_of(
    core: &Core,
    request: &mut Frame,
    arena: &Arena,
    message: MessageHeader,
    ceiling: Option<Priority>,
) -> Option<Priority> {
    if message.kind != MessageType::Request {
        return None;
    }
    let mut d = message.decoder(request, arena);
    let header = RequestHeader::decode(&mut d, message.protocol).ok()?;
    let key = named_object(&header.target)?;
    priority_at(core, &key, propagated_priority(&header).ok()?, ceiling)
}

/// The key of the object that a target names.
pub(super) fn named_object<'k>(target: &Target<'k>) -> Option<ObjectKey<'k>> {
    let key = target.key()?;
    #[cfg(feature = "diop")]
    let key = proof::without_proof(key);
    ObjectKey::parse(key)
}

/// The priority that requests to a target are served at by the model of its POA, as far as that is there.
pub(super) fn priority_at(
    core: &Core,
    key: &ObjectKey<'_>,
    propagated: Option<Priority>,
    ceiling: Option<Priority>,
) -> Option<Priority> {
    let _reading = epoch::enter();
    let poa = core.poas.find(core.incarnation, key)?;
    let active = poa.find(key.hint, key.id);
    let (priority, _) = poa.priority_of_request(active.as_deref(), key.id, propagated, ceiling);
    priority
}

/// Whether a request for the object would find a servant; adapters are activated for it.
///
/// # Errors
/// What keeps its POA from being found for now; `NO_PERMISSION` where its authorizer refuses.
fn is_here(
    core: &Core,
    octets: &[u8],
    connection: &ServerConnection,
) -> Result<bool, SystemException> {
    let Some(key) = ObjectKey::parse(octets) else {
        return Ok(false);
    };
    let found = core.poas.find(core.incarnation, &key);
    let poa = found.map_or_else(|| core.poas.obtain(core.incarnation, &key), Ok);
    match poa {
        Ok(poa) if poa.is_forged(octets) => Ok(false),
        Ok(poa) => {
            let peer = Peer::new(connection.transport());
            poa.authorize(Some(peer), key.id, b"_locate")?;
            Ok(poa.has_servant(key.hint, key.id))
        }
        Err(unknown) if unknown.kind == SystemExceptionKind::ObjectNotExist => Ok(false),
        Err(exception) => Err(exception),
    }
}

/// One request, once its header is read.
struct Request<'a> {
    core: &'a Arc<Core>,
    at: At<'a>,
    header: &'a RequestHeader<'a>,
}

impl<'a> Request<'a> {
    /// Finds the target and calls it, or forwards.
    fn serve(
        &self,
        arena: &'a Arena,
        thread: Thread,
        propagated: Option<Priority>,
        arguments: Decoder<'a>,
        reply: &mut ReplyWriter<'_>,
    ) -> Result<(), Unserved> {
        let key = self.header.target.key().ok_or(NO_SUCH_ADAPTER)?;
        let upcall = Upcall {
            incoming: Incoming {
                core: self.core,
                arena,
                operation: self.header.operation,
                response_expected: self.header.response != ResponseFlags::None,
                contexts: self.header.contexts,
                peer: Some(self.at.connection.transport()),
            },
            key,
            propagated,
            ceiling: self.at.connection.ceiling(),
            thread,
        };
        let answer_early = |answer: &[u8]| {
            let sent = self.at.send(answer);
            sent.map_err(|_| COMM_FAILURE)
        };
        let served = upcall.serve(&mut Dispatch {
            core: Some(self.core),
            answer_early: match self.header.response {
                ResponseFlags::SyncWithServer => Some(&answer_early),
                ResponseFlags::None | ResponseFlags::SyncWithTarget => None,
            },
            arguments: Some(arguments),
            reply,
        });
        match served {
            Ok(outcome) => Ok(outcome?),
            Err(Unserved::Exception(exception)) => self.conclude_unserved(key, exception, reply),
            Err(unserved) => Err(unserved),
        }
    }

    /// Answers a request whose target is not here, if there is another answer than the exception.
    #[cold]
    fn conclude_unserved(
        &self,
        key: &[u8],
        exception: SystemException,
        reply: &mut ReplyWriter<'_>,
    ) -> Result<(), Unserved> {
        // The key may be a plain name.
        if ObjectKey::parse(key).is_none()
            && let Some(registered) = self.core.initial_references.registered(key)
        {
            return Ok(reply.location_forward(&registered)?);
        }
        // That the object is gone is the answer (CORBA 3.3 part 1, 8.3.5.1).
        if exception.kind == SystemExceptionKind::ObjectNotExist
            && NON_EXISTENT.contains(&self.header.operation)
        {
            let result = reply.normal()?;
            return Ok(result.write_bool(true).map_err(reply_error)?);
        }
        if exception.kind == SystemExceptionKind::ObjectNotExist {
            let operation = self.header.operation.escape_ascii();
            let detail = format_args!("{operation} of key {}: {exception}", key.escape_ascii());
            let incidents = &self.at.lane.incidents;
            incidents.tell(Incident::UnknownObject, self.at.connection, 0, &detail);
        }
        Err(exception.into())
    }
}

/// The priority that travelled with the request.
pub(super) fn propagated_priority(
    header: &RequestHeader<'_>,
) -> Result<Option<Priority>, SystemException> {
    let Some(context) = contexts::find(header.contexts, contexts::RT_CORBA_PRIORITY) else {
        return Ok(None);
    };
    contexts::decode_priority(context)
        .ok()
        .and_then(Priority::new)
        .map(Some)
        .ok_or(SystemException::no(
            SystemExceptionKind::DataConversion,
            minor::PRIORITY_MAPPING_FAILED,
        ))
}

/// Reads the code set that a connection's first request announces, before any other is read.
pub(super) fn learn_text(
    connection: &ServerConnection,
    request: &mut Frame,
    arena: &Arena,
    message: MessageHeader,
) {
    let mut d = message.decoder(request, arena);
    // One that cannot be read is told as such when it is served.
    if let Ok(header) = RequestHeader::decode(&mut d, message.protocol) {
        let _ = learn_announced(connection, &header, message);
    }
}

fn learn_announced(
    connection: &ServerConnection,
    header: &RequestHeader<'_>,
    message: MessageHeader,
) -> Result<(), SystemException> {
    if let Some(data) = contexts::find(header.contexts, contexts::CODE_SETS) {
        let text = CodeSetContext::decode(data)?.text(message.version())?;
        connection.set_narrow(text.narrow);
    }
    if contexts::find(header.contexts, contexts::ONE_AT_A_TIME).is_some() {
        connection.set_one_at_a_time();
    }
    Ok(())
}

/// Agrees to GIOPlite, where the client asks for it by a request and may have it; the reply has to say so.
#[cfg(feature = "gioplite")]
#[inline]
fn agree_to_lite(core: &Core, connection: &ServerConnection, header: &RequestHeader<'_>) -> bool {
    let agrees = GiopLite::is_proposed_by(header.contexts)
        && core.config.speaks_lite_on(connection.transport());
    if agrees {
        connection.negotiation.agree();
    }
    agrees
}

#[cfg(not(feature = "gioplite"))]
fn agree_to_lite(_: &Core, _: &ServerConnection, _: &RequestHeader<'_>) -> bool {
    false
}

/// What a reply agrees to GIOPlite by.
const AGREED: ServiceContext<'_> = ServiceContext {
    id: contexts::GIOP_LITE,
    data: &contexts::GIOP_LITE_DATA,
};
/// The transport cannot carry the reply.
const REPLY_TOO_LARGE: SystemException = SystemException::new(
    SystemExceptionKind::ImpLimit,
    minor::MESSAGE_TOO_LARGE,
    CompletionStatus::Yes,
);
/// The client left before its early answer.
const COMM_FAILURE: SystemException =
    SystemException::no(SystemExceptionKind::CommFailure, minor::CONNECTION_LOST);
/// More requests than may wait for a thread, or for the main one.
pub(super) const DISCARDED: SystemException =
    SystemException::no(SystemExceptionKind::Transient, minor::REQUEST_DISCARDED);
const NO_SUCH_ADAPTER: SystemException =
    SystemException::no(SystemExceptionKind::ObjectNotExist, minor::NO_SUCH_ADAPTER);
