//! The input of a connection: its reader of messages, and what the lane has to know of it.

use std::sync::Arc;
use std::time::Duration;

use chronorb_cdr::Frame;
use chronorb_giop::connection::{Bounds, MessageReader, ReadError};
use chronorb_rt::Monotonic;

use super::end::End;
use super::load::Account;
use super::spares::FRAME_CAPACITY;

/// What was received and is not a whole message yet, or not the first of several.
pub(super) struct Input {
    /// What waits in it is bounded by the lane, see [`account`](Self::account).
    pub(super) reader: MessageReader,
    /// Octets may be waiting in the transport: the last read filled its room, or nobody has looked yet.
    pub(super) unread: bool,
    /// The peer has ended its side, so that every read must be followed by another to the end.
    pub(super) hung_up: bool,
    /// Nothing more is read.
    pub(super) closed: bool,
    /// The connection still has to agree with its peer on something before messages can come.
    pub(super) opens: bool,
    /// After how long without a message the connection is closed.
    pub(super) idle_timeout: Option<Duration>,
    /// Since when an incomplete message waits for its rest, or the connection opens.
    begun: Option<Monotonic>,
    /// Since when a message in fragments waits for its rest.
    fragmented: Option<Monotonic>,
    /// Counted among the lane's slow ones.
    slow: bool,
    /// Requests that the set still has to bring before a thread may stay with the connection.
    pub(super) reluctance: u32,
    accounted: usize,
    account: Arc<Account>,
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
            begun: None,
            fragmented: None,
            slow: false,
            reluctance: RELUCTANCE,
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

    /// Puts a message that was taken back in front of what waits.
    pub(super) fn put_back(&mut self, message: &Frame) -> Result<(), ReadError> {
        self.reluctance = RELUCTANCE;
        self.reader.put_back(message)
    }

    /// Whether a thread may stay with the connection, after a request that the set brought.
    pub(super) fn is_worth_staying(&mut self) -> bool {
        match self.reluctance.checked_sub(1) {
            Some(less) => {
                self.reluctance = less;
                false
            }
            None => self.reader.pending().is_empty() && !self.unread && !self.hung_up,
        }
    }

    /// Whether nothing waits, not even a part of a message.
    pub(super) fn is_empty(&self) -> bool {
        self.reader.pending().is_empty() && !self.reader.has_fragments()
    }

    /// Leaves the beginning of a message of `total` octets to the next thread. A large frame stays
    /// here with it, and the thread gets a spare one.
    pub(super) fn suspend(&mut self, total: usize, frame: &mut Frame) -> Result<(), ReadError> {
        let load = &self.account.load;
        // The frame is larger than what has arrived, but not than twice what was promised, and such
        // promises do not take more than half of what the lane may keep.
        let stays = frame.capacity() / 2 <= total && load.has_half_for(frame.capacity());
        self.reader.suspend(frame, stays)?;
        if stays && frame.capacity() < FRAME_CAPACITY {
            *frame = load.spares.take();
        }
        self.note_kept();
        Ok(())
    }

    /// Brings the lane's books up to date, before the input is let go. `took` says that a whole
    /// message was taken out, so that what waits now began after it.
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

    /// [Settles](Self::settle) an input whose last message is incomplete. A message that was begun
    /// longer ago than `limit` ends the connection.
    pub(super) fn settle_incomplete(&mut self, took: bool, limit: Duration) -> Result<(), End> {
        self.settle(took);
        match self.is_late(limit) {
            true => Err(self.give_up(End::Late)),
            false => Ok(()),
        }
    }

    /// Ends reading for all threads, unless the peer itself has ended its side. Returns `end`.
    ///
    /// The kernel answers a peer that sends on with a reset only if octets are unread when the
    /// descriptor is closed. Without the reset, a peer that finds no room to send waits for a minute.
    pub(super) fn give_up(&mut self, end: End) -> End {
        self.closed |= end != End::Ended;
        end
    }

    /// Whether a message was begun longer ago than `limit`.
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

    /// Throws away what waits, and ends reading for all threads.
    pub(super) fn discard(&mut self) {
        self.closed = true;
        self.reader.discard();
        self.settle(true);
    }

    /// Tells the lane how much is kept here.
    fn note_kept(&mut self) {
        self.account.set(&mut self.accounted, self.reader.kept());
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        self.set_slow(false);
        self.account.set(&mut self.accounted, 0);
    }
}

/// Messages of one connection that may be in fragments at a time.
const MAX_FRAGMENTED: usize = 16;
/// Requests of a connection that the set brings before a thread stays with it, at first and after
/// a message that is not for the thread that stays.
const RELUCTANCE: u32 = 8;
