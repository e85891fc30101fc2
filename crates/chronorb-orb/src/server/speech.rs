//! The message protocols of a connection: GIOP, and what its client has agreed on beside it.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

#[cfg(feature = "gioplite")]
use std::sync::atomic::{AtomicBool, Ordering};

use chronorb_giop::framing::{Framed, FramingError, next_message};
#[cfg(feature = "gioplite")]
use chronorb_giop::{GiopLite, Protocol, framing::next_message_of};
use chronorb_giop::{HEADER_LEN, MessageHeader, MessageType, Version};

/// What a client may speak, and does.
#[derive(Default)]
pub(super) struct Speech {
    /// Whether its messages may be of GIOPlite.
    #[cfg(feature = "gioplite")]
    has_agreed: AtomicBool,
    /// Whether one was, so that it takes such messages too.
    #[cfg(feature = "gioplite")]
    is_lite: AtomicBool,
}

impl Speech {
    /// From now on messages may be of GIOPlite.
    #[cfg(feature = "gioplite")]
    pub(super) fn agree(&self) {
        self.has_agreed.store(true, Ordering::Release);
    }

    /// Looks for a message at the start of what has come by now, as [`next_message`].
    #[cfg(feature = "gioplite")]
    #[inline]
    pub(super) fn next_message(&self, octets: &[u8], limit: usize) -> Result<Framed, FramingError> {
        if !self.has_agreed.load(Ordering::Acquire) {
            return next_message(octets, limit);
        }
        let framed = next_message_of::<Protocol>(octets, limit);
        if let Ok(Framed::Complete { header, .. }) = framed
            && header.protocol == Protocol::Lite
            && !self.is_lite.load(Ordering::Relaxed)
        {
            self.is_lite.store(true, Ordering::Relaxed);
        }
        framed
    }

    /// Looks for a message at the start of what has come by now, as [`next_message`].
    #[cfg(not(feature = "gioplite"))]
    #[inline]
    pub(super) fn next_message(&self, octets: &[u8], limit: usize) -> Result<Framed, FramingError> {
        next_message(octets, limit)
    }

    /// Hands over a message without a body, as the client understands it.
    pub(super) fn with_empty_message<R>(
        &self,
        kind: MessageType,
        send: impl FnOnce(&[u8]) -> R,
    ) -> R {
        #[cfg(feature = "gioplite")]
        if self.is_lite.load(Ordering::Relaxed) {
            return send(&GiopLite::empty_message(kind));
        }
        send(&empty_message(kind))
    }
}

/// A message of GIOP that is only a header; its type says it all.
pub(super) fn empty_message(kind: MessageType) -> [u8; HEADER_LEN] {
    let header = MessageHeader {
        protocol: Version::V1_0.into(),
        endian: chronorb_cdr::Endian::NATIVE,
        more_fragments: false,
        kind,
        size: 0,
    };
    header.to_bytes()
}
