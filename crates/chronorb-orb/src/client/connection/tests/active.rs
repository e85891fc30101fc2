//! A test of the thread of an active connection.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use chronorb_cdr::Frame;
use chronorb_rt::Deadline;
use chronorb_transport::{Connection, IoError, SendError, SocketOptions};

use crate::client::connection::SharedConnection;
use crate::client::connection::active::{MAX_UNREAD, SendQueue, reactor, serve};
use crate::client::connection::key::ChannelKind;
use crate::client::connection::sending::SendMode;
use crate::client_state::ConnectionPermits;
use crate::config::OrbConfig;
use crate::scope;

/// A peer that has ended, and takes all that is sent; whenever it does, the next message is there.
struct Insatiable {
    socket: UnixStream,
    sent: Arc<AtomicU32>,
    queue: Arc<SendQueue>,
}

impl Connection for Insatiable {
    fn try_recv(&self, _: &mut [u8]) -> Result<usize, IoError> {
        Err(IoError::Ended)
    }

    fn try_send(&self, octets: &[u8]) -> Result<usize, IoError> {
        if self.sent.fetch_add(1, Ordering::Relaxed) > MANY {
            return Err(IoError::Closed);
        }
        self.queue.try_push(&mut message());
        Ok(octets.len())
    }

    fn shutdown(&self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }

    fn try_send_both(&self, _: &[u8], _: &[u8]) -> Result<usize, IoError> {
        unreachable!("nothing is fragmented")
    }

    fn recv(&self, _: &mut [u8], _: Deadline) -> Result<usize, IoError> {
        unreachable!("it waits by its reactor")
    }

    fn recv_until_interrupted(
        &self,
        _: &mut [u8],
        _: Option<Duration>,
    ) -> Result<Option<usize>, IoError> {
        unreachable!("it waits by its reactor")
    }

    fn interrupt(&self) {}

    fn resume(&self) {}

    fn send_all(&self, _: &[u8], _: Deadline) -> Result<(), SendError> {
        unreachable!("it waits by its reactor")
    }

    fn send_both(&self, _: &[u8], _: &[u8], _: Deadline) -> Result<(), SendError> {
        unreachable!("it waits by its reactor")
    }

    fn is_stale(&self) -> bool {
        false
    }

    fn options(&self) -> io::Result<SocketOptions> {
        Ok(SocketOptions::default())
    }

    fn peer(&self) -> String {
        "an insatiable one".to_owned()
    }
}

impl fmt::Debug for Insatiable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Insatiable")
    }
}

impl AsFd for Insatiable {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn message() -> Frame {
    let mut message = scope::frame();
    message.extend_from_slice(b"GIOP").expect("there is room");
    message
}

#[test]
fn what_the_peer_has_sent_is_read_although_there_is_always_something_to_send() {
    let (socket, _peer) = UnixStream::pair().expect("descriptors are left");
    let queue = Arc::new(SendQueue::new().expect("a descriptor is left"));
    let sent = Arc::new(AtomicU32::new(0));
    let transport = Insatiable {
        socket,
        sent: sent.clone(),
        queue: queue.clone(),
    };
    let permits = ConnectionPermits::new(1);
    let shared = SharedConnection::new(
        Box::new(transport),
        permits.take().expect("it is the first"),
        &OrbConfig::default(),
        SendMode::Queued(queue.clone()),
        ChannelKind::Active,
    );
    let reactor = reactor(&shared.link, &queue).expect("descriptors are left");
    queue.try_push(&mut message());
    serve(&shared, &queue, &reactor);
    assert_eq!(sent.load(Ordering::Relaxed), MAX_UNREAD);
}

const MANY: u32 = 1000;
