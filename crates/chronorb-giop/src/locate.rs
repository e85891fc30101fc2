use chronorb_cdr::{CdrError, Decoder, Encoder};

use crate::{Target, Version};

/// The header, and all, of a locate request: CORBA 3.3 part 2, clause 9.4.5.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LocateRequestHeader<'a> {
    /// What the reply will be known by.
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
    /// What the answer is, and so what the body is.
    pub status: LocateStatus,
}

/// Where an object is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum LocateStatus {
    /// Not here. There is no body.
    UnknownObject = 0,
    /// Here. There is no body.
    ObjectHere = 1,
    /// Where the [`Ior`](crate::Ior) in the body says.
    ObjectForward = 2,
    /// Where the [`Ior`](crate::Ior) in the body says, for good. GIOP 1.2.
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
/// [`CdrError::FrameFull`], and in GIOP 1.0 and 1.1 what keeps the target
/// from being written as a key.
pub fn encode_locate_request(
    e: &mut Encoder<'_>,
    version: Version,
    header: &LocateRequestHeader<'_>,
) -> Result<(), CdrError> {
    e.write_u32(header.request_id)?;
    header.target.encode(e, version)
}

/// Writes the header of a locate reply.
///
/// # Errors
/// [`CdrError::FrameFull`]; [`CdrError::InvalidEnum`] if `version` does not
/// have the status.
pub fn encode_locate_reply(
    e: &mut Encoder<'_>,
    version: Version,
    header: &LocateReplyHeader,
) -> Result<(), CdrError> {
    if version < Version::V1_2 && header.status as u32 > LocateStatus::ObjectForward as u32 {
        return Err(CdrError::InvalidEnum);
    }
    e.write_u32(header.request_id)?;
    e.write_u32(header.status as u32)
}

impl<'a> LocateRequestHeader<'a> {
    /// Reads a locate request.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(d: &mut Decoder<'a>, version: Version) -> Result<Self, CdrError> {
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
    /// What is wrong with it.
    pub fn decode(d: &mut Decoder<'_>, version: Version) -> Result<Self, CdrError> {
        Ok(Self {
            request_id: d.read_u32()?,
            status: match d.read_u32()? {
                0 => LocateStatus::UnknownObject,
                1 => LocateStatus::ObjectHere,
                2 => LocateStatus::ObjectForward,
                3 if version >= Version::V1_2 => LocateStatus::ObjectForwardPerm,
                4 if version >= Version::V1_2 => LocateStatus::SystemException,
                5 if version >= Version::V1_2 => LocateStatus::NeedsAddressingMode,
                _ => return Err(CdrError::InvalidEnum),
            },
        })
    }
}
