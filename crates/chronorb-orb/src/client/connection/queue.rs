//! The messages that wait until the thread of a connection sends them, first come, first served.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use chronorb_cdr::Frame;
use chronorb_giop::CompletionStatus;
use chronorb_rt::{Deadline, Gate, PiMutex, Wake};

use super::{Failure, timeout};
use crate::scope;

/// A queue of whole messages with one thread that takes them out.
///
/// A message stays at the front until it has gone whole, so that whoever waits for that finds it
/// there; what is sent from is in the thread's hand meanwhile.
pub(super) struct SendQueue {
    /// Held for moments only, and never during I/O.
    line: PiMutex<Line>,
    /// Wakes the thread that sends.
    wake: Wake,
    /// Says that there may be room again.
    room: Gate,
}

/// Where a message is that somebody wanted back.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Place {
    /// It was in the queue, and is not any more: nothing of it was sent.
    Queued,
    /// A part of it was sent. The rest stays here and will not go, nor will anything after it; why,
    /// if that is known.
    Begun(Option<Failure>),
    /// It was sent, or is being sent at this moment.
    Gone,
}

struct Line {
    messages: VecDeque<Message>,
    /// Whether a part of the first one was sent.
    is_begun: bool,
    /// Whether its caller left while the thread had it in its hand.
    is_left: bool,
    /// Why the rest of it cannot be sent.
    failure: Option<Failure>,
    /// Whether nothing is sent any more, because the rest of it was wanted back.
    is_over: bool,
    /// Whether the thread that sends has to be woken.
    is_asleep: bool,
    /// In exchange for those that hold messages.
    spare_frames: Vec<Frame>,
}

struct Message {
    /// The call that it belongs to; `None` where nobody will want it back.
    call: Option<u32>,
    /// `None` while the thread has it in its hand.
    frame: Option<Frame>,
    /// Of a thread that waits until it has gone.
    seat: Option<Arc<Gate>>,
}

/// What somebody who puts a message into the queue waits for.
pub(super) struct Call<'c> {
    pub(super) id: u32,
    /// Where its thread waits until the message has gone; `None` where it waits for a reply.
    pub(super) seat: Option<&'c Arc<Gate>>,
    pub(super) deadline: Deadline,
}

impl SendQueue {
    /// An empty queue.
    ///
    /// # Errors
    /// Where no descriptor is left.
    #[allow(clippy::disallowed_methods, reason = "once for each connection")]
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            line: PiMutex::new(Line {
                messages: VecDeque::with_capacity(MOST_MESSAGES),
                is_begun: false,
                is_left: false,
                failure: None,
                is_over: false,
                is_asleep: false,
                spare_frames: Vec::with_capacity(MOST_MESSAGES),
            }),
            wake: Wake::new()?,
            room: Gate::new(0),
        })
    }

    /// Becomes readable when the thread has to look at the queue, and stays so: each time is told
    /// by an edge.
    pub(super) fn wake(&self) -> &Wake {
        &self.wake
    }

    /// Puts a message in, in exchange for an empty frame, and waits for room.
    ///
    /// # Errors
    /// The connection `is_closed`, or the time is over.
    pub(super) fn push(
        &self,
        message: &mut Frame,
        call: &Call<'_>,
        is_closed: impl Fn() -> bool,
    ) -> Result<(), Failure> {
        loop {
            // What makes room after this, or ends the connection, makes it another number.
            let seen = self.room.get();
            if is_closed() {
                return Err(Failure::NotProcessed);
            }
            if call.deadline.has_passed() {
                return Err(timeout(CompletionStatus::No).into());
            }
            if self.put(message, Some(call.id), call.seat) {
                return Ok(());
            }
            self.room.wait_while(seen, call.deadline);
        }
    }

    /// Puts a message in that nobody waits for; drops it where there is no room.
    pub(super) fn try_push(&self, message: &mut Frame) {
        self.put(message, None, None);
    }

    fn put(&self, message: &mut Frame, call: Option<u32>, seat: Option<&Arc<Gate>>) -> bool {
        let mut line = self.line.lock();
        if line.messages.len() >= MOST_MESSAGES {
            return false;
        }
        let spare = line.spare_frames.pop().unwrap_or_else(scope::frame);
        let frame = std::mem::replace(message, spare);
        line.messages.push_back(Message {
            call,
            frame: Some(frame),
            seat: seat.cloned(),
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

    /// Takes the message of a call back, if nothing of it was sent. Where a part was sent, its
    /// connection has to end.
    pub(super) fn take_back(&self, call: u32) -> Place {
        let mut line = self.line.lock();
        let Some(i) = line.position(call) else {
            return Place::Gone;
        };
        match (i, &line.messages[i].frame) {
            (0, None) => {
                line.is_left = true;
                Place::Gone
            }
            (0, Some(_)) if line.is_begun => {
                line.is_over = true;
                Place::Begun(line.failure)
            }
            _ => {
                let was_full = line.remove(i);
                drop(line);
                self.tell_of_room(was_full);
                Place::Queued
            }
        }
    }

    /// The first message, for the thread that sends. Where there is none, and the thread
    /// `may_sleep`, it will be woken by the next one.
    pub(super) fn next(&self, may_sleep: bool) -> Option<Frame> {
        let mut line = self.line.lock();
        let is_over = line.is_over;
        let first = line.messages.front_mut().filter(|_| !is_over);
        let frame = first.and_then(|message| message.frame.take());
        line.is_asleep = frame.is_none() && may_sleep;
        frame
    }

    /// The thread that sends is awake for another reason, and looks for itself.
    pub(super) fn stay_awake(&self) {
        self.line.lock().is_asleep = false;
    }

    /// The first message has gone.
    pub(super) fn sent(&self, frame: Frame) {
        let mut line = self.line.lock();
        let seat = line.messages.front_mut().and_then(|m| m.seat.take());
        line.put_down(frame);
        let was_full = line.remove(0);
        drop(line);
        self.tell_of_room(was_full);
        if let Some(seat) = seat {
            seat.advance();
        }
    }

    /// The first message has not gone, or not whole. Returns whether nobody waits for the rest of
    /// it, so that its connection has to end.
    pub(super) fn put_back(&self, frame: Frame, is_begun: bool) -> bool {
        let mut line = self.line.lock();
        line.put_down(frame);
        line.is_begun = is_begun;
        let is_left = std::mem::take(&mut line.is_left);
        if is_left && !is_begun {
            let was_full = line.remove(0);
            drop(line);
            self.tell_of_room(was_full);
        }
        is_left && is_begun
    }

    /// The first message will not go: its connection has ended.
    pub(super) fn fail(&self, frame: Frame, is_begun: bool, failure: Failure) {
        self.line.lock().failure = Some(failure);
        self.put_back(frame, is_begun);
    }

    /// The connection is closed, and nothing is taken out any more: who waits for room looks.
    pub(super) fn end(&self) {
        self.room.advance();
    }

    fn tell_of_room(&self, was_full: bool) {
        if was_full {
            self.room.advance();
        }
    }
}

impl Line {
    fn position(&self, call: u32) -> Option<usize> {
        let mut all = self.messages.iter();
        all.position(|message| message.call == Some(call))
    }

    /// The thread that sends lets the first message out of its hand.
    fn put_down(&mut self, frame: Frame) {
        if let Some(first) = self.messages.front_mut() {
            first.frame = Some(frame);
        }
    }

    /// Takes a message out; returns whether there was no room before.
    fn remove(&mut self, i: usize) -> bool {
        let was_full = self.messages.len() >= MOST_MESSAGES;
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

/// How many messages may wait. Each is that of another thread, but for those that take calls back.
const MOST_MESSAGES: usize = 64;
/// Frames that are kept for messages, however large; small ones are kept for as many as may wait.
const KEPT_FRAMES: usize = 8;
const SMALL_FRAME: usize = 64 << 10;

#[cfg(test)]
#[allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "tests may allocate"
)]
mod tests {
    use super::*;

    fn queue() -> SendQueue {
        SendQueue::new().expect("a descriptor is left")
    }

    /// Puts a message in that says its number, for a call that has no time to wait.
    fn put(queue: &SendQueue, number: u8) -> bool {
        let mut message = scope::frame();
        message.extend_from_slice(&[number]).expect("there is room");
        queue.put(&mut message, Some(number.into()), None)
    }

    fn next(queue: &SendQueue) -> Option<Frame> {
        queue.next(false)
    }

    /// Sends all there is; the numbers of the messages.
    fn send_all(queue: &SendQueue) -> Vec<u8> {
        let sent = std::iter::from_fn(|| {
            let frame = next(queue)?;
            let number = frame.as_slice()[0];
            queue.sent(frame);
            Some(number)
        });
        sent.collect()
    }

    #[test]
    fn messages_leave_in_the_order_in_which_they_came() {
        let queue = queue();
        for number in [3, 1, 2] {
            assert!(put(&queue, number));
        }
        assert_eq!(send_all(&queue), [3, 1, 2]);
        assert!([1, 2, 3].iter().all(|call| !queue.has(*call)));
    }

    #[test]
    fn a_message_is_taken_back_unless_a_part_of_it_was_sent() {
        let queue = queue();
        for number in 1..=4 {
            put(&queue, number);
        }
        assert_eq!(queue.take_back(3), Place::Queued);
        assert_eq!(queue.take_back(3), Place::Gone);
        // The peer takes nothing, and then a part of what is first by then.
        let first = next(&queue).expect("there are some");
        assert!(!queue.put_back(first, false));
        assert_eq!(queue.take_back(1), Place::Queued);
        let second = next(&queue).expect("there are some");
        assert!(!queue.put_back(second, true));
        assert_eq!(queue.take_back(2), Place::Begun(None));
        assert!(next(&queue).is_none(), "nothing goes before its rest");
        assert_eq!(queue.take_back(4), Place::Queued);
    }

    #[test]
    fn a_message_that_is_being_sent_when_its_caller_leaves_is_sent_whole_or_not_at_all() {
        for (is_begun, ends) in [(false, false), (true, true)] {
            let queue = queue();
            put(&queue, 1);
            put(&queue, 2);
            let first = next(&queue).expect("there are some");
            assert_eq!(queue.take_back(1), Place::Gone, "nobody knows yet");
            assert_eq!(queue.put_back(first, is_begun), ends);
            if !ends {
                assert_eq!(send_all(&queue), [2]);
            }
        }
        let queue = queue();
        put(&queue, 1);
        put(&queue, 2);
        let first = next(&queue).expect("there are some");
        assert_eq!(queue.take_back(1), Place::Gone);
        queue.sent(first);
        let second = next(&queue).expect("there is one more");
        assert!(!queue.put_back(second, true), "its caller is still there");
    }

    #[test]
    fn what_ended_the_connection_is_told_to_the_caller_whose_message_it_met() {
        let queue = queue();
        put(&queue, 1);
        put(&queue, 2);
        let why = super::super::comm_failure(CompletionStatus::No).into();
        let first = next(&queue).expect("there are some");
        queue.fail(first, true, why);
        assert_eq!(queue.take_back(1), Place::Begun(Some(why)));
        assert_eq!(queue.take_back(2), Place::Queued);
    }

    #[test]
    fn there_is_room_again_when_a_message_has_gone_or_was_taken_back() {
        let queue = queue();
        let full = MOST_MESSAGES as u8;
        assert!((0..full).all(|number| put(&queue, number)));
        assert!(!put(&queue, full));
        let told = queue.room.get();
        assert_eq!(queue.take_back(5), Place::Queued);
        assert_ne!(queue.room.get(), told, "who waits for room is told");
        assert!(put(&queue, full));
        let first = next(&queue).expect("there are many");
        assert!(!put(&queue, full), "it has not gone yet");
        queue.sent(first);
        assert!(put(&queue, full));
    }

    #[test]
    fn the_thread_is_woken_once_and_only_where_it_sleeps() {
        let queue = queue();
        put(&queue, 1);
        assert!(!queue.wake.drain(), "it has not slept yet");
        assert_eq!(send_all(&queue), [1]);
        assert!(queue.next(true).is_none());
        put(&queue, 2);
        put(&queue, 3);
        assert!(queue.wake.drain());
        assert_eq!(send_all(&queue), [2, 3]);
        assert!(queue.next(true).is_none());
        queue.stay_awake();
        put(&queue, 4);
        assert!(!queue.wake.drain(), "it looks for itself");
    }

    #[test]
    fn great_frames_are_kept_for_a_few_messages_only() {
        let queue = queue();
        for number in 0..MOST_MESSAGES as u8 {
            let mut message = Frame::new(SMALL_FRAME + 1, SMALL_FRAME + 1);
            queue.put(&mut message, Some(number.into()), None);
        }
        for call in 0..MOST_MESSAGES as u32 {
            queue.take_back(call);
        }
        assert_eq!(queue.line.lock().spare_frames.len(), KEPT_FRAMES);
    }
}
