//! When a class has something to do by itself.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use chronorb_rt::{Monotonic, PiMutex};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use super::timers::NEVER;

/// The earliest time that anything of a class is due. Its descriptor is readable from then on,
/// until it is [drained](Self::drain).
///
/// It may be too early, where what was due has become needless since: then nothing is found.
#[derive(Debug)]
pub(super) struct Alarm {
    earliest: AtomicU64,
    /// What the timer is set to. The lock makes one step of both.
    armed_for: PiMutex<u64>,
    timer: OwnedFd,
}

impl Alarm {
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self {
            earliest: AtomicU64::new(NEVER),
            armed_for: PiMutex::new(NEVER),
            timer: timerfd_create(TimerfdClockId::Monotonic, flags)?,
        })
    }

    /// Something is due at this time, in nanoseconds; [`NEVER`] is no time.
    pub(super) fn set(&self, due: u64) {
        if self.earliest.fetch_min(due, Ordering::AcqRel) <= due {
            return;
        }
        let mut armed_for = self.armed_for.lock();
        // It may be another one by now.
        let earliest = self.earliest.load(Ordering::Acquire);
        if earliest < *armed_for {
            self.arm(&mut armed_for, earliest);
        }
    }

    /// Whether it is time. Then it is set to nothing, and who is told looks at everything that may
    /// be due, and sets it anew.
    pub(super) fn rings(&self, now: Monotonic) -> bool {
        // Who finds that an earlier time is set has noted before what is due, and this has to see
        // it: a store alone could come after the look.
        self.earliest.load(Ordering::Acquire) <= now.as_nanos()
            && self.earliest.swap(NEVER, Ordering::AcqRel) != NEVER
    }

    /// Makes its descriptor unreadable, where it is readable by now. What is due has to be looked
    /// for after this.
    pub(super) fn drain(&self, now: Monotonic) {
        let mut armed_for = self.armed_for.lock();
        if *armed_for <= now.as_nanos() {
            let earliest = self.earliest.load(Ordering::Acquire);
            let is_later = earliest > now.as_nanos();
            self.arm(&mut armed_for, if is_later { earliest } else { NEVER });
        }
    }

    /// Sets the timer, which is not expired any more then. To read it would not do: it may be late
    /// by a moment.
    fn arm(&self, armed_for: &mut u64, due: u64) {
        *armed_for = due;
        let timespec = |nanos: u64| Timespec {
            tv_sec: (nanos / 1_000_000_000) as i64,
            tv_nsec: (nanos % 1_000_000_000) as _,
        };
        let once = Itimerspec {
            it_interval: timespec(0),
            // Zero disarms it.
            it_value: timespec(if due == NEVER { 0 } else { due.max(1) }),
        };
        // The time is one, and the descriptor a timer.
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once);
    }

    /// When it rings.
    #[cfg(test)]
    pub(super) fn next(&self) -> Option<Monotonic> {
        match self.earliest.load(Ordering::Acquire) {
            NEVER => None,
            at => Some(Monotonic::from_nanos(at)),
        }
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;

    const SOON: Duration = Duration::from_millis(20);

    /// Whether it becomes readable until something that is due `SOON` would have rung.
    fn becomes_readable(alarm: &Alarm) -> bool {
        let long = Timespec {
            tv_sec: 0,
            tv_nsec: 3 * SOON.as_nanos() as i64,
        };
        poll(&mut [PollFd::new(alarm, PollFlags::IN)], Some(&long)) == Ok(1)
    }

    #[test]
    fn what_is_drained_before_the_kernel_has_noticed_it_is_drained() {
        let alarm = Alarm::new().expect("a descriptor is left");
        let due = Monotonic::now() + SOON;
        alarm.set(due.as_nanos());
        // Somebody has looked at the time at that moment.
        alarm.drain(due);
        assert!(alarm.rings(due));
        assert!(!becomes_readable(&alarm));
    }

    #[test]
    fn what_is_due_later_is_told_though_it_was_set_while_an_earlier_time_was() {
        let alarm = Alarm::new().expect("a descriptor is left");
        let first = Monotonic::now() + SOON;
        alarm.set(first.as_nanos());
        // A packet was there, and who took it in has found what was due.
        assert!(alarm.rings(first));
        let second = first + Duration::from_millis(1);
        alarm.set(second.as_nanos());
        // Only then the thread that the timer has woken comes.
        alarm.drain(first);
        assert!(!alarm.rings(first));
        assert!(becomes_readable(&alarm));
        alarm.drain(second);
        assert!(alarm.rings(second));
        assert!(!becomes_readable(&alarm));
    }

    #[test]
    fn it_is_told_at_once_of_what_is_due_already() {
        let alarm = Alarm::new().expect("a descriptor is left");
        let now = Monotonic::now();
        alarm.set(now.as_nanos());
        assert!(becomes_readable(&alarm));
        alarm.drain(now);
        assert!(!becomes_readable(&alarm));
    }
}
