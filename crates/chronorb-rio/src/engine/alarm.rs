//! The time at which a class has work without a packet.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use chronorb_rt::{Monotonic, PiMutex};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use super::timers::NEVER;

/// The earliest time at which any part of a class is due. Its descriptor is readable from then
/// until it is [drained](Self::drain).
///
/// It may fire early if the work has become unnecessary since. Then the step finds nothing.
#[derive(Debug)]
pub(super) struct Alarm {
    earliest: AtomicU64,
    /// Whether a thread checks the time before it, or another one, waits for the timer.
    is_deferred: AtomicBool,
    /// The time that the timer is armed for. The lock makes arming and recording atomic.
    armed_for: PiMutex<u64>,
    timer: OwnedFd,
}

impl Alarm {
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self {
            earliest: AtomicU64::new(NEVER),
            is_deferred: AtomicBool::new(false),
            armed_for: PiMutex::new(NEVER),
            timer: timerfd_create(TimerfdClockId::Monotonic, flags)?,
        })
    }

    /// Records that work is due at this time, in nanoseconds; [`NEVER`] means no time.
    pub(super) fn set(&self, due: u64) {
        if self.earliest.fetch_min(due, Ordering::SeqCst) <= due {
            return;
        }
        // The one side sets the time and then reads the flag, the other clears the flag and then
        // reads the time, so at least one of them arms the timer (Dekker).
        if !self.is_deferred.load(Ordering::SeqCst) {
            self.arm_for_earliest();
        }
    }

    /// Leaves the timer as it is until [`resume`](Self::resume). The thread that calls this must do
    /// so before it, or another thread in its place, waits for the descriptor.
    pub(super) fn defer(&self) {
        self.is_deferred.store(true, Ordering::SeqCst);
    }

    /// Arms the timer for what was set meanwhile.
    pub(super) fn resume(&self) {
        if self.is_deferred.swap(false, Ordering::SeqCst) {
            self.arm_for_earliest();
        }
    }

    fn arm_for_earliest(&self) {
        let mut armed_for = self.armed_for.lock();
        // Another thread may have changed it.
        let earliest = self.earliest.load(Ordering::SeqCst);
        if earliest < *armed_for {
            self.arm(&mut armed_for, earliest);
        }
    }

    /// Returns whether the time has come, and leaves the alarm as it is.
    pub(super) fn is_due(&self, now: Monotonic) -> bool {
        self.earliest.load(Ordering::Acquire) <= now.as_nanos()
    }

    /// Returns whether the time has come. In that case the alarm is cleared; the caller checks all
    /// times and sets it again.
    pub(super) fn rings(&self, now: Monotonic) -> bool {
        // A thread that finds an earlier time set has recorded its own time before, and this
        // read-modify-write has to observe that. A plain store could be ordered after the check.
        self.is_due(now) && self.earliest.swap(NEVER, Ordering::AcqRel) != NEVER
    }

    /// Makes the descriptor unreadable if it is readable. The caller must check for due work
    /// afterwards.
    pub(super) fn drain(&self, now: Monotonic) {
        let mut armed_for = self.armed_for.lock();
        if *armed_for <= now.as_nanos() {
            let earliest = self.earliest.load(Ordering::Acquire);
            let is_later = earliest > now.as_nanos();
            self.arm(&mut armed_for, if is_later { earliest } else { NEVER });
        }
    }

    /// Arms the timer, which is not expired then. Reading the timer instead would not do, because
    /// it may expire a moment late.
    fn arm(&self, armed_for: &mut u64, due: u64) {
        *armed_for = due;
        let timespec = |nanos: u64| Timespec {
            tv_sec: (nanos / 1_000_000_000) as i64,
            tv_nsec: (nanos % 1_000_000_000) as _,
        };
        let once = Itimerspec {
            it_interval: timespec(0),
            // Zero disarms the timer.
            it_value: timespec(if due == NEVER { 0 } else { due.max(1) }),
        };
        // Cannot fail: the time is valid, and the descriptor is a timer.
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once);
    }

    /// Returns the time at which the alarm fires.
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

    /// Waits for three times `SOON`. Returns whether the timer's descriptor became readable.
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
        // Another thread has checked the time at that moment.
        alarm.drain(due);
        assert!(alarm.rings(due));
        assert!(!becomes_readable(&alarm));
    }

    #[test]
    fn what_is_due_later_is_told_though_it_was_set_while_an_earlier_time_was() {
        let alarm = Alarm::new().expect("a descriptor is left");
        let first = Monotonic::now() + SOON;
        alarm.set(first.as_nanos());
        // A packet arrived, and the thread that processed it has found the due work.
        assert!(alarm.rings(first));
        let second = first + Duration::from_millis(1);
        alarm.set(second.as_nanos());
        // Only now the thread that the timer has woken runs.
        alarm.drain(first);
        assert!(!alarm.rings(first));
        assert!(becomes_readable(&alarm));
        alarm.drain(second);
        assert!(alarm.rings(second));
        assert!(!becomes_readable(&alarm));
    }

    #[test]
    fn a_timer_that_is_put_off_is_armed_once_for_the_time_that_is_left() {
        let alarm = Alarm::new().expect("a descriptor is left");
        let armed_for = || *alarm.armed_for.lock();
        let first = Monotonic::now() + SOON;
        alarm.defer();
        alarm.set(first.as_nanos());
        assert_eq!(armed_for(), NEVER);
        // The thread that has put it off has done the work.
        assert!(alarm.rings(first));
        let second = first + SOON;
        alarm.set(second.as_nanos());
        assert_eq!(armed_for(), NEVER);
        alarm.resume();
        assert_eq!(armed_for(), second.as_nanos());
        assert!(becomes_readable(&alarm));
        alarm.set(first.as_nanos());
        assert_eq!(armed_for(), first.as_nanos(), "it is armed at once again");
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
