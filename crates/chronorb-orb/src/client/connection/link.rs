//! The transport of a connection to a server: whole messages out, whole messages in, and the
//! failures of both.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::io::IoSlice;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use chronorb_cdr::{CdrError, Frame};
use chronorb_giop::connection::{
    Bounds, Message, MessageReader, MessageWriter, Negotiation, OutgoingMessage, Progress,
    ReadError,
};
use chronorb_giop::{
    CompletionStatus, MessageHeader, MessageType, SystemException, SystemExceptionKind, minor,
    reply_id,
};
use chronorb_rt::{Deadline, poll_for};
use chronorb_transport::{
    Carriage, Connection, IoError, SendError, WaitPolicy, has_hung_up, unsent,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
#[cfg(feature = "distributable-threads")]
use rustix::net::{Shutdown, shutdown};

use super::key::ChannelKind;
use crate::client_state::ConnectionPermit;
use crate::config::OrbConfig;
use crate::fork;
#[cfg(feature = "distributable-threads")]
use crate::quota::Origin;
use crate::riders::speaks_lite_on;
use crate::room::KEPT_CAPACITY;
use crate::scope;

/// The reason why an attempt has no reply.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::client) enum Failure {
    /// The server did not begin the request, so the request can be sent again. The server closed
    /// the connection in order, or the connection was closed before the request was sent.
    NotProcessed,
    Exception(SystemException),
}

impl From<SystemException> for Failure {
    fn from(exception: SystemException) -> Self {
        Self::Exception(exception)
    }
}

/// The exception for a call whose time is over.
pub(in crate::client) fn timeout(completed: CompletionStatus) -> SystemException {
    let minor = match completed {
        CompletionStatus::No => minor::TIMEOUT_REQUEST_END,
        _ => minor::TIMEOUT_REPLY_END,
    };
    SystemException::new(SystemExceptionKind::Timeout, minor, completed)
}

/// The exception for a connection that ended during a call.
pub(in crate::client) fn comm_failure(completed: CompletionStatus) -> SystemException {
    SystemException::new(
        SystemExceptionKind::CommFailure,
        minor::CONNECTION_LOST,
        completed,
    )
}

/// The failure for a message that was not sent whole. The server did not process it, since it acts
/// on whole messages only.
pub(super) fn not_sent(error: SendError) -> Failure {
    match error.cause {
        IoError::TimedOut => timeout(CompletionStatus::No).into(),
        IoError::TooLarge => {
            SystemException::no(SystemExceptionKind::ImpLimit, minor::MESSAGE_TOO_LARGE).into()
        }
        // The connection ended while it was idle; the request may use a new one.
        IoError::Closed => Failure::NotProcessed,
        _ if error.sent == 0 => Failure::NotProcessed,
        _ => comm_failure(CompletionStatus::No).into(),
    }
}

/// The transport of a connection, its state, and the message protocol that both sides agreed on.
pub(in crate::client) struct Link {
    transport: Box<dyn Connection>,
    permit: ConnectionPermit,
    closed: AtomicBool,
    /// The number of times that octets were received, as far as a shared connection counts them.
    arrivals: AtomicU32,
    negotiation: Negotiation,
    waiting: WaitPolicy,
    is_stream: bool,
    writer: MessageWriter,
    /// The [forks](fork::count) that had led to the process when it was made.
    forks: u32,
}

impl Link {
    pub(super) fn new(
        transport: Box<dyn Connection>,
        permit: ConnectionPermit,
        config: &OrbConfig,
        waiting: WaitPolicy,
        kind: ChannelKind,
    ) -> Self {
        let is_stream = transport.carriage() == Carriage::Stream;
        // The lane that reads it writes fragments, and has its own form of messages.
        let by_lane = kind.is_read_by_lane();
        Self {
            negotiation: Negotiation::new(!by_lane && speaks_lite_on(config, &*transport)),
            transport,
            permit,
            closed: AtomicBool::new(false),
            arrivals: AtomicU32::new(0),
            waiting,
            is_stream,
            writer: MessageWriter::new(if is_stream && !by_lane {
                config.fragment_size
            } else {
                0
            }),
            forks: fork::count(),
        }
    }

    pub(in crate::client) fn transport(&self) -> &dyn Connection {
        &*self.transport
    }

    /// Whether all messages that are sent arrive, in order.
    pub(in crate::client) fn is_stream(&self) -> bool {
        self.is_stream
    }

    /// Whether messages can be sent from where their octets are.
    pub(super) fn can_gather(&self) -> bool {
        self.is_stream
    }

    /// Whether the server takes messages of GIOPlite.
    #[inline]
    pub(in crate::client) fn speaks_lite(&self) -> bool {
        self.negotiation.is_lite()
    }

    /// Whether first requests ask the server for GIOPlite.
    pub(in crate::client) fn proposes_lite(&self) -> bool {
        self.negotiation.is_proposing()
    }

    /// Whether nothing can be sent any more.
    #[inline]
    pub(in crate::client) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Whether the peer has ended its direction of the stream, perhaps behind octets that are still
    /// to be read. Takes nothing out, so another thread may read meanwhile.
    #[cold]
    pub(super) fn has_hung_up(&self) -> bool {
        self.is_stream && has_hung_up(&self.transport)
    }

    /// Changes only whether it counts as closed, for calls that would begin now.
    pub(super) fn mark_closed(&self, closed: bool) {
        self.closed.store(closed, Ordering::Release);
    }

    /// A number that changes when octets arrive on a shared connection.
    pub(super) fn arrivals(&self) -> u32 {
        self.arrivals.load(Ordering::Relaxed)
    }

    /// Notes that octets have arrived. Only one thread at a time reads.
    pub(super) fn note_arrival(&self) {
        let arrivals = self.arrivals().wrapping_add(1);
        self.arrivals.store(arrivals, Ordering::Relaxed);
    }

    /// Closes the connection: nothing is sent any more. A reader finds the octets that had arrived,
    /// and then the end.
    pub(super) fn close(&self) {
        self.mark_closed(true);
        self.permit.give_back();
        // That would end it for the process that has made it, too.
        if !self.is_inherited() {
            self.transport.shutdown();
        }
    }

    /// Whether the process was forked since it was made: then it belongs to the parent.
    pub(super) fn is_inherited(&self) -> bool {
        self.forks != fork::count()
    }

    /// Whether the server takes requests of another connection for those of another peer.
    #[cfg(feature = "distributable-threads")]
    pub(in crate::client) fn is_origin(&self) -> bool {
        self.is_stream && matches!(Origin::by_address(&*self.transport), Origin::Connection(..))
    }

    /// Tells a server that it may not send a message of this kind here, such as a request on a
    /// connection that is not bidirectional. The connection is closed afterwards.
    #[cold]
    pub(super) fn protest(&self, kind: MessageType) {
        if matches!(kind, MessageType::Request | MessageType::LocateRequest) {
            self.negotiation
                .with_empty_message(MessageType::MessageError, |message| {
                    let _ = self.transport.try_send(message);
                });
        }
    }

    /// The fault that the transport found in the server's octets, or that the server reported.
    #[cold]
    pub(in crate::client) fn problem(&self) -> Option<String> {
        self.transport.problem()
    }

    /// The rule by which messages are sent in fragments.
    pub(super) fn writer(&self) -> MessageWriter {
        self.writer
    }

    /// Sends a whole message, in fragments if it is long. Closes the connection if a part of it was
    /// sent.
    pub(super) fn send(&self, message: &[u8], deadline: Deadline) -> Result<(), Failure> {
        let sent = if self.writer.is_whole() {
            self.transport.send_all(message, deadline)
        } else {
            self.send_divided(&mut self.writer.begin(message), [message, &[]], deadline)
        };
        sent.map_err(|error| self.unsent(error))
    }

    /// Sends the next octets of a message, which are given in two slices, in fragments if it is
    /// long. An error counts the octets of this call alone.
    pub(super) fn send_divided(
        &self,
        message: &mut OutgoingMessage,
        [first, second]: [&[u8]; 2],
        deadline: Deadline,
    ) -> Result<(), SendError> {
        let mut before = 0;
        message.write(first, second, |slices| {
            let end = before + slices.iter().map(|slice| slice.len()).sum::<usize>();
            let mut sent = 0;
            while before + sent < end {
                let more = self.send_more(slices, sent, deadline);
                sent += more.map_err(|error| SendError {
                    sent: before + sent + error.sent,
                    ..error
                })?;
            }
            before = end;
            Ok(())
        })
    }

    /// Sends some of the octets of slices after the first `sent`, and waits for room. Returns their
    /// number.
    fn send_more(
        &self,
        slices: &[IoSlice<'_>],
        sent: usize,
        deadline: Deadline,
    ) -> Result<usize, SendError> {
        match self.transport.try_send_slices(slices, sent) {
            Err(IoError::WouldBlock) => {
                let rest = unsent(slices, sent).next().unwrap_or_default();
                self.transport.send_all(rest, deadline)?;
                Ok(rest.len())
            }
            tried => tried.map_err(|cause| SendError { sent: 0, cause }),
        }
    }

    /// Sends octets that a [writer](Self::writer) has made of whole messages, and the rest of those
    /// that were sent in part.
    #[cold]
    pub(super) fn send_octets(&self, octets: &[u8], deadline: Deadline) -> Result<(), Failure> {
        if octets.is_empty() {
            return Ok(());
        }
        let sent = self.transport.send_all(octets, deadline);
        sent.map_err(|error| self.unsent(error))
    }

    /// Returns the failure for a message that was not sent whole, and closes the connection unless
    /// the message has done no harm: there was no time left for it, or the transport carries no
    /// message of its length.
    #[cold]
    pub(super) fn unsent(&self, error: SendError) -> Failure {
        let is_harmless =
            error.sent == 0 && matches!(error.cause, IoError::TimedOut | IoError::TooLarge);
        if !is_harmless {
            self.close();
        }
        not_sent(error)
    }

    /// Receives at least one octet, after polling for it as configured.
    #[inline]
    pub(super) fn recv(&self, room: &mut [u8], deadline: Deadline) -> Result<usize, IoError> {
        if self.waiting != WaitPolicy::Block {
            let left = deadline.remaining().unwrap_or_default();
            let polled = poll_for(self.waiting.bound().min(left), || {
                match self.transport.look(room) {
                    Err(IoError::WouldBlock) => None,
                    received => Some(received),
                }
            });
            if let Some(received) = polled {
                return received;
            }
        }
        self.transport.recv(room, deadline)
    }

    /// Waits for octets until the deadline. Returns whether [`recv`](Self::recv) is to be called.
    ///
    /// The time-out of a socket ends two ticks of the kernel late, up to 20 ms; this wait is exact.
    pub(super) fn await_input(&self, deadline: Deadline) -> bool {
        if self.waiting != WaitPolicy::Block {
            // A polled transport need not report its input here.
            return true;
        }
        let left = Timespec::try_from(deadline.remaining().unwrap_or_default()).ok();
        let mut input = [PollFd::new(&self.transport, PollFlags::IN)];
        // An error shows in the receiving call.
        poll(&mut input, left.as_ref()) != Ok(0)
    }

    /// Receives as [`recv`](Self::recv) does, after a request whose deadline was `whole`
    /// nanoseconds ahead when its call began; 0 if the call has waited for anything else.
    #[inline]
    pub(super) fn recv_reply(
        &self,
        room: &mut [u8],
        deadline: Deadline,
        whole: u64,
    ) -> Result<usize, IoError> {
        if self.waiting == WaitPolicy::Block {
            self.transport.recv_after_send(room, deadline, whole)
        } else {
            self.recv(room, deadline)
        }
    }
}

#[cfg(feature = "distributable-threads")]
impl crate::rtscheduling::Interrupt for Link {
    /// Ends the wait of the connection's thread for a reply. On the loopback, the thread can still
    /// send the cancellation, which the server heeds on the same connection only.
    fn interrupt(&self) {
        self.mark_closed(true);
        if !self.is_origin() || shutdown(&self.transport, Shutdown::Read).is_err() {
            self.close();
        }
    }
}

/// The reader of a connection's messages.
pub(in crate::client) struct ReplyReader(MessageReader);

impl ReplyReader {
    /// A reader that keeps the fragments of up to `fragmented` messages, of `octets` together.
    pub(super) fn new(config: &OrbConfig, fragmented: usize, octets: usize) -> Self {
        let bounds = Bounds {
            message: config.max_message_size,
            fragmented,
            fragment_octets: octets,
            skips: false,
        };
        Self(MessageReader::new(bounds, scope::empty_frame()))
    }

    /// The turn of a reader that must not wait: about as much as the begun message needs, and at
    /// least [`LEAST_TURN`] octets. So a long message takes few turns, and each of them is bounded.
    pub(in crate::client) fn turn(&self) -> ReadTurn {
        ReadTurn {
            left: self.0.pending().len().max(LEAST_TURN),
        }
    }

    /// Whether received octets wait for the next call.
    #[cfg(feature = "baselines")]
    pub(super) fn has_surplus(&self) -> bool {
        !self.0.pending().is_empty()
    }

    /// Receives the next whole message as [`receive`](Self::receive) does, and recognizes a usual
    /// reply at once.
    #[inline(always)]
    pub(super) fn receive_usual(
        &mut self,
        link: &Link,
        frame: &mut Frame,
        mut read: impl FnMut(&mut [u8]) -> Result<usize, IoError>,
    ) -> Result<Option<MessageHeader>, Failure> {
        frame.clear();
        if self.0.is_fresh()
            && let Ok(room) = MessageReader::first_room(frame)
        {
            match read(room) {
                Ok(received) => frame.commit(received),
                Err(error) => return self.end_without(frame, error),
            }
            if let Some(header) = self.0.usual_reply(frame) {
                drop(self.0.take_spare(KEPT_CAPACITY));
                link.negotiation.learn(header, frame);
                return Ok(Some(header));
            }
        }
        self.receive_rest(link, frame, read)
    }

    /// Receives the next whole message into `frame`, which it clears, from the octets that `read`
    /// receives. Returns `None` if `read` would block or its time is over; the next call continues
    /// from there.
    #[inline]
    pub(super) fn receive(
        &mut self,
        link: &Link,
        frame: &mut Frame,
        read: impl FnMut(&mut [u8]) -> Result<usize, IoError>,
    ) -> Result<Option<MessageHeader>, Failure> {
        frame.clear();
        self.receive_rest(link, frame, read)
    }

    /// Receives a message whose first octets may be in `frame`.
    #[inline(never)]
    fn receive_rest(
        &mut self,
        link: &Link,
        frame: &mut Frame,
        mut read: impl FnMut(&mut [u8]) -> Result<usize, IoError>,
    ) -> Result<Option<MessageHeader>, Failure> {
        loop {
            let total = match self.0.poll(&link.negotiation, frame).map_err(unreadable)? {
                Progress::Message(message) => {
                    let joined = self.0.join(message, frame).map_err(unreadable)?;
                    let Some(Message { header, .. }) = joined else {
                        frame.clear();
                        continue;
                    };
                    // A large frame that was exchanged is not kept.
                    drop(self.0.take_spare(KEPT_CAPACITY));
                    link.negotiation.learn(header, frame);
                    return Ok(Some(header));
                }
                Progress::Missing { total } => total,
            };
            let Some(room) = self.0.room(frame, total).map_err(unreadable)? else {
                continue;
            };
            match read(room) {
                Ok(received) => {
                    link.note_arrival();
                    frame.commit(received);
                }
                Err(error) => return self.end_without(frame, error),
            }
        }
    }

    /// Ends the reception of a message that is not whole.
    #[cold]
    #[inline(never)]
    fn end_without(
        &mut self,
        frame: &mut Frame,
        error: IoError,
    ) -> Result<Option<MessageHeader>, Failure> {
        // A large message waits in the frame that it was received into.
        let suspended = self.0.suspend(frame, frame.len() > COPIED);
        suspended.map_err(unreadable)?;
        match error {
            IoError::WouldBlock | IoError::TimedOut => Ok(None),
            _ => Err(comm_failure(CompletionStatus::Maybe).into()),
        }
    }

    /// Receives the next reply as [`receive`](Self::receive) does, with the id of its request.
    ///
    /// # Errors
    /// Anything but a reply is a failure of the connection.
    pub(in crate::client) fn receive_reply(
        &mut self,
        link: &Link,
        frame: &mut Frame,
        read: impl FnMut(&mut [u8]) -> Result<usize, IoError>,
    ) -> Result<Option<(u32, MessageHeader)>, Failure> {
        let Some(header) = self.receive(link, frame, read)? else {
            return Ok(None);
        };
        match header.kind {
            MessageType::Reply | MessageType::LocateReply => {
                let id = reply_id(frame.as_slice()).ok_or(MALFORMED)?;
                Ok(Some((id, header)))
            }
            kind => {
                link.protest(kind);
                Err(self.unexpected(kind))
            }
        }
    }

    /// The failure for a message that is no reply.
    #[cold]
    pub(super) fn unexpected(&self, kind: MessageType) -> Failure {
        // The server promises that it has not begun what it has not answered; a part of an answer
        // shows that it has.
        if kind == MessageType::CloseConnection && !self.0.has_fragments() {
            return Failure::NotProcessed;
        }
        comm_failure(CompletionStatus::Maybe).into()
    }
}

/// The octets that a reader may still take in its turn.
pub(in crate::client) struct ReadTurn {
    left: usize,
}

impl ReadTurn {
    /// Receives octets that have arrived; it would block after the end of the turn.
    pub(in crate::client) fn recv(
        &mut self,
        link: &Link,
        room: &mut [u8],
    ) -> Result<usize, IoError> {
        if self.is_over() {
            return Err(IoError::WouldBlock);
        }
        let received = link.transport.try_recv(room)?;
        self.left = self.left.saturating_sub(received);
        Ok(received)
    }

    pub(in crate::client) fn is_over(&self) -> bool {
        self.left == 0
    }
}

#[cold]
fn unreadable(error: ReadError) -> Failure {
    let too_large = |error: CdrError| {
        let exception = SystemException::from(error);
        exception.with_completed(CompletionStatus::Maybe).into()
    };
    match error {
        ReadError::TooLarge => too_large(CdrError::FrameFull),
        ReadError::NoMemory => too_large(CdrError::OutOfMemory),
        ReadError::Malformed => MALFORMED,
    }
}

/// The failure of a connection whose server sends malformed messages, or too many replies to no
/// request.
pub(in crate::client) const MALFORMED: Failure = Failure::Exception(SystemException::new(
    SystemExceptionKind::Marshal,
    minor::MALFORMED_MESSAGE,
    CompletionStatus::Maybe,
));
/// The most replies to no request that a connection may receive.
pub(in crate::client) const MAX_STRAYS: usize = 1000;
/// The fewest octets of a reader's turn.
const LEAST_TURN: usize = 256 << 10;
/// Octets of a begun message that are copied rather than kept in the reader's frame.
const COPIED: usize = 8 << 10;
