//! A connection that threads of the process share: several requests are under way on it, and each
//! reply goes to the thread that waits for it.
//!
//! One thread at a time reads for all: a leader among the waiting threads, or a thread of the
//! connection. A leader hands over the replies of others; when it has its own, the most urgent
//! waiting thread becomes the leader.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chronorb_cdr::Frame;
use chronorb_giop::{
    CompletionStatus, MessageHeader, MessageProtocol, Protocol, SystemException,
    SystemExceptionKind, Version, minor,
};
use chronorb_rt::{Deadline, Gate, Monotonic, PiMutex, PiMutexGuard};
use chronorb_transport::{Connection, WaitPolicy};

use super::completions::CompletionThread;
use super::key::ChannelKind;
use super::link::{Failure, Link, MALFORMED, MAX_STRAYS, ReplyReader, comm_failure, timeout};
use super::sending::SendMode;
use super::shared_wait::SharedWait;
use crate::client_state::ConnectionPermit;
use crate::config::OrbConfig;
use crate::room::KEPT_CAPACITY;
use crate::rtcorba::Priority;
use crate::scope;

/// The state of a connection that its threads share.
pub(in crate::client) struct SharedConnection {
    pub(in crate::client) link: Link,
    pub(super) sending: SendMode,
    next_request: AtomicU32,
    /// The difference of successive ids.
    #[cfg(feature = "bidir")]
    step: u32,
    /// Whether the other side has made it, so that this side cannot make it anew.
    #[cfg(feature = "bidir")]
    is_of_peer: bool,
    /// Whether it stays open while it is idle.
    is_kept: AtomicBool,
    /// The limit of the memory of replies that wait to be fetched.
    max_octets: usize,
    /// Locked by the thread that reads.
    pub(in crate::client) reader: PiMutex<ReplyReader>,
    /// Locked for moments only, and never during I/O.
    pub(super) calls: PiMutex<Calls>,
    /// The thread for calls that no thread waits for, started for the first of them.
    pub(super) completion_thread: OnceLock<Arc<dyn CompletionThread>>,
}

/// The calls that are under way.
pub(super) struct Calls {
    pub(super) waiting: Vec<WaitingCall>,
    /// The number of calls that were given up, and whose replies may still arrive.
    given_up: usize,
    /// The number of replies to no request.
    strays: usize,
    /// The memory of the replies that wait to be fetched.
    kept: usize,
    /// Whether a thread reads.
    pub(super) is_read: bool,
    /// The reason why no more replies will arrive.
    pub(super) end: Option<Failure>,
    /// The time of its last use, or at which it was made.
    last_use: Monotonic,
    was_used: bool,
    /// Whether the connection ends as soon as no call is under way.
    is_leaving: bool,
    /// Frames to exchange for those with replies.
    spare_frames: Vec<Frame>,
}

/// A call that waits for its reply.
pub(super) struct WaitingCall {
    pub(super) request_id: u32,
    /// The message protocol of the request.
    protocol: Protocol,
    urgency: Option<Priority>,
    pub(super) waiter: Arc<Gate>,
    /// Whether its thread sleeps at the waiter, so that it can be woken to read.
    pub(super) is_asleep: bool,
    pub(super) reply: Option<Result<(MessageHeader, Frame), Failure>>,
    /// The [arrivals](Link::arrivals) before its request was sent.
    arrivals: u32,
}

/// The end of a wait for a reply.
enum WaitEnd {
    /// The call has ended.
    Done(Result<MessageHeader, Failure>),
    /// No thread reads: the calling thread is the leader now.
    Lead,
    /// The time is over, or the wait is interrupted.
    Late,
}

impl SharedConnection {
    /// A connection of this kind. One with a thread of its own counts as read from now on.
    pub(super) fn new(
        transport: Box<dyn Connection>,
        permit: ConnectionPermit,
        config: &OrbConfig,
        sending: SendMode,
        kind: ChannelKind,
    ) -> Self {
        let has_reader = kind.has_own_thread();
        // A thread that always waits must not poll.
        let waiting = if has_reader {
            WaitPolicy::Block
        } else {
            config.client_wait
        };
        let max_octets = config.max_buffered_octets;
        let reader = ReplyReader::new(config, MAX_PARTIAL_REPLIES, max_octets);
        Self {
            link: Link::new(transport, permit, config, waiting, kind),
            sending,
            next_request: AtomicU32::new(first_request_id()),
            #[cfg(feature = "bidir")]
            step: 1,
            #[cfg(feature = "bidir")]
            is_of_peer: false,
            is_kept: AtomicBool::new(false),
            max_octets,
            reader: PiMutex::new(reader),
            calls: PiMutex::new(Calls::new(has_reader)),
            completion_thread: OnceLock::new(),
        }
    }

    pub(in crate::client) fn next_request_id(&self) -> u32 {
        #[cfg(feature = "bidir")]
        let step = self.step;
        #[cfg(not(feature = "bidir"))]
        let step = 1;
        self.next_request.fetch_add(step, Ordering::Relaxed)
    }

    /// Makes it one on which both sides send requests. The side that has made it has the even
    /// numbers.
    #[cfg(feature = "bidir")]
    pub(super) fn become_bidirectional(&mut self, is_of_peer: bool) {
        (self.step, self.is_of_peer) = (2, is_of_peer);
        let first = self.next_request.get_mut();
        *first = (*first & !1) | u32::from(is_of_peer);
    }

    /// Whether replies are due.
    #[cfg(feature = "bidir")]
    pub(super) fn has_calls(&self) -> bool {
        !self.calls.lock().waiting.is_empty()
    }

    /// Whether the server has ended it, as far as that shows without taking octets from the thread
    /// that reads. While no reply is due, not even one to a call that was given up, octets that
    /// have arrived can only be a farewell.
    pub(super) fn is_stale(&self) -> bool {
        let calls = self.calls.lock();
        let is_idle = calls.waiting.is_empty() && calls.given_up == 0;
        self.link.is_closed()
            || (is_idle && self.link.transport().is_stale())
            || self.link.has_hung_up()
    }

    /// The time since which it could be closed without a loss; `None` if it is in use or kept.
    pub(super) fn idle_since(&self) -> Option<Monotonic> {
        let _turn = self.sending.take_idle_turn()?;
        self.idle_time(&self.calls.lock())
    }

    fn idle_time(&self, calls: &Calls) -> Option<Monotonic> {
        let is_idle = calls.waiting.is_empty() && !self.link.is_closed();
        // The thread that has made it is about to use it.
        let is_new = !calls.was_used && Monotonic::now().since(calls.last_use) < FIRST_USE;
        let may_end = is_idle && !is_new && !self.is_kept.load(Ordering::Relaxed);
        may_end.then_some(calls.last_use)
    }

    /// Closes it if it could be closed without a loss and was not used since `time`; returns
    /// whether it did.
    pub(super) fn close_unused_since(&self, time: Monotonic) -> bool {
        let Some(_turn) = self.sending.take_idle_turn() else {
            return false;
        };
        self.close_if(|shared, calls| shared.idle_time(calls).is_some_and(|since| since <= time))
    }

    /// Closes it if that is due, so that no call begins between the check and the end.
    fn close_if(&self, is_due: impl FnOnce(&Self, &mut Calls) -> bool) -> bool {
        let mut calls = self.calls.lock();
        let is_due = is_due(self, &mut calls);
        if is_due {
            self.link.mark_closed(true);
        }
        drop(calls);
        if is_due {
            self.close();
        }
        is_due
    }

    /// Keeps it open while it is idle.
    pub(super) fn keep(&self) {
        self.is_kept.store(true, Ordering::Relaxed);
    }

    /// Notes that it is in use.
    pub(super) fn touch(&self) {
        self.calls.lock().touch();
    }

    /// Closes it: nothing is sent any more. A reader finds the octets that had arrived, and then
    /// the end.
    pub(in crate::client) fn close(&self) {
        self.link.close();
        if let Some(thread) = self.completion_thread.get() {
            thread.closed();
        }
    }

    /// Ends it as soon as no call is under way.
    pub(super) fn leave(&self) {
        self.close_if(|_, calls| {
            calls.is_leaving = true;
            calls.waiting.is_empty()
        });
    }

    /// Registers a call whose request is about to be sent, so that its reply is kept.
    pub(in crate::client) fn expect(
        &self,
        request_id: u32,
        urgency: Option<Priority>,
        message: &Frame,
        waiter: &Arc<Gate>,
    ) -> Result<(), Failure> {
        let header = Protocol::read_header(message.as_slice());
        let protocol = header.map_or(NEWEST, |header| header.protocol);
        let mut calls = self.calls.lock();
        if self.link.is_closed() {
            return Err(Failure::NotProcessed);
        }
        calls.waiting.push(WaitingCall {
            request_id,
            protocol,
            urgency,
            waiter: waiter.clone(),
            is_asleep: false,
            reply: None,
            arrivals: self.link.arrivals(),
        });
        Ok(())
    }

    /// Removes a call that no thread waits for any more.
    pub(super) fn forget(&self, request_id: u32) {
        self.remove_after(request_id, |_| ());
    }

    /// Waits for the reply to a request, and reads for others meanwhile if no other thread does.
    /// Returns `None` if the deadline passes first; the call is still under way then.
    pub(in crate::client) fn receive(
        &self,
        request_id: u32,
        frame: &mut Frame,
        deadline: Deadline,
    ) -> Option<Result<MessageHeader, Failure>> {
        self.receive_until_interrupted(request_id, frame, (deadline, None))
    }

    /// Waits as [`receive`](Self::receive) does. Also returns `None` if the wait is interrupted.
    pub(in crate::client) fn receive_until_interrupted(
        &self,
        request_id: u32,
        frame: &mut Frame,
        (deadline, wait): (Deadline, Option<&SharedWait>),
    ) -> Option<Result<MessageHeader, Failure>> {
        match self.wait(request_id, frame, (deadline, wait)) {
            WaitEnd::Done(result) => Some(result),
            WaitEnd::Lead => self.lead(request_id, frame, |reader, frame| {
                let read = |room: &mut [u8]| match wait {
                    None => self.link.recv(room, deadline),
                    Some(wait) => wait.recv(&self.link, room, deadline),
                };
                reader.receive_reply(&self.link, frame, read)
            }),
            WaitEnd::Late => None,
        }
    }

    /// Checks whether a call has ended, without waiting. If no other thread reads, reads what has
    /// arrived, as much as in one turn.
    pub(in crate::client) fn poll(
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
        let mut turn = self.reader.lock().turn();
        self.lead(request_id, frame, |reader, frame| {
            let read = |room: &mut [u8]| turn.recv(&self.link, room);
            reader.receive_reply(&self.link, frame, read)
        })
    }

    /// Reads by `read` for all calls as the leader, until the reply to its own request has arrived.
    /// Returns `None` if `read` has no whole message.
    fn lead(
        &self,
        request_id: u32,
        frame: &mut Frame,
        mut read: impl FnMut(
            &mut ReplyReader,
            &mut Frame,
        ) -> Result<Option<(u32, MessageHeader)>, Failure>,
    ) -> Option<Result<MessageHeader, Failure>> {
        loop {
            // No other thread reads meanwhile, so the lock is free.
            let reply = read(&mut self.reader.lock(), frame);
            let handed_over = match reply {
                Ok(Some((id, header))) if id == request_id => {
                    self.remove_after(request_id, |calls| calls.is_read = false);
                    return Some(Ok(header));
                }
                Ok(Some((id, header))) => self.hand_over(id, header, frame),
                Ok(None) => {
                    self.stop_reading();
                    return None;
                }
                Err(failure) => Err(failure),
            };
            if let Err(failure) = handed_over {
                self.end(failure);
                self.forget(request_id);
                return Some(Err(failure));
            }
        }
    }

    /// Reads for all calls until the connection ends, as the connection's own thread.
    pub(super) fn read_to_end(&self) {
        let mut reader = self.reader.lock();
        let mut frame = scope::frame();
        loop {
            let read = |room: &mut [u8]| self.link.recv(room, Deadline::after(LONG));
            let reply = reader.receive_reply(&self.link, &mut frame, read);
            let handed_over = reply.and_then(|reply| match reply {
                Some((id, header)) => self.hand_over(id, header, &mut frame),
                None => Ok(()),
            });
            if let Err(failure) = handed_over {
                return self.end(failure);
            }
        }
    }

    /// Waits until the call has ended, or no other thread reads.
    fn wait(
        &self,
        request_id: u32,
        frame: &mut Frame,
        (deadline, wait): (Deadline, Option<&SharedWait>),
    ) -> WaitEnd {
        let mut calls = self.calls.lock();
        loop {
            let Some(i) = calls.position(request_id) else {
                return WaitEnd::Done(Err(comm_failure(CompletionStatus::Maybe).into()));
            };
            let call = &mut calls.waiting[i];
            call.is_asleep = false;
            match call.reply.take() {
                Some(Ok((header, reply))) => {
                    calls.kept -= reply.capacity();
                    drop(calls);
                    let mut spare = std::mem::replace(frame, reply);
                    scope::clear(&mut spare);
                    let spare = (spare.capacity() <= KEPT_CAPACITY).then_some(spare);
                    self.remove_after(request_id, |calls| calls.keep(spare));
                    return WaitEnd::Done(Ok(header));
                }
                Some(Err(failure)) => {
                    drop(calls);
                    self.forget(request_id);
                    return WaitEnd::Done(Err(failure));
                }
                None => {}
            }
            if let Some(end) = calls.end {
                drop(calls);
                let end = self.sending.unsent_at_end(request_id).unwrap_or(end);
                self.forget(request_id);
                return WaitEnd::Done(Err(end));
            }
            // Each change for this call after this point changes the number.
            let seen = calls.waiting[i].waiter.get();
            if deadline.has_passed() || wait.is_some_and(SharedWait::is_interrupted) {
                return WaitEnd::Late;
            }
            if !calls.is_read {
                calls.is_read = true;
                return WaitEnd::Lead;
            }
            let call = &mut calls.waiting[i];
            call.is_asleep = true;
            let waiter = call.waiter.clone();
            drop(calls);
            waiter.wait_while(seen, deadline);
            calls = self.calls.lock();
        }
    }

    /// Ends the reading of the calling thread; another one reads on.
    pub(in crate::client) fn stop_reading(&self) {
        let mut calls = self.calls.lock();
        calls.is_read = false;
        wake_next_reader(calls);
    }

    /// Ends a call whose time is over, if it `is_late`, or that is given up before. Returns the
    /// failure of a late one.
    pub(in crate::client) fn abandon(
        &self,
        request_id: u32,
        frame: &mut Frame,
        is_late: bool,
    ) -> Failure {
        let completed = if self.take_back(request_id) {
            self.forget(request_id);
            CompletionStatus::No
        } else {
            if self.give_up(request_id, frame) && is_late {
                self.retire();
            }
            CompletionStatus::Maybe
        };
        timeout(completed).into()
    }

    /// Hands a reply to the thread that waits for it, in exchange for another frame. A second
    /// reply, or one to a call that was given up, is dropped. If replies that were not fetched yet
    /// take too much memory, the calls with the largest ones end with `IMP_LIMIT`.
    ///
    /// # Errors
    /// `MARSHAL` after too many replies to no request.
    pub(in crate::client) fn hand_over(
        &self,
        request_id: u32,
        header: MessageHeader,
        frame: &mut Frame,
    ) -> Result<(), Failure> {
        let mut calls = self.calls.lock();
        let i = match calls.position(request_id) {
            Some(i) if calls.waiting[i].reply.is_none() => i,
            known => {
                if known.is_none() && calls.given_up > 0 {
                    calls.given_up -= 1;
                } else {
                    calls.strays += 1;
                }
                // Datagrams may arrive twice, and from any peer.
                let are_too_many = calls.strays > MAX_STRAYS && self.link.is_stream();
                drop(calls);
                scope::clear(frame);
                return if are_too_many { Err(MALFORMED) } else { Ok(()) };
            }
        };
        let spare = calls.spare_frames.pop().unwrap_or_else(scope::frame);
        let reply = std::mem::replace(frame, spare);
        calls.kept += reply.capacity();
        let call = &mut calls.waiting[i];
        call.reply = Some(Ok((header, reply)));
        let waiter = call.is_asleep.then(|| call.waiter.clone());
        let dropped = calls.drop_largest(self.max_octets);
        drop(calls);
        // Memory is freed outside of the lock.
        drop(dropped);
        if let Some(waiter) = waiter {
            waiter.advance();
        }
        Ok(())
    }

    /// Ends the connection: no more replies will arrive, and all waiting threads get the reason.
    #[allow(clippy::disallowed_methods, reason = "once for each connection")]
    pub(in crate::client) fn end(&self, why: Failure) {
        let mut calls = self.calls.lock();
        calls.end.get_or_insert(why);
        // A caller that sees the end finds the connection closed, and does not try it again.
        self.link.mark_closed(true);
        let waiters: Vec<_> = calls
            .waiting
            .iter()
            .map(|call| call.waiter.clone())
            .collect();
        drop(calls);
        self.close();
        self.sending.end();
        for waiter in waiters {
            waiter.advance();
        }
    }

    /// Removes a request that the server may still be serving, and tells the server so. Returns
    /// whether nothing has arrived since the request was sent.
    fn give_up(&self, request_id: u32, frame: &mut Frame) -> bool {
        let (mut protocol, mut is_silent) = (NEWEST, false);
        self.remove_after(request_id, |calls| {
            if let Some(i) = calls.position(request_id) {
                let call = &calls.waiting[i];
                protocol = call.protocol;
                is_silent = call.arrivals == self.link.arrivals();
            }
            calls.given_up += 1;
        });
        if self.cancel(request_id, protocol, frame).is_err() {
            // A frame has room for a header at least.
            self.close();
        }
        is_silent
    }

    /// Lets no more calls begin on a connection whose peer gives no sign of life: something on the
    /// way may have forgotten it. It ends as soon as no call is under way. Datagrams may be lost,
    /// and a connection that the peer has made cannot be made anew.
    fn retire(&self) {
        #[cfg(feature = "bidir")]
        if self.is_of_peer {
            return;
        }
        if self.link.is_stream() {
            self.close_if(|shared, calls| {
                shared.link.mark_closed(true);
                calls.is_leaving = true;
                calls.waiting.is_empty()
            });
        }
    }

    /// Removes a call after the step `last`, and wakes a thread that reads for the others.
    fn remove_after(&self, request_id: u32, last: impl FnOnce(&mut Calls)) {
        let mut calls = self.calls.lock();
        last(&mut calls);
        let removed = calls.remove(request_id);
        let ends = calls.waiting.is_empty() && calls.is_leaving;
        if ends {
            // No call begins after this.
            self.link.mark_closed(true);
        }
        if calls.waiting.is_empty() {
            calls.touch();
        }
        wake_next_reader(calls);
        drop(removed);
        if ends {
            self.close();
        }
    }
}

/// Unlocks the calls, and wakes the thread that reads next, if one has to.
pub(super) fn wake_next_reader(calls: PiMutexGuard<'_, Calls>) {
    let next = calls.next_reader();
    drop(calls);
    if let Some(waiter) = next {
        waiter.advance();
    }
}

impl Calls {
    fn new(is_read: bool) -> Self {
        Self {
            waiting: Vec::new(),
            given_up: 0,
            strays: 0,
            kept: 0,
            is_read,
            end: None,
            last_use: Monotonic::now(),
            was_used: false,
            is_leaving: false,
            spare_frames: Vec::new(),
        }
    }

    fn touch(&mut self) {
        self.last_use = Monotonic::now();
        self.was_used = true;
    }

    pub(super) fn position(&self, request_id: u32) -> Option<usize> {
        let mut all = self.waiting.iter();
        all.position(|call| call.request_id == request_id)
    }

    /// The waiter of the most urgent sleeping thread, if no thread reads. A thread that does not
    /// sleep yet notices by itself that it has to read.
    fn next_reader(&self) -> Option<Arc<Gate>> {
        let asleep = |call: &&WaitingCall| call.is_asleep && call.reply.is_none();
        let candidates = self.waiting.iter().filter(asleep);
        let next = candidates.max_by_key(|call| call.urgency)?;
        (!self.is_read && self.end.is_none()).then(|| next.waiter.clone())
    }

    fn keep(&mut self, frame: Option<Frame>) {
        if self.spare_frames.len() < KEPT_FRAMES {
            self.spare_frames.extend(frame);
        }
    }

    /// Removes a call, with a reply that was not fetched.
    fn remove(&mut self, request_id: u32) -> Option<WaitingCall> {
        let call = self.waiting.swap_remove(self.position(request_id)?);
        if let Some(Ok((_, frame))) = &call.reply {
            self.kept -= frame.capacity();
        }
        Some(call)
    }

    /// Ends the calls with the largest replies, until the others take no more than `max_octets`.
    fn drop_largest(&mut self, max_octets: usize) -> Vec<Frame> {
        let mut dropped = Vec::new();
        let capacity = |call: &WaitingCall| match &call.reply {
            Some(Ok((_, frame))) => frame.capacity(),
            _ => 0,
        };
        while self.kept > max_octets
            && let Some(largest) = self.waiting.iter_mut().max_by_key(|call| capacity(call))
            && let Some(Ok((_, frame))) = largest.reply.replace(Err(TOO_MANY_OCTETS))
        {
            self.kept -= frame.capacity();
            #[allow(clippy::disallowed_methods, reason = "if too much memory is taken")]
            dropped.push(frame);
        }
        dropped
    }
}

/// The id of the first request of a connection, which a server cannot guess.
pub(super) fn first_request_id() -> u32 {
    RandomState::new().build_hasher().finish() as u32
}

/// The failure of a call whose reply took too much memory before it was fetched.
const TOO_MANY_OCTETS: Failure = Failure::Exception(SystemException::new(
    SystemExceptionKind::ImpLimit,
    minor::TOO_MANY_REPLY_OCTETS,
    CompletionStatus::Maybe,
));
/// The protocol of a message whose header does not show it.
const NEWEST: Protocol = Protocol::Giop(Version::V1_2);
/// Frames that are kept for replies that are handed over.
const KEPT_FRAMES: usize = 8;
/// Replies of which fragments are kept.
const MAX_PARTIAL_REPLIES: usize = 64;
/// The longest time from the making of a connection to its first use.
const FIRST_USE: Duration = Duration::from_secs(1);
/// The limit of one wait for a message; the wait is repeated.
const LONG: Duration = Duration::from_secs(3600);

#[cfg(test)]
#[allow(clippy::disallowed_macros, reason = "tests may allocate")]
mod tests {
    use std::thread;

    use chronorb_giop::{MessageType, finish_message, start_message};

    use super::*;
    use crate::client::connection::tests::endless::awaiting_endless;

    fn waiting(request_id: u32, urgency: i16, is_asleep: bool) -> WaitingCall {
        WaitingCall {
            request_id,
            protocol: Version::V1_2.into(),
            urgency: Priority::new(urgency),
            waiter: Arc::default(),
            is_asleep,
            reply: None,
            arrivals: 0,
        }
    }

    /// The request whose thread reads next.
    fn next(calls: &Calls) -> Option<u32> {
        let waiter = calls.next_reader()?;
        let mut all = calls.waiting.iter();
        let call = all.find(|call| Arc::ptr_eq(&call.waiter, &waiter))?;
        Some(call.request_id)
    }

    #[test]
    fn the_most_urgent_thread_that_sleeps_reads_next() {
        let mut calls = Calls::new(false);
        calls.waiting = vec![
            waiting(1, 10, true),
            waiting(2, 30, true),
            // This one notices by itself before it sleeps.
            waiting(3, 40, false),
            waiting(4, 20, true),
        ];
        assert_eq!(next(&calls), Some(2));
        let mut frame = scope::frame();
        start_message(&mut frame, Version::V1_2, MessageType::Reply).expect("there is room");
        finish_message(&mut frame);
        let header = MessageHeader::parse(frame.as_slice()).expect("a whole header");
        calls.waiting[1].reply = Some(Ok((header, frame)));
        assert_eq!(
            next(&calls),
            Some(4),
            "one that has its reply does not read"
        );
        calls.is_read = true;
        assert_eq!(next(&calls), None, "a thread reads already");
        calls.is_read = false;
        calls.end = Some(Failure::NotProcessed);
        assert_eq!(next(&calls), None, "there is nothing to read");
    }

    #[test]
    fn a_caller_that_sees_the_end_finds_the_connection_closed() {
        for _ in 0..ROUNDS {
            let (shared, _) = awaiting_endless(7, &Arc::default());
            thread::scope(|scope| {
                scope.spawn(|| shared.end(Failure::NotProcessed));
                while shared.calls.lock().end.is_none() {
                    std::hint::spin_loop();
                }
                assert!(shared.link.is_closed());
            });
        }
    }

    #[test]
    fn a_poll_ends_although_the_peer_sends_without_end() {
        let (shared, received) = awaiting_endless(7, &Arc::default());
        let mut frame = scope::frame();
        let mut before = 0;
        // Each poll may double the part of the message that has arrived.
        for _ in 0..4 {
            assert_eq!(shared.poll(7, &mut frame), None);
            let now = received.load(Ordering::Relaxed);
            assert!(
                now > before && now <= 2 * before + (1 << 20),
                "{now} octets"
            );
            before = now;
        }
    }

    /// An end takes some 10 microseconds, of which the unlocked part is a tenth.
    const ROUNDS: usize = 2_000;
}
