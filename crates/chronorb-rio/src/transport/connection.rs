//! The connection of the transport.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use chronorb_rt::Deadline;
use chronorb_transport::{Connection, IoError, Remote, SendError, SocketOptions};

use crate::engine::Stream;

/// A connection over a stream of a class. Its descriptor is the stream's bell.
#[derive(Debug)]
pub(super) struct RioConnection {
    stream: Stream,
    options: SocketOptions,
}

impl RioConnection {
    pub(super) fn new(stream: Stream, options: SocketOptions) -> Self {
        Self { stream, options }
    }
}

impl Connection for RioConnection {
    fn try_recv(&self, room: &mut [u8]) -> Result<usize, IoError> {
        self.stream.try_receive(room)
    }

    fn try_send(&self, octets: &[u8]) -> Result<usize, IoError> {
        self.stream.try_send(octets, &[])
    }

    fn try_send_both(&self, first: &[u8], second: &[u8]) -> Result<usize, IoError> {
        self.stream.try_send(first, second)
    }

    fn recv(&self, room: &mut [u8], deadline: Deadline) -> Result<usize, IoError> {
        self.stream.receive(room, deadline)
    }

    fn recv_until_interrupted(
        &self,
        room: &mut [u8],
        limit: Option<Duration>,
    ) -> Result<Option<usize>, IoError> {
        self.stream.receive_until_interrupted(room, limit)
    }

    fn interrupt(&self) {
        self.stream.set_interrupted(true);
    }

    fn resume(&self) {
        self.stream.set_interrupted(false);
    }

    fn send_all(&self, octets: &[u8], deadline: Deadline) -> Result<(), SendError> {
        self.stream.send(octets, &[], deadline)
    }

    fn send_both(&self, first: &[u8], second: &[u8], deadline: Deadline) -> Result<(), SendError> {
        self.stream.send(first, second, deadline)
    }

    fn set_token(&self, token: u64) {
        self.stream.set_token(token);
    }

    fn is_stale(&self) -> bool {
        self.stream.has_input()
    }

    fn shutdown(&self) {
        self.stream.shut_down();
    }

    fn options(&self) -> io::Result<SocketOptions> {
        let config = self.stream.class().config();
        let buffer = u32::try_from(config.buffer).unwrap_or(u32::MAX);
        Ok(SocketOptions {
            no_delay: true,
            keep_alive: config.keep_alive.is_some(),
            dscp: config.dscp,
            send_buffer: Some(buffer),
            receive_buffer: Some(buffer),
            ..self.options
        })
    }

    #[allow(
        clippy::disallowed_macros,
        clippy::disallowed_methods,
        reason = "for messages to people"
    )]
    fn peer(&self) -> String {
        let class = &self.stream.class().config().name;
        match self.stream.peer() {
            Some(peer) => format!("{peer}, class {class}"),
            None => "a peer that is gone".to_owned(),
        }
    }

    fn remote(&self) -> Remote {
        Remote::at_host("riop", self.stream.peer())
    }
}

impl AsFd for RioConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
