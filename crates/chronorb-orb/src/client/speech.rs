//! The message protocols of a connection: GIOP, and what its server has agreed on beside it.
//!
//! The first reply says whether the server takes GIOPlite, if it was asked. Whoever reads learns it
//! from there, before anything that comes after it.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_cdr::Frame;
use chronorb_giop::MessageHeader;
use chronorb_giop::framing::{Framed, FramingError, next_message};
#[cfg(feature = "gioplite")]
use chronorb_giop::{GiopLite, MessageType, Protocol, framing::next_message_of};
use chronorb_transport::Connection;

use crate::config::OrbConfig;

/// What a server may speak.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Speech {
    Giop,
    /// It is asked for GIOPlite, and has sent no reply yet.
    #[cfg(feature = "gioplite")]
    Proposing,
    #[cfg(feature = "gioplite")]
    Lite,
}

impl Speech {
    /// That of a new connection.
    pub(super) fn new(config: &OrbConfig, transport: &dyn Connection) -> Self {
        #[cfg(feature = "gioplite")]
        if config.speaks_lite_on(transport) {
            return Self::Proposing;
        }
        #[cfg(not(feature = "gioplite"))]
        let _ = (config, transport);
        Self::Giop
    }

    /// Looks for a message at the start of what has come, as [`next_message`].
    #[inline]
    pub(super) fn next_message(self, octets: &[u8], limit: usize) -> Result<Framed, FramingError> {
        #[cfg(feature = "gioplite")]
        if self.is_lite() {
            return next_message_of::<Protocol>(octets, limit);
        }
        next_message(octets, limit)
    }

    /// What the server may speak after a whole message.
    #[inline]
    pub(super) fn after(self, header: MessageHeader, message: &Frame) -> Self {
        #[cfg(feature = "gioplite")]
        if self.is_proposing() && header.kind == MessageType::Reply {
            return match GiopLite::is_agreed_by(message.as_slice()) {
                true => Self::Lite,
                false => Self::Giop,
            };
        }
        #[cfg(not(feature = "gioplite"))]
        let _ = (header, message);
        self
    }

    /// Whether requests ask for GIOPlite.
    pub(super) fn is_proposing(self) -> bool {
        #[cfg(feature = "gioplite")]
        return self == Self::Proposing;
        #[cfg(not(feature = "gioplite"))]
        false
    }

    /// Whether messages may be of GIOPlite, either way.
    #[inline]
    pub(super) fn is_lite(self) -> bool {
        #[cfg(feature = "gioplite")]
        return self == Self::Lite;
        #[cfg(not(feature = "gioplite"))]
        false
    }
}
