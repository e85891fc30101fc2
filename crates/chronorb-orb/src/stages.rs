//! The stages of a request's way to its servant, one at a time: for measuring.
//!
//! Not for applications. Each method calls a part of the server's request path, with nothing added,
//! so that its cost can be measured.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::fmt;
use std::sync::Arc;

use chronorb_cdr::{Arena, CharSet, Decoder};
use chronorb_giop::{
    MessageHeader, MessageType, RequestHeader, ResponseFlags, SystemException, SystemExceptionKind,
    Version, encode_request, finish_message, minor, start_message,
};

use crate::call::{Call, IncomingRequest, ReplyWriter, Skeleton};
use crate::core::{Core, Object};
use crate::poa::{ObjectKey, Poa};
use crate::rtcorba::OwnPriority;
use crate::stage::Stage;
use crate::upcall::{Body, Parks, Role, Thread, Upcall};

pub use chronorb_cdr::Frame;

/// The stages of requests to one ORB, on the calling thread and without a socket.
///
/// The state of a thread of the ORB for its requests: an arena, and a frame for replies.
pub struct Stages {
    core: Arc<Core>,
    arena: Arena,
    reply: Frame,
    thread: Thread,
}

/// The object of a POA that a request is for, according to its object key.
#[derive(Clone, Copy, Debug)]
pub struct Target<'k> {
    key: ObjectKey<'k>,
}

impl<'k> Target<'k> {
    /// Parses an object key; `None` if this ORB did not make it.
    pub fn parse(object_key: &'k [u8]) -> Option<Self> {
        ObjectKey::parse(object_key).map(|key| Self { key })
    }

    /// Returns the same object, with a key that has no hint of its slot.
    #[must_use]
    pub fn without_hint(mut self) -> Self {
        self.key.hint = Default::default();
        self
    }
}

impl Stages {
    /// Makes it for requests to objects of the ORB that this reference belongs to. The calling
    /// thread serves them.
    pub fn new(reference: &Object) -> Self {
        let core = reference.core();
        let mut arena = Arena::new(core.config.arena_size);
        arena.set_bounds(core.config.bounds);
        Self {
            core: core.clone(),
            arena,
            reply: Frame::new(FRAME_CAPACITY, core.config.max_message_size),
            thread: Thread {
                own: OwnPriority::of_caller(),
                patience: core.config.hold_timeout,
                parks: Parks::No,
                role: Role::Lane,
            },
        }
    }

    /// Writes a request without arguments, as a client sends it, in GIOP 1.2.
    ///
    /// # Errors
    /// `INV_OBJREF` where the reference has no profile that can be used here; where the message is
    /// full.
    pub fn write_request(
        &self,
        frame: &mut Frame,
        target: &Object,
        operation: &str,
    ) -> Result<(), SystemException> {
        let kind = SystemExceptionKind::InvObjref;
        let none = SystemException::no(kind, minor::NO_SUCH_ADAPTER);
        let key = object_key(target).ok_or(none)?;
        let header = RequestHeader {
            request_id: 1,
            response: ResponseFlags::SyncWithTarget,
            target: chronorb_giop::Target::Key(key),
            operation: operation.as_bytes(),
            contexts: &[],
        };
        let mut e = start_message(frame, Version::V1_2, MessageType::Request)?;
        encode_request(&mut e, Version::V1_2, &header)?;
        finish_message(frame);
        Ok(())
    }

    /// Reads the headers of a message and of the request in it, and finds the object key. Whether
    /// there is one.
    #[inline(never)]
    pub fn read_request(&self, message: &mut Frame) -> bool {
        let Ok(message_header) = MessageHeader::parse(message.as_slice()) else {
            return false;
        };
        let mut d = message_header.decoder(message, &self.arena);
        let request = RequestHeader::decode(&mut d, message_header.protocol);
        request.is_ok_and(|request| request.target.key().is_some())
    }

    /// Passes a point at which a [probe](crate::StageProbe), if there is one, is called.
    #[inline]
    pub fn at(&self, stage: Stage) {
        self.core.at(stage);
    }

    /// Finds the POA of an object key, and releases it. Returns whether there is one.
    #[inline(never)]
    pub fn find_poa(&self, object_key: &[u8]) -> bool {
        let find = |key| self.core.poas.find(self.core.incarnation, &key);
        ObjectKey::parse(object_key).and_then(find).is_some()
    }

    /// Finds the servant of an active object of a POA, and releases it. Returns whether there is
    /// one.
    #[inline(never)]
    pub fn find_servant(&self, poa: &Poa, target: Target<'_>) -> bool {
        poa.find(target.key.hint, target.key.id).is_some()
    }

    /// Takes a request from the octets of its message to the skeleton of its servant, and releases
    /// everything. Returns whether the skeleton was called without an exception.
    ///
    /// Serves a request as a lane's thread does (`server::dispatch`), without the parts that need a
    /// connection and without the reply, whose header is written after the servant has returned.
    #[inline(never)]
    pub fn serve(&mut self, message: &mut Frame) -> bool {
        self.arena.reset();
        let Ok(message_header) = MessageHeader::parse(message.as_slice()) else {
            return false;
        };
        let protocol = message_header.protocol;
        let text = message_header.version().text(CharSet::Utf8);
        // Made and decoded in place, as there.
        let decoder = message_header.decoder(message, &self.arena);
        let mut arguments = Some(decoder.with_host(Some(&self.core)));
        let Some(body) = &mut arguments else {
            return false;
        };
        let mut header = RequestHeader::EMPTY;
        if header.decode_here(body, protocol).is_err() {
            return false;
        }
        body.set_text(text);
        let Some(key) = header.target.key() else {
            return false;
        };
        let mut reply = ReplyWriter::new(&mut self.reply, protocol, header.request_id, text, &[]);
        let upcall = Upcall {
            core: &self.core,
            incoming: IncomingRequest {
                arena: &self.arena,
                operation: header.operation,
                response_expected: header.response != ResponseFlags::None,
                contexts: header.contexts,
                peer: None,
            },
            key,
            propagated: None,
            ceiling: None,
            thread: &self.thread,
        };
        let served = upcall.serve(&mut Arrival {
            arguments: &mut arguments,
            reply: &mut reply,
        });
        matches!(served, Ok(Ok(())))
    }
}

/// The arrival at a skeleton.
struct Arrival<'a, 'r, 'f> {
    arguments: &'r mut Option<Decoder<'a>>,
    reply: &'r mut ReplyWriter<'f>,
}

impl Body for Arrival<'_, '_, '_> {
    type Output = Result<(), SystemException>;

    #[inline(always)]
    fn run<'c>(&mut self, servant: &'c dyn Skeleton, _: &Poa, call: &Call<'c>) -> Self::Output
    where
        Self: 'c,
    {
        let Some(mut arguments): Option<Decoder<'c>> = self.arguments.take() else {
            return Err(SystemException::no(SystemExceptionKind::Internal, 0));
        };
        servant.dispatch(call, call.operation(), &mut arguments, self.reply)
    }
}

impl fmt::Debug for Stages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stages")
            .field("thread", &self.thread)
            .finish_non_exhaustive()
    }
}

/// The object key of a reference; `None` where it has no profile that can be used here.
pub fn object_key(object: &Object) -> Option<&[u8]> {
    object.profile().map(|profile| &*profile.key)
}

const FRAME_CAPACITY: usize = 64 << 10;
