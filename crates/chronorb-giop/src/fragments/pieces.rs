//! Messages that are sent in parts: CORBA 3.3 part 2, clause 9.4.9.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use crate::{HEADER_LEN, MessageHeader, MessageType, Version};

/// The division of one message into parts of at most a given size.
///
/// Only requests and replies, locate ones too, of GIOP 1.2 are divided. Those of GIOP 1.0 cannot
/// be. In 1.1 the values of a part are aligned to its own header, which is too late for a message
/// that is written.
#[derive(Clone, Debug)]
pub struct Fragmentation {
    /// The header of the message until its first part has begun.
    first: Option<MessageHeader>,
    /// The header of the fragments.
    fragment: MessageHeader,
    request_id: [u8; 4],
    /// The most octets of a part.
    most: usize,
    /// Octets of the message, without its header, that belong to later parts.
    left: usize,
    /// Octets of the message that are missing in the present part.
    room: usize,
}

/// Octets of a part: those of both, one after the other. A head that is not empty begins a part.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Piece<'m> {
    /// The octets to send before those of the message.
    pub head: Head,
    /// The piece of the message.
    pub body: &'m [u8],
}

/// The header of a part, or nothing.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Head {
    octets: [u8; FRAGMENT_HEADER_LEN],
    len: usize,
}

impl Head {
    /// Returns the octets.
    pub fn octets(&self) -> &[u8] {
        &self.octets[..self.len]
    }
}

impl Fragmentation {
    /// The least size of a part that makes sense.
    pub const LEAST_SIZE: usize = 32;

    /// Divides a message that begins with the octets of `start`, its request id among them, into
    /// parts of at most `size` octets, header included, or [`LEAST_SIZE`](Self::LEAST_SIZE) if
    /// that is more. `None` if the message is not longer than that, or is not to be divided; so
    /// for each message if `size` is 0.
    #[inline(never)]
    pub fn of(start: &[u8], size: usize) -> Option<Self> {
        if size == 0 {
            return None;
        }
        // All parts but the last are a multiple of 8 octets long.
        let most = size.max(Self::LEAST_SIZE) & !7;
        let header = MessageHeader::parse(start).ok()?;
        let is_divided = matches!(
            header.kind,
            MessageType::Request
                | MessageType::Reply
                | MessageType::LocateRequest
                | MessageType::LocateReply
        );
        if !is_divided
            || header.message_len() <= most
            || header.version() != Version::V1_2
            || header.more_fragments
        {
            return None;
        }
        Some(Self {
            first: Some(header),
            fragment: MessageHeader {
                kind: MessageType::Fragment,
                ..header
            },
            request_id: *start.get(HEADER_LEN..)?.first_chunk()?,
            most,
            left: header.size as usize,
            room: 0,
        })
    }

    /// Divides the next octets of the message, which are given in two slices: the first octets
    /// begin with its header. Octets beyond the length in the header are left out.
    pub fn pieces<'m>(&'m mut self, first: &'m [u8], second: &'m [u8]) -> Pieces<'m> {
        let header = if self.first.is_some() { HEADER_LEN } else { 0 };
        Pieces {
            rest: first.get(header..).unwrap_or_default(),
            second,
            of: self,
        }
    }

    /// Begins the next part. Returns its header.
    fn next_head(&mut self) -> Head {
        let (header, len) = match self.first.take() {
            Some(header) => (header, HEADER_LEN),
            None => (self.fragment, FRAGMENT_HEADER_LEN),
        };
        self.room = self.left.min(self.most - len);
        self.left -= self.room;
        let header = MessageHeader {
            more_fragments: self.left > 0,
            // A part is no longer than the message, whose size has room in its header.
            size: (len - HEADER_LEN + self.room) as u32,
            ..header
        };
        let mut octets = [0; FRAGMENT_HEADER_LEN];
        octets[..HEADER_LEN].copy_from_slice(&header.to_bytes());
        octets[HEADER_LEN..].copy_from_slice(&self.request_id);
        Head { octets, len }
    }
}

/// The pieces of octets of a message, in order, without a copy of them.
#[derive(Debug)]
pub struct Pieces<'m> {
    of: &'m mut Fragmentation,
    rest: &'m [u8],
    second: &'m [u8],
}

impl<'m> Iterator for Pieces<'m> {
    type Item = Piece<'m>;

    fn next(&mut self) -> Option<Piece<'m>> {
        if self.rest.is_empty() {
            self.rest = std::mem::take(&mut self.second);
        }
        let is_over = self.of.room == 0 && self.of.left == 0;
        if self.rest.is_empty() || is_over {
            return None;
        }
        let head = match self.of.room {
            0 => self.of.next_head(),
            _ => Head::default(),
        };
        let (body, rest) = self.rest.split_at(self.rest.len().min(self.of.room));
        self.rest = rest;
        self.of.room -= body.len();
        Some(Piece { head, body })
    }
}

/// Number of octets before the body of a fragment: the header, and the id of the request.
pub(crate) const FRAGMENT_HEADER_LEN: usize = HEADER_LEN + 4;
