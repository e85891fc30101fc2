//! What goes to a server: whole messages, or their fragments.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_giop::fragments::Pieces;
use chronorb_rt::Deadline;
use chronorb_transport::{Connection, IoError, SendError};

/// Sends a message; in fragments, if it has more than `fragment_size` octets and that is not 0.
///
/// # Errors
/// [`SendError`] says how many octets went before, headers of fragments aside.
pub(super) fn send(
    transport: &dyn Connection,
    message: &[u8],
    fragment_size: usize,
    deadline: Deadline,
) -> Result<(), SendError> {
    let Some(pieces) = Pieces::of(message, fragment_size) else {
        return transport.send_all(message, deadline);
    };
    let mut before = 0;
    for piece in pieces {
        let sent = transport.send_both(piece.head(), piece.body, deadline);
        sent.map_err(|error| SendError {
            sent: before + error.sent,
            ..error
        })?;
        before += piece.body.len();
    }
    Ok(())
}

/// How much of a message has gone that is sent without waiting.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gone {
    /// Fragments that have gone whole.
    fragments: usize,
    /// Of the fragment after these, or of the message.
    octets: usize,
}

impl Gone {
    pub(super) fn has_begun(self) -> bool {
        self.fragments > 0 || self.octets > 0
    }
}

/// Sends the rest of a message as [`send`] does, as much as fits; all of it has gone where there
/// is no error.
///
/// # Errors
/// [`IoError::WouldBlock`] where nothing more fits.
pub(super) fn try_send(
    transport: &dyn Connection,
    message: &[u8],
    fragment_size: usize,
    gone: &mut Gone,
) -> Result<(), IoError> {
    let Some(pieces) = Pieces::of(message, fragment_size) else {
        while gone.octets < message.len() {
            gone.octets += transport.try_send(&message[gone.octets..])?;
        }
        return Ok(());
    };
    for piece in pieces.skip(gone.fragments) {
        let head = piece.head();
        while gone.octets < head.len() + piece.body.len() {
            let (head, body) = match head.get(gone.octets..) {
                Some(head) => (head, piece.body),
                None => (&[][..], &piece.body[gone.octets - head.len()..]),
            };
            gone.octets += transport.try_send_both(head, body)?;
        }
        gone.fragments += 1;
        gone.octets = 0;
    }
    Ok(())
}
