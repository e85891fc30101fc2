//! Received octets that are not decrypted yet.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use rustls::{Connection as Session, Error};

use crate::IoError;

/// Ciphertext on its way from the socket to rustls.
pub(super) struct RecordReader {
    space: Box<[u8]>,
    /// The part that rustls does not have yet.
    first: usize,
    end: usize,
    /// Whether it arrived since this [began](Self::begin).
    is_new: bool,
}

impl RecordReader {
    /// Nothing, and room for a whole record.
    pub(super) fn new() -> Self {
        Self {
            space: [0].repeat(LARGEST_RECORD).into(),
            first: 0,
            end: 0,
            is_new: false,
        }
    }

    /// Reads once by `read`; all that was there before has been [fed](Self::feed) on.
    pub(super) fn fill(
        &mut self,
        read: impl FnOnce(&mut [u8]) -> Result<usize, IoError>,
    ) -> Result<(), IoError> {
        // An end in order is announced within TLS.
        let len = read(&mut self.space).map_err(|error| match error {
            IoError::Ended => IoError::Closed,
            other => other,
        })?;
        (self.first, self.end) = (0, len);
        self.is_new = true;
        Ok(())
    }

    /// Gives rustls a part of it, of which it decrypts the records that are whole.
    ///
    /// # Errors
    /// The peer violates the protocol, or one side does not trust the other. The session is over
    /// then.
    pub(super) fn feed(&mut self, session: &mut Session) -> Result<(), Error> {
        let mut rest = &self.space[self.first..self.end];
        let taken = session.read_tls(&mut rest);
        // It is refused only where a handshake message has no end.
        let taken = taken.map_err(|_| Error::HandshakeNotComplete)?;
        // Octets after the peer's close notification are not read.
        self.first = match taken {
            0 => self.end,
            taken => self.first + taken,
        };
        session.process_new_packets().map(drop)
    }

    /// Octets that rustls does not have yet.
    pub(super) fn len(&self) -> usize {
        self.end - self.first
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first == self.end
    }

    /// Whether a read since it began took all that the socket had.
    pub(super) fn has_drained_socket(&self) -> bool {
        self.is_new && self.end < self.space.len()
    }

    /// Resets the knowledge about the socket.
    pub(super) fn begin(&mut self) {
        self.is_new = false;
    }
}

/// A header, the longest plaintext, and the overhead of any version (RFC 5246 section 6.2.3).
const LARGEST_RECORD: usize = 5 + (16 << 10) + 2048;
