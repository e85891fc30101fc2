//! The path from a message to a servant and back: header, object key, operation, upcall.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::fmt;
use std::sync::Arc;

use chronorb_cdr::{Arena, CdrError, CharSet, Decoder, Frame};
#[cfg(feature = "distributable-threads")]
use chronorb_giop::SchedulingContext;
use chronorb_giop::{
    CompletionStatus, HeaderPlaces, Ior, LocateReplyHeader, LocateRequestHeader, LocateStatus,
    MessageHeader, MessageProtocol, MessageType, Protocol, RequestHeader, ResponseFlags,
    ServiceContext, SystemException, SystemExceptionKind, Target, Version, encode_locate_reply,
    finish_message, minor, start_message,
};
use chronorb_rt::{Monotonic, epoch};

use super::at::{At, ConnectionSink};
use super::connection::ServerConnection;
use super::end::End;
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
use crate::riders::{
    self, Arrival, Carrier, Contexts, Riders, ServiceOutcome, propagated_priority, speaks_lite_on,
};
use crate::rtcorba::Priority;
use crate::rtcorba::scheduling::Constraint;
#[cfg(feature = "distributable-threads")]
use crate::rtscheduling::{self, HostedThread};
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
    /// Serves a request, whose header has these `places` if it was decoded before.
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
        // Decoded in place: it is read in many places, and would be moved through memory.
        let mut header = RequestHeader::EMPTY;
        let decoded = match places {
            None => header.decode_here(body, message.protocol),
            Some(places) => places.header(body).map(|decoded| header = decoded),
        };
        if decoded.is_err() {
            return Err(End::Malformed);
        }
        #[cfg(feature = "diop")]
        if self.at.connection.is_datagram_peer
            && let Some(proof) = proof::forward(self.core, self.at, &mut header, message.size)
        {
            let id = header.request_id;
            return self.forward(message, id, &proof);
        }
        let (mut kept, mut answers);
        let mut reply_contexts: &[ServiceContext<'_>] = &[];
        let mut admitted = Ok(None);
        let mut serving = None;
        if !header.contexts.is_empty() {
            kept = riders::RequestState::default();
            let carrier = RequestCarrier {
                core: self.core,
                host: self.host,
                at: self.at,
                header: &header,
            };
            admitted = carrier.begin_riding(message, &mut kept, &mut serving);
            if riders::All::has_answer(&kept) {
                answers = Contexts::without_copies();
                riders::All::answer(&kept, &mut answers);
                reply_contexts = answers.as_slice();
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

        let request = Request {
            core: self.core,
            at: self.at,
            header: &header,
        };
        let mut served = match admitted {
            Ok(propagated) => {
                let may_send = match &serving {
                    None => true,
                    Some(serving) => !riders::All::holds_reply(serving),
                };
                request.serve(
                    self.arena,
                    self.thread,
                    propagated,
                    &mut arguments,
                    &mut reply,
                    may_send,
                )
            }
            Err(exception) => Err(exception.into()),
        };
        if let Some(guard) = &mut serving {
            conclude_riding(guard, &mut served, &reply);
        }
        if let Err(error) = served {
            match conclude_error(self.core, self.at, error, &mut reply)? {
                UnservedOutcome::Answered => {}
                UnservedOutcome::Dropped => return Ok(MessageOutcome::NoReply),
                UnservedOutcome::HandOff(to) => {
                    let places =
                        arguments.and_then(|arguments| places_of(&header, arguments, message));
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
            return self.refuse(message, None, REPLY_TOO_LARGE);
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
    pub(super) fn acknowledge(
        &mut self,
        message: MessageHeader,
        places: Option<&HeaderPlaces>,
    ) -> bool {
        let Ok((header, _)) = header_of(message, self.request, self.arena, places) else {
            return false;
        };
        let Some(key) = named_object(&header.target) else {
            return false;
        };
        if riders::has_expired(&self.core.config, header.contexts) {
            return false;
        }
        let _reading = epoch::enter();
        if self.core.poas.find(self.core.incarnation, &key).is_none() {
            return false;
        }
        let carrier = RequestCarrier {
            core: self.core,
            host: self.host,
            at: self.at,
            header: &header,
        };
        let written =
            carrier.answer_unserved(message, self.reply, |reply| reply.normal().map(drop));
        written.is_ok()
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

    /// Reads what the first request of a connection says about it, before another request is read.
    /// Returns the places of its header.
    #[cold]
    pub(super) fn learn(&mut self, message: MessageHeader) -> Option<Box<HeaderPlaces>> {
        let mut places = None;
        // A malformed header is reported when the request is served.
        let header = note_header(message, self.request, self.arena, &mut places).ok()?;
        let carrier = RequestCarrier {
            core: self.core,
            host: self.host,
            at: self.at,
            header: &header,
        };
        riders::All::learn(
            &mut riders::RequestState::default(),
            &carrier.arrival(message),
        );
        places
    }

    /// Forwards a request.
    #[cfg(feature = "diop")]
    fn forward(
        &mut self,
        message: MessageHeader,
        request_id: u32,
        target: &Ior,
    ) -> Result<MessageOutcome, End> {
        let text = self.at.connection.text(message.version());
        let mut reply = ReplyWriter::new(self.reply, message.protocol, request_id, text, &[]);
        reply.location_forward(target).map_err(|_| End::Lost)?;
        reply.finish();
        Ok(MessageOutcome::Answered)
    }

    /// Answers a request with an exception, without serving it.
    pub(super) fn refuse(
        &mut self,
        message: MessageHeader,
        places: Option<&HeaderPlaces>,
        exception: SystemException,
    ) -> Result<MessageOutcome, End> {
        if message.kind == MessageType::LocateRequest {
            let mut d = message.decoder(self.request, self.arena);
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
        let header = header_of(message, self.request, self.arena, places);
        let (header, _) = header.map_err(|_| End::Malformed)?;
        if header.response == ResponseFlags::None {
            return Ok(MessageOutcome::NoReply);
        }
        let carrier = RequestCarrier {
            core: self.core,
            host: self.host,
            at: self.at,
            header: &header,
        };
        let refuse = |reply: &mut ReplyWriter<'_>| reply.system_exception(exception);
        let written = carrier.answer_unserved(message, self.reply, refuse);
        written.map_err(|_| End::Lost)?;
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

/// The connection of a request and its target, for its riders.
struct RequestCarrier<'a> {
    core: &'a Arc<Core>,
    #[cfg_attr(
        not(feature = "bidir"),
        expect(dead_code, reason = "for listen points")
    )]
    host: &'a Host,
    at: At<'a>,
    header: &'a RequestHeader<'a>,
}

impl RequestCarrier<'_> {
    fn arrival(&self, message: MessageHeader) -> Arrival<'_> {
        Arrival {
            config: &self.core.config,
            incidents: &self.core.incidents,
            version: message.version(),
            contexts: self.header.contexts,
            carrier: self,
        }
    }

    /// Lets the riders of the request admit it, and begin its service if any takes part. Returns
    /// the priority of the request.
    ///
    /// # Errors
    /// The exception that refuses it.
    #[inline(never)]
    fn begin_riding(
        &self,
        message: MessageHeader,
        kept: &mut riders::RequestState,
        serving: &mut Option<riders::ServiceGuard>,
    ) -> Result<Option<Priority>, SystemException> {
        let arrival = self.arrival(message);
        let admission = riders::admit(kept, &arrival)?;
        if riders::All::takes_part(kept) {
            let guard = serving.insert(riders::ServiceGuard::default());
            riders::All::serve(kept, &arrival, &admission, guard)?;
        }
        Ok(admission.priority)
    }

    /// Writes the answer to the request, which is not served.
    #[cold]
    fn answer_unserved(
        &self,
        message: MessageHeader,
        frame: &mut Frame,
        write: impl FnOnce(&mut ReplyWriter<'_>) -> Result<(), SystemException>,
    ) -> Result<(), SystemException> {
        let mut kept = riders::RequestState::default();
        riders::All::learn(&mut kept, &self.arrival(message));
        let mut answers = Contexts::without_copies();
        riders::All::answer(&kept, &mut answers);
        let text = self.at.connection.text(message.version());
        let id = self.header.request_id;
        let mut reply = ReplyWriter::new(frame, message.protocol, id, text, answers.as_slice());
        let written = write(&mut reply);
        reply.finish();
        written
    }
}

impl fmt::Display for RequestCarrier<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.at.connection.fmt(f)
    }
}

impl Carrier for RequestCarrier<'_> {
    fn set_narrow(&self, narrow: CharSet) {
        self.at.connection.set_narrow(narrow);
    }

    fn set_one_at_a_time(&self) {
        self.at.connection.set_one_at_a_time();
    }

    fn agree_to_lite(&self) -> bool {
        let connection = self.at.connection;
        let agrees = speaks_lite_on(&self.core.config, connection.transport());
        if agrees {
            connection.negotiation.agree();
        }
        agrees
    }

    #[cfg(feature = "bidir")]
    fn learn_listen_points(&self, context: &[u8]) {
        if self.core.config.bidirectional.accepts() {
            learn_listen_points(self.core, self.at, context);
            self.host.set_claimant(self.at.connection.claimant());
        }
    }

    #[cfg(feature = "distributable-threads")]
    fn host(
        &self,
        context: &SchedulingContext,
        priority: Option<Priority>,
    ) -> Result<HostedThread, SystemException> {
        let origin = self.at.connection.fingerprint();
        if !context.cancelled {
            return rtscheduling::host(self.core, context, priority, origin);
        }
        // It need not wait for its POA, in which the thread to cancel may be.
        let key = self.header.target.key().unwrap_or_default();
        if !is_here(self.core, key, self.at.connection, self.header.operation)? {
            return Err(NO_SUCH_ADAPTER);
        }
        Err(rtscheduling::cancel_hosted(self.core, context, origin))
    }
}

/// Lets the riders end the service of a request, which may change its answer.
#[inline(never)]
fn conclude_riding(
    guard: &mut riders::ServiceGuard,
    served: &mut Result<(), UpcallError>,
    reply: &ReplyWriter<'_>,
) {
    let answer = match served {
        Ok(()) => ServiceOutcome::Reply,
        Err(UpcallError::Exception(exception)) => ServiceOutcome::Exception(*exception),
        Err(UpcallError::Forward(_)) => ServiceOutcome::Forward,
        // Another thread continues it, or this one does later.
        Err(UpcallError::ByAnotherThread(_) | UpcallError::Parked(..)) => return,
    };
    // Otherwise the client has an answer already, or has it in part.
    if let Err(exception) = riders::All::conclude(guard, answer)
        && !reply.is_sent()
    {
        *served = Err(exception.into());
    }
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

/// Returns the header of the request in a frame as [`header_of`] does, and notes its places.
pub(super) fn note_header<'a>(
    message: MessageHeader,
    request: &'a mut Frame,
    arena: &'a Arena,
    places: &mut Option<Box<HeaderPlaces>>,
) -> Result<RequestHeader<'a>, CdrError> {
    let (header, d) = header_of(message, request, arena, places.as_deref())?;
    if places.is_none() {
        *places = places_of(&header, d, message);
    }
    Ok(header)
}

/// Returns the places of a header that was decoded, in memory of their own because few requests
/// have any.
#[cold]
#[allow(
    clippy::disallowed_methods,
    reason = "for requests that wait, and the first one of a connection"
)]
fn places_of(
    header: &RequestHeader<'_>,
    body: Decoder<'_>,
    message: MessageHeader,
) -> Option<Box<HeaderPlaces>> {
    HeaderPlaces::of(header, body, message.protocol).map(Box::new)
}

/// The priority at which the request in a frame is to be served, as far as it is known beforehand.
/// Notes the places of its header. The request arrived at an endpoint of this `ceiling`.
pub(super) fn priority_of(
    core: &Core,
    (request, arena): (&mut Frame, &Arena),
    message: MessageHeader,
    places: &mut Option<Box<HeaderPlaces>>,
    ceiling: Option<Priority>,
) -> Option<Priority> {
    if message.kind != MessageType::Request {
        return None;
    }
    let header = note_header(message, request, arena, places).ok()?;
    let propagated = propagated_priority(header.contexts).ok()?;
    priority_at(core, &named_object(&header.target)?, propagated, ceiling)
}

/// Returns the priority of a request, as [`priority_of`] does, and its time constraint. `received`
/// is the time at which the request was read, and `ceiling` that of its endpoint. Notes the places
/// of the header.
pub(super) fn urgency_of(
    core: &Core,
    (request, arena): (&mut Frame, &Arena),
    message: MessageHeader,
    places: &mut Option<Box<HeaderPlaces>>,
    (ceiling, received): (Option<Priority>, Monotonic),
) -> (Option<Priority>, Option<Constraint>) {
    if message.kind != MessageType::Request {
        return (None, None);
    }
    let Ok(header) = note_header(message, request, arena, places) else {
        return (None, None);
    };
    let propagated = propagated_priority(header.contexts).ok();
    let key = named_object(&header.target);
    let priority = key.zip(propagated);
    let priority = priority.and_then(|(key, its)| priority_at(core, &key, its, ceiling));
    let constraint = riders::constraint_of(header.contexts, received, &core.config);
    (priority, constraint)
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
    (request, arena): (&mut Frame, &Arena),
    message: MessageHeader,
    places: &mut Option<Box<HeaderPlaces>>,
) -> bool {
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
        let mut d = message.decoder(request, arena);
        let header = LocateRequestHeader::decode(&mut d, message.protocol);
        return header.map_or(true, |header| takes_callbacks(&header.target));
    }
    let header = note_header(message, request, arena, places);
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

/// Returns the header of the request in a frame, and the decoder at its body. A header that was
/// decoded before has these `places`.
#[cold]
pub(super) fn header_of<'a>(
    message: MessageHeader,
    request: &'a mut Frame,
    arena: &'a Arena,
    places: Option<&HeaderPlaces>,
) -> Result<(RequestHeader<'a>, Decoder<'a>), CdrError> {
    let mut d = message.decoder(request, arena);
    let header = match places {
        None => RequestHeader::decode(&mut d, message.protocol)?,
        Some(places) => places.header(&mut d)?,
    };
    Ok((header, d))
}

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
