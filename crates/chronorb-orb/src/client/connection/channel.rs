//! A connection as one thread uses it: alone, or together with other threads.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

#[cfg(feature = "distributable-threads")]
use std::cell::OnceCell;
use std::cell::{Cell, RefCell};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::Duration;

use chronorb_cdr::{Encoder, Frame, TextForm};
use chronorb_giop::{CompletionStatus, MessageHeader, MessageType, SystemException};
use chronorb_rt::{Deadline, Gate, Monotonic};
use chronorb_transport::{Connection, SendError};

use super::batch::{BatchSender, KeptOneways};
use super::key::{ChannelKind, ConnectionKey};
use super::link::{Failure, Link, ReplyReader, comm_failure, timeout};
use super::shared::{SharedConnection, first_request_id};
use super::shared_wait::SharedWait;
use super::threads::ConnectionThread;
use crate::client_state::ConnectionPermit;
use crate::config::OrbConfig;
use crate::core::Core;
use crate::gather::{self, GatherError, Write};
use crate::protocol::Way;
use crate::rtcorba::{OnewayBuffering, Priority};
#[cfg(feature = "distributable-threads")]
use crate::rtscheduling::Interrupt;

/// A connection to a server, as one thread has it. The thread has one request at a time under way
/// on it, and every wait ends with its deadline.
pub(in crate::client) struct ClientConnection {
    channel: Channel,
    /// The ORB that it was made for.
    core: Weak<Core>,
    /// The protocol and address of the server.
    pub(in crate::client) way: Way,
    pub(in crate::client) text: TextForm,
    /// The code sets as requests announce them; `None` if the server named none of its own.
    pub(in crate::client) code_sets: Option<[u8; 12]>,
    /// Whether requests still carry announcements: until the first reply shows that the server has
    /// read them.
    announces: Cell<bool>,
    /// Whether all requests carry them, because messages may be lost.
    announces_always: bool,
    /// The priority of the thread's present call.
    urgency: Cell<Option<Priority>>,
    /// The number of the thread's call that used it last, or the time if idle connections are
    /// closed.
    last_use: Cell<u64>,
    /// The deadline of the call that used it last, in nanoseconds.
    last_deadline: Cell<u64>,
    /// The time of the last check for its end, by the coarse clock.
    last_tick: Cell<u64>,
    /// Whether idle connections are closed: then a call counts as use until its end.
    tells_time: bool,
    /// Oneways of the thread that are not sent yet, if its reference keeps any.
    kept: Option<Arc<KeptOneways>>,
    /// The waits of the thread on a shared connection, which others may end; `None` where that
    /// cannot be.
    #[cfg(feature = "distributable-threads")]
    wait: OnceCell<Option<Arc<SharedWait>>>,
}

/// The part that differs by kind: an enum, whose calls the processor predicts better than those by
/// a table of functions.
#[allow(
    clippy::large_enum_variant,
    reason = "it is part of a connection, and there are few of those"
)]
pub(super) enum Channel {
    Exclusive(ExclusiveConnection),
    /// The connection, and the gate at which the thread sleeps while it waits.
    Shared(Arc<SharedOwner>, Arc<Gate>),
}

impl Channel {
    #[allow(
        clippy::disallowed_methods,
        reason = "once for each connection of a thread"
    )]
    pub(super) fn shared(owner: Arc<SharedOwner>) -> Self {
        Self::Shared(owner, Arc::new(Gate::new(0)))
    }
}

/// The owner of a shared connection, which closes it when the last handle is dropped.
pub(in crate::client) struct SharedOwner {
    pub(in crate::client) shared: Arc<SharedConnection>,
    /// The connection's own thread, if it has one.
    pub(super) thread: Option<ConnectionThread>,
    /// The form of its text, and the code sets that the server is told.
    pub(super) text: (TextForm, Option<[u8; 12]>),
    pub(in crate::client) key: ConnectionKey,
    /// Whether the answer to an asynchronous call has shown that the server read the announcements.
    pub(in crate::client) is_known: AtomicBool,
    /// The client's listen points as first requests announce them, where it can be called back.
    #[cfg(feature = "bidir")]
    pub(super) announcement: Option<Box<[u8]>>,
}

impl SharedOwner {
    fn receive(
        &self,
        request_id: u32,
        expected: MessageType,
        frame: &mut Frame,
        until: (Deadline, Option<&SharedWait>),
    ) -> Result<MessageHeader, Failure> {
        let shared = &self.shared;
        let received = shared.receive_until_interrupted(request_id, frame, until);
        let header = received.unwrap_or_else(|| {
            let is_late = until.0.has_passed();
            Err(shared.abandon(request_id, frame, is_late))
        })?;
        if header.kind != expected {
            shared.close();
            return Err(comm_failure(CompletionStatus::Maybe).into());
        }
        Ok(header)
    }
}

impl Drop for SharedOwner {
    fn drop(&mut self) {
        self.shared.close();
    }
}

/// The link of a connection of one thread, which another thread may end to interrupt a wait.
#[cfg(feature = "distributable-threads")]
type OwnLink = Arc<Link>;
#[cfg(not(feature = "distributable-threads"))]
type OwnLink = Link;

/// A connection of one thread alone: no lock, no sharing.
pub(in crate::client) struct ExclusiveConnection {
    link: OwnLink,
    next_request: Cell<u32>,
    reader: RefCell<ReplyReader>,
}

impl ExclusiveConnection {
    #[allow(clippy::disallowed_methods, reason = "once for each connection")]
    pub(super) fn new(
        transport: Box<dyn Connection>,
        permit: ConnectionPermit,
        config: &OrbConfig,
    ) -> Self {
        let (waiting, kind) = (config.client_wait, ChannelKind::Exclusive);
        let link = Link::new(transport, permit, config, waiting, kind);
        Self {
            #[cfg(feature = "distributable-threads")]
            link: Arc::new(link),
            #[cfg(not(feature = "distributable-threads"))]
            link,
            next_request: Cell::new(first_request_id()),
            reader: RefCell::new(ReplyReader::new(
                config,
                MAX_FRAGMENTED,
                config.max_message_size,
            )),
        }
    }

    /// Sends a request of `total` octets whose large slices were left out of `encoder`'s frame; its
    /// body begins at `start`.
    pub(in crate::client) fn send_gathered(
        &self,
        encoder: &mut Encoder<'_>,
        start: usize,
        total: usize,
        body: Write<'_>,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        let link = &self.link;
        // If the body panics, a part of a message may have been sent.
        link.mark_closed(true);
        let mut outgoing = None;
        let mut send = |first: &[u8], second: &[u8]| {
            let outgoing = outgoing.get_or_insert_with(|| link.writer().begin(first));
            link.send_divided(outgoing, [first, second], deadline)
        };
        let (before, result) = gather::send(encoder, start, total, body, &mut send);
        link.mark_closed(false);
        result.map_err(|unsent| match unsent {
            GatherError::Failed(error) => link.unsent(SendError {
                sent: before + error.sent,
                ..error
            }),
            GatherError::Unwritten(exception) => {
                if before > 0 {
                    link.close();
                }
                exception.into()
            }
        })
    }

    /// Receives the next reply. Any failure closes the connection, so a late reply is never taken
    /// for that of another call.
    #[inline]
    fn receive(
        &self,
        expected: MessageType,
        frame: &mut Frame,
        (deadline, whole): (Deadline, u64),
    ) -> Result<MessageHeader, Failure> {
        let link = &self.link;
        let mut reader = self.reader.borrow_mut();
        let failure = match reader
            .receive_usual(link, frame, |room| link.recv_reply(room, deadline, whole))
        {
            Ok(Some(header)) if header.kind == expected => return Ok(header),
            Ok(Some(header)) => {
                link.protest(header.kind);
                reader.unexpected(header.kind)
            }
            Ok(None) => timeout(CompletionStatus::Maybe).into(),
            Err(failure) => failure,
        };
        // One that is marked already was closed, or its thread closes it after a cancellation.
        if !link.is_closed() {
            link.close();
        }
        Err(failure)
    }
}

impl ClientConnection {
    pub(super) fn new(
        channel: Channel,
        core: &Arc<Core>,
        way: &Way,
        text: TextForm,
        code_sets: Option<[u8; 12]>,
    ) -> Self {
        let mut this = Self {
            announces_always: false,
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
            kept: None,
            #[cfg(feature = "distributable-threads")]
            wait: OnceCell::new(),
        };
        this.announces_always = !this.link().is_stream();
        this
    }

    /// Keeps oneways, which the flusher sends in time.
    ///
    /// # Errors
    /// The flusher's thread cannot be started.
    #[cold]
    #[allow(clippy::disallowed_methods, reason = "once for each connection")]
    pub(super) fn keep_oneways(
        &mut self,
        core: &Core,
        key: &ConnectionKey,
        sender: BatchSender,
    ) -> Result<(), SystemException> {
        let flusher = core.client.flusher();
        let kept = KeptOneways::new(sender, flusher, self.core.clone(), &self.way);
        let kept = self.kept.insert(Arc::new(kept));
        flusher.add(core, key, kept)
    }

    #[inline]
    pub(in crate::client) fn link(&self) -> &Link {
        match &self.channel {
            Channel::Exclusive(own) => &own.link,
            Channel::Shared(owner, _) => &owner.shared.link,
        }
    }

    /// The part that several threads can use; `None` for an exclusive connection.
    pub(in crate::client) fn shared(&self) -> Option<&Arc<SharedOwner>> {
        match &self.channel {
            Channel::Exclusive(_) => None,
            Channel::Shared(owner, _) => Some(owner),
        }
    }

    /// The exclusive connection if it sends requests from where their octets are; `None` if they
    /// are copied. On a shared one others would wait for a message that is written while it is
    /// sent.
    #[inline]
    pub(in crate::client) fn gathering(&self) -> Option<&ExclusiveConnection> {
        match &self.channel {
            Channel::Exclusive(own) => own.link.can_gather().then_some(own),
            Channel::Shared(..) => None,
        }
    }

    /// Whether requests still tell the server about the connection.
    pub(in crate::client) fn announces(&self) -> bool {
        self.announces.get()
    }

    /// The client's listen points as requests announce them, if the server may call back.
    pub(in crate::client) fn listen_points(&self) -> Option<&[u8]> {
        #[cfg(feature = "bidir")]
        return self.shared()?.announcement.as_deref();
        #[cfg(not(feature = "bidir"))]
        None
    }

    /// Notes that the server has read the announcements of a first request.
    pub(in crate::client) fn announce_no_more(&self) {
        self.announces.set(self.announces_always);
    }

    /// Whether each request is sent after the reply to the one before.
    pub(in crate::client) fn has_one_call_at_a_time(&self) -> bool {
        matches!(self.channel, Channel::Exclusive(_))
    }

    /// Raises the connection's own thread, if it has one, to the priority of a call.
    ///
    /// # Errors
    /// The priority has no native one.
    pub(in crate::client) fn work_for(
        &self,
        core: &Core,
        priority: Option<Priority>,
    ) -> Result<(), SystemException> {
        let thread = self.shared().and_then(|owner| owner.thread.as_ref());
        thread.map_or(Ok(()), |thread| thread.work_for(core, priority))
    }

    /// The number of its ORB; `None` if that is gone.
    pub(in crate::client) fn orb(&self) -> Option<u64> {
        self.core.upgrade().map(|core| core.number)
    }

    #[inline]
    pub(in crate::client) fn is_closed(&self) -> bool {
        self.link().is_closed()
    }

    /// Whether it is of no more use: the ORB was shut down, or the server ended it or said goodbye
    /// while it was idle, as far as that shows without waiting.
    pub(in crate::client) fn is_stale(&self) -> bool {
        let core = self.core.upgrade();
        core.is_none_or(|core| core.check_running().is_err()) || self.has_ended()
    }

    fn has_ended(&self) -> bool {
        match &self.channel {
            Channel::Exclusive(own) => own.link.is_closed() || own.link.transport().is_stale(),
            Channel::Shared(owner, _) => owner.shared.is_stale(),
        }
    }

    /// Whether a call with this deadline may use it. After a pause of the thread it is checked,
    /// because the server may have ended it meanwhile, and a request would be lost.
    ///
    /// Calls usually have the same time limit, so their deadlines are as far apart as the calls
    /// themselves, and the clock need not be read again. Another limit causes a check in vain,
    /// which does no harm.
    #[inline(always)]
    pub(in crate::client) fn is_usable(&self, deadline: Deadline) -> bool {
        let now = deadline.instant().as_nanos();
        if now.wrapping_sub(self.last_deadline.get()) > IDLE || now == u64::MAX {
            self.check(deadline);
        }
        self.last_deadline.set(now);
        !self.is_closed()
    }

    /// Closes it if the server has ended it.
    #[cold]
    fn check(&self, deadline: Deadline) {
        let tick = Monotonic::of_last_tick().as_nanos();
        let before = self.last_tick.replace(tick);
        // The deadline of a call without a time limit says nothing about the time of the call.
        let is_busy = deadline.instant().as_nanos() == u64::MAX && tick - before <= IDLE;
        // Calls may be under way on one that was retired.
        if !is_busy && !self.is_closed() && self.has_ended() {
            self.close();
        }
    }

    /// Notes the first call after it was made or found, which has this deadline.
    pub(in crate::client) fn begin_use(&self, deadline: Deadline) {
        self.last_deadline.set(deadline.instant().as_nanos());
        self.last_tick.set(Monotonic::of_last_tick().as_nanos());
    }

    /// Notes that its thread begins a call of this priority.
    #[inline]
    pub(in crate::client) fn take_up(&self, urgency: Option<Priority>, now: u64) {
        self.urgency.set(urgency);
        self.last_use.set(now);
    }

    /// The number, or the time, of its last use by the thread.
    pub(in crate::client) fn last_use(&self) -> u64 {
        self.last_use.get()
    }

    /// Keeps it open while it is idle.
    pub(in crate::client) fn keep(&self) {
        if let Channel::Shared(owner, _) = &self.channel {
            owner.shared.keep();
        }
    }

    /// The id of the thread's next request; no other request that is under way has it.
    #[inline]
    pub(in crate::client) fn next_request_id(&self) -> u32 {
        match &self.channel {
            Channel::Exclusive(own) => {
                let id = own.next_request.get();
                own.next_request.set(id.wrapping_add(1));
                id
            }
            Channel::Shared(owner, _) => owner.shared.next_request_id(),
        }
    }

    /// Sends a request to which no reply comes.
    pub(in crate::client) fn send(
        &self,
        message: &mut Frame,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        match &self.channel {
            Channel::Exclusive(own) => own.link.send(message.as_slice(), deadline),
            Channel::Shared(owner, waiter) => owner.shared.send_oneway(message, waiter, deadline),
        }
    }

    /// Keeps a request to which no reply comes, within these limits, or sends it with those that
    /// were kept.
    #[cold]
    #[inline(never)]
    pub(in crate::client) fn send_batched(
        &self,
        message: &mut Frame,
        limits: OnewayBuffering,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        let Some(kept) = &self.kept else {
            return self.send(message, deadline);
        };
        if !kept.has_room(message.as_slice(), limits) {
            self.flush(deadline)?;
            if !kept.has_room(message.as_slice(), limits) {
                return self.send(message, deadline);
            }
        }
        let pushed = kept.push(message.as_slice(), self.link().writer(), limits);
        if !pushed.map_err(SystemException::from)? {
            return Ok(());
        }
        self.flush(deadline).map_err(|failure| match failure {
            // The request is lost with the others, so it is not sent again.
            Failure::NotProcessed => comm_failure(CompletionStatus::Maybe).into(),
            failure => failure,
        })
    }

    /// Sends the requests that were kept. They are lost if the connection has ended.
    pub(in crate::client) fn flush(&self, deadline: Deadline) -> Result<(), Failure> {
        match &self.kept {
            Some(kept) => self.flush_kept(kept, deadline),
            None => Ok(()),
        }
    }

    #[cold]
    #[inline(never)]
    fn flush_kept(&self, kept: &KeptOneways, deadline: Deadline) -> Result<(), Failure> {
        let send = |octets: &[u8]| match &self.channel {
            // The parent of a forked process sends its own copy.
            _ if self.is_closed() || self.link().is_inherited() => {
                Err(comm_failure(CompletionStatus::Maybe).into())
            }
            Channel::Exclusive(own) => own.link.send_octets(octets, deadline),
            Channel::Shared(owner, _) => owner.shared.send_octets(octets, deadline),
        };
        kept.flush(send, || self.is_closed())
    }

    /// Sends the request `request_id`, whose reply must be received next. A shared connection may
    /// send it while the reply is awaited, and exchange the frame for another one.
    #[inline]
    pub(in crate::client) fn send_for_reply(
        &self,
        request_id: u32,
        message: &mut Frame,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        match &self.channel {
            Channel::Exclusive(own) => own.link.send(message.as_slice(), deadline),
            Channel::Shared(owner, waiter) => {
                let shared = &owner.shared;
                shared.expect(request_id, self.urgency.get(), message, waiter)?;
                shared.send(request_id, message, deadline)
            }
        }
    }

    /// Receives a message of the kind `expected` into `frame`: the reply to a request, or to
    /// another one, which must be skipped. After a failure no reply to the request is ever taken
    /// for that to another one.
    ///
    /// The deadline was `whole` nanoseconds ahead when the call began; 0 if the call has waited for
    /// anything but its request.
    #[inline]
    pub(in crate::client) fn receive(
        &self,
        request_id: u32,
        expected: MessageType,
        frame: &mut Frame,
        (deadline, whole): (Deadline, u64),
    ) -> Result<MessageHeader, Failure> {
        let received = match &self.channel {
            Channel::Exclusive(own) => own.receive(expected, frame, (deadline, whole)),
            Channel::Shared(owner, _) => {
                let until = (deadline, self.present_wait());
                owner.receive(request_id, expected, frame, until)
            }
        };
        if expected == MessageType::Reply {
            if received.is_ok() {
                self.announce_no_more();
            }
            if self.tells_time {
                self.last_use.set(Monotonic::now().as_nanos());
            }
        }
        received
    }

    /// The interruption of the thread's next wait for a reply: its address, and a function that
    /// returns it. `None` if no file descriptor was left for it.
    #[cfg(feature = "distributable-threads")]
    pub(in crate::client) fn interruption(
        &self,
    ) -> Option<(usize, impl FnOnce() -> Weak<dyn Interrupt>)> {
        let interrupt: InterruptOf<'_> = match &self.channel {
            Channel::Exclusive(own) => InterruptOf::Link(&own.link),
            Channel::Shared(_, waiter) => {
                let wait = self.wait.get_or_init(|| SharedWait::of(waiter));
                let wait = wait.as_ref()?;
                wait.begin();
                InterruptOf::Wait(wait)
            }
        };
        let address = match interrupt {
            InterruptOf::Link(link) => Arc::as_ptr(link).addr(),
            InterruptOf::Wait(wait) => Arc::as_ptr(wait).addr(),
        };
        let weak = move || match interrupt {
            InterruptOf::Link(link) => Arc::downgrade(link) as Weak<dyn Interrupt>,
            InterruptOf::Wait(wait) => Arc::downgrade(wait) as Weak<dyn Interrupt>,
        };
        Some((address, weak))
    }

    /// The wait of the thread on a shared connection, if others may end it.
    fn present_wait(&self) -> Option<&SharedWait> {
        #[cfg(feature = "distributable-threads")]
        if crate::rtscheduling::is_in_segment() {
            return self.wait.get()?.as_deref();
        }
        None
    }

    /// Closes the connection for all threads that have it; bindings that use it connect anew.
    pub(in crate::client) fn close(&self) {
        match &self.channel {
            Channel::Exclusive(own) => own.link.close(),
            Channel::Shared(owner, _) => owner.shared.close(),
        }
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        if self.flush(Deadline::after(LAST_FLUSH)).is_err()
            && let Some(kept) = &self.kept
        {
            kept.lose_all();
        }
    }
}

/// The interruption of a wait for a reply.
#[cfg(feature = "distributable-threads")]
#[derive(Clone, Copy)]
enum InterruptOf<'c> {
    /// The end of the connection, which no other thread uses.
    Link(&'c Arc<Link>),
    Wait(&'c Arc<SharedWait>),
}

/// The longest time that the end of a connection takes to send what was kept.
const LAST_FLUSH: Duration = Duration::from_secs(1);
/// Replies of an exclusive connection of which fragments are kept.
const MAX_FRAGMENTED: usize = 16;
/// The pause, in nanoseconds, after which a connection is checked before it is used: so long that
/// the system call for that does not count.
const IDLE: u64 = 100_000_000;
