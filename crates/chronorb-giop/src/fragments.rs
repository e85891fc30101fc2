//! Messages that come in parts: CORBA 3.3 part 2, clause 9.4.9.
//!
//! GIOP 1.2 names in each fragment the request that it belongs to, so that
//! messages may be mixed; in GIOP 1.1 one message at a time is in parts.

mod pieces;

use chronorb_cdr::{CdrError, Endian, Frame};

use crate::encapsulation::Reader;
use crate::header::clear_more_fragments;
use crate::{
    HEADER_LEN, HeaderError, MessageHeader, MessageProtocol, MessageType, Protocol, Version,
    finish_message, reply_id,
};

pub use pieces::{Piece, Pieces};

/// How much [`Reassembly`] will hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Number of messages that are in parts at a time.
    pub messages: usize,
    /// Number of octets of all these messages together. The headers of fragments do not count.
    pub bytes: usize,
}

/// The greatest length of a message that is skipped rather than refused, as a multiple of the limit
/// that it is beyond. All octets of its parts count, the headers of fragments too.
pub const SKIPPED_TIMES: usize = 8;

/// Number of octets that are kept of a message that is skipped: room for the header of its request.
pub const KEPT_OF_SKIPPED: usize = 16 << 10;

/// What the last part of a message makes of it.
#[derive(Debug)]
pub enum Joined {
    /// The whole message.
    Whole(Frame),
    /// The beginning of a message that was skipped, with a header of its own length, and why it
    /// was: [`CdrError::FrameFull`] where it is greater than the limit, or
    /// [`CdrError::OutOfMemory`].
    Beginning(Frame, CdrError),
}

impl Default for Limits {
    /// Eight messages and one mebibyte.
    fn default() -> Self {
        Self {
            messages: 8,
            bytes: 1 << 20,
        }
    }
}

/// Why a part of a message cannot be accepted. The connection cannot be used
/// any further: the answer is a MessageError.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FragmentError {
    /// The message has no proper header, or not the length that it says.
    #[error("the message is malformed: {0}")]
    Header(#[from] HeaderError),
    /// The message is too short to say which request it belongs to.
    #[error("the message is too short to name its request")]
    TooShort,
    /// A message of this type and version is never in parts, or is whole.
    #[error("a message of type {0:?} is no part of one in fragments")]
    NotInParts(MessageType),
    /// A fragment belongs to no message.
    #[error("the fragment belongs to no message")]
    Unexpected,
    /// A message in parts starts while one of the same request id, or in GIOP
    /// 1.1 any, is not whole.
    #[error("a message in fragments starts before the last one is whole")]
    AlreadyOpen,
    /// A fragment has another version or byte order than its message.
    #[error("the fragment has another version or byte order than its message")]
    Inconsistent,
    /// More messages are in parts than the limit allows.
    #[error("too many messages are in fragments at a time")]
    TooMany,
    /// The message is greater than the limit allows.
    #[error("the message in fragments is greater than the limit")]
    TooLarge,
    /// There is no memory for the message.
    #[error("there is no memory for the message in fragments")]
    NoMemory,
}

/// Joins the parts of messages of one connection.
#[derive(Debug)]
pub struct Reassembly {
    limits: Limits,
    open: Vec<Open>,
    bytes: usize,
}

impl Reassembly {
    /// Makes one that holds nothing yet. It takes no memory until a message
    /// comes in parts.
    pub const fn new(limits: Limits) -> Self {
        Self {
            limits,
            open: Vec::new(),
            bytes: 0,
        }
    }

    /// Takes a part of a message, in the order in which they came: a message
    /// of which [fragments follow](MessageHeader::more_fragments), or a
    /// fragment. The result of the last part is the whole message, with a
    /// header that says so; it is to be read by [`Frame::decoder`], as in GIOP
    /// 1.1 alignment begins anew in each fragment.
    ///
    /// A CancelRequest is taken too, of GIOPlite as well: the message that it is about is forgotten.
    ///
    /// # Errors
    /// See [`FragmentError`].
    pub fn push(&mut self, part: &[u8]) -> Result<Option<Frame>, FragmentError> {
        let header = Protocol::read_header(part)?;
        if part.len() != header.message_len() {
            return Err(HeaderError::TooShort.into());
        }
        match self.take(header, part, Skips::Nothing)? {
            None => Ok(None),
            Some(Joined::Whole(frame)) => Ok(Some(frame)),
            Some(Joined::Beginning(_, cause)) => Err(cause.into()),
        }
    }

    /// Takes a part as [`push`](Self::push) does, and skips messages that are greater than the
    /// limit, up to [`SKIPPED_TIMES`] the limit, or find no memory: of such a message at most
    /// [`KEPT_OF_SKIPPED`] octets are kept. `part` may be the beginning of a part whose rest was
    /// skipped; `cut` says why, and makes the message one that is skipped.
    ///
    /// # Errors
    /// See [`FragmentError`].
    pub fn push_or_skip(
        &mut self,
        part: &[u8],
        cut: Option<CdrError>,
    ) -> Result<Option<Joined>, FragmentError> {
        let header = Protocol::read_header(part)?;
        if cut.is_none() && part.len() != header.message_len() {
            return Err(HeaderError::TooShort.into());
        }
        self.take(header, part, cut.map_or(Skips::Beyond, Skips::This))
    }

    /// Number of messages of which parts are missing.
    pub fn open_messages(&self) -> usize {
        self.open.len()
    }

    /// Number of octets of messages that are kept here; zero if no message is in parts.
    pub fn octets(&self) -> usize {
        self.bytes
    }

    fn take(
        &mut self,
        header: MessageHeader,
        part: &[u8],
        skips: Skips,
    ) -> Result<Option<Joined>, FragmentError> {
        match header.kind {
            MessageType::Fragment => self.join(header, part, skips),
            MessageType::CancelRequest => {
                self.cancel(part);
                Ok(None)
            }
            _ if header.more_fragments => self.open(header, part, skips).map(|()| None),
            kind => Err(FragmentError::NotInParts(kind)),
        }
    }

    fn open(
        &mut self,
        header: MessageHeader,
        message: &[u8],
        skips: Skips,
    ) -> Result<(), FragmentError> {
        let request_id = match (header.kind, header.version()) {
            (MessageType::Request | MessageType::Reply, Version::V1_1) => None,
            (
                MessageType::Request
                | MessageType::Reply
                | MessageType::LocateRequest
                | MessageType::LocateReply,
                Version::V1_2,
            ) => Some(first_u32(header.endian, message).ok_or(FragmentError::TooShort)?),
            (kind, _) => return Err(FragmentError::NotInParts(kind)),
        };
        if self.open.iter().any(|open| open.request_id == request_id) {
            return Err(FragmentError::AlreadyOpen);
        }
        if self.open.len() >= self.limits.messages {
            return Err(FragmentError::TooMany);
        }
        let received = self.received(0, header)?;
        let mut frame = Frame::new(0, self.limits.bytes.max(KEPT_OF_SKIPPED));
        let kept = self.fits(skips, message.len()).and_then(|()| {
            frame.reserve((2 * message.len()).min(frame.limit()))?;
            frame.extend_from_slice(message)
        });
        let skipped = skips.cause(kept)?;
        if skipped.is_some() {
            frame.extend_from_slice(&message[..message.len().min(KEPT_OF_SKIPPED)])?;
        }
        self.bytes += frame.len();
        self.open.push(Open {
            request_id,
            version: header.version(),
            endian: header.endian,
            received,
            skipped,
            frame,
        });
        Ok(())
    }

    fn join(
        &mut self,
        header: MessageHeader,
        message: &[u8],
        skips: Skips,
    ) -> Result<Option<Joined>, FragmentError> {
        let (request_id, body) = if header.version() == Version::V1_1 {
            (None, &message[HEADER_LEN..])
        } else {
            let id = first_u32(header.endian, message).ok_or(FragmentError::TooShort)?;
            (Some(id), &message[HEADER_LEN + 4..])
        };
        let at = self
            .open
            .iter()
            .position(|open| open.request_id == request_id)
            .ok_or(FragmentError::Unexpected)?;
        let open = &self.open[at];
        if (open.version, open.endian) != (header.version(), header.endian) {
            return Err(FragmentError::Inconsistent);
        }
        let received = self.received(open.received, header)?;
        let fits = self.fits(skips, body.len());
        let open = &mut self.open[at];
        open.received = received;
        if open.skipped.is_none() {
            let before = open.frame.len();
            let kept = fits.and_then(|()| match header.version() {
                Version::V1_1 => open.frame.join(body),
                _ => open.frame.extend_from_slice(body),
            });
            open.skipped = skips.cause(kept)?;
            if open.skipped.is_some() {
                open.frame.truncate(KEPT_OF_SKIPPED);
                open.frame.shrink_to(KEPT_OF_SKIPPED);
            }
            self.bytes = self.bytes - before + open.frame.len();
        }
        if header.more_fragments {
            return Ok(None);
        }
        let Open {
            skipped, mut frame, ..
        } = self.remove(at);
        clear_more_fragments(&mut frame);
        finish_message(&mut frame);
        Ok(Some(match skipped {
            None => Joined::Whole(frame),
            Some(cause) => Joined::Beginning(frame, cause),
        }))
    }

    /// Number of octets of a message that have come with this part.
    fn received(&self, before: usize, part: MessageHeader) -> Result<usize, FragmentError> {
        let received = before.saturating_add(part.message_len());
        match received > self.limits.bytes.saturating_mul(SKIPPED_TIMES) {
            true => Err(FragmentError::TooLarge),
            false => Ok(received),
        }
    }

    /// Whether `more` octets of a part can be kept.
    fn fits(&self, skips: Skips, more: usize) -> Result<(), CdrError> {
        match skips {
            Skips::This(cause) => Err(cause),
            _ if self.bytes.saturating_add(more) > self.limits.bytes => Err(CdrError::FrameFull),
            _ => Ok(()),
        }
    }

    /// Forgets the message that a CancelRequest is about.
    fn cancel(&mut self, message: &[u8]) {
        let Some(request_id) = reply_id(message) else {
            return;
        };
        if let Some(at) = self
            .open
            .iter()
            .position(|open| reply_id(open.frame.as_slice()) == Some(request_id))
        {
            self.remove(at);
        }
    }

    fn remove(&mut self, at: usize) -> Open {
        let open = self.open.swap_remove(at);
        self.bytes -= open.frame.len();
        open
    }
}

/// What becomes of a part that cannot be kept.
#[derive(Clone, Copy, Debug)]
enum Skips {
    /// It is an error.
    Nothing,
    /// Its message is skipped.
    Beyond,
    /// The part was cut for this cause, and its message is skipped.
    This(CdrError),
}

impl Skips {
    /// Why a message is skipped, if it is.
    fn cause(self, kept: Result<(), CdrError>) -> Result<Option<CdrError>, FragmentError> {
        match (kept, self) {
            (Ok(()), _) => Ok(None),
            (Err(cause), Self::Nothing) => Err(cause.into()),
            (Err(cause), Self::Beyond | Self::This(_)) => Ok(Some(cause)),
        }
    }
}

impl From<CdrError> for FragmentError {
    /// A frame that is full, or finds no memory.
    fn from(cause: CdrError) -> Self {
        match cause {
            CdrError::OutOfMemory => Self::NoMemory,
            _ => Self::TooLarge,
        }
    }
}

/// A message of which parts are missing.
#[derive(Debug)]
struct Open {
    /// What its fragments name it by; nothing in GIOP 1.1.
    request_id: Option<u32>,
    version: Version,
    endian: Endian,
    /// Number of octets of its parts, headers included, so that parts without
    /// a body count too.
    received: usize,
    /// Why only the beginning is kept.
    skipped: Option<CdrError>,
    frame: Frame,
}

/// The first `unsigned long` after the header.
fn first_u32(endian: Endian, message: &[u8]) -> Option<u32> {
    Reader::at(message, HEADER_LEN, endian).read_u32().ok()
}
