//! Operations, calls and replies: the interface between generated code and the ORB.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

use chronorb_cdr::{Arena, CdrError, Decoder, Encoder, Endian, Frame, TextForm};
use chronorb_giop::{
    CompletionStatus, MessageProtocol, Protocol, ReplyHeader, ReplyStatus, ServiceContext,
    SystemException, SystemExceptionKind, finish_message, minor, start_reply, start_usual_reply,
};

use chronorb_transport::Connection;

use crate::gather::{self, GatherError, LostConnection};
use crate::object_id::ObjectId;
use crate::peer::Peer;
use crate::quota::Origin;
use crate::rtcorba::Priority;

/// An operation as clients call it.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    pub(crate) name: &'static str,
    pub(crate) oneway: bool,
}

impl Operation {
    /// An operation with a reply.
    pub const fn twoway(name: &'static str) -> Self {
        Self {
            name,
            oneway: false,
        }
    }

    /// An operation without a reply.
    pub const fn oneway(name: &'static str) -> Self {
        Self { name, oneway: true }
    }
}

/// The outcome of a call, with the marshalled results.
#[derive(Debug)]
pub enum Reply<'s> {
    /// The results follow.
    Normal(Decoder<'s>),
    /// The exception with this repository identifier; its members follow.
    UserException(&'s str, Decoder<'s>),
}

/// A user exception, as generated for each IDL exception.
pub trait UserException {
    /// The repository identifier of the exception.
    const REPOSITORY_ID: &'static str;
}

/// The skeleton of an IDL interface, generated from it: the ORB calls it with each request.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no skeleton",
    label = "requests do not reach it",
    note = "a servant of an interface `Quoter` is passed in its skeleton, \
            `QuoterSkeleton::new(servant)`"
)]
pub trait Skeleton: Send + Sync + 'static {
    /// The repository identifier of the most derived interface.
    fn repository_id(&self) -> &'static str;

    /// Whether the servant has this interface, or one derived from it.
    fn is_a(&self, repository_id: &str) -> bool;

    /// Identifies the servant: all skeletons of the same servant return the same number. By
    /// default each skeleton counts as a servant of its own.
    fn identity(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// The servant for calls within the process that are not marshalled: an `Arc<dyn …Servant>`
    /// whose type is `servant`. `None` by default.
    fn servant_as(&self, servant: TypeId) -> Option<&dyn Any> {
        let _ = servant;
        None
    }

    /// Demarshals the arguments, calls the servant, and marshals its results.
    ///
    /// # Errors
    /// The servant's system exception; `MARSHAL` for malformed arguments; `BAD_OPERATION` (OMG
    /// minor 2) for an unknown operation.
    fn dispatch<'a>(
        &self,
        call: &Call<'a>,
        operation: &[u8],
        arguments: &mut Decoder<'a>,
        reply: &mut ReplyWriter<'_>,
    ) -> Result<(), SystemException>;
}

/// A servant with its skeleton, shared with the POA.
pub type Servant = Arc<dyn Skeleton>;

/// The parts of a request that are known before its servant is found.
pub(crate) struct IncomingRequest<'a> {
    /// The memory for the values of the call.
    pub(crate) arena: &'a Arena,
    pub(crate) operation: &'a [u8],
    pub(crate) response_expected: bool,
    pub(crate) contexts: &'a [ServiceContext<'a>],
    /// The other side of the connection; `None` from within the process.
    pub(crate) peer: Option<&'a dyn Connection>,
}

/// One request, as its servant sees it.
///
/// It does not leave the thread that serves the request. Results may borrow from it: values are
/// made in the thread's arena, which is kept until the reply is sent.
pub struct Call<'a> {
    pub(crate) incoming: &'a IncomingRequest<'a>,
    /// The ORB, for [`orb`](Self::orb): an `Arc<Core>`.
    pub(crate) orb: &'a (dyn Any + Send + Sync),
    /// The POA, for [`poa`](Self::poa): a `Poa`.
    pub(crate) poa: &'a (dyn Any + Send + Sync),
    pub(crate) object_id: &'a ObjectId,
    pub(crate) priority: Option<Priority>,
}

impl<'a> Call<'a> {
    /// Copies a slice into the call's arena, for use as a result or in one.
    ///
    /// # Errors
    /// `NO_MEMORY` where the arena is full.
    pub fn slice<T: Copy>(&self, items: &[T]) -> Result<&'a [T], SystemException> {
        Ok(self.incoming.arena.copy_slice(items)?)
    }

    /// Copies a string into the call's arena.
    ///
    /// # Errors
    /// `NO_MEMORY` where the arena is full.
    pub fn str(&self, text: &str) -> Result<&'a str, SystemException> {
        Ok(self.incoming.arena.copy_str(text)?)
    }

    /// Makes `n` items in the call's arena.
    ///
    /// # Errors
    /// `NO_MEMORY` where the arena is full, and the errors of `make`.
    pub fn fill<T: Copy>(
        &self,
        n: usize,
        mut make: impl FnMut(usize) -> T,
    ) -> Result<&'a [T], SystemException> {
        Ok(self.incoming.arena.fill(n, |i| Ok(make(i)))?)
    }

    /// Keeps an owned value until the reply is sent, so that a result can borrow from it. This
    /// allocates.
    pub fn keep<T: Send + 'static>(&self, value: T) -> &'a T {
        self.incoming.arena.keep(value)
    }

    /// The arena of the call's values.
    pub fn arena(&self) -> &'a Arena {
        self.incoming.arena
    }

    /// The identifier of the target object (`PortableServer::Current`).
    pub fn object_id(&self) -> &'a ObjectId {
        self.object_id
    }

    /// The operation's name on the wire.
    pub fn operation(&self) -> &'a [u8] {
        self.incoming.operation
    }

    /// The priority at which the request is served; `None` where none is declared or propagated.
    pub fn priority(&self) -> Option<Priority> {
        self.priority
    }

    /// Whether the client waits for a reply.
    pub fn response_expected(&self) -> bool {
        self.incoming.response_expected
    }

    /// The other side of the connection that carried the request: its protocol, address and
    /// identity. `None` for calls from within the process.
    pub fn peer(&self) -> Option<Peer<'a>> {
        self.incoming.peer.map(Peer::new)
    }

    /// The unit by which a service limits what the client takes.
    pub fn origin(&self) -> Origin {
        self.peer().map_or(Origin::Process, |peer| peer.origin())
    }

    /// The certificate (X.509, DER) that proves the client's identity, if the request arrived by
    /// TLS and the client had to present one (`-ORBSSLVerify mutual`). This allocates.
    pub fn peer_certificate(&self) -> Option<Vec<u8>> {
        self.incoming.peer?.peer_certificate()
    }

    /// The data of a service context of the request.
    pub fn service_context(&self, id: u32) -> Option<&'a [u8]> {
        self.incoming
            .contexts
            .iter()
            .find(|context| context.id == id)
            .map(|context| context.data)
    }
}

impl fmt::Debug for Call<'_> {
    #[allow(clippy::disallowed_methods, reason = "for messages to people")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field(
                "operation",
                &String::from_utf8_lossy(self.incoming.operation),
            )
            .field("object_id", &self.object_id)
            .field("priority", &self.priority)
            .finish_non_exhaustive()
    }
}

/// The destination of one reply, which can be sent from the memory that holds its octets.
pub(crate) trait ReplySink: fmt::Debug {
    /// Sends a message. A connection to which it cannot be sent ends.
    fn send_whole(&self, message: &[u8]);

    /// Sends the pieces of a message as `message` produces them; `None` where another thread is
    /// sending, and nothing was done. A message that is not sent whole ends the connection.
    fn send(&self, message: PiecesOf<'_>) -> Option<Result<(), GatherError<LostConnection>>>;
}

/// Produces the pieces of a message, and sends each.
pub(crate) type PiecesOf<'m> =
    &'m mut dyn FnMut(gather::Send<'_, LostConnection>) -> Result<(), GatherError<LostConnection>>;

/// A writer for the reply to one request. A reply that is begun later replaces the one before.
#[derive(Debug)]
pub struct ReplyWriter<'f> {
    encoder: Encoder<'f>,
    protocol: Protocol,
    request_id: u32,
    contexts: &'f [ServiceContext<'f>],
    /// The end of the header before its padding for a body; 0 before a reply is begun.
    header_end: usize,
    body_start: usize,
    /// The connection for large results that are sent without a copy.
    sink: Option<&'f dyn ReplySink>,
    sent: bool,
}

impl<'f> ReplyWriter<'f> {
    pub(crate) fn new(
        frame: &'f mut Frame,
        protocol: Protocol,
        request_id: u32,
        text: TextForm,
        contexts: &'f [ServiceContext<'f>],
    ) -> Self {
        frame.clear();
        Self {
            encoder: Encoder::new(frame, Endian::NATIVE).with_text(text),
            protocol,
            request_id,
            contexts,
            header_end: 0,
            body_start: 0,
            sink: None,
            sent: false,
        }
    }

    /// Permits large results to be sent directly from the memory that holds them.
    pub(crate) fn set_sink(&mut self, sink: &'f dyn ReplySink) {
        self.sink = Some(sink);
    }

    /// Begins a reply with results, which are then written to the encoder.
    ///
    /// # Errors
    /// `MARSHAL` where the message is full.
    pub fn normal(&mut self) -> Result<&mut Encoder<'f>, SystemException> {
        self.begin(ReplyStatus::NoException)?;
        Ok(&mut self.encoder)
    }

    /// Writes a reply with the results that `write` writes.
    ///
    /// Slices of octets, or of numbers in this machine's byte order, of 64 KiB and more are sent
    /// without a copy; the reply has then been sent when this returns. For that `write` is called
    /// twice, and must write the same both times; otherwise the connection ends.
    ///
    /// # Errors
    /// Those of `write`, and of sending the reply.
    pub fn results(
        &mut self,
        write: &dyn Fn(&mut Encoder<'_>) -> Result<(), CdrError>,
    ) -> Result<(), SystemException> {
        self.begin(ReplyStatus::NoException)?;
        if self.sink.is_none() {
            return write(&mut self.encoder).map_err(reply_error);
        }
        match gather::write(&mut self.encoder, write).map_err(reply_error)? {
            0 => Ok(()),
            left_out => self.send_gathered(left_out, write),
        }
    }

    /// Sends a reply of which `left_out` octets are not in the frame.
    fn send_gathered(
        &mut self,
        left_out: usize,
        write: gather::Write<'_>,
    ) -> Result<(), SystemException> {
        let (encoder, start) = (&mut self.encoder, self.body_start);
        let total = encoder.position() + left_out;
        if total > encoder.frame().limit() {
            return Err(reply_error(CdrError::FrameFull));
        }
        let sent = self.sink.take().and_then(|sink| {
            sink.send(&mut |send| gather::send(encoder, start, total, write, send).1)
        });
        let Some(sent) = sent else {
            encoder.truncate(start);
            return write(encoder).map_err(reply_error);
        };
        self.sent = true;
        sent.map_err(|unsent| match unsent {
            GatherError::Failed(_) => CONNECTION_LOST,
            GatherError::Unwritten(exception) => exception.with_completed(CompletionStatus::Yes),
        })
    }

    /// Begins a reply with a user exception, whose members are then written to the encoder.
    ///
    /// # Errors
    /// `MARSHAL` where the message is full.
    pub fn user_exception(
        &mut self,
        repository_id: &str,
    ) -> Result<&mut Encoder<'f>, SystemException> {
        self.begin(ReplyStatus::UserException)?;
        self.encoder.write_str(repository_id)?;
        Ok(&mut self.encoder)
    }

    pub(crate) fn system_exception(
        &mut self,
        exception: SystemException,
    ) -> Result<(), SystemException> {
        self.begin(ReplyStatus::SystemException)?;
        exception.encode(&mut self.encoder)?;
        Ok(())
    }

    pub(crate) fn location_forward(
        &mut self,
        target: &chronorb_giop::Ior,
    ) -> Result<(), SystemException> {
        self.begin(ReplyStatus::LocationForward)?;
        target.encode(&mut self.encoder)?;
        Ok(())
    }

    /// Sends the reply, if it may be sent directly.
    #[inline(always)]
    pub(crate) fn send(&mut self) {
        if let Some(sink) = self.sink.take() {
            self.finish();
            sink.send_whole(self.encoder.frame().as_slice());
            self.sent = true;
        }
    }

    /// Completes the message for sending it now. A reply that is begun later is discarded.
    pub(crate) fn take_sent(&mut self) -> &[u8] {
        self.sent = true;
        self.finish();
        self.encoder.frame().as_slice()
    }

    pub(crate) fn is_sent(&self) -> bool {
        self.sent
    }

    pub(crate) fn is_begun(&self) -> bool {
        self.header_end != 0
    }

    /// Ends the message.
    pub(crate) fn finish(&mut self) {
        // The header may be padded for a body; without a body there must be no padding.
        if self.encoder.position() == self.body_start {
            self.encoder.truncate(self.header_end);
        }
        finish_message(self.encoder.frame_mut());
    }

    #[inline]
    fn begin(&mut self, status: ReplyStatus) -> Result<(), SystemException> {
        if self.encoder.frame().is_empty()
            && self.contexts.is_empty()
            && start_usual_reply(&mut self.encoder, self.protocol, self.request_id, status)
        {
            self.header_end = self.encoder.position();
            self.body_start = self.header_end;
            return Ok(());
        }
        self.begin_by_parts(status)
    }

    /// Begins a reply with contexts, of an older protocol, or after another one was begun.
    #[inline(never)]
    fn begin_by_parts(&mut self, status: ReplyStatus) -> Result<(), SystemException> {
        self.encoder.truncate(0);
        let header = ReplyHeader {
            request_id: self.request_id,
            status,
            contexts: self.contexts,
        };
        start_reply(&mut self.encoder, self.protocol, &header)?;
        self.header_end = self.encoder.position();
        self.body_start = self.header_end;
        // No protocol aligns a body to more.
        if !self.header_end.is_multiple_of(8) {
            self.protocol.pad_reply(&mut self.encoder)?;
            self.body_start = self.encoder.position();
        }
        Ok(())
    }
}

/// The exception where the client left before it had received its whole reply.
const CONNECTION_LOST: SystemException = SystemException::new(
    SystemExceptionKind::CommFailure,
    minor::CONNECTION_LOST,
    CompletionStatus::Yes,
);

/// The exception for an operation that the target's interface does not have.
pub fn bad_operation() -> SystemException {
    SystemException::no(SystemExceptionKind::BadOperation, minor::OPERATION_UNKNOWN)
}

/// The exception for a user exception that the operation does not raise.
pub fn unknown_user_exception() -> SystemException {
    SystemException::new(
        SystemExceptionKind::Unknown,
        minor::UNLISTED_USER_EXCEPTION,
        CompletionStatus::Yes,
    )
}

/// The exception for results that cannot be marshalled or demarshalled: the operation completed.
pub fn reply_error(error: CdrError) -> SystemException {
    SystemException::from(error).with_completed(CompletionStatus::Yes)
}
