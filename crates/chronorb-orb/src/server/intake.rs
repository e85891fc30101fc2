//! From a connection to one whole message in the thread's own frame.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_cdr::Frame;
use chronorb_giop::MessageHeader;
use chronorb_giop::framing::{Framed, next_message};
use chronorb_transport::IoError;

use super::connection::Gone;
use super::input::Input;

/// What an attempt to receive came to.
#[derive(Debug)]
pub(super) enum Intake {
    /// A message, a fragment perhaps, is in the frame; `more` where octets after it wait
    /// already, or may.
    Message { header: MessageHeader, more: bool },
    /// Nothing whole is there yet.
    Incomplete,
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum End {
    /// The connection broke, or went over a bound.
    Gone,
    /// The peer will send no more; what is due to it is still sent.
    Ended,
    /// The peer does not speak GIOP: it is told by `MessageError`.
    Malformed,
}

impl From<Gone> for End {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

/// Receives one message of at most `max_message` octets into `frame`, which it clears.
///
/// In the ordinary case that is one `recv` for header and body, straight into the frame. Octets
/// beyond the message wait in `input`. `read` takes what is there into the room that it is given.
pub(super) fn receive(
    read: &mut dyn FnMut(&mut [u8]) -> Result<usize, IoError>,
    input: &mut Input,
    frame: &mut Frame,
    max_message: usize,
) -> Result<Intake, End> {
    frame.clear();
    loop {
        let direct = input.pending().is_empty();
        let waiting = if direct {
            frame.as_slice()
        } else {
            input.pending()
        };
        let missing = match next_message(waiting, max_message) {
            Ok(Framed::Complete { header, len }) => {
                if direct {
                    input.keep(&frame.as_slice()[len..])?;
                    frame.truncate(len);
                } else {
                    input.take(len, frame)?;
                }
                let more = input.unread || !input.pending().is_empty();
                return Ok(Intake::Message { header, more });
            }
            Ok(Framed::NeedMore { total }) => total.saturating_sub(waiting.len()),
            Err(_) => return Err(End::Malformed),
        };
        if direct && !frame.is_empty() {
            // The rest may take its time: the frame is needed for other connections.
            input.keep(frame.as_slice())?;
            frame.clear();
        }
        if !input.unread {
            return Ok(Intake::Incomplete);
        }
        // Room grows with what has arrived, not with what a header promises.
        let least = missing.clamp(LEAST_ROOM, input.pending().len().max(LEAST_ROOM));
        let room = if direct && input.pending().is_empty() {
            frame.spare_mut(LEAST_ROOM).map_err(|_| End::Gone)?
        } else {
            input.room(least)?
        };
        let capacity = room.len();
        match read(room) {
            Ok(n) => {
                // A read that does not fill its room has emptied the transport (epoll(7)).
                input.unread = n == capacity || input.hung_up;
                if direct && input.pending().is_empty() {
                    frame.commit(n);
                } else {
                    input.received(n);
                    input.account()?;
                }
            }
            Err(IoError::WouldBlock) => input.unread = false,
            Err(IoError::Ended) => return Err(End::Ended),
            Err(_) => return Err(End::Gone),
        }
    }
}

/// What one `recv` has room for at least.
const LEAST_ROOM: usize = 16 << 10;
