//! Waits on shared connections that another thread may end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chronorb_rt::{Deadline, Gate, Wake};
use chronorb_transport::IoError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::link::Link;

/// The wait of one thread for a reply on a shared connection, which another thread may end. The
/// connection goes on.
#[cfg_attr(
    not(feature = "distributable-threads"),
    expect(dead_code, reason = "nothing else ends such a wait")
)]
pub(in crate::client) struct SharedWait {
    is_interrupted: AtomicBool,
    /// Wakes the thread while it reads.
    wake: Wake,
    /// Wakes the thread while another one reads.
    waiter: Arc<Gate>,
}

#[cfg_attr(
    not(feature = "distributable-threads"),
    expect(dead_code, reason = "nothing else ends such a wait")
)]
impl SharedWait {
    /// Makes one for a thread that sleeps at a gate; `None` if there is no file descriptor left.
    pub(in crate::client) fn of(waiter: &Arc<Gate>) -> Option<Arc<Self>> {
        let wake = Wake::new().ok()?;
        Some(Arc::new(Self {
            is_interrupted: AtomicBool::new(false),
            wake,
            waiter: waiter.clone(),
        }))
    }

    /// Begins a wait, which nothing has interrupted yet.
    pub(super) fn begin(&self) {
        if self.is_interrupted.swap(false, Ordering::Relaxed) {
            self.wake.drain();
        }
    }

    /// Whether the wait is to end. It is checked after the state of the gate was read.
    pub(super) fn is_interrupted(&self) -> bool {
        self.is_interrupted.load(Ordering::Acquire)
    }

    /// Receives octets.
    ///
    /// # Errors
    /// [`IoError::WouldBlock`] if the wait is interrupted, or the deadline passes; others where the
    /// connection has ended.
    pub(super) fn recv(
        &self,
        link: &Link,
        room: &mut [u8],
        deadline: Deadline,
    ) -> Result<usize, IoError> {
        loop {
            match link.transport().try_recv(room) {
                Err(IoError::WouldBlock) => {}
                received => return received,
            }
            let left = deadline.remaining().unwrap_or_default();
            if left.is_zero() || self.is_interrupted() {
                return Err(IoError::WouldBlock);
            }
            let left = Timespec::try_from(left).ok();
            let transport = link.transport();
            let mut inputs = [
                PollFd::new(&transport, PollFlags::IN),
                PollFd::new(&self.wake, PollFlags::IN),
            ];
            // An error shows in the next turn.
            let _ = poll(&mut inputs, left.as_ref());
        }
    }
}

#[cfg(feature = "distributable-threads")]
impl crate::rtscheduling::Interrupt for SharedWait {
    fn interrupt(&self) {
        self.is_interrupted.store(true, Ordering::Release);
        self.wake.notify();
        self.waiter.advance();
    }
}
