use std::fmt;

use chronorb_cdr::{CdrError, CharSet, Encoder, Endian, Frame, TextForm, WideForm};

/// Number of octets of the header that every message starts with.
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

/// What a message is.
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
    /// The sender will close the connection, and answers no more requests.
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
}

/// The header that every message starts with.
///
/// ```text
/// 0        4       5       6        7      8                 12
/// | "GIOP" | major | minor | flags  | type | size of the rest |
/// ```
///
/// Bit 0 of the flags is the byte order, bit 1 says that fragments follow.
/// CORBA 3.3 part 2, clause 9.4.1.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct MessageHeader {
    /// The version of the message.
    pub version: Version,
    /// The byte order of the message.
    pub endian: Endian,
    /// Whether fragments of this message follow.
    pub more_fragments: bool,
    /// What the message is.
    pub kind: MessageType,
    /// Number of octets after the header.
    pub size: u32,
}

/// Why octets are not the header of a message. The answer is a MessageError,
/// as nothing of the message can be trusted.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// There are fewer than [`HEADER_LEN`] octets.
    #[error("a message header has 12 octets")]
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
}

impl MessageHeader {
    /// Reads the header from the first octets of a message.
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
        let kind = *MessageType::ALL.get(usize::from(kind)).ok_or(bad_type)?;
        if kind == MessageType::Fragment && version == Version::V1_0 {
            return Err(bad_type);
        }
        let endian = Endian::from_flag(flags & FLAG_LITTLE != 0);
        let size = [s0, s1, s2, s3];
        Ok(Self {
            version,
            endian,
            more_fragments: version > Version::V1_0 && flags & FLAG_MORE != 0,
            kind,
            size: match endian {
                Endian::Big => u32::from_be_bytes(size),
                Endian::Little => u32::from_le_bytes(size),
            },
        })
    }

    /// The octets of the header.
    #[inline]
    pub fn to_bytes(self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[..4].copy_from_slice(MAGIC);
        bytes[4] = self.version.major;
        bytes[5] = self.version.minor;
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
        HEADER_LEN.saturating_add(self.size as usize)
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
    version: Version,
    kind: MessageType,
) -> Result<Encoder<'_>, CdrError> {
    start_message_in(frame, version, kind, Endian::NATIVE)
}

/// As [`start_message`], in a byte order of choice.
///
/// # Errors
/// [`CdrError::FrameFull`] if the frame cannot hold a header.
pub fn start_message_in(
    frame: &mut Frame,
    version: Version,
    kind: MessageType,
    endian: Endian,
) -> Result<Encoder<'_>, CdrError> {
    frame.clear();
    let mut e = Encoder::new(frame, endian).with_text(version.text(CharSet::Latin1));
    write_header(&mut e, version, kind)?;
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
    version: Version,
    kind: MessageType,
) -> Result<(), CdrError> {
    e.write_octets(&message_header(e, version, kind))
}

/// The header of a message whose length is not known yet.
#[inline]
pub(crate) fn message_header(
    e: &Encoder<'_>,
    version: Version,
    kind: MessageType,
) -> [u8; HEADER_LEN] {
    let header = MessageHeader {
        version,
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
    // A frame is never longer than an `unsigned long` can say.
    let len = frame.len() as u32;
    let Some((header, _)) = frame.as_mut_slice().split_first_chunk_mut::<HEADER_LEN>() else {
        return;
    };
    let little = header[FLAGS_AT] & FLAG_LITTLE != 0;
    let size = len - HEADER_LEN as u32;
    header[SIZE_AT..].copy_from_slice(&match Endian::from_flag(little) {
        Endian::Big => size.to_be_bytes(),
        Endian::Little => size.to_le_bytes(),
    });
}

/// Says in the header of the message in `frame` that no fragments follow.
pub(crate) fn clear_more_fragments(frame: &mut Frame) {
    if let Some(flags) = frame.as_mut_slice().get_mut(FLAGS_AT) {
        *flags &= !FLAG_MORE;
    }
}

pub(crate) const MAGIC: &[u8; 4] = b"GIOP";

const FLAGS_AT: usize = 6;
const SIZE_AT: usize = 8;
const FLAG_LITTLE: u8 = 1;
const FLAG_MORE: u8 = 2;
