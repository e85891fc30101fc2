//! Messages that threads leave to the thread that is sending.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::atomic::{AtomicBool, Ordering};

use chronorb_rt::PiMutex;

use super::end::LostConnection;

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
