//! Encrypted octets that are not sent yet.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::io::{IoSlice, Write};

use chronorb_rt::{Deadline, PiMutex};
use rustls::Connection as Session;

use crate::{Connection, IoError, SendError};

/// Ciphertext on its way from rustls to the socket: a few records, for which it keeps the room.
///
/// Encrypted octets, which must be sent. If the socket has no room, the octets of incomplete
/// records count as unsent, so that the caller sends them again when there is room.
#[derive(Default)]
pub(super) struct RecordWriter {
    ciphertext: Vec<u8>,
    /// The number of octets that the socket has taken.
    gone: usize,
    /// The end of each record in it, and the number of octets in the record that the caller takes
    /// for unsent.
    records: Vec<(usize, usize)>,
    /// Octets whose records are sent, and that the caller still takes for unsent.
    untold: usize,
}

/// Whether to wait for room.
#[derive(Clone, Copy)]
pub(super) enum Way {
    Now,
    Until(Deadline),
}

impl RecordWriter {
    /// Encrypts and sends two pieces, one after the other.
    pub(super) fn send_both(
        &mut self,
        session: &PiMutex<Session>,
        carrier: &dyn Connection,
        first: &[u8],
        second: &[u8],
        way: Way,
    ) -> Result<(), SendError> {
        let len = first.len() + second.len();
        let mut sent = 0;
        let mut has_begun = false;
        loop {
            let flushed = self.flush(carrier, way);
            let told = self.untold.min(len - sent);
            self.untold -= told;
            sent += told;
            if let Err(cause) = flushed {
                if has_begun && sent == 0 {
                    sent = self.tell_one();
                }
                return Err(SendError { sent, cause });
            }
            if sent == len {
                return Ok(());
            }
            has_begun = true;
            self.encrypt(session, (first, second), sent)
                .map_err(|cause| SendError { sent, cause })?;
        }
    }

    /// Sends rustls's own messages: handshakes and alerts.
    pub(super) fn send_own(
        &mut self,
        session: &PiMutex<Session>,
        carrier: &dyn Connection,
        way: Way,
    ) -> Result<(), IoError> {
        self.collect(&mut session.lock());
        self.flush(carrier, way)
    }

    /// Encrypts as much as fits into a few records, after so many octets of the pieces.
    fn encrypt(
        &mut self,
        session: &PiMutex<Session>,
        (first, second): (&[u8], &[u8]),
        mut begun: usize,
    ) -> Result<(), IoError> {
        let len = first.len() + second.len();
        while begun < len && self.records.len() < AT_ONCE {
            let pieces = match first.get(begun..) {
                Some(first) => [IoSlice::new(first), IoSlice::new(second)],
                None => [
                    IoSlice::new(&[]),
                    IoSlice::new(&second[begun - first.len()..]),
                ],
            };
            let before = self.ciphertext.len();
            let mut session = session.lock();
            let taken = session.writer().write_vectored(&pieces);
            self.collect(&mut session);
            drop(session);
            let end = self.ciphertext.len();
            match taken {
                Ok(taken) if end - before > taken => {
                    self.records.push((end, taken));
                    begun += taken;
                }
                // Keys of TLS 1.2 that have reached their limit encrypt no more: rustls closes the
                // session instead.
                _ => return Err(IoError::Closed),
            }
        }
        Ok(())
    }

    fn collect(&mut self, session: &mut Session) {
        while session.wants_write() {
            // A vector takes everything.
            let _ = session.write_tls(&mut self.ciphertext);
        }
    }

    /// Sends encrypted octets, as far as there is room, and counts the records that are sent.
    fn flush(&mut self, carrier: &dyn Connection, way: Way) -> Result<(), IoError> {
        let pushed = self.push(carrier, way);
        let (gone, untold) = (self.gone, &mut self.untold);
        self.records.retain(|(end, len)| {
            let is_left = *end > gone;
            *untold += if is_left { 0 } else { *len };
            is_left
        });
        if pushed.is_ok() {
            self.ciphertext.clear();
            self.gone = 0;
        }
        pushed
    }

    fn push(&mut self, carrier: &dyn Connection, way: Way) -> Result<(), IoError> {
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
        Ok(())
    }

    /// Counts one octet as sent, since encryption cannot be undone: the caller must know that a
    /// message is partly sent, unless that is all there is.
    fn tell_one(&mut self) -> usize {
        let held: usize = self.records.iter().map(|(_, len)| *len).sum();
        match self.records.first_mut() {
            Some((_, len)) if held > 1 => {
                *len -= 1;
                1
            }
            _ => 0,
        }
    }
}

/// Records that are sent by one system call, of 16 KiB each: as many as rustls itself keeps.
const AT_ONCE: usize = 4;
