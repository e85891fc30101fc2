//! From a connection to one whole message in the thread's own frame.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_cdr::Frame;
use chronorb_giop::MessageHeader;
use chronorb_giop::framing::Framed;
use chronorb_transport::IoError;

use super::connection::Gone;
use super::input::Input;
use super::speech::Speech;
use crate::room::room_for;

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

/// Receives one message of at most `max_message` octets, of a client that may speak so, into `frame`, which it
/// clears.
///
/// In the ordinary case that is one `recv` for header and body, straight into the frame. Octets
/// beyond the message wait in `input`, and so does the beginning of one whose rest is not there:
/// a long one in the frame that it was received into, so that no octet of it is moved again.
/// `read` takes what is there into the room that it is given.
pub(super) fn receive(
    mut read: impl FnMut(&mut [u8]) -> Result<usize, IoError>,
    input: &mut Input,
    speech: &Speech,
    frame: &mut Frame,
    max_message: usize,
) -> Result<Intake, End> {
    frame.clear();
    if !input.pending().is_empty() {
        match speech.next_message(input.pending(), max_message) {
            Ok(Framed::Complete { header, len }) => {
                input.take(len, frame)?;
                return Ok(message(header, input));
            }
            Ok(Framed::NeedMore { .. }) => input.resume(frame)?,
            Err(_) => return Err(End::Malformed),
        }
    }
    loop {
        let total = match speech.next_message(frame.as_slice(), max_message) {
            Ok(Framed::Complete { header, len }) => {
                input.complete(len, frame)?;
                return Ok(message(header, input));
            }
            Ok(Framed::NeedMore { total }) => total,
            Err(_) => return Err(End::Malformed),
        };
        if !input.unread {
            // The rest may take its time: the thread is needed for other connections.
            input.suspend(total, frame)?;
            return Ok(Intake::Incomplete);
        }
        let room = room_for(frame, total, LEAST_ROOM).map_err(|_| End::Gone)?;
        let capacity = room.len();
        match read(room) {
            Ok(n) => {
                // A read that does not fill its room has emptied the transport (epoll(7)).
                input.unread = n == capacity || input.hung_up;
                frame.commit(n);
            }
            Err(IoError::WouldBlock) => input.unread = false,
            Err(IoError::Ended) => return Err(End::Ended),
            Err(_) => return Err(End::Gone),
        }
    }
}

fn message(header: MessageHeader, input: &Input) -> Intake {
    let more = input.unread || !input.pending().is_empty();
    Intake::Message { header, more }
}

/// What one `recv` has room for at least, while the length of the message is not known.
const LEAST_ROOM: usize = 16 << 10;
