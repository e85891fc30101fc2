//! A connection of a server, shared by the threads of its lane.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;
#[cfg(any(feature = "bidir", feature = "distributable-threads"))]
use std::sync::OnceLock;
#[cfg(feature = "bidir")]
use std::sync::atomic::AtomicU64;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use chronorb_cdr::{CharSet, TextForm};
use chronorb_giop::connection::{MessageWriter, Negotiation};
use chronorb_giop::{MessageType, Version};
use chronorb_rt::{Baton, BatonGuard, Deadline, ReleaseOutcome};
use chronorb_transport::{Carriage, Connection};

use super::datagram_peers;
use super::end::LostConnection;
use super::input::Input;
use super::load::{Account, Load};
use super::output::{Output, PostedMessages, spare_of};
use super::turns::Turns;
#[cfg(feature = "bidir")]
use crate::bidirectional::ReplyReceiver;
use crate::gather::{GatherError, Send};
#[cfg(feature = "distributable-threads")]
use crate::quota::Origin;
use crate::quota::OriginKey;
use crate::rtcorba::Priority;

/// A connection of a server. One thread at a time has its input, and one its output; no other
/// thread ever waits for them.
pub(super) struct ServerConnection {
    transport: Box<dyn Connection>,
    pub(super) input: Baton<Input>,
    output: Baton<Output>,
    /// Messages of threads that found the output taken.
    posted: PostedMessages,
    writer: MessageWriter,
    /// Octets of the longest message that can be sent.
    pub(super) largest: usize,
    /// Many peers send on it, and none can be answered (multicast).
    pub(super) many_peers: bool,
    /// Set for datagrams: the peer may leave without closing the connection.
    pub(super) is_datagram_peer: bool,
    /// The most urgent priority that its client may propagate.
    pub(super) ceiling: Option<Priority>,
    /// Whether `output` holds anything, to be read without claiming it.
    output_waits: AtomicBool,
    /// The peer has shut down its side. A thread that sees the event sets this before it claims the
    /// input, because an end that arrived with the last octets causes no further event.
    hung_up: AtomicBool,
    /// Everything that the peer sent has been read.
    ended: AtomicBool,
    /// Messages in progress, but for that of the thread that has the input.
    at_work: AtomicU32,
    /// Whether the thread that has the input works on a message. Only that thread changes it, so it
    /// needs no exchange. Another thread may see it late, as it may see a message late that has
    /// just arrived; the end of the connection is only found by the thread itself, between
    /// messages.
    holder_at_work: AtomicBool,
    /// The lane's tick of the last message, or of the connection itself; with [`HAS_SENT`] once a
    /// whole message has arrived.
    used: AtomicU32,
    /// The lane's tick at which the connection was accepted.
    admitted: u32,
    pub(super) account: Arc<Account>,
    /// The origin against whose limit the connection counts.
    pub(super) origin: OriginKey,
    pub(super) negotiation: Negotiation,
    /// Whether the client announced UTF-8 for `char` and `string`.
    utf8: AtomicBool,
    /// Whether the first request, which may announce it, has been seen.
    text_known: AtomicBool,
    /// Whether the client announced that it waits for each reply.
    one_at_a_time: AtomicBool,
    /// The turns of its requests, if they are served in the order of arrival.
    pub(super) turns: Option<Turns>,
    /// A thread of its own serves it.
    has_thread: AtomicBool,
    /// The address of its peer is known not to be forged.
    #[cfg(feature = "diop")]
    proved: AtomicBool,
    #[cfg(feature = "bidir")]
    bidirectional: Bidirectional,
    /// The fingerprint of the origin of its requests, once it was asked for.
    #[cfg(feature = "distributable-threads")]
    fingerprint: OnceLock<NonZeroU64>,
}

/// The part of a connection on which both sides send requests.
#[cfg(feature = "bidir")]
#[derive(Default)]
struct Bidirectional {
    /// This ORB has opened the connection.
    is_originated: bool,
    /// The receiver of the replies to this ORB's requests.
    receiver: OnceLock<Arc<dyn ReplyReceiver>>,
    /// The number of the client's listen points.
    listen_points: AtomicU32,
    /// The number of the connection, if its client claims listen points; 0 if not.
    claimant: AtomicU64,
}

/// The result of checking the age of a connection's input and output.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Timeliness {
    Fine,
    Late,
    /// In time, and to be armed again: the check may have turned a thread away.
    Disturbed,
}

/// The order in which a lane evicts connections: the greatest goes first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Rank {
    /// A datagram peer loses nothing by it.
    is_datagram_peer: bool,
    /// No whole message has arrived.
    is_silent: bool,
    /// Ticks since the last message, or since the connection was accepted.
    idle: u32,
    /// Ticks since the connection was accepted.
    age: u32,
}

/// A message in progress; dropped when it has been answered.
#[must_use]
pub(super) struct WorkGuard<'c> {
    connection: &'c ServerConnection,
    /// The thread has the input of the connection until the work has ended.
    has_input: bool,
}

impl WorkGuard<'_> {
    /// Lets the work go on without the guard; [`ServerConnection::end_work`] ends it.
    pub(super) fn detach(self) {
        if self.has_input {
            // The drop of the guard ends the other work, which is counted first.
            self.connection.at_work.fetch_add(1, Ordering::SeqCst);
        } else {
            std::mem::forget(self);
        }
    }
}

impl Drop for WorkGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.has_input {
            let at_work = &self.connection.holder_at_work;
            at_work.store(false, Ordering::Release);
        } else {
            self.connection.end_work();
        }
    }
}

/// A guard for a message of which a part may have been sent; dropped, it ends the connection.
struct SendGuard<'c>(&'c dyn Connection);

impl Drop for SendGuard<'_> {
    fn drop(&mut self) {
        self.0.shutdown();
    }
}

impl Drop for ServerConnection {
    fn drop(&mut self) {
        if !self.has_sent() {
            self.account.load.count_silent(false);
        }
    }
}

/// Displays the peer, for messages to people.
impl fmt::Display for ServerConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.transport.peer())
    }
}

impl ServerConnection {
    /// Returns a connection. `idle_timeout` is the limit for all connections of the lane, `ceiling`
    /// the most urgent priority that the client may propagate.
    pub(super) fn new(
        transport: Box<dyn Connection>,
        load: Arc<Load>,
        idle_timeout: Option<Duration>,
        ceiling: Option<Priority>,
        origin: OriginKey,
    ) -> Self {
        let carriage = transport.carriage();
        let idle_timeout = datagram_peers::idle_timeout(carriage, idle_timeout);
        let (largest, many_peers) = match carriage {
            Carriage::Stream => (usize::MAX, false),
            Carriage::Messages {
                largest,
                many_peers,
            } => (largest, many_peers),
        };
        let opens = !transport.is_established();
        let admitted = load.tick() & !HAS_SENT;
        // Multicast peers count as having sent: none of them is expected to.
        let used = if many_peers {
            admitted | HAS_SENT
        } else {
            admitted
        };
        if !many_peers {
            load.count_silent(true);
        }
        let (max_message, fragment_size) = (load.max_message, load.fragment_size);
        let turns = (load.in_order && !many_peers).then(Turns::new);
        let account = Account::open(load);
        Self {
            transport,
            input: Baton::new(Input::new(account.clone(), opens, idle_timeout)),
            is_datagram_peer: datagram_peers::is_datagram_peer(carriage),
            ceiling,
            posted: PostedMessages::new(2 * max_message),
            writer: MessageWriter::new(match largest {
                usize::MAX => fragment_size,
                _ => 0,
            }),
            largest,
            many_peers,
            output: Baton::new(Output::new(account.clone())),
            account,
            origin,
            output_waits: AtomicBool::new(false),
            hung_up: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            at_work: AtomicU32::new(0),
            holder_at_work: AtomicBool::new(false),
            used: AtomicU32::new(used),
            admitted,
            negotiation: Negotiation::default(),
            utf8: AtomicBool::new(false),
            text_known: AtomicBool::new(false),
            one_at_a_time: AtomicBool::new(false),
            turns,
            has_thread: AtomicBool::new(false),
            #[cfg(feature = "diop")]
            proved: AtomicBool::new(!datagram_peers::is_datagram_peer(carriage)),
            #[cfg(feature = "bidir")]
            bidirectional: Bidirectional::default(),
            #[cfg(feature = "distributable-threads")]
            fingerprint: OnceLock::new(),
        }
    }

    /// The fingerprint of the origin of its requests.
    #[cfg(feature = "distributable-threads")]
    #[inline]
    pub(super) fn fingerprint(&self) -> NonZeroU64 {
        *self.fingerprint.get_or_init(|| {
            let origin = Origin::from_connection(self.transport());
            NonZeroU64::new(origin.fingerprint()).unwrap_or(NonZeroU64::MAX)
        })
    }

    pub(super) fn transport(&self) -> &dyn Connection {
        &*self.transport
    }

    /// Claims the input to read a message; `None` where another thread has it, or a request has the
    /// turn.
    #[inline]
    pub(super) fn claim_input(&self) -> Option<BatonGuard<'_, Input>> {
        let input = self.input.claim()?;
        match &self.turns {
            None => Some(input),
            Some(turns) => turns.at_turn(input),
        }
    }

    /// Notes that a message is in progress, so that the end of the input does not cut off its
    /// answer.
    pub(super) fn begin_work(&self) -> WorkGuard<'_> {
        self.at_work.fetch_add(1, Ordering::SeqCst);
        self.note_message();
        WorkGuard {
            connection: self,
            has_input: false,
        }
    }

    /// Begins work as [`begin_work`](Self::begin_work) does, for a thread that keeps the input
    /// until it has answered.
    #[inline]
    pub(super) fn begin_work_with_input(&self) -> WorkGuard<'_> {
        self.holder_at_work.store(true, Ordering::Release);
        self.note_message();
        WorkGuard {
            connection: self,
            has_input: true,
        }
    }

    /// Notes that a whole message has arrived.
    #[inline]
    fn note_message(&self) {
        let before = self.used.load(Ordering::Relaxed);
        let load = &self.account.load;
        self.used.store(load.tick() | HAS_SENT, Ordering::Relaxed);
        if before & HAS_SENT == 0 {
            // Only the thread that has the input gets here.
            load.count_silent(false);
        }
    }

    /// Ends the work on a message whose guard was detached.
    pub(super) fn end_work(&self) {
        self.at_work.fetch_sub(1, Ordering::SeqCst);
    }

    pub(super) fn set_ended(&self) {
        self.ended.store(true, Ordering::SeqCst);
    }

    /// Whether a whole message has arrived.
    pub(super) fn has_sent(&self) -> bool {
        self.used.load(Ordering::Relaxed) & HAS_SENT != 0
    }

    /// Whether the connection was last used, or accepted, before this tick of the lane.
    pub(super) fn was_used_before(&self, tick: u32) -> bool {
        // The difference of two ticks modulo 2³¹; the upper half stands for negative differences.
        let since = self.used.load(Ordering::Relaxed).wrapping_sub(tick) & !HAS_SENT;
        since > !HAS_SENT / 2
    }

    /// Whether no message is in progress and no octet is due to the peer.
    pub(super) fn is_quiet(&self) -> bool {
        self.at_work.load(Ordering::SeqCst) == 0
            && !self.holder_at_work.load(Ordering::Acquire)
            && !self.output_waits.load(Ordering::SeqCst)
            && !self.posted.any()
            && !self.awaits_replies()
    }

    /// Whether replies to requests of this ORB are due.
    #[cfg(feature = "bidir")]
    fn awaits_replies(&self) -> bool {
        self.receiver().is_some_and(|receiver| !receiver.is_idle())
    }

    #[cfg(not(feature = "bidir"))]
    #[expect(clippy::unused_self, reason = "the same as with the feature")]
    fn awaits_replies(&self) -> bool {
        false
    }

    /// The connection's rank for eviction at this tick; `None` where it is in use.
    pub(super) fn rank(&self, now: u32) -> Option<Rank> {
        let has_sent = self.has_sent();
        let in_use = has_sent && self.account.octets() > 0;
        #[cfg(feature = "bidir")]
        if self.is_originated() {
            // Its client keeps it, to be called back.
            return None;
        }
        if self.many_peers || in_use || !self.is_quiet() {
            return None;
        }
        Some(Rank {
            is_datagram_peer: self.is_datagram_peer,
            is_silent: !has_sent,
            idle: now.wrapping_sub(self.used.load(Ordering::Relaxed)) & !HAS_SENT,
            age: now.wrapping_sub(self.admitted) & !HAS_SENT,
        })
    }

    /// Aborts the connection, and frees the buffers that no other thread has.
    pub(super) fn cut_off(&self) {
        self.transport.abort();
        if let Some(mut input) = self.input.claim() {
            input.discard();
        }
        if let Some(mut output) = self.output.claim() {
            output.discard();
            self.note_waiting(&output);
        }
    }

    /// Whether the peer has shut down its side, and has received everything that is due to it.
    pub(super) fn is_over(&self) -> bool {
        self.ended.load(Ordering::SeqCst) && self.is_quiet()
    }

    /// Sends a message, or keeps octets that the transport does not take for
    /// [`flush`](Self::flush).
    ///
    /// Returns whether octets are kept, so that the connection must be armed for room to send.
    /// Waits neither for the peer nor for another thread: a thread that is already sending also
    /// sends this message.
    #[inline(always)]
    pub(super) fn send(&self, message: &[u8]) -> Result<bool, LostConnection> {
        let Some(mut output) = self.output.claim() else {
            return self.leave_to_sender(message);
        };
        if output.waits() || !self.writer.is_whole() {
            return self.send_by(output, message);
        }
        // Usually the transport takes the whole message, and no other thread has sent meanwhile.
        if !output.begin(&*self.transport, message)? || self.posted.any() {
            return self.conclude(output);
        }
        match output.release() {
            ReleaseOutcome::Done => Ok(false),
            ReleaseOutcome::Again(output) => self.send_by(output, &[]),
        }
    }

    /// Leaves a message to the thread that is sending, or sends it where that has just finished.
    #[cold]
    fn leave_to_sender(&self, message: &[u8]) -> Result<bool, LostConnection> {
        self.posted.post(message)?;
        match self.output.claim() {
            Some(output) => self.send_by(output, &[]),
            None => Ok(false),
        }
    }

    /// Whether messages are sent directly from the memory that holds their octets.
    pub(super) fn gathers(&self) -> bool {
        self.largest == usize::MAX
    }

    /// Whether the address of its peer is known not to be forged.
    #[cfg(feature = "diop")]
    pub(super) fn is_proved(&self) -> bool {
        self.proved.load(Ordering::Relaxed)
    }

    #[cfg(feature = "diop")]
    pub(super) fn set_proved(&self) {
        self.proved.store(true, Ordering::Relaxed);
    }

    /// Sends the message whose pieces `message` produces, and returns as [`send`](Self::send);
    /// `None` where another thread is sending, and nothing was done. A message that is not produced
    /// whole ends the connection, before anything can be sent after it.
    pub(super) fn send_pieces(
        &self,
        message: impl FnOnce(Send<'_, LostConnection>) -> Result<(), GatherError<LostConnection>>,
    ) -> Option<Result<bool, GatherError<LostConnection>>> {
        let mut output = self.output.claim()?;
        let guard = SendGuard(&*self.transport);
        let mut outgoing = None;
        let sent = message(&mut |first, second| {
            let outgoing = outgoing.get_or_insert_with(|| self.writer.begin(first));
            outgoing.write(first, second, |slices| {
                output.write(&*self.transport, slices)
            })
        });
        if let Err(unsent) = sent {
            return Some(Err(unsent));
        }
        std::mem::forget(guard);
        Some(self.send_by(output, &[]).map_err(GatherError::Failed))
    }

    /// Sends kept octets as far as the transport takes them; returns as [`send`](Self::send).
    pub(super) fn flush(&self) -> Result<bool, LostConnection> {
        if !self.output_waits.load(Ordering::Acquire) {
            return Ok(false);
        }
        match self.output.claim() {
            Some(output) => self.send_by(output, &[]),
            None => Ok(false),
        }
    }

    /// Sends as the only sending thread, until no other thread has asked for more.
    #[inline(never)]
    fn send_by(
        &self,
        mut output: BatonGuard<'_, Output>,
        message: &[u8],
    ) -> Result<bool, LostConnection> {
        self.write(&mut output, message)?;
        self.conclude(output)
    }

    /// Sends what other threads have posted, and releases the output.
    fn conclude(&self, mut output: BatonGuard<'_, Output>) -> Result<bool, LostConnection> {
        loop {
            // The release does not report claims that failed before this thread's own claim.
            self.write_posted(&mut output)?;
            self.note_waiting(&output);
            let waits = output.waits();
            output = match output.release() {
                ReleaseOutcome::Done => return Ok(waits),
                ReleaseOutcome::Again(output) => output,
            };
            // A thread that was turned away may have had the only event for room to send.
            self.write(&mut output, &[])?;
        }
    }

    /// Writes a message. Messages of other threads may follow groups of its fragments.
    fn write(&self, output: &mut Output, message: &[u8]) -> Result<(), LostConnection> {
        self.writer.write(message, |slices| {
            output.write(&*self.transport, slices)?;
            self.write_posted(output)
        })?;
        self.note_waiting(output);
        Ok(())
    }

    /// Writes the messages that other threads have posted.
    fn write_posted(&self, output: &mut Output) -> Result<(), LostConnection> {
        if !self.posted.any() {
            return Ok(());
        }
        let posted = self.posted.take(std::mem::take(&mut output.spare));
        let written = self
            .writer
            .write_all(&posted, |slices| output.write(&*self.transport, slices));
        output.spare = spare_of(posted);
        written
    }

    fn note_waiting(&self, output: &Output) {
        if output.waits() || self.output_waits.load(Ordering::Relaxed) {
            self.output_waits.store(output.waits(), Ordering::SeqCst);
        }
    }

    /// Sends a last message without a body, if that is possible at once, and ends the connection.
    pub(super) fn say_goodbye(&self, kind: MessageType) {
        // Inside another message it would be malformed.
        if let Some(output) = self.output.claim()
            && !output.waits()
        {
            self.negotiation.with_empty_message(kind, |message| {
                let _ = self.transport.try_send(message);
            });
        }
        self.transport.shutdown();
    }

    /// Sends the octets that are still due to the peer, until the deadline; at the end of the lane.
    pub(super) fn drain(&self, deadline: Deadline) {
        if let Some(mut output) = self.output.claim() {
            output.drain(&*self.transport, deadline);
        }
    }

    /// Checks whether the peer has left a reply unread for longer than `limit`, unless a thread is
    /// sending. An input whose message is older than `limit` has to be read again.
    pub(super) fn timeliness(&self, limit: Duration) -> Timeliness {
        let mut disturbed = false;
        if let Some(input) = self.input.claim() {
            // The rest may have arrived while all threads were busy: a thread that reads finds out.
            disturbed |= input.is_late(limit);
            disturbed |= matches!(input.release(), ReleaseOutcome::Again(_));
        }
        if let Some(output) = self.output.claim() {
            if output.is_late(limit) {
                return Timeliness::Late;
            }
            match self.send_by(output, &[]) {
                Ok(waits) => disturbed |= waits,
                Err(LostConnection) => return Timeliness::Late,
            }
        }
        if disturbed {
            Timeliness::Disturbed
        } else {
            Timeliness::Fine
        }
    }

    pub(super) fn set_hung_up(&self) {
        self.hung_up.store(true, Ordering::Release);
    }

    pub(super) fn is_hung_up(&self) -> bool {
        self.hung_up.load(Ordering::Acquire)
    }

    /// The form of text: in the code set that the client announced, else in ISO 8859-1.
    pub(super) fn text(&self, version: Version) -> TextForm {
        let narrow = if self.utf8.load(Ordering::Relaxed) {
            CharSet::Utf8
        } else {
            CharSet::Latin1
        };
        version.text(narrow)
    }

    pub(super) fn set_narrow(&self, narrow: CharSet) {
        self.utf8.store(narrow == CharSet::Utf8, Ordering::Relaxed);
    }

    /// Whether this is the first call, which is made with the first request of the connection.
    pub(super) fn is_text_unknown(&self) -> bool {
        !self.text_known.load(Ordering::Relaxed) && !self.text_known.swap(true, Ordering::Relaxed)
    }

    pub(super) fn set_one_at_a_time(&self) {
        // With an order, a thread that stays would not find out whose turn it is.
        let stays = self.turns.is_none();
        self.one_at_a_time.store(stays, Ordering::Relaxed);
    }

    /// Marks the connection as served by a thread of its own. Returns whether it had none before.
    pub(super) fn set_has_thread(&self) -> bool {
        !self.has_thread.swap(true, Ordering::Relaxed)
    }

    /// Ends the turn of a request. Returns whether the connection must be read again.
    #[inline]
    pub(super) fn end_turn(&self) -> bool {
        let turns = self.turns.as_ref();
        turns.is_some_and(|turns| turns.end(self.has_thread.load(Ordering::Relaxed)))
    }

    /// Whether the client sends no request before it has the reply to the one before.
    pub(super) fn is_one_at_a_time(&self) -> bool {
        self.one_at_a_time.load(Ordering::Relaxed)
    }

    /// The number of the connection, if its client claims listen points. No other connection of the
    /// process has it.
    #[inline]
    pub(super) fn claimant(&self) -> Option<NonZeroU64> {
        #[cfg(feature = "bidir")]
        return NonZeroU64::new(self.bidirectional.claimant.load(Ordering::Relaxed));
        #[cfg(not(feature = "bidir"))]
        None
    }
}

#[cfg(feature = "bidir")]
impl ServerConnection {
    /// Makes it one that this ORB has opened: it may stay silent.
    pub(super) fn originate(&mut self) {
        self.bidirectional.is_originated = true;
        self.note_message();
    }

    /// Whether this ORB has opened it.
    pub(super) fn is_originated(&self) -> bool {
        self.bidirectional.is_originated
    }

    /// The receiver of replies to this ORB's requests, if there is one.
    pub(super) fn receiver(&self) -> Option<&Arc<dyn ReplyReceiver>> {
        self.bidirectional.receiver.get()
    }

    /// Sets the receiver of replies; returns whether there was none.
    pub(super) fn attach(&self, receiver: Arc<dyn ReplyReceiver>) -> bool {
        self.bidirectional.receiver.set(receiver).is_ok()
    }

    /// Ends the requests of this ORB that have no reply. The peer has not begun them if it ended
    /// the connection in order.
    pub(super) fn end_calls(&self, orderly: bool) {
        if let Some(receiver) = self.receiver() {
            receiver.end(orderly);
        }
    }

    /// Whether the peer sends nothing more.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// Whether octets wait for the peer to take them.
    pub(super) fn output_waits(&self) -> bool {
        self.output_waits.load(Ordering::Acquire) || self.posted.any()
    }

    /// The number of the client's listen points.
    pub(super) fn listen_points(&self) -> u32 {
        self.bidirectional.listen_points.load(Ordering::Relaxed)
    }

    /// Notes that the client claims listen points.
    pub(super) fn become_claimant(&self) {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        if self.claimant().is_none() {
            let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
            let claimant = &self.bidirectional.claimant;
            // Another thread may have been faster.
            let _ = claimant.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    pub(super) fn add_listen_point(&self) {
        let points = &self.bidirectional.listen_points;
        points.fetch_add(1, Ordering::Relaxed);
    }
}

/// A bit that is set once a whole message has arrived on a connection.
const HAS_SENT: u32 = 1 << 31;
