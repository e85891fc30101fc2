//! The headers of messages, and their types and versions.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::fmt;

use chronorb_cdr::{Arena, CdrError, CharSet, Decoder, Encoder, Endian, Frame, TextForm, WideForm};

use crate::{MessageProtocol, Protocol};

/// Number of octets of the header that every message of GIOP starts with.
pub const HEADER_LEN: usize = 12;

/// A version of GIOP, and of IIOP.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Version {
    /// The first number.
    pub major: u8,
    /// The second number.
    pub minor: u8,
}

impl Version {
    /// GIOP 1.0.
    pub const V1_0: Self = Self::new(1, 0);
    /// GIOP 1.1: fragments.
    pub const V1_1: Self = Self::new(1, 1);
    /// GIOP 1.2: the newest version that is in use.
    pub const V1_2: Self = Self::new(1, 2);

    /// Makes a version, known or not.
    pub const fn new(major: u8, minor: u8) -> Self {
        Self { major, minor }
    }

    /// Whether it is one of 1.0, 1.1 and 1.2.
    pub const fn is_supported(self) -> bool {
        self.major == 1 && self.minor <= 2
    }

    /// The form of `wchar` and `wstring` in this version.
    pub const fn wide_form(self) -> WideForm {
        match self.minor {
            0 => WideForm::Illegal,
            1 => WideForm::Ucs2,
            _ => WideForm::Utf16,
        }
    }

    /// The form of text in this version if `char` and `string` travel in `narrow`.
    pub const fn text(self, narrow: CharSet) -> TextForm {
        TextForm {
            narrow,
            wide: self.wide_form(),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The type of a message.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(u8)]
pub enum MessageType {
    /// A call, from the client.
    Request = 0,
    /// The answer to a call.
    Reply = 1,
    /// The client does not wait for a reply any more.
    CancelRequest = 2,
    /// The question where an object is, from the client.
    LocateRequest = 3,
    /// The answer to a locate request.
    LocateReply = 4,
    /// The sender closes the connection, and answers no more requests.
    CloseConnection = 5,
    /// The last message could not be understood.
    MessageError = 6,
    /// The next part of a message.
    Fragment = 7,
}

impl MessageType {
    const ALL: [Self; 8] = [
        Self::Request,
        Self::Reply,
        Self::CancelRequest,
        Self::LocateRequest,
        Self::LocateReply,
        Self::CloseConnection,
        Self::MessageError,
        Self::Fragment,
    ];

    /// Converts from the number on the wire.
    #[inline]
    pub(crate) fn of(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// The header that every message starts with; in GIOP:
///
/// ```text
/// 0        4       5       6        7      8                 12
/// | "GIOP" | major | minor | flags  | type | size of the rest |
/// ```
///
/// Bit 0 of the flags is the byte order, bit 1 is set if fragments follow. CORBA 3.3 part 2, clause
/// 9.4.1. [`GiopLite`](crate::GiopLite) has only the type and the size of it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct MessageHeader {
    /// The protocol that the message is of, and its version.
    pub protocol: Protocol,
    /// The byte order of the message.
    pub endian: Endian,
    /// Whether fragments of this message follow.
    pub more_fragments: bool,
    /// The type of the message.
    pub kind: MessageType,
    /// Number of octets after the header.
    pub size: u32,
}

/// The reason why octets are not the header of a message. The answer is a MessageError, as nothing
/// of the message can be trusted.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// There are fewer octets than a header has.
    #[error("the octets end before the header of the message does")]
    TooShort,
    /// The first octets are not "GIOP": the sender speaks another protocol.
    #[error("the message does not start with \"GIOP\"")]
    BadMagic,
    /// A version that is not 1.0, 1.1 or 1.2.
    #[error("GIOP {0} is not supported")]
    BadVersion(Version),
    /// The number of a message type that the version does not have.
    #[error("there is no message type {0}")]
    BadType(u8),
    /// A message of GIOPlite is greater than such a message may be: the sender speaks another
    /// protocol.
    #[error("a message of GIOPlite does not have {0} octets")]
    BadSize(u32),
}

impl MessageHeader {
    /// Reads the header from the first octets of a message of GIOP.
    ///
    /// # Errors
    /// See [`HeaderError`].
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, HeaderError> {
        let Some((header, _)) = bytes.split_first_chunk::<HEADER_LEN>() else {
            return Err(if MAGIC.starts_with(&bytes[..bytes.len().min(4)]) {
                HeaderError::TooShort
            } else {
                HeaderError::BadMagic
            });
        };
        let &[m0, m1, m2, m3, major, minor, flags, kind, s0, s1, s2, s3] = header;
        if [m0, m1, m2, m3] != *MAGIC {
            return Err(HeaderError::BadMagic);
        }
        let version = Version::new(major, minor);
        if !version.is_supported() {
            return Err(HeaderError::BadVersion(version));
        }
        let bad_type = HeaderError::BadType(kind);
        let kind = MessageType::of(kind).ok_or(bad_type)?;
        if kind == MessageType::Fragment && version == Version::V1_0 {
            return Err(bad_type);
        }
        let endian = Endian::from_flag(flags & FLAG_LITTLE != 0);
        let size = [s0, s1, s2, s3];
        Ok(Self {
            protocol: Protocol::Giop(version),
            endian,
            more_fragments: version > Version::V1_0 && flags & FLAG_MORE != 0,
            kind,
            size: match endian {
                Endian::Big => u32::from_be_bytes(size),
                Endian::Little => u32::from_le_bytes(size),
            },
        })
    }

    /// Returns the header of a message that is a usual request, and nothing but that: of GIOP 1.2,
    /// in the byte order of this machine, not in fragments, and with a reply after the operation.
    #[inline]
    pub(crate) fn of_usual_request(message: &[u8]) -> Option<Self> {
        // The flags follow the request identifier.
        let flags = message.get(HEADER_LEN + 4)?;
        Self::of_usual(message, MessageType::Request).filter(|_| flags & 3 == 3)
    }

    /// Returns the header of a message that is of this kind, and nothing but that: of GIOP 1.2, in
    /// the byte order of this machine, and not in fragments.
    #[inline(always)]
    pub(crate) fn of_usual(message: &[u8], kind: MessageType) -> Option<Self> {
        let (start, rest) = message.split_first_chunk::<SIZE_AT>()?;
        let (size, body) = rest.split_first_chunk()?;
        let size = u32::from_ne_bytes(*size);
        let is_usual = *start == usual_start(kind) && body.len() == size as usize;
        is_usual.then_some(Self {
            protocol: Protocol::Giop(Version::V1_2),
            endian: Endian::NATIVE,
            more_fragments: false,
            kind,
            size,
        })
    }

    /// The octets of the header in GIOP.
    #[inline]
    pub fn to_bytes(self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[..4].copy_from_slice(MAGIC);
        let version = self.version();
        bytes[4] = version.major;
        bytes[5] = version.minor;
        bytes[FLAGS_AT] = (u8::from(self.endian.is_little()) * FLAG_LITTLE)
            | (u8::from(self.more_fragments) * FLAG_MORE);
        bytes[7] = self.kind as u8;
        bytes[SIZE_AT..].copy_from_slice(&match self.endian {
            Endian::Big => self.size.to_be_bytes(),
            Endian::Little => self.size.to_le_bytes(),
        });
        bytes
    }

    /// Number of octets of the whole message.
    pub fn message_len(&self) -> usize {
        self.protocol
            .header_len()
            .saturating_add(self.size as usize)
    }

    /// The version of GIOP, or that by whose rules its values are written.
    #[inline]
    pub fn version(&self) -> Version {
        self.protocol.version()
    }

    /// Returns a decoder of the octets after the header of the message.
    #[inline]
    pub fn decoder<'a>(&self, message: &'a mut Frame, arena: &'a Arena) -> Decoder<'a> {
        message.decoder(self.protocol.header_len(), self.endian, arena)
    }
}

/// Clears `frame` and begins a message in it, in the byte order of this
/// machine. The body goes into the encoder; then [`finish_message`] completes
/// the header.
///
/// # Errors
/// [`CdrError::FrameFull`] if the frame cannot hold a header.
#[inline]
pub fn start_message(
    frame: &mut Frame,
    protocol: impl MessageProtocol,
    kind: MessageType,
) -> Result<Encoder<'_>, CdrError> {
    start_message_in(frame, protocol, kind, Endian::NATIVE)
}

/// Starts a message as [`start_message`] does, in the given byte order. GIOPlite has no byte order.
///
/// # Errors
/// [`CdrError::FrameFull`] if the frame cannot hold a header.
pub fn start_message_in(
    frame: &mut Frame,
    protocol: impl MessageProtocol,
    kind: MessageType,
    endian: Endian,
) -> Result<Encoder<'_>, CdrError> {
    frame.clear();
    let text = protocol.version().text(CharSet::Latin1);
    let mut e = Encoder::new(frame, endian).with_text(text);
    protocol.write_header(&mut e, kind)?;
    Ok(e)
}

/// Writes the header of a message, which [`finish_message`] completes, at the start of an empty
/// frame.
///
/// # Errors
/// [`CdrError::FrameFull`] if the frame cannot hold a header.
#[inline]
pub fn write_header(
    e: &mut Encoder<'_>,
    protocol: impl MessageProtocol,
    kind: MessageType,
) -> Result<(), CdrError> {
    protocol.write_header(e, kind)
}

/// The header of a message of GIOP whose length is not known yet.
#[inline]
pub(crate) fn giop_header(
    e: &Encoder<'_>,
    version: Version,
    kind: MessageType,
) -> [u8; HEADER_LEN] {
    let header = MessageHeader {
        protocol: Protocol::Giop(version),
        endian: e.endian(),
        more_fragments: false,
        kind,
        size: 0,
    };
    header.to_bytes()
}

/// Writes into the header of the message in `frame` how long the message is.
/// A frame without a header stays as it is.
#[inline]
pub fn finish_message(frame: &mut Frame) {
    // The length of a frame fits into an `unsigned long`.
    let len = frame.len() as u32;
    set_message_len(frame, len);
}

/// Finishes a message as [`finish_message`] does, of `len` octets, header included, not all of
/// which are in the frame.
#[inline]
pub fn set_message_len(frame: &mut Frame, len: u32) {
    Protocol::write_len(frame.as_mut_slice(), len);
}

/// Writes into the header of a message of GIOP how long it is.
#[inline]
pub(crate) fn write_giop_len(message: &mut [u8], len: u32) {
    let Some((header, _)) = message.split_first_chunk_mut::<HEADER_LEN>() else {
        return;
    };
    let little = header[FLAGS_AT] & FLAG_LITTLE != 0;
    let size = len.saturating_sub(HEADER_LEN as u32);
    header[SIZE_AT..].copy_from_slice(&match Endian::from_flag(little) {
        Endian::Big => size.to_be_bytes(),
        Endian::Little => size.to_le_bytes(),
    });
}

/// Clears the flag of following fragments in the header of the message in `frame`.
pub(crate) fn clear_more_fragments(frame: &mut Frame) {
    if let Some(flags) = frame.as_mut_slice().get_mut(FLAGS_AT) {
        *flags &= !FLAG_MORE;
    }
}

pub(crate) const MAGIC: &[u8; 4] = b"GIOP";

const FLAGS_AT: usize = 6;
const SIZE_AT: usize = 8;

/// The start of a message of GIOP 1.2 in the byte order of this machine, not in fragments.
pub(crate) const fn usual_start(kind: MessageType) -> [u8; SIZE_AT] {
    let endian = Endian::NATIVE.is_little() as u8;
    [b'G', b'I', b'O', b'P', 1, 2, endian, kind as u8]
}
const FLAG_LITTLE: u8 = 1;
const FLAG_MORE: u8 = 2;
