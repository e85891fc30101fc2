//! Messages with great sequences of octets, which are sent from where they are.
//!
//! The length of a message stands at its beginning. So a message is written twice: once without
//! what is great in it, which tells the length, and is all there is to do where nothing is; and
//! once more to send it piece by piece. All that is sent comes from the second time, and is sent
//! only as far as the length goes that was told: a message is whole and consistent, or it ends
//! within, with its connection.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_cdr::{CdrError, Encoder, Frame, Gather};
use chronorb_giop::{SystemException, SystemExceptionKind, minor, set_message_len};

/// What writes the body of a message, the same each time.
pub(crate) type Write<'f> = &'f dyn Fn(&mut Encoder<'_>) -> Result<(), CdrError>;

/// What sends two pieces of a message, one after the other.
pub(crate) type Send<'s, E> = &'s mut dyn FnMut(&[u8], &[u8]) -> Result<(), E>;

/// Why a message was not sent whole.
pub(crate) enum Unsent<E> {
    /// It could not be sent.
    Failed(E),
    /// It could not be written, or not as the time before.
    Unwritten(SystemException),
}

impl<E> From<CdrError> for Unsent<E> {
    fn from(error: CdrError) -> Self {
        Self::Unwritten(error.into())
    }
}

/// Writes a body; where something in it is great, without that. Returns how many octets were left
/// out.
pub(crate) fn write(encoder: &mut Encoder<'_>, body: Write<'_>) -> Result<usize, CdrError> {
    let mut left_out = LeftOut(0);
    body(&mut encoder.gathering(GREAT, &mut left_out))?;
    Ok(left_out.0)
}

/// Sends a message of `total` octets whose body was [written](write) from `start` on. Also returns
/// how many octets went.
pub(crate) fn send<E>(
    encoder: &mut Encoder<'_>,
    start: usize,
    total: usize,
    body: Write<'_>,
    send: Send<'_, E>,
) -> (usize, Result<(), Unsent<E>>) {
    let mut sender = Sender {
        send,
        total,
        sent: 0,
        of_frame: 0,
        failed: None,
    };
    let result = sender.send_message(encoder, start, body);
    (sender.sent, result)
}

/// Counts what is left out.
struct LeftOut(usize);

impl Gather for LeftOut {
    fn take(&mut self, frame: &Frame, octets: &[u8]) -> Result<bool, CdrError> {
        if !is_worth_it(frame, octets) {
            return Ok(false);
        }
        self.0 += octets.len();
        Ok(true)
    }
}

/// Whether a slice is left out: where more has been copied already, it does not matter any more,
/// and that would have to be written twice.
fn is_worth_it(frame: &Frame, octets: &[u8]) -> bool {
    octets.len() >= frame.len()
}

/// A message on its way.
struct Sender<'s, E> {
    send: Send<'s, E>,
    total: usize,
    sent: usize,
    /// How much of the frame has been sent.
    of_frame: usize,
    failed: Option<E>,
}

impl<E> Sender<'_, E> {
    fn send_message(
        &mut self,
        encoder: &mut Encoder<'_>,
        start: usize,
        body: Write<'_>,
    ) -> Result<(), Unsent<E>> {
        encoder.truncate(start);
        let total = u32::try_from(self.total).map_err(|_| CdrError::LengthOverflow)?;
        set_message_len(encoder.frame_mut(), total);
        let written = body(&mut encoder.gathering(GREAT, self));
        // Whatever the body made of it.
        if let Some(error) = self.failed.take() {
            return Err(Unsent::Failed(error));
        }
        written?;
        if self.left(encoder.frame(), &[]) != Some(0) {
            return Err(unlike());
        }
        if self.of_frame < encoder.frame().len() {
            self.put(encoder.frame(), &[]).map_err(Unsent::Failed)?;
        }
        Ok(())
    }

    /// How many octets of the message are still to come behind what is in the frame and `octets`;
    /// `None` where that is too much.
    fn left(&self, frame: &Frame, octets: &[u8]) -> Option<usize> {
        let unsent = frame.len().checked_sub(self.of_frame)? + octets.len();
        self.total.checked_sub(self.sent)?.checked_sub(unsent)
    }

    fn put(&mut self, frame: &Frame, octets: &[u8]) -> Result<(), E> {
        let head = &frame.as_slice()[self.of_frame..];
        (self.send)(head, octets)?;
        self.of_frame = frame.len();
        self.sent += head.len() + octets.len();
        Ok(())
    }
}

impl<E> Gather for Sender<'_, E> {
    fn take(&mut self, frame: &Frame, octets: &[u8]) -> Result<bool, CdrError> {
        if !is_worth_it(frame, octets) {
            return Ok(false);
        }
        if self.failed.is_some() || self.left(frame, octets).is_none() {
            return Err(CdrError::FrameFull);
        }
        match self.put(frame, octets) {
            Ok(()) => Ok(true),
            Err(error) => {
                self.failed = Some(error);
                Err(CdrError::FrameFull)
            }
        }
    }
}

/// The body was not what it was the time before.
fn unlike<E>() -> Unsent<E> {
    let (kind, minor) = (SystemExceptionKind::Marshal, minor::OTHER_MARSHAL_FAILURE);
    Unsent::Unwritten(SystemException::no(kind, minor))
}

/// A copy of fewer octets costs no more than to write the rest twice.
const GREAT: usize = 64 << 10;
