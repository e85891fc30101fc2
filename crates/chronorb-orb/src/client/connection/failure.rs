//! The ways in which a call comes to no reply.

use chronorb_giop::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use chronorb_transport::{IoError, SendError};

/// A call did not come to a reply.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::client) enum Failure {
    /// The server closed the connection in order, and has not touched the request: it can be
    /// sent again.
    NotProcessed,
    Exception(SystemException),
}

impl From<SystemException> for Failure {
    fn from(exception: SystemException) -> Self {
        Self::Exception(exception)
    }
}

pub(in crate::client) fn timeout(completed: CompletionStatus) -> SystemException {
    let minor = match completed {
        CompletionStatus::No => minor::TIMEOUT_REQUEST_END,
        _ => minor::TIMEOUT_REPLY_END,
    };
    SystemException::new(SystemExceptionKind::Timeout, minor, completed)
}

pub(in crate::client) fn comm_failure(completed: CompletionStatus) -> SystemException {
    SystemException::new(
        SystemExceptionKind::CommFailure,
        minor::CONNECTION_LOST,
        completed,
    )
}

/// Whether a message that was not sent has done no harm to its connection: there was no time left for it, or it
/// is longer than what the transport carries.
pub(super) fn is_harmless(error: SendError) -> bool {
    error.sent == 0 && matches!(error.cause, IoError::TimedOut | IoError::TooLarge)
}

/// The exception for a message that was not sent whole, and therefore not processed.
pub(super) fn not_sent(error: SendError) -> Failure {
    match error.cause {
        IoError::TimedOut => timeout(CompletionStatus::No).into(),
        IoError::TooLarge => {
            SystemException::no(SystemExceptionKind::ImpLimit, minor::MESSAGE_TOO_LARGE).into()
        }
        // The connection had ended while it was idle; the request may go by a new one.
        IoError::Closed => Failure::NotProcessed,
        _ if error.sent == 0 => Failure::NotProcessed,
        _ => comm_failure(CompletionStatus::No).into(),
    }
}
