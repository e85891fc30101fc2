//! When a class has something to do by itself.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use chronorb_rt::Monotonic;
use rustix::io::read;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// The earliest time that anything of a class is due. Its descriptor is readable from then on, until it is
/// [drained](Self::drain).
///
/// It may be too early, where what was due has become needless since: then nothing is found.
#[derive(Debug)]
pub(super) struct Alarm {
    earliest: AtomicU64,
    timer: OwnedFd,
    /// What the timer was last set to.
    armed_for: AtomicU64,
}

impl Alarm {
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self {
            earliest: AtomicU64::new(u64::MAX),
            timer: timerfd_create(TimerfdClockId::Monotonic, flags)?,
            armed_for: AtomicU64::new(u64::MAX),
        })
    }

    /// Something is due at this time, in nanoseconds.
    pub(super) fn set(&self, mut due: u64) {
        if self.earliest.fetch_min(due, Ordering::AcqRel) <= due {
            return;
        }
        loop {
            let timespec = |nanos: u64| Timespec {
                tv_sec: (nanos / 1_000_000_000) as i64,
                tv_nsec: (nanos % 1_000_000_000) as _,
            };
            let once = Itimerspec {
                it_interval: timespec(0),
                // Zero would disarm it.
                it_value: timespec(due.max(1)),
            };
            // The time is one, and the descriptor a timer.
            let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once);
            self.armed_for.store(due, Ordering::Release);
            // Another thread may have set it to an earlier time, and then lost it to this one.
            let earliest = self.earliest.load(Ordering::Acquire);
            if earliest >= due {
                return;
            }
            due = earliest;
        }
    }

    /// Whether it is time. Then it is set to nothing, and who is told looks at everything that may be due, and sets it
    /// anew.
    pub(super) fn rings(&self, now: Monotonic) -> bool {
        let is_time = self.earliest.load(Ordering::Acquire) <= now.as_nanos();
        if is_time {
            self.earliest.store(u64::MAX, Ordering::Release);
        }
        is_time
    }

    /// Makes its descriptor unreadable, where it is readable by now. What is due has to be looked for after this.
    pub(super) fn drain(&self, now: Monotonic) {
        let armed = self.armed_for.load(Ordering::Acquire);
        if armed <= now.as_nanos() {
            // Nothing is there to be read where the timer was set anew meanwhile.
            let _ = read(&self.timer, &mut [0; 8]);
            let _ = self.armed_for.compare_exchange(
                armed,
                u64::MAX,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
        }
    }

    /// When it rings.
    #[cfg(test)]
    pub(super) fn next(&self) -> Option<Monotonic> {
        match self.earliest.load(Ordering::Acquire) {
            u64::MAX => None,
            at => Some(Monotonic::from_nanos(at)),
        }
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}
