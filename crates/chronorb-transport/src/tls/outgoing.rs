//! What is encrypted and not sent yet.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::io::{IoSlice, Write};

use chronorb_rt::{Deadline, PiMutex};
use rustls::Connection as Session;

use crate::{Connection, IoError, SendError};

/// Ciphertext on its way from rustls to the socket: one record, for which it keeps the room.
///
/// So what the peer can decrypt and what counts as sent are the same octets.
#[derive(Default)]
pub(super) struct Outgoing {
    ciphertext: Vec<u8>,
    /// How much of it the socket has.
    gone: usize,
    /// How many octets are in it that the caller takes for unsent and will give again, so that it
    /// comes back when the socket has room.
    held: usize,
}

/// Whether to wait for room.
#[derive(Clone, Copy)]
pub(super) enum Way {
    Now,
    Until(Deadline),
}

impl Outgoing {
    /// Encrypts and sends two pieces, one after the other.
    pub(super) fn send_both(
        &mut self,
        session: &PiMutex<Session>,
        carrier: &dyn Connection,
        first: &[u8],
        second: &[u8],
        way: Way,
    ) -> Result<(), SendError> {
        let failed = |sent| move |cause| SendError { sent, cause };
        let len = first.len() + second.len();
        self.flush(carrier, way).map_err(failed(0))?;
        let mut sent = self.held.min(len);
        self.held -= sent;
        while sent < len {
            let (first, rest) = match first.get(sent..) {
                Some(first) => (first, second),
                None => (&[][..], &second[sent - first.len()..]),
            };
            let encrypted = self.encrypt(session, first, rest).map_err(failed(sent))?;
            if let Err(cause) = self.flush(carrier, way) {
                // Encrypting cannot be undone: the caller must know that it is in the midst of it.
                let told = usize::from(sent == 0 && encrypted > 1);
                self.held = encrypted - told;
                sent += told;
                return Err(SendError { sent, cause });
            }
            sent += encrypted;
        }
        Ok(())
    }

    /// Sends what rustls itself has to say: handshakes and alerts.
    pub(super) fn send_own(
        &mut self,
        session: &PiMutex<Session>,
        carrier: &dyn Connection,
        way: Way,
    ) -> Result<(), IoError> {
        self.collect(&mut session.lock());
        self.flush(carrier, way)
    }

    /// Encrypts as much as one record holds. Returns how much.
    fn encrypt(
        &mut self,
        session: &PiMutex<Session>,
        first: &[u8],
        second: &[u8],
    ) -> Result<usize, IoError> {
        let before = self.ciphertext.len();
        let mut session = session.lock();
        let pieces = [IoSlice::new(first), IoSlice::new(second)];
        let taken = session.writer().write_vectored(&pieces);
        self.collect(&mut session);
        match taken {
            // Keys of TLS 1.2 that have encrypted all they may encrypt nothing more (rustls then
            // says goodbye instead).
            Ok(taken) if self.ciphertext.len() - before > taken => Ok(taken),
            _ => Err(IoError::Closed),
        }
    }

    fn collect(&mut self, session: &mut Session) {
        while session.wants_write() {
            // A vector takes everything.
            let _ = session.write_tls(&mut self.ciphertext);
        }
    }

    fn flush(&mut self, carrier: &dyn Connection, way: Way) -> Result<(), IoError> {
        while self.gone < self.ciphertext.len() {
            let rest = &self.ciphertext[self.gone..];
            match way {
                Way::Now => self.gone += carrier.try_send(rest)?,
                Way::Until(deadline) => match carrier.send_all(rest, deadline) {
                    Ok(()) => self.gone = self.ciphertext.len(),
                    Err(error) => {
                        self.gone += error.sent;
                        return Err(error.cause);
                    }
                },
            }
        }
        self.ciphertext.clear();
        self.gone = 0;
        Ok(())
    }
}
