//! The messages that wait until the thread of a connection sends them, in the order of arrival.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use chronorb_cdr::Frame;
use chronorb_giop::CompletionStatus;
use chronorb_rt::{Deadline, Gate, PiMutex, Wake};

use crate::client::connection::link::{Failure, timeout};
use crate::client::connection::sending::UnsentMessage;
use crate::scope;

/// A queue of whole messages that one thread sends.
///
/// A message stays at the front until it was sent whole, so that its caller finds it there; the
/// thread holds its frame meanwhile.
pub(in crate::client) struct SendQueue {
    /// Locked for moments only, and never during I/O.
    line: PiMutex<MessageLine>,
    /// Wakes the thread that sends.
    wake: Wake,
    /// Advances when there may be room again.
    room: Gate,
}

struct MessageLine {
    messages: VecDeque<QueuedMessage>,
    /// Whether a part of the first one was sent.
    is_begun: bool,
    /// Whether its caller left while the thread held its frame.
    is_left: bool,
    /// The reason why the rest of it cannot be sent.
    failure: Option<Failure>,
    /// Whether nothing is sent any more, because the caller of a begun message left.
    is_over: bool,
    /// Whether the thread that sends must be woken.
    is_asleep: bool,
    /// Frames to exchange for those with messages.
    spare_frames: Vec<Frame>,
}

struct QueuedMessage {
    /// The call that it belongs to; `None` if it is never taken back.
    call: Option<u32>,
    /// `None` while the thread holds it.
    frame: Option<Frame>,
    /// The gate of a thread that waits until it was sent.
    waiter: Option<Arc<Gate>>,
}

impl SendQueue {
    /// An empty queue.
    ///
    /// # Errors
    /// Those of a missing descriptor.
    #[allow(clippy::disallowed_methods, reason = "once for each connection")]
    pub(in crate::client::connection) fn new() -> io::Result<Self> {
        Ok(Self {
            line: PiMutex::new(MessageLine {
                messages: VecDeque::with_capacity(MAX_MESSAGES),
                is_begun: false,
                is_left: false,
                failure: None,
                is_over: false,
                is_asleep: false,
                spare_frames: Vec::with_capacity(MAX_MESSAGES),
            }),
            wake: Wake::new()?,
            room: Gate::new(0),
        })
    }

    /// The descriptor that becomes readable when the thread has to check the queue. It stays
    /// readable: each time is an edge.
    pub(super) fn wake(&self) -> &Wake {
        &self.wake
    }

    /// Puts the message of a call in, in exchange for an empty frame, and waits for room. `waiter`
    /// is the gate of a thread that waits until the message was sent.
    ///
    /// # Errors
    /// The connection `is_closed`, or the time is over.
    pub(in crate::client::connection) fn push(
        &self,
        message: &mut Frame,
        call: u32,
        waiter: Option<&Arc<Gate>>,
        deadline: Deadline,
        is_closed: impl Fn() -> bool,
    ) -> Result<(), Failure> {
        loop {
            // New room, and the end of the connection, change the number after this point.
            let seen = self.room.get();
            if is_closed() {
                return Err(Failure::NotProcessed);
            }
            if deadline.has_passed() {
                return Err(timeout(CompletionStatus::No).into());
            }
            if self.put(message, Some(call), waiter) {
                return Ok(());
            }
            self.room.wait_while(seen, deadline);
        }
    }

    /// Puts a message in that no thread waits for; drops it if there is no room.
    pub(in crate::client::connection) fn try_push(&self, message: &mut Frame) {
        self.put(message, None, None);
    }

    fn put(&self, message: &mut Frame, call: Option<u32>, waiter: Option<&Arc<Gate>>) -> bool {
        let mut line = self.line.lock();
        if line.messages.len() >= MAX_MESSAGES {
            return false;
        }
        let spare = line.spare_frames.pop().unwrap_or_else(scope::frame);
        let frame = std::mem::replace(message, spare);
        line.messages.push_back(QueuedMessage {
            call,
            frame: Some(frame),
            waiter: waiter.cloned(),
        });
        let is_asleep = std::mem::take(&mut line.is_asleep);
        drop(line);
        if is_asleep {
            self.wake.notify();
        }
        true
    }

    /// Whether the message of a call has still to be sent, as a whole or in part.
    pub(super) fn has(&self, call: u32) -> bool {
        self.line.lock().position(call).is_some()
    }

    /// Takes the message of a call back; `None` if it was sent, or is being sent. The rest of a
    /// begun message stays in the queue, and nothing is sent any more.
    pub(in crate::client::connection) fn take_back(&self, call: u32) -> Option<UnsentMessage> {
        let mut line = self.line.lock();
        let i = line.position(call)?;
        let mut unsent = UnsentMessage {
            failure: Failure::NotProcessed,
            is_begun: false,
        };
        match (i, &line.messages[i].frame) {
            (0, None) => {
                line.is_left = true;
                return None;
            }
            (0, Some(_)) if line.is_begun => {
                line.is_over = true;
                unsent.is_begun = true;
                unsent.failure = line.failure.unwrap_or(unsent.failure);
            }
            _ => {
                let was_full = line.remove(i);
                drop(line);
                self.announce_room(was_full);
            }
        }
        Some(unsent)
    }

    /// Takes the frame of the first message, for the thread that sends. If there is none and the
    /// thread `may_sleep`, the next message wakes it.
    pub(super) fn next(&self, may_sleep: bool) -> Option<Frame> {
        let mut line = self.line.lock();
        let is_over = line.is_over;
        let first = line.messages.front_mut().filter(|_| !is_over);
        let frame = first.and_then(|message| message.frame.take());
        line.is_asleep = frame.is_none() && may_sleep;
        frame
    }

    /// Notes that the thread that sends is awake for another reason, and checks the queue itself.
    pub(super) fn stay_awake(&self) {
        self.line.lock().is_asleep = false;
    }

    /// Removes the first message, which was sent.
    pub(super) fn sent(&self, frame: Frame) {
        let mut line = self.line.lock();
        let waiter = line.messages.front_mut().and_then(|m| m.waiter.take());
        line.put_down(frame);
        let was_full = line.remove(0);
        drop(line);
        self.announce_room(was_full);
        if let Some(waiter) = waiter {
            waiter.advance();
        }
    }

    /// Returns the frame of the first message, which was not sent, or not whole. Returns whether no
    /// caller waits for the rest of it, so that its connection must end.
    pub(super) fn put_back(&self, frame: Frame, is_begun: bool) -> bool {
        let mut line = self.line.lock();
        line.put_down(frame);
        line.is_begun = is_begun;
        let is_left = std::mem::take(&mut line.is_left);
        if is_left && !is_begun {
            let was_full = line.remove(0);
            drop(line);
            self.announce_room(was_full);
        }
        is_left && is_begun
    }

    /// Returns the frame of the first message, which cannot be sent because the connection failed.
    pub(super) fn fail(&self, frame: Frame, is_begun: bool, failure: Failure) {
        self.line.lock().failure = Some(failure);
        self.put_back(frame, is_begun);
    }

    /// Wakes the callers that wait for room: the connection is closed.
    pub(in crate::client::connection) fn end(&self) {
        self.room.advance();
    }

    fn announce_room(&self, was_full: bool) {
        if was_full {
            self.room.advance();
        }
    }
}

impl MessageLine {
    fn position(&self, call: u32) -> Option<usize> {
        let mut all = self.messages.iter();
        all.position(|message| message.call == Some(call))
    }

    /// Puts the frame of the first message back.
    fn put_down(&mut self, frame: Frame) {
        if let Some(first) = self.messages.front_mut() {
            first.frame = Some(frame);
        }
    }

    /// Removes a message; returns whether there was no room before.
    fn remove(&mut self, i: usize) -> bool {
        let was_full = self.messages.len() >= MAX_MESSAGES;
        if i == 0 {
            self.is_begun = false;
            self.is_left = false;
        }
        let message = self.messages.remove(i);
        if let Some(mut frame) = message.and_then(|message| message.frame) {
            scope::clear(&mut frame);
            let is_small = frame.capacity() <= SMALL_FRAME;
            if is_small || self.spare_frames.len() < KEPT_FRAMES {
                self.spare_frames.push(frame);
            }
        }
        was_full
    }
}

/// The maximum number of queued messages. A thread has one at a time, besides cancellations.
const MAX_MESSAGES: usize = 64;
/// Frames that are kept for messages, however large; small ones are kept for as many as may wait.
const KEPT_FRAMES: usize = 8;
const SMALL_FRAME: usize = 64 << 10;

#[cfg(test)]
#[allow(clippy::disallowed_macros, clippy::disallowed_methods)]
mod tests;
