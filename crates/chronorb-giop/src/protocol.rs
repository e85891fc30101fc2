//! Message protocols: GIOP of each version, and GIOPlite, behind one trait.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_cdr::{CdrError, Decoder, Encoder};

use crate::GiopLite;
use crate::header;
use crate::{
    HEADER_LEN, HeaderError, LocateReplyHeader, LocateRequestHeader, MessageHeader, MessageType,
    ReplyHeader, RequestHeader, Version, reply,
};

/// A message protocol: the boundaries of messages, and the headers before their bodies. Bodies are
/// CDR by the rules of a [version](Self::version) of GIOP.
///
/// There are two: GIOP, as a [`Version`] of it, and [`GiopLite`](crate::GiopLite). Code that uses
/// one of them is compiled for that one; [`Protocol`] is the one of a given message. The functions
/// and headers of this crate take all three.
pub trait MessageProtocol: Copy + Into<Protocol> {
    /// Number of octets of the header that every message starts with.
    fn header_len(self) -> usize;

    /// Returns the version of GIOP whose rules apply to values and statuses.
    fn version(self) -> Version;

    /// Reads the header from the first octets of a message, of any version.
    ///
    /// # Errors
    /// See [`HeaderError`].
    fn read_header(octets: &[u8]) -> Result<MessageHeader, HeaderError>;

    /// Returns the least number of octets of a header that begins like this.
    fn least_len(octets: &[u8]) -> usize;

    /// Writes the header of a message at the start of an empty frame, all but its length.
    ///
    /// # Errors
    /// [`CdrError::FrameFull`] if the frame cannot hold it.
    fn write_header(self, e: &mut Encoder<'_>, kind: MessageType) -> Result<(), CdrError>;

    /// Writes into the header of a message how many octets it has, header included. Octets without
    /// a header stay as they are.
    fn write_len(message: &mut [u8], len: u32);

    /// Writes the header of a request.
    ///
    /// # Errors
    /// [`CdrError::FrameFull`], and those of fields that the protocol lacks.
    fn encode_request(
        self,
        e: &mut Encoder<'_>,
        header: &RequestHeader<'_>,
    ) -> Result<(), CdrError>;

    /// Reads the header of a request, and leaves the decoder at the body.
    ///
    /// # Errors
    /// Those of malformed content.
    fn decode_request<'a>(self, d: &mut Decoder<'a>) -> Result<RequestHeader<'a>, CdrError>;

    /// Pads the header of a request for a body; without one there is no padding.
    ///
    /// # Errors
    /// [`CdrError::FrameFull`]
    fn pad_request(self, e: &mut Encoder<'_>) -> Result<(), CdrError>;

    /// Whether the answer to a request, whole or the first part of one, is sent when its operation
    /// is completed, according to its header without decoding it. GIOP 1.0 and 1.1 have no such
    /// flag.
    fn waits_for_target(self, request: &[u8]) -> bool;

    /// Returns the position of a request's response flags; `None` for GIOP 1.0 and 1.1.
    fn response_at(self) -> Option<usize>;

    /// Whether the answer to a whole request is sent when the server has received it.
    fn waits_for_server(self, request: &[u8]) -> bool {
        let flags = self.response_at().and_then(|at| request.get(at));
        flags.is_some_and(|flags| flags & 3 == 1)
    }

    /// Makes a request one without an answer. GIOP 1.0 and 1.1 are left as they are.
    fn waive_answer(self, request: &mut [u8]) {
        let flags = self.response_at().and_then(|at| request.get_mut(at));
        if let Some(flags) = flags {
            *flags &= !3;
        }
    }

    /// Returns the position of the request identifier, if it is the same in all messages.
    fn request_id_at(self) -> Option<usize>;

    /// Writes the header of a message, which [`write_len`](Self::write_len) completes, and that of
    /// a reply into an empty frame.
    ///
    /// # Errors
    /// [`CdrError::FrameFull`]; [`CdrError::InvalidEnum`] where there is no such status.
    fn start_reply(self, e: &mut Encoder<'_>, header: &ReplyHeader<'_>) -> Result<(), CdrError>;

    /// Writes the header of a reply.
    ///
    /// # Errors
    /// As [`start_reply`](Self::start_reply).
    fn encode_reply(self, e: &mut Encoder<'_>, header: &ReplyHeader<'_>) -> Result<(), CdrError>;

    /// Reads the header of a reply, and leaves the decoder at the body.
    ///
    /// # Errors
    /// Those of malformed content.
    fn decode_reply<'a>(self, d: &mut Decoder<'a>) -> Result<ReplyHeader<'a>, CdrError>;

    /// Pads the header of a reply for a body; without one there is no padding.
    ///
    /// # Errors
    /// [`CdrError::FrameFull`]
    fn pad_reply(self, e: &mut Encoder<'_>) -> Result<(), CdrError>;

    /// The id of the request that a whole message is, or belongs to, read from its octets without
    /// changing them. There is none if they end before it.
    fn reply_id(message: &[u8]) -> Option<u32>;

    /// Writes a locate request.
    ///
    /// # Errors
    /// [`CdrError::FrameFull`], and those of fields that the protocol lacks.
    fn encode_locate_request(
        self,
        e: &mut Encoder<'_>,
        header: &LocateRequestHeader<'_>,
    ) -> Result<(), CdrError>;

    /// Reads a locate request.
    ///
    /// # Errors
    /// Those of malformed content.
    fn decode_locate_request<'a>(
        self,
        d: &mut Decoder<'a>,
    ) -> Result<LocateRequestHeader<'a>, CdrError>;

    /// Writes the header of a locate reply.
    ///
    /// # Errors
    /// [`CdrError::FrameFull`]; [`CdrError::InvalidEnum`] where there is no such status.
    fn encode_locate_reply(
        self,
        e: &mut Encoder<'_>,
        header: &LocateReplyHeader,
    ) -> Result<(), CdrError>;

    /// Reads the header of a locate reply, and leaves the decoder at the body.
    ///
    /// # Errors
    /// Those of malformed content.
    fn decode_locate_reply(self, d: &mut Decoder<'_>) -> Result<LocateReplyHeader, CdrError>;
}

/// The message protocol of a message, which its first octets tell.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Protocol {
    /// GIOP, of a version.
    Giop(Version),
    /// GIOPlite.
    Lite,
}

impl From<Version> for Protocol {
    fn from(version: Version) -> Self {
        Self::Giop(version)
    }
}

/// Whether a message that begins so is one of GIOPlite if it is one at all.
#[inline]
fn is_lite(octets: &[u8]) -> bool {
    octets.first_chunk() != Some(header::MAGIC)
}

macro_rules! with_each {
    ($this:expr, $protocol:ident => $call:expr) => {
        match $this {
            Self::Giop($protocol) => $call,
            Self::Lite => {
                let $protocol = GiopLite;
                $call
            }
        }
    };
}

macro_rules! by_first_octets {
    ($octets:expr, $protocol:ident => $call:expr) => {{
        if is_lite($octets) {
            type $protocol = GiopLite;
            return $call;
        }
        type $protocol = Version;
        $call
    }};
}

impl MessageProtocol for Protocol {
    #[inline]
    fn header_len(self) -> usize {
        with_each!(self, protocol => protocol.header_len())
    }

    #[inline]
    fn version(self) -> Version {
        with_each!(self, protocol => protocol.version())
    }

    #[inline]
    fn read_header(octets: &[u8]) -> Result<MessageHeader, HeaderError> {
        by_first_octets!(octets, P => P::read_header(octets))
    }

    #[inline]
    fn least_len(octets: &[u8]) -> usize {
        by_first_octets!(octets, P => P::least_len(octets))
    }

    #[inline]
    fn write_header(self, e: &mut Encoder<'_>, kind: MessageType) -> Result<(), CdrError> {
        with_each!(self, protocol => protocol.write_header(e, kind))
    }

    #[inline]
    fn write_len(message: &mut [u8], len: u32) {
        by_first_octets!(message, P => P::write_len(message, len))
    }

    fn encode_request(
        self,
        e: &mut Encoder<'_>,
        header: &RequestHeader<'_>,
    ) -> Result<(), CdrError> {
        with_each!(self, protocol => protocol.encode_request(e, header))
    }

    fn decode_request<'a>(self, d: &mut Decoder<'a>) -> Result<RequestHeader<'a>, CdrError> {
        with_each!(self, protocol => protocol.decode_request(d))
    }

    #[inline]
    fn pad_request(self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        with_each!(self, protocol => protocol.pad_request(e))
    }

    #[inline]
    fn waits_for_target(self, request: &[u8]) -> bool {
        with_each!(self, protocol => protocol.waits_for_target(request))
    }

    fn response_at(self) -> Option<usize> {
        with_each!(self, protocol => protocol.response_at())
    }

    fn request_id_at(self) -> Option<usize> {
        with_each!(self, protocol => protocol.request_id_at())
    }

    #[inline]
    fn start_reply(self, e: &mut Encoder<'_>, header: &ReplyHeader<'_>) -> Result<(), CdrError> {
        with_each!(self, protocol => protocol.start_reply(e, header))
    }

    #[inline]
    fn encode_reply(self, e: &mut Encoder<'_>, header: &ReplyHeader<'_>) -> Result<(), CdrError> {
        with_each!(self, protocol => protocol.encode_reply(e, header))
    }

    #[inline]
    fn decode_reply<'a>(self, d: &mut Decoder<'a>) -> Result<ReplyHeader<'a>, CdrError> {
        with_each!(self, protocol => protocol.decode_reply(d))
    }

    #[inline]
    fn pad_reply(self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        with_each!(self, protocol => protocol.pad_reply(e))
    }

    #[inline]
    fn reply_id(message: &[u8]) -> Option<u32> {
        by_first_octets!(message, P => P::reply_id(message))
    }

    fn encode_locate_request(
        self,
        e: &mut Encoder<'_>,
        header: &LocateRequestHeader<'_>,
    ) -> Result<(), CdrError> {
        with_each!(self, protocol => protocol.encode_locate_request(e, header))
    }

    fn decode_locate_request<'a>(
        self,
        d: &mut Decoder<'a>,
    ) -> Result<LocateRequestHeader<'a>, CdrError> {
        with_each!(self, protocol => protocol.decode_locate_request(d))
    }

    fn encode_locate_reply(
        self,
        e: &mut Encoder<'_>,
        header: &LocateReplyHeader,
    ) -> Result<(), CdrError> {
        with_each!(self, protocol => protocol.encode_locate_reply(e, header))
    }

    fn decode_locate_reply(self, d: &mut Decoder<'_>) -> Result<LocateReplyHeader, CdrError> {
        with_each!(self, protocol => protocol.decode_locate_reply(d))
    }
}

/// GIOP of this version: CORBA 3.3 part 2, clause 9.4.
impl MessageProtocol for Version {
    #[inline]
    fn header_len(self) -> usize {
        HEADER_LEN
    }

    #[inline]
    fn version(self) -> Version {
        self
    }

    #[inline]
    fn read_header(octets: &[u8]) -> Result<MessageHeader, HeaderError> {
        MessageHeader::parse(octets)
    }

    #[inline]
    fn least_len(_: &[u8]) -> usize {
        HEADER_LEN
    }

    #[inline]
    fn write_header(self, e: &mut Encoder<'_>, kind: MessageType) -> Result<(), CdrError> {
        e.write_octets(&header::giop_header(e, self, kind))
    }

    #[inline]
    fn write_len(message: &mut [u8], len: u32) {
        header::write_giop_len(message, len);
    }

    #[inline]
    fn encode_request(
        self,
        e: &mut Encoder<'_>,
        header: &RequestHeader<'_>,
    ) -> Result<(), CdrError> {
        header.encode_giop(e, self)
    }

    fn decode_request<'a>(self, d: &mut Decoder<'a>) -> Result<RequestHeader<'a>, CdrError> {
        RequestHeader::decode_giop(d, self)
    }

    #[inline]
    fn pad_request(self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        if self < Self::V1_2 {
            return Ok(());
        }
        e.align(8)
    }

    #[inline]
    fn waits_for_target(self, request: &[u8]) -> bool {
        // The flags follow the request identifier.
        let flags = request.get(HEADER_LEN + 4);
        self >= Self::V1_2 && flags.is_some_and(|flags| flags & 3 == 3)
    }

    fn response_at(self) -> Option<usize> {
        (self >= Self::V1_2).then_some(HEADER_LEN + 4)
    }

    fn request_id_at(self) -> Option<usize> {
        (self >= Self::V1_2).then_some(HEADER_LEN)
    }

    #[inline]
    fn start_reply(self, e: &mut Encoder<'_>, header: &ReplyHeader<'_>) -> Result<(), CdrError> {
        reply::start_giop(e, self, header)
    }

    #[inline]
    fn encode_reply(self, e: &mut Encoder<'_>, header: &ReplyHeader<'_>) -> Result<(), CdrError> {
        header.encode_giop(e, self)
    }

    #[inline]
    fn decode_reply<'a>(self, d: &mut Decoder<'a>) -> Result<ReplyHeader<'a>, CdrError> {
        ReplyHeader::decode_giop(d, self)
    }

    #[inline]
    fn pad_reply(self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        self.pad_request(e)
    }

    #[inline]
    fn reply_id(message: &[u8]) -> Option<u32> {
        reply::giop_reply_id(message)
    }

    #[inline]
    fn encode_locate_request(
        self,
        e: &mut Encoder<'_>,
        header: &LocateRequestHeader<'_>,
    ) -> Result<(), CdrError> {
        header.encode_giop(e, self)
    }

    #[inline]
    fn decode_locate_request<'a>(
        self,
        d: &mut Decoder<'a>,
    ) -> Result<LocateRequestHeader<'a>, CdrError> {
        LocateRequestHeader::decode_giop(d, self)
    }

    #[inline]
    fn encode_locate_reply(
        self,
        e: &mut Encoder<'_>,
        header: &LocateReplyHeader,
    ) -> Result<(), CdrError> {
        header.encode_giop(e, self)
    }

    #[inline]
    fn decode_locate_reply(self, d: &mut Decoder<'_>) -> Result<LocateReplyHeader, CdrError> {
        LocateReplyHeader::decode_giop(d, self)
    }
}
