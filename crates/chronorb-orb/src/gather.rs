//! Messages with large sequences of octets, which are sent without a copy.
//!
//! A message begins with its length, so its body is written twice. The first pass leaves out large
//! slices and determines the length; if nothing was left out, the message is complete. The second
//! pass sends the message piece by piece. It sends no more octets than the announced length: a
//! message is whole and consistent, or its connection ends inside it.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_cdr::{CdrError, Encoder, Frame, Gather};
use chronorb_giop::{SystemException, SystemExceptionKind, minor, set_message_len};

/// A function that writes the body of a message, the same each time.
pub(crate) type Write<'f> = &'f dyn Fn(&mut Encoder<'_>) -> Result<(), CdrError>;

/// A function that sends two pieces of a message, one after the other.
pub(crate) type Send<'s, E> = &'s mut dyn FnMut(&[u8], &[u8]) -> Result<(), E>;

/// An error: the connection cannot be used any more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct LostConnection;

/// The reason why a message was not sent whole.
pub(crate) enum GatherError<E> {
    /// Sending failed.
    Failed(E),
    /// Writing failed, or the second pass differed from the first.
    Unwritten(SystemException),
}

impl<E> From<CdrError> for GatherError<E> {
    fn from(error: CdrError) -> Self {
        Self::Unwritten(error.into())
    }
}

/// Writes a body without its large slices. Returns the number of octets that were left out.
pub(crate) fn write(encoder: &mut Encoder<'_>, body: Write<'_>) -> Result<usize, CdrError> {
    let mut left_out = OmittedOctets(0);
    body(&mut encoder.gathering(GREAT, &mut left_out))?;
    Ok(left_out.0)
}

/// Sends a message of `total` octets whose body was [written](write) from `start` on. Also returns
/// the number of octets that were sent.
pub(crate) fn send<E>(
    encoder: &mut Encoder<'_>,
    start: usize,
    total: usize,
    body: Write<'_>,
    send: Send<'_, E>,
) -> (usize, Result<(), GatherError<E>>) {
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

/// Lets an encoder leave out the large slices of a body, as [`write`] does.
#[inline]
pub(crate) fn omitting<'f>(encoder: Encoder<'f>, omitted: &'f mut OmittedOctets) -> Encoder<'f> {
    encoder.with_gather(GREAT, omitted)
}

/// A count of the octets that are left out.
#[derive(Default)]
pub(crate) struct OmittedOctets(pub(crate) usize);

impl Gather for OmittedOctets {
    fn take(&mut self, frame: &Frame, octets: &[u8]) -> Result<bool, CdrError> {
        if !is_worth_it(frame, octets) {
            return Ok(false);
        }
        self.0 += octets.len();
        Ok(true)
    }
}

/// Whether a slice is left out. Where more octets than its own have been copied already, copying it
/// costs less than writing those twice.
fn is_worth_it(frame: &Frame, octets: &[u8]) -> bool {
    octets.len() >= frame.len()
}

/// The state of sending a message.
struct Sender<'s, E> {
    send: Send<'s, E>,
    total: usize,
    sent: usize,
    /// The number of octets of the frame that have been sent.
    of_frame: usize,
    failed: Option<E>,
}

impl<E> Sender<'_, E> {
    fn send_message(
        &mut self,
        encoder: &mut Encoder<'_>,
        start: usize,
        body: Write<'_>,
    ) -> Result<(), GatherError<E>> {
        encoder.truncate(start);
        let total = u32::try_from(self.total).map_err(|_| CdrError::LengthOverflow)?;
        set_message_len(encoder.frame_mut(), total);
        let written = body(&mut encoder.gathering(GREAT, self));
        // A failure to send counts, whatever the body made of it.
        if let Some(error) = self.failed.take() {
            return Err(GatherError::Failed(error));
        }
        written?;
        if self.left(encoder.frame(), &[]) != Some(0) {
            return Err(unlike());
        }
        if self.of_frame < encoder.frame().len() {
            self.put(encoder.frame(), &[])
                .map_err(GatherError::Failed)?;
        }
        Ok(())
    }

    /// The number of octets of the message that follow after the frame and `octets`; `None` where
    /// these exceed the message.
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

/// The error for a body that differs from the first pass.
fn unlike<E>() -> GatherError<E> {
    let (kind, minor) = (SystemExceptionKind::Marshal, minor::OTHER_MARSHAL_FAILURE);
    GatherError::Unwritten(SystemException::no(kind, minor))
}

/// The least size of a slice to leave out: a copy of fewer octets costs less than a second pass.
const GREAT: usize = 64 << 10;
