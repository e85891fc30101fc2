//! Receives one whole message from a connection into the thread's own frame.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_cdr::Frame;
use chronorb_giop::connection::{Message, Negotiation, Progress};
use chronorb_transport::IoError;

use super::end::End;
use super::input::Input;

/// The result of an attempt to receive a message.
#[derive(Debug)]
pub(super) enum Intake {
    /// A message or a fragment is in the frame; `more` where further octets wait, or may wait.
    Message { message: Message, more: bool },
    /// No whole message has arrived yet.
    /// Nothing whole is there yet.
    Incomplete,
    /// A message is being skipped, and more of it may have arrived already.
    Skipping,
}

/// Receives one message into `frame`, which it clears.
///
/// In the ordinary case this is one `recv` for header and body, straight into the frame. Octets
/// beyond the message stay in `input`. So does the beginning of an incomplete message: a long one
/// stays in the frame that it was received into, so that no octet is copied again. `read` reads
/// available octets into the room that it is given.
#[inline]
pub(super) fn receive(
    mut read: impl FnMut(&mut [u8]) -> Result<usize, IoError>,
    input: &mut Input,
    negotiation: &Negotiation,
    frame: &mut Frame,
) -> Result<Intake, End> {
    frame.clear();
    let mut at_once = 0;
    loop {
        let total = match input.reader.poll(negotiation, frame)? {
            Progress::Message(message) => {
                let more = input.unread || !input.reader.pending().is_empty();
                return Ok(Intake::Message { message, more });
            }
            Progress::Missing { total } => total,
        };
        if !input.unread {
            // The rest may take long: the thread is needed for other connections.
            input.suspend(total, frame)?;
            return Ok(Intake::Incomplete);
        }
        if at_once >= SKIPPED_AT_ONCE && input.reader.is_skipping() {
            input.suspend(total, frame)?;
            return Ok(Intake::Skipping);
        }
        let Some(room) = input.reader.room(frame, total)? else {
            continue;
        };
        let capacity = room.len();
        match read(room) {
            Ok(n) => {
                // A read that does not fill its room has emptied the transport (epoll(7)).
                input.unread = n == capacity || input.hung_up;
                frame.commit(n);
                at_once += n;
            }
            Err(IoError::WouldBlock) => input.unread = false,
            Err(IoError::Ended) => return Err(End::Ended),
            Err(_) => return Err(End::Lost),
        }
    }
}

/// Octets of a skipped message that a thread receives before it turns to other connections.
const SKIPPED_AT_ONCE: usize = 1 << 20;
