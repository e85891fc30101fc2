//! A shared connection as an active object: a thread of its own sends the messages of a queue,
//! reads, and hands all replies over. It waits for the queue and for the peer at once, and for
//! nothing else.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

mod queue;

use std::io;
use std::sync::Arc;

use chronorb_cdr::Frame;
use chronorb_giop::CompletionStatus;
use chronorb_rt::{Deadline, Gate, PiMutexGuard};
use chronorb_transport::{Interest, IoError, Reactor, SendError};

use super::link::{Failure, Link, ReplyReader, comm_failure, not_sent, timeout};
use super::shared::SharedConnection;
use crate::scope;

pub(in crate::client) use queue::SendQueue;

/// The reactor of the thread, with the peer and the queue.
///
/// # Errors
/// Those of a missing descriptor.
pub(super) fn reactor(link: &Link, queue: &SendQueue) -> io::Result<Reactor> {
    let reactor = Reactor::new()?;
    reactor.add(link.transport(), PEER, Interest::ReadWrite)?;
    reactor.add(queue.wake(), QUEUE, Interest::Read)?;
    Ok(reactor)
}

/// Sends and receives until the connection ends.
pub(super) fn serve(shared: &SharedConnection, queue: &SendQueue, reactor: &Reactor) {
    let active = ActiveThread {
        shared,
        queue,
        reactor,
        reader: shared.reader.lock(),
        frame: scope::frame(),
        sent: 0,
        is_drained: true,
        sent_unread: 0,
        is_full: false,
        is_hung_up: false,
    };
    shared.end(active.run());
}

/// The state of the thread.
struct ActiveThread<'s> {
    shared: &'s SharedConnection,
    queue: &'s SendQueue,
    reactor: &'s Reactor,
    reader: PiMutexGuard<'s, ReplyReader>,
    /// The frame of the message that is received.
    frame: Frame,
    /// The octets of the queue's first message that were sent.
    sent: usize,
    /// Whether all octets that have arrived were received.
    is_drained: bool,
    /// The number of messages that were sent since the last attempt to receive.
    sent_unread: u32,
    /// Whether the peer takes nothing at present.
    is_full: bool,
    /// Whether the peer will send nothing more, so that all must be read to the end.
    is_hung_up: bool,
}

impl ActiveThread<'_> {
    /// Returns the reason why no more replies will arrive. If both are possible, one message is
    /// received and one sent in turn, so that neither side waits for the other.
    fn run(mut self) -> Failure {
        loop {
            if let Err(end) = self.take_turn() {
                return end;
            }
        }
    }

    fn take_turn(&mut self) -> Result<(), Failure> {
        let has_received = self.receive()?;
        let has_all = self.is_drained && !(has_received && self.reader.has_surplus());
        let has_sent = self.send(has_all);
        if has_sent {
            self.sent_unread += 1;
            // While the queue is not empty, no wait reports that replies have arrived.
            self.is_drained &= self.sent_unread < MAX_UNREAD;
        } else if has_all {
            self.wait()?;
        }
        Ok(())
    }

    /// Receives a reply, if a whole one is there; returns whether one was.
    fn receive(&mut self) -> Result<bool, Failure> {
        let link = &self.shared.link;
        let read = |room: &mut [u8]| {
            if self.is_drained {
                return Err(IoError::WouldBlock);
            }
            self.sent_unread = 0;
            let received = link.transport().try_recv(room);
            self.is_drained = match received {
                // Room that is left shows that nothing else is there, except for the end.
                Ok(n) => n < room.len() && !self.is_hung_up,
                Err(_) => true,
            };
            received
        };
        let reply = self.reader.receive_reply(link, &mut self.frame, read)?;
        let Some((id, header)) = reply else {
            return Ok(false);
        };
        self.shared.hand_over(id, header, &mut self.frame)?;
        Ok(true)
    }

    /// Sends the first message, as much as the peer takes; returns whether it was sent whole.
    fn send(&mut self, may_sleep: bool) -> bool {
        let link = &self.shared.link;
        // A closed transport refuses the messages that are left, for their callers.
        if self.is_full {
            return false;
        }
        let Some(message) = self.queue.next(may_sleep) else {
            return false;
        };
        let (transport, octets) = (link.transport(), message.as_slice());
        let sent = link
            .writer()
            .resume(octets, &mut self.sent, |slices, before| {
                transport.try_send_slices(slices, before)
            });
        let is_begun = self.sent > 0;
        match sent {
            Ok(()) => {
                self.sent = 0;
                self.queue.sent(message);
                return true;
            }
            Err(IoError::WouldBlock) => {
                self.is_full = true;
                if self.queue.put_back(message, is_begun) {
                    self.shared.close();
                }
            }
            Err(cause) => {
                let sent = is_begun.into();
                let failure = not_sent(SendError { sent, cause });
                self.queue.fail(message, is_begun, failure);
                // Octets that have arrived until now are still read.
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
            // Some transports report room to send as input.
            self.is_full = false;
            self.is_hung_up |= event.hang_up;
        }
        Ok(())
    }
}

impl SharedConnection {
    /// Sends a message without a reply by the queue, and waits until it was sent.
    pub(super) fn send_by_queue(
        &self,
        queue: &SendQueue,
        message: &mut Frame,
        waiter: &Arc<Gate>,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        // No reply has this number. As a call it is woken when the connection ends.
        let id = self.next_request_id();
        self.expect(id, None, message, waiter)?;
        let is_closed = || self.link.is_closed();
        let sent = queue.push(message, id, Some(waiter), deadline, is_closed);
        let sent = sent.and_then(|()| self.wait_until_sent(queue, id, waiter, deadline));
        self.forget(id);
        sent
    }

    fn wait_until_sent(
        &self,
        queue: &SendQueue,
        id: u32,
        waiter: &Gate,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        loop {
            // The number changes when the message was sent, or the connection has ended.
            let seen = waiter.get();
            if !queue.has(id) {
                return Ok(());
            }
            if self.calls.lock().end.is_some() {
                // It may have been sent at the last moment.
                return self.sending.unsent_at_end(id).map_or(Ok(()), Err);
            }
            if deadline.has_passed() {
                let completed = if self.take_back(id) {
                    CompletionStatus::No
                } else {
                    CompletionStatus::Maybe
                };
                return Err(timeout(completed).into());
            }
            waiter.wait_while(seen, deadline);
        }
    }
}

const PEER: u64 = 0;
const QUEUE: u64 = 1;
/// The most messages that are sent before an attempt to receive.
pub(super) const MAX_UNREAD: u32 = 16;
