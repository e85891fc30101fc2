//! A connection of a server, as its lane's threads share it.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use chronorb_cdr::{CharSet, TextForm};
use chronorb_giop::connection::Negotiation;
use chronorb_giop::fragments::Pieces;
use chronorb_giop::framing::{Framed, next_message_of};
use chronorb_giop::{MessageType, Protocol, Version};
use chronorb_rt::{Baton, BatonGuard, Deadline, Released};
use chronorb_transport::{Carriage, Connection};

use super::end::Gone;
use super::input::Input;
use super::lane::origin::Origin;
use super::load::{Account, Load};
use super::output::Output;
use super::place;
use super::posted::{Posted, spare_of};
use crate::gather::{Send, Unsent};
use crate::rtcorba::Priority;

/// A connection. Its input and its output are with one thread at a time, for which no thread
/// ever waits.
pub(super) struct ServerConnection {
    transport: Box<dyn Connection>,
    pub(super) input: Baton<Input>,
    output: Baton<Output>,
    /// Messages of threads that found the output taken.
    posted: Posted,
    fragment_size: usize,
    /// Octets of the longest message that can be sent.
    largest: usize,
    /// Many peers speak by it, none of whom can be answered.
    many_peers: bool,
    /// Its peer may leave without a word.
    is_place: bool,
    /// The most urgent priority that its client may propagate.
    ceiling: Option<Priority>,
    /// Whether `output` holds anything, to be asked without claiming it.
    output_waits: AtomicBool,
    /// The peer has ended its side. Whoever is told so sets this before claiming the input, since
    /// an end that came with the last octets is told by no further event.
    hung_up: AtomicBool,
    /// Everything that the peer sent has been read.
    ended: AtomicBool,
    /// Messages that are being handled.
    at_work: AtomicU32,
    /// The lane's tick at which the last message came, or the connection itself; with
    /// [`HAS_SENT`] once a whole message has come.
    used: AtomicU32,
    /// The lane's tick at which it came.
    admitted: u32,
    account: Arc<Account>,
    /// Whose it is, where such have a limit.
    origin: Option<Origin>,
    pub(super) negotiation: Negotiation,
    /// Whether the client announced UTF-8 for `char` and `string`.
    utf8: AtomicBool,
    /// Whether the first request, which may announce it, has been seen.
    text_known: AtomicBool,
    /// Whether the client announced that it waits for each reply.
    one_at_a_time: AtomicBool,
    /// It has a thread of its own.
    attended: AtomicBool,
    /// Its peer receives at the address that it sends from.
    #[cfg(feature = "diop")]
    proved: AtomicBool,
}

/// What a look at the age of a connection's input and output came to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Timeliness {
    Fine,
    Late,
    /// It is fine, and must be looked at again: the look may have turned a thread away.
    Disturbed,
}

/// How well a lane can do without a connection: the greatest goes first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Rank {
    /// A peer that may leave without a word loses nothing by it.
    is_place: bool,
    /// No whole message has come.
    is_silent: bool,
    /// Ticks since the last message, or since it came itself.
    idle: u32,
    /// Ticks since it came itself.
    age: u32,
}

/// A message in progress; dropped when it has been answered. One that is forgotten ends with
/// [`ServerConnection::end_work`].
#[must_use]
pub(super) struct WorkGuard<'c>(&'c ServerConnection);

impl Drop for WorkGuard<'_> {
    fn drop(&mut self) {
        self.0.end_work();
    }
}

/// A message of which a part may have been sent; dropped, it ends the connection.
struct Unfinished<'c>(&'c dyn Connection);

impl Drop for Unfinished<'_> {
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

/// Its peer, for messages to people.
impl fmt::Display for ServerConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.transport.peer())
    }
}

impl ServerConnection {
    /// `idle_timeout` is how long all connections of the lane may be idle, `ceiling` the most
    /// urgent priority that its client may propagate.
    pub(super) fn new(
        transport: Box<dyn Connection>,
        load: Arc<Load>,
        idle_timeout: Option<Duration>,
        ceiling: Option<Priority>,
        origin: Option<Origin>,
    ) -> Self {
        let carriage = transport.carriage();
        let idle_timeout = place::idle_timeout(carriage, idle_timeout);
        let (largest, many_peers) = match carriage {
            Carriage::Stream => (usize::MAX, false),
            Carriage::Messages {
                largest,
                many_peers,
            } => (largest, many_peers),
        };
        let opens = !transport.is_established();
        let admitted = load.tick() & !HAS_SENT;
        // Of many peers none is asked to say anything.
        let used = match many_peers {
            true => admitted | HAS_SENT,
            false => admitted,
        };
        if !many_peers {
            load.count_silent(true);
        }
        let (max_message, fragment_size) = (load.max_message, load.fragment_size);
        let account = Account::open(load);
        Self {
            transport,
            input: Baton::new(Input::new(account.clone(), opens, idle_timeout)),
            is_place: place::is_place(carriage),
            ceiling,
            posted: Posted::new(2 * max_message),
            fragment_size: match largest {
                usize::MAX => fragment_size,
                _ => 0,
            },
            largest,
            many_peers,
            output: Baton::new(Output::new(account.clone())),
            account,
            origin,
            output_waits: AtomicBool::new(false),
            hung_up: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            at_work: AtomicU32::new(0),
            used: AtomicU32::new(used),
            admitted,
            negotiation: Negotiation::default(),
            utf8: AtomicBool::new(false),
            text_known: AtomicBool::new(false),
            one_at_a_time: AtomicBool::new(false),
            attended: AtomicBool::new(false),
            #[cfg(feature = "diop")]
            proved: AtomicBool::new(!place::is_place(carriage)),
        }
    }

    pub(super) fn transport(&self) -> &dyn Connection {
        &*self.transport
    }

    /// Notes that a message is being handled, so that the end of the input does not cut off its
    /// answer.
    pub(super) fn begin_work(&self) -> WorkGuard<'_> {
        self.at_work.fetch_add(1, Ordering::SeqCst);
        let before = self.used.load(Ordering::Relaxed);
        let load = &self.account.load;
        self.used.store(load.tick() | HAS_SENT, Ordering::Relaxed);
        if before & HAS_SENT == 0 {
            // The thread has the input: there is no other.
            load.count_silent(false);
        }
        WorkGuard(self)
    }

    /// Notes that a message has been handled, whose guard was forgotten.
    pub(super) fn end_work(&self) {
        self.at_work.fetch_sub(1, Ordering::SeqCst);
    }

    pub(super) fn set_ended(&self) {
        self.ended.store(true, Ordering::SeqCst);
    }

    /// Whether a whole message has come.
    pub(super) fn has_sent(&self) -> bool {
        self.used.load(Ordering::Relaxed) & HAS_SENT != 0
    }

    /// Whether no message has come since this tick of the lane, nor the connection itself.
    pub(super) fn was_used_before(&self, tick: u32) -> bool {
        // The difference of two ticks, of 31 bits each; negative ones are greater than half of it.
        let since = self.used.load(Ordering::Relaxed).wrapping_sub(tick) & !HAS_SENT;
        since > !HAS_SENT / 2
    }

    /// Whether no message is being handled, and nothing is due to the peer.
    pub(super) fn is_quiet(&self) -> bool {
        self.at_work.load(Ordering::SeqCst) == 0
            && !self.output_waits.load(Ordering::SeqCst)
            && !self.posted.any()
    }

    /// How well the lane can do without the connection at this tick; not at all where it is in use.
    pub(super) fn rank(&self, now: u32) -> Option<Rank> {
        let has_sent = self.has_sent();
        let in_use = has_sent && self.account.octets() > 0;
        if self.many_peers || in_use || !self.is_quiet() {
            return None;
        }
        Some(Rank {
            is_place: self.is_place,
            is_silent: !has_sent,
            idle: now.wrapping_sub(self.used.load(Ordering::Relaxed)) & !HAS_SENT,
            age: now.wrapping_sub(self.admitted) & !HAS_SENT,
        })
    }

    /// What it keeps for its peer.
    pub(super) fn account(&self) -> &Account {
        &self.account
    }

    /// Whose it is, where such have a limit.
    pub(super) fn origin(&self) -> Option<Origin> {
        self.origin
    }

    /// Ends it at once, and gives back what it keeps as far as no other thread has it.
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

    /// Whether the peer has ended its side, and has everything that is due to it.
    pub(super) fn is_over(&self) -> bool {
        self.ended.load(Ordering::SeqCst) && self.is_quiet()
    }

    /// Sends a message, or keeps what the transport does not take for [`flush`](Self::flush).
    ///
    /// Returns whether something is kept, so that the connection must be armed for room to send.
    /// Waits neither for the peer nor for another thread: a thread that is sending already takes
    /// this message along.
    pub(super) fn send(&self, message: &[u8]) -> Result<bool, Gone> {
        if let Some(output) = self.output.claim() {
            return self.send_by(output, message);
        }
        self.posted.post(message)?;
        match self.output.claim() {
            Some(output) => self.send_by(output, &[]),
            None => Ok(false),
        }
    }

    /// Whether messages are sent from where their octets are.
    pub(super) fn gathers(&self) -> bool {
        self.fragment_size == 0 && self.largest == usize::MAX
    }

    /// Whether many peers speak by it, none of whom can be answered.
    #[cfg(any(feature = "baselines", feature = "miop"))]
    pub(super) fn has_many_peers(&self) -> bool {
        self.many_peers
    }

    /// Whether its peer may leave without a word.
    pub(super) fn is_place(&self) -> bool {
        self.is_place
    }

    /// The most urgent priority that its client may propagate, as its endpoint says.
    pub(super) fn ceiling(&self) -> Option<Priority> {
        self.ceiling
    }

    /// Whether its peer receives at the address that it sends from.
    #[cfg(feature = "diop")]
    pub(super) fn is_proved(&self) -> bool {
        self.proved.load(Ordering::Relaxed)
    }

    #[cfg(feature = "diop")]
    pub(super) fn set_proved(&self) {
        self.proved.store(true, Ordering::Relaxed);
    }

    /// Octets of the longest message that can be sent.
    pub(super) fn largest(&self) -> usize {
        self.largest
    }

    /// Sends the message whose pieces `message` hands over, and returns as [`send`](Self::send);
    /// `None` where another thread is sending, and nothing was done. A message that is not handed
    /// over whole ends the connection, before anything can be sent after it.
    pub(super) fn send_pieces(
        &self,
        message: impl FnOnce(Send<'_, Gone>) -> Result<(), Unsent<Gone>>,
    ) -> Option<Result<bool, Unsent<Gone>>> {
        let mut output = self.output.claim()?;
        let unfinished = Unfinished(&*self.transport);
        let sent = message(&mut |first, second| output.write(&*self.transport, first, second));
        if let Err(unsent) = sent {
            return Some(Err(unsent));
        }
        std::mem::forget(unfinished);
        Some(self.send_by(output, &[]).map_err(Unsent::Failed))
    }

    /// Sends what was kept, as far as the transport takes it; returns as [`send`](Self::send).
    pub(super) fn flush(&self) -> Result<bool, Gone> {
        if !self.output_waits.load(Ordering::Acquire) {
            return Ok(false);
        }
        match self.output.claim() {
            Some(output) => self.send_by(output, &[]),
            None => Ok(false),
        }
    }

    /// Sends as the one thread that does, until nobody has asked for anything more.
    fn send_by(&self, mut output: BatonGuard<'_, Output>, message: &[u8]) -> Result<bool, Gone> {
        self.write(&mut output, message)?;
        loop {
            // A claim that failed while this one succeeded is not told again at the release.
            self.write_posted(&mut output)?;
            self.note_waiting(&output);
            let waits = output.waits();
            output = match output.release() {
                Released::Done => return Ok(waits),
                Released::Again(output) => output,
            };
            // Who was turned away may have been told of room to send, which is told once.
            self.write(&mut output, &[])?;
        }
    }

    /// Writes a message, or its fragments with what others have posted meanwhile between them.
    fn write(&self, output: &mut Output, message: &[u8]) -> Result<(), Gone> {
        match Pieces::of(message, self.fragment_size) {
            None => output.write(&*self.transport, &[], message)?,
            Some(pieces) => {
                for piece in pieces {
                    output.write(&*self.transport, piece.head(), piece.body)?;
                    self.write_posted(output)?;
                }
            }
        }
        self.note_waiting(output);
        Ok(())
    }

    /// Writes what others have posted.
    fn write_posted(&self, output: &mut Output) -> Result<(), Gone> {
        if !self.posted.any() {
            return Ok(());
        }
        let posted = self.posted.take(std::mem::take(&mut output.spare));
        let written = self.write_all(output, &posted);
        output.spare = spare_of(posted);
        written
    }

    /// Writes messages, or their fragments.
    fn write_all(&self, output: &mut Output, messages: &[u8]) -> Result<(), Gone> {
        if self.fragment_size == 0 {
            return output.write(&*self.transport, &[], messages);
        }
        let mut rest = messages;
        while let Ok(Framed::Complete { len, .. }) = next_message_of::<Protocol>(rest, usize::MAX) {
            let (message, after) = rest.split_at(len);
            rest = after;
            match Pieces::of(message, self.fragment_size) {
                None => output.write(&*self.transport, &[], message)?,
                Some(mut pieces) => pieces.try_for_each(|piece| {
                    output.write(&*self.transport, piece.head(), piece.body)
                })?,
            }
        }
        Ok(())
    }

    fn note_waiting(&self, output: &Output) {
        if output.waits() || self.output_waits.load(Ordering::Relaxed) {
            self.output_waits.store(output.waits(), Ordering::SeqCst);
        }
    }

    /// Sends a last message, without a body, if that is possible at once, and ends the connection.
    pub(super) fn say_goodbye(&self, kind: MessageType) {
        // A message in the middle of another one would be rubbish.
        if let Some(output) = self.output.claim()
            && !output.waits()
        {
            self.negotiation.with_empty_message(kind, |message| {
                let _ = self.transport.try_send(message);
            });
        }
        self.transport.shutdown();
    }

    /// Sends what is still due to the peer, until the deadline; at the end of the lane.
    pub(super) fn drain(&self, deadline: Deadline) {
        if let Some(mut output) = self.output.claim() {
            output.drain(&*self.transport, deadline);
        }
    }

    /// Whether the peer left a reply longer ago than `limit`, and nobody is sending now. Where it
    /// began a message longer ago, the input is to be looked at.
    pub(super) fn timeliness(&self, limit: Duration) -> Timeliness {
        let mut disturbed = false;
        if let Some(input) = self.input.claim() {
            // The rest may have come while all threads were busy: who finds none ends it.
            disturbed |= input.is_late(limit);
            disturbed |= matches!(input.release(), Released::Again(_));
        }
        if let Some(output) = self.output.claim() {
            if output.is_late(limit) {
                return Timeliness::Late;
            }
            match self.send_by(output, &[]) {
                Ok(waits) => disturbed |= waits,
                Err(Gone) => return Timeliness::Late,
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

    /// How text travels: what the client announced, else ISO 8859-1.
    pub(super) fn text(&self, version: Version) -> TextForm {
        let narrow = match self.utf8.load(Ordering::Relaxed) {
            true => CharSet::Utf8,
            false => CharSet::Latin1,
        };
        version.text(narrow)
    }

    pub(super) fn set_narrow(&self, narrow: CharSet) {
        self.utf8.store(narrow == CharSet::Utf8, Ordering::Relaxed);
    }

    /// Whether this is the first to ask, with the first request of the connection.
    pub(super) fn is_text_unknown(&self) -> bool {
        !self.text_known.load(Ordering::Relaxed) && !self.text_known.swap(true, Ordering::Relaxed)
    }

    pub(super) fn set_one_at_a_time(&self) {
        self.one_at_a_time.store(true, Ordering::Relaxed);
    }

    /// Whether it had no thread of its own yet; it has one now.
    pub(super) fn set_attended(&self) -> bool {
        !self.attended.swap(true, Ordering::Relaxed)
    }

    /// Whether the client sends no request before it has the reply to the one before.
    pub(super) fn is_one_at_a_time(&self) -> bool {
        self.one_at_a_time.load(Ordering::Relaxed)
    }
}

/// Set once a whole message has come on a connection.
const HAS_SENT: u32 = 1 << 31;
