//! The sending half of a connection.

use crate::Protocol;
use crate::fragments::Pieces;
use crate::framing::{NextMessage, next_message_of};

/// The rule by which the messages of a connection are sent: whole, or in fragments of a bounded
/// size. The octets of a message are never copied.
///
/// A part of a message is handed to the transport in two slices, one to be sent directly after the
/// other. The first is the header of a fragment; it is empty for a message that is sent whole.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct MessageWriter {
    fragment_size: usize,
}

/// The amount of a message that has been sent.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct WriteProgress {
    /// Number of parts that have been sent.
    parts: usize,
    /// Octets of the part after these.
    octets: usize,
}

impl WriteProgress {
    /// Whether any octet of the message has been sent.
    pub const fn has_begun(self) -> bool {
        self.parts > 0 || self.octets > 0
    }
}

impl MessageWriter {
    /// The least number of octets of a fragment, header included.
    pub const LEAST_FRAGMENT: usize = Pieces::LEAST_SIZE;

    /// Makes a writer of fragments of at most `fragment_size` octets, header included, or
    /// [`LEAST_FRAGMENT`](Self::LEAST_FRAGMENT) if that is more; 0 sends all messages whole.
    ///
    /// Only requests and replies of GIOP 1.2, locate ones too, are sent in fragments.
    pub const fn new(fragment_size: usize) -> Self {
        Self { fragment_size }
    }

    /// Whether all messages are sent whole, however long they are.
    pub const fn is_whole(self) -> bool {
        self.fragment_size == 0
    }

    /// Hands the parts of a message to `send`, in order.
    ///
    /// # Errors
    /// The error of `send`, after which nothing more is handed out.
    #[inline]
    pub fn write<E>(
        self,
        message: &[u8],
        mut send: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        match Pieces::of(message, self.fragment_size) {
            None => send(&[], message),
            Some(mut pieces) => pieces.try_for_each(|piece| send(piece.head(), piece.body)),
        }
    }

    /// Hands the parts of `messages`, which are whole messages, to `send`, in order.
    ///
    /// # Errors
    /// The error of `send`, after which nothing more is handed out.
    pub fn write_all<E>(
        self,
        messages: &[u8],
        mut send: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.is_whole() {
            return send(&[], messages);
        }
        let mut rest = messages;
        while let Ok(NextMessage::Complete { len, .. }) =
            next_message_of::<Protocol>(rest, usize::MAX)
        {
            let (message, after) = rest.split_at(len);
            rest = after;
            self.write(message, &mut send)?;
        }
        Ok(())
    }

    /// Hands the octets of a message that have not been sent to `send`, which returns the number
    /// of octets that it took, until it has taken all.
    ///
    /// # Errors
    /// The error of `send`; `progress` has what was sent before, and the rest can be sent later.
    pub fn resume<E>(
        self,
        message: &[u8],
        progress: &mut WriteProgress,
        mut send: impl FnMut(&[u8], &[u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        let mut part = 0;
        self.write(message, |head, body| {
            part += 1;
            if part <= progress.parts {
                return Ok(());
            }
            while progress.octets < head.len() + body.len() {
                let (head, body) = match head.get(progress.octets..) {
                    Some(head) => (head, body),
                    None => (&[][..], &body[progress.octets - head.len()..]),
                };
                progress.octets += send(head, body)?;
            }
            *progress = WriteProgress {
                parts: part,
                octets: 0,
            };
            Ok(())
        })
    }
}
