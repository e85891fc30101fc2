//! What goes to a server: whole messages, or their fragments.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_giop::fragments::Pieces;
use chronorb_rt::Deadline;
use chronorb_transport::{Connection, SendError};

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
    let pieces = match fragment_size {
        0 => None,
        size => Pieces::of(message, size),
    };
    let Some(pieces) = pieces else {
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
