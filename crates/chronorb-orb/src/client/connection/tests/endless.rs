//! A peer for tests, which sends one message without end.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chronorb_cdr::Frame;
use chronorb_rt::{Deadline, Gate};
use chronorb_transport::{Connection, IoError, SendError, SocketOptions};

use crate::client::connection::SharedConnection;
use crate::client::connection::key::ChannelKind;
use crate::client::connection::sending::SendMode;
use crate::client_state::ConnectionPermits;
use crate::config::OrbConfig;
use crate::scope;

/// A peer that always has more octets, until more were received than a correct reader takes.
pub(in crate::client) struct Endless {
    socket: UnixStream,
    received: Arc<AtomicUsize>,
}

/// A connection to such a peer on which this waiter waits for a reply, and the number of octets
/// that were received from it.
pub(in crate::client) fn awaiting_endless(
    request_id: u32,
    waiter: &Arc<Gate>,
) -> (SharedConnection, Arc<AtomicUsize>) {
    let (socket, _) = UnixStream::pair().expect("descriptors are left");
    let received = Arc::new(AtomicUsize::new(0));
    let transport = Endless {
        socket,
        received: received.clone(),
    };
    let config = OrbConfig {
        max_message_size: 1 << 30,
        ..OrbConfig::default()
    };
    let permit = ConnectionPermits::new(1).take();
    let shared = SharedConnection::new(
        Box::new(transport),
        permit.expect("it is the first"),
        &config,
        SendMode::in_turn(),
        ChannelKind::Leader,
    );
    let request: Frame = scope::frame();
    assert_eq!(shared.expect(request_id, None, &request, waiter), Ok(()));
    (shared, received)
}

impl Connection for Endless {
    fn try_recv(&self, room: &mut [u8]) -> Result<usize, IoError> {
        let before = self.received.fetch_add(room.len(), Ordering::Relaxed);
        if before > MOST {
            return Err(IoError::Ended);
        }
        room.fill(0);
        if let Some(start) = HEADER.get(before..) {
            let len = start.len().min(room.len());
            room[..len].copy_from_slice(&start[..len]);
        }
        Ok(room.len())
    }

    fn try_send(&self, octets: &[u8]) -> Result<usize, IoError> {
        Ok(octets.len())
    }

    fn shutdown(&self) {}

    fn try_send_both(&self, _: &[u8], _: &[u8]) -> Result<usize, IoError> {
        unreachable!("nothing is fragmented")
    }

    fn recv(&self, _: &mut [u8], _: Deadline) -> Result<usize, IoError> {
        unreachable!("no thread waits")
    }

    fn recv_until_interrupted(
        &self,
        _: &mut [u8],
        _: Option<Duration>,
    ) -> Result<Option<usize>, IoError> {
        unreachable!("no thread waits")
    }

    fn interrupt(&self) {}

    fn resume(&self) {}

    fn send_all(&self, _: &[u8], _: Deadline) -> Result<(), SendError> {
        unreachable!("no thread waits")
    }

    fn send_both(&self, _: &[u8], _: &[u8], _: Deadline) -> Result<(), SendError> {
        unreachable!("no thread waits")
    }

    fn is_stale(&self) -> bool {
        false
    }

    fn options(&self) -> io::Result<SocketOptions> {
        Ok(SocketOptions::default())
    }

    fn peer(&self) -> String {
        "an endless one".to_owned()
    }
}

impl fmt::Debug for Endless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Endless")
    }
}

impl AsFd for Endless {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The header of a reply of 512 MiB.
const HEADER: &[u8] = b"GIOP\x01\x02\x01\x01\x00\x00\x00\x20";
/// The octets after which the peer ends.
const MOST: usize = 64 << 20;
