//! The sending half of a connection.

use std::io::IoSlice;

use crate::Protocol;
use crate::fragments::{Fragmentation, Head, Piece, Pieces};
use crate::framing::{NextMessage, next_message_of};

/// The rule by which the messages of a connection are sent: whole, or in fragments of a bounded
/// size. The octets of a message are never copied.
///
/// Octets are handed to the transport as slices, to be sent one after the other. Up to
/// [`MOST_SLICES`](Self::MOST_SLICES) of them are handed over at a time, so that a message in
/// fragments takes few system calls.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct MessageWriter {
    fragment_size: usize,
}

/// A message of which the first octets, or none, have been written.
#[derive(Debug)]
pub struct OutgoingMessage(Option<Fragmentation>);

impl MessageWriter {
    /// The least number of octets of a fragment, header included.
    pub const LEAST_FRAGMENT: usize = Fragmentation::LEAST_SIZE;

    /// The most slices that are handed out at a time.
    pub const MOST_SLICES: usize = 2 * PIECES_AT_ONCE;

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

    /// Begins a message, of which `start` has the first octets: the header with the length, and
    /// the request id.
    #[inline]
    pub fn begin(self, start: &[u8]) -> OutgoingMessage {
        OutgoingMessage(match self.fragment_size {
            0 => None,
            size => Fragmentation::of(start, size),
        })
    }

    /// Hands the octets of a message to `send`, in order.
    ///
    /// # Errors
    /// The error of `send`, after which nothing more is handed out.
    #[inline]
    pub fn write<E>(
        self,
        message: &[u8],
        send: impl FnMut(&[IoSlice<'_>]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.begin(message).write(message, &[], send)
    }

    /// Hands the octets of `messages`, which are whole messages, to `send`, in order.
    ///
    /// # Errors
    /// The error of `send`, after which nothing more is handed out.
    pub fn write_all<E>(
        self,
        messages: &[u8],
        mut send: impl FnMut(&[IoSlice<'_>]) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.is_whole() {
            return send(&[IoSlice::new(messages)]);
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

    /// Hands the octets of a message that have not been sent to `send`, until it has taken all.
    /// `send` gets slices and the number of their octets that were sent before, and returns the
    /// number of octets that it took. `sent` counts the octets of the message that were sent, the
    /// headers of fragments too.
    ///
    /// # Errors
    /// The error of `send`; the rest can be sent later.
    pub fn resume<E>(
        self,
        message: &[u8],
        sent: &mut usize,
        mut send: impl FnMut(&[IoSlice<'_>], usize) -> Result<usize, E>,
    ) -> Result<(), E> {
        let mut before = 0;
        self.write(message, |slices| {
            let end = before + slices.iter().map(|slice| slice.len()).sum::<usize>();
            while *sent < end {
                *sent += send(slices, *sent - before)?;
            }
            before = end;
            Ok(())
        })
    }
}

impl OutgoingMessage {
    /// Hands the next octets of the message, which are those of `first` and then of `second`, to
    /// `send`, in order.
    ///
    /// # Errors
    /// The error of `send`, after which nothing more is handed out.
    #[inline]
    pub fn write<E>(
        &mut self,
        first: &[u8],
        second: &[u8],
        mut send: impl FnMut(&[IoSlice<'_>]) -> Result<(), E>,
    ) -> Result<(), E> {
        match &mut self.0 {
            None => send(&[IoSlice::new(first), IoSlice::new(second)]),
            Some(fragmentation) => write_pieces(fragmentation.pieces(first, second), &mut send),
        }
    }
}

/// Hands pieces to `send`, in order.
#[inline(never)]
fn write_pieces<E>(
    mut pieces: Pieces<'_>,
    send: &mut dyn FnMut(&[IoSlice<'_>]) -> Result<(), E>,
) -> Result<(), E> {
    loop {
        let mut heads = [Head::default(); PIECES_AT_ONCE];
        let (mut slices, mut len) = ([IoSlice::new(&[]); MessageWriter::MOST_SLICES], 0);
        for (place, both) in heads.iter_mut().zip(slices.chunks_exact_mut(2)) {
            let Some(Piece { head, body }) = pieces.next() else {
                break;
            };
            *place = head;
            both[0] = IoSlice::new(place.octets());
            both[1] = IoSlice::new(body);
            len += 2;
        }
        if len == 0 {
            return Ok(());
        }
        send(&slices[..len])?;
    }
}

/// The pieces of fragments that are handed over at a time: those of a message of 1 MiB in fragments
/// of 64 KiB, with some slices of its own.
const PIECES_AT_ONCE: usize = 32;
