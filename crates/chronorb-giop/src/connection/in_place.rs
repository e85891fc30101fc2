//! Fragments that are received directly behind the octets that they continue, so that they are not
//! copied.
//!
//! This is done while exactly one message is in fragments. The header of the next fragment is
//! received over the last octets of the message so far, which are kept aside until the fragment is
//! whole. Any other message is moved to the frame of the caller, and read there.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::mem;

use chronorb_cdr::Frame;

use super::{
    LEAST_ROOM, Message, MessageReader, Negotiation, Progress, ReadError, ReceiveMode, reserve,
};
use crate::fragments::FRAGMENT_HEADER_LEN;
use crate::{HeaderError, MessageHeader, MessageProtocol, MessageType, Protocol};

/// The place of the next fragment in the frame of the message that it continues.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FragmentPlace {
    /// The position of the header of the fragment.
    at: usize,
    /// The octets of the message at that position. Once the fragment is whole, they are in the
    /// frame again, and its header is here.
    aside: [u8; FRAGMENT_HEADER_LEN],
    state: FragmentState,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum FragmentState {
    /// The header and the request id have not arrived.
    #[default]
    Unknown,
    /// The body is missing; `more` if another fragment follows.
    Begun { more: bool },
    /// All of it has arrived, and it has not been joined.
    Whole,
}

impl MessageReader {
    /// Prepares to receive the next fragment in place, if that is possible.
    pub(super) fn continue_in_place(&mut self) {
        if !self.pending.is_empty() {
            return;
        }
        let Some(open) = self.fragments.continued() else {
            return;
        };
        let at = open.frame.len() - FRAGMENT_HEADER_LEN;
        let mut aside = [0; FRAGMENT_HEADER_LEN];
        aside.copy_from_slice(&open.frame.as_slice()[at..]);
        open.frame.truncate(at);
        open.place = FragmentPlace {
            at,
            aside,
            state: FragmentState::Unknown,
        };
        mem::swap(&mut self.pending, &mut open.frame);
        self.mode = ReceiveMode::InPlace;
    }

    /// Makes the frame of the message that of the caller, to receive into it.
    pub(super) fn resume_in_place(&mut self, frame: &mut Frame) {
        mem::swap(frame, &mut self.pending);
        self.exchanged = true;
    }

    /// Polls for a fragment in place; `None` if another message begins there.
    pub(super) fn poll_in_place(
        &mut self,
        negotiation: &Negotiation,
        frame: &mut Frame,
    ) -> Result<Option<Progress>, ReadError> {
        let FragmentPlace { at, state, .. } =
            *self.fragments.place().ok_or(ReadError::Malformed)?;
        let arrived = frame.as_slice().get(at..);
        // A part that was received and not joined is lost.
        let arrived = arrived.filter(|_| state != FragmentState::Whole);
        let arrived = arrived.ok_or(ReadError::Malformed)?;
        let missing = |len: usize| Ok(Some(Progress::Missing { total: at + len }));
        let header = match Protocol::read_header(arrived) {
            Ok(header) => header,
            Err(HeaderError::TooShort)
                if negotiation
                    .next_message(arrived, self.bounds.message)
                    .is_ok() =>
            {
                return missing(Protocol::least_len(arrived));
            }
            // The beginning of a header that no message has is reported at once.
            Err(_) => return Ok(None),
        };
        let len = header.message_len();
        let is_fragment = header.kind == MessageType::Fragment && len >= FRAGMENT_HEADER_LEN;
        if is_fragment && arrived.len() < FRAGMENT_HEADER_LEN {
            return missing(FRAGMENT_HEADER_LEN);
        }
        if !self.fragments.is_continued_by(header, arrived) {
            return Ok(None);
        }
        let more = header.more_fragments;
        let place = self.fragments.place().ok_or(ReadError::Malformed)?;
        place.state = FragmentState::Begun { more };
        if arrived.len() < len {
            return missing(len);
        }
        place.state = FragmentState::Whole;
        self.pending.extend_from_slice(&arrived[len..])?;
        frame.truncate(at + len);
        frame.as_mut_slice()[at..at + FRAGMENT_HEADER_LEN].swap_with_slice(&mut place.aside);
        let skipped = None;
        Ok(Some(Progress::Message(Message { header, skipped })))
    }

    /// Makes room for a fragment in place: for the rest of it, or before its header has arrived,
    /// for as much as the last part had. Returns the number of octets; `None` if there is no room.
    pub(super) fn reserve_in_place(&mut self, frame: &mut Frame, total: usize) -> Option<usize> {
        let FragmentPlace { at, state, .. } = *self.fragments.place()?;
        let expected = at + FRAGMENT_HEADER_LEN + self.fragments.last_part();
        match state {
            FragmentState::Unknown => reserve(frame, total.max(expected.min(frame.limit())), 0),
            FragmentState::Begun { more: true } | FragmentState::Whole => reserve(frame, total, 0),
            // A read that does not fill its room shows that nothing is left.
            FragmentState::Begun { more: false } => reserve(frame, total, LEAST_ROOM),
        }
    }

    /// Returns the message in fragments to the others, and leaves the octets after it in the
    /// caller's own frame.
    pub(super) fn leave_in_place(&mut self, frame: &mut Frame) -> Result<(), ReadError> {
        let place = self.fragments.place().ok_or(ReadError::Malformed)?;
        let later = frame.as_slice().get(place.at..);
        self.pending
            .extend_from_slice(later.ok_or(ReadError::Malformed)?)?;
        frame.truncate(place.at);
        frame.extend_from_slice(&place.aside)?;
        mem::swap(frame, &mut self.pending);
        self.return_in_place()
    }

    /// Returns the frame in `pending` to the message in fragments.
    fn return_in_place(&mut self) -> Result<(), ReadError> {
        let own = self.fragments.first_frame().ok_or(ReadError::Malformed)?;
        mem::swap(own, &mut self.pending);
        self.mode = ReceiveMode::Plain;
        self.exchanged = false;
        Ok(())
    }

    /// Joins the fragment that was received in place in `frame`. Returns the header of the whole
    /// message after the last one.
    pub(super) fn join_in_place(
        &mut self,
        header: MessageHeader,
        frame: &mut Frame,
    ) -> Result<Option<Message>, ReadError> {
        if let Some(header) = self.fragments.note_continued(header, frame) {
            self.has_joined(frame);
            self.exchanged = false;
            frame.set_limit(self.pending.limit());
            let skipped = None;
            return Ok(Some(Message { header, skipped }));
        }
        if self.pending.is_empty() {
            mem::swap(frame, &mut self.pending);
            self.return_in_place()?;
            self.continue_in_place();
        } else {
            // The octets that follow are read in the ordinary manner.
            let own = self.fragments.first_frame().ok_or(ReadError::Malformed)?;
            mem::swap(frame, own);
            self.mode = ReceiveMode::InParts;
            self.exchanged = false;
        }
        Ok(None)
    }

    /// Puts back a fragment that was received in place.
    pub(super) fn put_back_in_place(&mut self, frame: &Frame) -> Result<(), ReadError> {
        let place = *self.fragments.place().ok_or(ReadError::Malformed)?;
        let end = place.at + FRAGMENT_HEADER_LEN;
        let octets = frame.as_slice();
        let (before, body) = octets.split_at_checked(end).ok_or(ReadError::Malformed)?;
        let later = self.pending.len();
        let mut pending = Frame::new(
            FRAGMENT_HEADER_LEN + body.len() + later,
            self.pending.limit(),
        );
        pending.extend_from_slice(&place.aside)?;
        pending.extend_from_slice(body)?;
        pending.extend_from_slice(self.pending.as_slice())?;
        self.pending = pending;
        let own = self.fragments.first_frame().ok_or(ReadError::Malformed)?;
        *own = Frame::new(0, frame.limit());
        own.extend_from_slice(before)?;
        self.mode = ReceiveMode::Plain;
        self.exchanged = false;
        Ok(())
    }
}
