//! The clock of a channel.

use chronorb_rt::Monotonic;

/// A clock that never goes back. The timers of a channel count by it.
pub trait Clock: Send + Sync + 'static {
    /// The time in nanoseconds since some instant.
    fn now(&self) -> u64;
}

/// The monotonic clock of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> u64 {
        Monotonic::now().as_nanos()
    }
}
