//! Calls that no thread waits for: asynchronous ones. A thread looks after them when it likes to, or an attendant
//! does.

use std::sync::Arc;

use chronorb_cdr::Frame;
use chronorb_giop::MessageHeader;
use chronorb_rt::{Deadline, Gate, Monotonic};

use super::{Multiplexed, Pending, Sending};
use crate::client::asynchronous::Attended;
use crate::client::connection::Failure;
use crate::core::Core;

/// Who looks after the asynchronous calls of a connection that have nobody else for that.
pub(in crate::client) trait Attendant: Send + Sync {
    /// Looks after a call from now on.
    ///
    /// # Errors
    /// It has ended, with the connection.
    fn attend(&self, core: &Core, shared: &Multiplexed, call: Attended) -> Result<(), Attended>;

    /// Gives a call back, unless it is coming to its end at this moment.
    fn give_back(&self, request_id: u32) -> Option<Attended>;

    /// The connection was closed.
    fn closed(&self);
}

/// How an attendant waits for something to do.
pub(in crate::client) enum Rest {
    /// One of its calls has come to an end.
    Not,
    /// It reads from the connection, for all.
    Reading,
    /// Somebody else reads: it sleeps until its seat says another number.
    Seated(u32),
}

impl Multiplexed {
    pub(in crate::client) fn attendant(&self) -> Option<&Arc<dyn Attendant>> {
        self.attendant.get()
    }

    /// Gives the connection its attendant, if it has none.
    pub(in crate::client) fn set_attendant(&self, attendant: Arc<dyn Attendant>) {
        let _ = self.attendant.set(attendant);
    }

    /// Whether messages go through a queue, which takes them out of their frames.
    pub(in crate::client) fn takes_messages(&self) -> bool {
        matches!(self.sending, Sending::Queued(_))
    }

    /// Looks whether a call has come to an end, without waiting; reads what has come if nobody else does, as much
    /// as is read in one turn.
    pub(in crate::client) fn look(
        &self,
        request_id: u32,
        frame: &mut Frame,
    ) -> Option<Result<MessageHeader, Failure>> {
        let no_time = Deadline::at(Monotonic::from_nanos(0));
        if let Some(received) = self.receive(request_id, frame, no_time) {
            return Some(received);
        }
        {
            let mut calls = self.calls.lock();
            if calls.is_read || calls.end.is_some() {
                drop(calls);
                // It may have ended since.
                return self.receive(request_id, frame, no_time);
            }
            calls.is_read = true;
        }
        // Nobody else reads meanwhile, so that the lock is free.
        let mut inbox = self.inbox.lock();
        let mut turn = inbox.turn();
        loop {
            let take = |room: &mut [u8]| turn.take(|| self.transport.try_recv(room));
            let handed = match self.read_present(&mut inbox, frame, take) {
                Ok(Some((id, header))) if id == request_id => {
                    drop(inbox);
                    self.step_down(request_id);
                    return Some(Ok(header));
                }
                Ok(Some((id, header))) => self.hand_over(id, header, frame),
                Ok(None) => {
                    drop(inbox);
                    self.stop_reading();
                    return None;
                }
                Err(failure) => Err(failure),
            };
            if let Err(failure) = handed {
                drop(inbox);
                self.end(failure);
                self.forget(request_id);
                return Some(Err(failure));
            }
        }
    }

    /// Makes a call one of an attendant, which has this seat and sleeps there if it `is_seated`. Returns whether
    /// the attendant has to look after it at once.
    pub(in crate::client) fn hand_to(
        &self,
        request_id: u32,
        attendant: &Arc<Gate>,
        is_seated: bool,
    ) -> bool {
        let mut calls = self.calls.lock();
        let is_at_end = calls.end.is_some() || !calls.is_read;
        let Some(i) = calls.position(request_id) else {
            return true;
        };
        let call = &mut calls.waiting[i];
        call.seat.clone_from(attendant);
        call.is_seated = is_seated;
        is_at_end || call.reply.is_some()
    }

    /// One of an attendant's calls that has come to an end.
    pub(in crate::client) fn ended_call_of(&self, attendant: &Arc<Gate>) -> Option<u32> {
        let calls = self.calls.lock();
        let is_over = calls.end.is_some();
        let mut all = calls.waiting.iter();
        let ended = all
            .find(|call| Arc::ptr_eq(&call.seat, attendant) && (is_over || call.reply.is_some()));
        ended.map(|call| call.request_id)
    }

    /// Lets an attendant rest until one of its calls has come to an end.
    pub(in crate::client) fn rest(&self, attendant: &Arc<Gate>) -> Rest {
        // Whoever has something for it says so after this, by another number.
        let seen = attendant.get();
        let mut calls = self.calls.lock();
        let (is_over, is_read) = (calls.end.is_some(), calls.is_read);
        let is_own = |call: &Pending| Arc::ptr_eq(&call.seat, attendant);
        let mut own = calls.waiting.iter().filter(|call| is_own(call)).peekable();
        let has_calls = own.peek().is_some();
        if own.any(|call| is_over || call.reply.is_some()) {
            return Rest::Not;
        }
        if has_calls && !is_read {
            calls.is_read = true;
            return Rest::Reading;
        }
        for call in calls.waiting.iter_mut().filter(|call| is_own(call)) {
            call.is_seated = true;
        }
        Rest::Seated(seen)
    }

    /// An attendant has something else to do: if somebody has to read, it shall be another one.
    pub(in crate::client) fn rise(&self, attendant: &Arc<Gate>) {
        let mut calls = self.calls.lock();
        for call in &mut calls.waiting {
            if Arc::ptr_eq(&call.seat, attendant) {
                call.is_seated = false;
            }
        }
        let next = calls.next_reader();
        drop(calls);
        if let Some(seat) = next {
            seat.advance();
        }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests may allocate")]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::client::connection::endless::awaiting_endless;
    use crate::scope;

    #[test]
    fn a_look_ends_although_the_peer_sends_without_end() {
        let seat = Arc::new(Gate::new(0));
        let (shared, received) = awaiting_endless(7, &seat);
        let mut frame = scope::frame();
        let mut before = 0;
        // What is there of the message already may be doubled by each.
        for _ in 0..4 {
            assert_eq!(shared.look(7, &mut frame), None);
            let now = received.load(Ordering::Relaxed);
            assert!(
                now > before && now <= 2 * before + (1 << 20),
                "{now} octets"
            );
            before = now;
        }
    }
}
