//! Headers of requests: written, read at once or value by value, and kept as offsets.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::ops::Range;

use chronorb_cdr::{CdrError, Decoder, Encoder};

use crate::target::AddressingDisposition;
use crate::{HEADER_LEN, MessageProtocol, ServiceContext, Target, Version};

/// The header of a request: CORBA 3.3 part 2, clause 9.4.2.
///
/// ```text
/// 1.0, 1.1: contexts, request_id, response_expected, (reserved,) key, operation, principal
/// 1.2:      request_id, response_flags, reserved, target, operation, contexts
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RequestHeader<'a> {
    /// The identifier that the reply will carry.
    pub request_id: u32,
    /// Whether there is to be a reply, and when.
    pub response: ResponseFlags,
    /// The object.
    pub target: Target<'a>,
    /// The name of the operation, as in IDL: ASCII, without a NUL.
    pub operation: &'a [u8],
    /// The service contexts of the request.
    pub contexts: &'a [ServiceContext<'a>],
}

/// When the reply to a request is to be sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ResponseFlags {
    /// There is none.
    None,
    /// When the server has received the request, before the servant is called. GIOP 1.0 and 1.1 do
    /// not support it.
    SyncWithServer,
    /// When the operation is completed.
    SyncWithTarget,
}

impl ResponseFlags {
    /// Whether there is to be a reply.
    pub const fn response_expected(self) -> bool {
        !matches!(self, Self::None)
    }

    /// Converts from the flags of GIOP 1.2.
    const fn of(flags: u8) -> Self {
        match flags & 3 {
            0 => Self::None,
            1 => Self::SyncWithServer,
            _ => Self::SyncWithTarget,
        }
    }
}

/// Writes the header of a request. The caller [pads](MessageProtocol::pad_request) it before the
/// body, if there is one.
///
/// # Errors
/// [`CdrError::FrameFull`], and those of the operation or, in GIOP 1.0 and
/// 1.1 and GIOPlite, of a target that cannot be written.
pub fn encode_request(
    e: &mut Encoder<'_>,
    protocol: impl MessageProtocol,
    header: &RequestHeader<'_>,
) -> Result<(), CdrError> {
    protocol.encode_request(e, header)
}

impl<'a> RequestHeader<'a> {
    /// Reads the header of a request, and leaves the decoder at the body.
    ///
    /// # Errors
    /// Those of malformed content.
    pub fn decode(d: &mut Decoder<'a>, protocol: impl MessageProtocol) -> Result<Self, CdrError> {
        protocol.decode_request(d)
    }

    /// Reads a header as [`decode`](Self::decode) does, in its place: that of a usual request is
    /// not moved, which costs as much as all the reading.
    ///
    /// # Errors
    /// Those of malformed content.
    #[inline(always)]
    pub fn decode_here(
        &mut self,
        d: &mut Decoder<'a>,
        protocol: impl MessageProtocol,
    ) -> Result<(), CdrError> {
        if protocol.version() == Version::V1_2
            && protocol.header_len() == HEADER_LEN
            && let Some(has_contexts) = self.decode_at_once(d)
        {
            return if has_contexts {
                self.decode_contexts(d)
            } else {
                Ok(())
            };
        }
        *self = protocol.decode_request(d)?;
        Ok(())
    }

    /// A header without content.
    pub const EMPTY: Self = Self {
        request_id: 0,
        response: ResponseFlags::None,
        target: Target::Key(&[]),
        operation: &[],
        contexts: &[],
    };

    pub(crate) fn encode_giop(
        &self,
        e: &mut Encoder<'_>,
        version: Version,
    ) -> Result<(), CdrError> {
        if version < Version::V1_2 {
            e.write_seq(self.contexts)?;
            e.write_u32(self.request_id)?;
            e.write_bool(self.response.response_expected())?;
            if version == Version::V1_1 {
                e.write_octets(&[0; 3])?;
            }
            self.target.encode(e, version)?;
            encode_operation(e, self.operation)?;
            return e.write_octet_seq(NO_PRINCIPAL);
        }
        e.write_u32(self.request_id)?;
        e.write_u8(match self.response {
            ResponseFlags::None => 0,
            ResponseFlags::SyncWithServer => 1,
            ResponseFlags::SyncWithTarget => 3,
        })?;
        e.write_octets(&[0; 3])?;
        self.target.encode(e, version)?;
        encode_operation(e, self.operation)?;
        e.write_seq(self.contexts)
    }

    #[inline(never)]
    pub(crate) fn decode_giop(d: &mut Decoder<'a>, version: Version) -> Result<Self, CdrError> {
        let mut header = Self::EMPTY;
        if version == Version::V1_2
            && let Some(has_contexts) = header.decode_at_once(d)
        {
            if has_contexts {
                header.decode_contexts(d)?;
            }
            return Ok(header);
        }
        Self::decode_by_parts(d, version)
    }

    #[inline(never)]
    fn decode_contexts(&mut self, d: &mut Decoder<'a>) -> Result<(), CdrError> {
        if let Some(contexts) = read_contexts_at_once(d)? {
            self.contexts = contexts;
            return Ok(());
        }
        self.contexts = d.read_seq()?;
        align_body(d)
    }

    /// Reads a header of GIOP 1.2 with a target by key, in the byte order of this machine, at once
    /// instead of value by value. Returns whether it has contexts, which are left to be read. Takes
    /// nothing of any other header, nor of a malformed one.
    #[inline(always)]
    fn decode_at_once(&mut self, d: &mut Decoder<'a>) -> Option<bool> {
        let octets = d.lookahead(HEADER_PHASE)?;
        let (fixed, _) = octets.split_first_chunk::<KEY_AT>()?;
        let &[i0, i1, i2, i3, flags, _, _, _, a0, a1, _, _, k0, k1, k2, k3] = fixed;
        let key_len = u32::from_ne_bytes([k0, k1, k2, k3]) as usize;
        let is_key = u16::from_ne_bytes([a0, a1]) == AddressingDisposition::Key as u16;
        if !is_key || key_len > octets.len() {
            return None;
        }
        let operation_at = (KEY_AT + key_len + 3) & !3;
        let (len, rest) = octets.get(operation_at..)?.split_first_chunk()?;
        let operation_len = u32::from_ne_bytes(*len) as usize;
        let (&0, _) = rest.get(..operation_len)?.split_last()? else {
            return None;
        };
        let contexts_at = (operation_at + 4 + operation_len + 3) & !3;
        let (contexts, rest) = octets.get(contexts_at..)?.split_first_chunk()?;
        let has_contexts = *contexts != [0; 4];
        let taken = if has_contexts {
            contexts_at
        } else if rest.is_empty() {
            contexts_at + 4
        } else {
            // The body is aligned to 8 octets from the header of the message.
            ((contexts_at + 4 + HEADER_PHASE + 7) & !7) - HEADER_PHASE
        };
        let octets = d.take_ahead(taken)?;
        self.request_id = u32::from_ne_bytes([i0, i1, i2, i3]);
        self.response = ResponseFlags::of(flags);
        self.target = Target::Key(octets.get(KEY_AT..)?.get(..key_len)?);
        self.operation = octets.get(operation_at + 4..)?.get(..operation_len - 1)?;
        self.contexts = &[];
        Some(has_contexts)
    }

    #[inline(never)]
    fn decode_by_parts(d: &mut Decoder<'a>, version: Version) -> Result<Self, CdrError> {
        let is_old = version < Version::V1_2;
        let mut contexts: &[ServiceContext<'_>] = &[];
        if is_old {
            contexts = d.read_seq()?;
        }
        let request_id = d.read_u32()?;
        let response = if is_old {
            Self::decode_old_flags(d, version)?
        } else {
            // Together with the reserved octets after them.
            let [flags, _, _, _] = *d.read_array_ref::<u8, 4>()?;
            ResponseFlags::of(flags)
        };
        let target = Target::decode(d, version)?;
        let operation = decode_operation(d)?;
        if is_old {
            let _principal = d.read_octet_seq()?;
        } else {
            contexts = d.read_seq()?;
            align_body(d)?;
        }
        Ok(Self {
            request_id,
            response,
            target,
            operation,
            contexts,
        })
    }

    #[cold]
    fn decode_old_flags(d: &mut Decoder<'_>, version: Version) -> Result<ResponseFlags, CdrError> {
        let response = if d.read_bool()? {
            ResponseFlags::SyncWithTarget
        } else {
            ResponseFlags::None
        };
        if version == Version::V1_1 {
            d.read_octets(3)?;
        }
        Ok(response)
    }
}

/// Reads the contexts of a request, in the byte order of this machine, in a loop of their own, and
/// the padding before the body. Takes nothing of a malformed list, nor of one in several fragments.
#[inline(always)]
fn read_contexts_at_once<'a>(
    d: &mut Decoder<'a>,
) -> Result<Option<&'a [ServiceContext<'a>]>, CdrError> {
    let Some((count, end)) = contexts_ahead(d) else {
        return Ok(None);
    };
    let octets = d.take_ahead(end).ok_or(CdrError::EndOfData)?;
    if count == 1 {
        // The usual number, without a loop.
        let (id, data) = context_at(octets, 4).ok_or(CdrError::EndOfData)?;
        return d
            .arena()
            .fill(1, |_| Ok(ServiceContext { id, data }))
            .map(Some);
    }
    let mut at = 4;
    let context = |_| {
        let (id, data) = context_at(octets, at).ok_or(CdrError::EndOfData)?;
        at = (at + CONTEXT_LEN + data.len() + 3) & !3;
        Ok(ServiceContext { id, data })
    };
    d.arena().fill(count, context).map(Some)
}

/// Returns the number of contexts that follow, and the octets that they take with the padding
/// before a body.
#[inline(always)]
fn contexts_ahead(d: &Decoder<'_>) -> Option<(usize, usize)> {
    let ahead = |phase| Some((phase, d.lookahead(phase)?));
    let (phase, octets) = ahead(HEADER_PHASE).or_else(|| ahead(HEADER_PHASE ^ 4))?;
    let (count, _) = octets.split_first_chunk()?;
    let count = u32::from_ne_bytes(*count) as usize;
    // So a great number costs no more than the octets that are there.
    if count > octets.len() / CONTEXT_LEN {
        return None;
    }
    let mut end = 4;
    for _ in 0..count {
        let at = (end + 3) & !3;
        let (_, data) = context_at(octets, at)?;
        end = at + CONTEXT_LEN + data.len();
    }
    if end < octets.len() {
        // The body is aligned to 8 octets from the header of the message.
        end = ((end + phase + 7) & !7) - phase;
    }
    Some((count, end))
}

/// Returns identifier and content of the context at a position.
#[inline(always)]
fn context_at(octets: &[u8], at: usize) -> Option<(u32, &[u8])> {
    let (id, rest) = octets.get(at..)?.split_first_chunk()?;
    let (len, rest) = rest.split_first_chunk()?;
    let len = u32::from_ne_bytes(*len) as usize;
    Some((u32::from_ne_bytes(*id), rest.get(..len)?))
}

/// Writes the body of a CancelRequest.
///
/// # Errors
/// [`CdrError::FrameFull`]
pub fn encode_cancel_request(e: &mut Encoder<'_>, request_id: u32) -> Result<(), CdrError> {
    e.write_u32(request_id)
}

/// Reads the body of a CancelRequest: the id of the request.
///
/// # Errors
/// [`CdrError::EndOfData`]
pub fn decode_cancel_request(d: &mut Decoder<'_>) -> Result<u32, CdrError> {
    d.read_u32()
}

/// Writes the name of an operation. It is a string that needs no conversion
/// in any code set, and no search for a NUL.
fn encode_operation(e: &mut Encoder<'_>, operation: &[u8]) -> Result<(), CdrError> {
    e.write_len(operation.len() + 1)?;
    e.write_octets(operation)?;
    e.write_u8(0)
}

#[inline]
fn decode_operation<'a>(d: &mut Decoder<'a>) -> Result<&'a [u8], CdrError> {
    match d.read_octet_seq()?.split_last() {
        Some((0, operation)) => Ok(operation),
        _ => Err(CdrError::UnterminatedString),
    }
}

/// Skips the padding that GIOP 1.2 puts between the request header and the body. A request without
/// a body has no padding.
#[inline]
pub(crate) fn align_body(d: &mut Decoder<'_>) -> Result<(), CdrError> {
    if d.is_empty() {
        return Ok(());
    }
    d.align(8)
}

/// The identity of the caller: an obsolete field that every ORB leaves empty.
const NO_PRINCIPAL: &[u8] = &[];

/// The places of a request header's parts in its message. A thread that continues with the message
/// later has the header again by them, without decoding it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HeaderPlaces {
    request_id: u32,
    response: ResponseFlags,
    key: Range<usize>,
    operation: Range<usize>,
    contexts: Vec<(u32, Range<usize>)>,
    /// The octets from the end of the message header to the body.
    len: usize,
}

impl HeaderPlaces {
    /// Records the places of a header whose decoding has left `body`. `None` if the object key is
    /// not in the message itself, as that of a whole reference, or if there is no memory. The
    /// header is then decoded again.
    pub fn of(
        header: &RequestHeader<'_>,
        body: Decoder<'_>,
        protocol: impl MessageProtocol,
    ) -> Option<Self> {
        let len = body.position().checked_sub(protocol.header_len())?;
        let start = body.into_rest().as_ptr().addr().checked_sub(len)?;
        let place = |part: &[u8]| {
            let from = part.as_ptr().addr().checked_sub(start)?;
            let to = from.checked_add(part.len())?;
            (to <= len).then_some(from..to)
        };
        let mut contexts = Vec::new();
        contexts.try_reserve_exact(header.contexts.len()).ok()?;
        for context in header.contexts.iter() {
            contexts.push((context.id, place(context.data)?));
        }
        Some(Self {
            request_id: header.request_id,
            response: header.response,
            key: place(header.target.key()?)?,
            operation: place(header.operation)?,
            contexts,
            len,
        })
    }

    /// Returns the header from the decoder of its message, which is left at the body.
    ///
    /// # Errors
    /// [`CdrError::EndOfData`] for another message; [`CdrError::ArenaFull`].
    pub fn header<'a>(&self, d: &mut Decoder<'a>) -> Result<RequestHeader<'a>, CdrError> {
        let octets = d.read_octets(self.len)?;
        let part = |place: &Range<usize>| octets.get(place.clone()).ok_or(CdrError::EndOfData);
        let context = |index: usize| {
            let (id, place) = &self.contexts[index];
            let data = part(place)?;
            Ok(ServiceContext { id: *id, data })
        };
        Ok(RequestHeader {
            request_id: self.request_id,
            response: self.response,
            target: Target::Key(part(&self.key)?),
            operation: part(&self.operation)?,
            contexts: d.arena().fill(self.contexts.len(), context)?,
        })
    }
}

/// The position of a request header after a multiple of 8 octets.
const HEADER_PHASE: usize = HEADER_LEN % 8;
/// Octets of a service context before its content.
const CONTEXT_LEN: usize = 8;
/// Octets of a request header before the octets of its key.
const KEY_AT: usize = 16;

#[cfg(test)]
mod tests {
    use chronorb_cdr::{Arena, Frame};

    use super::*;
    use crate::{MessageHeader, MessageType, finish_message, start_message};

    fn comes_back(protocol: Version) {
        let contexts = [
            ServiceContext {
                id: 7,
                data: &[1, 2, 3],
            },
            ServiceContext { id: 9, data: &[] },
        ];
        let sent = RequestHeader {
            request_id: 5,
            response: ResponseFlags::SyncWithTarget,
            target: Target::Key(b"key"),
            operation: b"add",
            contexts: &contexts,
        };
        let mut frame = Frame::new(0, usize::MAX);
        let mut e = start_message(&mut frame, protocol, MessageType::Request).expect("room");
        encode_request(&mut e, protocol, &sent).expect("room");
        protocol.pad_request(&mut e).expect("room");
        e.write_u32(42).expect("room");
        finish_message(&mut frame);

        let arena = Arena::new(1 << 10);
        let message = MessageHeader::parse(frame.as_slice()).expect("it was encoded");
        let mut d = message.decoder(&mut frame, &arena);
        let header = RequestHeader::decode(&mut d, protocol).expect("it was encoded");
        let places = HeaderPlaces::of(&header, d, protocol).expect("the key is in the message");
        let later = Arena::new(1 << 10);
        let mut d = message.decoder(&mut frame, &later);
        assert_eq!(places.header(&mut d), Ok(sent));
        assert_eq!(d.read_u32(), Ok(42));
        let mut other = Frame::new(0, usize::MAX);
        let mut d = message.decoder(&mut other, &later);
        assert_eq!(places.header(&mut d), Err(CdrError::EndOfData));
    }

    #[test]
    fn a_header_comes_back_from_its_places() {
        comes_back(Version::V1_0);
        comes_back(Version::V1_2);
    }
}
