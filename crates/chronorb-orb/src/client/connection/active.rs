//! A shared connection as an active object: a thread of its own sends what others have put into a
//! queue, reads, and hands all replies over. It waits for the queue and for the peer at once, and
//! for nothing else.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::io;

use chronorb_cdr::Frame;
use chronorb_giop::CompletionStatus;
use chronorb_rt::PiMutexGuard;
use chronorb_transport::{Interest, IoError, Reactor, SendError};

use super::multiplexed::Multiplexed;
use super::queue::SendQueue;
use super::{Failure, comm_failure, not_sent};
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
    /// Whether the peer takes nothing at present.
    is_full: bool,
    /// Whether the peer will send nothing more, so that all must be read to the end.
    is_hung_up: bool,
}

impl Active<'_> {
    /// Returns why there will be no more replies. One message is received and one sent in turn, so
    /// that neither side waits for the other.
    fn run(mut self) -> Failure {
        loop {
            if let Err(end) = self.take_turn() {
                return end;
            }
        }
    }

    fn take_turn(&mut self) -> Result<(), Failure> {
        self.receive()?;
        let has_all = self.is_drained && !self.inbox.has_surplus();
        let has_sent = self.send(has_all);
        if has_all && !has_sent {
            self.wait()?;
        }
        Ok(())
    }

    /// Receives a reply, if a whole one is there.
    fn receive(&mut self) -> Result<(), Failure> {
        let Self {
            shared,
            inbox,
            frame,
            is_drained,
            is_hung_up,
            ..
        } = self;
        let take = |room: &mut [u8]| {
            if *is_drained {
                return Err(IoError::WouldBlock);
            }
            let received = shared.transport().try_recv(room);
            *is_drained = match received {
                // Room that is left shows that nothing else is there, but for the end.
                Ok(n) => n < room.len() && !*is_hung_up,
                Err(_) => true,
            };
            received
        };
        if let Some((id, header)) = shared.read_present(inbox, frame, take)? {
            shared.hand_over(id, header, frame);
        }
        Ok(())
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
            self.is_full &= !event.writable;
            self.is_hung_up |= event.hang_up;
        }
        Ok(())
    }
}

const PEER: u64 = 0;
const QUEUE: u64 = 1;
