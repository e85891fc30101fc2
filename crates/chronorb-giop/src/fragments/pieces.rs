//! Messages that go out in parts: CORBA 3.3 part 2, clause 9.4.9.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use crate::{HEADER_LEN, MessageHeader, MessageType, Version};

/// The parts of a message as they go onto the wire, each of at most a given size, without a copy
/// of the message: each part is a head of its own and a piece of the message behind it.
///
/// Only requests and replies, locate ones too, of GIOP 1.2 are parted. Of GIOP 1.0 they cannot be,
/// and in 1.1 the values of a part are aligned to its own header, which is too late for a message
/// that is written.
#[derive(Clone, Debug)]
pub struct Pieces<'m> {
    /// The header of the message, or nothing once it was sent.
    first: Option<MessageHeader>,
    /// The header of the fragments.
    fragment: MessageHeader,
    request_id: [u8; 4],
    rest: &'m [u8],
    most: usize,
}

/// One part: the octets of both, one after the other, are a GIOP message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Piece<'m> {
    head: [u8; FRAGMENT_HEADER_LEN],
    head_len: usize,
    /// The piece of the message.
    pub body: &'m [u8],
}

impl Piece<'_> {
    /// Returns the octets to send before the piece.
    pub fn head(&self) -> &[u8] {
        &self.head[..self.head_len]
    }
}

impl<'m> Pieces<'m> {
    /// The least size of a part that makes sense.
    pub const LEAST_SIZE: usize = 32;

    /// The parts of `message`, each of at most `size` octets, header included, or
    /// [`LEAST_SIZE`](Self::LEAST_SIZE) if that is more. `None` where the message is no greater,
    /// or is not to be parted; so for each message if `size` is 0.
    pub fn of(message: &'m [u8], size: usize) -> Option<Self> {
        if size == 0 {
            return None;
        }
        // All parts but the last are a multiple of 8 octets long.
        let most = size.max(Self::LEAST_SIZE) & !7;
        if message.len() <= most {
            return None;
        }
        let header = MessageHeader::parse(message).ok()?;
        let parted = matches!(
            header.kind,
            MessageType::Request
                | MessageType::Reply
                | MessageType::LocateRequest
                | MessageType::LocateReply
        );
        let (_, rest) = message.split_at_checked(HEADER_LEN)?;
        if !parted || header.version() != Version::V1_2 || header.more_fragments {
            return None;
        }
        Some(Self {
            first: Some(header),
            fragment: MessageHeader {
                kind: MessageType::Fragment,
                ..header
            },
            request_id: *rest.first_chunk()?,
            rest,
            most,
        })
    }
}

impl<'m> Iterator for Pieces<'m> {
    type Item = Piece<'m>;

    fn next(&mut self) -> Option<Piece<'m>> {
        if self.rest.is_empty() {
            return None;
        }
        let (header, head_len) = match self.first.take() {
            Some(header) => (header, HEADER_LEN),
            None => (self.fragment, FRAGMENT_HEADER_LEN),
        };
        let len = self.rest.len().min(self.most - head_len);
        let (body, rest) = self.rest.split_at(len);
        self.rest = rest;
        let header = MessageHeader {
            more_fragments: !rest.is_empty(),
            // A part is no longer than the message, whose size has room in its header.
            size: (head_len - HEADER_LEN + len) as u32,
            ..header
        };
        let mut head = [0; FRAGMENT_HEADER_LEN];
        head[..HEADER_LEN].copy_from_slice(&header.to_bytes());
        head[HEADER_LEN..].copy_from_slice(&self.request_id);
        Some(Piece {
            head,
            head_len,
            body,
        })
    }
}

/// Number of octets before the body of a fragment: the header, and the id of the request.
pub(crate) const FRAGMENT_HEADER_LEN: usize = HEADER_LEN + 4;
