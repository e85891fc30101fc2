//! The ends of connections.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_giop::connection::ReadError;

pub(super) use crate::gather::LostConnection;

/// The reason why a connection ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum End {
    /// The connection broke, or exceeded a bound.
    Lost,
    /// The rest of a message did not arrive in time.
    Late,
    /// The peer will send no more; replies that are due to it are still sent.
    Ended,
    /// The peer does not speak GIOP, and is sent a `MessageError`.
    Malformed,
}

impl From<LostConnection> for End {
    fn from(_: LostConnection) -> Self {
        Self::Lost
    }
}

impl From<ReadError> for End {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::NoMemory => Self::Lost,
            ReadError::Malformed | ReadError::TooLarge => Self::Malformed,
        }
    }
}
