//! Waking one chosen thread out of a wait that many threads share.
#![allow(unsafe_code)]

use core::cell::Cell;
use core::time::Duration;
use std::io;
use std::os::fd::AsFd;

use libc::{SIG_DFL, SIG_IGN, SIGURG, c_int};
use rustix::io::Errno;

use crate::sync::observer;
use crate::sync::pi_mutex::PiMutex;
use crate::sys;

/// The right to wake one chosen thread that waits on an epoll set, and no other: a kick.
///
/// A descriptor in the set wakes some thread, or all of them. A kick is a signal (`SIGURG`, which
/// is ignored by default) to one thread, whose handler does nothing: it only ends the wait.
///
/// A thread that wants to be kicked [blocks](Self::block) the signal at its start, and waits with
/// [`epoll_wait_or_kick`], which lets it through during the wait and at no other time. So a kick
/// is never lost: one that arrives before the wait ends the wait as soon as it begins. Several
/// kicks may become one, and a pending event precedes a kick. The sender must therefore store the
/// thread's work before it kicks, and the thread checks for work after each wait.
#[derive(Clone, Copy, Debug)]
pub struct Kick {
    _installed: (),
}

impl Kick {
    /// Starts to handle the signal; further calls do nothing.
    ///
    /// # Errors
    /// `AlreadyExists` where the application has a handler for `SIGURG`, which stays. An
    /// application that installs one later takes the signal over, and must leave `SA_RESTART` and
    /// the masks of threads as they are: its handler then runs on each kick.
    pub fn install() -> io::Result<Self> {
        static INSTALLED: PiMutex<bool> = PiMutex::new(false);
        let mut installed = INSTALLED.lock();
        if !*installed {
            let present = sys::disposition(SIGURG)?;
            if present != SIG_DFL && present != SIG_IGN {
                return Err(io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    "the application handles SIGURG itself, by which threads are woken",
                ));
            }
            // SAFETY: the handler does nothing.
            unsafe { sys::catch_signal(SIGURG, on_kick, false) }?;
            *installed = true;
        }
        Ok(Self { _installed: () })
    }

    /// Makes the calling thread one that can be kicked, for the rest of its life.
    ///
    /// It blocks `SIGURG` outside of [`epoll_wait_or_kick`]. Threads and programs that this thread
    /// starts inherit that.
    pub fn block(self) {
        LET_THROUGH.set(Some(sys::block_signal(SIGURG)));
    }

    /// Unblocks kicks on the calling thread, which has called [`block`](Self::block), until
    /// [`hold_off`](Self::hold_off): for waits that take no mask. A kick interrupts the wait, or
    /// restarts it where the kernel does that (`SA_RESTART`).
    pub fn let_through(self) {
        sys::change_signal(SIGURG, libc::SIG_UNBLOCK);
    }

    /// Ends [`let_through`](Self::let_through).
    pub fn hold_off(self) {
        sys::change_signal(SIGURG, libc::SIG_BLOCK);
    }

    /// Kicks the thread `tid` of this process, by the kernel's thread id: its present wait on an
    /// epoll set ends, or its next one does. Never blocks; one system call or two.
    ///
    /// Returns whether there is such a thread. For one that has not called [`block`](Self::block)
    /// the kick is lost, and harmless.
    pub fn send(self, tid: u32) -> bool {
        let _waking = observer::begin();
        match i32::try_from(tid) {
            Ok(tid) if tid > 0 => sys::signal_thread(tid, SIGURG).is_ok(),
            _ => false,
        }
    }
}

/// Waits for one event of the epoll set `set`, or for a [`Kick`] if the calling thread has called
/// [`Kick::block`]. Returns the event's flags and data, as `epoll_wait` gives them; `None` when
/// `time_out` is over, and for a kick or any other signal. `None` waits as long as it takes.
///
/// An event that is there comes before a kick, which then ends the next wait; a wait of
/// [`Duration::ZERO`] takes no kick.
///
/// Where `epoll_pwait2` is missing, as under an emulator, the time is rounded up to milliseconds.
///
/// # Errors
/// Where `set` is not an epoll set.
pub fn epoll_wait_or_kick(
    set: impl AsFd,
    time_out: Option<Duration>,
) -> io::Result<Option<(u32, u64)>> {
    let mask = LET_THROUGH.get();
    match sys::epoll_wait(set.as_fd(), time_out, mask.as_ref()) {
        Err(Errno::INTR) => Ok(None),
        other => Ok(other?),
    }
}

extern "C" fn on_kick(_signal: c_int) {}

thread_local! {
    /// The signal mask of the thread while it waits.
    static LET_THROUGH: Cell<Option<libc::sigset_t>> = const { Cell::new(None) };
}
