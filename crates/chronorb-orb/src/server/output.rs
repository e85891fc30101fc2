//! The output of a connection: replies that its peer has not taken yet, and messages that threads
//! leave to the thread that is sending.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chronorb_cdr::Frame;
use chronorb_rt::{Deadline, Monotonic, PiMutex};
use chronorb_transport::{Connection, IoError, unsent};

use super::end::LostConnection;
use super::load::Account;

/// Replies that the peer has not taken yet.
pub(super) struct Output {
    /// The octets to send, in one of the lane's spare frames while any wait.
    pending: Frame,
    /// The number of octets of `pending` that have been sent.
    sent: usize,
    /// Memory for messages that other threads [post](PostedMessages).
    pub(super) spare: Vec<u8>,
    accounted: usize,
    /// The time since which the peer has taken less than the least rate permits; `None` where
    /// nothing waits. The connection then counts as slow.
    stalled: Option<Monotonic>,
    account: Arc<Account>,
}

impl Output {
    pub(super) fn new(account: Arc<Account>) -> Self {
        Self {
            pending: Frame::new(0, usize::MAX),
            sent: 0,
            spare: Vec::new(),
            accounted: 0,
            stalled: None,
            account,
        }
    }

    /// Whether anything waits.
    pub(super) fn waits(&self) -> bool {
        !self.pending.is_empty()
    }

    fn waiting(&self) -> &[u8] {
        &self.pending.as_slice()[self.sent..]
    }

    /// Sends a message where nothing waits. Keeps the octets that the transport does not take, and
    /// returns whether it took all.
    #[inline]
    pub(super) fn begin(
        &mut self,
        transport: &dyn Connection,
        message: &[u8],
    ) -> Result<bool, LostConnection> {
        let sent = or_nothing(transport.try_send(message))?;
        if sent == message.len() {
            return Ok(true);
        }
        let rest = IoSlice::new(&message[sent..]);
        self.write(transport, &[rest]).map(|()| !self.waits())
    }

    /// Sends waiting octets and then those of slices, one after the other, until the transport
    /// takes no more, because only then does it report room again. Keeps the octets that it does
    /// not take.
    pub(super) fn write(
        &mut self,
        transport: &dyn Connection,
        slices: &[IoSlice<'_>],
    ) -> Result<(), LostConnection> {
        let moved = self.push(transport)?;
        let len: usize = slices.iter().map(|slice| slice.len()).sum();
        let mut sent = 0;
        while sent < len && !self.waits() {
            match or_nothing(transport.try_send_slices(slices, sent))? {
                0 => break,
                more => sent += more,
            }
        }
        for rest in unsent(slices, sent) {
            self.keep(rest)?;
        }
        self.settle(moved + sent);
        Ok(())
    }

    /// Sends waiting octets until the transport takes no more, because only then does it report
    /// room again. Returns the number of octets sent.
    fn push(&mut self, transport: &dyn Connection) -> Result<usize, LostConnection> {
        let mut moved = 0;
        while self.waits() {
            let sent = or_nothing(transport.try_send(self.waiting()))?;
            if sent == 0 {
                break;
            }
            self.forget(sent);
            moved += sent;
        }
        Ok(moved)
    }

    /// Sends the waiting octets, blocking until the deadline.
    pub(super) fn drain(&mut self, transport: &dyn Connection, deadline: Deadline) {
        if self.waits() && transport.send_all(self.waiting(), deadline).is_ok() {
            self.forget(self.waiting().len());
        }
    }

    /// Discards the waiting octets.
    pub(super) fn discard(&mut self) {
        self.forget(self.waiting().len());
        self.settle(0);
    }

    /// Whether the peer has taken nothing, or too little, for longer than `limit`.
    pub(super) fn is_late(&self, limit: Duration) -> bool {
        self.stalled
            .is_some_and(|stalled| Monotonic::now() - stalled > limit)
    }

    /// Updates the accounts after the peer has taken this number of octets.
    fn settle(&mut self, moved: usize) {
        match (self.waits(), self.stalled) {
            (true, None) => {
                self.stalled = Some(Monotonic::now());
                self.account.load.count_slow(true);
            }
            (true, Some(stalled)) if moved > 0 => {
                let now = Monotonic::now();
                let paid = match self.account.load.least_rate {
                    0 => now,
                    rate => stalled + Duration::from_secs(moved as u64) / rate,
                };
                self.stalled = Some(paid.min(now));
            }
            (false, Some(_)) => {
                self.stalled = None;
                self.account.load.count_slow(false);
            }
            _ => {}
        }
    }

    fn keep(&mut self, octets: &[u8]) -> Result<(), LostConnection> {
        if self.pending.capacity() == 0 {
            self.pending = self.account.load.spares.take();
        } else if self.sent > self.pending.len() / 2 {
            self.pending.remove_first(self.sent);
            self.sent = 0;
        }
        let len = self.pending.len() + octets.len();
        self.account.set(&mut self.accounted, len);
        self.pending
            .extend_from_slice(octets)
            .map_err(|_| LostConnection)
    }

    fn forget(&mut self, sent: usize) {
        self.sent += sent;
        if self.sent < self.pending.len() {
            return;
        }
        self.sent = 0;
        if self.pending.capacity() > 0 {
            let frame = std::mem::replace(&mut self.pending, Frame::new(0, usize::MAX));
            self.account.load.spares.give(frame);
        }
        self.account.set(&mut self.accounted, 0);
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.discard();
    }
}

/// The messages of threads that found the output of a connection taken.
pub(super) struct PostedMessages {
    octets: PiMutex<Vec<u8>>,
    /// Whether there are any, to be read without the lock.
    any: AtomicBool,
    /// The most octets that wait at a time.
    max: usize,
}

impl PostedMessages {
    pub(super) fn new(max: usize) -> Self {
        Self {
            octets: PiMutex::new(Vec::new()),
            any: AtomicBool::new(false),
            max,
        }
    }

    /// Whether there are any messages.
    pub(super) fn any(&self) -> bool {
        self.any.load(Ordering::SeqCst)
    }

    /// Adds a message.
    ///
    /// # Errors
    /// [`LostConnection`] where the bound is exceeded, or no memory is left.
    pub(super) fn post(&self, message: &[u8]) -> Result<(), LostConnection> {
        let mut octets = self.octets.lock();
        if octets.len() + message.len() > self.max {
            return Err(LostConnection);
        }
        octets
            .try_reserve(message.len())
            .map_err(|_| LostConnection)?;
        octets.extend_from_slice(message);
        self.any.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Takes all messages. `spare` replaces their memory, so that further ones need no allocation.
    pub(super) fn take(&self, mut spare: Vec<u8>) -> Vec<u8> {
        spare.clear();
        let mut octets = self.octets.lock();
        self.any.store(false, Ordering::SeqCst);
        std::mem::replace(&mut *octets, spare)
    }
}

/// Keeps the memory of messages that were sent, unless it is large.
pub(super) fn spare_of(sent: Vec<u8>) -> Vec<u8> {
    if sent.capacity() <= KEPT_CAPACITY {
        sent
    } else {
        Vec::new()
    }
}

/// The octets of memory that a connection keeps for further messages, twice.
const KEPT_CAPACITY: usize = 4 << 10;

/// The number of octets that the transport took; 0 if it would block.
fn or_nothing(sent: Result<usize, IoError>) -> Result<usize, LostConnection> {
    match sent {
        Ok(n) => Ok(n),
        Err(IoError::WouldBlock) => Ok(0),
        Err(_) => Err(LostConnection),
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests may allocate")]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_messages_is_used_again() {
        let posted = PostedMessages::new(8);
        let (mut spare, mut addresses) = (Vec::new(), [std::ptr::null(); 4]);
        for address in &mut addresses {
            assert_eq!(posted.post(b"message"), Ok(()));
            assert!(posted.any());
            let taken = posted.take(spare);
            assert!(!posted.any() && taken == b"message");
            *address = taken.as_ptr();
            spare = spare_of(taken);
        }
        assert_eq!(addresses[..2], addresses[2..], "two of them take turns");
    }

    #[test]
    fn great_messages_leave_no_memory_behind() {
        assert_eq!(
            spare_of(Vec::with_capacity(KEPT_CAPACITY + 1)).capacity(),
            0
        );
    }

    #[test]
    fn no_more_wait_than_may() {
        let posted = PostedMessages::new(8);
        assert_eq!(posted.post(b"message"), Ok(()));
        assert_eq!(posted.post(b"no"), Err(LostConnection));
        assert_eq!(posted.take(Vec::new()), b"message");
        assert_eq!(posted.post(b"again"), Ok(()));
    }
}
