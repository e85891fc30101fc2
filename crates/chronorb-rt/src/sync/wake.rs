//! A wake-up through a file descriptor.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, read, write};

use crate::sync::observer;

/// Wakes a thread that waits in `poll` or `epoll`: an event descriptor (`eventfd`).
///
/// The descriptor is readable from [`notify`](Self::notify) to [`drain`](Self::drain). It is
/// non-blocking and closed on `exec`.
#[derive(Debug)]
pub struct Wake {
    event: OwnedFd,
}

impl Wake {
    /// Makes the descriptor.
    ///
    /// # Errors
    /// The process or the system has no file descriptor left, or no memory.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { event })
    }

    /// Makes the descriptor readable. Never blocks; allowed in a signal handler.
    pub fn notify(&self) {
        let _waking = observer::begin();
        // `EAGAIN` means a counter at its maximum, which is readable already.
        while write(&self.event, &1_u64.to_ne_bytes()) == Err(Errno::INTR) {}
    }

    /// Clears all notifications and returns whether there were any. Never blocks.
    pub fn drain(&self) -> bool {
        let _looking = observer::begin();
        let mut count = [0; 8];
        loop {
            match read(&self.event, &mut count) {
                Ok(_) => return true,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    fn is_readable(wake: &Wake) -> bool {
        let mut fds = [PollFd::new(wake, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).unwrap() == 1
    }

    #[test]
    fn readable_from_the_first_notification_to_the_drain() {
        let wake = Wake::new().unwrap();
        assert!(!is_readable(&wake));
        wake.notify();
        wake.notify();
        assert!(is_readable(&wake));
        assert!(wake.drain());
        assert!(!is_readable(&wake));
        assert!(!wake.drain());
    }
}
