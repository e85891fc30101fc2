//! A TLS connection.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chronorb_rt::{Deadline, PiMutex};
use rustls::Connection as Session;

use super::incoming::RecordReader;
use super::outgoing::{RecordWriter, Way};
use crate::{Connection, IoError, Remote, SendError, SocketOptions};

/// TLS on another connection.
///
/// Each direction has a lock for the one thread that uses it; other threads only try the lock. The
/// lock of the session is taken after either, and is never held during a wait.
pub(super) struct TlsConnection {
    pub(super) carrier: Box<dyn Connection>,
    pub(super) session: PiMutex<Session>,
    pub(super) incoming: PiMutex<RecordReader>,
    pub(super) outgoing: PiMutex<RecordWriter>,
    established: AtomicBool,
    /// The error in the peer's data, or the error that the peer reported.
    problem: PiMutex<Option<rustls::Error>>,
}

impl TlsConnection {
    /// A connection before its handshake.
    pub(super) fn new(carrier: Box<dyn Connection>, mut session: Session) -> Self {
        session.set_buffer_limit(Some(RECORD));
        Self {
            carrier,
            session: PiMutex::new(session),
            incoming: PiMutex::new(RecordReader::new()),
            outgoing: PiMutex::new(RecordWriter::default()),
            established: AtomicBool::new(false),
            problem: PiMutex::new(None),
        }
    }

    pub(super) fn set_established(&self) {
        self.established.store(true, Ordering::Release);
    }

    /// Receives available octets. If room is left, the socket has no more octets, and no further
    /// edge would report that. No octets at all have the same meaning, unless the caller `waits`
    /// for more.
    fn gather(
        &self,
        incoming: &mut RecordReader,
        room: &mut [u8],
        waits: bool,
    ) -> Result<usize, IoError> {
        let mut filled = 0;
        let mut in_vain = 0;
        loop {
            match self.take(incoming, &mut room[filled..]) {
                Ok(taken) => filled += taken,
                Err(_) if filled > 0 => return Ok(filled),
                Err(error) => return Err(error),
            }
            let is_enough = match filled {
                0 => waits,
                _ => incoming.has_drained_socket(),
            };
            if filled == room.len() || (is_enough && filled > 0) {
                return Ok(filled);
            }
            if is_enough {
                return Err(IoError::WouldBlock);
            }
            match incoming.fill(|space| self.carrier.try_recv(space)) {
                Err(_) if filled > 0 => return Ok(filled),
                outcome => outcome?,
            }
            in_vain += incoming.len().max(LEAST_READ);
            if filled == 0 && in_vain > MOST_IN_VAIN {
                // Records without octets, which cost others the thread's time.
                return Err(IoError::Violated);
            }
        }
    }

    /// Decrypts received octets into the room, and sends the answers of rustls itself.
    fn take(&self, incoming: &mut RecordReader, room: &mut [u8]) -> Result<usize, IoError> {
        let mut session = self.session.lock();
        let was_handshaking = session.is_handshaking();
        let mut filled = 0;
        let taken = loop {
            match session.reader().read(&mut room[filled..]) {
                // The peer has sent its close notification.
                Ok(0) if filled < room.len() => break Err(IoError::Ended),
                Ok(n) => filled += n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => break Err(IoError::Closed),
            }
            if filled == room.len() || incoming.is_empty() {
                break Ok(filled);
            }
            if let Err(error) = incoming.feed(&mut session) {
                *self.problem.lock() = Some(error);
                break Err(IoError::Violated);
            }
        };
        let has_own = session.wants_write();
        let is_handshaking = session.is_handshaking();
        drop(session);
        if has_own || is_handshaking {
            self.send_own();
        }
        if was_handshaking && !is_handshaking {
            self.set_established();
        }
        match taken {
            Err(_) if filled > 0 => Ok(filled),
            taken => taken,
        }
    }

    /// Sends the messages of rustls itself, as far as they fit. If a thread is sending meanwhile,
    /// that one sends them too, or the next one does.
    fn send_own(&self) {
        if let Some(mut outgoing) = self.outgoing.try_lock() {
            let _ = outgoing.send_own(&self.session, &*self.carrier, Way::Now);
        }
    }

    /// Waits by `wait` until something was received; `None` where it was called away.
    fn receive(
        &self,
        room: &mut [u8],
        mut wait: impl FnMut(&mut [u8]) -> Result<Option<usize>, IoError>,
    ) -> Result<Option<usize>, IoError> {
        let mut incoming = self.incoming.lock();
        incoming.begin();
        let mut in_vain = 0;
        loop {
            match self.gather(&mut incoming, room, true) {
                Err(IoError::WouldBlock) => {}
                other => return other.map(Some),
            }
            match incoming.fill(|space| wait(space)?.ok_or(IoError::WouldBlock)) {
                Err(IoError::WouldBlock) => return Ok(None),
                outcome => outcome?,
            }
            in_vain += incoming.len();
            if in_vain > MOST_IN_VAIN {
                // A receiving thread could not be interrupted.
                return Err(IoError::Violated);
            }
        }
    }

    /// Sends a close notification, so that the peer knows that no octets are missing.
    fn say_goodbye(&self) {
        if self.is_established() {
            self.session.lock().send_close_notify();
            self.send_own();
        }
    }

    fn send(&self, first: &[u8], second: &[u8], way: Way) -> Result<(), SendError> {
        let mut outgoing = self.outgoing.lock();
        outgoing.send_both(&self.session, &*self.carrier, first, second, way)
    }
}

impl Connection for TlsConnection {
    fn is_established(&self) -> bool {
        self.established.load(Ordering::Acquire)
    }

    #[allow(clippy::disallowed_methods, reason = "once for each connection")]
    fn problem(&self) -> Option<String> {
        let problem = self.problem.lock();
        problem.as_ref().map(|error| error.to_string())
    }

    fn try_recv(&self, room: &mut [u8]) -> Result<usize, IoError> {
        let mut incoming = self.incoming.lock();
        incoming.begin();
        self.gather(&mut incoming, room, false)
    }

    fn try_send(&self, octets: &[u8]) -> Result<usize, IoError> {
        self.try_send_both(octets, &[])
    }

    fn try_send_both(&self, first: &[u8], second: &[u8]) -> Result<usize, IoError> {
        if !self.is_established() {
            return Err(IoError::WouldBlock);
        }
        match self.send(first, second, Way::Now) {
            Ok(()) => Ok(first.len() + second.len()),
            Err(error) if error.cause == IoError::WouldBlock && error.sent > 0 => Ok(error.sent),
            Err(error) => Err(error.cause),
        }
    }

    fn recv(&self, room: &mut [u8], deadline: Deadline) -> Result<usize, IoError> {
        let wait = |space: &mut [u8]| self.carrier.recv(space, deadline).map(Some);
        // That wait is never called away.
        self.receive(room, wait)?.ok_or(IoError::WouldBlock)
    }

    fn recv_until_interrupted(
        &self,
        room: &mut [u8],
        limit: Option<Duration>,
    ) -> Result<Option<usize>, IoError> {
        // A record that arrives octet by octet has no more time than others.
        let deadline = limit.map(Deadline::after);
        self.receive(room, |space| {
            let left = deadline.map(Deadline::remaining);
            match left {
                Some(None) => Ok(None),
                left => self.carrier.recv_until_interrupted(space, left.flatten()),
            }
        })
    }

    fn interrupt(&self) {
        self.carrier.interrupt();
    }

    fn resume(&self) {
        self.carrier.resume();
    }

    fn send_all(&self, octets: &[u8], deadline: Deadline) -> Result<(), SendError> {
        self.send_both(octets, &[], deadline)
    }

    fn send_both(&self, first: &[u8], second: &[u8], deadline: Deadline) -> Result<(), SendError> {
        self.send(first, second, Way::Until(deadline))
    }

    /// Decrypts received octets, to distinguish messages from TLS's own, and keeps them.
    fn is_stale(&self) -> bool {
        let Some(mut incoming) = self.incoming.try_lock() else {
            // The receiving thread learns of the end.
            return false;
        };
        let mut session = self.session.lock();
        let mut in_vain = 0;
        loop {
            // Octets, or an end.
            if session.reader().into_first_chunk().is_ok() {
                return true;
            }
            if !incoming.is_empty() {
                if incoming.feed(&mut session).is_err() {
                    return true;
                }
                continue;
            }
            if let Err(error) = incoming.fill(|space| self.carrier.try_recv(space)) {
                return error != IoError::WouldBlock;
            }
            in_vain += incoming.len().max(LEAST_READ);
            if in_vain > MOST_IN_VAIN {
                return true;
            }
        }
    }

    fn shutdown(&self) {
        self.say_goodbye();
        self.carrier.shutdown();
    }

    fn abort(&self) {
        self.carrier.abort();
    }

    fn options(&self) -> io::Result<SocketOptions> {
        self.carrier.options()
    }

    fn peer(&self) -> String {
        self.carrier.peer()
    }

    fn remote(&self) -> Remote {
        Remote {
            scheme: "ssliop",
            ..self.carrier.remote()
        }
    }

    #[allow(clippy::disallowed_methods, reason = "once for each connection")]
    fn peer_certificate(&self) -> Option<Vec<u8>> {
        let session = self.session.lock();
        session.peer_certificates()?.first().map(|c| c.to_vec())
    }
}

impl AsFd for TlsConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.carrier.as_fd()
    }
}

impl fmt::Debug for TlsConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsConnection")
            .field("carrier", &self.carrier)
            .finish_non_exhaustive()
    }
}

impl Drop for TlsConnection {
    fn drop(&mut self) {
        self.say_goodbye();
    }
}

/// The octets that one record holds at most (RFC 8446 section 5.1).
const RECORD: usize = 16 << 10;
/// The number of octets without the end of a record, or in empty records, after which the peer
/// violates the protocol: twice the longest message of a handshake.
const MOST_IN_VAIN: usize = 128 << 10;
/// The least size that a non-blocking read counts as.
const LEAST_READ: usize = 256;
