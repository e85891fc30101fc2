//! Detection of the boundaries of GIOP messages in a stream of octets.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use crate::{HeaderError, MessageHeader, MessageProtocol, Version};

/// The state of the octets received so far.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NextMessage {
    /// The beginning of a message.
    NeedMore {
        /// The number of octets needed before the next attempt.
        total: usize,
    },
    /// A whole message, and perhaps more after it.
    Complete {
        /// The header of the message.
        header: MessageHeader,
        /// Number of octets of the message, header included.
        len: usize,
    },
}

/// The reason why a stream of octets cannot be read any further.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FramingError {
    /// The octets are not a valid header.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// A message is longer than the limit. The number is its length in octets, with its header.
    #[error("a message of {0} octets is greater than the limit")]
    TooLarge(usize),
}

/// Finds a message of GIOP at the start of `buf`. Messages of more than `limit` octets, header
/// included, are refused as soon as their header is present, and other protocols at the first
/// octet.
///
/// # Errors
/// See [`FramingError`].
#[inline]
pub fn next_message(buf: &[u8], limit: usize) -> Result<NextMessage, FramingError> {
    next_message_of::<Version>(buf, limit)
}

/// Finds a message as [`next_message`] does, of another protocol, or of any
/// ([`Protocol`](crate::Protocol)).
///
/// # Errors
/// See [`FramingError`].
#[inline]
pub fn next_message_of<P: MessageProtocol>(
    buf: &[u8],
    limit: usize,
) -> Result<NextMessage, FramingError> {
    let header = match P::read_header(buf) {
        Ok(header) => header,
        Err(HeaderError::TooShort) => {
            let total = P::least_len(buf);
            return Ok(NextMessage::NeedMore { total });
        }
        Err(error) => return Err(error.into()),
    };
    let len = header.message_len();
    if len > limit {
        return Err(FramingError::TooLarge(len));
    }
    Ok(if buf.len() < len {
        NextMessage::NeedMore { total: len }
    } else {
        NextMessage::Complete { header, len }
    })
}

/// Octets of the message that begins so, header included; `None` where none does, or its header is
/// not whole.
pub fn message_len(buf: &[u8]) -> Option<usize> {
    Some(MessageHeader::parse(buf).ok()?.message_len())
}
