//! The input of a connection: what was received beyond whole messages.

use std::sync::Arc;
use std::time::Duration;

use chronorb_cdr::{CdrError, Frame};
use chronorb_giop::fragments::{Limits, Reassembly};
use chronorb_rt::Monotonic;

use super::connection::Gone;
use super::intake::End;
use super::load::Account;

/// What was received and is not a whole message yet, or not the first of several.
pub(super) struct Input {
    /// Its bound is the lane's, see [`account`](Self::account).
    pending: Frame,
    /// Where the next message begins in `pending`.
    start: usize,
    /// Why the message at the start of `pending` is being skipped.
    pub(super) skipping: Option<CdrError>,
    /// Octets of it that were thrown away.
    pub(super) skipped: usize,
    /// A thread is receiving into the frame that was `pending`, and `pending` is its own, empty.
    exchanged: bool,
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
    pub(super) fragments: Reassembly,
    /// Requests that the set still has to bring before a thread may stay with the connection.
    pub(super) reluctance: u32,
    accounted: usize,
    account: Arc<Account>,
}

impl Input {
    pub(super) fn new(account: Arc<Account>, opens: bool, idle_timeout: Option<Duration>) -> Self {
        let mut this = Self {
            pending: Frame::new(0, usize::MAX),
            start: 0,
            skipping: None,
            skipped: 0,
            exchanged: false,
            unread: true,
            hung_up: false,
            closed: false,
            begun: None,
            fragmented: None,
            slow: false,
            fragments: Reassembly::new(Limits {
                messages: MAX_FRAGMENTED,
                bytes: account.load.max_message,
            }),
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
    pub(super) fn put_back(&mut self, message: &Frame) -> Result<(), Gone> {
        let mut pending = Frame::new(message.len() + self.pending().len(), usize::MAX);
        for octets in [message.as_slice(), self.pending()] {
            pending.extend_from_slice(octets).map_err(|_| Gone)?;
        }
        self.pending = pending;
        self.start = 0;
        self.reluctance = RELUCTANCE;
        Ok(())
    }

    /// Whether a thread may stay with the connection, after a request that the set brought.
    pub(super) fn is_worth_staying(&mut self) -> bool {
        match self.reluctance.checked_sub(1) {
            Some(less) => {
                self.reluctance = less;
                false
            }
            None => self.pending().is_empty() && !self.unread && !self.hung_up,
        }
    }

    /// Whether nothing waits, not even a part of a message.
    pub(super) fn is_empty(&self) -> bool {
        self.pending().is_empty() && self.fragments.octets() == 0
    }

    /// The octets that wait.
    pub(super) fn pending(&self) -> &[u8] {
        &self.pending.as_slice()[self.start..]
    }

    /// Moves the first `len` octets that wait, a whole message, into `frame`.
    pub(super) fn take(&mut self, len: usize, frame: &mut Frame) -> Result<(), Gone> {
        frame
            .extend_from_slice(&self.pending()[..len])
            .map_err(|_| Gone)?;
        self.advance(len);
        Ok(())
    }

    /// Brings what waits, the beginning of a message, into `frame`, where its rest is received.
    pub(super) fn resume(&mut self, frame: &mut Frame) -> Result<(), Gone> {
        if self.start > 0 {
            return self.take(self.pending().len(), frame);
        }
        std::mem::swap(frame, &mut self.pending);
        self.exchanged = true;
        Ok(())
    }

    /// Takes back what [`resume`](Self::resume) brought, with what came to it: a part of a message
    /// of `total` octets.
    pub(super) fn suspend(&mut self, total: usize, frame: &mut Frame) -> Result<(), Gone> {
        if self.exchanged {
            self.exchanged = false;
            std::mem::swap(frame, &mut self.pending);
        } else if self.may_part_with(frame, total) {
            self.pending = std::mem::replace(frame, self.account.load.spares.take());
        } else {
            self.pending
                .extend_from_slice(frame.as_slice())
                .map_err(|_| Gone)?;
            frame.clear();
        }
        self.note_kept();
        Ok(())
    }

    /// `frame` has a whole message of `len` octets now, and keeps it; what comes after it waits.
    pub(super) fn complete(&mut self, len: usize, frame: &mut Frame) -> Result<(), Gone> {
        if std::mem::take(&mut self.exchanged) && len <= EXCHANGED_FROM {
            // A small message does not cost the thread its own frame.
            self.pending
                .extend_from_slice(&frame.as_slice()[..len])
                .map_err(|_| Gone)?;
            std::mem::swap(frame, &mut self.pending);
            self.advance(len);
            return Ok(());
        }
        self.pending
            .extend_from_slice(&frame.as_slice()[len..])
            .map_err(|_| Gone)?;
        frame.truncate(len);
        Ok(())
    }

    /// Brings the lane's books up to date, before the input is let go. `took` says that a whole
    /// message was taken out, so that what waits now began after it.
    pub(super) fn settle(&mut self, took: bool) {
        let waiting = !self.pending().is_empty();
        self.begun = match self.begun {
            Some(begun) if (waiting && !took) || self.opens => Some(begun),
            _ => waiting.then(Monotonic::now),
        };
        self.fragmented = match self.fragmented {
            Some(since) if self.fragments.octets() > 0 => Some(since),
            _ => (self.fragments.octets() > 0).then(Monotonic::now),
        };
        self.set_slow(self.begun.or(self.fragmented).is_some());
        if !waiting && self.pending.capacity() > 0 {
            let frame = std::mem::replace(&mut self.pending, Frame::new(0, usize::MAX));
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

    /// The first `len` octets that wait do so no longer.
    fn advance(&mut self, len: usize) {
        self.start += len;
        if self.start == self.pending.len() {
            self.pending.clear();
            self.start = 0;
        }
    }

    /// Whether a thread's frame may stay here until the rest of a message is there. It is larger
    /// than what has arrived, but not than twice what was promised, and such promises do not take
    /// more than half of what the lane may keep.
    fn may_part_with(&self, frame: &Frame, total: usize) -> bool {
        frame.capacity() / 2 <= total && self.account.load.has_half_for(frame.capacity())
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
        self.pending = Frame::new(0, usize::MAX);
        self.start = 0;
        let bytes = self.account.load.max_message;
        self.fragments = Reassembly::new(Limits {
            messages: MAX_FRAGMENTED,
            bytes,
        });
        self.settle(true);
    }

    /// Tells the lane how much is kept here.
    fn note_kept(&mut self) {
        let octets = self.pending.capacity() + self.fragments.octets();
        self.account.set(&mut self.accounted, octets);
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
/// Above this a whole message changes hands by exchanging frames, not by copying.
const EXCHANGED_FROM: usize = 64 << 10;
/// Requests of a connection that the set brings before a thread stays with it, at first and after
/// a message that is not for the thread that stays.
const RELUCTANCE: u32 = 8;
