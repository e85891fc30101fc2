//! Sleeping at a word of shared memory.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use core::time::Duration;

use chronorb_probe::{Activity, doing};
use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};
use rustix::time::Timespec;

use super::sync::AtomicU32;

/// The reason why a sleep ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Woken {
    /// The time is over.
    ByTime,
    /// The thread was woken, the word already had another value, or a signal arrived.
    Otherwise,
}

/// Sleeps as long as a word has this value and no thread wakes it.
pub(super) fn sleep(at: &AtomicU32, value: u32, time_out: Duration) -> Woken {
    let _sleeping = doing(Activity::InputOutput);
    let time_out = timespec(time_out);
    // Not a private one: the word is found by other processes in other places.
    match futex::wait(at, Flags::empty(), value, Some(&time_out)) {
        Err(Errno::TIMEDOUT) => Woken::ByTime,
        _ => Woken::Otherwise,
    }
}

/// Wakes a thread that sleeps there.
pub(super) fn wake(at: &AtomicU32) {
    let _waking = doing(Activity::InputOutput);
    // It cannot fail: the word is mapped and aligned.
    let _woken = futex::wake(at, Flags::empty(), 1);
}

/// Wakes all threads that sleep there.
pub(super) fn wake_all(at: &AtomicU32) {
    let _waking = doing(Activity::InputOutput);
    // It cannot fail: the word is mapped and aligned.
    let _woken = futex::wake(at, Flags::empty(), i32::MAX.cast_unsigned());
}

pub(super) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
