//! A client's connections: what all of them have in common, and the strategies by which threads
//! have one each or share them.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

mod active;
#[allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "it makes connections"
)]
mod directory;
#[cfg(test)]
#[allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "tests may allocate"
)]
pub(super) mod endless;
mod exclusive;
mod leader;
mod member;
mod multiplexed;
#[allow(clippy::disallowed_methods, reason = "once for each connection")]
mod own_thread;
mod queue;
mod reader;

use std::cell::Cell;
use std::sync::{Arc, Weak};

use chronorb_cdr::{Frame, TextForm};
use chronorb_giop::{
    CompletionStatus, MessageHeader, MessageType, SystemException, SystemExceptionKind, minor,
};
use chronorb_rt::{Deadline, Monotonic};
use chronorb_transport::{IoError, SendError};

pub(crate) use directory::ClientConnections;
#[cfg(feature = "ssliop")]
pub(super) use directory::NO_PROTECTION;
pub(super) use directory::{
    ConnectionKey, NoConnection, no_thread, open, start_aside, start_thread,
};
pub(super) use exclusive::Exclusive;
pub(super) use member::Open;
pub(super) use multiplexed::{Attendant, MALFORMED, MAX_STRAYS, Multiplexed, Rest};
pub(super) use own_thread::OwnThread;

use self::member::Member;
use crate::core::Core;
use crate::protocol::Way;
use crate::rtcorba::Priority;

/// A connection to a server, as one thread has it.
pub(super) struct ClientConnection {
    channel: Strategy,
    /// The ORB that it was made for.
    core: Weak<Core>,
    /// Where it leads.
    way: Way,
    text: TextForm,
    /// The code sets as requests announce them; none where the server has not told its own.
    code_sets: Option<[u8; 12]>,
    /// Whether requests still carry the code sets: until the first reply shows that the server has seen them.
    announces: Cell<bool>,
    /// The server may not have seen it, or have forgotten it, since its messages may be lost.
    announces_always: bool,
    /// The priority of the thread's present call.
    urgency: Cell<Option<Priority>>,
    /// When its thread used it last, in what that thread counts by.
    last_use: Cell<u64>,
    /// The deadline of the call that used it last, in nanoseconds: it shows how long ago that was.
    last_deadline: Cell<u64>,
    /// When it was looked at last, by the clock of ticks.
    last_tick: Cell<u64>,
    /// Whether that is a time, and idle connections are closed: a call counts until its end.
    tells_time: bool,
}

/// A request whose reply is awaited.
#[derive(Clone, Copy)]
pub(super) struct Awaited {
    pub(super) request_id: u32,
    pub(super) urgency: Option<Priority>,
}

/// How a thread exchanges messages with a server: the strategy of a connection.
///
/// A thread has one request under way on a channel at a time. Every wait ends with its deadline.
pub(super) trait Channel {
    /// The id of the thread's next request, which no other request that is under way has.
    fn next_request_id(&self) -> u32;

    /// Sends a whole message, or sees to it that it is sent while its reply is awaited; the frame may
    /// be another one then. A reply to the request `awaited` is kept for
    /// [`receive`](Self::receive), which has to be called then.
    ///
    /// A request that was not sent whole was not processed, since a server acts on whole
    /// messages only.
    fn send(
        &self,
        message: &mut Frame,
        awaited: Option<Awaited>,
        deadline: Deadline,
    ) -> Result<(), Failure>;

    /// Receives the reply to a request into `frame`: a message of the kind `expected`. It may be
    /// the reply to another request, which is to be passed over.
    ///
    /// After a failure no reply to the request will ever be taken for that to another one.
    fn receive(
        &self,
        request_id: u32,
        expected: MessageType,
        frame: &mut Frame,
        deadline: Deadline,
    ) -> Result<MessageHeader, Failure>;

    /// Itself, where it sends messages from where their octets are: where no other thread could
    /// wait for that.
    fn gathering(&self) -> Option<&Exclusive>;

    /// Whether one call at a time is under way on it.
    fn has_one_call_at_a_time(&self) -> bool;

    /// Whether all messages arrive that are sent by it, in order.
    fn is_stream(&self) -> bool;

    /// Whether the server takes messages of GIOPlite.
    fn speaks_lite(&self) -> bool;

    /// Whether it is to be asked whether it does.
    fn proposes_lite(&self) -> bool;

    /// Whether the server has ended it, or said goodbye while it was idle, as far as can be seen
    /// without waiting.
    fn is_stale(&self) -> bool;

    /// Whether nothing can be sent by it any more.
    fn is_closed(&self) -> bool;

    /// What was wrong with what the server sent, or what it said was wrong, where the transport knows.
    fn problem(&self) -> Option<String>;

    /// Lets it stay although nobody uses it, where other threads could close it.
    fn keep(&self);

    /// Ends it, for all threads that have it.
    fn close(&self);
}

/// The strategies there are. They are known, so that the way of a request need not be looked up in
/// tables of functions, which after a system call the processor does not foresee.
#[allow(
    clippy::large_enum_variant,
    reason = "it has its place in a connection, of which there are few"
)]
enum Strategy {
    Exclusive(Exclusive),
    Shared(Member),
}

macro_rules! with_each {
    ($this:expr, $channel:ident => $call:expr) => {
        match $this {
            Strategy::Exclusive($channel) => $call,
            Strategy::Shared($channel) => $call,
        }
    };
}

impl Channel for Strategy {
    #[inline]
    fn next_request_id(&self) -> u32 {
        with_each!(self, channel => channel.next_request_id())
    }

    #[inline]
    fn send(
        &self,
        message: &mut Frame,
        awaited: Option<Awaited>,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        with_each!(self, channel => channel.send(message, awaited, deadline))
    }

    #[inline]
    fn receive(
        &self,
        request_id: u32,
        expected: MessageType,
        frame: &mut Frame,
        deadline: Deadline,
    ) -> Result<MessageHeader, Failure> {
        with_each!(self, channel => channel.receive(request_id, expected, frame, deadline))
    }

    #[inline]
    fn gathering(&self) -> Option<&Exclusive> {
        with_each!(self, channel => channel.gathering())
    }

    #[inline]
    fn has_one_call_at_a_time(&self) -> bool {
        with_each!(self, channel => channel.has_one_call_at_a_time())
    }

    #[inline]
    fn speaks_lite(&self) -> bool {
        with_each!(self, channel => channel.speaks_lite())
    }

    fn proposes_lite(&self) -> bool {
        with_each!(self, channel => channel.proposes_lite())
    }

    fn is_stream(&self) -> bool {
        with_each!(self, channel => channel.is_stream())
    }

    fn is_stale(&self) -> bool {
        with_each!(self, channel => channel.is_stale())
    }

    #[inline]
    fn is_closed(&self) -> bool {
        with_each!(self, channel => channel.is_closed())
    }

    fn problem(&self) -> Option<String> {
        with_each!(self, channel => channel.problem())
    }

    fn keep(&self) {
        with_each!(self, channel => channel.keep());
    }

    fn close(&self) {
        with_each!(self, channel => channel.close());
    }
}

/// A call did not come to a reply.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Failure {
    /// The server closed the connection in order, and has not touched the request: it can be
    /// sent again.
    NotProcessed,
    Exception(SystemException),
}

impl From<SystemException> for Failure {
    fn from(exception: SystemException) -> Self {
        Self::Exception(exception)
    }
}

impl ClientConnection {
    fn new(
        channel: Strategy,
        core: &Arc<Core>,
        way: &Way,
        text: TextForm,
        code_sets: Option<[u8; 12]>,
    ) -> Self {
        Self {
            announces_always: !channel.is_stream(),
            channel,
            core: Arc::downgrade(core),
            way: way.clone(),
            text,
            code_sets,
            announces: Cell::new(true),
            urgency: Cell::new(None),
            last_use: Cell::new(0),
            last_deadline: Cell::new(0),
            last_tick: Cell::new(0),
            tells_time: core.config.client_idle_timeout.is_some(),
        }
    }

    /// Where it leads.
    pub(super) fn way(&self) -> &Way {
        &self.way
    }

    /// What was wrong with what the server sent, or what it said was wrong, where the transport knows.
    #[cold]
    pub(super) fn problem(&self) -> Option<String> {
        self.channel.problem()
    }

    pub(super) fn text(&self) -> TextForm {
        self.text
    }

    /// Whether text travels on it like this, and the server has been or will be told so.
    pub(super) fn speaks(&self, text: TextForm, code_sets: Option<[u8; 12]>) -> bool {
        self.text == text && self.code_sets == code_sets
    }

    /// Whether requests still tell the server about the connection.
    pub(super) fn announces(&self) -> bool {
        self.announces.get()
    }

    /// Whether no request is sent by it before the one before has been answered.
    pub(super) fn has_one_call_at_a_time(&self) -> bool {
        self.channel.has_one_call_at_a_time()
    }

    /// Whether requests go by GIOPlite.
    #[inline]
    pub(super) fn speaks_lite(&self) -> bool {
        cfg!(feature = "gioplite") && self.channel.speaks_lite()
    }

    /// Whether requests that still tell the server about the connection ask for GIOPlite.
    pub(super) fn proposes_lite(&self) -> bool {
        cfg!(feature = "gioplite") && self.channel.proposes_lite()
    }

    /// Sees to it that the connection's own thread, where it has one, is no less urgent than a call of this
    /// priority.
    ///
    /// # Errors
    /// The priority has no native one.
    pub(super) fn work_for(
        &self,
        core: &Core,
        priority: Option<Priority>,
    ) -> Result<(), SystemException> {
        match &self.channel {
            Strategy::Exclusive(_) => Ok(()),
            Strategy::Shared(member) => member.work_for(core, priority),
        }
    }

    /// The code sets as requests announce them; none where the server has not told its own.
    pub(super) fn code_sets(&self) -> Option<[u8; 12]> {
        self.code_sets
    }

    /// The number of its ORB; `None` where that is gone.
    pub(super) fn orb(&self) -> Option<u64> {
        self.core.upgrade().map(|core| core.number)
    }

    /// Whether all messages arrive that are sent by it, in order.
    pub(super) fn is_stream(&self) -> bool {
        self.channel.is_stream()
    }

    /// Whether it is of no more use: the ORB was shut down, or the server has ended it or said
    /// goodbye while it was idle.
    pub(super) fn is_stale(&self) -> bool {
        let core = self.core.upgrade();
        core.is_none_or(|core| core.check_running().is_err()) || self.channel.is_stale()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.channel.is_closed()
    }

    /// Whether a call with this deadline may use it. Where the thread has not used it for a while it is looked at: the
    /// server may have ended it meanwhile, and a request would be lost.
    ///
    /// Calls have the same time as a rule, so that their deadlines are as far apart as they are: the clock need not be
    /// read again. Where one has another time the look is in vain, and does no harm.
    #[inline(always)]
    pub(super) fn is_usable(&self, deadline: Deadline) -> bool {
        let now = deadline.instant().as_nanos();
        if now.wrapping_sub(self.last_deadline.get()) > IDLE || now == u64::MAX {
            self.look(deadline);
        }
        self.last_deadline.set(now);
        !self.is_closed()
    }

    /// Closes it if the server has ended it.
    #[cold]
    fn look(&self, deadline: Deadline) {
        let tick = Monotonic::of_last_tick().as_nanos();
        let before = self.last_tick.replace(tick);
        // A call that has all the time there is shows nothing by its deadline.
        let is_busy = deadline.instant().as_nanos() == u64::MAX && tick - before <= IDLE;
        if !is_busy && self.channel.is_stale() {
            self.close();
        }
    }

    /// A call with this deadline begins to use it, which has just been made or found.
    pub(super) fn begin_use(&self, deadline: Deadline) {
        self.last_deadline.set(deadline.instant().as_nanos());
        self.last_tick.set(Monotonic::of_last_tick().as_nanos());
    }

    /// Its thread begins a call of this priority.
    #[inline]
    pub(super) fn take_up(&self, urgency: Option<Priority>, now: u64) {
        self.urgency.set(urgency);
        self.last_use.set(now);
    }

    /// When its thread used it last.
    pub(super) fn last_use(&self) -> u64 {
        self.last_use.get()
    }

    /// Lets it stay although nobody uses it, where other threads could close it.
    pub(super) fn keep(&self) {
        self.channel.keep();
    }

    pub(super) fn next_request_id(&self) -> u32 {
        self.channel.next_request_id()
    }

    /// What all threads have of it that share it; `None` where it belongs to one.
    pub(super) fn open(&self) -> Option<&Arc<Open>> {
        match &self.channel {
            Strategy::Exclusive(_) => None,
            Strategy::Shared(member) => Some(&member.open),
        }
    }

    /// The server has seen what first requests tell it.
    pub(super) fn announce_no_more(&self) {
        self.announces.set(self.announces_always);
    }

    /// What sends requests from where their octets are; `None` where they are copied.
    pub(super) fn gathering(&self) -> Option<&Exclusive> {
        self.channel.gathering()
    }

    /// Sends a request to which no reply comes.
    pub(super) fn send(&self, message: &mut Frame, deadline: Deadline) -> Result<(), Failure> {
        self.channel.send(message, None, deadline)
    }

    /// Sends the request `request_id`, whose reply is to be received next.
    pub(super) fn send_for_reply(
        &self,
        request_id: u32,
        message: &mut Frame,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        let awaited = Awaited {
            request_id,
            urgency: self.urgency.get(),
        };
        self.channel.send(message, Some(awaited), deadline)
    }

    /// Receives the reply to a request into `frame`, or one that is to be passed over.
    pub(super) fn receive_reply(
        &self,
        request_id: u32,
        frame: &mut Frame,
        deadline: Deadline,
    ) -> Result<MessageHeader, Failure> {
        let expected = MessageType::Reply;
        let received = self.channel.receive(request_id, expected, frame, deadline);
        if received.is_ok() {
            self.announce_no_more();
        }
        if self.tells_time {
            self.last_use.set(Monotonic::now().as_nanos());
        }
        received
    }

    /// Receives the locate reply to a locate request into `frame`; in the same way.
    pub(super) fn receive_locate_reply(
        &self,
        request_id: u32,
        frame: &mut Frame,
        deadline: Deadline,
    ) -> Result<MessageHeader, Failure> {
        let expected = MessageType::LocateReply;
        self.channel.receive(request_id, expected, frame, deadline)
    }

    /// Ends the connection; bindings that use it connect anew.
    pub(super) fn close(&self) {
        self.channel.close();
    }
}

/// The time without a call, in nanoseconds, after which a connection is looked at before it is used: so long that the
/// system call for that counts for nothing.
const IDLE: u64 = 100_000_000;

pub(super) fn timeout(completed: CompletionStatus) -> SystemException {
    let minor = match completed {
        CompletionStatus::No => minor::TIMEOUT_REQUEST_END,
        _ => minor::TIMEOUT_REPLY_END,
    };
    SystemException::new(SystemExceptionKind::Timeout, minor, completed)
}

pub(super) fn comm_failure(completed: CompletionStatus) -> SystemException {
    SystemException::new(
        SystemExceptionKind::CommFailure,
        minor::CONNECTION_LOST,
        completed,
    )
}

/// Whether a message that was not sent has done no harm to its connection: there was no time left for it, or it
/// is longer than what the transport carries.
fn is_harmless(error: SendError) -> bool {
    error.sent == 0 && matches!(error.cause, IoError::TimedOut | IoError::TooLarge)
}

/// What a client is told of a message that could not be sent whole, and so was not processed.
fn not_sent(error: SendError) -> Failure {
    match error.cause {
        IoError::TimedOut => timeout(CompletionStatus::No).into(),
        IoError::TooLarge => {
            SystemException::no(SystemExceptionKind::ImpLimit, minor::MESSAGE_TOO_LARGE).into()
        }
        // The connection had ended while it was idle; the request may go by a new one.
        IoError::Closed => Failure::NotProcessed,
        _ if error.sent == 0 => Failure::NotProcessed,
        _ => comm_failure(CompletionStatus::No).into(),
    }
}
