//! Sleeping at a word of shared memory.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use core::num::NonZeroU32;
use core::time::Duration;

use chronorb_probe::{Activity, doing};
use chronorb_rt::Deadline;
use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};
use rustix::time::Timespec;

use super::sync::{AtomicU32, Ordering};

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

/// Sleeps as [`sleep`] does, among threads that wake each other. Returns whether the time is over.
///
/// A thread that was woken wakes two others that sleep at other values than the present one, so one
/// wake-up reaches all of them. The value of a thread that sleeps again is the present one, so
/// nothing goes round in a circle.
pub(super) fn sleep_in_chain(at: &AtomicU32, value: u32, time_out: Duration) -> Woken {
    let _sleeping = doing(Activity::InputOutput);
    let end = Deadline::after(time_out).instant().as_nanos();
    let end = timespec(Duration::from_nanos(end));
    match futex::wait_bitset(at, Flags::empty(), value, Some(&end), class(value)) {
        Ok(()) => {
            wake_others(at, 2);
            Woken::Otherwise
        }
        Err(Errno::TIMEDOUT) => Woken::ByTime,
        Err(_) => Woken::Otherwise,
    }
}

/// Wakes at most so many of the threads that sleep [in a chain](sleep_in_chain) at other values
/// than the present one.
pub(super) fn wake_others(at: &AtomicU32, most: u32) {
    let _waking = doing(Activity::InputOutput);
    let others = !class(at.load(Ordering::Relaxed)).get();
    // Neither half of a class is the other one, so there are others.
    let others = NonZeroU32::new(others).unwrap_or(NonZeroU32::MAX);
    // It cannot fail: the word is mapped and aligned.
    let _woken = futex::wake_bitset(at, Flags::empty(), most, others);
}

/// The bits by which the kernel tells values apart whose lower halves differ: a thread is woken if
/// one of its bits is among those of the waker. A class has a bit outside of each other one.
const fn class(value: u32) -> NonZeroU32 {
    let low = value & 0xffff;
    NonZeroU32::new(low | !low << 16).expect("one half has the bits that the other one has not")
}

pub(super) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::class;

    #[test]
    fn a_class_is_no_part_of_another() {
        let values = [0, 1, 2, 3, 0xff, 0x100, 0x7fff, 0x8000, 0xfffe, 0xffff];
        for value in values {
            for other in values {
                let is_woken = class(value).get() & !class(other).get() != 0;
                assert_eq!(is_woken, value != other, "{value} {other}");
            }
        }
    }
}
