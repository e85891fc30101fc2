//! A connection that threads of the process share: requests of several are under way on it, and
//! each reply goes to the thread that waits for it.
//!
//! Somebody reads for all: a leader among those that wait (`leader`), or a thread of the
//! connection (`reader`), which may also send for all (`active`). All else is the same, and is
//! here.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

mod attended;
mod sending;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use chronorb_cdr::{CdrError, Frame};
use chronorb_giop::connection::Negotiation;
use chronorb_giop::{
    CompletionStatus, MessageHeader, MessageProtocol, MessageType, Protocol, SystemException,
    SystemExceptionKind, Version, minor, reply_id,
};
use chronorb_rt::{Deadline, Gate, Monotonic, PiMutex};
use chronorb_transport::{Carriage, Connection, IoError, WaitPolicy};

pub(in crate::client) use self::attended::{Attendant, Rest};
pub(super) use self::sending::Sending;
use super::permit::Permit;
use super::{Awaited, Failure, comm_failure, leader, timeout};
use crate::client::inbox::Inbox;
use crate::config::OrbConfig;
use crate::room::KEPT_CAPACITY;
use crate::rtcorba::Priority;
use crate::scope;

/// What the threads that share a connection have of it together.
pub(in crate::client) struct Multiplexed {
    transport: Box<dyn Connection>,
    permit: Permit,
    fragment_size: usize,
    is_stream: bool,
    /// The most memory of replies that wait to be fetched.
    max_octets: usize,
    next_request: AtomicU32,
    closed: AtomicBool,
    negotiation: Negotiation,
    /// Whether it stays although nobody uses it.
    is_kept: AtomicBool,
    sending: Sending,
    /// Of whoever reads.
    pub(in crate::client) inbox: PiMutex<Inbox>,
    /// Held for moments only, and never during I/O.
    calls: PiMutex<Calls>,
    /// Who looks after the calls that no thread waits for; made with the first of them.
    attendant: OnceLock<Arc<dyn Attendant>>,
}

/// The calls that are under way.
struct Calls {
    waiting: Vec<Pending>,
    /// Calls that were given up, and whose replies may still come.
    given_up: usize,
    /// Replies that no request had asked for.
    strays: usize,
    /// The memory of the replies that wait to be fetched.
    kept: usize,
    /// Whether somebody reads.
    is_read: bool,
    /// Why there will be no more replies.
    end: Option<Failure>,
    last_use: Monotonic,
    /// Whether it ends as soon as no call is under way.
    is_leaving: bool,
    /// In exchange for those that hold replies.
    spare_frames: Vec<Frame>,
}

/// A call that waits for its reply.
struct Pending {
    request_id: u32,
    /// That of the request.
    protocol: Protocol,
    urgency: Option<Priority>,
    seat: Arc<Gate>,
    /// Whether its thread sleeps until its seat is called, so that it can be asked to read.
    is_seated: bool,
    reply: Option<Result<(MessageHeader, Frame), Failure>>,
}

/// What a thread that looks after its call has to do.
enum Next {
    /// The call has come to an end.
    Done(Result<MessageHeader, Failure>),
    /// Nobody reads: it is the thread that does, from now on.
    Lead,
    /// The time is over.
    Late,
}

impl Multiplexed {
    /// A connection that nobody reads from yet, or that a thread of its own reads from.
    pub(super) fn new(
        transport: Box<dyn Connection>,
        permit: Permit,
        config: &OrbConfig,
        sending: Sending,
        has_reader: bool,
    ) -> Self {
        // A thread that waits all the time would never let its processor go.
        let waiting = match has_reader {
            true => WaitPolicy::Block,
            false => config.client_wait,
        };
        let is_stream = transport.carriage() == Carriage::Stream;
        Self {
            negotiation: Negotiation::new(config.speaks_lite_on(&*transport)),
            transport,
            permit,
            is_kept: AtomicBool::new(false),
            is_stream,
            fragment_size: if is_stream { config.fragment_size } else { 0 },
            max_octets: config.max_buffered_octets,
            next_request: AtomicU32::new(first_request_id()),
            closed: AtomicBool::new(false),
            sending,
            inbox: PiMutex::new(Inbox::shared(config, waiting)),
            calls: PiMutex::new(Calls {
                waiting: Vec::new(),
                given_up: 0,
                strays: 0,
                kept: 0,
                is_read: has_reader,
                end: None,
                last_use: Monotonic::now(),
                is_leaving: false,
                spare_frames: Vec::new(),
            }),
            attendant: OnceLock::new(),
        }
    }

    pub(in crate::client) fn transport(&self) -> &dyn Connection {
        &*self.transport
    }

    pub(in crate::client) fn next_request_id(&self) -> u32 {
        self.next_request.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether the server takes messages of GIOPlite.
    #[inline]
    pub(super) fn speaks_lite(&self) -> bool {
        self.negotiation.is_lite()
    }

    /// Whether it is to be asked whether it does.
    pub(super) fn proposes_lite(&self) -> bool {
        self.negotiation.is_proposing()
    }

    /// Whether all messages arrive that are sent by it, in order.
    pub(in crate::client) fn is_stream(&self) -> bool {
        self.is_stream
    }

    pub(in crate::client) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Whether the server has ended it, as far as can be seen while no reply is due, not even one
    /// that nobody waits for any more.
    pub(super) fn is_stale(&self) -> bool {
        let calls = self.calls.lock();
        let is_idle = calls.waiting.is_empty() && calls.given_up == 0;
        self.is_closed() || (is_idle && self.transport.is_stale())
    }

    /// Since when it could be closed without a loss; `None` where it could not.
    pub(super) fn idle_since(&self) -> Option<Monotonic> {
        self.idle_time(&self.calls.lock())
    }

    fn idle_time(&self, calls: &Calls) -> Option<Monotonic> {
        let is_idle = calls.waiting.is_empty() && !self.is_closed();
        (is_idle && !self.is_kept.load(Ordering::Relaxed)).then_some(calls.last_use)
    }

    /// Closes it if it could be closed without a loss, and nobody has used it since `time`; returns
    /// whether it did.
    pub(super) fn close_unused_since(&self, time: Monotonic) -> bool {
        self.close_if(|shared, calls| shared.idle_time(calls).is_some_and(|since| since <= time))
    }

    /// Closes it if that is due, so that no call begins between the look and the end.
    fn close_if(&self, is_due: impl FnOnce(&Self, &mut Calls) -> bool) -> bool {
        let mut calls = self.calls.lock();
        let is_due = is_due(self, &mut calls);
        if is_due {
            self.closed.store(true, Ordering::Release);
        }
        drop(calls);
        if is_due {
            self.close();
        }
        is_due
    }

    /// Lets it stay although nobody uses it.
    pub(super) fn keep(&self) {
        self.is_kept.store(true, Ordering::Relaxed);
    }

    /// Notes that it is in use.
    pub(super) fn touch(&self) {
        self.calls.lock().last_use = Monotonic::now();
    }

    /// Nothing is sent any more. Whoever reads finds what had come until now, and then the end.
    pub(in crate::client) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.permit.give_back();
        self.transport.shutdown();
        if let Some(attendant) = self.attendant.get() {
            attendant.closed();
        }
    }

    /// Ends it as soon as no call is under way.
    pub(super) fn leave(&self) {
        self.close_if(|_, calls| {
            calls.is_leaving = true;
            calls.waiting.is_empty()
        });
    }

    /// Keeps the reply to a request that is about to be sent.
    pub(in crate::client) fn expect(
        &self,
        awaited: Awaited,
        message: &Frame,
        seat: &Arc<Gate>,
    ) -> Result<(), Failure> {
        let header = Protocol::read_header(message.as_slice());
        let protocol = header.map_or(NEWEST, |header| header.protocol);
        let mut calls = self.calls.lock();
        if self.is_closed() {
            return Err(Failure::NotProcessed);
        }
        calls.waiting.push(Pending {
            request_id: awaited.request_id,
            protocol,
            urgency: awaited.urgency,
            seat: seat.clone(),
            is_seated: false,
            reply: None,
        });
        Ok(())
    }

    /// Forgets a request that was not sent.
    pub(in crate::client) fn forget(&self, request_id: u32) {
        self.leave_with(request_id, |_| ());
    }

    /// Waits for the reply to a request, and reads for others meanwhile where nobody else does; `None` where the
    /// deadline passes first, and the call is still under way.
    pub(in crate::client) fn receive(
        &self,
        request_id: u32,
        frame: &mut Frame,
        deadline: Deadline,
    ) -> Option<Result<MessageHeader, Failure>> {
        match self.wait(request_id, frame, deadline) {
            Next::Done(result) => Some(result),
            Next::Lead => leader::lead(self, request_id, frame, deadline),
            Next::Late => None,
        }
    }

    /// Waits until the call has come to an end, or somebody has to read.
    fn wait(&self, request_id: u32, frame: &mut Frame, deadline: Deadline) -> Next {
        let mut calls = self.calls.lock();
        loop {
            let Some(i) = calls.position(request_id) else {
                return Next::Done(Err(comm_failure(CompletionStatus::Maybe).into()));
            };
            let call = &mut calls.waiting[i];
            call.is_seated = false;
            if let Some(reply) = call.reply.take() {
                let (header, reply) = match reply {
                    Ok(reply) => reply,
                    Err(failure) => {
                        drop(calls);
                        self.forget(request_id);
                        return Next::Done(Err(failure));
                    }
                };
                calls.kept -= reply.capacity();
                drop(calls);
                let mut spare = std::mem::replace(frame, reply);
                scope::clear(&mut spare);
                let spare = (spare.capacity() <= KEPT_CAPACITY).then_some(spare);
                self.leave_with(request_id, |calls| calls.keep(spare));
                return Next::Done(Ok(header));
            }
            if let Some(end) = calls.end {
                drop(calls);
                let end = self.unsent_at_end(request_id).unwrap_or(end);
                self.forget(request_id);
                return Next::Done(Err(end));
            }
            if deadline.has_passed() {
                return Next::Late;
            }
            if !calls.is_read {
                calls.is_read = true;
                return Next::Lead;
            }
            let call = &mut calls.waiting[i];
            call.is_seated = true;
            let seat = call.seat.clone();
            // Whoever has something for this call says so after this, by another number.
            let seen = seat.get();
            drop(calls);
            seat.wait_while(seen, deadline);
            calls = self.calls.lock();
        }
    }

    /// The thread that reads has the reply to its own request: another one reads on.
    pub(super) fn step_down(&self, request_id: u32) {
        self.leave_with(request_id, |calls| calls.is_read = false);
    }

    /// The thread that reads does so no more, and another one reads on.
    pub(in crate::client) fn stop_reading(&self) {
        let mut calls = self.calls.lock();
        calls.is_read = false;
        let next = calls.next_reader();
        drop(calls);
        if let Some(seat) = next {
            seat.advance();
        }
    }

    /// Ends a call whose time is over; returns what its caller is told.
    pub(in crate::client) fn abandon(&self, request_id: u32, frame: &mut Frame) -> Failure {
        let completed = if self.take_back(request_id) {
            self.forget(request_id);
            CompletionStatus::No
        } else {
            self.give_up(request_id, frame);
            CompletionStatus::Maybe
        };
        timeout(completed).into()
    }

    /// Reads the next reply into `frame`; `None` where the deadline passed first, and what came
    /// until then is kept for the next one that reads.
    ///
    /// Anything else but a reply ends the connection.
    pub(super) fn read(
        &self,
        inbox: &mut Inbox,
        frame: &mut Frame,
        deadline: Deadline,
    ) -> Result<Option<(u32, MessageHeader)>, Failure> {
        let received = inbox.receive(&*self.transport, &self.negotiation, frame, deadline);
        let header = match received {
            Ok(header) => header,
            Err(Failure::Exception(exception))
                if exception.kind == SystemExceptionKind::Timeout =>
            {
                return Ok(None);
            }
            Err(failure) => return Err(failure),
        };
        reply_in(inbox, frame, header).map(Some)
    }

    /// Reads the next reply, as far as `take` has it, which waits for nothing; `None` where that is
    /// not all. Otherwise as [`read`](Self::read).
    pub(in crate::client) fn read_present(
        &self,
        inbox: &mut Inbox,
        frame: &mut Frame,
        take: impl FnMut(&mut [u8]) -> Result<usize, IoError>,
    ) -> Result<Option<(u32, MessageHeader)>, Failure> {
        let header = inbox.receive_present(&self.negotiation, frame, take)?;
        let reply = header.map(|header| reply_in(inbox, frame, header));
        reply.transpose()
    }

    /// Hands a reply to the thread that waits for it, in exchange for another frame. The reply
    /// to a request that was given up is dropped, and so is a second one. Where replies that nobody has fetched take
    /// too much memory, the calls with the greatest of them end with `IMP_LIMIT`.
    ///
    /// # Errors
    /// `MARSHAL` where too many replies have come that nobody had asked for.
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
                let is_late = known.is_none() && calls.given_up > 0;
                match is_late {
                    true => calls.given_up -= 1,
                    false => calls.strays += 1,
                }
                // Datagrams may come twice, and from anybody.
                let are_too_many = calls.strays > MAX_STRAYS && self.is_stream;
                drop(calls);
                scope::clear(frame);
                return match are_too_many {
                    true => Err(MALFORMED),
                    false => Ok(()),
                };
            }
        };
        let spare = calls.spare_frames.pop().unwrap_or_else(scope::frame);
        let reply = std::mem::replace(frame, spare);
        calls.kept += reply.capacity();
        let call = &mut calls.waiting[i];
        call.reply = Some(Ok((header, reply)));
        let seat = call.is_seated.then(|| call.seat.clone());
        let dropped = match calls.kept > self.max_octets {
            true => calls.drop_greatest(self.max_octets),
            false => Vec::new(),
        };
        drop(calls);
        // Memory goes back to the system outside of the lock.
        drop(dropped);
        if let Some(seat) = seat {
            seat.advance();
        }
        Ok(())
    }

    /// There will be no more replies, for a reason that all who wait are told.
    #[allow(clippy::disallowed_methods, reason = "once for each connection")]
    pub(in crate::client) fn end(&self, why: Failure) {
        let mut calls = self.calls.lock();
        calls.end.get_or_insert(why);
        // A caller that sees the end finds the connection closed, and does not try it again.
        self.closed.store(true, Ordering::Release);
        let seats: Vec<_> = calls.waiting.iter().map(|call| call.seat.clone()).collect();
        drop(calls);
        self.close();
        if let Sending::Queued(queue) = &self.sending {
            queue.end();
        }
        for seat in seats {
            seat.advance();
        }
    }

    /// Forgets a request that the server may still be serving, and tells it that nobody waits.
    fn give_up(&self, request_id: u32, frame: &mut Frame) {
        let mut protocol = NEWEST;
        self.leave_with(request_id, |calls| {
            let call = calls.position(request_id).map(|i| &calls.waiting[i]);
            protocol = call.map_or(protocol, |call| call.protocol);
            calls.given_up += 1;
        });
        if let Err(CdrError::FrameFull) = self.cancel(request_id, protocol, frame) {
            // A frame has room for a header at least.
            self.close();
        }
    }

    /// Takes a call out, after `last` is done; sees to it that somebody reads for the others.
    fn leave_with(&self, request_id: u32, last: impl FnOnce(&mut Calls)) {
        let mut calls = self.calls.lock();
        last(&mut calls);
        let left = calls.take_out(request_id);
        let ends = calls.waiting.is_empty() && calls.is_leaving;
        if ends {
            // No call begins after this.
            self.closed.store(true, Ordering::Release);
        }
        if calls.waiting.is_empty() {
            calls.last_use = Monotonic::now();
        }
        let next = calls.next_reader();
        drop(calls);
        drop(left);
        if let Some(seat) = next {
            seat.advance();
        }
        if ends {
            self.close();
        }
    }
}

/// Which reply a message is. Anything else ends the connection.
fn reply_in(
    inbox: &Inbox,
    frame: &Frame,
    header: MessageHeader,
) -> Result<(u32, MessageHeader), Failure> {
    match (header.kind, reply_id(frame.as_slice())) {
        (MessageType::Reply | MessageType::LocateReply, Some(id)) => Ok((id, header)),
        (MessageType::Reply | MessageType::LocateReply, None) => Err(MALFORMED),
        // The server promises that it has not begun what it has not answered; a part of an
        // answer shows that it has.
        (MessageType::CloseConnection, _) if !inbox.has_part() => Err(Failure::NotProcessed),
        _ => Err(comm_failure(CompletionStatus::Maybe).into()),
    }
}

impl Calls {
    fn position(&self, request_id: u32) -> Option<usize> {
        let mut all = self.waiting.iter();
        all.position(|call| call.request_id == request_id)
    }

    /// The most urgent thread that sleeps, where nobody reads. One that has not sat down yet
    /// will see for itself that it has to read.
    fn next_reader(&self) -> Option<Arc<Gate>> {
        let asleep = |call: &&Pending| call.is_seated && call.reply.is_none();
        let candidates = self.waiting.iter().filter(asleep);
        let next = candidates.max_by_key(|call| call.urgency)?;
        (!self.is_read && self.end.is_none()).then(|| next.seat.clone())
    }

    fn keep(&mut self, frame: Option<Frame>) {
        if self.spare_frames.len() < KEPT_FRAMES {
            self.spare_frames.extend(frame);
        }
    }

    /// Takes out a call, with a reply that nobody has fetched.
    fn take_out(&mut self, request_id: u32) -> Option<Pending> {
        let call = self.waiting.swap_remove(self.position(request_id)?);
        if let Some(Ok((_, frame))) = &call.reply {
            self.kept -= frame.capacity();
        }
        Some(call)
    }

    /// Ends the calls with the greatest replies, until the others take no more than `max_octets`.
    #[cold]
    #[allow(clippy::disallowed_methods, reason = "where too much memory is taken")]
    fn drop_greatest(&mut self, max_octets: usize) -> Vec<Frame> {
        let mut dropped = Vec::new();
        let capacity = |call: &Pending| match &call.reply {
            Some(Ok((_, frame))) => frame.capacity(),
            _ => 0,
        };
        while self.kept > max_octets
            && let Some(greatest) = self.waiting.iter_mut().max_by_key(|call| capacity(call))
            && let Some(Ok((_, frame))) = greatest.reply.replace(Err(TOO_MANY_OCTETS))
        {
            self.kept -= frame.capacity();
            dropped.push(frame);
        }
        dropped
    }
}

/// The id of the first request of a connection: none that a server could know before.
pub(super) fn first_request_id() -> u32 {
    RandomState::new().build_hasher().finish() as u32
}

/// A server that sends more replies that nobody has asked for is not one to go on with.
pub(in crate::client) const MAX_STRAYS: usize = 1000;
/// The failure of a connection whose server sends too many unasked replies, or no replies at all.
pub(in crate::client) const MALFORMED: Failure = Failure::Exception(SystemException::new(
    SystemExceptionKind::Marshal,
    minor::MALFORMED_MESSAGE,
    CompletionStatus::Maybe,
));
/// Too much was answered that nobody has fetched.
const TOO_MANY_OCTETS: Failure = Failure::Exception(SystemException::new(
    SystemExceptionKind::ImpLimit,
    minor::TOO_MANY_REPLY_OCTETS,
    CompletionStatus::Maybe,
));

/// What a message is of where that cannot be seen.
const NEWEST: Protocol = Protocol::Giop(Version::V1_2);
/// Frames that are kept for replies that are handed over.
const KEPT_FRAMES: usize = 8;

#[cfg(test)]
#[allow(clippy::disallowed_macros, reason = "tests may allocate")]
mod tests {
    use std::thread;

    use chronorb_giop::{finish_message, start_message};

    use super::*;
    use crate::client::connection::endless::awaiting_endless;

    fn waiting(request_id: u32, urgency: i16, is_seated: bool) -> Pending {
        Pending {
            request_id,
            protocol: Version::V1_2.into(),
            urgency: Priority::new(urgency),
            seat: Arc::default(),
            is_seated,
            reply: None,
        }
    }

    fn calls(waiting: Vec<Pending>) -> Calls {
        Calls {
            waiting,
            given_up: 0,
            strays: 0,
            kept: 0,
            is_read: false,
            end: None,
            last_use: Monotonic::now(),
            is_leaving: false,
            spare_frames: Vec::new(),
        }
    }

    /// Whose turn it is to read, by request.
    fn next(calls: &Calls) -> Option<u32> {
        let seat = calls.next_reader()?;
        let mut all = calls.waiting.iter();
        let call = all.find(|call| Arc::ptr_eq(&call.seat, &seat))?;
        Some(call.request_id)
    }

    #[test]
    fn the_most_urgent_thread_that_sleeps_reads_next() {
        let mut calls = calls(vec![
            waiting(1, 10, true),
            waiting(2, 30, true),
            // This one will look for itself before it sleeps.
            waiting(3, 40, false),
            waiting(4, 20, true),
        ]);
        assert_eq!(next(&calls), Some(2));
        let mut frame = scope::frame();
        finish_start(&mut frame);
        let header = MessageHeader::parse(frame.as_slice()).expect("a whole header");
        calls.waiting[1].reply = Some(Ok((header, frame)));
        assert_eq!(
            next(&calls),
            Some(4),
            "one that has its reply does not read"
        );
        calls.is_read = true;
        assert_eq!(next(&calls), None, "somebody reads already");
        calls.is_read = false;
        calls.end = Some(Failure::NotProcessed);
        assert_eq!(next(&calls), None, "there is nothing to read");
    }

    fn finish_start(frame: &mut Frame) {
        start_message(frame, Version::V1_2, MessageType::Reply).expect("there is room");
        finish_message(frame);
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
                assert!(shared.is_closed());
            });
        }
    }

    /// An end takes some 10 microseconds, of which the unlocked part is a tenth.
    const ROUNDS: usize = 2_000;
}
