//! A connection as one thread has it.

use std::cell::Cell;
use std::sync::{Arc, Weak};

use chronorb_cdr::{Frame, TextForm};
use chronorb_giop::{MessageHeader, MessageType, SystemException};
use chronorb_rt::{Deadline, Monotonic};

use super::channel::{Awaited, Channel};
use super::failure::Failure;
use super::member::Member;
use super::{Exclusive, Open};
use crate::core::Core;
use crate::protocol::Way;
use crate::rtcorba::Priority;

/// A connection to a server, as one thread has it.
pub(in crate::client) struct ClientConnection {
    channel: ChannelKind,
    /// The ORB that it was made for.
    core: Weak<Core>,
    /// The protocol and address of the server.
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

/// The strategies there are. They are known, so that the way of a request need not be looked up in
/// tables of functions, which after a system call the processor does not foresee.
#[allow(
    clippy::large_enum_variant,
    reason = "it has its place in a connection, of which there are few"
)]
pub(super) enum ChannelKind {
    Exclusive(Exclusive),
    Shared(Member),
}

macro_rules! with_each {
    ($this:expr, $channel:ident => $call:expr) => {
        match $this {
            ChannelKind::Exclusive($channel) => $call,
            ChannelKind::Shared($channel) => $call,
        }
    };
}

impl Channel for ChannelKind {
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

impl ClientConnection {
    pub(super) fn new(
        channel: ChannelKind,
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

    /// The protocol and address of the server.
    pub(in crate::client) fn way(&self) -> &Way {
        &self.way
    }

    /// The fault that the transport found in the server's octets, or that the server reported.
    #[cold]
    pub(in crate::client) fn problem(&self) -> Option<String> {
        self.channel.problem()
    }

    pub(in crate::client) fn text(&self) -> TextForm {
        self.text
    }

    /// Whether text travels on it like this, and the server has been or will be told so.
    pub(in crate::client) fn speaks(&self, text: TextForm, code_sets: Option<[u8; 12]>) -> bool {
        self.text == text && self.code_sets == code_sets
    }

    /// Whether requests still tell the server about the connection.
    pub(in crate::client) fn announces(&self) -> bool {
        self.announces.get()
    }

    /// Whether no request is sent by it before the one before has been answered.
    pub(in crate::client) fn has_one_call_at_a_time(&self) -> bool {
        self.channel.has_one_call_at_a_time()
    }

    /// Whether requests go by GIOPlite.
    #[inline]
    pub(in crate::client) fn speaks_lite(&self) -> bool {
        cfg!(feature = "gioplite") && self.channel.speaks_lite()
    }

    /// Whether requests that still tell the server about the connection ask for GIOPlite.
    pub(in crate::client) fn proposes_lite(&self) -> bool {
        cfg!(feature = "gioplite") && self.channel.proposes_lite()
    }

    /// Sees to it that the connection's own thread, where it has one, is no less urgent than a call of this
    /// priority.
    ///
    /// # Errors
    /// The priority has no native one.
    pub(in crate::client) fn work_for(
        &self,
        core: &Core,
        priority: Option<Priority>,
    ) -> Result<(), SystemException> {
        match &self.channel {
            ChannelKind::Exclusive(_) => Ok(()),
            ChannelKind::Shared(member) => member.work_for(core, priority),
        }
    }

    /// The code sets as requests announce them; none where the server has not told its own.
    pub(in crate::client) fn code_sets(&self) -> Option<[u8; 12]> {
        self.code_sets
    }

    /// The number of its ORB; `None` where that is gone.
    pub(in crate::client) fn orb(&self) -> Option<u64> {
        self.core.upgrade().map(|core| core.number)
    }

    /// Whether all messages arrive that are sent by it, in order.
    pub(in crate::client) fn is_stream(&self) -> bool {
        self.channel.is_stream()
    }

    /// Whether it is of no more use: the ORB was shut down, or the server has ended it or said
    /// goodbye while it was idle.
    pub(in crate::client) fn is_stale(&self) -> bool {
        let core = self.core.upgrade();
        core.is_none_or(|core| core.check_running().is_err()) || self.channel.is_stale()
    }

    pub(in crate::client) fn is_closed(&self) -> bool {
        self.channel.is_closed()
    }

    /// Whether a call with this deadline may use it. Where the thread has not used it for a while it is looked at: the
    /// server may have ended it meanwhile, and a request would be lost.
    ///
    /// Calls have the same time as a rule, so that their deadlines are as far apart as they are: the clock need not be
    /// read again. Where one has another time the look is in vain, and does no harm.
    #[inline(always)]
    pub(in crate::client) fn is_usable(&self, deadline: Deadline) -> bool {
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
    pub(in crate::client) fn begin_use(&self, deadline: Deadline) {
        self.last_deadline.set(deadline.instant().as_nanos());
        self.last_tick.set(Monotonic::of_last_tick().as_nanos());
    }

    /// Its thread begins a call of this priority.
    #[inline]
    pub(in crate::client) fn take_up(&self, urgency: Option<Priority>, now: u64) {
        self.urgency.set(urgency);
        self.last_use.set(now);
    }

    /// When its thread used it last.
    pub(in crate::client) fn last_use(&self) -> u64 {
        self.last_use.get()
    }

    /// Lets it stay although nobody uses it, where other threads could close it.
    pub(in crate::client) fn keep(&self) {
        self.channel.keep();
    }

    pub(in crate::client) fn next_request_id(&self) -> u32 {
        self.channel.next_request_id()
    }

    /// What all threads have of it that share it; `None` where it belongs to one.
    pub(in crate::client) fn open(&self) -> Option<&Arc<Open>> {
        match &self.channel {
            ChannelKind::Exclusive(_) => None,
            ChannelKind::Shared(member) => Some(&member.open),
        }
    }

    /// The server has seen what first requests tell it.
    pub(in crate::client) fn announce_no_more(&self) {
        self.announces.set(self.announces_always);
    }

    /// What sends requests from where their octets are; `None` where they are copied.
    pub(in crate::client) fn gathering(&self) -> Option<&Exclusive> {
        self.channel.gathering()
    }

    /// Sends a request to which no reply comes.
    pub(in crate::client) fn send(
        &self,
        message: &mut Frame,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        self.channel.send(message, None, deadline)
    }

    /// Sends the request `request_id`, whose reply is to be received next.
    pub(in crate::client) fn send_for_reply(
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
    pub(in crate::client) fn receive_reply(
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
    pub(in crate::client) fn receive_locate_reply(
        &self,
        request_id: u32,
        frame: &mut Frame,
        deadline: Deadline,
    ) -> Result<MessageHeader, Failure> {
        let expected = MessageType::LocateReply;
        self.channel.receive(request_id, expected, frame, deadline)
    }

    /// Ends the connection; bindings that use it connect anew.
    pub(in crate::client) fn close(&self) {
        self.channel.close();
    }
}

/// The time without a call, in nanoseconds, after which a connection is looked at before it is used: so long that the
/// system call for that counts for nothing.
const IDLE: u64 = 100_000_000;
