//! GIOPlite: GIOP without fields that both ends of a connection know already.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_cdr::{CdrError, Decoder, Encoder, Endian};

use crate::contexts::{self, GIOP_LITE};
use crate::encapsulation::Reader;
use crate::request::align_body;
use crate::{
    HeaderError, LocateReplyHeader, LocateRequestHeader, LocateStatus, MessageHeader,
    MessageProtocol, MessageType, Protocol, ReplyHeader, ReplyStatus, RequestHeader, ResponseFlags,
    ServiceContext, Target, Version,
};

/// GIOPlite: the message protocol for connections whose ends have agreed on it, by
/// [`contexts::GIOP_LITE`], and both have the same byte order.
///
/// A message starts with its size and its type, of which the size is that of the rest. There is no
/// magic, no version, no byte order and no fragment. Alignment begins with the message.
///
/// ```text
///                0      4      5        6            8            12                 13
/// all            | size | type |
/// Request        | size | type | flags  | key length | request id | operation length | key | operation | (contexts,) padding, body
/// Reply          | size | type | status |            | request id | (contexts,) body
/// CancelRequest  | size | type |        |            | request id |
/// LocateRequest  | size | type |        | key length | request id | key
/// LocateReply    | size | type | status |            | request id | body
/// ```
///
/// Bits 0 and 1 of the flags of a request are those of GIOP 1.2. Bit 7 of them, and of the status
/// of a reply, is set if there is a sequence of contexts. The body of a request begins at a
/// multiple of 8, as in GIOP 1.2; other bodies begin where their first value does. All other types
/// have only the header.
///
/// A request is 24 to 30 octets shorter than in GIOP 1.2, and 24 or 32 if it has a body; with
/// contexts at least 16. A reply is 12 octets shorter, or 8 if its results begin with 8 aligned
/// octets.
///
/// Messages that do not fit into these fields are sent by GIOP, which the receiver understands as
/// well: see [`can_carry`](Self::can_carry).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct GiopLite;

impl GiopLite {
    /// Number of octets of the header that every message starts with.
    pub const HEADER_LEN: usize = 5;

    /// Octets of the greatest message, header included: sizes cannot look like the first octets of
    /// a message of GIOP.
    pub const MAX_MESSAGE: usize = 1 << 30;

    /// Whether a request to this target, and of this operation, can be written.
    pub fn can_carry(target: &Target<'_>, operation: &[u8]) -> bool {
        let Target::Key(key) = target else {
            return false;
        };
        u16::try_from(key.len()).is_ok() && u8::try_from(operation.len()).is_ok()
    }

    /// A message without a body, which its header is all of.
    pub const fn empty_message(kind: MessageType) -> [u8; Self::HEADER_LEN] {
        [0, 0, 0, 0, kind as u8]
    }

    /// Whether a request asks, or the reply to such a one agrees, by its contexts, that messages on
    /// its connection may be of this protocol from the reply on.
    pub fn is_proposed_by(contexts: &[ServiceContext<'_>]) -> bool {
        contexts::find(contexts, GIOP_LITE) == Some(&contexts::GIOP_LITE_DATA)
    }

    /// Checks as [`is_proposed_by`](Self::is_proposed_by) does, for the octets of a whole reply of
    /// GIOP 1.2.
    pub fn is_agreed_by(reply: &[u8]) -> bool {
        let agreed = || {
            let header = MessageHeader::parse(reply).ok()?;
            if header.kind != MessageType::Reply || header.version() < Version::V1_2 {
                return None;
            }
            let mut r = Reader::at(reply, crate::HEADER_LEN, header.endian);
            let (_request_id, _status) = (r.read_u32().ok()?, r.read_u32().ok()?);
            for _ in 0..r.read_len().ok()? {
                let (id, data) = (r.read_u32().ok()?, r.read_octet_seq().ok()?);
                if id == GIOP_LITE {
                    return Some(data == contexts::GIOP_LITE_DATA);
                }
            }
            None
        };
        agreed().unwrap_or(false)
    }
}

impl From<GiopLite> for Protocol {
    fn from(GiopLite: GiopLite) -> Self {
        Self::Lite
    }
}

impl MessageProtocol for GiopLite {
    #[inline]
    fn header_len(self) -> usize {
        Self::HEADER_LEN
    }

    #[inline]
    fn version(self) -> Version {
        Version::V1_2
    }

    #[inline]
    fn read_header(octets: &[u8]) -> Result<MessageHeader, HeaderError> {
        let Some(([s0, s1, s2, s3, kind], _)) = octets.split_first_chunk() else {
            return Err(HeaderError::TooShort);
        };
        let size = u32::from_ne_bytes([*s0, *s1, *s2, *s3]);
        if size as usize > Self::MAX_MESSAGE - Self::HEADER_LEN {
            return Err(HeaderError::BadSize(size));
        }
        let kind = MessageType::of(*kind).filter(|kind| *kind != MessageType::Fragment);
        Ok(MessageHeader {
            protocol: Protocol::Lite,
            endian: Endian::NATIVE,
            more_fragments: false,
            kind: kind.ok_or(HeaderError::BadType(octets[4]))?,
            size,
        })
    }

    #[inline]
    fn least_len(octets: &[u8]) -> usize {
        let _ = octets;
        Self::HEADER_LEN
    }

    #[inline]
    fn write_header(self, e: &mut Encoder<'_>, kind: MessageType) -> Result<(), CdrError> {
        e.write_octets(&Self::empty_message(kind))
    }

    #[inline]
    fn write_len(message: &mut [u8], len: u32) {
        let Some((header, _)) = message.split_first_chunk_mut::<{ Self::HEADER_LEN }>() else {
            return;
        };
        let size = len.saturating_sub(Self::HEADER_LEN as u32);
        header[..4].copy_from_slice(&size.to_ne_bytes());
    }

    fn encode_request(
        self,
        e: &mut Encoder<'_>,
        header: &RequestHeader<'_>,
    ) -> Result<(), CdrError> {
        let response = match header.response {
            ResponseFlags::None => 0,
            ResponseFlags::SyncWithServer => 1,
            ResponseFlags::SyncWithTarget => 3,
        };
        let key = key_of(&header.target)?;
        let operation_len = header.operation.len().try_into();
        e.write_u8(response | has_contexts(header.contexts))?;
        e.write_u16(key_len(key)?)?;
        e.write_u32(header.request_id)?;
        e.write_u8(operation_len.map_err(|_| CdrError::LengthOverflow)?)?;
        e.write_octets(key)?;
        e.write_octets(header.operation)?;
        encode_contexts(e, header.contexts)
    }

    fn decode_request<'a>(self, d: &mut Decoder<'a>) -> Result<RequestHeader<'a>, CdrError> {
        let flags = d.read_u8()?;
        let response = match flags & !HAS_CONTEXTS {
            0 => ResponseFlags::None,
            1 => ResponseFlags::SyncWithServer,
            3 => ResponseFlags::SyncWithTarget,
            _ => return Err(CdrError::InvalidEnum),
        };
        let key_len = d.read_u16()?;
        let request_id = d.read_u32()?;
        let operation_len = d.read_u8()?;
        let key = d.read_octets(key_len.into())?;
        let operation = d.read_octets(operation_len.into())?;
        let contexts = decode_contexts(d, flags)?;
        align_body(d)?;
        Ok(RequestHeader {
            request_id,
            response,
            target: Target::Key(key),
            operation,
            contexts,
        })
    }

    #[inline]
    fn pad_request(self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        // As in GIOP, so that a body can be sent again by the other protocol.
        e.align(8)
    }

    #[inline]
    fn waits_for_target(self, request: &[u8]) -> bool {
        let flags = request.get(Self::HEADER_LEN);
        flags.is_some_and(|flags| flags & 3 == 3)
    }

    fn response_at(self) -> Option<usize> {
        Some(Self::HEADER_LEN)
    }

    fn request_id_at(self) -> Option<usize> {
        Some(REQUEST_ID_AT)
    }

    #[inline]
    fn start_reply(self, e: &mut Encoder<'_>, header: &ReplyHeader<'_>) -> Result<(), CdrError> {
        let mut octets = [0; REQUEST_ID_AT + 4];
        octets[TYPE_AT] = MessageType::Reply as u8;
        octets[Self::HEADER_LEN] = header.status as u8 | has_contexts(header.contexts);
        octets[REQUEST_ID_AT..].copy_from_slice(&header.request_id.to_ne_bytes());
        e.write_octets(&octets)?;
        encode_contexts(e, header.contexts)
    }

    fn encode_reply(self, e: &mut Encoder<'_>, header: &ReplyHeader<'_>) -> Result<(), CdrError> {
        e.write_u8(header.status as u8 | has_contexts(header.contexts))?;
        e.write_u32(header.request_id)?;
        encode_contexts(e, header.contexts)
    }

    fn decode_reply<'a>(self, d: &mut Decoder<'a>) -> Result<ReplyHeader<'a>, CdrError> {
        let status = d.read_u8()?;
        Ok(ReplyHeader {
            request_id: d.read_u32()?,
            status: ReplyStatus::of((status & !HAS_CONTEXTS).into(), Version::V1_2)?,
            contexts: decode_contexts(d, status)?,
        })
    }

    #[inline]
    fn pad_reply(self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        let _ = e;
        Ok(())
    }

    #[inline]
    fn reply_id(message: &[u8]) -> Option<u32> {
        let (_, rest) = message.split_at_checked(REQUEST_ID_AT)?;
        rest.first_chunk().map(|id| u32::from_ne_bytes(*id))
    }

    fn encode_locate_request(
        self,
        e: &mut Encoder<'_>,
        header: &LocateRequestHeader<'_>,
    ) -> Result<(), CdrError> {
        let key = key_of(&header.target)?;
        e.write_u16(key_len(key)?)?;
        e.write_u32(header.request_id)?;
        e.write_octets(key)
    }

    fn decode_locate_request<'a>(
        self,
        d: &mut Decoder<'a>,
    ) -> Result<LocateRequestHeader<'a>, CdrError> {
        let key_len = d.read_u16()?;
        Ok(LocateRequestHeader {
            request_id: d.read_u32()?,
            target: Target::Key(d.read_octets(key_len.into())?),
        })
    }

    fn encode_locate_reply(
        self,
        e: &mut Encoder<'_>,
        header: &LocateReplyHeader,
    ) -> Result<(), CdrError> {
        e.write_u8(header.status as u8)?;
        e.write_u32(header.request_id)
    }

    fn decode_locate_reply(self, d: &mut Decoder<'_>) -> Result<LocateReplyHeader, CdrError> {
        let status = d.read_u8()?;
        Ok(LocateReplyHeader {
            request_id: d.read_u32()?,
            status: LocateStatus::of(status.into(), Version::V1_2)?,
        })
    }
}

/// Returns the flag of contexts, if there are any.
fn has_contexts(contexts: &[ServiceContext<'_>]) -> u8 {
    match contexts {
        [] => 0,
        _ => HAS_CONTEXTS,
    }
}

fn encode_contexts(e: &mut Encoder<'_>, contexts: &[ServiceContext<'_>]) -> Result<(), CdrError> {
    match contexts {
        [] => Ok(()),
        _ => e.write_seq(contexts),
    }
}

fn decode_contexts<'a>(
    d: &mut Decoder<'a>,
    flags: u8,
) -> Result<&'a [ServiceContext<'a>], CdrError> {
    match flags & HAS_CONTEXTS {
        0 => Ok(&[]),
        _ => d.read_seq(),
    }
}

/// Targets are named by their keys alone.
fn key_of<'a>(target: &Target<'a>) -> Result<&'a [u8], CdrError> {
    match target {
        Target::Key(key) => Ok(key),
        Target::Profile(_) | Target::Reference { .. } => Err(CdrError::BadReference),
    }
}

fn key_len(key: &[u8]) -> Result<u16, CdrError> {
    key.len().try_into().map_err(|_| CdrError::LengthOverflow)
}

const TYPE_AT: usize = 4;
/// The offset of the identifier in a request and in its reply.
const REQUEST_ID_AT: usize = 8;
const HAS_CONTEXTS: u8 = 1 << 7;
