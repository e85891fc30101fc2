//! A connection that is written down.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use chronorb_rt::{Deadline, PiMutex};

use super::conversation::{Conversation, Ends, FlowDirection, Side};
use super::file::TraceFile;
use crate::{Carriage, Connection, IoError, Messages, Remote, SendError, SocketOptions};

/// A connection, and the conversation that it is in the trace.
#[derive(Debug)]
pub(super) struct TracedConnection {
    inner: Box<dyn Connection>,
    file: Arc<TraceFile>,
    ends: Ends,
    messages: Messages,
    /// `None` where the other end writes it down.
    told: Option<PiMutex<Recording>>,
}

#[derive(Debug)]
struct Recording {
    conversation: Conversation,
    /// The received part of an incomplete message.
    part: Vec<u8>,
}

impl TracedConnection {
    pub(super) fn new(
        inner: Box<dyn Connection>,
        file: Arc<TraceFile>,
        side: Side,
        messages: Messages,
        about: &str,
    ) -> Self {
        let ends = Ends::of(&*inner, side, file.next_conversation());
        let told = file.begin(ends).then(|| {
            PiMutex::new(Recording {
                conversation: Conversation::begin(ends, side, inner.carriage(), &file, about),
                part: Vec::new(),
            })
        });
        Self {
            inner,
            file,
            ends,
            messages,
            told,
        }
    }

    /// Records the result of receiving into `room`.
    fn received(&self, room: &[u8], received: &Result<usize, IoError>) {
        let Some(told) = &self.told else { return };
        let Recording { conversation, part } = &mut *told.lock();
        match received {
            Ok(n) => match self.carriage() {
                Carriage::Stream => conversation.octets(&self.file, FlowDirection::In, &room[..*n]),
                Carriage::Messages { .. } => {
                    part.extend_from_slice(&room[..*n]);
                    while !part.is_empty() {
                        let len = (self.messages.len)(part).unwrap_or(part.len()).max(1);
                        let Some(message) = part.get(..len) else {
                            break;
                        };
                        conversation.octets(&self.file, FlowDirection::In, message);
                        part.drain(..len);
                    }
                }
            },
            Err(IoError::Ended) => conversation.end_of_input(&self.file),
            Err(IoError::WouldBlock | IoError::TimedOut) => {}
            Err(end) => conversation.reset(&self.file, FlowDirection::In, &end.to_string()),
        }
    }

    /// Records octets to be sent.
    fn sends(&self, conversation: &mut Conversation, octets: &[u8]) {
        let mut rest = octets;
        while !rest.is_empty() {
            let len = match self.carriage() {
                Carriage::Stream => rest.len(),
                Carriage::Messages { .. } => (self.messages.len)(rest).unwrap_or(rest.len()),
            };
            let (one, after) = rest.split_at(len.clamp(1, rest.len()));
            conversation.octets(&self.file, FlowDirection::Out, one);
            rest = after;
        }
    }

    /// Sends without waiting, and records the octets before an answer to them can be recorded.
    fn tries(
        &self,
        first: &[u8],
        second: &[u8],
        send: impl FnOnce() -> Result<usize, IoError>,
    ) -> Result<usize, IoError> {
        let Some(told) = &self.told else {
            return send();
        };
        let conversation = &mut told.lock().conversation;
        let sent = send();
        match sent {
            Ok(n) if n <= first.len() => self.sends(conversation, &first[..n]),
            Ok(n) if self.carriage() == Carriage::Stream => {
                self.sends(conversation, first);
                self.sends(conversation, &second[..n - first.len()]);
            }
            Ok(n) => self.sends(conversation, &[first, &second[..n - first.len()]].concat()),
            Err(IoError::WouldBlock | IoError::TooLarge) => {}
            Err(end) => conversation.reset(&self.file, FlowDirection::Out, &end.to_string()),
        }
        sent
    }

    /// Records the octets, and sends them by `send`: no thread may wait for a lock while a peer is
    /// slow.
    fn waits(
        &self,
        octets: &[&[u8]],
        send: impl FnOnce() -> Result<(), SendError>,
    ) -> Result<(), SendError> {
        let Some(told) = &self.told else {
            return send();
        };
        match self.carriage() {
            Carriage::Stream => {
                let mut told = told.lock();
                for piece in octets {
                    self.sends(&mut told.conversation, piece);
                }
            }
            Carriage::Messages { .. } => {
                self.sends(&mut told.lock().conversation, &octets.concat());
            }
        }
        let sent = send();
        if let Err(error) = &sent {
            let about = format!("not all of it was sent: {error}");
            let mut told = told.lock();
            told.conversation
                .reset(&self.file, FlowDirection::Out, &about);
        }
        sent
    }

    /// Sends so much that it would take its time to write it down, in parts.
    fn send_great(&self, octets: [&[u8]; 2], deadline: Deadline) -> Result<(), SendError> {
        let mut before = 0;
        for part in octets.iter().flat_map(|piece| piece.chunks(GREAT)) {
            let sent = self.waits(&[part], || self.inner.send_all(part, deadline));
            sent.map_err(|error| SendError {
                sent: before + error.sent,
                ..error
            })?;
            before += part.len();
        }
        Ok(())
    }

    fn is_great(&self, len: usize) -> bool {
        len > GREAT && self.told.is_some() && self.carriage() == Carriage::Stream
    }
}

impl Connection for TracedConnection {
    fn carriage(&self) -> Carriage {
        self.inner.carriage()
    }

    fn is_established(&self) -> bool {
        self.inner.is_established()
    }

    fn problem(&self) -> Option<String> {
        self.inner.problem()
    }

    fn try_recv(&self, room: &mut [u8]) -> Result<usize, IoError> {
        let received = self.inner.try_recv(room);
        self.received(room, &received);
        received
    }

    fn look(&self, room: &mut [u8]) -> Result<usize, IoError> {
        let received = self.inner.look(room);
        self.received(room, &received);
        received
    }

    fn try_send(&self, octets: &[u8]) -> Result<usize, IoError> {
        self.tries(octets, &[], || self.inner.try_send(octets))
    }

    fn try_send_both(&self, first: &[u8], second: &[u8]) -> Result<usize, IoError> {
        self.tries(first, second, || self.inner.try_send_both(first, second))
    }

    fn recv(&self, room: &mut [u8], deadline: Deadline) -> Result<usize, IoError> {
        let received = self.inner.recv(room, deadline);
        self.received(room, &received);
        received
    }

    fn recv_until_interrupted(
        &self,
        room: &mut [u8],
        limit: Option<Duration>,
    ) -> Result<Option<usize>, IoError> {
        let received = self.inner.recv_until_interrupted(room, limit).transpose();
        if let Some(received) = &received {
            self.received(room, received);
        }
        received.transpose()
    }

    fn interrupt(&self) {
        self.inner.interrupt();
    }

    fn resume(&self) {
        self.inner.resume();
    }

    fn send_all(&self, octets: &[u8], deadline: Deadline) -> Result<(), SendError> {
        if self.is_great(octets.len()) {
            return self.send_great([octets, &[]], deadline);
        }
        self.waits(&[octets], || self.inner.send_all(octets, deadline))
    }

    fn send_both(&self, first: &[u8], second: &[u8], deadline: Deadline) -> Result<(), SendError> {
        if self.is_great(first.len() + second.len()) {
            return self.send_great([first, second], deadline);
        }
        self.waits(&[first, second], || {
            self.inner.send_both(first, second, deadline)
        })
    }

    fn is_stale(&self) -> bool {
        self.inner.is_stale()
    }

    fn shutdown(&self) {
        self.inner.shutdown();
    }

    fn abort(&self) {
        self.inner.abort();
    }

    fn options(&self) -> io::Result<SocketOptions> {
        self.inner.options()
    }

    fn peer(&self) -> String {
        self.inner.peer()
    }

    fn remote(&self) -> Remote {
        self.inner.remote()
    }

    fn peer_certificate(&self) -> Option<Vec<u8>> {
        self.inner.peer_certificate()
    }
}

impl AsFd for TracedConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

impl Drop for TracedConnection {
    fn drop(&mut self) {
        if let Some(told) = &self.told {
            told.lock().conversation.end(&self.file);
            self.file.end(self.ends);
        }
    }
}

/// Octets that are written down before some of them are sent.
const GREAT: usize = 256 * 1024;
