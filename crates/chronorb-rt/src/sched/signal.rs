//! The signals that ask a program to end.
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicBool, Ordering};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;

use libc::{SIGHUP, SIGINT, SIGTERM, c_int};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::sync::pi_mutex::PiMutex;
use crate::sync::wake::Wake;
use crate::sys;
use crate::time::clock::Deadline;

/// The request to end the program, by `SIGINT` or `SIGTERM`.
///
/// There is one in a process. A request stays: once made, every thread that checks or waits sees
/// it. After the first `SIGINT` a second one has its default action, so that a program that hangs
/// can still be ended from its terminal.
#[derive(Debug)]
pub struct Termination {
    requested: AtomicBool,
    wake: Wake,
}

impl Termination {
    /// Starts to catch the two signals; further calls return the same object.
    ///
    /// # Errors
    /// The event descriptor cannot be made, or the system refuses the handlers.
    pub fn install() -> io::Result<&'static Self> {
        static CAUGHT: PiMutex<bool> = PiMutex::new(false);
        let mut caught = CAUGHT.lock();
        if TERMINATION.get().is_none() {
            let made = Self {
                requested: AtomicBool::new(false),
                wake: Wake::new()?,
            };
            let _first = TERMINATION.set(made);
        }
        if !*caught {
            // SAFETY: the handler loads and stores atomics and writes to a descriptor.
            unsafe { sys::catch_signal(SIGINT, on_signal, true) }?;
            // SAFETY: as above.
            unsafe { sys::catch_signal(SIGTERM, on_signal, false) }?;
            *caught = true;
        }
        TERMINATION.get().ok_or_else(|| io::ErrorKind::Other.into())
    }

    /// Whether a signal has arrived. Makes no system call.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.requested.load(Ordering::Acquire)
    }

    /// Waits for a signal, at most until `deadline`, and returns whether one has arrived.
    ///
    /// The main thread of a server, which has nothing else to do, may wait without a deadline.
    pub fn wait(&self, deadline: Option<Deadline>) -> bool {
        while !self.requested() {
            let timeout = match deadline.map(Deadline::remaining) {
                None => None,
                Some(Some(left)) => Timespec::try_from(left).ok(),
                Some(None) => return false,
            };
            let mut fds = [PollFd::new(&self.wake, PollFlags::IN)];
            match poll(&mut fds, timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => unreachable!("poll of one own descriptor: {error}"),
            }
        }
        true
    }

    /// Returns a descriptor that is readable once a signal has arrived, for `poll` and `epoll`. It
    /// must not be read.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

/// Keeps the process running at `SIGHUP`, from now on. The kernel sends it when the terminal goes
/// away, and to a stopped process group whose parent ends.
///
/// # Errors
/// The system refuses the handler.
pub fn survive_hang_up() -> io::Result<()> {
    // SAFETY: the handler does nothing.
    unsafe { sys::catch_signal(SIGHUP, on_hang_up, false) }?;
    Ok(())
}

/// A handler, and not `SIG_IGN`, which programs that are started would inherit.
extern "C" fn on_hang_up(_signal: c_int) {}

static TERMINATION: OnceLock<Termination> = OnceLock::new();

extern "C" fn on_signal(_signal: c_int) {
    if let Some(termination) = TERMINATION.get() {
        termination.requested.store(true, Ordering::Release);
        termination.wake.notify();
    }
}
