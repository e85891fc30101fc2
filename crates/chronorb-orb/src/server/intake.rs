//! From a connection to one whole message in the thread's own frame.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_cdr::Frame;
use chronorb_giop::connection::{Message, Negotiation, Progress};
use chronorb_transport::IoError;

use super::end::End;
use super::input::Input;

/// What an attempt to receive came to.
#[derive(Debug)]
pub(super) enum Intake {
    /// A message, a fragment perhaps, is in the frame; `more` where octets after it wait
    /// already, or may.
    Message { message: Message, more: bool },
    /// Nothing whole is there yet.
    Incomplete,
    /// A message is being skipped, and more of it may be there already.
    Skipping,
}

/// Receives one message into `frame`, which it clears.
///
/// In the ordinary case that is one `recv` for header and body, straight into the frame. Octets
/// beyond the message wait in `input`, and so does the beginning of one whose rest is not there:
/// a long one in the frame that it was received into, so that no octet of it is moved again.
/// `read` takes what is there into the room that it is given.
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
            // The rest may take its time: the thread is needed for other connections.
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
            Err(_) => return Err(End::Gone),
        }
    }
}

/// Octets that a thread receives of a message that it skips before others have a right to it.
const SKIPPED_AT_ONCE: usize = 1 << 20;
