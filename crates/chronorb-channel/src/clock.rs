//! The clock of a channel.

use chronorb_rt::{Deadline, Monotonic};

/// A clock that never goes back. The timers and budgets of a channel count by it.
pub trait Clock: Send + Sync + 'static {
    /// The time in nanoseconds since some instant.
    fn now(&self) -> u64;

    /// Whether the times are those of [`SystemClock`], so that threads can sleep until one. By
    /// default they are not: then timers are fired by calls of the application.
    fn is_system(&self) -> bool {
        false
    }
}

/// The monotonic clock of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> u64 {
        Monotonic::now().as_nanos()
    }

    fn is_system(&self) -> bool {
        true
    }
}

/// The deadline of a thread that sleeps until a time of the clock, or for ever.
pub(crate) fn deadline_of(clock: &dyn Clock, time: Option<u64>) -> Deadline {
    let time = time.filter(|_| clock.is_system());
    Deadline::at(Monotonic::from_nanos(time.unwrap_or(u64::MAX)))
}

/// The deadline that never passes.
pub(crate) fn never() -> Deadline {
    Deadline::at(Monotonic::from_nanos(u64::MAX))
}
