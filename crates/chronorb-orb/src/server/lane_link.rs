//! A connection that a lane reads, as the client's half of the ORB uses it.

use std::fmt;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use chronorb_rt::{Backoff, Deadline, Key};
use chronorb_transport::{Connection, IoError, Remote, SendError, SocketOptions, has_hung_up};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::lane::ServerLane;
use crate::bidirectional::{LaneConnection, ReplyReceiver};
use crate::rtcorba::Priority;

/// A connection of a lane, for the client's half of the ORB.
pub(super) struct LaneLink {
    pub(super) lane: Arc<ServerLane>,
    pub(super) key: Key,
}

impl LaneConnection for LaneLink {
    fn priority(&self) -> Option<Priority> {
        self.lane.priority()
    }

    fn is_live(&self) -> bool {
        let connection = self.lane.connections.get(self.key);
        // The lane may have no thread at present that reads the end.
        connection.is_some_and(|connection| !has_hung_up(connection.transport()))
            && self.lane.is_live(self.key)
    }

    fn sender(&self) -> io::Result<Box<dyn Connection>> {
        let connection = self.lane.connections.get(self.key);
        let connection = connection.ok_or(io::ErrorKind::NotConnected)?;
        let socket = connection.transport().as_fd().try_clone_to_owned()?;
        let (lane, key) = (self.lane.clone(), self.key);
        Ok(Box::new(LaneSender { lane, key, socket }))
    }

    fn receiver(&self) -> Option<Arc<dyn ReplyReceiver>> {
        let connection = self.lane.connections.get(self.key)?;
        connection.receiver().cloned()
    }

    fn attach(&self, receiver: Arc<dyn ReplyReceiver>) -> bool {
        let Some(connection) = self.lane.connections.get(self.key) else {
            return false;
        };
        if !connection.attach(receiver) {
            return false;
        }
        if connection.is_originated() {
            self.lane.begin_reading(&connection, self.key);
        }
        // A lane ends calls after it has removed their connection, so one of the two sees the
        // other.
        if self.is_live() && !connection.has_ended() {
            return true;
        }
        connection.end_calls(false);
        false
    }

    fn has_transport(&self, transport: &dyn Connection) -> bool {
        let connection = self.lane.connections.get(self.key);
        connection.is_some_and(|connection| std::ptr::addr_eq(connection.transport(), transport))
    }

    fn claimant(&self) -> Option<NonZeroU64> {
        self.lane.connections.get(self.key)?.claimant()
    }

    fn identity(&self) -> (usize, u64) {
        let key = (u64::from(self.key.index) << 32) | u64::from(self.key.generation);
        (Arc::as_ptr(&self.lane).addr(), key)
    }
}

/// The sending half of a connection that a lane reads. Messages are queued behind those of the
/// lane's threads.
struct LaneSender {
    lane: Arc<ServerLane>,
    key: Key,
    socket: OwnedFd,
}

impl fmt::Debug for LaneSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaneSender").finish_non_exhaustive()
    }
}

impl AsFd for LaneSender {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl LaneSender {
    /// Sends a message, or leaves it to the lane's output; [`IoError::WouldBlock`] if octets wait
    /// there already, because the peer is slow.
    fn offer(&self, message: &[u8]) -> Result<(), IoError> {
        let connection = self.lane.connections.get(self.key);
        let connection = connection.ok_or(IoError::Closed)?;
        match connection.flush() {
            Ok(false) if !connection.output_waits() => {}
            Ok(_) => return Err(IoError::WouldBlock),
            Err(_) => {
                connection.transport().shutdown();
                return Err(IoError::Closed);
            }
        }
        match connection.send(message) {
            Ok(false) => {}
            Ok(true) => self.lane.rearm(&connection, self.key),
            // The message may have been sent. Its call ends with the connection, once the lane has
            // read what the peer sent before: perhaps that it ends the connection in order.
            Err(_) => connection.transport().shutdown(),
        }
        Ok(())
    }
}

impl Connection for LaneSender {
    fn try_recv(&self, _: &mut [u8]) -> Result<usize, IoError> {
        Err(IoError::WouldBlock)
    }

    fn try_send(&self, octets: &[u8]) -> Result<usize, IoError> {
        self.offer(octets).map(|()| octets.len())
    }

    fn try_send_both(&self, first: &[u8], second: &[u8]) -> Result<usize, IoError> {
        self.try_send(&[first, second].concat())
    }

    fn recv(&self, _: &mut [u8], _: Deadline) -> Result<usize, IoError> {
        Err(IoError::TimedOut)
    }

    fn recv_until_interrupted(
        &self,
        _: &mut [u8],
        _: Option<Duration>,
    ) -> Result<Option<usize>, IoError> {
        Ok(None)
    }

    fn interrupt(&self) {}

    fn resume(&self) {}

    fn send_all(&self, octets: &[u8], deadline: Deadline) -> Result<(), SendError> {
        let mut backoff = Backoff::new();
        loop {
            let cause = match self.offer(octets) {
                Ok(()) => return Ok(()),
                Err(IoError::WouldBlock) => match deadline.remaining() {
                    Some(left) => {
                        self.await_room(left);
                        // The thread that has the output may need a moment.
                        backoff.wait();
                        continue;
                    }
                    None => IoError::TimedOut,
                },
                Err(cause) => cause,
            };
            return Err(SendError { sent: 0, cause });
        }
    }

    fn send_both(&self, first: &[u8], second: &[u8], deadline: Deadline) -> Result<(), SendError> {
        self.send_all(&[first, second].concat(), deadline)
    }

    fn is_stale(&self) -> bool {
        !self.lane.is_live(self.key)
    }

    /// Ends a connection that this ORB opened. At the end of a lane that is left to the lane, which
    /// answers requests first. A connection of a client belongs to the client.
    fn shutdown(&self) {
        if let Some(connection) = self.lane.connections.get(self.key)
            && connection.is_originated()
            && !self.lane.is_stopping()
        {
            connection.transport().shutdown();
        }
    }

    fn options(&self) -> io::Result<SocketOptions> {
        let connection = self.lane.connections.get(self.key);
        let connection = connection.ok_or(io::ErrorKind::NotConnected)?;
        connection.transport().options()
    }

    fn peer(&self) -> String {
        let connection = self.lane.connections.get(self.key);
        connection.map_or_else(String::new, |connection| connection.transport().peer())
    }

    fn remote(&self) -> Remote {
        let connection = self.lane.connections.get(self.key);
        connection.map_or(Remote::UNKNOWN, |connection| {
            connection.transport().remote()
        })
    }
}

impl LaneSender {
    /// Waits until the transport has room, or the time is over.
    fn await_room(&self, left: Duration) {
        let mut room = [PollFd::new(&self.socket, PollFlags::OUT)];
        let left = Timespec::try_from(left).ok();
        // An error shows in the next attempt to send.
        let _ = poll(&mut room, left.as_ref());
    }
}
