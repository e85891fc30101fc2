//! The ends of connections.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_giop::connection::ReadError;

/// The connection cannot be used any more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Gone;

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

impl From<ReadError> for End {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::NoMemory => Self::Gone,
            ReadError::Malformed | ReadError::TooLarge => Self::Malformed,
        }
    }
}
