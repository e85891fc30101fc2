//! The monotonic clock, absolute sleeps and deadlines.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use core::ops::{Add, Sub};
use core::time::Duration;

use rustix::io::Errno;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{
    ClockId, DynamicClockId, Timespec, clock_getres, clock_gettime, clock_gettime_dynamic,
};

/// A point in time on `CLOCK_MONOTONIC`, in nanoseconds since an unspecified start (the boot).
///
/// Unlike `std::time::Instant` it is a plain number, so it can be stored in an atomic and
/// subtracted without a check. Arithmetic saturates.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Monotonic(u64);

impl Monotonic {
    /// The present time. One vDSO call, no system call.
    #[must_use]
    pub fn now() -> Self {
        let now = clock_gettime(ClockId::Monotonic);
        // The monotonic clock is never negative, and 64 bits of nanoseconds are 584 years.
        Self(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
    }

    /// The time of the last tick of the kernel: at most 10 ms ago, and read for a tenth of the
    /// cost.
    #[must_use]
    pub fn of_last_tick() -> Self {
        let tick = clock_gettime(ClockId::MonotonicCoarse);
        Self(tick.tv_sec as u64 * 1_000_000_000 + tick.tv_nsec as u64)
    }

    /// The step in which timers of this clock run out (`clock_getres`): 1 ns where the kernel has
    /// high-resolution timers, a tick of some milliseconds where it has not.
    #[must_use]
    pub fn resolution() -> Duration {
        let step = clock_getres(ClockId::Monotonic);
        Duration::new(step.tv_sec as u64, step.tv_nsec as u32)
    }

    /// The point that lies `nanos` nanoseconds after the start of the clock.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the start of the clock.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to this point; zero if `earlier` is the later one.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    pub(crate) const fn to_timespec(self) -> Timespec {
        Timespec {
            tv_sec: (self.0 / 1_000_000_000) as i64,
            tv_nsec: (self.0 % 1_000_000_000) as _,
        }
    }
}

impl Add<Duration> for Monotonic {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

impl Sub for Monotonic {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

/// Sleeps until `instant` (`clock_nanosleep` with `TIMER_ABSTIME`), through any signal.
///
/// Returns at once when `instant` has passed. An absolute time does not drift: a periodic thread
/// adds its period to the last wake-up time, not to the present one.
pub fn sleep_until(instant: Monotonic) {
    let request = instant.to_timespec();
    while clock_nanosleep_absolute(ClockId::Monotonic, &request) == Err(Errno::INTR) {}
}

/// Returns the processor time that the calling thread has used (`CLOCK_THREAD_CPUTIME_ID`). One
/// system call.
#[must_use]
pub fn thread_cpu_time() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    // A time that was used is never negative, and has less than a second of nanoseconds.
    Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
}

/// Returns the time by `CLOCK_TAI`, in nanoseconds since 1970. One vDSO call, no system call.
#[must_use]
pub fn tai() -> u64 {
    // Linux has the clock since 3.10.
    let now = clock_gettime_dynamic(DynamicClockId::Tai).unwrap_or_default();
    let nanos = i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec);
    // A clock that was set before 1970 shows its beginning.
    u64::try_from(nanos.max(0)).unwrap_or(u64::MAX)
}

/// The time at which a wait gives up. Every wait of the ORB has one.
///
/// While more than a second is left it is kept to a hundredth: it may be later than asked for,
/// never earlier.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Deadline(
    /// An odd number of nanoseconds if the deadline was long when it was made.
    Monotonic,
);

impl Deadline {
    /// The deadline that lies `duration` from now.
    #[must_use]
    #[inline]
    pub fn after(duration: Duration) -> Self {
        Self::after_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The deadline that lies so many nanoseconds from now.
    #[must_use]
    #[inline]
    pub fn after_nanos(nanos: u64) -> Self {
        if nanos > LONG.as_nanos() as u64 {
            let tick = Monotonic::of_last_tick().0 + LONGEST_TICK.as_nanos() as u64;
            return Self(Monotonic(tick.saturating_add(nanos) | LONG_BIT));
        }
        Self::at(Monotonic(Monotonic::now().0.saturating_add(nanos)))
    }

    /// The deadline at `instant`, or a nanosecond later.
    #[must_use]
    pub const fn at(instant: Monotonic) -> Self {
        Self(Monotonic(instant.0.saturating_add(LONG_BIT) & !LONG_BIT))
    }

    /// The point in time of this deadline.
    #[must_use]
    pub const fn instant(self) -> Monotonic {
        self.0
    }

    /// Whether more than a second was left when the deadline was [made](Self::after). A step that
    /// follows directly and does not wait needs no look at the clock then.
    #[must_use]
    pub const fn is_long(self) -> bool {
        self.0.0 & LONG_BIT != 0
    }

    /// The time that is left, never zero; `None` when the deadline has passed.
    #[must_use]
    pub fn remaining(self) -> Option<Duration> {
        let mut now = Monotonic::of_last_tick();
        if self.0 <= now + (LONG + LONGEST_TICK) {
            now = Monotonic::now();
        }
        (self.0 > now).then(|| self.0 - now)
    }

    /// Whether the deadline has passed.
    #[must_use]
    pub fn has_passed(self) -> bool {
        self.remaining().is_none()
    }
}

/// Deadlines that are further away than this use the coarse clock.
const LONG: Duration = Duration::from_secs(1);
/// The bit of a deadline that tells whether it was long.
const LONG_BIT: u64 = 1;
/// No kernel ticks less often.
const LONGEST_TICK: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_never_goes_back() {
        let mut last = Monotonic::now();
        for _ in 0..1000 {
            let now = Monotonic::now();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn the_resolution_is_at_most_that_of_a_tick() {
        assert!(!Monotonic::resolution().is_zero());
        assert!(Monotonic::resolution() <= Duration::from_millis(10));
    }

    #[test]
    fn sleep_ends_at_or_after_its_time() {
        let end = Monotonic::now() + Duration::from_micros(200);
        sleep_until(end);
        assert!(Monotonic::now() >= end);
        sleep_until(Monotonic::from_nanos(0));
    }

    #[test]
    fn arithmetic_saturates() {
        let late = Monotonic::from_nanos(u64::MAX - 1);
        assert_eq!((late + Duration::MAX).as_nanos(), u64::MAX);
        assert_eq!(Monotonic::from_nanos(5) - late, Duration::ZERO);
        assert_eq!(
            Monotonic::from_nanos(1_500_000_000) - Monotonic::from_nanos(0),
            Duration::from_millis(1500)
        );
    }

    #[test]
    fn a_deadline_is_never_earlier_than_asked_for() {
        for milliseconds in [1, 900, 1100, 60_000] {
            let wanted = Duration::from_millis(milliseconds);
            let before = Monotonic::now();
            let deadline = Deadline::after(wanted);
            assert!(deadline.instant() >= before + wanted);
            assert_eq!(deadline.is_long(), wanted > LONG);
            let left = deadline.remaining().unwrap_or_default();
            assert!(left >= wanted.saturating_sub(Monotonic::now() - before));
        }
    }

    #[test]
    fn deadline_of_zero_has_passed() {
        assert!(Deadline::after(Duration::ZERO).has_passed());
        assert_eq!(Deadline::at(Monotonic::from_nanos(0)).remaining(), None);
        let far = Deadline::after(Duration::MAX);
        assert!(far.remaining().is_some());
        assert_eq!(far.instant().as_nanos(), u64::MAX);
    }
}
