//! The messages of one connection: octets to whole messages, within bounds; whole messages to
//! fragments; and the negotiation of GIOPlite.
//!
//! There is no I/O here. The caller owns the frame that a message is received into, reads from its
//! transport into the [room](MessageReader::room) of that frame, and commits what has arrived:
//!
//! ```
//! use chronorb_cdr::Frame;
//! use chronorb_giop::connection::{
//!     Bounds, Message, MessageReader, Negotiation, Progress, ReadError,
//! };
//!
//! fn receive(
//!     reader: &mut MessageReader,
//!     negotiation: &Negotiation,
//!     frame: &mut Frame,
//!     mut read: impl FnMut(&mut [u8]) -> usize,
//! ) -> Result<Message, ReadError> {
//!     frame.clear();
//!     loop {
//!         let total = match reader.poll(negotiation, frame)? {
//!             Progress::Message(message) => return Ok(message),
//!             Progress::Missing { total } => total,
//!         };
//!         if let Some(room) = reader.room(frame, total)? {
//!             let received = read(room);
//!             frame.commit(received);
//!         }
//!     }
//! }
//!
//! let mut reader = MessageReader::new(Bounds::default(), Frame::new(0, usize::MAX));
//! let mut octets: &[u8] = b"GIOP\x01\x00\x01\x05\0\0\0\0";
//! let read = |room: &mut [u8]| std::io::Read::read(&mut octets, room).unwrap();
//! let mut frame = Frame::new(1024, usize::MAX);
//! let message = receive(&mut reader, &Negotiation::default(), &mut frame, read).unwrap();
//! assert_eq!(message.header.kind, chronorb_giop::MessageType::CloseConnection);
//! ```

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

mod in_place;
mod negotiation;
mod writer;

use std::mem;

use chronorb_cdr::{CdrError, Frame};

pub use crate::fragments::{Bounds, KEPT_OF_SKIPPED, MOST_SKIPPED, SKIPPED_TIMES};
pub use negotiation::{Negotiation, empty_message};
pub use writer::{MessageWriter, OutgoingMessage};

pub(crate) use in_place::FragmentPlace;

use crate::fragments::{FragmentError, Reassembly};
use crate::framing::{FramingError, NextMessage};
use crate::{HEADER_LEN, MessageHeader, MessageProtocol, MessageType, Protocol};

/// A message, or a fragment of one, that is whole in its frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Message {
    /// The header of the message.
    pub header: MessageHeader,
    /// The reason why the message was skipped, if the frame has only its beginning:
    /// [`CdrError::FrameFull`] if it is beyond a bound, or [`CdrError::OutOfMemory`].
    pub skipped: Option<CdrError>,
}

impl Message {
    /// Whether it is a part of a message in fragments.
    #[inline]
    pub fn is_part(&self) -> bool {
        self.header.more_fragments || self.header.kind == MessageType::Fragment
    }
}

/// The state of the message in a frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Progress {
    /// The message is whole.
    Message(Message),
    /// The message, or its header, is not whole.
    Missing {
        /// Number of octets that the frame must have before it makes sense to ask again.
        total: usize,
    },
}

/// The reason why nothing more can be read from a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ReadError {
    /// The octets are no message, or a fragment that belongs to none.
    #[error("the message is malformed")]
    Malformed,
    /// The message is beyond a bound, and is not skipped.
    #[error("the message is greater than the limit")]
    TooLarge,
    /// There is no memory for the message.
    #[error("there is no memory for the message")]
    NoMemory,
}

impl From<FramingError> for ReadError {
    fn from(error: FramingError) -> Self {
        match error {
            FramingError::TooLarge(_) => Self::TooLarge,
            FramingError::Header(_) => Self::Malformed,
        }
    }
}

impl From<FragmentError> for ReadError {
    fn from(error: FragmentError) -> Self {
        match error {
            FragmentError::TooLarge => Self::TooLarge,
            FragmentError::NoMemory => Self::NoMemory,
            _ => Self::Malformed,
        }
    }
}

impl From<CdrError> for ReadError {
    /// Converts the error of a frame that is full, or finds no memory.
    fn from(error: CdrError) -> Self {
        match error {
            CdrError::OutOfMemory => Self::NoMemory,
            _ => Self::TooLarge,
        }
    }
}

/// The receiving half of a connection: the octets beyond whole messages, the beginning of a message
/// whose rest has not arrived, and the messages in fragments.
///
/// Normally a message arrives by one read, directly into the caller's frame, without copying or
/// allocating.
#[derive(Debug)]
pub struct MessageReader {
    bounds: Bounds,
    /// The octets that wait, from `start` on.
    pending: Frame,
    start: usize,
    /// The caller's frame is the one that was `pending`, and `pending` is the caller's, empty.
    exchanged: bool,
    mode: ReceiveMode,
    /// Octets of the last message that was joined of its parts.
    joined: u32,
    /// Octets of the last first part of a message.
    first_part: u32,
    /// Octets of that message that were thrown away.
    skipped: usize,
    fragments: Reassembly,
}

/// The way in which the octets at the start are received.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ReceiveMode {
    /// As a message of its own.
    Plain,
    /// As a part of a message, probably: no octets beyond it are received, so that the next part
    /// can be received in place.
    InParts,
    /// As a message that is being skipped, for this reason.
    Skipping(CdrError),
    /// As a fragment, [behind the octets that it continues](in_place).
    InPlace,
}

impl MessageReader {
    /// Makes the reader of a new connection. `pending` is an empty frame, of no capacity if most
    /// connections shall take no memory. It may change places with the frames of callers.
    pub const fn new(bounds: Bounds, pending: Frame) -> Self {
        Self {
            bounds,
            pending,
            start: 0,
            exchanged: false,
            mode: ReceiveMode::Plain,
            joined: 0,
            first_part: 0,
            skipped: 0,
            fragments: Reassembly::new(bounds),
        }
    }

    /// Polls for a message in `frame`, into which octets were received. An empty frame begins the
    /// next message, with the octets kept before. If the result is a message, the frame has only
    /// that, and the octets after it are kept. A fragment may be in the frame of the message that
    /// it continues, behind its octets. Each message is to be [joined](Self::join) or [put
    /// back](Self::put_back) before the next one is received.
    ///
    /// Before another frame is used, an incomplete message is to be
    /// [suspended](Self::suspend).
    ///
    /// # Errors
    /// See [`ReadError`]; nothing can be read after one.
    #[inline]
    pub fn poll(
        &mut self,
        negotiation: &Negotiation,
        frame: &mut Frame,
    ) -> Result<Progress, ReadError> {
        if frame.is_empty() && self.pending.is_empty() {
            return Ok(Progress::Missing { total: HEADER_LEN });
        }
        self.poll_begun(negotiation, frame)
    }

    #[inline]
    fn poll_begun(
        &mut self,
        negotiation: &Negotiation,
        frame: &mut Frame,
    ) -> Result<Progress, ReadError> {
        if frame.is_empty()
            && let Some(message) = self.resume(negotiation, frame)?
        {
            return Ok(Progress::Message(message));
        }
        if self.mode != ReceiveMode::Plain {
            return self.poll_in_mode(negotiation, frame);
        }
        match negotiation.next_message(frame.as_slice(), self.bounds.message) {
            Ok(NextMessage::Complete { header, len }) => {
                self.complete(len, frame)?;
                let skipped = None;
                Ok(Progress::Message(Message { header, skipped }))
            }
            Ok(NextMessage::NeedMore { total }) => Ok(Progress::Missing { total }),
            Err(FramingError::TooLarge(len))
                if self.bounds.skips
                    && (len <= MOST_SKIPPED || len / SKIPPED_TIMES <= self.bounds.message) =>
            {
                self.mode = ReceiveMode::Skipping(CdrError::FrameFull);
                self.skip(CdrError::FrameFull, frame)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Polls in another mode than the plain one.
    #[cold]
    fn poll_in_mode(
        &mut self,
        negotiation: &Negotiation,
        frame: &mut Frame,
    ) -> Result<Progress, ReadError> {
        match self.mode {
            ReceiveMode::Skipping(cause) => return self.skip(cause, frame),
            ReceiveMode::InPlace => match self.poll_in_place(negotiation, frame)? {
                Some(progress) => return Ok(progress),
                None => self.leave_in_place(frame)?,
            },
            ReceiveMode::InParts | ReceiveMode::Plain => {}
        }
        self.mode = ReceiveMode::Plain;
        let progress = self.poll(negotiation, frame)?;
        let header = Protocol::read_header(frame.as_slice());
        if self.mode == ReceiveMode::Plain
            && matches!(progress, Progress::Missing { .. })
            && header.ok().is_none_or(|header| header.more_fragments)
        {
            self.mode = ReceiveMode::InParts;
        }
        Ok(progress)
    }

    /// Whether the next message begins with the next octets that are received: none are kept, and
    /// no message is incomplete.
    #[inline]
    pub fn is_fresh(&self) -> bool {
        self.mode == ReceiveMode::Plain
            && !self.exchanged
            && self.pending.is_empty()
            && !self.has_fragments()
    }

    /// Makes room in an empty `frame` for the first octets of a message.
    ///
    /// # Errors
    /// [`ReadError::NoMemory`]; [`ReadError::TooLarge`] if the frame has a limit of its own.
    #[inline]
    pub fn first_room(frame: &mut Frame) -> Result<&mut [u8], ReadError> {
        Ok(frame.spare_mut(LEAST_ROOM)?)
    }

    /// Recognizes the usual request faster than [`poll`](Self::poll), in the first octets that a
    /// [fresh](Self::is_fresh) reader has received: whole and alone in `frame`, of GIOP 1.2 in the
    /// byte order of this machine, not in fragments, and with a reply after the operation. `None`
    /// for any other octets, which are then to be polled for.
    #[inline]
    pub fn usual_request(&self, frame: &Frame) -> Option<MessageHeader> {
        let header = MessageHeader::of_usual_request(frame.as_slice())?;
        (frame.len() <= self.bounds.message).then_some(header)
    }

    /// Recognizes the usual reply as [`usual_request`](Self::usual_request) does a request.
    #[inline]
    pub fn usual_reply(&self, frame: &Frame) -> Option<MessageHeader> {
        let header = MessageHeader::of_usual(frame.as_slice(), MessageType::Reply)?;
        (frame.len() <= self.bounds.message).then_some(header)
    }

    /// Makes room in `frame` for octets of a message of `total` octets, as requested by
    /// [`poll`](Self::poll), and for more. Returns `None` if there is no memory for it; the message
    /// is then skipped, and [`poll`](Self::poll) tells how to continue.
    ///
    /// The room grows with the received octets and not with the length in a header.
    ///
    /// # Errors
    /// [`ReadError::NoMemory`]; [`ReadError::TooLarge`] if the frame has a limit of its own.
    #[inline(always)]
    pub fn room<'f>(
        &mut self,
        frame: &'f mut Frame,
        total: usize,
    ) -> Result<Option<&'f mut [u8]>, ReadError> {
        if self.mode != ReceiveMode::Plain {
            return self.room_in_mode(frame, total);
        }
        match room_for(frame, total) {
            Ok(room) => Ok(Some(room)),
            Err(cause) => self.skip_for_want(cause).map(|()| None),
        }
    }

    /// Makes room in another mode than the plain one.
    #[cold]
    fn room_in_mode<'f>(
        &mut self,
        frame: &'f mut Frame,
        total: usize,
    ) -> Result<Option<&'f mut [u8]>, ReadError> {
        let len = match self.mode {
            ReceiveMode::Skipping(_) => return room_to_skip(frame, total).map(Some),
            ReceiveMode::InPlace => self.reserve_in_place(frame, total),
            ReceiveMode::InParts | ReceiveMode::Plain => {
                let expected = if frame.is_empty() {
                    self.first_part as usize
                } else {
                    total
                };
                reserve(frame, total.max(expected), 0)
            }
        };
        let Some(len) = len else {
            // The message is skipped or refused if there is no room for it elsewhere either.
            return match mem::replace(&mut self.mode, ReceiveMode::Plain) {
                ReceiveMode::InPlace => self.leave_in_place(frame).map(|()| None),
                _ => Ok(None),
            };
        };
        let room = frame.spare_mut(0)?;
        Ok(Some(&mut room[..len]))
    }

    /// Begins to skip a message that has no room.
    #[cold]
    fn skip_for_want(&mut self, cause: CdrError) -> Result<(), ReadError> {
        if !self.bounds.skips {
            return Err(cause.into());
        }
        self.mode = ReceiveMode::Skipping(cause);
        Ok(())
    }

    /// Takes back the incomplete message in `frame`, which is empty then. If the frame `stays`
    /// with it, the caller gets another one, perhaps without memory. Otherwise the octets are
    /// copied, unless the frame is the one that they waited in before.
    ///
    /// # Errors
    /// [`ReadError::NoMemory`]
    pub fn suspend(&mut self, frame: &mut Frame, stays: bool) -> Result<(), ReadError> {
        if mem::take(&mut self.exchanged) || stays {
            mem::swap(frame, &mut self.pending);
        } else {
            self.pending.extend_from_slice(frame.as_slice())?;
            frame.clear();
        }
        Ok(())
    }

    /// Joins `message`, which is in `frame`, to the others of its parts, if it is one. Returns the
    /// whole message, which is in `frame` then; `None` if more fragments are missing.
    ///
    /// # Errors
    /// See [`ReadError`].
    #[inline]
    pub fn join(
        &mut self,
        message: Message,
        frame: &mut Frame,
    ) -> Result<Option<Message>, ReadError> {
        let header = message.header;
        let is_part = message.is_part()
            || (header.kind == MessageType::CancelRequest && self.has_fragments());
        if !is_part {
            return Ok(Some(message));
        }
        self.join_part(message, frame)
    }

    #[inline(never)]
    fn join_part(
        &mut self,
        message: Message,
        frame: &mut Frame,
    ) -> Result<Option<Message>, ReadError> {
        let header = message.header;
        if self.mode == ReceiveMode::InPlace {
            return self.join_in_place(header, frame);
        }
        let is_first = header.more_fragments
            && !matches!(
                header.kind,
                MessageType::Fragment | MessageType::CancelRequest
            );
        if is_first {
            self.first_part = frame.len() as u32;
        }
        // A message takes the caller's memory if it, or the last one, has needed half of it.
        let needed = frame.len().max(self.joined as usize);
        let joined = if is_first && message.skipped.is_none() && frame.capacity() / 2 <= needed {
            self.fragments.open_in(header, frame).map(|()| None)
        } else {
            let part = frame.as_slice();
            self.fragments.push_part(header, part, message.skipped)
        };
        let Some(mut joined) = joined? else {
            self.mode = ReceiveMode::InParts;
            self.continue_in_place();
            return Ok(None);
        };
        self.has_joined(&joined.frame);
        // Longer messages may be skipped in the same frame, and more may follow a message.
        joined.frame.set_limit(frame.limit());
        *frame = joined.frame;
        Ok(Some(Message {
            header: joined.header,
            skipped: joined.skipped,
        }))
    }

    /// Notes the length of a message that was joined of its parts.
    fn has_joined(&mut self, frame: &Frame) {
        self.joined = frame.len() as u32;
        self.mode = ReceiveMode::InParts;
    }

    /// Puts a message that was taken out in front of the octets that wait.
    ///
    /// # Errors
    /// [`ReadError::NoMemory`]
    pub fn put_back(&mut self, message: &Frame) -> Result<(), ReadError> {
        if self.mode == ReceiveMode::InPlace {
            return self.put_back_in_place(message);
        }
        let mut pending = Frame::new(message.len() + self.pending().len(), self.pending.limit());
        pending.extend_from_slice(message.as_slice())?;
        pending.extend_from_slice(self.pending())?;
        self.pending = pending;
        self.start = 0;
        Ok(())
    }

    /// The octets that wait, perhaps whole messages.
    #[inline]
    pub fn pending(&self) -> &[u8] {
        &self.pending.as_slice()[self.start..]
    }

    /// Whether parts of a message are here, and its last one is missing.
    #[inline]
    pub fn has_fragments(&self) -> bool {
        self.fragments.octets() > 0
    }

    /// Whether the octets of the present message are dropped, because it is beyond a bound.
    #[inline]
    pub fn is_skipping(&self) -> bool {
        matches!(self.mode, ReceiveMode::Skipping(_))
    }

    /// Number of octets of memory that are kept here.
    #[inline]
    pub fn kept(&self) -> usize {
        if self.mode == ReceiveMode::InPlace && !self.exchanged {
            // It has the octets of the only message in fragments.
            return self.pending.capacity();
        }
        self.pending.capacity() + self.fragments.octets()
    }

    /// Gives back the memory for octets that wait, if none do and it is more than `least` octets.
    #[inline]
    pub fn take_spare(&mut self, least: usize) -> Option<Frame> {
        if self.pending.capacity() <= least || !self.pending.is_empty() {
            return None;
        }
        let none = Frame::new(0, self.pending.limit());
        Some(mem::replace(&mut self.pending, none))
    }

    /// Throws away everything that is kept here. Nothing can be read after that.
    pub fn discard(&mut self) {
        *self = Self::new(self.bounds, Frame::new(0, self.pending.limit()));
    }

    /// Moves kept octets into `frame`: the next message, if it is complete, or else all.
    #[inline(never)]
    fn resume(
        &mut self,
        negotiation: &Negotiation,
        frame: &mut Frame,
    ) -> Result<Option<Message>, ReadError> {
        if self.mode == ReceiveMode::InPlace {
            self.resume_in_place(frame);
            return Ok(None);
        }
        if !self.is_skipping()
            && let Ok(NextMessage::Complete { header, len }) =
                negotiation.next_message(self.pending(), self.bounds.message)
        {
            self.take(len, frame)?;
            let skipped = None;
            return Ok(Some(Message { header, skipped }));
        }
        if self.start > 0 {
            self.take(self.pending().len(), frame)?;
        } else {
            mem::swap(frame, &mut self.pending);
            self.exchanged = true;
        }
        Ok(None)
    }

    /// Skips the message whose beginning is in the frame: all but [`KEPT_OF_SKIPPED`] octets of it
    /// are thrown away as they arrive. Only requests are skipped, locate ones too, since nothing
    /// else is answered.
    #[cold]
    fn skip(&mut self, cause: CdrError, frame: &mut Frame) -> Result<Progress, ReadError> {
        let header = Protocol::read_header(frame.as_slice()).map_err(|_| ReadError::Malformed)?;
        if !matches!(
            header.kind,
            MessageType::Request | MessageType::LocateRequest | MessageType::Fragment
        ) {
            return Err(ReadError::Malformed);
        }
        let len = header.message_len();
        let has_come_at_once = self.skipped == 0 && frame.len() >= len;
        if !has_come_at_once {
            self.skipped += frame.len().saturating_sub(KEPT_OF_SKIPPED);
            frame.truncate(KEPT_OF_SKIPPED);
        }
        let missing = len.saturating_sub(frame.len() + self.skipped);
        if missing > 0 {
            let total = frame.len() + missing.min(LEAST_ROOM);
            return Ok(Progress::Missing { total });
        }
        // The octets after the message may have arrived with it.
        let kept = if has_come_at_once { len } else { frame.len() };
        self.mode = ReceiveMode::Plain;
        self.skipped = 0;
        self.complete(kept, frame)?;
        let skipped = Some(cause);
        Ok(Progress::Message(Message { header, skipped }))
    }

    /// Leaves the complete message of `len` octets in `frame`, and keeps the octets after it.
    #[inline]
    fn complete(&mut self, len: usize, frame: &mut Frame) -> Result<(), ReadError> {
        if self.exchanged || frame.len() > len {
            return self.part_with(len, frame);
        }
        Ok(())
    }

    #[inline(never)]
    fn part_with(&mut self, len: usize, frame: &mut Frame) -> Result<(), ReadError> {
        let (message, surplus) = frame.as_slice().split_at(len);
        if mem::take(&mut self.exchanged) && len <= EXCHANGED_FROM {
            // A small message does not cost the caller its own frame.
            self.pending.extend_from_slice(message)?;
            mem::swap(frame, &mut self.pending);
            self.advance(len);
            return Ok(());
        }
        self.pending.extend_from_slice(surplus)?;
        frame.truncate(len);
        Ok(())
    }

    /// Moves the first `len` octets that wait into `frame`.
    fn take(&mut self, len: usize, frame: &mut Frame) -> Result<(), ReadError> {
        frame.extend_from_slice(&self.pending()[..len])?;
        self.advance(len);
        Ok(())
    }

    /// Removes the first `len` octets that wait.
    fn advance(&mut self, len: usize) {
        self.start += len;
        if self.start == self.pending.len() {
            self.pending.clear();
            self.start = 0;
        }
    }
}

/// Makes room to receive the rest of a message of `total` octets, the first of which are in the
/// frame, and a little more, so that a read that does not fill it shows that nothing is left.
/// Before the header has arrived, the room is all that the frame has.
///
/// A frame that once held such a message has room for all of it. Otherwise room grows with the
/// received octets, not with the length in a header: the frame is at most doubled.
///
/// # Errors
/// [`CdrError::FrameFull`] if that is over the frame's limit; [`CdrError::OutOfMemory`].
#[inline]
pub fn room_for(frame: &mut Frame, total: usize) -> Result<&mut [u8], CdrError> {
    let arrived = frame.len();
    if arrived < HEADER_LEN {
        return frame.spare_mut(LEAST_ROOM);
    }
    let missing = total.saturating_sub(arrived);
    let room = frame.spare_mut(missing.min(arrived.max(LEAST_ROOM)))?;
    let len = room.len().min(missing.saturating_add(LEAST_ROOM));
    Ok(&mut room[..len])
}

/// Makes room for the rest of a message of `total` octets, by the same rule, and for at most `more`
/// octets after it. Returns the number of octets; `None` if there is none.
fn reserve(frame: &mut Frame, total: usize, more: usize) -> Option<usize> {
    let missing = total.saturating_sub(frame.len());
    let room = frame.spare_mut(missing.min(frame.len().max(LEAST_ROOM)));
    Some(room.ok()?.len().min(missing.saturating_add(more)))
}

/// Makes room for at most the rest of a skipped message.
#[cold]
fn room_to_skip(frame: &mut Frame, total: usize) -> Result<&mut [u8], ReadError> {
    let missing = total.saturating_sub(frame.len());
    Ok(&mut frame.spare_mut(missing)?[..missing])
}

/// Octets that one read has room for at least while the length of the message is not known.
const LEAST_ROOM: usize = 8 << 10;
/// A whole message above this size changes hands by exchanging frames, not by copying.
const EXCHANGED_FROM: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_alone_makes_no_room() {
        let mut frame = Frame::new(1 << 10, u32::MAX as usize);
        frame.commit(HEADER_LEN);
        let room = room_for(&mut frame, u32::MAX as usize).expect("it grows");
        assert!(room.len() <= 2 * LEAST_ROOM);
    }

    #[test]
    fn room_is_at_most_doubled_until_all_has_arrived() {
        const TOTAL: usize = 1 << 20;
        let mut frame = Frame::new(LEAST_ROOM, usize::MAX);
        frame.commit(HEADER_LEN);
        while frame.len() < TOTAL {
            let before = frame.capacity();
            let room = room_for(&mut frame, TOTAL).expect("it grows").len();
            assert!(frame.capacity() <= 2 * before);
            frame.commit(room);
        }
    }

    #[test]
    fn room_that_is_there_is_taken_as_far_as_the_message_goes() {
        let mut frame = Frame::new(1 << 20, 1 << 20);
        assert_eq!(
            room_for(&mut frame, HEADER_LEN).map(|room| room.len()),
            Ok(1 << 20)
        );
        frame.commit(HEADER_LEN);
        let room = room_for(&mut frame, 1000).map(|room| room.len());
        assert_eq!(room, Ok(1000 - HEADER_LEN + LEAST_ROOM));
    }

    #[test]
    fn the_end_of_a_message_needs_no_more_room_than_it_has_octets() {
        let mut frame = Frame::new(1000, 1000);
        frame.commit(990);
        assert_eq!(room_for(&mut frame, 1000).map(|room| room.len()), Ok(10));
    }
}
