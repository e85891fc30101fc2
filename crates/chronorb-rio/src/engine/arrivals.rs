//! The notification of a listener.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use chronorb_rt::{PiMutex, Wake};

/// Notifies the thread of a listener. It knows whether it is notified, so it needs a system call
/// only for a change.
#[derive(Debug)]
pub(super) struct Arrivals {
    wake: Wake,
    /// The lock makes a change and its system call atomic.
    is_notified: PiMutex<bool>,
}

impl Arrivals {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            wake: Wake::new()?,
            is_notified: PiMutex::new(false),
        })
    }

    /// Makes the descriptor readable.
    pub(super) fn notify(&self) {
        let mut is_notified = self.is_notified.lock();
        if !*is_notified {
            self.wake.notify();
            *is_notified = true;
        }
    }

    /// Clears the notification. Connections must be looked for afterwards.
    pub(super) fn drain(&self) {
        let mut is_notified = self.is_notified.lock();
        if *is_notified {
            self.wake.drain();
            *is_notified = false;
        }
    }

    /// Returns whether the descriptor is readable.
    pub(super) fn is_notified(&self) -> bool {
        *self.is_notified.lock()
    }
}

impl AsFd for Arrivals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    #[test]
    fn the_descriptor_is_readable_while_it_is_notified() {
        let arrivals = Arrivals::new().expect("a descriptor is left");
        let is_readable = || {
            let mut fds = [PollFd::new(&arrivals, PollFlags::IN)];
            poll(&mut fds, Some(&Timespec::default())) == Ok(1)
        };
        for _ in 0..2 {
            arrivals.drain();
            assert_eq!((is_readable(), arrivals.is_notified()), (false, false));
            arrivals.notify();
            arrivals.notify();
            assert_eq!((is_readable(), arrivals.is_notified()), (true, true));
        }
    }
}
