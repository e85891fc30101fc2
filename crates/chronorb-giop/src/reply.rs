//! Headers of replies, and the identifier of the request that a message belongs to.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_cdr::{CdrError, Decoder, Encoder, Endian};

use crate::encapsulation::Reader;
use crate::header::usual_start;
use crate::request::align_body;
use crate::{
    HEADER_LEN, MessageHeader, MessageProtocol, MessageType, Protocol, ServiceContext, Version,
};

/// The header of a reply: CORBA 3.3 part 2, clause 9.4.3.
///
/// ```text
/// 1.0, 1.1: contexts, request_id, status
/// 1.2:      request_id, status, contexts
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReplyHeader<'a> {
    /// The id of the request.
    pub request_id: u32,
    /// The kind of the body.
    pub status: ReplyStatus,
    /// The service contexts of the reply.
    pub contexts: &'a [ServiceContext<'a>],
}

/// The kind of a reply's body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum ReplyStatus {
    /// The result, and the output parameters.
    NoException = 0,
    /// The repository id and the members of an exception.
    UserException = 1,
    /// A [`SystemException`](crate::SystemException).
    SystemException = 2,
    /// The [`Ior`](crate::Ior) of an object to send this request to.
    LocationForward = 3,
    /// The [`Ior`](crate::Ior) of an object to send all requests to. GIOP 1.2.
    LocationForwardPerm = 4,
    /// The [`AddressingDisposition`](crate::AddressingDisposition) to send
    /// the request with. GIOP 1.2.
    NeedsAddressingMode = 5,
}

/// Writes the header of a reply. The caller [pads](MessageProtocol::pad_reply) it before the body,
/// if there is one.
///
/// # Errors
/// [`CdrError::FrameFull`]; [`CdrError::InvalidEnum`] if `protocol` does not
/// have the status.
pub fn encode_reply(
    e: &mut Encoder<'_>,
    protocol: impl MessageProtocol,
    header: &ReplyHeader<'_>,
) -> Result<(), CdrError> {
    protocol.encode_reply(e, header)
}

/// Begins a reply in an empty frame: the header of the message, which
/// [`finish_message`](crate::finish_message) completes, and that of the reply.
///
/// # Errors
/// As [`encode_reply`].
#[inline]
pub fn start_reply(
    e: &mut Encoder<'_>,
    protocol: impl MessageProtocol,
    header: &ReplyHeader<'_>,
) -> Result<(), CdrError> {
    protocol.start_reply(e, header)
}

/// Begins a reply without contexts as [`start_reply`] does, at once instead of value by value, and
/// without need of padding. Returns `false`, and writes nothing, unless the protocol is GIOP 1.2 in
/// the byte order of this machine, and the frame has memory for it.
#[inline]
pub fn start_usual_reply(
    e: &mut Encoder<'_>,
    protocol: Protocol,
    request_id: u32,
    status: ReplyStatus,
) -> bool {
    if protocol != Protocol::Giop(Version::V1_2) || e.endian() != Endian::NATIVE {
        return false;
    }
    // Identifier, status and the number of contexts, which is none.
    let mut octets = USUAL_START;
    octets[HEADER_LEN..HEADER_LEN + 4].copy_from_slice(&request_id.to_ne_bytes());
    octets[HEADER_LEN + 4..HEADER_LEN + 8].copy_from_slice(&(status as u32).to_ne_bytes());
    e.write_octets(&octets).is_ok()
}

pub(crate) fn start_giop(
    e: &mut Encoder<'_>,
    version: Version,
    header: &ReplyHeader<'_>,
) -> Result<(), CdrError> {
    version.write_header(e, MessageType::Reply)?;
    header.encode_giop(e, version)
}

/// A reply of GIOP 1.2 in the byte order of this machine, without contexts; size, id and status are
/// to be filled in.
const USUAL_START: [u8; HEADER_LEN + 12] = {
    let mut octets = [0; HEADER_LEN + 12];
    let start = usual_start(MessageType::Reply);
    octets.split_at_mut(start.len()).0.copy_from_slice(&start);
    octets
};

impl<'a> ReplyHeader<'a> {
    /// Reads the header of a reply, and leaves the decoder at the body.
    ///
    /// # Errors
    /// Those of malformed content.
    #[inline]
    pub fn decode(d: &mut Decoder<'a>, protocol: impl MessageProtocol) -> Result<Self, CdrError> {
        protocol.decode_reply(d)
    }

    pub(crate) fn encode_giop(
        &self,
        e: &mut Encoder<'_>,
        version: Version,
    ) -> Result<(), CdrError> {
        if version < Version::V1_2 {
            if self.status as u32 > ReplyStatus::LocationForward as u32 {
                return Err(CdrError::InvalidEnum);
            }
            e.write_seq(self.contexts)?;
            e.write_u32(self.request_id)?;
            return e.write_u32(self.status as u32);
        }
        e.write_u32(self.request_id)?;
        e.write_u32(self.status as u32)?;
        e.write_seq(self.contexts)
    }

    /// The id of the request to which a message is the usual reply: a result without contexts, by
    /// GIOP 1.2, in the byte order of this machine. Its results begin at
    /// [`RESULT_AT`](Self::RESULT_AT). For any other reply, [`decode`](Self::decode) is needed.
    #[inline]
    pub fn id_of_plain_result(header: MessageHeader, message: &[u8]) -> Option<u32> {
        if header.protocol != Protocol::Giop(Version::V1_2) || !header.endian.is_native() {
            return None;
        }
        let octets = message.get(HEADER_LEN..)?.first_chunk::<12>()?;
        let (id, rest) = octets.split_first_chunk::<4>()?;
        (*rest == [0; 8]).then_some(u32::from_ne_bytes(*id))
    }

    /// Whether a message is the reply that [`start_reply`] begins for results without contexts, by
    /// GIOP 1.2 and in the byte order of this machine. It was not received.
    #[inline]
    pub fn is_own_result(message: &[u8]) -> bool {
        let start = message.first_chunk::<{ HEADER_LEN + 12 }>();
        start.is_some_and(|start| start[..8] == USUAL_START[..8] && start[16..] == [0; 8])
    }

    /// The position of the results in a message of the [usual form](Self::id_of_plain_result). It
    /// needs no padding.
    pub const RESULT_AT: usize = HEADER_LEN + 12;

    #[inline(never)]
    pub(crate) fn decode_giop(d: &mut Decoder<'a>, version: Version) -> Result<Self, CdrError> {
        if version < Version::V1_2 {
            return Ok(Self {
                contexts: d.read_seq()?,
                request_id: d.read_u32()?,
                status: ReplyStatus::of(d.read_u32()?, version)?,
            });
        }
        let header = Self {
            request_id: d.read_u32()?,
            status: ReplyStatus::of(d.read_u32()?, version)?,
            contexts: d.read_seq()?,
        };
        align_body(d)?;
        Ok(header)
    }
}

/// The id of the request that a whole message is, or belongs to, read from its octets
/// without changing them. There is none if they end before it.
#[inline]
pub fn reply_id(message: &[u8]) -> Option<u32> {
    Protocol::reply_id(message)
}

pub(crate) fn giop_reply_id(message: &[u8]) -> Option<u32> {
    let header = MessageHeader::parse(message).ok()?;
    let mut r = Reader::at(message, HEADER_LEN, header.endian);
    let begins_with_contexts = matches!(header.kind, MessageType::Request | MessageType::Reply);
    if header.version() < Version::V1_2 && begins_with_contexts {
        for _ in 0..r.read_len().ok()? {
            let _id = r.read_u32().ok()?;
            let _data = r.read_octet_seq().ok()?;
        }
    }
    r.read_u32().ok()
}

impl ReplyStatus {
    /// Converts from the number on the wire.
    pub(crate) fn of(number: u32, version: Version) -> Result<Self, CdrError> {
        Ok(match number {
            0 => Self::NoException,
            1 => Self::UserException,
            2 => Self::SystemException,
            3 => Self::LocationForward,
            4 if version >= Version::V1_2 => Self::LocationForwardPerm,
            5 if version >= Version::V1_2 => Self::NeedsAddressingMode,
            _ => return Err(CdrError::InvalidEnum),
        })
    }
}
