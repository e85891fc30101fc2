//! From a connection to one whole message in the thread's own frame.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_cdr::{CdrError, Frame};
use chronorb_giop::fragments::{KEPT_OF_SKIPPED, SKIPPED_TIMES};
use chronorb_giop::framing::{Framed, FramingError};
use chronorb_giop::{MessageHeader, MessageProtocol, MessageType, Protocol};
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
    Message {
        header: MessageHeader,
        /// Why the message was skipped, and the frame has only its beginning.
        skipped: Option<CdrError>,
        more: bool,
    },
    /// Nothing whole is there yet.
    Incomplete,
    /// A message is being skipped, and more of it may be there already.
    Skipping,
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum End {
    /// The connection broke, or went over a bound.
    Gone,
    /// The rest of a message did not come in time.
    Late,
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
/// A request beyond `max_message` is skipped, up to [`SKIPPED_TIMES`] that, and so is one for which
/// there is no memory.
/// `read` takes what is there into the room that it is given.
pub(super) fn receive(
    mut read: impl FnMut(&mut [u8]) -> Result<usize, IoError>,
    input: &mut Input,
    speech: &Speech,
    frame: &mut Frame,
    max_message: usize,
) -> Result<Intake, End> {
    frame.clear();
    if input.skipping.is_some() {
        input.resume(frame)?;
    } else if !input.pending().is_empty() {
        match speech.next_message(input.pending(), max_message) {
            Ok(Framed::Complete { header, len }) => {
                input.take(len, frame)?;
                return Ok(message(header, None, input));
            }
            Ok(Framed::NeedMore { .. }) | Err(FramingError::TooLarge(_)) => input.resume(frame)?,
            Err(_) => return Err(End::Malformed),
        }
    }
    let mut at_once = 0;
    loop {
        let room = if input.skipping.is_some() {
            match skip(input, frame, at_once)? {
                Skip::Room(len) => &mut frame.spare_mut(len).map_err(|_| End::Gone)?[..len],
                Skip::Over(intake) => return Ok(intake),
            }
        } else {
            let total = match speech.next_message(frame.as_slice(), max_message) {
                Ok(Framed::Complete { header, len }) => {
                    input.complete(len, frame)?;
                    return Ok(message(header, None, input));
                }
                Ok(Framed::NeedMore { total }) => total,
                Err(FramingError::TooLarge(len)) if len / SKIPPED_TIMES <= max_message => {
                    input.skipping = Some(CdrError::FrameFull);
                    continue;
                }
                Err(_) => return Err(End::Malformed),
            };
            if !input.unread {
                // The rest may take its time: the thread is needed for other connections.
                input.suspend(total, frame)?;
                return Ok(Intake::Incomplete);
            }
            match room_for(frame, total, LEAST_ROOM) {
                Ok(room) => room,
                Err(cause) => {
                    input.skipping = Some(cause);
                    continue;
                }
            }
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

/// The next step of skipping a message.
enum Skip {
    /// So many octets of it may be received.
    Room(usize),
    /// The message was skipped, or not all of it has come.
    Over(Intake),
}

/// Goes on to skip the message whose beginning is in the frame: all but [`KEPT_OF_SKIPPED`] octets
/// of it are thrown away as they come. `at_once` octets of it were received by this call so far.
#[cold]
fn skip(input: &mut Input, frame: &mut Frame, at_once: usize) -> Result<Skip, End> {
    let header = Protocol::read_header(frame.as_slice()).map_err(|_| End::Malformed)?;
    let len = header.message_len();
    if !matches!(
        header.kind,
        MessageType::Request | MessageType::LocateRequest | MessageType::Fragment
    ) {
        return Err(End::Malformed);
    }
    let has_come_at_once = input.skipped == 0 && frame.len() >= len;
    if !has_come_at_once {
        input.skipped += frame.len().saturating_sub(KEPT_OF_SKIPPED);
        frame.truncate(KEPT_OF_SKIPPED);
    }
    let missing = len.saturating_sub(frame.len() + input.skipped);
    if missing == 0 {
        // What follows it may have come with it.
        let kept = if has_come_at_once { len } else { frame.len() };
        let cause = input.skipping.take();
        input.skipped = 0;
        input.complete(kept, frame)?;
        return Ok(Skip::Over(message(header, cause, input)));
    }
    if !input.unread || at_once >= SKIPPED_AT_ONCE {
        input.suspend(frame.len(), frame)?;
        return Ok(Skip::Over(match input.unread {
            false => Intake::Incomplete,
            true => Intake::Skipping,
        }));
    }
    Ok(Skip::Room(missing.min(LEAST_ROOM)))
}

fn message(header: MessageHeader, skipped: Option<CdrError>, input: &Input) -> Intake {
    let more = input.unread || !input.pending().is_empty();
    Intake::Message {
        header,
        skipped,
        more,
    }
}

/// What one `recv` has room for at least, while the length of the message is not known.
const LEAST_ROOM: usize = 16 << 10;
/// Octets that a thread skips before others have a right to it.
const SKIPPED_AT_ONCE: usize = 1 << 20;
