//! Fragmented messages: CORBA 3.3 part 2, clause 9.4.9.
//!
//! GIOP 1.2 names in each fragment the request that it belongs to, so that
//! messages may be mixed; in GIOP 1.1 one message at a time is in parts.

mod pieces;

use std::mem;

use chronorb_cdr::{CdrError, Endian, Frame};

use crate::connection::FragmentPlace;
use crate::encapsulation::Reader;
use crate::header::clear_more_fragments;
use crate::{
    HEADER_LEN, HeaderError, MessageHeader, MessageProtocol, MessageType, Protocol, Version,
    finish_message, reply_id,
};

pub(crate) use pieces::FRAGMENT_HEADER_LEN;
pub use pieces::{Fragmentation, Head, Piece, Pieces};

/// The bounds of received messages of one connection.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Octets of one message, its header included. The headers of fragments do not count.
    pub message: usize,
    /// Number of messages that are in fragments at a time.
    pub fragmented: usize,
    /// Octets of all messages in fragments together, without the headers of fragments.
    pub fragment_octets: usize,
    /// Whether a message that is too large, or finds no memory, is skipped: its beginning is kept,
    /// so that it can be answered. Otherwise it is an error as soon as its header is seen.
    pub skips: bool,
}

/// The greatest length of a message in fragments that is skipped or joined rather than refused, as
/// a multiple of [`Bounds::message`]. All octets of its parts count, the headers of fragments too.
/// The limit of a whole message is the greater one of this limit and [`MOST_SKIPPED`].
pub const SKIPPED_TIMES: usize = 8;

/// The length up to which a whole message is skipped whatever the bound is: 256 MiB. A greater
/// length indicates octets that are not a message.
pub const MOST_SKIPPED: usize = 256 << 20;

/// Number of octets that are kept of a message that is skipped: room for the header of its request.
pub const KEPT_OF_SKIPPED: usize = 16 << 10;

/// A message that was joined from its parts.
#[derive(Debug)]
pub struct ReassembledMessage {
    /// The header of the message.
    pub header: MessageHeader,
    /// The message, or the beginning of one that was skipped, with a header of that length.
    pub frame: Frame,
    /// The reason why the message was skipped: [`CdrError::FrameFull`] if it is beyond a bound, or
    /// [`CdrError::OutOfMemory`].
    pub skipped: Option<CdrError>,
}

impl Default for Bounds {
    /// One mebibyte, for up to eight fragmented messages; none is skipped.
    fn default() -> Self {
        Self {
            message: 1 << 20,
            fragmented: 8,
            fragment_octets: 1 << 20,
            skips: false,
        }
    }
}

/// The reason why a part of a message cannot be accepted. The connection cannot be used any
/// further: the answer is a MessageError.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FragmentError {
    /// The message has no valid header, or not the length in its header.
    #[error("the message is malformed: {0}")]
    Header(#[from] HeaderError),
    /// The message is too short to have a request identifier.
    #[error("the message is too short to name its request")]
    TooShort,
    /// A message of this type and version is never in parts, or is whole.
    #[error("a message of type {0:?} is no part of one in fragments")]
    NotInParts(MessageType),
    /// A fragment belongs to no message.
    #[error("the fragment belongs to no message")]
    Unexpected,
    /// A fragmented message starts before the last one is complete: the last one of the same
    /// request id, or in GIOP 1.1 of the connection.
    #[error("a message in fragments starts before the last one is whole")]
    AlreadyOpen,
    /// A fragment has another version or byte order than its message.
    #[error("the fragment has another version or byte order than its message")]
    Inconsistent,
    /// More fragmented messages are incomplete at a time than the limit allows.
    #[error("too many messages are in fragments at a time")]
    TooMany,
    /// The message is larger than the limit allows.
    #[error("the message in fragments is greater than the limit")]
    TooLarge,
    /// There is no memory for the message.
    #[error("there is no memory for the message in fragments")]
    NoMemory,
}

/// Joins the parts of messages of one connection.
#[derive(Debug)]
pub struct Reassembly {
    bounds: Bounds,
    open: Vec<Open>,
    bytes: usize,
}

impl Reassembly {
    /// Makes an empty one. It takes no memory until a message is fragmented.
    pub const fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            open: Vec::new(),
            bytes: 0,
        }
    }

    /// Takes a part of a message, in the order of arrival: a message that [fragments
    /// follow](MessageHeader::more_fragments), or a fragment. The result of the last part is the
    /// whole message, with the header of a whole message. It must be read by [`Frame::decoder`],
    /// because in GIOP 1.1 alignment begins anew in each fragment.
    ///
    /// A CancelRequest is taken too, of GIOPlite as well: the message that it is about is
    /// forgotten.
    ///
    /// # Errors
    /// See [`FragmentError`].
    pub fn push(&mut self, part: &[u8]) -> Result<Option<ReassembledMessage>, FragmentError> {
        let header = Protocol::read_header(part)?;
        if part.len() != header.message_len() {
            return Err(HeaderError::TooShort.into());
        }
        self.push_part(header, part, None)
    }

    /// Takes a part with this header, as [`push`](Self::push) does. `part` may be the beginning of
    /// a part whose rest was skipped for the reason `cut`; the message is skipped too.
    ///
    /// # Errors
    /// See [`FragmentError`].
    pub fn push_part(
        &mut self,
        header: MessageHeader,
        part: &[u8],
        cut: Option<CdrError>,
    ) -> Result<Option<ReassembledMessage>, FragmentError> {
        match header.kind {
            MessageType::Fragment => self.join(header, part, cut),
            MessageType::CancelRequest => {
                self.cancel(part);
                Ok(None)
            }
            _ if header.more_fragments => self.open(header, part, cut).map(|()| None),
            kind => Err(FragmentError::NotInParts(kind)),
        }
    }

    /// Number of messages of which parts are missing.
    pub fn open_messages(&self) -> usize {
        self.open.len()
    }

    /// Number of octets of messages that are kept here; zero if no message is in parts.
    pub fn octets(&self) -> usize {
        self.bytes
    }

    fn open(
        &mut self,
        header: MessageHeader,
        message: &[u8],
        cut: Option<CdrError>,
    ) -> Result<(), FragmentError> {
        let open = self.admit(header, message)?;
        let mut frame = Frame::new(0, self.limit());
        let kept = self.fits(cut, 0, message.len()).and_then(|()| {
            frame.reserve((2 * message.len()).min(frame.limit()))?;
            frame.extend_from_slice(message)
        });
        let skipped = self.skipped(kept)?;
        if skipped.is_some() {
            frame.extend_from_slice(&message[..message.len().min(KEPT_OF_SKIPPED)])?;
        }
        self.bytes += frame.len();
        self.open.push(Open {
            skipped,
            frame,
            ..open
        });
        Ok(())
    }

    /// Takes the first part of a message as [`push`](Self::push) does, with its frame. The caller's
    /// frame has no memory then, unless the message has to be skipped.
    pub(crate) fn open_in(
        &mut self,
        header: MessageHeader,
        frame: &mut Frame,
    ) -> Result<(), FragmentError> {
        if self.fits(None, 0, frame.len()).is_err() {
            return self.open(header, frame.as_slice(), None);
        }
        let mut open = self.admit(header, frame.as_slice())?;
        self.bytes += frame.len();
        open.frame.set_limit(frame.limit());
        mem::swap(&mut open.frame, frame);
        open.frame.set_limit(self.limit());
        self.open.push(open);
        Ok(())
    }

    /// Checks whether a message may begin with this part. Returns its entry, without octets.
    fn admit(&self, header: MessageHeader, message: &[u8]) -> Result<Open, FragmentError> {
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
        if self.open.len() >= self.bounds.fragmented {
            return Err(FragmentError::TooMany);
        }
        Ok(Open {
            request_id,
            header,
            received: self.received(0, header)?,
            skipped: None,
            // Parts are of one size, and the first has a shorter header.
            last: message.len().saturating_sub(FRAGMENT_HEADER_LEN),
            place: FragmentPlace::default(),
            frame: Frame::new(0, 0),
        })
    }

    /// The greatest length of the frame of a message.
    fn limit(&self) -> usize {
        self.bounds.message.max(KEPT_OF_SKIPPED)
    }

    fn join(
        &mut self,
        header: MessageHeader,
        message: &[u8],
        cut: Option<CdrError>,
    ) -> Result<Option<ReassembledMessage>, FragmentError> {
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
        if (open.header.protocol, open.header.endian) != (header.protocol, header.endian) {
            return Err(FragmentError::Inconsistent);
        }
        let received = self.received(open.received, header)?;
        let fits = self.fits(cut, open.frame.len(), body.len());
        self.open[at].received = received;
        if self.open[at].skipped.is_none() {
            let frame = &mut self.open[at].frame;
            let before = frame.len();
            let kept = fits.and_then(|()| match header.version() {
                Version::V1_1 => frame.join(body),
                _ => frame.extend_from_slice(body),
            });
            let skipped = self.skipped(kept)?;
            let open = &mut self.open[at];
            open.skipped = skipped;
            open.last = body.len();
            if skipped.is_some() {
                open.frame.truncate(KEPT_OF_SKIPPED);
                open.frame.shrink_to(KEPT_OF_SKIPPED);
            }
            self.bytes = self.bytes - before + open.frame.len();
        }
        if header.more_fragments {
            return Ok(None);
        }
        let mut open = self.remove(at);
        Ok(Some(ReassembledMessage {
            header: whole(open.header, &mut open.frame),
            frame: open.frame,
            skipped: open.skipped,
        }))
    }

    /// The number of octets of a message that arrived with this part.
    fn received(&self, before: usize, part: MessageHeader) -> Result<usize, FragmentError> {
        let received = before.saturating_add(part.message_len());
        if received > self.bounds.message.saturating_mul(SKIPPED_TIMES) {
            return Err(FragmentError::TooLarge);
        }
        Ok(received)
    }

    /// Checks whether `more` octets can be kept of a message of which there are `len`, unless they
    /// were `cut`.
    fn fits(&self, cut: Option<CdrError>, len: usize, more: usize) -> Result<(), CdrError> {
        if let Some(cause) = cut {
            return Err(cause);
        }
        let is_within = len.saturating_add(more) <= self.bounds.message
            && self.bytes.saturating_add(more) <= self.bounds.fragment_octets;
        is_within.then_some(()).ok_or(CdrError::FrameFull)
    }

    /// The reason why a message is skipped whose part was `kept` or was not; an error if nothing
    /// is skipped.
    fn skipped(&self, kept: Result<(), CdrError>) -> Result<Option<CdrError>, FragmentError> {
        match kept {
            Err(cause) if !self.bounds.skips => Err(cause.into()),
            kept => Ok(kept.err()),
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

    /// The only message of which parts are missing, if fragments may be received behind its octets.
    pub(crate) fn continued(&mut self) -> Option<&mut Open> {
        match &mut self.open[..] {
            [open] if open.may_continue() => Some(open),
            _ => None,
        }
    }

    /// The place of the next fragment of that message.
    pub(crate) fn place(&mut self) -> Option<&mut FragmentPlace> {
        self.open.first_mut().map(|open| &mut open.place)
    }

    /// The frame of that message.
    pub(crate) fn first_frame(&mut self) -> Option<&mut Frame> {
        self.open.first_mut().map(|open| &mut open.frame)
    }

    /// Octets of the body of the last part of that message.
    pub(crate) fn last_part(&self) -> usize {
        self.open.first().map_or(0, |open| open.last)
    }

    /// Whether a fragment, of which at least its header and its request id have arrived, continues
    /// that message, within all bounds.
    pub(crate) fn is_continued_by(&self, header: MessageHeader, fragment: &[u8]) -> bool {
        let [open] = &self.open[..] else {
            return false;
        };
        let Some(body) = header.message_len().checked_sub(FRAGMENT_HEADER_LEN) else {
            return false;
        };
        header.kind == MessageType::Fragment
            && (open.header.protocol, open.header.endian) == (header.protocol, header.endian)
            && open.request_id == first_u32(header.endian, fragment)
            && self.received(open.received, header).is_ok()
            && self.fits(None, self.bytes, body).is_ok()
    }

    /// Notes a fragment that was received behind the octets of that message in `frame`. After the
    /// last one, the frame has the whole message, whose header is returned.
    pub(crate) fn note_continued(
        &mut self,
        header: MessageHeader,
        frame: &mut Frame,
    ) -> Option<MessageHeader> {
        let open = self.open.first_mut()?;
        open.received = open.received.saturating_add(header.message_len());
        open.last = header.message_len().saturating_sub(FRAGMENT_HEADER_LEN);
        self.bytes = frame.len();
        if header.more_fragments {
            return None;
        }
        let header = open.header;
        self.open.clear();
        self.bytes = 0;
        Some(whole(header, frame))
    }

    fn remove(&mut self, at: usize) -> Open {
        let open = self.open.swap_remove(at);
        self.bytes -= open.frame.len();
        open
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
pub(crate) struct Open {
    /// The request identifier in its fragments; none in GIOP 1.1.
    request_id: Option<u32>,
    /// The header of its first part.
    header: MessageHeader,
    /// Number of octets of its parts, headers included, so that parts without
    /// a body count too.
    received: usize,
    /// The reason why only the beginning is kept.
    skipped: Option<CdrError>,
    /// Octets of the body of its last part.
    last: usize,
    /// The place of its next fragment, while that is received in place.
    pub(crate) place: FragmentPlace,
    pub(crate) frame: Frame,
}

impl Open {
    fn may_continue(&self) -> bool {
        self.skipped.is_none()
            && self.header.protocol == Version::V1_2.into()
            && self.frame.len() > FRAGMENT_HEADER_LEN
    }
}

/// Makes the octets of all parts of a message one message. Returns its header.
fn whole(first: MessageHeader, frame: &mut Frame) -> MessageHeader {
    clear_more_fragments(frame);
    finish_message(frame);
    MessageHeader {
        more_fragments: false,
        size: (frame.len() - HEADER_LEN) as u32,
        ..first
    }
}

/// The first `unsigned long` after the header.
fn first_u32(endian: Endian, message: &[u8]) -> Option<u32> {
    Reader::at(message, HEADER_LEN, endian).read_u32().ok()
}
