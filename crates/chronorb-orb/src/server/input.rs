//! The input of a connection: its message reader, and its share in the lane's accounts.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::Arc;
use std::time::Duration;

use chronorb_cdr::Frame;
use chronorb_giop::connection::{Bounds, Message, MessageReader, Negotiation, Progress, ReadError};
use chronorb_rt::Monotonic;
use chronorb_transport::IoError;

use super::end::End;
use super::load::{Account, FRAME_CAPACITY};

/// Received octets that are not a whole message yet, or that follow the first message.
pub(super) struct Input {
    /// The reader of messages. The lane bounds its octets, see [`account`](Self::account).
    pub(super) reader: MessageReader,
    /// Octets may wait in the transport: the last read filled its room, or there was no read yet.
    pub(super) unread: bool,
    /// The peer has shut down its side, so reads continue until the end of the stream.
    pub(super) hung_up: bool,
    /// Reading has ended.
    pub(super) closed: bool,
    /// Reading has paused for the answer to a request.
    pub(super) paused: bool,
    /// The transport still negotiates with the peer (a handshake), before the first message.
    pub(super) opens: bool,
    /// The time without a message after which the connection is closed.
    pub(super) idle_timeout: Option<Duration>,
    /// The time at which the present incomplete message, or the handshake, began.
    begun: Option<Monotonic>,
    /// The time at which the oldest incomplete fragmented message began.
    fragmented: Option<Monotonic>,
    /// The connection counts as slow in the lane's load.
    slow: bool,
    /// Requests that the reactor still has to deliver before a thread may wait on the connection.
    pub(super) backoff: u32,
    accounted: usize,
    account: Arc<Account>,
}

/// The result of an attempt to receive a message.
#[derive(Debug)]
pub(super) enum ReceiveOutcome {
    /// A message or a fragment is in the frame; `more` where further octets wait, or may wait.
    Message { message: Message, more: bool },
    /// No whole message has arrived yet.
    Incomplete,
    /// A message is being skipped, and more of it may have arrived already.
    Skipping,
}

impl Input {
    pub(super) fn new(account: Arc<Account>, opens: bool, idle_timeout: Option<Duration>) -> Self {
        let max_message = account.load.max_message;
        let bounds = Bounds {
            message: max_message,
            fragmented: MAX_FRAGMENTED,
            fragment_octets: max_message,
            skips: true,
        };
        let mut this = Self {
            reader: MessageReader::new(bounds, Frame::new(0, usize::MAX)),
            unread: true,
            hung_up: false,
            closed: false,
            paused: false,
            begun: None,
            fragmented: None,
            slow: false,
            backoff: AFFINITY_BACKOFF,
            accounted: 0,
            account,
            opens,
            idle_timeout,
        };
        if opens {
            this.begun = Some(Monotonic::now());
            this.set_slow(true);
        }
        this
    }

    /// Receives one message into `frame`, which it clears.
    ///
    /// In the ordinary case this is one `recv` for header and body, straight into the frame. Octets
    /// beyond the message stay in the input. So does the beginning of an incomplete message: a long
    /// one stays in the frame that it was received into, so that no octet is copied again. `read`
    /// reads available octets into the room that it is given.
    pub(super) fn receive(
        &mut self,
        read: &mut dyn FnMut(&mut [u8]) -> Result<usize, IoError>,
        negotiation: &Negotiation,
        frame: &mut Frame,
    ) -> Result<ReceiveOutcome, End> {
        frame.clear();
        self.receive_rest(read, negotiation, frame)
    }

    /// Receives the rest of a message whose first octets may be in `frame`.
    pub(super) fn receive_rest(
        &mut self,
        read: &mut dyn FnMut(&mut [u8]) -> Result<usize, IoError>,
        negotiation: &Negotiation,
        frame: &mut Frame,
    ) -> Result<ReceiveOutcome, End> {
        let mut at_once = 0;
        loop {
            let total = match self.reader.poll(negotiation, frame)? {
                Progress::Message(message) => {
                    let more = self.unread || !self.reader.pending().is_empty();
                    return Ok(ReceiveOutcome::Message { message, more });
                }
                Progress::Missing { total } => total,
            };
            if !self.unread {
                // The rest may take long: the thread is needed for other connections.
                self.suspend(total, frame)?;
                return Ok(ReceiveOutcome::Incomplete);
            }
            if at_once >= SKIPPED_AT_ONCE && self.reader.is_skipping() {
                self.suspend(total, frame)?;
                return Ok(ReceiveOutcome::Skipping);
            }
            let Some(room) = self.reader.room(frame, total)? else {
                continue;
            };
            let capacity = room.len();
            match read(room) {
                Ok(n) => {
                    // A read that does not fill its room has emptied the transport (epoll(7)).
                    self.unread = n == capacity || self.hung_up;
                    frame.commit(n);
                    at_once += n;
                }
                Err(IoError::WouldBlock) => self.unread = false,
                Err(IoError::Ended) => return Err(End::Ended),
                Err(_) => return Err(End::Lost),
            }
        }
    }

    /// Whether a thread that waits for the next message may expect the usual request.
    #[inline]
    pub(super) fn expects_usual(&self) -> bool {
        self.reader.is_fresh() && !self.opens && !self.hung_up && self.idle_timeout.is_none()
    }

    /// Resumes reading after a pause, which does not count for the time limit of the peer.
    pub(super) fn resume(&mut self) {
        if std::mem::take(&mut self.paused) {
            let now = Monotonic::now();
            self.begun = self.begun.map(|_| now);
            self.fragmented = self.fragmented.map(|_| now);
        }
    }

    /// Gives a thread a spare frame if its own stays with the first part of a message.
    #[cold]
    pub(super) fn refill(&self, frame: &mut Frame) {
        if frame.capacity() < FRAME_CAPACITY {
            *frame = self.account.load.spares.take();
        }
    }

    /// Puts a message back in front of the buffered octets.
    pub(super) fn put_back(&mut self, message: &Frame) -> Result<(), ReadError> {
        self.backoff = AFFINITY_BACKOFF;
        self.reader.put_back(message)
    }

    /// Whether a thread may wait on the connection itself, after a request from the reactor.
    pub(super) fn is_worth_pinning(&mut self) -> bool {
        match self.backoff.checked_sub(1) {
            Some(less) => {
                self.backoff = less;
                false
            }
            None => self.reader.pending().is_empty() && !self.unread && !self.hung_up,
        }
    }

    /// Whether the input holds nothing, not even a part of a message.
    pub(super) fn is_empty(&self) -> bool {
        self.reader.pending().is_empty() && !self.reader.has_fragments()
    }

    /// Leaves the beginning of a message of `total` octets to the next thread. A large frame stays
    /// here with it, and the thread gets a spare frame instead.
    fn suspend(&mut self, total: usize, frame: &mut Frame) -> Result<(), ReadError> {
        let load = &self.account.load;
        // The frame stays if its capacity is at most twice the announced size. Announced messages
        // may take no more than half of the memory of the lane.
        let stays = frame.capacity() / 2 <= total && load.has_half_for(frame.capacity());
        self.reader.suspend(frame, stays)?;
        if stays && frame.capacity() < FRAME_CAPACITY {
            *frame = load.spares.take();
        }
        self.note_kept();
        Ok(())
    }

    /// Updates the lane's accounts before the input is released. `took` says that a whole message
    /// was taken out, so the octets that wait now arrived after it.
    pub(super) fn settle(&mut self, took: bool) {
        let waiting = !self.reader.pending().is_empty();
        let has_fragments = self.reader.has_fragments();
        self.begun = match self.begun {
            Some(begun) if (waiting && !took) || self.opens => Some(begun),
            _ => waiting.then(Monotonic::now),
        };
        self.fragmented = match self.fragmented {
            Some(since) if has_fragments => Some(since),
            _ => has_fragments.then(Monotonic::now),
        };
        self.set_slow(self.begun.or(self.fragmented).is_some());
        if let Some(frame) = self.reader.take_spare(0) {
            self.account.load.spares.give(frame);
        }
        self.note_kept();
    }

    /// [Settles](Self::settle) an input whose last message is incomplete. A message older than
    /// `limit` ends the connection.
    pub(super) fn settle_incomplete(&mut self, took: bool, limit: Duration) -> Result<(), End> {
        self.settle(took);
        if self.is_late(limit) {
            Err(self.give_up(End::Late))
        } else {
            Ok(())
        }
    }

    /// Ends reading for all threads, unless the peer itself has shut down its side. Returns `end`.
    ///
    /// The kernel answers further octets of the peer with a reset only if octets are unread when
    /// the descriptor is closed. Without the reset, a peer that finds no room waits for a minute.
    pub(super) fn give_up(&mut self, end: End) -> End {
        self.closed |= end != End::Ended;
        end
    }

    /// Whether an incomplete message began longer ago than `limit`.
    pub(super) fn is_late(&self, limit: Duration) -> bool {
        let since = [self.begun, self.fragmented];
        let mut since = since.into_iter().flatten();
        since.any(|since| Monotonic::now() - since > limit)
    }

    fn set_slow(&mut self, slow: bool) {
        if self.slow != slow {
            self.slow = slow;
            self.account.load.count_slow(slow);
        }
    }

    /// Discards buffered octets, and ends reading for all threads.
    pub(super) fn discard(&mut self) {
        self.closed = true;
        self.reader.discard();
        self.settle(true);
    }

    /// Updates the number of octets that the lane counts for this input.
    pub(super) fn note_kept(&mut self) {
        self.account.set(&mut self.accounted, self.reader.kept());
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        self.set_slow(false);
        self.account.set(&mut self.accounted, 0);
    }
}

/// Messages of one connection that may be incomplete, in fragments, at a time.
const MAX_FRAGMENTED: usize = 16;
/// Requests of a connection that the reactor delivers before a thread waits on the connection
/// itself: at first, and after a message that such a thread had to put back.
const AFFINITY_BACKOFF: u32 = 8;
/// Octets of a skipped message that a thread receives before it turns to other connections.
const SKIPPED_AT_ONCE: usize = 1 << 20;
