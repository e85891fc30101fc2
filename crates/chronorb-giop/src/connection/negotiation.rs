//! The message protocols of a connection: GIOP, and GIOPlite once both ends have agreed on it.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::atomic::{AtomicU8, Ordering};

use chronorb_cdr::{Endian, Frame};

use crate::framing::{FramingError, NextMessage, next_message};
use crate::{GiopLite, Protocol, framing::next_message_of};
use crate::{HEADER_LEN, MessageHeader, MessageType, Version};

/// The protocols that the peer of a connection may use. It begins with GIOP.
///
/// A client that [proposes](Self::new) GIOPlite learns from the first reply whether the server has
/// agreed. A server [agrees](Self::agree) before it sends that reply, and learns from the first
/// message of GIOPlite that the client has received it. Threads that send see what the reading
/// thread has learned.
#[derive(Debug, Default)]
pub struct Negotiation {
    state: AtomicU8,
}

impl Negotiation {
    /// Makes the negotiation of a new connection; a server proposes nothing.
    pub const fn new(proposes: bool) -> Self {
        Self {
            state: AtomicU8::new(if proposes { PROPOSING } else { GIOP }),
        }
    }

    /// Agrees as a server: from now on messages may be of GIOPlite.
    pub fn agree(&self) {
        self.state.fetch_max(AGREED, Ordering::Release);
    }

    /// Looks for a message at the start of what has been received, as [`next_message`].
    ///
    /// # Errors
    /// See [`FramingError`].
    #[inline]
    pub fn next_message(&self, octets: &[u8], limit: usize) -> Result<NextMessage, FramingError> {
        if self.state.load(Ordering::Acquire) >= AGREED {
            let framed = next_message_of::<Protocol>(octets, limit);
            if let Ok(NextMessage::Complete { header, .. }) = framed
                && header.protocol == Protocol::Lite
                && !self.is_lite()
            {
                self.state.store(LITE, Ordering::Release);
            }
            return framed;
        }
        next_message(octets, limit)
    }

    /// Learns, as a client, from a whole message whether the server has agreed.
    #[inline]
    pub fn learn(&self, header: MessageHeader, message: &Frame) {
        if header.kind == MessageType::Reply && self.is_proposing() {
            let agreed = GiopLite::is_agreed_by(message.as_slice());
            let state = if agreed { LITE } else { GIOP };
            self.state.store(state, Ordering::Release);
        }
    }

    /// Whether requests propose GIOPlite: no reply has arrived.
    #[inline]
    pub fn is_proposing(&self) -> bool {
        self.state.load(Ordering::Acquire) == PROPOSING
    }

    /// Whether the peer is known to take messages of GIOPlite.
    #[inline]
    pub fn is_lite(&self) -> bool {
        self.state.load(Ordering::Acquire) == LITE
    }

    /// Hands a message without a body to `send`, in the protocol that the peer understands.
    pub fn with_empty_message<R>(&self, kind: MessageType, send: impl FnOnce(&[u8]) -> R) -> R {
        if self.is_lite() {
            return send(&GiopLite::empty_message(kind));
        }
        send(&empty_message(kind))
    }
}

/// Returns a GIOP message that consists of its header only, such as `CloseConnection`.
pub fn empty_message(kind: MessageType) -> [u8; HEADER_LEN] {
    let header = MessageHeader {
        protocol: Version::V1_0.into(),
        endian: Endian::NATIVE,
        more_fragments: false,
        kind,
        size: 0,
    };
    header.to_bytes()
}

const GIOP: u8 = 0;
/// A client has asked for GIOPlite, and has received no reply.
const PROPOSING: u8 = 1;
/// A server has agreed, and has received no message of GIOPlite.
const AGREED: u8 = 2;
const LITE: u8 = 3;
