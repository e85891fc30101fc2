//! From a message to a servant and back: header, object key, operation, upcall.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use chronorb_cdr::{Arena, Decoder, Encoder, Frame};
use chronorb_giop::codesets::CodeSetContext;
use chronorb_giop::contexts;
use chronorb_giop::{
    CompletionStatus, HEADER_LEN, LocateReplyHeader, LocateRequestHeader, LocateStatus,
    MessageHeader, MessageType, RequestHeader, ResponseFlags, ServiceContext, SystemException,
    SystemExceptionKind, encode_locate_reply, finish_message, minor, start_message,
};
use chronorb_rt::Key;

use super::connection::ServerConnection;
use super::intake::End;
use super::lane::Lane;
use crate::call::{Call, ReplyWriter, reply_error};
use crate::core::Core;
use crate::object::OBJECT_ID;
use crate::poa::{Active, Poa, PriorityModel};
use crate::rtcorba::{Priority, PriorityGuard};

/// What one message is handled with.
pub(super) struct Context<'w> {
    pub(super) core: &'w Arc<Core>,
    pub(super) lane: &'w Lane,
    pub(super) connection: &'w ServerConnection,
    pub(super) key: Key,
    pub(super) arena: &'w Arena,
    pub(super) request: &'w mut Frame,
    pub(super) reply: &'w mut Frame,
}

impl Context<'_> {
    /// Serves a request. Returns whether the reply frame holds an answer to be sent.
    pub(super) fn request(&mut self, message: MessageHeader) -> Result<bool, End> {
        let body = self.request.decoder(HEADER_LEN, message.endian, self.arena);
        let mut body = body.with_host(Some(self.core));
        let header =
            RequestHeader::decode(&mut body, message.version).map_err(|_| End::Malformed)?;
        let announced = learn_announced(self.connection, &header, message);
        body.set_text(self.connection.text(message.version));

        let request = Request {
            core: self.core,
            lane: self.lane,
            connection: self.connection,
            key: self.key,
            arena: self.arena,
            header: &header,
        };
        let priority = request.propagated_priority();
        let echo = priority
            .ok()
            .flatten()
            .map(|p| contexts::encode_priority(p.value()));
        let reply_contexts: &[ServiceContext<'_>] = match &echo {
            Some(data) => &[ServiceContext {
                id: contexts::RT_CORBA_PRIORITY,
                data,
            }],
            None => &[],
        };
        let mut reply = ReplyWriter::new(
            self.reply,
            message.version,
            header.request_id,
            self.connection.text(message.version),
            reply_contexts,
        )
        .map_err(|_| End::Gone)?;

        let served = announced
            .and(priority)
            .and_then(|p| request.serve(p, body, &mut reply));
        if let Err(exception) = served {
            reply.system_exception(exception).map_err(|_| End::Gone)?;
        }
        let answered = match header.response {
            ResponseFlags::None => false,
            ResponseFlags::SyncWithServer => !reply.is_sent(),
            ResponseFlags::SyncWithTarget => true,
        };
        reply.finish();
        Ok(answered)
    }

    /// Answers where an object is.
    pub(super) fn locate(&mut self, message: MessageHeader) -> Result<bool, End> {
        let mut d = self.request.decoder(HEADER_LEN, message.endian, self.arena);
        let header =
            LocateRequestHeader::decode(&mut d, message.version).map_err(|_| End::Malformed)?;
        // A target that is named by a profile of another protocol is not here.
        let key = header.target.key().unwrap_or_default();
        let known = self
            .core
            .poas
            .with_object(self.core.incarnation, key, |_| Ok(()), |_, _| ());
        let registered = self.core.resolver.registered(key);
        let status = match (&known, &registered) {
            (Ok(()), _) => LocateStatus::ObjectHere,
            (Err(_), Some(_)) => LocateStatus::ObjectForward,
            (Err(_), None) => LocateStatus::UnknownObject,
        };
        let mut write = || {
            let mut e = start_message(self.reply, message.version, MessageType::LocateReply)?;
            let header = LocateReplyHeader {
                request_id: header.request_id,
                status,
            };
            encode_locate_reply(&mut e, message.version, &header)?;
            if let (LocateStatus::ObjectForward, Some(ior)) = (status, &registered) {
                ior.encode(&mut e)?;
            }
            finish_message(self.reply);
            Ok::<(), chronorb_cdr::CdrError>(())
        };
        write().map_err(|_| End::Gone)?;
        Ok(true)
    }
}

/// One request, once its header is read.
struct Request<'a> {
    core: &'a Arc<Core>,
    lane: &'a Lane,
    connection: &'a ServerConnection,
    key: Key,
    arena: &'a Arena,
    header: &'a RequestHeader<'a>,
}

impl<'a> Request<'a> {
    /// Finds the target and calls it, or forwards.
    fn serve(
        &self,
        propagated: Option<Priority>,
        body: Decoder<'a>,
        reply: &mut ReplyWriter<'_>,
    ) -> Result<(), SystemException> {
        let key = self.header.target.key().ok_or(SystemException::no(
            SystemExceptionKind::ObjectNotExist,
            minor::NO_SUCH_ADAPTER,
        ))?;
        let found = self.core.poas.with_object(
            self.core.incarnation,
            key,
            |poa| poa.admit(self.core.config.hold_timeout),
            |poa, object| self.upcall(propagated, poa, object, body, reply),
        );
        match found {
            Ok(served) => served,
            Err(unknown) => match self.core.resolver.registered(key) {
                Some(ior) => reply.location_forward(&ior),
                None => Err(unknown),
            },
        }
    }

    /// The POA and the object live as long as the call, `'c`; the request's octets live longer.
    fn upcall<'c>(
        &self,
        propagated: Option<Priority>,
        poa: &'c Poa,
        object: &'c Active,
        mut body: Decoder<'c>,
        reply: &mut ReplyWriter<'_>,
    ) -> Result<(), SystemException>
    where
        'a: 'c,
    {
        if let Some(result) = self.implicit(object, &mut body, reply) {
            return result;
        }
        let wanted = match poa.priority_model() {
            Some((PriorityModel::ClientPropagated, default)) => Some(propagated.unwrap_or(default)),
            Some((PriorityModel::ServerDeclared, priority)) => Some(priority),
            None => None,
        };
        let own = (self.lane.priority(), self.lane.setup().scheduling);
        let _guard = PriorityGuard::enter(self.core, own, wanted)?;
        if self.header.response == ResponseFlags::SyncWithServer {
            // The client waits for the server and not for the servant: it has its answer now that
            // nothing can be forwarded or refused any more. What the servant says goes nowhere.
            reply.normal()?;
            let sent = self.lane.send(self.connection, self.key, reply.take_sent());
            sent.map_err(|_| COMM_FAILURE)?;
        }
        let call = Call {
            core: self.core,
            arena: self.arena,
            poa,
            object_id: object.id(),
            operation: self.header.operation,
            priority: wanted.or(own.0),
            response_expected: self.header.response != ResponseFlags::None,
            contexts: self.header.contexts,
        };
        // A servant that panics has failed one request, not the lane.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            object
                .servant
                .dispatch(&call, self.header.operation, &mut body, reply)
        }));
        outcome.unwrap_or(Err(SERVANT_PANICKED))?;
        if !reply.is_begun() {
            reply.normal()?;
        }
        Ok(())
    }

    /// Operations that every object has (CORBA 3.3 part 2, 9.4.2.2); their names begin with `_`,
    /// as those of attributes do.
    fn implicit(
        &self,
        object: &Active,
        body: &mut Decoder<'_>,
        reply: &mut ReplyWriter<'_>,
    ) -> Option<Result<(), SystemException>> {
        if self.header.operation.first() != Some(&b'_') {
            return None;
        }
        let mut answer =
            |write: &dyn Fn(&mut Encoder<'_>) -> Result<(), chronorb_cdr::CdrError>| {
                write(reply.normal()?).map_err(reply_error)
            };
        match self.header.operation {
            b"_is_a" => Some(
                body.read_str()
                    .map_err(SystemException::from)
                    .and_then(|id| {
                        let is = id == OBJECT_ID || object.servant.is_a(id);
                        answer(&|e| e.write_bool(is))
                    }),
            ),
            b"_non_existent" | b"_not_existent" => Some(answer(&|e| e.write_bool(false))),
            b"_repository_id" => {
                let id = object.servant.repository_id();
                Some(answer(&|e| e.write_str(id)))
            }
            // The object is no component.
            b"_component" => Some(answer(&|e| chronorb_giop::Ior::nil().encode(e))),
            // There is no interface repository.
            b"_interface" | b"_get_interface" => Some(Err(SystemException::no(
                SystemExceptionKind::IntfRepos,
                minor::NO_INTERFACE_REPOSITORY,
            ))),
            _ => None,
        }
    }

    /// The priority that travelled with the request.
    fn propagated_priority(&self) -> Result<Option<Priority>, SystemException> {
        let Some(context) = contexts::find(self.header.contexts, contexts::RT_CORBA_PRIORITY)
        else {
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
}

/// Reads the code set that a connection's first request announces, before any other is read.
pub(super) fn learn_text(
    connection: &ServerConnection,
    request: &mut Frame,
    arena: &Arena,
    message: MessageHeader,
) {
    let mut d = request.decoder(HEADER_LEN, message.endian, arena);
    // One that cannot be read is told as such when it is served.
    if let Ok(header) = RequestHeader::decode(&mut d, message.version) {
        let _ = learn_announced(connection, &header, message);
    }
}

fn learn_announced(
    connection: &ServerConnection,
    header: &RequestHeader<'_>,
    message: MessageHeader,
) -> Result<(), SystemException> {
    if let Some(data) = contexts::find(header.contexts, contexts::CODE_SETS) {
        let text = CodeSetContext::decode(data)?.text(message.version)?;
        connection.set_narrow(text.narrow);
    }
    Ok(())
}

/// The client left before its early answer.
const COMM_FAILURE: SystemException =
    SystemException::no(SystemExceptionKind::CommFailure, minor::CONNECTION_LOST);
/// The servant panicked; how far it got is not known.
const SERVANT_PANICKED: SystemException = SystemException::new(
    SystemExceptionKind::Unknown,
    minor::SERVANT_PANICKED,
    CompletionStatus::Maybe,
);
