//! The errors of transports, by operation.

use std::io;

use rustix::io::Errno;
use thiserror::Error;

use crate::EndpointError;

/// An endpoint could not be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The host does not resolve to an address.
    #[error("cannot listen on {endpoint}: the host name does not resolve: {source}")]
    Unresolved {
        /// The endpoint as given.
        endpoint: String,
        /// The resolver's word.
        source: io::Error,
    },
    /// The transport does not support the endpoint.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The address is in use, not of this machine, or not permitted.
    #[error("cannot listen on {endpoint}: {source}")]
    Refused {
        /// The endpoint as given.
        endpoint: String,
        /// The system's word.
        source: io::Error,
    },
}

/// A peer could not be reached.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The host does not resolve to an address.
    #[error("the host name {host} does not resolve: {source}")]
    Unresolved {
        /// The host name.
        host: String,
        /// The resolver's word.
        source: io::Error,
    },
    /// No process listens there, or there is no route to it.
    #[error("no connection to {address}: {source}")]
    Refused {
        /// The address tried last.
        address: String,
        /// The system's word.
        source: io::Error,
    },
    /// The peer, or this side, refused to continue, because required protection is not available.
    #[error("no connection to {address}: {problem}")]
    Unacceptable {
        /// The address tried last.
        address: String,
        /// The missing option or ability, and the side that lacks it.
        problem: String,
    },
    /// The deadline passed first.
    #[error("no connection to {address} in time")]
    TimedOut {
        /// The address tried last.
        address: String,
    },
}

/// A connection could not be accepted.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum AcceptError {
    /// No descriptor or memory is left; the connection waits in the backlog.
    #[error("no descriptor is left for a connection")]
    Exhausted,
    /// The endpoint is broken.
    #[error("accepting failed: {0}")]
    Failed(Errno),
}

/// Octets could not be moved.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum IoError {
    /// Nothing can be moved without waiting.
    #[error("would have to wait")]
    WouldBlock,
    /// The deadline passed first.
    #[error("the deadline passed")]
    TimedOut,
    /// The peer ended its side of the stream in order.
    #[error("the peer ended the stream")]
    Ended,
    /// The peer closed the connection.
    #[error("the peer closed the connection")]
    Closed,
    /// A message is too long for the connection; nothing of it was sent, and the connection
    /// continues.
    #[error("the message is longer than the transport carries")]
    TooLarge,
    /// The peer violated the transport's protocol, or could not prove its identity.
    #[error("the peer broke the protocol")]
    Violated,
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(Errno),
}

impl IoError {
    /// Converts an error number of a stream.
    pub(crate) fn from_errno(errno: Errno) -> Self {
        match errno {
            Errno::AGAIN => Self::WouldBlock,
            Errno::CONNRESET | Errno::PIPE => Self::Closed,
            other => Self::Broken(other),
        }
    }
}

impl From<io::Error> for IoError {
    /// Converts a system error of reading from or writing to a descriptor.
    fn from(error: io::Error) -> Self {
        Self::from_errno(Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }
}

/// A message could not be sent whole.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("{cause} after {sent} octets")]
pub struct SendError {
    /// The number of octets that the transport took before.
    pub sent: usize,
    /// The reason why the rest was not sent.
    pub cause: IoError,
}
