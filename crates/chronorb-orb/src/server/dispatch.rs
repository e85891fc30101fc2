//! The path from a message to a servant and back: header, object key, operation, upcall.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::Arc;

use chronorb_cdr::{Arena, CdrError, Decoder, Frame};
#[cfg(feature = "gioplite")]
use chronorb_giop::GiopLite;
use chronorb_giop::codesets::CodeSetContext;
use chronorb_giop::contexts;
use chronorb_giop::{
    CompletionStatus, EndTimes, HeaderPlaces, Ior, LocateReplyHeader, LocateRequestHeader,
    LocateStatus, MessageHeader, MessageProtocol, MessageType, Protocol, RequestHeader,
    ResponseFlags, SchedulingContext, ServiceContext, SystemException, SystemExceptionKind, Target,
    UtcTime, Version, encode_locate_reply, finish_message, minor, start_message,
};
use chronorb_rt::{Monotonic, epoch};

use super::at::{At, ConnectionSink};
use super::connection::ServerConnection;
use super::end::End;
use super::expiry;
#[cfg(feature = "bidir")]
use super::listen_points::learn_listen_points;
#[cfg(feature = "diop")]
use super::proof;
use super::queued::{HandOff, HandOffTarget};
use crate::call::{IncomingRequest, ReplyWriter, reply_error};
use crate::core::{Core, Host};
use crate::failure::{DISCARDED, NO_SUCH_ADAPTER};
use crate::incident::Incident;
use crate::peer::Peer;
use crate::poa::ObjectKey;
use crate::rtcorba::policies::utc_now;
use crate::rtcorba::scheduling::{self, Constraint};
use crate::rtcorba::{ConstraintGuard, Priority};
use crate::stage::Stage;
use crate::upcall::{Dispatch, NON_EXISTENT};
use crate::upcall::{Thread, Upcall, UpcallError};

/// The message, the connection and the thread's resources for handling one message.
pub(super) struct Context<'w> {
    pub(super) core: &'w Arc<Core>,
    pub(super) host: &'w Host,
    pub(super) at: At<'w>,
    pub(super) arena: &'w Arena,
    pub(super) request: &'w mut Frame,
    pub(super) reply: &'w mut Frame,
    pub(super) thread: &'w Thread,
}

/// The result of handling a message.
pub(super) enum MessageOutcome {
    /// The reply frame holds the answer, which has to be sent.
    Answered,
    /// There is no answer.
    NoReply,
    /// Another thread has to serve the request, or this one later. Nothing was done.
    HandOff(Box<HandOff>),
}

impl Context<'_> {
    /// Serves a request, whose header has these `places` if another thread has decoded it.
    pub(super) fn request(
        &mut self,
        message: MessageHeader,
        places: Option<&HeaderPlaces>,
    ) -> Result<MessageOutcome, End> {
        self.core.at(Stage::Dispatch);
        let host = Some(self.host.begin_from(self.at.connection.claimant()));
        // Made in place, since it is large.
        let mut arguments = Some(message.decoder(self.request, self.arena).with_host(host));
        let Some(body) = &mut arguments else {
            return Err(End::Malformed);
        };
        // Decoded in place, and without a value for contexts where there are none: both are read in
        // many places, and would be moved through memory.
        let mut header = RequestHeader::EMPTY;
        let decoded = match places {
            None => header.decode_here(body, message.protocol),
            Some(places) => places.header(body).map(|decoded| header = decoded),
        };
        if decoded.is_err() {
            return Err(End::Malformed);
        }
        let (known, answers);
        let mut reply_contexts: &[ServiceContext<'_>] = &[];
        let mut propagated = Ok(None);
        #[cfg(feature = "distributable-threads")]
        let mut scheduling = None;
        if !header.contexts.is_empty() {
            #[cfg(feature = "bidir")]
            if self.core.config.bidirectional.accepts() && message.version() >= Version::V1_2 {
                learn_listen_points(self.core, self.at, header.contexts);
                self.host.set_claimant(self.at.connection.claimant());
            }
            known = KnownContexts::read(self.core, self.at.connection, &header, message);
            answers = known.answers();
            reply_contexts = answers.as_slice();
            propagated = known.propagated;
            #[cfg(feature = "distributable-threads")]
            {
                scheduling = known.scheduling.as_ref();
            }
        }
        let text = self.at.connection.text(message.version());
        body.set_text(text);
        let sink = ConnectionSink {
            core: self.core,
            at: self.at,
        };
        let mut reply = ReplyWriter::new(
            self.reply,
            message.protocol,
            header.request_id,
            text,
            reply_contexts,
        );
        if header.response == ResponseFlags::SyncWithTarget && self.at.connection.gathers() {
            reply.set_sink(&sink);
        }

        #[cfg(feature = "diop")]
        if self.at.connection.is_datagram_peer {
            let forwarded =
                proof::forwards(self.core, self.at, &mut header, message.size, &mut reply);
            if forwarded.map_err(|_| End::Lost)? {
                return Ok(MessageOutcome::Answered);
            }
        }

        let request = Request {
            core: self.core,
            at: self.at,
            header: &header,
        };
        let served = match propagated {
            Ok(propagated) => {
                let (arena, thread) = (self.arena, self.thread);
                #[cfg(feature = "distributable-threads")]
                match scheduling {
                    Some(context) if context.has_thread() => request.serve_in_thread(
                        context,
                        (arena, thread, propagated),
                        &mut arguments,
                        &mut reply,
                    ),
                    _ => request.serve(arena, thread, propagated, &mut arguments, &mut reply, true),
                }
                #[cfg(not(feature = "distributable-threads"))]
                request.serve(arena, thread, propagated, &mut arguments, &mut reply, true)
            }
            Err(exception) => Err(exception.into()),
        };
        if let Err(error) = served {
            match conclude_error(self.core, self.at, error, &mut reply)? {
                UnservedOutcome::Answered => {}
                UnservedOutcome::Dropped => return Ok(MessageOutcome::NoReply),
                UnservedOutcome::HandOff(to) => {
                    let places = arguments.and_then(|arguments| {
                        HeaderPlaces::of(&header, arguments, message.protocol)
                    });
                    return Ok(MessageOutcome::HandOff(HandOff::new(to, places)));
                }
            }
        }
        if reply.is_sent() {
            return Ok(MessageOutcome::NoReply);
        }
        let answered = header.response != ResponseFlags::None;
        reply.finish();
        if answered && self.reply.len() > self.at.connection.largest {
            return self.refuse(message, REPLY_TOO_LARGE);
        }
        Ok(if answered {
            MessageOutcome::Answered
        } else {
            MessageOutcome::NoReply
        })
    }

    /// Writes the answer to a client that waits for the server but not for the servant. Returns
    /// `false` if the thread that dispatches the request has to answer, because its POA is not
    /// active.
    #[cold]
    pub(super) fn acknowledge(&mut self, message: MessageHeader) -> bool {
        let mut d = message.decoder(self.request, self.arena);
        let Ok(header) = RequestHeader::decode(&mut d, message.protocol) else {
            return false;
        };
        let Some(key) = named_object(&header.target) else {
            return false;
        };
        if expiry::has_expired(self.core, header.contexts) {
            return false;
        }
        let _reading = epoch::enter();
        if self.core.poas.find(self.core.incarnation, &key).is_none() {
            return false;
        }
        let agreed: &[ServiceContext<'_>] = if agree_to_lite(self.core, self.at.connection, &header)
        {
            &[AGREED]
        } else {
            &[]
        };
        let text = self.at.connection.text(message.version());
        let id = header.request_id;
        let mut reply = ReplyWriter::new(self.reply, message.protocol, id, text, agreed);
        let written = reply.normal().is_ok();
        reply.finish();
        written
    }

    /// Hands a reply to the thread that waits for it. A peer may send none without a request.
    #[cfg(feature = "bidir")]
    #[cold]
    pub(super) fn reply(&self, message: MessageHeader) -> Result<MessageOutcome, End> {
        let receiver = self.at.connection.receiver().ok_or(End::Malformed)?;
        let mut reply = self.request.fitting_copy().map_err(|_| End::Lost)?;
        if receiver.receive(message, &mut reply) {
            Ok(MessageOutcome::NoReply)
        } else {
            Err(End::Malformed)
        }
    }

    /// Answers a request with an exception, without serving it.
    pub(super) fn refuse(
        &mut self,
        message: MessageHeader,
        exception: SystemException,
    ) -> Result<MessageOutcome, End> {
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
            refused.map_err(|_| End::Lost)?;
            return Ok(MessageOutcome::Answered);
        }
        let header = RequestHeader::decode(&mut d, message.protocol).map_err(|_| End::Malformed)?;
        if header.response == ResponseFlags::None {
            return Ok(MessageOutcome::NoReply);
        }
        let text = self.at.connection.text(message.version());
        let agreed: &[ServiceContext<'_>] = if agree_to_lite(self.core, self.at.connection, &header)
        {
            &[AGREED]
        } else {
            &[]
        };
        let id = header.request_id;
        let mut reply = ReplyWriter::new(self.reply, message.protocol, id, text, agreed);
        reply.system_exception(exception).map_err(|_| End::Lost)?;
        reply.finish();
        Ok(MessageOutcome::Answered)
    }

    /// Answers a `LocateRequest`.
    pub(super) fn locate(&mut self, message: MessageHeader) -> Result<MessageOutcome, End> {
        let mut d = message.decoder(self.request, self.arena);
        let header =
            LocateRequestHeader::decode(&mut d, message.protocol).map_err(|_| End::Malformed)?;
        // A target that is named by a profile of another protocol is not here.
        let key = header.target.key().unwrap_or_default();
        #[cfg(feature = "diop")]
        let key = proof::key_of(self.core, self.at.connection, key);
        let registered = self.core.initial_references.registered(key);
        let here = is_here(self.core, key, self.at.connection, b"_locate");
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
        written.map_err(|_| End::Lost)?;
        Ok(MessageOutcome::Answered)
    }
}

/// The requests that the service contexts of a request make of the server.
struct KnownContexts {
    /// The content of the context of scheduling.
    #[cfg(feature = "distributable-threads")]
    scheduling: Option<SchedulingContext>,
    /// The priority of the request, or the exception that a malformed context causes.
    propagated: Result<Option<Priority>, SystemException>,
    /// The priority, for the reply.
    echo: Option<[u8; 4]>,
    /// Whether the reply agrees to GIOPlite.
    agrees: bool,
    /// The time constraint of the request, which the thread has until this is dropped.
    _constraint: Option<ConstraintGuard>,
}

impl KnownContexts {
    /// The contexts of the reply.
    fn answers(&self) -> ReplyContexts<'_> {
        let echo = self.echo.as_ref().map(|data| ServiceContext {
            id: contexts::RT_CORBA_PRIORITY,
            data,
        });
        ReplyContexts {
            list: [echo.unwrap_or(AGREED), AGREED],
            len: usize::from(echo.is_some()) + usize::from(self.agrees),
        }
    }

    /// Reads the contexts, and notes those that concern the connection.
    #[inline(never)]
    fn read(
        core: &Core,
        connection: &ServerConnection,
        header: &RequestHeader<'_>,
        message: MessageHeader,
    ) -> Self {
        let known = ContextIndex::of(header.contexts);
        let announced = learn_announced(connection, &known, message);
        let announced = match known.policies {
            None => announced,
            Some(data) => announced.and_then(|()| expiry::check(core, connection, data)),
        };
        let entered = match known.scheduling {
            None => Ok(None),
            Some(data) => enter_constraint(core, data),
        };
        let (announced, entered) = match entered {
            Ok(entered) => (announced, entered),
            Err(malformed) => (announced.and(Err(malformed)), None),
        };
        let priority = priority_in(known.priority);
        let echo = priority.ok().flatten();
        Self {
            #[cfg(feature = "distributable-threads")]
            scheduling: entered.as_ref().map(|(_, context)| *context),
            _constraint: entered.map(|(constraint, _)| constraint),
            propagated: announced.and(priority),
            echo: echo.map(|priority| contexts::encode_priority(priority.value())),
            agrees: agree_to_lite(core, connection, header),
        }
    }
}

/// The contexts of a reply.
struct ReplyContexts<'a> {
    list: [ServiceContext<'a>; 2],
    len: usize,
}

impl<'a> ReplyContexts<'a> {
    fn as_slice(&self) -> &[ServiceContext<'a>] {
        &self.list[..self.len]
    }
}

/// Gives the thread the time constraint in a context, and returns the context. Another version has
/// no effect.
///
/// # Errors
/// `MARSHAL` if it is malformed.
#[cold]
#[inline(never)]
fn enter_constraint(
    core: &Core,
    data: &[u8],
) -> Result<Option<(ConstraintGuard, SchedulingContext)>, SystemException> {
    let context = SchedulingContext::decode(data)?;
    Ok(context.map(|context| {
        let constraint =
            Constraint::of_request(context, scheduling::received(), || core.config.clock());
        (constraint.enter(), context)
    }))
}

/// The end of a request that no servant has served.
enum UnservedOutcome {
    /// The reply has the answer.
    Answered,
    /// The request has no reply.
    Dropped,
    HandOff(HandOffTarget),
}

/// Answers a request that was not served, unless another thread has to serve it.
#[cold]
#[inline(never)]
fn conclude_error(
    core: &Core,
    at: At<'_>,
    error: UpcallError,
    reply: &mut ReplyWriter<'_>,
) -> Result<UnservedOutcome, End> {
    let answered = match error {
        UpcallError::ByAnotherThread(_) if core.main.is_full() => reply.system_exception(DISCARDED),
        UpcallError::ByAnotherThread(priority) => {
            return Ok(UnservedOutcome::HandOff(HandOffTarget::MainThread(
                priority,
            )));
        }
        UpcallError::Parked(..) if at.lane.parking.is_full() => reply.system_exception(DISCARDED),
        UpcallError::Parked(place, closed, priority) => {
            let target = HandOffTarget::Parking(place, closed, priority);
            return Ok(UnservedOutcome::HandOff(target));
        }
        // A request that is refused because the ORB ends was not begun: after the goodbye that
        // follows, the client sends it again elsewhere or later.
        UpcallError::Exception(exception)
            if exception.completed == CompletionStatus::No && core.check_running().is_err() =>
        {
            return Ok(UnservedOutcome::Dropped);
        }
        UpcallError::Exception(exception) => reply.system_exception(exception),
        UpcallError::Forward(target) => reply.location_forward(target.ior()),
    };
    answered.map_err(|_| End::Lost)?;
    Ok(UnservedOutcome::Answered)
}

/// Writes the location of an object: here, where it is registered, unknown, or an exception.
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
        // Older versions cannot express it: the client learns it from the request itself.
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

/// The priority at which the request in a frame is to be served, as far as it is known beforehand,
/// and the places of its header. The request arrived at an endpoint of this `ceiling`.
pub(super) fn priority_of(
    core: &Core,
    request: &mut Frame,
    arena: &Arena,
    message: MessageHeader,
    ceiling: Option<Priority>,
) -> (Option<Priority>, Option<HeaderPlaces>) {
    if message.kind != MessageType::Request {
        return (None, None);
    }
    let mut d = message.decoder(request, arena);
    let Ok(header) = RequestHeader::decode(&mut d, message.protocol) else {
        return (None, None);
    };
    let propagated = propagated_priority(&header);
    let key = named_object(&header.target);
    let priority = key.zip(propagated.ok());
    let priority = priority.and_then(|(key, its)| priority_at(core, &key, its, ceiling));
    (priority, HeaderPlaces::of(&header, d, message.protocol))
}

/// The priority of a request as [`priority_of`] finds it, the time constraint that it carries, and
/// the places of its header. It was received at a time, at an endpoint of a ceiling.
///
/// A client that knows no time constraints may send an end time: the request then has the deadline
/// that is left of it by the clock of this machine.
pub(super) fn urgency_of(
    core: &Core,
    (request, arena): (&mut Frame, &Arena),
    message: MessageHeader,
    (ceiling, received): (Option<Priority>, Monotonic),
) -> (Option<Priority>, Option<Constraint>, Option<HeaderPlaces>) {
    if message.kind != MessageType::Request {
        return (None, None, None);
    }
    let mut d = message.decoder(request, arena);
    let Ok(header) = RequestHeader::decode(&mut d, message.protocol) else {
        return (None, None, None);
    };
    let known = ContextIndex::of(header.contexts);
    let propagated = priority_in(known.priority);
    let key = named_object(&header.target);
    let priority = key.zip(propagated.ok());
    let priority = priority.and_then(|(key, its)| priority_at(core, &key, its, ceiling));
    let context = match (known.scheduling, known.policies) {
        // What is malformed is reported when the request is dispatched.
        (Some(data), _) => SchedulingContext::decode(data).ok().flatten(),
        (None, Some(data)) if core.config.clock_skew.is_some() => {
            let ends = EndTimes::decode(data).unwrap_or_default();
            let end = ends.request.into_iter().chain(ends.reply).min();
            let left = |end: UtcTime| end.since(utc_now()).as_nanos().try_into().ok();
            end.map(|end| SchedulingContext {
                relative: left(end),
                ..SchedulingContext::default()
            })
        }
        _ => None,
    };
    let constraint =
        context.map(|context| Constraint::of_request(context, received, || core.config.clock()));
    (
        priority,
        constraint,
        HeaderPlaces::of(&header, d, message.protocol),
    )
}

/// The key of the object that a target names.
pub(super) fn named_object<'k>(target: &Target<'k>) -> Option<ObjectKey<'k>> {
    let key = target.key()?;
    #[cfg(feature = "diop")]
    let key = proof::without_proof(key);
    ObjectKey::parse(key)
}

/// Whether the server of a connection that this ORB opened may send the request in a frame: the POA
/// of its target is there, and takes callbacks.
#[cfg(feature = "bidir")]
#[cold]
pub(super) fn may_be_called(
    core: &Core,
    request: &mut Frame,
    arena: &Arena,
    message: MessageHeader,
) -> bool {
    let mut d = message.decoder(request, arena);
    let takes_callbacks = |target: &Target<'_>| {
        let Some(key) = named_object(target) else {
            return false;
        };
        let _reading = epoch::enter();
        let poa = core.poas.find(core.incarnation, &key);
        poa.is_some_and(|poa| poa.takes_callbacks())
    };
    // A malformed header is reported when the request is served.
    if message.kind == MessageType::LocateRequest {
        let header = LocateRequestHeader::decode(&mut d, message.protocol);
        return header.map_or(true, |header| takes_callbacks(&header.target));
    }
    let header = RequestHeader::decode(&mut d, message.protocol);
    header.map_or(true, |header| takes_callbacks(&header.target))
}

/// The priority of requests to an object by the model of its POA, if that POA is active.
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

/// Whether a request for the object, of this operation, would find a servant; activates adapters
/// for it.
///
/// # Errors
/// Those of finding its POA; `NO_PERMISSION` where its authorizer refuses.
fn is_here(
    core: &Core,
    octets: &[u8],
    connection: &ServerConnection,
    operation: &[u8],
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
            poa.authorize(Some(peer), key.id, operation)?;
            Ok(poa.has_servant(key.hint, key.id))
        }
        Err(unknown) if unknown.kind == SystemExceptionKind::ObjectNotExist => Ok(false),
        Err(exception) => Err(exception),
    }
}

/// One request with a decoded header.
struct Request<'a> {
    core: &'a Arc<Core>,
    at: At<'a>,
    header: &'a RequestHeader<'a>,
}

impl<'a> Request<'a> {
    /// Finds the target and calls it, or forwards the request.
    #[inline(always)]
    fn serve(
        &self,
        arena: &'a Arena,
        thread: &'a Thread,
        propagated: Option<Priority>,
        arguments: &mut Option<Decoder<'a>>,
        reply: &mut ReplyWriter<'_>,
        may_send: bool,
    ) -> Result<(), UpcallError> {
        let key = self.header.target.key().ok_or(NO_SUCH_ADAPTER)?;
        let upcall = Upcall {
            core: self.core,
            incoming: IncomingRequest {
                orb: self.core,
                arena,
                operation: self.header.operation,
                response_expected: self.header.response != ResponseFlags::None,
                contexts: self.header.contexts,
                peer: Some(self.at.connection.transport()),
            },
            key,
            propagated,
            ceiling: self.at.connection.ceiling,
            thread,
        };
        let answer_early = |answer: &[u8]| self.answer_early(answer);
        let served = upcall.serve(&mut Dispatch {
            core: Some(self.core),
            answer_early: match self.header.response {
                ResponseFlags::SyncWithServer => Some(&answer_early),
                ResponseFlags::None | ResponseFlags::SyncWithTarget => None,
            },
            arguments,
            reply,
            sender: may_send.then_some(thread),
        });
        match served {
            Ok(outcome) => Ok(outcome?),
            Err(UpcallError::Exception(exception)) => self.conclude_unserved(key, exception, reply),
            Err(unserved) => Err(unserved),
        }
    }

    /// Serves the request as [`serve`](Self::serve) does, within the distributable thread of its
    /// context.
    #[cfg(feature = "distributable-threads")]
    #[cold]
    #[inline(never)]
    fn serve_in_thread(
        &self,
        context: &SchedulingContext,
        (arena, thread, propagated): (&'a Arena, &'a Thread, Option<Priority>),
        arguments: &mut Option<Decoder<'a>>,
        reply: &mut ReplyWriter<'_>,
    ) -> Result<(), UpcallError> {
        use crate::rtscheduling::{Answer, cancel_hosted, host};
        let origin = self.at.connection.fingerprint();
        if context.cancelled {
            // It need not wait for its POA, in which the thread to cancel may be.
            let key = self.header.target.key().unwrap_or_default();
            let here = is_here(self.core, key, self.at.connection, self.header.operation);
            let answer = if here? {
                cancel_hosted(self.core, context, origin)
            } else {
                NO_SUCH_ADAPTER
            };
            return Err(answer.into());
        }
        let hosted = host(self.core, context, propagated, origin)?;
        // The end of the distributable thread may change the answer.
        let served = self.serve(arena, thread, propagated, arguments, reply, false);
        let answer = match &served {
            Ok(()) => Answer::Reply,
            Err(UpcallError::Exception(exception)) => Answer::Exception(*exception),
            Err(UpcallError::Forward(_)) => Answer::Other,
            // Another thread continues it, or this one does later.
            Err(UpcallError::ByAnotherThread(_) | UpcallError::Parked(..)) => return served,
        };
        match hosted.finish(answer) {
            // The client has an answer already, or has it in part.
            Err(_) if reply.is_sent() => served,
            Err(cancelled) => Err(cancelled.into()),
            Ok(()) => served,
        }
    }

    /// Sends an answer before the servant is called.
    #[cold]
    #[inline(never)]
    fn answer_early(&self, answer: &[u8]) -> Result<(), SystemException> {
        self.at.send(answer).map_err(|_| COMM_FAILURE)
    }

    /// Answers a request whose target is not here, if the answer is not the exception itself.
    #[cold]
    fn conclude_unserved(
        &self,
        key: &[u8],
        exception: SystemException,
        reply: &mut ReplyWriter<'_>,
    ) -> Result<(), UpcallError> {
        // The key may be a plain name.
        if ObjectKey::parse(key).is_none()
            && let Some(registered) = self.core.initial_references.registered(key)
        {
            return Ok(reply.location_forward(&registered)?);
        }
        // A nonexistent object is a regular answer here (CORBA 3.3 part 1, 8.3.5.1).
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

/// The contents of the contexts that concern the server.
#[derive(Default)]
struct ContextIndex<'a> {
    code_sets: Option<&'a [u8]>,
    one_at_a_time: bool,
    priority: Option<&'a [u8]>,
    policies: Option<&'a [u8]>,
    scheduling: Option<&'a [u8]>,
}

impl<'a> ContextIndex<'a> {
    #[inline]
    fn of(list: &[ServiceContext<'a>]) -> Self {
        let mut this = Self::default();
        for context in list {
            let place = match context.id {
                contexts::CODE_SETS => &mut this.code_sets,
                contexts::ONE_AT_A_TIME => {
                    this.one_at_a_time = true;
                    continue;
                }
                contexts::RT_CORBA_PRIORITY => &mut this.priority,
                contexts::INVOCATION_POLICIES => &mut this.policies,
                contexts::SCHEDULING => &mut this.scheduling,
                _ => continue,
            };
            place.get_or_insert(context.data);
        }
        this
    }
}

/// The priority that the request carries.
pub(super) fn propagated_priority(
    header: &RequestHeader<'_>,
) -> Result<Option<Priority>, SystemException> {
    priority_in(contexts::find(header.contexts, contexts::RT_CORBA_PRIORITY))
}

/// The priority in a context.
#[inline]
fn priority_in(context: Option<&[u8]>) -> Result<Option<Priority>, SystemException> {
    let Some(context) = context else {
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

/// Reads the code set that a connection's first request announces, before another request is read.
pub(super) fn learn_text(
    connection: &ServerConnection,
    request: &mut Frame,
    arena: &Arena,
    message: MessageHeader,
) {
    let mut d = message.decoder(request, arena);
    // A malformed header is reported when the request is served.
    if let Ok(header) = RequestHeader::decode(&mut d, message.protocol) {
        let known = ContextIndex::of(header.contexts);
        let _ = learn_announced(connection, &known, message);
    }
}

fn learn_announced(
    connection: &ServerConnection,
    known: &ContextIndex<'_>,
    message: MessageHeader,
) -> Result<(), SystemException> {
    if let Some(data) = known.code_sets {
        let text = CodeSetContext::decode(data)?.text(message.version())?;
        connection.set_narrow(text.narrow);
    }
    if known.one_at_a_time {
        connection.set_one_at_a_time();
    }
    Ok(())
}

/// Agrees to GIOPlite, if the client proposes it and the ORB permits it; the reply must say so.
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

/// The context by which a reply agrees to GIOPlite.
const AGREED: ServiceContext<'_> = ServiceContext {
    id: contexts::GIOP_LITE,
    data: &contexts::GIOP_LITE_DATA,
};
/// The exception for a reply that the transport cannot carry.
const REPLY_TOO_LARGE: SystemException = SystemException::new(
    SystemExceptionKind::ImpLimit,
    minor::MESSAGE_TOO_LARGE,
    CompletionStatus::Yes,
);
/// The exception where the client left before its early answer.
const COMM_FAILURE: SystemException =
    SystemException::no(SystemExceptionKind::CommFailure, minor::CONNECTION_LOST);
/// The exception for requests to objects whose POA takes no callbacks.
#[cfg(feature = "bidir")]
pub(super) const NOT_BIDIRECTIONAL: SystemException =
    SystemException::no(SystemExceptionKind::NoPermission, minor::NOT_BIDIRECTIONAL);
