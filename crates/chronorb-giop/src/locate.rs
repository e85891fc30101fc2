//! Headers of locate requests and locate replies.

use chronorb_cdr::{CdrError, Decoder, Encoder};

use crate::{MessageProtocol, Target, Version};

/// The header, and all, of a locate request: CORBA 3.3 part 2, clause 9.4.5.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LocateRequestHeader<'a> {
    /// The identifier that the reply will carry.
    pub request_id: u32,
    /// The object.
    pub target: Target<'a>,
}

/// The header of a locate reply: CORBA 3.3 part 2, clause 9.4.6. The body
/// follows without padding, in GIOP 1.2 too.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LocateReplyHeader {
    /// The id of the request.
    pub request_id: u32,
    /// The result, which also determines the content of the body.
    pub status: LocateStatus,
}

/// The location of an object.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum LocateStatus {
    /// Not here. There is no body.
    UnknownObject = 0,
    /// Here. There is no body.
    ObjectHere = 1,
    /// At the [`Ior`](crate::Ior) in the body.
    ObjectForward = 2,
    /// Permanently at the [`Ior`](crate::Ior) in the body. GIOP 1.2.
    ObjectForwardPerm = 3,
    /// A [`SystemException`](crate::SystemException) is the body. GIOP 1.2.
    SystemException = 4,
    /// The [`AddressingDisposition`](crate::AddressingDisposition) to ask
    /// with is the body. GIOP 1.2.
    NeedsAddressingMode = 5,
}

/// Writes a locate request.
///
/// # Errors
/// [`CdrError::FrameFull`], and in GIOP 1.0 and 1.1 and GIOPlite those of a target that cannot be
/// written as a key.
pub fn encode_locate_request(
    e: &mut Encoder<'_>,
    protocol: impl MessageProtocol,
    header: &LocateRequestHeader<'_>,
) -> Result<(), CdrError> {
    protocol.encode_locate_request(e, header)
}

/// Writes the header of a locate reply.
///
/// # Errors
/// [`CdrError::FrameFull`]; [`CdrError::InvalidEnum`] if `protocol` does not
/// have the status.
pub fn encode_locate_reply(
    e: &mut Encoder<'_>,
    protocol: impl MessageProtocol,
    header: &LocateReplyHeader,
) -> Result<(), CdrError> {
    protocol.encode_locate_reply(e, header)
}

impl<'a> LocateRequestHeader<'a> {
    /// Reads a locate request.
    ///
    /// # Errors
    /// Those of malformed content.
    pub fn decode(d: &mut Decoder<'a>, protocol: impl MessageProtocol) -> Result<Self, CdrError> {
        protocol.decode_locate_request(d)
    }

    pub(crate) fn encode_giop(
        &self,
        e: &mut Encoder<'_>,
        version: Version,
    ) -> Result<(), CdrError> {
        e.write_u32(self.request_id)?;
        self.target.encode(e, version)
    }

    pub(crate) fn decode_giop(d: &mut Decoder<'a>, version: Version) -> Result<Self, CdrError> {
        Ok(Self {
            request_id: d.read_u32()?,
            target: Target::decode(d, version)?,
        })
    }
}

impl LocateReplyHeader {
    /// Reads the header of a locate reply, and leaves the decoder at the body.
    ///
    /// # Errors
    /// Those of malformed content.
    pub fn decode(d: &mut Decoder<'_>, protocol: impl MessageProtocol) -> Result<Self, CdrError> {
        protocol.decode_locate_reply(d)
    }

    pub(crate) fn encode_giop(
        &self,
        e: &mut Encoder<'_>,
        version: Version,
    ) -> Result<(), CdrError> {
        if version < Version::V1_2 && self.status as u32 > LocateStatus::ObjectForward as u32 {
            return Err(CdrError::InvalidEnum);
        }
        e.write_u32(self.request_id)?;
        e.write_u32(self.status as u32)
    }

    pub(crate) fn decode_giop(d: &mut Decoder<'_>, version: Version) -> Result<Self, CdrError> {
        Ok(Self {
            request_id: d.read_u32()?,
            status: LocateStatus::of(d.read_u32()?, version)?,
        })
    }
}

impl LocateStatus {
    /// Converts from the number on the wire.
    pub(crate) fn of(number: u32, version: Version) -> Result<Self, CdrError> {
        Ok(match number {
            0 => Self::UnknownObject,
            1 => Self::ObjectHere,
            2 => Self::ObjectForward,
            3 if version >= Version::V1_2 => Self::ObjectForwardPerm,
            4 if version >= Version::V1_2 => Self::SystemException,
            5 if version >= Version::V1_2 => Self::NeedsAddressingMode,
            _ => return Err(CdrError::InvalidEnum),
        })
    }
}
