//! A shared connection as an active object: a thread of its own sends what others have put into a
//! queue, reads, and hands all replies over. It waits for the queue and for the peer at once, and
//! for nothing else.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::io;

use chronorb_cdr::Frame;
use chronorb_giop::CompletionStatus;
use chronorb_rt::PiMutexGuard;
use chronorb_transport::{Interest, IoError, Reactor, SendError};

use super::failure::{Failure, comm_failure, not_sent};
use super::multiplexed::Multiplexed;
use super::queue::SendQueue;
use crate::client::inbox::Inbox;
use crate::client::outbox::Gone;
use crate::scope;

/// What the thread waits on: the peer, and the queue.
///
/// # Errors
/// Where no descriptor is left.
pub(super) fn reactor(shared: &Multiplexed, queue: &SendQueue) -> io::Result<Reactor> {
    let reactor = Reactor::new()?;
    reactor.add(shared.transport(), PEER, Interest::ReadWrite)?;
    reactor.add(queue.wake(), QUEUE, Interest::Read)?;
    Ok(reactor)
}

/// Sends and receives until the connection ends.
pub(super) fn serve(shared: &Multiplexed, queue: &SendQueue, reactor: &Reactor) {
    let active = Active {
        shared,
        queue,
        reactor,
        inbox: shared.inbox.lock(),
        frame: scope::frame(),
        gone: Gone::default(),
        is_drained: true,
        sent_unlooked: 0,
        is_full: false,
        is_hung_up: false,
    };
    shared.end(active.run());
}

struct Active<'s> {
    shared: &'s Multiplexed,
    queue: &'s SendQueue,
    reactor: &'s Reactor,
    inbox: PiMutexGuard<'s, Inbox>,
    /// That of the message that comes.
    frame: Frame,
    /// How much was sent of the first message of the queue.
    gone: Gone,
    /// Whether the peer has sent no more than was received.
    is_drained: bool,
    /// How many messages were sent since it was looked whether that is so.
    sent_unlooked: u32,
    /// Whether the peer takes nothing at present.
    is_full: bool,
    /// Whether the peer will send nothing more, so that all must be read to the end.
    is_hung_up: bool,
}

impl Active<'_> {
    /// Returns why there will be no more replies. Where there is something to receive and to send, one
    /// message is received and one sent in turn, so that neither side waits for the other.
    fn run(mut self) -> Failure {
        loop {
            if let Err(end) = self.take_turn() {
                return end;
            }
        }
    }

    fn take_turn(&mut self) -> Result<(), Failure> {
        let has_received = self.receive()?;
        let has_all = self.is_drained && !(has_received && self.inbox.has_surplus());
        let has_sent = self.send(has_all);
        if has_sent {
            self.sent_unlooked += 1;
            // Where the queue never becomes empty, no wait tells that replies have come.
            self.is_drained &= self.sent_unlooked < MOST_UNLOOKED;
        } else if has_all {
            self.wait()?;
        }
        Ok(())
    }

    /// Receives a reply, if a whole one is there; returns whether one was.
    fn receive(&mut self) -> Result<bool, Failure> {
        let Self {
            shared,
            inbox,
            frame,
            is_drained,
            sent_unlooked,
            is_hung_up,
            ..
        } = self;
        let take = |room: &mut [u8]| {
            if *is_drained {
                return Err(IoError::WouldBlock);
            }
            *sent_unlooked = 0;
            let received = shared.transport().try_recv(room);
            *is_drained = match received {
                // Room that is left shows that nothing else is there, but for the end.
                Ok(n) => n < room.len() && !*is_hung_up,
                Err(_) => true,
            };
            received
        };
        if let Some((id, header)) = shared.read_present(inbox, frame, take)? {
            shared.hand_over(id, header, frame)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Sends the first message, as far as the peer takes it; returns whether it has gone.
    fn send(&mut self, may_sleep: bool) -> bool {
        if self.is_full || self.shared.is_closed() {
            return false;
        }
        let Some(message) = self.queue.next(may_sleep) else {
            return false;
        };
        match self.shared.try_send(&message, &mut self.gone) {
            Ok(()) => {
                self.gone = Gone::default();
                self.queue.sent(message);
                return true;
            }
            Err(IoError::WouldBlock) => {
                self.is_full = true;
                if self.queue.put_back(message, self.gone.has_begun()) {
                    self.shared.close();
                }
            }
            Err(cause) => {
                let is_begun = self.gone.has_begun();
                let sent = is_begun.into();
                let failure = not_sent(SendError { sent, cause });
                self.queue.fail(message, is_begun, failure);
                // What has come until now is still read.
                self.shared.close();
            }
        }
        false
    }

    fn wait(&mut self) -> Result<(), Failure> {
        let event = self.reactor.wait(None);
        let event = event.map_err(|_| comm_failure(CompletionStatus::Maybe))?;
        if let Some(event) = event.filter(|event| event.token == PEER) {
            self.queue.stay_awake();
            self.is_drained = false;
            // Some transports tell of room to send as of input.
            self.is_full = false;
            self.is_hung_up |= event.hang_up;
        }
        Ok(())
    }
}

const PEER: u64 = 0;
const QUEUE: u64 = 1;
/// Messages that are sent, at most, before it is looked whether replies have come.
const MOST_UNLOOKED: u32 = 16;

#[cfg(test)]
#[allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "tests may allocate"
)]
mod tests {
    use std::fmt;
    use std::os::fd::{AsFd, BorrowedFd};
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use chronorb_rt::Deadline;
    use chronorb_transport::{Connection, SocketOptions};

    use super::super::multiplexed::Sending;
    use super::super::permit::Permits;
    use super::*;
    use crate::config::OrbConfig;

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
        let permits = Permits::new(1);
        let shared = Multiplexed::new(
            Box::new(transport),
            permits.take().expect("it is the first"),
            &OrbConfig::default(),
            Sending::Queued(queue.clone()),
            true,
        );
        let reactor = reactor(&shared, &queue).expect("descriptors are left");
        queue.try_push(&mut message());
        serve(&shared, &queue, &reactor);
        assert_eq!(sent.load(Ordering::Relaxed), MOST_UNLOOKED);
    }

    const MANY: u32 = 1000;
}
